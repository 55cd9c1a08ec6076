"""The Python examples of the documentation run."""

import re

from tests.support.paths import DOCS

PAGE = b"""<html lang="en"><head><title>Kettle</title><script type="application/ld+json">
{"@type": "Product", "name": "Kettle", "offers": {"price": "12.50"}}</script></head>
<body><h1>Kettle</h1><a href="/spout">Spout</a></body></html>"""


def test_the_extraction_example_runs() -> None:
    text = (DOCS / "extraction-formats.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {
        "body": PAGE,
        "url": "https://shop.test/kettle",
        "main_text": "Kettle",
        "json_schema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    exec(example, names)  # noqa: S102 - our own page
    assert names["answer"] == {"name": "Kettle"}
