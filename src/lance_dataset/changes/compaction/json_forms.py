"""JSON forms of plans, tasks and results, as the reference writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from lance_dataset.errors import InvalidInputError
from lance_dataset.fragment_metadata import FragmentMetadata
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
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"))


def not_loaded(what: str, reason: str) -> InvalidInputError:
    """The error for a text that is not what it should be."""
    return InvalidInputError(f"Could not load {what} due to error: {reason}")


def loaded(text: object, what: str, *needed: str) -> Mapping[str, Any]:
    """The object of a JSON text that has the fields that are needed; InvalidInputError otherwise."""
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
    """The version number of an object."""
    version = value["read_version"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise not_loaded(what, f"'read_version' is {version!r}, which is no version number")
    return version


def list_of(value: object, name: str, what: str) -> list[Any]:
    """A value that has to be a list."""
    if not isinstance(value, list):
        raise not_loaded(what, f"{name!r} is no list")
    return value


def fragments_of(value: object, name: str, what: str) -> tuple[Fragment, ...]:
    """The fragments in a field of an object."""
    if not isinstance(value, Mapping) or name not in value:
        raise not_loaded(what, f"missing field `{name}`")
    try:
        given = list_of(value[name], name, what)
        return tuple(FragmentMetadata.from_json(json.dumps(each)).to_fragment() for each in given)
    except (TypeError, ValueError) as error:
        raise not_loaded(what, str(error)) from error


def fragments_json(fragments: Iterable[Fragment]) -> list[dict[str, Any]]:
    """Fragments as JSON values, without what is not set."""
    return [
        {name: value for name, value in FragmentMetadata.from_fragment(each).to_json().items() if value or name == "id"}
        for each in fragments
    ]
