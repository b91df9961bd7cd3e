"""Where the files of a table are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lance_dataset.errors import CorruptFileError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.paths import safe_join
from lance_dataset.io.resolve import resolve
from lance_dataset.table.fragment import DataFile, DeletionFile
from lance_dataset.table.manifest import BasePath

__all__ = [
    "DATA_FOLDER",
    "DELETIONS_FOLDER",
    "INDICES_FOLDER",
    "TRANSACTIONS_FOLDER",
    "DataFolder",
    "FileLocator",
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
    """Whether a store is one of a session: other sessions have other objects of the same names."""
    return store.uri("/") == _MEMORY


def deletion_name(fragment_id: int, deletion_file: DeletionFile) -> str:
    """File name of the deletion file of a fragment."""
    suffix = deletion_file.file_type.suffix
    return f"{fragment_id}-{deletion_file.read_version}-{deletion_file.id}.{suffix}"


@dataclass(frozen=True)
class DataFolder:
    """A folder that new data files go to.

    Attributes
    ----------
    store, path
        The folder.
    base_id
        Base path it belongs to, None for the table itself.
    """

    store: ObjectStore
    path: str
    base_id: int | None = None


class FileLocator:
    """Finds the files of one version of a table, in the table itself or in its base paths.

    Parameters
    ----------
    store, root
        The table.
    base_paths
        Base paths of the version.
    storage_options
        Options of the table; ``base_{id}.{key}`` gives the option `key` to the base path with that id only.
    session
        Owner of ``memory://`` data, see `lance_dataset.io.resolve.resolve`.
    """

    def __init__(
        self,
        store: ObjectStore,
        root: str,
        base_paths: Sequence[BasePath] = (),
        storage_options: Mapping[str, str] | None = None,
        session: object | None = None,
    ) -> None:
        self._store = store
        self._root = root
        self._bases = {base.id: base for base in base_paths}
        self._options = dict(storage_options or {})
        self._session = session
        self._resolved: dict[int, tuple[ObjectStore, str]] = {}

    def data_file(self, file: DataFile) -> tuple[ObjectStore, str]:
        """Store and path of a data file."""
        store, folder = self._folder(file.base_id, DATA_FOLDER)
        return store, safe_join(folder, file.path, what="data file")

    def opened(self, file: DataFile, make: Callable[[], _Opened]) -> _Opened:
        """A data file as `make` opens it; locators of tables that share files know another way."""
        return make()

    def data_folder(self, base_id: int | None) -> tuple[ObjectStore, str]:
        """Store and folder of data files."""
        return self._folder(base_id, DATA_FOLDER)

    def deletion_file(self, fragment_id: int, file: DeletionFile) -> tuple[ObjectStore, str]:
        """Store and path of the deletion file of a fragment."""
        store, folder = self._folder(file.base_id, DELETIONS_FOLDER)
        return store, f"{folder}/{deletion_name(fragment_id, file)}"

    def index_folder(self, index_uuid: str, base_id: int | None) -> tuple[ObjectStore, str]:
        """Store and folder of the files of an index."""
        store, folder = self._folder(base_id, INDICES_FOLDER)
        return store, safe_join(folder, index_uuid, what="index folder")

    def transaction_file(self, name: str) -> tuple[ObjectStore, str]:
        """Store and path of a transaction file."""
        return self._store, safe_join(f"{self._root}/{TRANSACTIONS_FOLDER}", name, what="transaction file")

    def inner_table(self, name: str) -> tuple[ObjectStore, str]:
        """Store and root of a table that lies in a folder of this one."""
        return self._store, f"{self._root}/{name}"

    def options_of(self, base_id: int | None) -> Mapping[str, str]:
        """Options that the files of a base path (None: of the table itself) are reached with."""
        return self._options if base_id is None or base_id not in self._bases else self._base_options(base_id)

    def _folder(self, base_id: int | None, name: str) -> tuple[ObjectStore, str]:
        if base_id is None:
            return self._store, f"{self._root}/{name}"
        base = self._bases.get(base_id)
        if base is None:
            raise CorruptFileError(
                f"{self._store.uri(self._root)}: a file lies in base path {base_id}, which the manifest does not list"
            )
        if base_id not in self._resolved:
            self._resolved[base_id] = self._opened(base)
        store, root = self._resolved[base_id]
        return store, f"{root}/{name}" if base.is_dataset_root else root

    def _opened(self, base: BasePath) -> tuple[ObjectStore, str]:
        path = base.path
        if not path or "\0" in path:
            raise CorruptFileError(f"{self._store.uri(self._root)}: base path {base.id} is {path!r}, no location")
        place = self._store.uri("")
        has_options = any(key.startswith(f"base_{base.id}.") for key in self._options)
        if place and path.startswith(place) and "%" not in path and not has_options:
            # In the bucket, or the memory, of the table; neither credentials nor a session need be at hand.
            return self._store, path[len(place) :].rstrip("/")
        store, root = resolve(path, self._base_options(base.id), self._session)
        store.statistics = self._store.statistics  # what is read there is read of this table
        return store, root

    def _base_options(self, base_id: int) -> dict[str, str]:
        prefix = f"base_{base_id}."
        options = {key: value for key, value in self._options.items() if not key.startswith("base_")}
        own = {key[len(prefix) :]: value for key, value in self._options.items() if key.startswith(prefix)}
        return {**options, **own}
