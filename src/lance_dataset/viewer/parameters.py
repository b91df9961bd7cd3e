"""Parameters of requests: read once, checked, with limits."""

from __future__ import annotations

from collections.abc import Mapping

from lance_dataset.errors import InvalidInputError

__all__ = ["Parameters"]

#: Characters of a filter, a query or a search.
_LONGEST_TEXT = 20_000


class Parameters:
    """Parameters of a request.

    Parameters
    ----------
    given
        The query of the URL.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def text(self, name: str) -> str | None:
        """Return a text; None if it is missing or blank."""
        found = self._given.get(name)
        if found is None or not found.strip():
            return None
        if len(found) > _LONGEST_TEXT:
            raise InvalidInputError(f"{name} has {len(found):,} characters; at most {_LONGEST_TEXT:,} are allowed")
        return found

    def required(self, name: str) -> str:
        """Return a text that must be there."""
        found = self.text(name)
        if found is None:
            raise InvalidInputError(f"the parameter {name} is missing")
        return found

    def integer(self, name: str, default: int | None = None, *, most: int = 2**62) -> int:
        """Return a whole number from 0 to `most`."""
        found = self._given.get(name)
        if found is None:
            if default is None:
                raise InvalidInputError(f"the parameter {name} is missing")
            return default
        number = int(found) if found.isdecimal() and len(found) < 20 else -1
        if not 0 <= number <= most:
            raise InvalidInputError(f"{name} must be a whole number from 0 to {most:,}, not {found[:40]!r}")
        return number

    def integers(self, name: str, *, most: int, longest: int) -> list[int] | None:
        """Return whole numbers from 0 to `most` that are separated by commas; None if the parameter is missing."""
        found = self.text(name)
        if found is None:
            return None
        parts = found.split(",")
        if len(parts) > longest:
            raise InvalidInputError(f"{name} has {len(parts):,} numbers; at most {longest:,} are allowed")
        return [Parameters({name: part}).integer(name, most=most) for part in parts]
