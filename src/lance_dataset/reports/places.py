"""Addresses of datasets as they may be shown."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

__all__ = ["shown_uri"]


def shown_uri(uri: str) -> str:
    """Return a URI without a name, a password and a query, which may be signed; paths are as they are."""
    if "://" not in uri:
        return uri
    parts = urlsplit(uri)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
