"""Erasing rows for good: from the data, from the indices, and from the versions before."""
