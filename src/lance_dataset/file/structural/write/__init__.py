"""Conversion of Arrow arrays to pages."""
