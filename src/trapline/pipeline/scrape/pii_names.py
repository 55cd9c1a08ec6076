"""Names of people and places in a text, found by the language model: the entities without a form."""

from typing import Any, Final

from trapline.errors import TraplineError, Unavailable
from trapline.extract.redaction import WITHOUT_FORM, Redaction
from trapline.pipeline.llm import LanguageModel, ModelFailed, Usage
from trapline.pipeline.options import LlmRequest

_MAX_PIECES: Final = 20
_OVERLAP: Final = 200
_REQUEST: Final = LlmRequest(
    "json",
    "List every name of a person in `people`, and every postal address or place that tells where a"
    " person lives or works in `places`, each exactly as the page spells it.",
    {
        "type": "object",
        "required": ["people", "places"],
        "properties": {
            "people": {"type": "array", "items": {"type": "string"}},
            "places": {"type": "array", "items": {"type": "string"}},
        },
    },
)


class RedactionFailed(TraplineError):
    """The names in a text could not be found, so the text must not be shown."""

    http_status = 500


async def add_names(
    model: LanguageModel, redaction: Redaction, text: str
) -> tuple[Redaction, Usage]:
    """Return the redaction with the names of a text; RedactionFailed where the model fails."""
    if not model.available or not redaction.entities & WITHOUT_FORM or not text:
        return redaction, Usage()
    names: list[Any] = []
    usage = Usage()
    for _ in range(_MAX_PIECES):
        piece, truncated = model.truncate(text)
        try:
            values, used = await model.ask(_REQUEST, piece)
        except (ModelFailed, Unavailable) as error:
            raise RedactionFailed(
                f"The personal data of the page could not be redacted: {error.message}"
            ) from None
        usage += used
        names += [(name, "PERSON") for name in values["people"]]
        names += [(name, "LOCATION") for name in values["places"]]
        if not truncated:
            return redaction.with_names(names), usage
        # The pieces overlap, so that a name at the cut is whole in one of them.
        text = text[max(len(piece) - _OVERLAP, 1) :]
    raise RedactionFailed("The page is too long for its personal data to be redacted.")
