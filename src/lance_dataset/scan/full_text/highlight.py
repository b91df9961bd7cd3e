"""`Highlight`: how the words that a search finds are shown in their texts."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError
from lance_dataset.late_dataclass import dataclass

__all__ = ["Highlight", "checked_highlight"]


@dataclass(frozen=True)
class Highlight:
    """Form of the snippets of texts with the words that a search finds.

    Parameters
    ----------
    before, after
        Text to put before and after the words.
    length
        Number of characters of a snippet, without these marks; more only if a single word is longer.
    snippets
        Number of snippets of each column, at most: those with the most different words.
    escape
        True to escape ``&``, ``<``, ``>`` and quotes of the texts for HTML.
    columns
        Columns of the query to show; None for all.
    """

    before: str = "<em>"
    after: str = "</em>"
    length: int = 160
    snippets: int = 3
    escape: bool = False
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name in ("before", "after"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be text, not {type(getattr(self, name)).__name__}")
        for name in ("length", "snippets"):
            check_count(name, getattr(self, name))
            if not getattr(self, name):
                raise InvalidInputError(f"{name} must be at least 1")
        if not isinstance(self.escape, bool):
            raise TypeError(f"escape must be True or False, not {self.escape!r}")
        columns: object = self.columns
        if columns is not None and (isinstance(columns, str) or not isinstance(columns, Sequence)):
            raise TypeError(f"columns must be a list of names, not {columns!r}")


def checked_highlight(value: object) -> Highlight | None:
    """Return what a user gives: True for the defaults, None or False for no snippets.

    Raises
    ------
    TypeError
        The value has another type.
    """
    if value is None or value is False:
        return None
    if value is True:
        return Highlight()
    if not isinstance(value, Highlight):
        raise TypeError(f"highlight must be True, False or a Highlight, not {value!r}")
    return value
