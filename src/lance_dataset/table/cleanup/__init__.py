"""Removing old versions, and files that nobody refers to."""
