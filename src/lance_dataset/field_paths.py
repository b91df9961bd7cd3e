"""Fields of a schema by the path that users write: ``a``, ``struct.child``, ``list.item``; odd names in back-ticks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, nearest_name_hint
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
    nodes, found = schema.fields, []
    for name in _segments(path):
        node = next((node for node in nodes if node.name == name), None)
        if node is None:
            hint = nearest_name_hint(path, _paths(schema.fields))
            raise FieldNotFoundError(f"Field {path!r} not found: it does not exist in the dataset{hint}")
        found.append(node)
        nodes = node.children
    if not found:
        raise FieldNotFoundError("the path of a field must not be empty")
    return tuple(found)


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


def _paths(nodes: Sequence[Field], above: str = "") -> list[str]:
    found = []
    for node in nodes:
        path = f"{above}{node.name}"
        found += [path, *_paths(node.children, f"{path}.")]
    return found
