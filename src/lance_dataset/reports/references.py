"""References of versions as people write them."""

from __future__ import annotations

from lance_dataset.errors import InvalidInputError

__all__ = ["parse_reference"]


def parse_reference(text: str) -> int | str | tuple[str, int | None]:
    """Parse a reference of a version.

    ``7`` is a version number, ``dev:7`` a version of a branch, ``dev:`` the newest version of a branch, and everything
    else is a tag.
    """
    branch, colon, number = text.rpartition(":")
    if not colon:
        return int(text) if _is_number(text) else text
    if number and not _is_number(number):
        raise InvalidInputError(f"{text!r}: expected a version number or nothing after the colon")
    return branch, int(number) if number else None


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 20
