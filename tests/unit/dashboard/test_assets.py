"""The dashboard ships little, and names what it ships by content."""

import gzip

from trapline.dashboard import assets


def test_script_and_style_are_small() -> None:
    loaded = assets.load()
    sizes = [
        len(loaded.files[loaded.names[name]].gzip) for name in ("dashboard.js", "dashboard.css")
    ]
    assert sum(sizes) <= 25_000


def test_names_follow_the_content() -> None:
    loaded = assets.load()
    for name, hashed in loaded.names.items():
        stem, suffix = name.rsplit(".", 1)
        assert hashed.startswith(f"{stem}.")
        assert hashed.endswith(f".{suffix}")
        assert gzip.decompress(loaded.files[hashed].gzip) == loaded.files[hashed].plain


def test_no_asset_names_another_server() -> None:
    for asset in assets.load().files.values():
        assert b"://" not in asset.plain.replace(b"http://www.w3.org/2000/svg", b"")
