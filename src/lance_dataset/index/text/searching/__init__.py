"""Searches in full-text indices."""
