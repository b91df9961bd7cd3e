"""Errors as the page shows them: a message, and the place in the text that caused it."""

from __future__ import annotations

import re
from typing import Any

from lance_dataset.errors import FieldNotFoundError, FilterError

__all__ = ["problem"]

_SQL_PLACE = re.compile(r"at Line: (\d+), Column: (\d+)")
_UNKNOWN_NAME = re.compile(r"No field named ['\"`]?([^'\"`\s;.]+)")


def problem(error: Exception, text: str | None) -> dict[str, Any]:
    """Return the facts of an error for JSON.

    Parameters
    ----------
    error
        What was raised.
    text
        The filter or query that the user wrote; None if the request had none.
    """
    message = str(error)
    position = _position(error, message, text)
    if isinstance(error, FilterError) and position is not None:
        message = message.partition("\n")[0]  # the page marks the place itself
    return {"type": type(error).__name__, "message": message, "position": position}


def _position(error: Exception, message: str, text: str | None) -> int | None:
    if text is None:
        return None
    if isinstance(error, FilterError) and error.position is not None:
        return min(error.position, len(text))
    place = _SQL_PLACE.search(message)
    if place is not None:
        return _offset(text, int(place[1]), int(place[2]))
    unknown = _UNKNOWN_NAME.search(message)
    if unknown is not None or isinstance(error, FieldNotFoundError):
        found = -1 if unknown is None else text.find(unknown[1])
        return None if found < 0 else found
    return None


def _offset(text: str, line: int, column: int) -> int | None:
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return len(text) if line == 0 else None
    return sum(len(each) + 1 for each in lines[: line - 1]) + max(column - 1, 0)
