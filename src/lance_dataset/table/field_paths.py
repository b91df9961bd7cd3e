"""Fields of a schema by path, such as ``a``, ``struct.child`` or ``list.item``. Unusual names are in backticks."""

from __future__ import annotations

import re

from lance_dataset.errors import FieldNotFoundError, InvalidInputError
from lance_dataset.types.schema import Field, Schema

__all__ = ["find_field", "find_path"]

#: A segment of a field path: a name, or a name in backticks, which are doubled inside.
_SEGMENT = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def find_field(schema: Schema, path: str) -> Field:
    """Return the field at a path, see `find_path`."""
    return find_path(schema, path)[-1]


def find_path(schema: Schema, path: str) -> tuple[Field, ...]:
    """Return the fields from the top level down to a path, including list items and map entries.

    Raises
    ------
    FieldNotFoundError
        The field does not exist.
    InvalidInputError
        The path is malformed.
    TypeError
        The path is not a string.
    """
    if not isinstance(path, str):
        raise TypeError(f"a field path must be a string, not {type(path).__name__}")
    names = _segments(path)
    if not names:
        raise FieldNotFoundError("the path of a field must not be empty")
    try:
        return schema.descend(names)
    except FieldNotFoundError as error:
        raise FieldNotFoundError(f"Field {path!r} not found: {error}") from error


def _segments(path: str) -> list[str]:
    names, position = [], 0
    while position < len(path):
        match = _SEGMENT.match(path, position)
        if match is None or path[match.end() : match.end() + 1] not in ("", ".") or path[match.end() :] == ".":
            raise InvalidInputError(f"field path {path!r} is malformed at character {position}; write it as 'a.`b.c`'")
        quoted, plain = match.groups()
        names.append(quoted.replace("``", "`") if quoted else plain)
        position = match.end() + 1
    return names
