"""Small tables of text, for terminals and notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["html_table", "size_text", "text_table"]

_UNITS = ("kB", "MB", "GB", "TB", "PB")
_LEAST_IN_UNITS = 10_000


def size_text(size: float) -> str:
    """Bytes with a unit: ``8,122 B``, ``18.3 kB``, ``5.12 MB``."""
    if size < _LEAST_IN_UNITS:
        return f"{int(size):,} B"
    unit = -1
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{size:.{digits}f} {_UNITS[unit]}"


def text_table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Lines of aligned cells below a line of names; `right` says which columns are aligned to the right."""
    widths = [max(len(line[i]) for line in [names, *rows]) for i in range(len(names))]

    def line(cells: Sequence[str]) -> str:
        aligned = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(aligned).rstrip()

    return "\n".join([line(names), line(["-" * width for width in widths]), *map(line, rows)])


def html_table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """The same as an HTML table."""

    def line(tag: str, cells: Sequence[str]) -> str:
        sides = ("right" if r else "left" for r in right)
        return "".join(
            f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', names)}</tr></thead><tbody>{body}</tbody></table>"
