"""Tables that are named by a catalog: where they are, and how they are reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from lance_dataset.errors import InvalidInputError
from lance_dataset.io.external.base import required_package
from lance_dataset.io.external.catalog import answer_field
from lance_dataset.io.uris import file_path
from lance_dataset.io.vended import VendedOptions
from lance_dataset.late_dataclass import dataclass

__all__ = ["CatalogTable", "check_catalog_pair", "declare_table", "describe_table", "is_in_catalog", "options_of_table"]


@dataclass(frozen=True)
class CatalogTable:
    """Table of a catalog.

    Attributes
    ----------
    client
        Client of the catalog.
    table_id
        Names of the namespaces and of the table.
    location
        Path or URI of the table.
    storage_options
        Options of the user, replaced by those of the catalog where both have one.
    managed
        True if the catalog decides which versions exist.
    """

    client: Any = field(repr=False)
    table_id: tuple[str, ...]
    location: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    managed: bool = False


def check_catalog_pair(client: object, table_id: object) -> bool:
    """Return True if a table of a catalog is given, False if neither a client nor an id is.

    Raises
    ------
    InvalidInputError
        Only one of them is given, or the id is not a list of names.
    """
    if client is None and table_id is None:
        return False
    if client is None or table_id is None:
        raise InvalidInputError("Both 'namespace_client' and 'table_id' must be provided together.")
    names = table_id if isinstance(table_id, Sequence) and not isinstance(table_id, str | bytes) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(f"table_id must be a list of names, such as ['workspace', 'table'], not {table_id!r}")
    if not hasattr(client, "describe_table"):
        raise TypeError(f"namespace_client must be a LanceNamespace, not {type(client).__name__}")
    return True


def is_in_catalog(uri: object, client: object, table_id: object) -> bool:
    """Return True if a table is given by a catalog, False if by its location.

    Raises
    ------
    InvalidInputError
        Both are given, or only one of client and id.
    """
    if not check_catalog_pair(client, table_id):
        return False
    if uri is not None:
        raise InvalidInputError(
            "Cannot specify both 'uri' and 'namespace_client/table_id'. Please provide either 'uri' or both "
            "'namespace_client' and 'table_id'."
        )
    return True


def describe_table(
    client: Any, table_id: Sequence[str], storage_options: Mapping[str, str] | None = None
) -> CatalogTable:
    """Ask a catalog for a table. Errors of the client, such as that the table does not exist, are passed on."""
    answer = client.describe_table(_describe_request(table_id))
    return _table(client, table_id, answer, storage_options)


def declare_table(
    client: Any, table_id: Sequence[str], storage_options: Mapping[str, str] | None = None
) -> CatalogTable:
    """Reserve the name of a new table in a catalog. Errors of the client are passed on."""
    models = _models()
    answer = client.declare_table(models.DeclareTableRequest(id=list(table_id)))
    return _table(client, table_id, answer, storage_options)


def options_of_table(
    client: object, table_id: Sequence[str] | None, storage_options: Mapping[str, str] | None
) -> Mapping[str, str] | None:
    """Return the storage options for files of a table, with those of its catalog if one is given.

    Errors are those of `check_catalog_pair`, and of the client.
    """
    if not check_catalog_pair(client, table_id) or table_id is None:
        return storage_options
    return describe_table(client, table_id, storage_options).storage_options


def _table(
    client: Any, table_id: Sequence[str], answer: Any, storage_options: Mapping[str, str] | None
) -> CatalogTable:
    location = answer_field(answer, "location")
    if not isinstance(location, str) or not location:
        raise InvalidInputError(f"the catalog does not say where its table {'.'.join(table_id)!r} is")
    vended = answer_field(answer, "storage_options")
    options: Mapping[str, str] = dict(storage_options or {})
    if vended:
        names = tuple(table_id)
        options = VendedOptions.merged(options, vended, _Renewal(client, names))
    managed = answer_field(answer, "managed_versioning") is True
    place = file_path(location) if location.startswith("file:") else location
    return CatalogTable(client, tuple(table_id), place, options, managed)


@dataclass(frozen=True)
class _Renewal:
    """Function that asks a catalog for new options of a table."""

    client: Any = field(repr=False)
    table_id: tuple[str, ...]

    def __call__(self) -> Mapping[str, str]:
        answer = self.client.describe_table(_describe_request(self.table_id))
        return answer_field(answer, "storage_options") or {}


def _describe_request(table_id: Sequence[str]) -> Any:
    return _models().DescribeTableRequest(id=list(table_id), with_table_uri=False, check_declared=False)


def _models() -> Any:
    return required_package("lance_namespace", "namespace", "a table of a catalog")
