"""Small writers of office documents: zip files with XML in them, and RTF."""

import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from xml.sax.saxutils import escape

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SLIDE = "http://schemas.openxmlformats.org/presentationml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_MIME = "application/vnd.openxmlformats-officedocument."

TYPES = {
    "docx": f"{_MIME}wordprocessingml.document",
    "xlsx": f"{_MIME}spreadsheetml.sheet",
    "pptx": f"{_MIME}presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "epub": "application/epub+zip",
    "rtf": "application/rtf",
}


def packed(files: Mapping[str, str | bytes], stored: Sequence[str] = ()) -> bytes:
    """Return a zip file, the same bytes each time; names in `stored` are not compressed."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (2024, 3, 1, 8, 0, 0))
            plain = name in stored
            entry.compress_type = zipfile.ZIP_STORED if plain else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return out.getvalue()


def docx(title: str, paragraphs: Sequence[str], rows: Sequence[Sequence[str]] = ()) -> bytes:
    """Return a Word document: a heading, paragraphs and a table."""
    body = _word_paragraph(title, "Heading1") + "".join(map(_word_paragraph, paragraphs))
    if rows:
        cells = ("".join(f"<w:tc>{_word_paragraph(cell)}</w:tc>" for cell in row) for row in rows)
        body += "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"
    return word_package(f'{_XML}<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>')


def word_package(document: str) -> bytes:
    """Return a Word file around the XML of its one part."""
    return packed(
        {
            "[Content_Types].xml": _types(
                {"/word/document.xml": f"{_MIME}wordprocessingml.document.main+xml"}
            ),
            "_rels/.rels": _relations({"rId1": ("officeDocument", "word/document.xml")}),
            "word/document.xml": document,
        }
    )


def xlsx(sheets: Mapping[str, Sequence[Sequence[str | float]]]) -> bytes:
    """Return a workbook; strings are written in place."""
    names = list(sheets)
    entries = "".join(
        f'<sheet name="{escape(name)}" sheetId="{at}" r:id="rId{at}"/>'
        for at, name in enumerate(names, 1)
    )
    parts = {f"xl/worksheets/sheet{at}.xml": sheets[name] for at, name in enumerate(names, 1)}
    types = {"/xl/workbook.xml": f"{_MIME}spreadsheetml.sheet.main+xml"}
    types |= {f"/{part}": f"{_MIME}spreadsheetml.worksheet+xml" for part in parts}
    links = {
        f"rId{at}": ("worksheet", part.removeprefix("xl/")) for at, part in enumerate(parts, 1)
    }
    return packed(
        {
            "[Content_Types].xml": _types(types),
            "_rels/.rels": _relations({"rId1": ("officeDocument", "xl/workbook.xml")}),
            "xl/workbook.xml": f'{_XML}<workbook xmlns="{_SHEET}" xmlns:r="{_OFFICE}">'
            f"<sheets>{entries}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": _relations(links),
            **{part: _worksheet(rows) for part, rows in parts.items()},
        }
    )


def pptx(slides: Sequence[tuple[str, str]]) -> bytes:
    """Return a presentation with a title and a text on each slide."""
    parts = {f"ppt/slides/slide{at}.xml": slide for at, slide in enumerate(slides, 1)}
    types = {"/ppt/presentation.xml": f"{_MIME}presentationml.presentation.main+xml"}
    types |= {f"/{part}": f"{_MIME}presentationml.slide+xml" for part in parts}
    entries = "".join(
        f'<p:sldId id="{255 + at}" r:id="rId{at}"/>' for at in range(1, len(parts) + 1)
    )
    links = {f"rId{at}": ("slide", part.removeprefix("ppt/")) for at, part in enumerate(parts, 1)}
    return packed(
        {
            "[Content_Types].xml": _types(types),
            "_rels/.rels": _relations({"rId1": ("officeDocument", "ppt/presentation.xml")}),
            "ppt/presentation.xml": f'{_XML}<p:presentation xmlns:p="{_SLIDE}" xmlns:r="{_OFFICE}">'
            f"<p:sldIdLst>{entries}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": _relations(links),
            **{part: _slide(*slide) for part, slide in parts.items()},
        }
    )


def odt(title: str, paragraphs: Sequence[str]) -> bytes:
    """Return an OpenDocument text."""
    body = f'<text:h text:outline-level="1">{escape(title)}</text:h>'
    body += "".join(f"<text:p>{escape(paragraph)}</text:p>" for paragraph in paragraphs)
    space = "urn:oasis:names:tc:opendocument:xmlns"
    return packed(
        {
            "mimetype": TYPES["odt"],
            "META-INF/manifest.xml": f'{_XML}<manifest:manifest xmlns:manifest="{space}:manifest:1.0">'
            f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{TYPES["odt"]}"/>'
            '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
            "</manifest:manifest>",
            "content.xml": f'{_XML}<office:document-content xmlns:office="{space}:office:1.0"'
            f' xmlns:text="{space}:text:1.0" office:version="1.2">'
            f"<office:body><office:text>{body}</office:text></office:body></office:document-content>",
        },
        stored=["mimetype"],
    )


def epub(title: str, chapters: Sequence[tuple[str, str]]) -> bytes:
    """Return a book with these chapters."""
    names = [f"chapter{at}.xhtml" for at in range(1, len(chapters) + 1)]
    items = "".join(
        f'<item id="c{at}" href="{name}" media-type="application/xhtml+xml"/>'
        for at, name in enumerate(names)
    )
    spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(names)))
    return packed(
        {
            "mimetype": TYPES["epub"],
            "META-INF/container.xml": f'{_XML}<container version="1.0"'
            ' xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile'
            ' full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
            "book.opf": f'{_XML}<package xmlns="http://www.idpf.org/2007/opf" version="3.0"'
            ' unique-identifier="id"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f'<dc:identifier id="id">urn:trapline:{escape(title)}</dc:identifier>'
            f"<dc:title>{escape(title)}</dc:title><dc:language>en</dc:language></metadata>"
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{
                name: f'{_XML}<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{escape(head)}'
                f"</title></head><body><h1>{escape(head)}</h1><p>{escape(text)}</p></body></html>"
                for name, (head, text) in zip(names, chapters, strict=True)
            },
        },
        stored=["mimetype"],
    )


def rtf(title: str, paragraphs: Sequence[str]) -> bytes:
    body = "".join(rf"{paragraph}\par " for paragraph in paragraphs)
    return rf"{{\rtf1\ansi\deff0{{\fonttbl{{\f0 Times;}}}}\b {title}\b0\par {body}}}".encode(
        "ascii"
    )


def _word_paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def _worksheet(rows: Sequence[Sequence[str | float]]) -> str:
    lines = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    return f'{_XML}<worksheet xmlns="{_SHEET}"><sheetData>{lines}</sheetData></worksheet>'


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f"<c><v>{value}</v></c>"


def _slide(title: str, text: str) -> str:
    shapes = "".join(
        f"<p:sp><p:nvSpPr><p:cNvPr id='{at}' name='{at}'/><p:cNvSpPr/><p:nvPr>{kind}</p:nvPr>"
        f"</p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>{escape(words)}</a:t></a:r></a:p>"
        "</p:txBody></p:sp>"
        for at, (kind, words) in enumerate((('<p:ph type="title"/>', title), ("<p:ph/>", text)), 2)
    )
    return (
        f'{_XML}<p:sld xmlns:p="{_SLIDE}" xmlns:a="{_DRAWING}"><p:cSld><p:spTree><p:nvGrpSpPr>'
        '<p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
        f"{shapes}</p:spTree></p:cSld></p:sld>"
    )


def _types(parts: Mapping[str, str]) -> str:
    overrides = "".join(
        f'<Override PartName="{name}" ContentType="{kind}"/>' for name, kind in parts.items()
    )
    return (
        f'{_XML}<Types xmlns="{_PACKAGE}content-types"><Default Extension="rels"'
        f' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>'
    )


def _relations(links: Mapping[str, tuple[str, str]]) -> str:
    entries = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for name, (kind, target) in links.items()
    )
    return f'{_XML}<Relationships xmlns="{_PACKAGE}relationships">{entries}</Relationships>'
