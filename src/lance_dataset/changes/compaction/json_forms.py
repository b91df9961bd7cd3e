"""JSON forms of plans, tasks and results, as the reference writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from lance_dataset.errors import InvalidInputError
from lance_dataset.records.fragment import FragmentMetadata
from lance_dataset.table.fragment import Fragment

__all__ = [
    "compact_json",
    "fragments_json",
    "fragments_of",
    "list_of",
    "loaded",
    "not_loaded",
    "version_of",
]


def compact_json(value: Any) -> str:
    """Encode a value as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"))


def not_loaded(what: str, reason: str) -> InvalidInputError:
    """Return the error for text that cannot be parsed."""
    return InvalidInputError(f"Could not load {what} due to error: {reason}")


def loaded(text: object, what: str, *needed: str) -> Mapping[str, Any]:
    """Parse a JSON object.

    Raises
    ------
    InvalidInputError
        The text is not a JSON object with the needed fields.
    TypeError
        `text` is not text.
    """
    if not isinstance(text, str | bytes | bytearray):
        raise TypeError(f"JSON of a {what} must be text, not {type(text).__name__}")
    try:
        value = json.loads(text)
    except ValueError as error:
        raise not_loaded(what, str(error)) from error
    if not isinstance(value, Mapping):
        raise not_loaded(what, f"expected an object, got {type(value).__name__}")
    missing = next((name for name in needed if name not in value), None)
    if missing is not None:
        raise not_loaded(what, f"missing field `{missing}`")
    return value


def version_of(value: Mapping[str, Any], what: str) -> int:
    """Return the version number of a JSON object."""
    version = value["read_version"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise not_loaded(what, f"'read_version' is {version!r}, which is not a version number")
    return version


def list_of(value: object, name: str, what: str) -> list[Any]:
    """Return a JSON value that must be a list."""
    if not isinstance(value, list):
        raise not_loaded(what, f"{name!r} is not a list")
    return value


def fragments_of(value: object, name: str, what: str) -> tuple[Fragment, ...]:
    """Return the fragments in a field of a JSON object."""
    if not isinstance(value, Mapping) or name not in value:
        raise not_loaded(what, f"missing field `{name}`")
    try:
        given = list_of(value[name], name, what)
        return tuple(FragmentMetadata.from_json(json.dumps(each)).to_fragment() for each in given)
    except (TypeError, ValueError) as error:
        raise not_loaded(what, str(error)) from error


def fragments_json(fragments: Iterable[Fragment]) -> list[dict[str, Any]]:
    """Return fragments as JSON values, without fields that are not set."""
    return [
        {name: value for name, value in FragmentMetadata.from_fragment(each).to_json().items() if value or name == "id"}
        for each in fragments
    ]
