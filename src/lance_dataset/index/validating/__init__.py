"""Comparison of the files of scalar indices with the values of their table."""
