"""Fuzzes the HTML path: `python tests/fuzz/html.py -max_total_time=60 -max_len=4000 CORPUS`.

Needs atheris, which is not among the dependencies: `uv pip install atheris`. What it finds becomes
a case in `tests/unit/extract/test_wild_html.py`.
"""

import sys

import atheris

with atheris.instrument_imports(include=["trapline.extract"]):
    from trapline.extract import extract
    from trapline.model import ExtractOptions, Format

OPTIONS = (
    ExtractOptions(formats=frozenset(Format)),
    ExtractOptions(formats=frozenset(Format), only_main_content=False),
)


def one_input(data: bytes) -> None:
    for options in OPTIONS:
        found = extract(b"<p>" + data, "text/html", "https://example.com/a/b", options)
        if not found.text and not found.warning:
            raise AssertionError("nothing, and no word about it")


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
