"""Rows as text for people: aligned tables that fit the terminal, and records with one value a line."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

__all__ = ["records", "table", "terminal_width"]

#: Longer values are cut in tables; JSON and records have them in full.
_LONGEST_CELL = 80
#: Longest values in a table for a terminal, so that several columns fit.
_LONGEST_FITTED_CELL = 40
#: Rows that decide the widths of columns.
_MEASURED_ROWS = 1000
_GAP = "  "


def terminal_width() -> int | None:
    """Return the columns of the terminal; None for files and pipes, whose lines may have any length."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size().columns
    return None


def table(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    numeric: Sequence[bool] | None = None,
    width: int | None = None,
) -> Iterator[str]:
    """Yield the lines of a table. Rows are formatted as they come.

    Parameters
    ----------
    names
        Names of the columns.
    rows
        Values of each row.
    numeric
        True for columns that are aligned to the right.
    width
        Number of characters of the longest line. Columns that do not fit are left out, and named in the last line. None
        for any width.
    """
    longest = _LONGEST_CELL if width is None else min(_LONGEST_FITTED_CELL, width)
    given = iter(rows)
    first = [[_cell(value, longest) for value in row] for row in islice(given, _MEASURED_ROWS)]
    headers = [_cell(name, longest) for name in names]
    widths = [max(map(len, column)) for column in zip(headers, *first, strict=True)] if names else []
    shown = len(names) if width is None else _fitting(widths, width)
    aligned = _aligner(widths[:shown], numeric)
    later = ([_cell(value, longest) for value in row[:shown]] for row in given)
    yield aligned(headers)
    yield "-" * (sum(widths[:shown]) + len(_GAP) * (shown - 1))
    yield from map(aligned, chain(first, later))
    if shown < len(names):
        yield from _left_out(names, shown, width)


def records(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the lines of records: the number of the row, and one line for each value in full."""
    longest = max(map(len, names), default=0)
    for number, row in enumerate(rows):
        yield f"-- {number}"
        for name, value in zip(names, row, strict=True):
            yield f"{name:<{longest}}{_GAP}{_text(value)}"


def _text(value: Any) -> str:
    text = "null" if value is None else value if isinstance(value, str) else str(value)
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _cell(value: Any, longest: int) -> str:
    if isinstance(value, str | bytes | list | dict) and len(value) > longest:
        value = value[: longest + 1] if isinstance(value, str | bytes | list) else value
    text = _text(value)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _fitting(widths: Sequence[int], width: int) -> int:
    """Return how many columns fit, at least one."""
    used = -len(_GAP)
    for count, each in enumerate(widths):
        used += each + len(_GAP)
        if used > width:
            return max(count, 1)
    return len(widths)


def _aligner(widths: Sequence[int], numeric: Sequence[bool] | None) -> Callable[[Sequence[str]], str]:
    right = [False] * len(widths) if numeric is None else list(numeric)[: len(widths)]
    places = list(zip(widths, right, strict=True))

    def aligned(cells: Sequence[str]) -> str:
        parts = (
            cell.rjust(size) if to_right else cell.ljust(size)
            for cell, (size, to_right) in zip(cells, places, strict=False)
        )
        return _GAP.join(parts).rstrip()

    return aligned


def _left_out(names: Sequence[str], shown: int, width: int | None) -> Iterator[str]:
    others = ", ".join(names[shown:])
    text = f"({shown} of {len(names)} columns; --columns or --record show the others: "
    room = (width or _LONGEST_CELL) - 1
    for part in (f"{text}{others})",):
        while len(part) > room:
            at = part.rfind(" ", 0, room)
            at = room if at <= 0 else at
            yield part[:at]
            part = part[at:].lstrip()
        yield part
