"""Fixtures: a table of every type that filters meet, and the reference over the same rows."""

from __future__ import annotations

from support.tables.filter_table import batch, reference, reference_rows, table

__all__ = ["batch", "reference", "reference_rows", "table"]
