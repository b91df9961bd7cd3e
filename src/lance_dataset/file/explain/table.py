"""Small tables of text, for terminals and notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["html_table", "text_table"]


def text_table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Return lines of aligned cells below a line of names; `right` is true for columns aligned to the right."""
    widths = [max(len(line[i]) for line in [names, *rows]) for i in range(len(names))]

    def line(cells: Sequence[str]) -> str:
        aligned = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(aligned).rstrip()

    return "\n".join([line(names), line(["-" * width for width in widths]), *map(line, rows)])


def html_table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Return the rows as an HTML table; `right` is true for columns aligned to the right."""

    def line(tag: str, cells: Sequence[str]) -> str:
        sides = ("right" if r else "left" for r in right)
        return "".join(
            f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', names)}</tr></thead><tbody>{body}</tbody></table>"
