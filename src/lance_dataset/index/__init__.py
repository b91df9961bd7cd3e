"""Indices: one folder per family, one module per kind."""
