"""Catalog in a folder, as a class of the interface of catalogs."""

from __future__ import annotations

from typing import Any

from lance_dataset.api.catalogs.directory.rows import Rows
from lance_dataset.api.catalogs.directory.store import CatalogFolder, FolderOptions
from lance_dataset.api.catalogs.directory.structure import Structure
from lance_dataset.api.catalogs.directory.tables import Tables
from lance_dataset.api.catalogs.directory.versions import Versions
from lance_dataset.api.catalogs.operation import DynamicContextProvider
from lance_dataset.api.catalogs.packages import package
from lance_dataset.read.session import Session, check_session

__all__ = ["DirectoryNamespace"]


class DirectoryNamespace(Tables, Rows, Structure, Versions, package.LanceNamespace):
    """Catalog of the tables in a folder. pylance and this package understand each other's folders.

    Tables at the root are the folders with names that end in ``.lance``; tables in namespaces, namespaces and
    properties are in a dataset of the folder. Names that could lead out of the folder are refused.

    Parameters
    ----------
    session
        Session of the tables; it keeps ``memory://`` data.
    context_provider
        Object that is told of each operation.
    **properties
        ``root`` (a path or URI, required); ``manifest_enabled`` (``false`` for no namespaces),
        ``dir_listing_enabled`` (``false`` to find only tables that are in the dataset of the folder), ``storage.NAME``
        (options of the store), ``vend_input_storage_options`` (``true`` to lend these options to clients),
        ``vend_input_storage_options_refresh_interval_millis`` (time after which they expire),
        ``table_version_tracking_enabled`` (``true`` for commits that go through the catalog), ``ops_metrics_enabled``
        (``true`` to count calls).

    Raises
    ------
    InvalidInputError
        ``root`` is missing, or a property has an invalid value.
    UnsupportedOperationError
        ``credential_vendor.enabled`` is ``true``.

    Examples
    --------
    >>> catalog = DirectoryNamespace(root="/data/tables")
    """

    def __init__(
        self,
        session: Session | None = None,
        context_provider: DynamicContextProvider | None = None,
        **properties: Any,
    ) -> None:
        options = FolderOptions.of(properties)
        self._folder = CatalogFolder(options, check_session(session) or Session())
        self._context_provider = context_provider
        self._counts = {} if options.counts else None
        self._properties = dict(properties)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._context_provider, self._properties)

    def __repr__(self) -> str:
        return self.namespace_id()

    def namespace_id(self) -> str:
        """Return a description of the catalog."""
        return f'DirectoryNamespace {{ root: "{self._folder.root}" }}'


def _unpickled(context_provider: DynamicContextProvider | None, properties: dict[str, Any]) -> DirectoryNamespace:
    return DirectoryNamespace(None, context_provider, **properties)
