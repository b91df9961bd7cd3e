"""Rendering of measurements as text: a line per operation, a column per contender, ratios to the first one."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

# Rounds that differ by more than this share of their median are marked: the last digit is not reliable.
NOISY = 0.5


def seconds(value: float) -> str:
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.1f} MB"


def ratio(value: float, base: float | None) -> str:
    """Return `value` as a multiple of the base; above 1 the base is better."""
    return f" ({value / base:.2f}x)" if base else ""


def noise_mark(times: Sequence[float]) -> str:
    return "~" if max(times) - min(times) > NOISY * statistics.median(times) else ""


def render_times(title: str, names: Sequence[str], rows: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Render medians over rounds; ``~`` marks rounds that disagree, ``-`` operations that a contender does not have."""
    lines = []
    for label, times in rows.items():
        present = [name for name in names if name in times]
        medians = {name: statistics.median(times[name]) for name in present}
        lines.append([label, *_cells(names, medians, seconds, {name: noise_mark(times[name]) for name in present})])
    return render_lines(title, [["", *names], *lines])


def render_bytes(title: str, names: Sequence[str], rows: Mapping[str, Mapping[str, float | None]]) -> str:
    lines = [[label, *_cells(names, values, megabytes, {})] for label, values in rows.items()]
    return render_lines(title, [["", *names], *lines])


def _cells(
    names: Sequence[str],
    values: Mapping[str, float | None],
    formatted: Callable[[float], str],
    marks: Mapping[str, str],
) -> list[str]:
    base = values.get(names[0])
    cells = []
    for name in names:
        value = values.get(name)
        if value is None:
            cells.append("-")
        else:
            cells.append(marks.get(name, "") + formatted(value) + ("" if name == names[0] else ratio(value, base)))
    return cells


def render_lines(title: str, lines: Sequence[Sequence[str]]) -> str:
    """Render lines of cells as a table; the first line is the header."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = []
    for label, *cells in lines:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        text.append("  ".join([label.ljust(widths[0]), *padded]))
    return "\n".join([title, "-" * len(title), *text, ""])
