"""Memory limit for tests of hostile files."""

from __future__ import annotations

from support.memory_limit import little_memory

__all__ = ["little_memory"]
