"""Calls with random arguments: one module per module of `lancecodec`, each with its ``TARGETS``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from codec_targets.chaos import Chaos

__all__ = ["discover"]


def discover() -> tuple[dict[str, Callable[[Chaos], object]], dict[str, ImportError]]:
    """Return the targets by name, and modules that cannot be imported (a kernel that is not built) with the reason."""
    targets: dict[str, Callable[[Chaos], object]] = {}
    broken: dict[str, ImportError] = {}
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__) if found.name != "chaos"):
        try:
            targets.update(importlib.import_module(f"{__name__}.{module}").TARGETS)
        except ImportError as error:
            broken[module] = error
    return targets, broken
