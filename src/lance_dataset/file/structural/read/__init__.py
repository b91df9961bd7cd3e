"""Conversion of pages to Arrow arrays."""
