"""Folder of a catalog: which tables it has, and where they are."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lance_dataset.api.catalogs.directory.entries import NAMESPACE, TABLE, CatalogEntries, Entry
from lance_dataset.api.catalogs.directory.names import child_location, is_table_folder, object_id
from lance_dataset.api.catalogs.packages import errors
from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.option_values import flag_option
from lance_dataset.io.vended import EXPIRES
from lance_dataset.read.location import TableLocation
from lance_dataset.read.session import Session
from lance_dataset.table.naming import VERSIONS_FOLDER

__all__ = ["CatalogFolder", "FolderOptions", "TablePlace"]

RESERVED = ".lance-reserved"
DEREGISTERED = ".lance-deregistered"
_SUFFIX = ".lance"
_KNOWN = frozenset(
    {
        "root",
        "manifest_enabled",
        "dir_listing_enabled",
        "table_version_tracking_enabled",
        "table_version_storage_enabled",
        "ops_metrics_enabled",
        "vend_input_storage_options",
        "vend_input_storage_options_refresh_interval_millis",
    }
)


@dataclass(frozen=True)
class FolderOptions:
    """Properties of a catalog in a folder.

    Attributes
    ----------
    root
        Path or URI of the folder.
    storage_options
        Options of its store.
    has_entries
        True if there is a table of entries, which namespaces need.
    lists_folders
        True if tables at the root are found by the names of their folders.
    manages_versions
        True if commits go through the catalog.
    counts
        True to count calls.
    vends
        True to lend the storage options.
    vended_millis
        Time after which lent options expire; None for never.
    """

    root: str
    storage_options: Mapping[str, str] = field(repr=False)
    has_entries: bool = True
    lists_folders: bool = True
    manages_versions: bool = False
    counts: bool = False
    vends: bool = False
    vended_millis: int | None = None

    @classmethod
    def of(cls, properties: Mapping[str, object]) -> FolderOptions:
        """Read the properties that a user gave. Unknown ones are ignored, as the reference does.

        Raises
        ------
        InvalidInputError
            ``root`` is missing, or a value is not valid.
        UnsupportedOperationError
            Credentials of their own are asked for.
        """
        root = properties.get("root")
        if not isinstance(root, str | os.PathLike) or not os.fspath(root):
            raise InvalidInputError("Missing required property 'root' for directory namespace")
        if str(properties.get("credential_vendor.enabled", "false")).lower() == "true":
            raise errors.UnsupportedOperationError(
                "Not supported: credential_vendor.enabled: this release lends the options of storage.* "
                "(vend_input_storage_options), but makes no credentials; use a catalog server that does"
            )
        flags = {
            name: flag_option(name, str(properties[name])) for name in _KNOWN if name in properties and _is_flag(name)
        }
        millis = properties.get("vend_input_storage_options_refresh_interval_millis")
        storage = {
            name.removeprefix("storage."): str(value)
            for name, value in properties.items()
            if name.startswith("storage.") and value is not None
        }
        return cls(
            os.fspath(root).rstrip("/") or "/",
            storage,
            flags.get("manifest_enabled", True),
            flags.get("dir_listing_enabled", True),
            flags.get("table_version_tracking_enabled", False),
            flags.get("ops_metrics_enabled", False),
            flags.get("vend_input_storage_options", False),
            None if millis is None else _millis(millis),
        )


def _is_flag(name: str) -> bool:
    return name.endswith("_enabled") or name == "vend_input_storage_options"


def _millis(value: object) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if number < 1:
        raise InvalidInputError(
            f"vend_input_storage_options_refresh_interval_millis must be a positive number, not {value!r}"
        )
    return number


@dataclass(frozen=True)
class TablePlace:
    """Place of a table of a catalog.

    Attributes
    ----------
    parts
        Its id.
    folder
        Folder below the root of the catalog.
    entry
        Its entry; None for a table that was found by the name of its folder.
    """

    parts: tuple[str, ...]
    folder: str
    entry: Entry | None = None


class CatalogFolder:
    """Folder of a catalog.

    Parameters
    ----------
    options
        Properties of the catalog.
    session
        Session of its tables.
    """

    def __init__(self, options: FolderOptions, session: Session) -> None:
        self.options = options
        self.session = session
        place = TableLocation.resolve(options.root, options.storage_options, session)
        self.store: ObjectStore = place.store
        self.path = place.root
        self.root = options.root if "://" in options.root and not options.root.startswith("file:") else place.root
        self.entries = CatalogEntries(self.root, options.storage_options, session)

    def read_entries(self) -> dict[str, Entry]:
        """Return the entries; none if there is no table of entries."""
        return self.entries.read() if self.options.has_entries else {}

    def uri(self, folder: str) -> str:
        """Return the URI of a folder below the root."""
        return child_location(self.root, folder)

    def table_uri(self, folder: str) -> str:
        """Return the path or URI with which a folder below the root is opened."""
        return f"{self.root}/{folder}" if "://" not in self.root else self.uri(folder)

    def find(self, parts: Sequence[str]) -> TablePlace:
        """Find a table.

        Raises
        ------
        TableNotFoundError
            It does not exist.
        CorruptFileError
            Its entry leads out of the folder of the catalog.
        """
        entry = self.read_entries().get(object_id(parts))
        if entry is not None and entry.kind == TABLE and entry.location is not None:
            if not is_table_folder(entry.location):
                raise errors.InvalidTableStateError(
                    f"the table {object_id(parts)!r} has a location outside of the catalog: {entry.location!r}"
                )
            if not self.is_deregistered(entry.location):
                return TablePlace(tuple(parts), entry.location, entry)
        elif len(parts) == 1 and self.options.lists_folders:
            folder = f"{parts[0]}{_SUFFIX}"
            if self.has_files(folder) and not self.is_deregistered(folder):
                return TablePlace(tuple(parts), folder)
        raise errors.TableNotFoundError(f"Table not found: table id '{object_id(parts)}'")

    def has_files(self, folder: str) -> bool:
        """Return True if a folder below the root has any file or folder."""
        return next(iter(self.store.list_names(f"{self.path}/{folder}")), None) is not None

    def is_deregistered(self, folder: str) -> bool:
        """Return True if a folder has the mark of tables that were removed from a catalog without entries."""
        return not self.options.has_entries and self.store.exists(f"{self.path}/{folder}/{DEREGISTERED}")

    def is_only_declared(self, folder: str) -> bool:
        """Return True if the name of a table is reserved, but nothing was written."""
        return next(iter(self.store.list_names(f"{self.path}/{folder}/{VERSIONS_FOLDER}")), None) is None

    def table_names(self, parts: Sequence[str]) -> dict[str, str]:
        """Return the names of the tables directly in a namespace, and their folders."""
        prefix = "".join(f"{part}$" for part in parts)
        found = {
            each.object_id[len(prefix) :]: each.location or ""
            for each in self.read_entries().values()
            if each.kind == TABLE and each.object_id.startswith(prefix) and "$" not in each.object_id[len(prefix) :]
        }
        if not parts and self.options.lists_folders:
            for name in self.store.list_names(self.path):
                plain = name.removesuffix(_SUFFIX)
                is_new = name.endswith(_SUFFIX) and plain and plain not in found
                if is_new and self.has_files(name) and not self.is_deregistered(name):
                    found[plain] = name
        return found

    def namespace_names(self, parts: Sequence[str]) -> list[str]:
        """Return the names of the namespaces directly in another one."""
        prefix = "".join(f"{part}$" for part in parts)
        return [
            each.object_id[len(prefix) :]
            for each in self.read_entries().values()
            if each.kind == NAMESPACE and each.object_id.startswith(prefix) and "$" not in each.object_id[len(prefix) :]
        ]

    def vended(self) -> dict[str, str] | None:
        """Return the storage options to lend; None for none."""
        if not self.options.vends:
            return None
        lent = dict(self.options.storage_options)
        if self.options.vended_millis is not None:
            lent[EXPIRES] = str(int(time.time() * 1000) + self.options.vended_millis)
        return lent

    def reserve(self, folder: str) -> None:
        """Put the mark of a reserved name into a folder."""
        self.store.put(f"{self.path}/{folder}/{RESERVED}", b"")

    def remove(self, folder: str) -> None:
        """Remove the files of a table, and the marks of the catalog. Files of others stay."""
        from lance_dataset.table.dropping import drop_table

        drop_table(self.store, f"{self.path}/{folder}")

    def location(self, folder: str) -> dict[str, Any]:
        """Return the arguments with which a table is opened."""
        return {
            "uri": self.table_uri(folder),
            "storage_options": dict(self.options.storage_options),
            "session": self.session,
        }
