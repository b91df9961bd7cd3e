"""Catalog behind a server, and that server."""
