"""Expressions of filters and computed columns: SQL text to a typed tree to Arrow compute."""

from __future__ import annotations

from .compiled import BoundExpression, Filter, compile_expression, compile_filter, converted

__all__ = ["BoundExpression", "Filter", "compile_expression", "compile_filter", "converted"]
