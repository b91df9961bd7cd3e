"""Ids of rows that stay when they move, and the versions that made and changed them."""
