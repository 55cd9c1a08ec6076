"""Settings for tests, by their variables' names in lower case and without `trapline_`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trapline.settings import Settings

_VARIABLES = {
    kind.variable(field): (group, field)
    for group, kind in Settings.groups().items()
    for field in kind.model_fields
}


def make_settings(**values: Any) -> Settings:
    """Return these settings, and the defaults of all others, whatever the environment says."""
    return Settings.load({_variable(name): value for name, value in values.items()})


def change_settings(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return the same settings with other values, which are not validated."""
    for name, value in values.items():
        group, field = _VARIABLES[_variable(name)]
        changed = getattr(settings, group).model_copy(update={field: value})
        settings = replace(settings, **{group: changed})
    return settings


def _variable(name: str) -> str:
    own = f"TRAPLINE_{name.upper()}"
    return own if own in _VARIABLES else name.upper()
