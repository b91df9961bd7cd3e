"""Calls of the codec core to time: one module for each module of `lancecodec`, each with its ``CASES``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from kernel_cases.case import Case

__all__ = ["discover"]


def discover() -> tuple[dict[str, Callable[[], Case]], dict[str, ImportError]]:
    """Return makers of cases by name, and modules that cannot be imported (a kernel is not built) with the reason."""
    cases: dict[str, Callable[[], Case]] = {}
    broken: dict[str, ImportError] = {}
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__) if found.name != "case"):
        try:
            cases.update(importlib.import_module(f"{__name__}.{module}").CASES)
        except ImportError as error:
            broken[module] = error
    return cases, broken
