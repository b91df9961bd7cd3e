"""Paths of a table's files."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.blob_descriptors import DATA_SUFFIX, blob_name
from lance_dataset.io.base import ObjectStore, is_plain_path, safe_join
from lance_dataset.io.resolve import resolve
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.base_access import EXTERNAL, BaseAccess
from lance_dataset.table.fragment import DataFile, DeletionFile
from lance_dataset.table.manifest import BasePath

__all__ = [
    "DATA_FOLDER",
    "DELETIONS_FOLDER",
    "INDICES_FOLDER",
    "TRANSACTIONS_FOLDER",
    "DataFolder",
    "FileLocator",
    "SharedFiles",
    "blob_folder",
    "deletion_name",
    "is_in_memory",
]

DATA_FOLDER = "data"
DELETIONS_FOLDER = "_deletions"
INDICES_FOLDER = "_indices"
TRANSACTIONS_FOLDER = "_transactions"
_MEMORY = "memory://"

_Opened = TypeVar("_Opened")


def is_in_memory(store: ObjectStore) -> bool:
    """Return True if a store belongs to a session. Other sessions have other objects with the same names."""
    return store.uri("/") == _MEMORY


def deletion_name(fragment_id: int, deletion_file: DeletionFile) -> str:
    """Return the file name of the deletion file of a fragment."""
    suffix = deletion_file.file_type.suffix
    return f"{fragment_id}-{deletion_file.read_version}-{deletion_file.id}.{suffix}"


def blob_folder(data_file: str) -> str:
    """Return the folder of the files with blobs that belong to a data file, from the path of that file."""
    return data_file.removesuffix(DATA_SUFFIX)


@dataclass(frozen=True)
class DataFolder:
    """A folder for new data files.

    Attributes
    ----------
    store, path
        The folder.
    base_id
        Base path that it belongs to, None for the table itself.
    """

    store: ObjectStore
    path: str
    base_id: int | None = None


class SharedFiles(Protocol):
    """Open data files that several tables share."""

    def opened(self, locator: FileLocator, file: DataFile, make: Callable[[], _Opened]) -> _Opened:
        """Return an open data file, opened by `make` unless it is open already."""
        ...


class FileLocator:
    """Finds the files of one version of a table, in the table itself or in its base paths.

    Parameters
    ----------
    store, root
        The table.
    base_paths
        Base paths of the version.
    storage_options
        Options of the table. ``base_{id}.{key}`` sets the option `key` only for the base path with that id.
        Credentials of the table are not used for base paths in other buckets, accounts or hosts, see `BaseAccess`.
    session
        Owner of ``memory://`` data, see `lance_dataset.io.resolve.resolve`.
    shared
        Open files to share with other tables of the session, which owns them: then the session is referred to weakly.
    """

    def __init__(
        self,
        store: ObjectStore,
        root: str,
        base_paths: Sequence[BasePath] = (),
        storage_options: Mapping[str, str] | None = None,
        session: object | None = None,
        shared: SharedFiles | None = None,
    ) -> None:
        self._store = store
        self._root = root
        self._shared = shared
        self._bases = {base.id: base for base in base_paths}
        self._options = dict(storage_options or {})
        self._access = BaseAccess(store, root, self._options)
        # The session leads to its shared files, and those to this locator: a strong reference would close the circle.
        is_owner = shared is not None and session is not None
        self._session: Callable[[], object | None] = weakref.ref(session) if is_owner else lambda: session
        self._resolved: dict[int, tuple[ObjectStore, str]] = {}

    @property
    def store(self) -> ObjectStore:
        """Store of the table itself."""
        return self._store

    def data_file(self, file: DataFile) -> tuple[ObjectStore, str]:
        """Return the store and path of a data file."""
        store, folder = self._folder(file.base_id, DATA_FOLDER)
        return store, safe_join(folder, file.path, what="data file")

    def blob_folder(self, file: DataFile) -> tuple[ObjectStore, str]:
        """Return the store and folder of the files with blobs that belong to a data file."""
        store, path = self.data_file(file)
        return store, blob_folder(path)

    def blob_file(self, file: DataFile, number: int) -> tuple[ObjectStore, str]:
        """Return the store and path of a file with blobs that belongs to a data file."""
        store, folder = self.blob_folder(file)
        return store, f"{folder}/{blob_name(number)}"

    def blob_object(self, base_id: int | None, relative: str) -> tuple[ObjectStore, str]:
        """Return the store and path of an object with a blob.

        Parameters
        ----------
        base_id
            Base path that `relative` begins at; None for the root of the table.
        relative
            Path.
        """
        if base_id is None:
            return self._store, safe_join(self._root, relative, what="blob file")
        self._folder(base_id, "")
        store, root = self._resolved[base_id]
        return store, safe_join(root, relative, what="blob file")

    def external_object(self, uri: str) -> tuple[ObjectStore, str]:
        """Return the store and path of an object outside of all base paths. Checks are those of base paths."""
        return self._opened(BasePath(EXTERNAL, uri))

    def base_uri(self, base_id: int, relative: str) -> str:
        """Return the URI of a path below a base path."""
        base = self._bases.get(base_id)
        if base is None:
            raise self._unknown_base(base_id)
        return safe_join(base.path.rstrip("/"), relative, what="blob file")

    def base_of(self, uri: str) -> tuple[int, str] | None:
        """Return the base path that contains an external object, and the path below it; None if there is none.

        Of several, it is the one with the longest path. Base paths that are roots of tables do not count.
        """
        best: tuple[int, str] | None = None
        for base in self._bases.values():
            place = base.path.rstrip("/") + "/"
            starts = {place, place.removeprefix("file://"), f"file://{place}"}
            found = next((start for start in starts if uri.startswith(start)), None)
            # the id 0 means none in descriptors of blobs
            if found is None or base.is_dataset_root or base.id == 0 or not is_plain_path(uri[len(found) :]):
                continue
            if best is None or len(uri) - len(found) < len(best[1]):
                best = base.id, uri[len(found) :]
        return best

    def opened(self, file: DataFile, make: Callable[[], _Opened]) -> _Opened:
        """Return a data file as `make` opens it, or as it is open already."""
        return make() if self._shared is None else self._shared.opened(self, file, make)

    def data_folder(self, base_id: int | None) -> tuple[ObjectStore, str]:
        """Return the store and folder of data files."""
        return self._folder(base_id, DATA_FOLDER)

    def deletion_file(self, fragment_id: int, file: DeletionFile) -> tuple[ObjectStore, str]:
        """Return the store and path of the deletion file of a fragment."""
        store, folder = self._folder(file.base_id, DELETIONS_FOLDER)
        return store, f"{folder}/{deletion_name(fragment_id, file)}"

    def index_folder(self, index_uuid: str, base_id: int | None) -> tuple[ObjectStore, str]:
        """Return the store and folder of the files of an index."""
        store, folder = self._folder(base_id, INDICES_FOLDER)
        return store, safe_join(folder, index_uuid, what="index folder")

    def transaction_file(self, name: str) -> tuple[ObjectStore, str]:
        """Return the store and path of a transaction file."""
        return self._store, safe_join(f"{self._root}/{TRANSACTIONS_FOLDER}", name, what="transaction file")

    def inner_table(self, name: str) -> tuple[ObjectStore, str]:
        """Return the store and root of a table in a folder of this one."""
        return self._store, f"{self._root}/{name}"

    def options_of(self, base_id: int | None) -> Mapping[str, str]:
        """Return the options for access to the files of a base path (None: the table itself)."""
        base = None if base_id is None else self._bases.get(base_id)
        return self._options if base is None else self._access.options(base)

    def _folder(self, base_id: int | None, name: str) -> tuple[ObjectStore, str]:
        if base_id is None:
            return self._store, f"{self._root}/{name}"
        base = self._bases.get(base_id)
        if base is None:
            raise self._unknown_base(base_id)
        if base_id not in self._resolved:
            self._resolved[base_id] = self._opened(base)
        store, root = self._resolved[base_id]
        return store, f"{root}/{name}" if base.is_dataset_root else root

    def _unknown_base(self, base_id: int) -> CorruptFileError:
        return CorruptFileError(
            f"{self._store.uri(self._root)}: a file is in base path {base_id}, which the manifest does not list"
        )

    def _opened(self, base: BasePath) -> tuple[ObjectStore, str]:
        place = self._store.uri("")
        path = self._access.checked(base)
        inside = path[len(place) :].rstrip("/") if place and path.startswith(place) else ""
        if is_plain_path(inside) and "%" not in path and not self._access.own_options(base):
            # In the bucket or the memory of the table, so neither credentials nor a session are needed.
            return self._store, inside
        store, root = resolve(path, self._access.granted(base), self._session())
        store.statistics = self._store.statistics  # what is read there is read of this table
        return store, root
