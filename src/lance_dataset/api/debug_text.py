"""Values as text with a line for each field, in the form that the reference has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Bare", "Record", "Wrapped", "debug_text", "optional"]

_INDENT = "    "
_ESCAPES = {0: r"\0", 9: r"\t", 10: r"\n", 13: r"\r", 34: r"\"", 92: r"\\"}


@dataclass(frozen=True)
class Record:
    """A name, and fields with names."""

    name: str
    fields: Sequence[tuple[str, Any]]


@dataclass(frozen=True)
class Wrapped:
    """A name, and values without names."""

    name: str
    values: Sequence[Any]


@dataclass(frozen=True)
class Bare:
    """Text that is shown as it is."""

    text: str


def optional(value: Any) -> Wrapped | None:
    """Wrap a value that may be missing."""
    return None if value is None else Wrapped("Some", [value])


def debug_text(value: Any) -> str:
    """Return the text of a value: of records and their parts, mappings, sequences, texts, bytes, numbers."""
    return "\n".join(_lines(value))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Record):
        yield from _block(f"{value.name} {{", value.fields, "}")
    elif isinstance(value, Wrapped):
        yield from _block(f"{value.name}(", [("", each) for each in value.values], ")")
    elif isinstance(value, Mapping):
        yield from _block("{", [(_plain(key), each) for key, each in value.items()], "}")
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        yield from _block("[", [("", each) for each in value], "]")
    else:
        yield _plain(value)


def _block(opening: str, items: Sequence[tuple[str, Any]], closing: str) -> Iterator[str]:
    if not items:
        yield opening + closing
        return
    yield opening
    for name, item in items:
        lines = list(_lines(item))
        lines[0] = f"{name}: {lines[0]}" if name else lines[0]
        lines[-1] += ","
        yield from (_INDENT + line for line in lines)
    yield closing


def _plain(value: Any) -> str:
    if isinstance(value, Bare):
        return value.text
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes | bytearray | memoryview):
        shown = (_ESCAPES.get(each) or (chr(each) if 32 <= each < 127 else f"\\x{each:02x}") for each in bytes(value))
        return f'b"{"".join(shown)}"'
    return str(value)
