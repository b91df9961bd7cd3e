"""Bars of the sizes of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from lance_dataset.file.sizes import size_text
from lance_dataset.plots import axes_of_size, check_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_columns"]

_MOST_COLUMNS = 40


class _Column(Protocol):
    """A column with the facts that are drawn."""

    @property
    def column(self) -> str: ...

    @property
    def encodings(self) -> tuple[tuple[str, int], ...]: ...

    @property
    def stored_bytes(self) -> int: ...

    @property
    def plain_bytes(self) -> int | None: ...


def plot_columns(columns: Sequence[_Column], axes: object) -> Axes:
    """Draw the stored sizes of columns beside their plain sizes, the largest on top."""
    given = check_axes(axes)
    ordered = sorted(columns, key=lambda column: -column.stored_bytes)
    shown = ordered[:_MOST_COLUMNS]
    drawn = axes_of_size(given, 8, 1.2 + 0.32 * max(len(shown), 1))
    places = range(len(shown))
    plain = [0 if column.plain_bytes is None else column.plain_bytes for column in shown]
    stored = [column.stored_bytes for column in shown]
    drawn.barh(places, plain, height=0.8, color="#d5dde5", label="plain")
    drawn.barh(places, stored, height=0.5, color="#2f6f9f", label="stored")
    largest = max([*plain, *stored, 1])
    for place, column in enumerate(shown):
        encodings = ", ".join(name for name, _ in column.encodings[:2])
        text = f" {size_text(column.stored_bytes)}  {encodings}"
        drawn.text(largest * 1.01, place, text, va="center", fontsize=8, clip_on=False, parse_math=False)
    drawn.set_yticks(places, [_escaped(column.column) for column in shown])
    drawn.invert_yaxis()
    drawn.xaxis.set_major_formatter(lambda value, _: size_text(int(value)))
    left = len(ordered) - len(shown)
    drawn.set_title(f"The {len(shown)} largest of {len(ordered):,} columns" if left else "Sizes of columns")
    drawn.legend(loc="lower right")
    return drawn


def _escaped(name: str) -> str:
    """Return a name in which matplotlib finds no formula."""
    return name.replace("$", r"\$")
