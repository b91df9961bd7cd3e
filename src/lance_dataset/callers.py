"""Calls of this package, as its users see them."""

from __future__ import annotations

import sys

__all__ = ["callers_level"]


def callers_level() -> int:
    """Return the stack level of the code that called the package, for `warnings.warn` in the calling function."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("lance_dataset"):
        frame, level = frame.f_back, level + 1
    return level
