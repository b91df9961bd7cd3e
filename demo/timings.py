"""A small table of timings, printed with rich if it is installed."""

from __future__ import annotations

__all__ = ["Timings"]


class Timings:
    """Steps with the seconds of two contenders.

    Parameters
    ----------
    ours, theirs
        Names of the contenders.
    """

    def __init__(self, ours: str, theirs: str) -> None:
        self.header = ("step", ours, theirs)
        self.rows: list[tuple[str, str, str]] = []

    def add(self, step: str, ours: float, theirs: float | None) -> None:
        """Add a step; None if the second contender does not support it."""
        self.rows.append((step, _text(ours), "not possible" if theirs is None else _text(theirs)))

    def show(self) -> None:
        """Print the table."""
        try:
            from rich.console import Console
            from rich.table import Table
        except ImportError:
            self._show_plain()
            return
        table = Table(title="Best of three for reads, once for writes")
        for name, side in zip(self.header, ("left", "right", "right"), strict=True):
            table.add_column(name, justify=side)  # type: ignore[arg-type]
        for row in self.rows:
            table.add_row(*row)
        Console().print(table)

    def _show_plain(self) -> None:
        widths = [max(len(row[column]) for row in [self.header, *self.rows]) for column in range(3)]
        for row in [self.header, *self.rows]:
            print(f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}")


def _text(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"
