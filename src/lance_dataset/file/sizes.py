"""Sizes as text for reports."""

from __future__ import annotations

__all__ = ["size_text"]

_UNITS = ("kB", "MB", "GB", "TB", "PB")
_LEAST_IN_UNITS = 10_000


def size_text(size: float) -> str:
    """Return bytes with a unit: ``8,122 B``, ``18.3 kB``, ``5.12 MB``."""
    if size < _LEAST_IN_UNITS:
        return f"{int(size):,} B"
    unit = -1
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{size:.{digits}f} {_UNITS[unit]}"
