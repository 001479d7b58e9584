"""The kernels of `triton_paged.py`, in Triton's language: a program computes one block.

Importing this needs triton, so only a backend that runs does it. Knows pointers, strides and
block sizes; who launches what stands in `triton_paged.py`, what the arguments mean in
`contract.py` and `triton_plan.py`. In CAPITALS: what is compiled in. `_P`: padded to a power of
two, as every block must be; what is padding is masked when it is loaded.

Softmax goes block by block (online: arXiv 1805.02867; tiled: arXiv 2205.14135 section 3.1),
in powers of two: `scale` holds the factor log2(e).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def store(
    key, value, cached_key, cached_value, slots, key_stride, value_stride, slot_stride,
    WIDTH: tl.constexpr, WIDTH_P: tl.constexpr,
):  # fmt: skip
    """One token's key and value, `WIDTH` = Hkv * D numbers each, to its slot; -1 is no slot."""
    row = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + row)
    column = tl.arange(0, WIDTH_P)
    is_stored = (column < WIDTH) & (slot >= 0)
    new_key = tl.load(key + row * key_stride + column, mask=is_stored)
    new_value = tl.load(value + row * value_stride + column, mask=is_stored)
    tl.store(cached_key + slot * slot_stride + column, new_key, mask=is_stored)
    tl.store(cached_value + slot * slot_stride + column, new_value, mask=is_stored)


@triton.jit
def decode_split(
    query, cached_key, cached_value, tables, starts, lengths, decoding, partial, log_total,
    scale, query_stride, slot_stride, table_stride,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, PAGE_SIZE: tl.constexpr, WINDOW: tl.constexpr,
    ROWS_P: tl.constexpr, HEAD_DIM_P: tl.constexpr, KEYS_P: tl.constexpr,
):  # fmt: skip
    """The last token of a sequence over one share of its pages, for one kv head.

    Grid (Hkv, N, splits). `partial` (N, Hq, splits, D) float32 gets the share's attention,
    `log_total` (N, Hq, splits) the logarithm of its weights' sum; -inf if the share is empty.
    """
    kv_head, number, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    num_heads, num_splits = tl.num_programs(0) * GROUP, tl.num_programs(2)
    sequence = tl.load(decoding + number)
    length = tl.load(lengths + sequence)
    first = tl.maximum(length - WINDOW, 0) if WINDOW else 0
    begin, end = _share(first, length, split, num_splits, PAGE_SIZE)

    member, dim = tl.arange(0, ROWS_P), tl.arange(0, HEAD_DIM_P)  # the group's heads are rows
    head = kv_head * GROUP + member
    is_number = (member < GROUP)[:, None] & (dim < HEAD_DIM)[None, :]
    row = tl.load(starts + sequence).to(tl.int64)
    where = row * query_stride + head[:, None] * HEAD_DIM + dim[None, :]
    rows = tl.load(query + where, mask=is_number, other=0.0)

    attended, total, top = _nothing(ROWS_P, HEAD_DIM_P)
    table = tables + sequence.to(tl.int64) * table_stride
    for position in range(begin, end, KEYS_P):
        seen = position + tl.arange(0, KEYS_P)
        is_seen = (seen >= first) & (seen < end)
        attended, total, top = _attend(
            rows, cached_key, cached_value, table, kv_head, slot_stride, scale, seen, is_seen,
            is_seen[None, :], attended, total, top, HEAD_DIM, HEAD_DIM_P, PAGE_SIZE,
        )  # fmt: skip

    cell = (number * num_heads + head).to(tl.int64) * num_splits + split
    total = tl.where(total > 0, total, 1.0)  # of an empty share `top` is -inf
    attended = attended / total[:, None]
    tl.store(partial + cell[:, None] * HEAD_DIM + dim[None, :], attended, mask=is_number)
    tl.store(log_total + cell, top + tl.log2(total), mask=member < GROUP)


@triton.jit
def decode_merge(
    partial, log_total, starts, decoding, output,
    HEAD_DIM: tl.constexpr, HEAD_DIM_P: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """The shares of one sequence and head, weighted by their totals. Grid (Hq, N)."""
    head, number, num_heads = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    split, dim = tl.arange(0, SPLITS), tl.arange(0, HEAD_DIM_P)
    cell = (number * num_heads + head).to(tl.int64) * SPLITS + split
    log_totals = tl.load(log_total + cell)
    top = tl.max(log_totals, 0)
    weights = tl.exp2(log_totals - tl.where(top == float("-inf"), 0.0, top))
    where = partial + cell[:, None] * HEAD_DIM + dim[None, :]
    shares = tl.load(where, mask=(dim < HEAD_DIM)[None, :], other=0.0)
    merged = tl.sum(shares * weights[:, None], 0)
    total = tl.sum(weights, 0)
    merged = merged / tl.where(total > 0, total, 1.0)  # padding of a batch has seen nothing
    row = tl.load(starts + tl.load(decoding + number)).to(tl.int64)
    to = output + (row * num_heads + head) * HEAD_DIM + dim
    tl.store(to, merged.to(output.dtype.element_ty), mask=dim < HEAD_DIM)


@triton.jit
def prefill(
    query, cached_key, cached_value, tables, starts, lengths, tiles, output,
    scale, query_stride, slot_stride, table_stride,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, PAGE_SIZE: tl.constexpr, WINDOW: tl.constexpr,
    GROUP_P: tl.constexpr, HEAD_DIM_P: tl.constexpr, ROWS_P: tl.constexpr, KEYS_P: tl.constexpr,
):  # fmt: skip
    """Some of a sequence's new tokens over all that they see, for one kv head.

    Grid (Hkv, tiles): a tile names its sequence and the first of its tokens among the new.
    Its rows are tokens times the heads of the group.
    """
    kv_head, tile = tl.program_id(0), tl.program_id(1)
    num_heads = tl.num_programs(0) * GROUP
    sequence, first_new = tl.load(tiles + 2 * tile), tl.load(tiles + 2 * tile + 1)
    start = tl.load(starts + sequence)
    num_new = tl.load(starts + sequence + 1) - start
    length = tl.load(lengths + sequence)

    row, dim = tl.arange(0, ROWS_P), tl.arange(0, HEAD_DIM_P)
    token, member = first_new + row // GROUP_P, row % GROUP_P
    is_row = (token < num_new) & (member < GROUP)
    is_number = is_row[:, None] & (dim < HEAD_DIM)[None, :]
    head_at = (kv_head * GROUP + member)[:, None] * HEAD_DIM + dim[None, :]
    token_at = (start + token).to(tl.int64)[:, None]
    rows = tl.load(query + token_at * query_stride + head_at, mask=is_number, other=0.0)

    seer = length - num_new + token  # the position of each row
    lowest = length - num_new + first_new
    end = tl.minimum(lowest + ROWS_P // GROUP_P, length)
    first = tl.maximum(lowest - WINDOW + 1, 0) // KEYS_P * KEYS_P if WINDOW else 0
    plain_end = first if WINDOW else (lowest + 1) // KEYS_P * KEYS_P  # before it: seen by all
    attended, total, top = _nothing(ROWS_P, HEAD_DIM_P)
    table = tables + sequence.to(tl.int64) * table_stride
    for position in range(first, plain_end, KEYS_P):
        is_seen = tl.full((KEYS_P,), 1, tl.int1)
        attended, total, top = _attend(
            rows, cached_key, cached_value, table, kv_head, slot_stride, scale,
            position + tl.arange(0, KEYS_P), is_seen, is_seen[None, :],
            attended, total, top, HEAD_DIM, HEAD_DIM_P, PAGE_SIZE,
        )  # fmt: skip
    for position in range(plain_end, end, KEYS_P):
        seen = position + tl.arange(0, KEYS_P)
        is_used = seen < end
        is_seen = seen[None, :] <= seer[:, None]
        if WINDOW:
            is_used = is_used & (seen > lowest - WINDOW)
            is_seen = is_seen & (seen[None, :] > seer[:, None] - WINDOW)
        attended, total, top = _attend(
            rows, cached_key, cached_value, table, kv_head, slot_stride, scale, seen, is_used,
            is_seen, attended, total, top, HEAD_DIM, HEAD_DIM_P, PAGE_SIZE,
        )  # fmt: skip

    attended = attended / tl.where(total > 0, total, 1.0)[:, None]
    to = output + token_at * (num_heads * HEAD_DIM) + head_at
    tl.store(to, attended.to(output.dtype.element_ty), mask=is_number)


@triton.jit
def _share(first, length, split, num_splits, PAGE_SIZE: tl.constexpr):
    """Where one of the shares of the positions from `first` on begins and ends, by whole pages."""
    first_page = first // PAGE_SIZE
    pages = tl.cdiv(tl.cdiv(length, PAGE_SIZE) - first_page, num_splits)
    begin = (first_page + split * pages) * PAGE_SIZE
    return begin, tl.minimum(begin + pages * PAGE_SIZE, length)


@triton.jit
def _nothing(ROWS_P: tl.constexpr, HEAD_DIM_P: tl.constexpr):
    """What rows have attended to, the sum of their weights and their highest score, so far."""
    attended = tl.zeros((ROWS_P, HEAD_DIM_P), tl.float32)
    total = tl.zeros((ROWS_P,), tl.float32)
    return attended, total, tl.full((ROWS_P,), float("-inf"), tl.float32)


@triton.jit
def _attend(
    rows, cached_key, cached_value, table, kv_head, slot_stride, scale, position, is_used, is_seen,
    attended, total, top,
    HEAD_DIM: tl.constexpr, HEAD_DIM_P: tl.constexpr, PAGE_SIZE: tl.constexpr,
):  # fmt: skip
    """One more block of keys, at `position`: what `rows` have attended to, their sum and maximum.

    What is not `is_used` is never read, for it may be NaN, and 0 * NaN is NaN; `is_seen`
    (rows, keys) or (1, keys) says which row sees which key.
    """
    page = tl.load(table + position // PAGE_SIZE, mask=is_used, other=0)
    slot = page * PAGE_SIZE + position % PAGE_SIZE
    dim = tl.arange(0, HEAD_DIM_P)
    where = (slot * slot_stride + kv_head * HEAD_DIM)[:, None] + dim[None, :]
    is_number = is_used[:, None] & (dim < HEAD_DIM)[None, :]
    keys = tl.load(cached_key + where, mask=is_number, other=0.0)
    values = tl.load(cached_value + where, mask=is_number, other=0.0)

    scores = tl.dot(rows, tl.trans(keys), input_precision="ieee") * scale
    scores = tl.where(is_seen, scores, float("-inf"))
    new_top = tl.maximum(top, tl.max(scores, 1))
    shift = tl.where(new_top == float("-inf"), 0.0, new_top)  # nothing seen yet: no inf - inf
    weights = tl.exp2(scores - shift[:, None])
    kept = tl.exp2(top - shift)
    more = tl.dot(weights.to(values.dtype), values, input_precision="ieee")
    return attended * kept[:, None] + more, total * kept + tl.sum(weights, 1), new_top
