"""Where the links of a text lead: absolute, with their fragments, and only where one can go."""

from typing import Final

from trapline.extract.html.url_resolution import Resolver

_OTHER_SCHEMES: Final = ("mailto:", "tel:")
_LONGEST: Final = max(map(len, _OTHER_SCHEMES))


class LinkTargets:
    def __init__(self, resolver: Resolver) -> None:
        self.page = resolver.page
        self.references = resolver.references

    def __call__(self, reference: str) -> str | None:
        """The URL to write for a reference; None where a link would lead nowhere."""
        reference = reference.strip()
        if ":" in reference[:_LONGEST] and reference.lower().startswith(_OTHER_SCHEMES):
            return reference
        address, mark, fragment = reference.partition("#")
        url = self.references.absolute(address) if address else self.page
        if not url:
            return None
        return url + mark + fragment.replace(" ", "%20") if fragment else url
