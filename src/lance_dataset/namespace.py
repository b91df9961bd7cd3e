"""Catalogs: tables by name, in a folder or behind a server."""

from lance_dataset.api.catalogs.directory.namespace import DirectoryNamespace
from lance_dataset.api.catalogs.operation import DynamicContextProvider
from lance_dataset.api.catalogs.rest.adapter import RestAdapter, serve_catalog
from lance_dataset.api.catalogs.rest.client import RestNamespace
from lance_dataset.api.catalogs.rest.server import ServerLimits

__all__ = [
    "DirectoryNamespace",
    "DynamicContextProvider",
    "RestAdapter",
    "RestNamespace",
    "ServerLimits",
    "serve_catalog",
]
