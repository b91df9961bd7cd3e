"""Columns that come, go and change: what datasets offer to those who change the schema."""

from __future__ import annotations

__all__ = ["SchemaEvolution"]


class SchemaEvolution:
    """A dataset whose columns can be changed."""
