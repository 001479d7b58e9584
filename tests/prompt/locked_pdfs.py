"""PDFs that really are encrypted, as the standard security handler does it: RC4 and AES.

    key = MD5(padded password, O, P, ID), of 5 bytes in revision 2, of 16 and fifty times after it
    U   = what only that key makes of 32 known bytes: by it a reader knows the right password
    data of object n: RC4 or AES-CBC by MD5(key, n), from revision 5 on AES-256 by a random key

Source: ISO 32000-1, 7.6; for revision 5 Adobe's supplement 3 to it, for revision 6 ISO 32000-2.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import md5, sha256, sha384, sha512
from typing import Final

from .pdf_files import file_of, page_objects, stream

PADDING: Final = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
PERMISSIONS: Final = 0xFFFFFFFC  # everything is allowed
ID: Final = bytes(range(16))
VECTOR: Final = bytes(range(50, 66))  # a random one, once
AES_256: Final = "/V 5/Length 256/CF<</C<</CFM/AESV3/Length 32>>>>/StmF/C/StrF/C"
HANDLERS: Final = {
    "RC4, 40 bits": (2, "/V 1"),
    "RC4, 128 bits": (3, "/V 2/Length 128"),
    "AES, 128 bits": (4, "/V 4/Length 128/CF<</C<</CFM/AESV2/Length 16>>>>/StmF/C/StrF/C"),
    "AES, 256 bits": (5, AES_256),
    "AES, 256 bits, slowly": (6, AES_256),
}


def locked_pdf(ink: bytes, how: str, user: bytes, owner: bytes = b"owner") -> bytes:
    """A page with this content, encrypted by one of `HANDLERS`; `user` opens it."""
    revision, entries = HANDLERS[how]
    key, secrets = _modern(revision, user) if revision > 4 else _classic(revision, user, owner)
    objects = page_objects(b"") | {11: stream(_encrypted(ink, key, revision))}
    words = "".join(f"/{name}<{value.hex()}>" for name, value in secrets.items())
    signed = PERMISSIONS - (1 << 32)
    objects[50] = f"<</Filter/Standard{entries}/R {revision}/P {signed}{words}>>"
    return file_of(objects, f"/Root 1 0 R/Encrypt 50 0 R/ID[<{ID.hex()}><{ID.hex()}>]")


def rc4(key: bytes, data: bytes) -> bytes:
    """What RC4 makes of `data`, either way."""
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def aes(key: bytes, block: bytes) -> bytes:
    """One block of 16 bytes, encrypted. FIPS 197."""
    schedule = _schedule(key)
    state = _mixed_with(block, schedule[0])
    for number, round_key in enumerate(schedule[1:], 1):
        state = bytes(SBOX[state[(place + 4 * (place % 4)) % 16]] for place in range(16))
        if number < len(schedule) - 1:
            state = b"".join(_column(state[place : place + 4]) for place in range(0, 16, 4))
        state = _mixed_with(state, round_key)
    return state


def aes_cbc(key: bytes, vector: bytes, data: bytes) -> bytes:
    """Whole blocks, each mixed with the one before."""
    out = [vector]
    for place in range(0, len(data), 16):
        out.append(aes(key, _mixed_with(data[place : place + 16], out[-1])))
    return b"".join(out[1:])


def _classic(revision: int, user: bytes, owner: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The key of a file, and what it says of passwords."""
    size, times = (5, 0) if revision == 2 else (16, 50)
    by_owner = _repeated(md5(_padded(owner)).digest(), size, times)
    of_owner = _rc4_often(by_owner, _padded(user), revision)
    seed = _padded(user) + of_owner + PERMISSIONS.to_bytes(4, "little") + ID
    key = _repeated(md5(seed).digest(), size, times)
    known = PADDING if revision == 2 else md5(PADDING + ID).digest()
    return key, {"O": of_owner, "U": _rc4_often(key, known, revision).ljust(32, b"\0")}


def _modern(revision: int, user: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The same from revision 5 on; no owner has a password."""
    hashed = _slow_hash if revision == 6 else _fast_hash
    key, check, salt = sha256(b"a random key").digest(), b"checking", b"the-salt"
    of_user = hashed(user, check) + check + salt
    hidden = aes_cbc(hashed(user, salt), bytes(16), key)
    rights = aes(key, PERMISSIONS.to_bytes(4, "little") + b"\xff\xff\xff\xffTadbrand")
    return key, {"O": bytes(48), "U": of_user, "OE": bytes(32), "UE": hidden, "Perms": rights}


def _fast_hash(password: bytes, salt: bytes) -> bytes:
    return sha256(password + salt).digest()


def _slow_hash(password: bytes, salt: bytes) -> bytes:
    """At least 64 rounds, of which each chooses the hash of the next: ISO 32000-2, 2.B."""
    digest, number, last = _fast_hash(password, salt), 0, 0
    while number < 64 or last > number - 32:
        mixed = aes_cbc(digest[:16], digest[16:32], 64 * (password + digest))
        digest = (sha256, sha384, sha512)[sum(mixed[:16]) % 3](mixed).digest()
        number, last = number + 1, mixed[-1]
    return digest[:32]


def _encrypted(data: bytes, key: bytes, revision: int) -> bytes:
    """The content of object 11."""
    salted = key + (11).to_bytes(3, "little") + bytes(2)
    if revision < 4:
        return rc4(md5(salted).digest()[: min(16, len(key) + 5)], data)
    of_object = key if revision > 4 else md5(salted + b"sAlT").digest()
    missing = 16 - len(data) % 16
    return VECTOR + aes_cbc(of_object, VECTOR, data + bytes([missing]) * missing)


def _padded(password: bytes) -> bytes:
    return (password + PADDING)[:32]


def _repeated(digest: bytes, size: int, times: int) -> bytes:
    for _ in range(times):
        digest = md5(digest[:size]).digest()
    return digest[:size]


def _rc4_often(key: bytes, data: bytes, revision: int) -> bytes:
    """Once in revision 2; later twenty times, with other keys."""
    for number in range(1 if revision == 2 else 20):
        data = rc4(bytes(byte ^ number for byte in key), data)
    return data


def _mixed_with(data: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(data, other, strict=True))


def _double(byte: int) -> int:
    return (byte << 1) ^ (0x11B if byte & 0x80 else 0)


DOUBLES: Final = bytes(map(_double, range(256)))


def _column(column: bytes) -> bytes:
    total = column[0] ^ column[1] ^ column[2] ^ column[3]
    following = column[1:] + column[:1]
    return bytes(a ^ total ^ DOUBLES[a ^ b] for a, b in zip(column, following, strict=True))


def _sbox() -> bytes:
    """Inverses in the field of 256 elements, each turned and mixed."""
    power, powers = 1, []
    for _ in range(255):
        powers.append(power)
        power ^= _double(power)
    box = bytearray([0x63] * 256)
    for number, element in enumerate(powers):
        inverse = powers[-number % 255]
        turned = [(inverse << by | inverse >> (8 - by)) & 0xFF for by in range(5)]
        box[element] = turned[0] ^ turned[1] ^ turned[2] ^ turned[3] ^ turned[4] ^ 0x63
    return bytes(box)


SBOX: Final = _sbox()


@lru_cache(maxsize=2)
def _schedule(key: bytes) -> list[bytes]:
    """The key of each round."""
    size, constant = len(key) // 4, 1
    words = [key[place : place + 4] for place in range(0, len(key), 4)]
    for number in range(size, 4 * (size + 7)):
        word = words[-1]
        if number % size == 0:
            word = bytes(SBOX[byte] for byte in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = _double(constant)
        elif size > 6 and number % size == 4:
            word = bytes(SBOX[byte] for byte in word)
        words.append(_mixed_with(words[number - size], word))
    return [b"".join(words[place : place + 4]) for place in range(0, len(words), 4)]
