"""Rows as text for people: aligned tables that fit the terminal, and records with one value a line."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.reports.cells import cell_texts, shown_text, texts_of

__all__ = ["batch_table", "records", "row_table", "terminal_width"]

#: Longer values are cut in tables; JSON and records have them in full.
_LONGEST_CELL = 80
#: Longest values in a table for a terminal, so that several columns fit.
_LONGEST_FITTED_CELL = 40
#: Values of tables of facts are not cut further than this.
_NARROWEST_CELL = 8
#: Rows that decide the widths of columns.
_MEASURED_ROWS = 1000
_GAP = "  "


def terminal_width() -> int | None:
    """Return the columns of the terminal; None for files and pipes, whose lines may have any length."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size().columns
    return None


def batch_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch], width: int | None) -> Iterator[str]:
    """Yield the lines of a table of rows, a batch at a time.

    Parameters
    ----------
    schema
        Schema of the batches.
    batches
        Rows. The first batch decides the widths of the columns.
    width
        Number of characters of the longest line. Columns that do not fit are left out, and named in the last line. None
        for any width.
    """
    longest = _LONGEST_CELL if width is None else min(_LONGEST_FITTED_CELL, width)
    given = iter(batches)
    first = next((batch for batch in given if batch.num_rows), None)
    measured = [] if first is None else [cell_texts(column[:_MEASURED_ROWS], longest) for column in first.columns]
    widths = _widths(schema.names, measured or [pa.array([], pa.string())] * len(schema), longest)
    shown = len(widths) if width is None else _fitting(widths, width)
    numeric = [_is_number(kind) for kind in schema.types]
    yield from _header(schema.names[:shown], widths[:shown], numeric, longest)
    for batch in chain([] if first is None else [first], given):
        cells = [cell_texts(column, longest) for column in batch.columns[:shown]]
        yield from _aligned(cells, widths[:shown], numeric)
    if shown < len(widths):
        yield from _left_out(schema.names, shown, width)


def row_table(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    numeric: Sequence[bool] | None = None,
    width: int | None = None,
) -> Iterator[str]:
    """Yield the lines of a table of Python values; numeric columns are aligned to the right.

    If the lines are longer than `width`, the values of the widest other columns are cut.
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    cells = [texts_of(column, _LONGEST_CELL) for column in columns]
    right = [False] * len(names) if numeric is None else list(numeric)
    widths = _widths(names, cells, _LONGEST_CELL)
    if width is not None:
        widths = _narrowed(names, widths, right, width)
        cells = [texts_of(column, longest) for column, longest in zip(columns, widths, strict=True)]
    yield from _header(names, widths, right, _LONGEST_CELL)
    yield from _aligned(cells, widths, right)


def _narrowed(names: Sequence[str], widths: Sequence[int], numeric: Sequence[bool], width: int) -> list[int]:
    """Make the widest columns of text narrower until a line fits; no column gets narrower than its header."""
    found = list(widths)
    least = [max(len(name), _NARROWEST_CELL) for name in names]
    while sum(found) + len(_GAP) * (len(found) - 1) > width:
        wide = [place for place, each in enumerate(found) if not numeric[place] and each > least[place]]
        if not wide:
            break
        found[max(wide, key=found.__getitem__)] -= 1
    return found


def records(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the lines of records: the number of the row, and one line for each value in full."""
    longest = max(map(len, names), default=0)
    for number, row in enumerate(rows):
        yield f"-- {number}"
        for name, value in zip(names, row, strict=True):
            yield f"{name:<{longest}}{_GAP}{shown_text(value)}"


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _widths(names: Sequence[str], cells: Sequence[pa.StringArray], longest: int) -> list[int]:
    headers = texts_of(names, longest).to_pylist()
    return [
        max(len(header), pc.max(pc.utf8_length(column)).as_py() or 0)
        for header, column in zip(headers, cells, strict=True)
    ]


def _fitting(widths: Sequence[int], width: int) -> int:
    """Return how many columns fit, at least one."""
    used = -len(_GAP)
    for count, each in enumerate(widths):
        used += each + len(_GAP)
        if used > width:
            return max(count, 1)
    return len(widths)


def _header(names: Sequence[str], widths: Sequence[int], numeric: Sequence[bool], longest: int) -> Iterator[str]:
    yield from _aligned([texts_of([name], longest) for name in names], widths, numeric)
    yield "-" * (sum(widths) + len(_GAP) * (len(widths) - 1))


def _aligned(cells: Sequence[pa.StringArray], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    if not cells:
        return [""]
    pads: dict[bool, Callable[..., pa.StringArray]] = {True: pc.utf8_lpad, False: pc.utf8_rpad}
    padded = [
        pads[to_right](column, width=width, padding=" ")
        for column, width, to_right in zip(cells, widths, numeric, strict=False)
    ]
    lines = pc.utf8_rtrim(pc.binary_join_element_wise(*padded, _GAP), characters=" ")
    found: list[str] = lines.to_pylist()
    return found


def _left_out(names: Sequence[str], shown: int, width: int | None) -> Iterator[str]:
    others = ", ".join(names[shown:])
    text = f"({shown} of {len(names)} columns; --columns or --record show the others: {others})"
    yield from textwrap.wrap(text, (width or _LONGEST_CELL) - 1, break_on_hyphens=False)
