"""Indices of words: which rows have which."""
