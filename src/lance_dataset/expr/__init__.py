"""Expressions of filters and computed columns: from SQL text to a typed tree to Arrow compute."""
