import random
import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import document_files
from trapline.errors import ExitCode, VisitFailed
from trapline.extract.files import Kind, Limits, kind_of, read_document
from trapline.extract.files.reader_result import FileContent, UnreadableFile
from trapline.extract.files.readers import read
from trapline.model import Document, PageType


def document(
    body: bytes, content_type: str | None = None, url: str = "", **options: object
) -> Document:
    return read_document(body, content_type, url, **options)  # type: ignore[arg-type]


def failure(
    body: bytes, content_type: str | None = None, **options: object
) -> tuple[ExitCode, str]:
    with pytest.raises(VisitFailed) as caught:
        document(body, content_type, **options)
    return caught.value.code, caught.value.message


def paragraph(text: str, style: str = "", inside: str = "") -> str:
    look = f'<w:pPr><w:pStyle w:val="{style}"/>{inside}</w:pPr>' if style or inside else ""
    return f"<w:p>{look}<w:r><w:t>{text}</w:t></w:r></w:p>"


STYLES = f"""<w:styles {document_files.W}>
 <w:style w:styleId="Titel"><w:name w:val="Title"/></w:style>
 <w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>
 <w:style w:styleId="Own"><w:name w:val="My own"/><w:basedOn w:val="Out"/></w:style>
 <w:style w:styleId="Out"><w:name w:val="Outlined"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
 <w:style w:styleId="Bullets"><w:name w:val="List Bullet"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
 </w:styles>"""
NUMBERING = f"""<w:numbering {document_files.W}>
 <w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
 <w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>
 <w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num></w:numbering>"""
FOOTNOTES = f'<w:footnotes {document_files.W}><w:footnote w:id="2">{paragraph("See the map.")}</w:footnote></w:footnotes>'
DOCX = document_files.docx(
    paragraph("Field report", "Titel")
    + paragraph("Methods", "H1")
    + """<w:p><w:r><w:t xml:space="preserve">We walked the </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>northern</w:t></w:r>
    <w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve"> route </w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>
    <w:ins><w:r><w:rPr><w:i/><w:b w:val="0"/></w:rPr><w:t>slowly</w:t></w:r></w:ins>
    <w:r><w:footnoteReference w:id="2"/></w:r><w:hyperlink r:id="link"><w:r><w:t xml:space="preserve"> a link</w:t></w:r></w:hyperlink></w:p>"""
    + paragraph("Deeper", "Own")
    + paragraph("one", "Bullets")
    + paragraph("two", "Bullets")
    + paragraph("first", inside='<w:numPr><w:ilvl w:val="0"/><w:numId w:val="2"/></w:numPr>')
    + paragraph("second", inside='<w:numPr><w:ilvl w:val="0"/><w:numId w:val="2"/></w:numPr>')
    + f"""<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{paragraph("wide | cell")}</w:tc></w:tr>
    <w:tr><w:tc>{paragraph("a")}</w:tc><w:tc>{paragraph("b")}{paragraph("c")}</w:tc></w:tr></w:tbl>"""
    + f"<w:tbl><w:tr><w:tc>{paragraph('framed')}</w:tc></w:tr></w:tbl>"
    + "<w:p><w:r><w:t>line</w:t><w:br/><w:t># not a heading *</w:t><w:tab/><w:t>x</w:t></w:r></w:p>",
    styles=STYLES,
    numbering=NUMBERING,
    footnotes=FOOTNOTES,
)


def test_docx() -> None:
    found = document(DOCX)
    assert found.markdown == (
        "# Field report\n\n# Methods\n\n"
        "We walked the **northern route** *slowly* (1) [a link](https://example.org/x?a=1&b=2)\n\n"
        "### Deeper\n\n- one\n- two\n\n1. first\n2. second\n\n"
        "| wide \\| cell |  |\n| --- | --- |\n| a | b c |\n\nframed\n\n"
        "line  \n\\# not a heading \\*\tx\n\n[^1]: See the map."
    )
    assert found.page_type is PageType.DOCUMENT
    assert "We walked the northern route slowly (1) a link" in found.text
    assert (found.metadata.title, found.metadata.author) == ("Field report", "Ada Trapper")
    assert found.metadata.published == "2024-05-17T08:30:00Z"


XLSX = document_files.xlsx(
    {
        "Catch": """<row r="2"><c r="B2" t="s"><v>0</v></c><c r="D2" t="inlineStr"><is><t>weight</t></is></c></row>
          <row r="3"><c r="B3" s="1"><v>45429</v></c><c r="D3"><v>0.30000000000000004</v></c></row>
          <row r="9"><c r="B9" s="2"><v>45429.354166667</v></c><c r="D9" t="b"><v>1</v></c></row>""",
        "Empty": "",
    },
    strings="<si><r><t>d</t></r><r><t>ate</t></r><rPh><t>x</t></rPh></si>",
    styles='<numFmts><numFmt numFmtId="170" formatCode="yyyy&quot;-&quot;mm hh:mm"/></numFmts>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/></cellXfs>',
)


def test_xlsx() -> None:
    found = document(XLSX)
    assert found.markdown == (
        "## Catch\n\n| date | weight |\n| --- | --- |\n| 2024-05-17 | 0.3 |\n| 2024-05-17 08:30:00 | TRUE |"
    )
    assert found.metadata.title == "Field report"


def test_a_sheet_with_a_cell_far_away_stays_small() -> None:
    rows = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    assert (
        document(document_files.xlsx({"S": rows})).markdown
        == "## S\n\n| 1 |  |\n| --- | --- |\n|  | 2 |"
    )


def test_pptx() -> None:
    grid = "<p:graphicFrame><a:tbl><a:tr><a:tc><a:p><a:r><a:t>x</a:t></a:r></a:p></a:tc></a:tr></a:tbl></p:graphicFrame>"
    slides = [
        document_files.shape("bullet", "body")
        + document_files.shape("nested", "body", 1)
        + document_files.shape("Slide one", "title"),
        document_files.shape("plain box") + document_files.shape("7", "sldNum") + grid,
    ]
    found = document(document_files.pptx(slides, notes="remember"), page_markers=True)
    assert found.markdown == (
        "<!-- page 1 -->\n\n## Slide one\n\n- bullet\n    - nested\n\nNotes: remember\n\n"
        "<!-- page 2 -->\n\nplain box\n\n| x |\n| --- |"
    )
    assert found.metadata.pages == 2


def test_max_pages_of_a_presentation() -> None:
    found = document(
        document_files.pptx([document_files.shape(str(n)) for n in range(5)]),
        limits=Limits(pages=2),
    )
    assert found.text == "0\n\n1"
    assert found.warning == "Only the first 2 of 5 slides were read."


def test_odt() -> None:
    found = document(
        document_files.opendocument(
            """<text:h text:outline-level="2">Title</text:h>
            <text:p>Some<text:s text:c="2"/><text:span text:style-name="B">bold</text:span><text:tab/>
            <text:a xlink:href="https://example.org/">here</text:a><text:note>no</text:note></text:p>
            <text:list text:style-name="N"><text:list-item><text:p>one</text:p><text:list text:style-name="U">
            <text:list-item><text:p>inner</text:p></text:list-item></text:list></text:list-item></text:list>
            <table:table><table:table-row><table:table-cell table:number-columns-repeated="2"><text:p>a</text:p>
            </table:table-cell></table:table-row></table:table>"""
        )
    )
    lines = [" ".join(line.split()) for line in found.markdown.splitlines() if line.strip()]
    assert lines == [
        "## Title",
        "Some **bold**",
        "[here](https://example.org/)",
        "1. one",
        "- inner",
        "| a | a |",
        "| --- | --- |",
    ]


def test_ods_and_odp() -> None:
    sheet = document_files.opendocument(
        """<table:table table:name="S"><table:table-row><table:table-cell><text:p>1</text:p></table:table-cell>
        <table:table-cell table:number-columns-repeated="16000"/></table:table-row></table:table>""",
        "spreadsheet",
    )
    assert document(sheet).markdown == "## S\n\n| 1 |\n| --- |"
    slides = document_files.opendocument(
        "<draw:page><draw:frame><draw:text-box><text:p>hello</text:p></draw:text-box></draw:frame></draw:page>",
        "presentation",
    )
    assert document(slides, page_markers=True).markdown == "<!-- page 1 -->\n\nhello"


def test_epub() -> None:
    found = document(
        document_files.epub(["<h1>One</h1><p>Text <b>bold</b></p>", "<h1>Two</h1><ul><li>x</ul>"])
    )
    assert found.markdown == "# One\n\nText **bold**\n\n# Two\n\n- x"
    assert (found.metadata.title, found.metadata.author, found.metadata.language) == (
        "A Book",
        "Ann Author",
        "en",
    )


RTF = rb"""{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title The report}{\author Bob}}
\pard\outlinelevel0 Heading\par\pard Caf\'e9 \u8364?, \u-10179?x \b bold\b0  \{brace\}\line next{\*\generator X;}\par
{\listtext\bullet}item\par\trowd a\cell b\cell\row\trowd c\cell d\cell\row\pard end\par}"""


def test_rtf() -> None:
    found = document(RTF)
    assert found.markdown == (
        "# Heading\n\nCafé €, \ufffdx **bold** {brace}  \nnext\n\n- item\n\n| a | b |\n| --- | --- |\n| c | d |\n\nend"
    )
    assert (found.metadata.title, found.metadata.author) == ("The report", "Bob")


WORDS = "The quick brown fox jumps over the lazy dog and then it goes"


def page(number: int) -> list[document_files.Text]:
    lines: list[document_files.Text] = [
        (72, 800, 9, "Annual report"),
        (72, 740, 24, f"Chapter {number}"),
    ]
    lines += [(72, 700 - 14 * n, 11, WORDS) for n in range(3)]
    lines += [
        (72, 658, 11, "a line that ends it. Hyphen-"),
        (72, 644, 11, "ated word."),
        (72, 600, -16, "Section"),
    ]
    for n, row in enumerate([("name", "count"), ("fox", "3"), ("marten", "5")]):
        lines += [(72, 560 - 16 * n, 11, row[0]), (300, 560 - 16 * n, 11, row[1])]
    return [*lines, (290, 40, 9, f"Page {number}")]


def test_pdf() -> None:
    found = document(
        document_files.pdf([page(n) for n in range(1, 6)], title="Foxes"), page_markers=True
    )
    first, second = (
        found.markdown.split("<!-- page 2 -->")[0],
        found.markdown.split("<!-- page 2 -->")[1],
    )
    assert first == (
        f"<!-- page 1 -->\n\n# Chapter 1\n\n{WORDS} {WORDS} {WORDS} a line that ends it. Hyphenated word.\n\n"
        "## Section\n\n| name | count |\n| --- | --- |\n| fox | 3 |\n| marten | 5 |\n\n"
    )
    assert "Annual report" not in second
    assert "Page 2" not in second
    assert (found.metadata.title, found.metadata.author, found.metadata.pages) == (
        "Foxes",
        "Bob",
        5,
    )
    assert found.metadata.published == "2024-05-17"


def test_max_pages_of_a_pdf() -> None:
    found = document(
        document_files.pdf([[(72, 700, 11, f"page {n}")] for n in range(5)]), limits=Limits(pages=2)
    )
    assert (found.text, found.metadata.pages) == ("page 0\n\npage 1", 5)
    assert found.warning == "Only the first 2 of 5 pages were read."


def test_a_pdf_of_a_thousand_pages() -> None:
    found = document(document_files.pdf([page(n) for n in range(1000)]))
    assert found.metadata.pages == 1000
    assert found.text.count("Chapter") == 1000


def test_a_scanned_pdf_is_said_to_be_one() -> None:
    found = document(document_files.pdf([[]], image=True))
    assert (found.text, found.warning) == ("", "The PDF has no text layer: its pages are images.")
    assert document(document_files.pdf([[]])).warning == "The PDF has no text."


def test_an_encrypted_pdf_says_so() -> None:
    code, message = failure(document_files.pdf([page(1)], password="secret"))
    assert code is ExitCode.EXTRACTION_FAILED
    assert "needs a password" in message


@pytest.mark.parametrize(
    ("body", "content_type", "reason"),
    [
        (b"%PDF-1.4 nothing more", None, "the PDF is damaged"),
        (b"PK\x03\x04 broken", document_files.DOCX_TYPE, "the archive is damaged"),
        (document_files.docx("<w:p>"), None, "the XML is damaged"),
        (
            document_files.zipped(
                {"word/document.xml": "<!DOCTYPE x [<!ENTITY a 'aa'>]><x>&a;</x>"}
            ),
            None,
            "declares entities",
        ),
        (
            document_files.opendocument("", manifest="<m><encryption-data/></m>"),
            None,
            "the file is encrypted",
        ),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            None,
            "the file is encrypted",
        ),
        (b"{\\rtf" + b"{" * 5000, None, "nested too deeply"),
        (document_files.docx("<w:sdt>" * 5000 + "</w:sdt>" * 5000), None, "nested too deeply"),
        (document_files.epub([]).replace(b"OPS/book.opf", b"OPS/gone.opf"), None, "the archive"),
    ],
)
def test_a_bad_file_fails_with_its_reason(
    body: bytes, content_type: str | None, reason: str
) -> None:
    code, message = failure(body, content_type)
    assert code is ExitCode.EXTRACTION_FAILED
    assert reason in message


def test_a_zip_bomb_is_too_large() -> None:
    bomb = document_files.docx(paragraph("x" * 30_000_000))
    assert len(bomb) < 100_000
    code, _ = failure(bomb, limits=Limits(unpacked_bytes=10_000_000))
    assert code is ExitCode.DECOMPRESSED_TOO_LARGE


@pytest.mark.parametrize(
    "body", [b"\x00\x01\x02\x03" * 100, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)]
)
def test_what_has_no_text_is_unsupported(body: bytes) -> None:
    assert failure(body)[0] is ExitCode.UNSUPPORTED_TYPE


@pytest.mark.parametrize("body", [b"", b" \n ", b"\x00" * 2000])
def test_an_empty_file_is_said_to_be_empty(body: bytes) -> None:
    found = document(body, "application/pdf")
    assert (found.text, found.warning) == ("", "The file is empty.")


def test_csv() -> None:
    found = document(
        'name;größe\r\nfox;"a|b\nc"\r\n'.encode("cp1252"), "text/csv; charset=windows-1252"
    )
    assert found.markdown == "| name | größe |\n| --- | --- |\n| fox | a\\|b c |"
    assert document(b"a\tb\n1\t2", None, "https://x.example/t.tsv").text == "a\tb\n1\t2"


def test_json() -> None:
    found = document(b'{"b": 1, "a": ["\xc3\xa9"]}', "application/json")
    assert found.markdown == '```json\n{\n  "b": 1,\n  "a": [\n    "é"\n  ]\n}\n```'
    assert document(b'{"a": 1}\n{"a": 2}', "application/x-ndjson").text == '{"a": 1}\n{"a": 2}'
    assert document(b"[" * 5000, "application/json").text == "[" * 5000


def test_xml_and_markdown_and_text() -> None:
    feed = b"<rss><channel><title>News</title><item><title>One</title><description>First</description></item></channel></rss>"
    found = document(feed, "application/rss+xml")
    assert (found.metadata.title, found.text) == ("News", "News\n\nOne\n\nFirst")
    marked = document(b"# Title\n\n* a\n", "text/markdown")
    assert (marked.metadata.title, marked.markdown) == ("Title", "# Title\n\n* a")
    plain = document("Grüße\n\n1. *not* a list".encode("utf-16"), "text/plain")
    assert plain.markdown == "Grüße\n\n1\\. \\*not\\* a list"


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"tEXt", b"Title\x00A fox")
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (png(640, 480), "PNG"),
        (b"GIF89a" + struct.pack("<HH", 640, 480), "GIF"),
        (b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 480, 640), "JPEG"),
        (
            b"RIFF\x00\x00\x00\x00WEBPVP8X"
            + bytes(8)
            + (639).to_bytes(3, "little")
            + (479).to_bytes(3, "little"),
            "WebP",
        ),
        (b'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="480">', "SVG"),
    ],
)
def test_images_give_their_size(body: bytes, name: str) -> None:
    declared = document(body).metadata.declared
    assert (declared["imageFormat"], declared["imageWidth"], declared["imageHeight"]) == (
        name,
        "640",
        "480",
    )


def test_a_damaged_image_is_unsupported() -> None:
    assert failure(b"\x89PNG\r\n\x1a\n")[0] is ExitCode.UNSUPPORTED_TYPE
    assert failure(b"\xff\xd8\xff")[0] is ExitCode.UNSUPPORTED_TYPE


@pytest.mark.parametrize(
    ("body", "content_type", "url", "kind"),
    [
        (DOCX, "application/zip", "", Kind.DOCX),
        (XLSX, None, "", Kind.XLSX),
        (b"%PDF-1.7", "text/html", "", Kind.PDF),
        (b"\n\n%PDF-1.7", None, "", Kind.PDF),
        (b"<!doctype html><p>", "text/plain", "", Kind.HTML),
        (b"<!doctype html><p>", None, "", Kind.HTML),
        (b"<p>hello", "text/html; charset=utf-8", "https://x.example/a.pdf", Kind.HTML),
        (b"<?xml version='1.0'?><html>", None, "", Kind.HTML),
        (b"<?xml version='1.0'?><rss>", None, "", Kind.XML),
        (b"a,b", "application/octet-stream", "https://x.example/a.csv?x=1", Kind.CSV),
        (b"# Hi", "text/plain", "https://x.example/README.md", Kind.MARKDOWN),
        (b'{"a":1}', "application/ld+json", "", Kind.JSON),
        (b'{"a":1}', None, "", Kind.JSON),
        (b"just words", None, "", Kind.TEXT),
        (b"BMW is a car maker", None, "", Kind.TEXT),
        (b"\x00\x01\x02\xff" * 300, "application/pdf", "", Kind.PDF),
        (b"\x00\x01\x02\xff" * 300, None, "", Kind.UNKNOWN),
        (b"", "text/html", "", Kind.EMPTY),
    ],
)
def test_kinds(body: bytes, content_type: str | None, url: str, kind: Kind) -> None:
    assert kind_of(body, content_type, url) is kind


SEEDS = {
    Kind.PDF: document_files.pdf([page(1)]),
    Kind.DOCX: DOCX,
    Kind.XLSX: XLSX,
    Kind.PPTX: document_files.pptx([document_files.shape("x", "title")]),
    Kind.ODT: document_files.opendocument("<text:p>x</text:p>"),
    Kind.EPUB: document_files.epub(["<p>x"]),
    Kind.RTF: RTF,
}


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(SEEDS)), st.integers(0, 2**32), st.integers(1, 40))
def test_damaged_files_are_read_or_refused(kind: Kind, seed: int, edits: int) -> None:
    body = bytearray(SEEDS[kind])
    dice = random.Random(seed)
    for _ in range(edits):
        place = dice.randrange(len(body))
        if dice.random() < 0.3:
            del body[place : place + dice.randrange(20)]
        else:
            body[place] = dice.randrange(256)
    with suppress(UnreadableFile):
        assert isinstance(read(bytes(body), kind, Limits(pages=20)), FileContent)


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from([None, "text/csv", "application/json", "text/xml", "image/png"]),
)
def test_any_bytes_give_a_document_or_visit_failed(body: bytes, content_type: str | None) -> None:
    kind = kind_of(body, content_type, "")
    if kind in SEEDS or kind in (Kind.HTML, Kind.LEGACY, Kind.ODS, Kind.ODP):
        return
    with suppress(VisitFailed):
        assert isinstance(document(body, content_type), Document)
