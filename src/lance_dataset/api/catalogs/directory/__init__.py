"""Catalog in a folder."""
