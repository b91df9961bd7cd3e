"""Turning measurements into text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Cells = Mapping[str, float | None]


def seconds(value: float) -> str:
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.1f} MB"


def ratio(value: float | None, base: float | None) -> str:
    """How many times the base `value` is; above 1 the base is better."""
    if value is None or not base:
        return ""
    return f" ({value / base:.2f}x)"


def render(title: str, names: Sequence[str], rows: Mapping[str, Cells], show: Mapping[str, object]) -> str:
    """One table: a line per measured thing, a column per contender.

    Parameters
    ----------
    names
        Contenders; ratios are to the first.
    rows
        Label to the value of each contender.
    show
        Label to the function that formats its values; the label ``""`` is for all others.
    """
    lines = [["", *names]]
    for label, cells in rows.items():
        formatted = show.get(label, show[""])
        base = cells.get(names[0])
        line = [label]
        for name in names:
            value = cells.get(name)
            shown = "-" if value is None else formatted(value)  # type: ignore[operator]
            line.append(shown if name == names[0] else shown + ratio(value, base))
        lines.append(line)
    widths = [max(len(line[i]) for line in lines) for i in range(len(names) + 1)]
    text = [
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    ]
    return "\n".join([title, "-" * len(title), *text, ""])
