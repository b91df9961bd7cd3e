"""Catalogs: tables by name, in a folder or behind a server."""
