"""Answers of indices to the filter of a scan."""
