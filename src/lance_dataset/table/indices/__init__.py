"""Indices listed in a manifest."""
