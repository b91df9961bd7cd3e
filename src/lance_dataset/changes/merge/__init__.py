"""Merges of a source into a table by key: `merge_insert`."""
