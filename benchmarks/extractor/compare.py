"""Compares the compiled reader with the one in Python: `python -m benchmarks.extractor.compare`.

Every page of every data set beside WCXB is extracted by both, in all formats. The last line is JSON;
pages whose Documents differ are listed before it, with the fields that do.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.extractor.wcxb import wcxb_root
from tests.support.pure_python import pure_python
from trapline import native
from trapline.extract import extract
from trapline.model import Document, ExtractOptions, Format

_URL = "https://example.com/section/page.html"
_ALL = ExtractOptions(formats=frozenset(Format))


def differing_fields(compiled: Document, python: Document) -> list[str]:
    return [
        name
        for name in Document.__struct_fields__
        if getattr(compiled, name) != getattr(python, name)
    ]


def differences(paths: list[Path]) -> Iterator[tuple[Path, list[str]]]:
    python_extract = pure_python("trapline.extract").extract
    for path in paths:
        body = gzip.decompress(path.read_bytes())
        compiled, python = (
            read(body, "text/html", _URL, _ALL) for read in (extract, python_extract)
        )
        if compiled != python:
            yield path, differing_fields(compiled, python)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take one page in so many")
    arguments = parser.parse_args()
    if not native.available:
        sys.exit("There is no native library to compare: install a C compiler, then make setup.")
    paths = sorted(wcxb_root().parent.glob("*/html/*.html.gz"))[:: arguments.every]
    count = 0
    for path, fields in differences(paths):
        count += 1
        print(f"{path.parent.parent.name}/{path.name}: {', '.join(fields)}", flush=True)
    print(json.dumps({"pages": len(paths), "different": count}))
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
