"""Searches by text and by vector at the same time."""
