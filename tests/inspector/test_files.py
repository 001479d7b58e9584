"""The page's files: small, without a build, and nothing in them makes markup of a string."""

from __future__ import annotations

import re

from minimsg.inspector.files import content_type, page_files

MAX_BYTES = 150_000
MAKES_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\beval\b"
    r"|new Function|DOMParser|srcdoc"
)


def test_all_of_the_page_is_small() -> None:
    assert sum(map(len, page_files().values())) <= MAX_BYTES


def test_no_module_of_ours_makes_markup_or_code_of_a_string() -> None:
    ours = {name: data.decode() for name, data in page_files().items() if "/" not in name}
    assert len(ours) > 10
    assert {
        name: found for name, text in ours.items() if (found := MAKES_MARKUP.findall(text))
    } == {}


def test_every_import_is_a_file_of_the_page() -> None:
    files = page_files()
    for name, data in files.items():
        if content_type(name) == "text/javascript":
            folder = name[: name.rfind("/") + 1]
            for path in re.findall(r'(?:from\s*|import\s*)"([^"]+)"', data.decode()):
                assert path.startswith("./"), f"{name} imports {path}"
                assert folder + path[2:] in files, f"{name} imports {path}"


def test_what_is_from_others_says_whose_it_is_and_under_which_licence() -> None:
    for name, data in page_files().items():
        if name.startswith("vendor/"):
            head, _, _ = data.decode().partition("*/")
            assert "of the npm package" in head
            assert "MIT License" in head or "Apache License" in head
