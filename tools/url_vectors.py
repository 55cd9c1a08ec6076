"""Hold `canonical` to the WHATWG URL test vectors: python -m tools.url_vectors urltestdata.json

The file is part of web-platform-tests (url/resources); Debian's librust-url-dev carries a copy.
Canonical form drops fragments, tracking and final dots, so both sides are brought to it.
"""

import json
import sys
from pathlib import Path

from trapline.errors import ExitCode, VisitFailed
from trapline.frontier import canonical


def main() -> None:
    vectors = [v for v in json.loads(Path(sys.argv[1]).read_text("utf-8")) if isinstance(v, dict)]
    wrong = [fault for vector in vectors if (fault := _fault(vector))]
    print("\n".join(wrong))
    print(f"{len(vectors) - len(wrong)} of {len(vectors)} vectors hold")
    sys.exit(bool(wrong))


def _fault(vector: dict[str, str]) -> str | None:
    base = vector.get("base")
    base = None if base in {None, "about:blank"} else base
    expected = _expected(vector)
    try:
        got: object = canonical(vector["input"], base)
    except VisitFailed as failed:
        got = failed.code
    if got in expected:
        return None
    return f"{vector['input']!r} on {base!r}: {got!r}, not {expected!r}"


def _expected(vector: dict[str, str]) -> tuple[object, ...]:
    """What may come of a vector: one URL, or the errors that we have for it."""
    if vector.get("failure"):
        return (ExitCode.INVALID_URL, ExitCode.UNSUPPORTED_SCHEME)
    if vector["protocol"] not in {"http:", "https:"}:
        return (ExitCode.UNSUPPORTED_SCHEME, ExitCode.INVALID_URL)
    if vector["username"] or vector["password"]:
        return (ExitCode.INVALID_URL,)
    if "\0" in vector["input"] or ".." in vector["host"] or vector["host"].startswith("."):
        return (ExitCode.INVALID_URL,)
    return (canonical(vector["href"]),)


if __name__ == "__main__":
    main()
