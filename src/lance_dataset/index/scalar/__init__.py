"""Indices of values: which rows have which."""
