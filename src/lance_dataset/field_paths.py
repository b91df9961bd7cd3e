"""Fields of a schema by the path that users write: ``a``, ``struct.child``, ``list.item``; odd names in back-ticks."""

from __future__ import annotations

import re

from lance_dataset.errors import FieldNotFoundError, InvalidInputError
from lance_dataset.schema import Field, Schema

__all__ = ["find_field", "find_path"]

#: A segment of a path of fields: a name, or one in back-ticks, which are doubled inside.
_SEGMENT = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def find_field(schema: Schema, path: str) -> Field:
    """The field of a path; see `find_path`."""
    return find_path(schema, path)[-1]


def find_path(schema: Schema, path: str) -> tuple[Field, ...]:
    """The fields from the top level down to that of a path, list items and map entries included.

    Raises
    ------
    FieldNotFoundError
        There is no such field.
    InvalidInputError
        The path is malformed.
    TypeError
        It is not text.
    """
    if not isinstance(path, str):
        raise TypeError(f"fields are named by text, not by {type(path).__name__}")
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
