"""What the three Office Open XML formats have in common: names and document properties."""

from xml.etree import ElementTree as ET

from trapline.extract.files.package import ZipPackage, local_name

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_PROPERTIES = {
    "title": "title",
    "creator": "author",
    "description": "description",
    "subject": "subject",
    "keywords": "keywords",
    "language": "language",
    "created": "published",
    "date": "published",
    "modified": "modified",
}


def core_properties(package: ZipPackage, name: str = "docProps/core.xml") -> dict[str, str]:
    """Title, author and so on, as the file's properties give them."""
    root = package.optional_xml(name)
    return dublin_core(root) if root is not None else {}


def dublin_core(root: ET.Element) -> dict[str, str]:
    """Facts from Dublin Core elements, wherever they are under a root."""
    found: dict[str, str] = {}
    for element in root.iter():
        name = _PROPERTIES.get(local_name(element))
        text = " ".join((element.text or "").split())
        if name and text:
            found.setdefault(name, text)
    return found


def is_on(element: ET.Element | None, attribute: str = W + "val") -> bool:
    """Whether a toggle such as <w:b/> is there and not switched off."""
    return element is not None and element.get(attribute, "1").lower() not in (
        "0",
        "false",
        "off",
        "none",
    )
