"""Writers of small files for the tests: office formats as zip archives, PDF from bare objects."""

import hashlib
import zipfile
from collections.abc import Mapping
from io import BytesIO

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
CORE = """<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"><dc:title>Field report</dc:title>
 <dc:creator>Ada Trapper</dc:creator><dcterms:created>2024-05-17T08:30:00Z</dcterms:created></cp:coreProperties>"""
DOCX_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def relations(targets: Mapping[str, str]) -> str:
    rows = "".join(
        f'<Relationship Id="{key}" Target="{target}" TargetMode="{_mode(target)}"/>'
        for key, target in targets.items()
    )
    names = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
    return f"<Relationships {names}>{rows}</Relationships>"


def _mode(target: str) -> str:
    return "External" if "://" in target else "Internal"


def docx(body: str, **members: str) -> bytes:
    parts = {f"word/{name}.xml": content for name, content in members.items()}
    return zipped(
        {
            "word/document.xml": f"<w:document {W} {R}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations(
                {"link": "https://example.org/x?a=1&amp;b=2"}
            ),
            "docProps/core.xml": CORE,
            **parts,
        }
    )


def xlsx(sheets: Mapping[str, str], strings: str = "", styles: str = "") -> bytes:
    listed = "".join(f'<sheet name="{name}" r:id="r{n}"/>' for n, name in enumerate(sheets))
    return zipped(
        {
            "xl/workbook.xml": f"<workbook {S} {R}><sheets>{listed}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations(
                {f"r{n}": f"worksheets/s{n}.xml" for n in range(len(sheets))}
            ),
            "xl/sharedStrings.xml": f"<sst {S}>{strings}</sst>",
            "xl/styles.xml": f"<styleSheet {S}>{styles}</styleSheet>",
            "docProps/core.xml": CORE,
            **{
                f"xl/worksheets/s{n}.xml": f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>"
                for n, rows in enumerate(sheets.values())
            },
        }
    )


def pptx(slides: list[str], notes: str = "") -> bytes:
    listed = "".join(f'<p:sldId r:id="s{n}"/>' for n in range(len(slides)))
    members = {
        "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            {f"s{n}": f"slides/slide{n}.xml" for n in range(len(slides))}
        ),
    }
    for n, shapes in enumerate(slides):
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        members[f"ppt/slides/slide{n}.xml"] = f"<p:sld {P} {A} {R}>{tree}</p:sld>"
    if notes:
        members["ppt/slides/_rels/slide0.xml.rels"] = relations({"n": "../notesSlides/notes0.xml"})
        tree = f"<p:cSld><p:spTree>{shape(notes, 'body')}</p:spTree></p:cSld>"
        members["ppt/notesSlides/notes0.xml"] = f"<p:notes {P} {A}>{tree}</p:notes>"
    return zipped(members)


def shape(text: str, role: str = "", level: int = 0) -> str:
    place = f'<p:nvSpPr><p:nvPr><p:ph type="{role}"/></p:nvPr></p:nvSpPr>' if role else ""
    line = f'<a:p><a:pPr lvl="{level}"/><a:r><a:t>{text}</a:t></a:r></a:p>'
    return f"<p:sp>{place}<p:txBody>{line}</p:txBody></p:sp>"


def opendocument(body: str, kind: str = "text", manifest: str = "<manifest/>") -> bytes:
    names = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for short, name in {
            "office": "office", "text": "text", "table": "table", "draw": "drawing", "style": "style",
            "fo": "xsl-fo-compatible",
        }.items()
    )  # fmt: skip
    styles = """<office:automatic-styles><style:style style:name="B"><style:text-properties fo:font-weight="bold"/>
      </style:style><text:list-style style:name="N"><text:list-level-style-number/></text:list-style></office:automatic-styles>"""
    content = f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": manifest,
            "meta.xml": CORE,
            "content.xml": (
                f'<office:document-content {names} xmlns:xlink="http://www.w3.org/1999/xlink">'
                f"{styles}{content}</office:document-content>"
            ),
        }
    )


def epub(chapters: list[str]) -> bytes:
    items = "".join(
        f'<item id="c{n}" href="text/c%20{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    dc = "<dc:title>A Book</dc:title><dc:creator>Ann Author</dc:creator><dc:language>en</dc:language>"
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
            "OPS/book.opf": (
                '<package xmlns:dc="http://purl.org/dc/elements/1.1/">'
                f"<metadata>{dc}</metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
            ),
            **{
                f"OPS/text/c {n}.xhtml": f"<html><body>{text}</body></html>"
                for n, text in enumerate(chapters)
            },
        }
    )


Text = tuple[float, float, float, str]
"""Left, bottom, size and text of one piece of a page; a size below 0 means bold."""


def pdf(
    pages: list[list[Text]], *, title: str = "", password: str = "", image: bool = False
) -> bytes:
    """A PDF of Helvetica text, encrypted (RC4, 40 bits) if there is a password."""
    objects: list[bytes] = [b"<</Type/Catalog/Pages 2 0 R>>", b""]
    fonts = b"<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>/F2<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold>>>>"
    key = _key(password) if password else b""
    kids = []
    for texts in pages:
        content = b"".join(_drawn(*text) for text in texts)
        if image:
            content += b"q 500 0 0 700 50 50 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q"
        kids.append(len(objects) + 1)
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font%s>>/Contents %d 0 R>>"
            % (fonts, len(objects) + 2)
        )
        content = _rc4(_object_key(key, len(objects) + 1), content) if key else content
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (
        len(kids),
        b" ".join(b"%d 0 R" % kid for kid in kids),
    )
    trailer = b"/Root 1 0 R/ID[<00><00>]"
    if title:
        objects.append(
            b"<</Title(%s)/Author(Bob)/CreationDate(D:20240517083000Z)>>" % title.encode()
        )
        trailer += b"/Info %d 0 R" % len(objects)
    if password:
        objects.append(_encryption(password))
        trailer += b"/Encrypt %d 0 R" % len(objects)
    return _assembled(objects, trailer)


def _drawn(left: float, bottom: float, size: float, text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("cp1252")
    return b"BT /F%d %g Tf %g %g Td (%s) Tj ET\n" % (
        2 if size < 0 else 1,
        abs(size),
        left,
        bottom,
        escaped,
    )


def _assembled(objects: list[bytes], trailer: bytes) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer<</Size %d%s>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, trailer, start)
    return bytes(out)


def _rc4(key: bytes, content: bytes) -> bytes:
    box = list(range(256))
    j = 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    out = bytearray()
    i = j = 0
    for byte in content:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)


def _owner(password: str) -> bytes:
    padded = (password.encode() + PADDING)[:32]
    return _rc4(hashlib.md5(padded, usedforsecurity=False).digest()[:5], padded)


def _key(password: str) -> bytes:
    padded = (password.encode() + PADDING)[:32]
    permissions = (-4).to_bytes(4, "little", signed=True)
    return hashlib.md5(
        padded + _owner(password) + permissions + b"\x00", usedforsecurity=False
    ).digest()[:5]


def _object_key(key: bytes, number: int) -> bytes:
    seed = key + number.to_bytes(3, "little") + b"\x00\x00"
    return hashlib.md5(seed, usedforsecurity=False).digest()[:10]


def _encryption(password: str) -> bytes:
    user = _rc4(_key(password), PADDING)
    return b"<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>" % (
        _owner(password).hex().encode(),
        user.hex().encode(),
    )
