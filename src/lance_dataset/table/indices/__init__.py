"""Indices as a manifest lists them."""
