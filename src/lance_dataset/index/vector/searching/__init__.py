"""Searches of vector indices."""
