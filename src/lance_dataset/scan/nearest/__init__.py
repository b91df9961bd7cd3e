"""Searches for the vectors that are nearest to others."""
