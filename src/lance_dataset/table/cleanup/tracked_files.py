"""Files that versions of a table refer to, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lance_dataset.errors import CorruptFileError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.cleanup.file_usage import VersionFiles, data_path
from lance_dataset.table.index_metadata import uuid_from_proto
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.manifest import BasePath, Manifest
from lance_dataset.table.paths import (
    DATA_FOLDER,
    DELETIONS_FOLDER,
    INDICES_FOLDER,
    TRANSACTIONS_FOLDER,
    FileLocator,
)

__all__ = ["TrackedFiles"]

_KINDS = {
    DATA_FOLDER: "data file",
    DELETIONS_FOLDER: "deletion file",
    TRANSACTIONS_FOLDER: "transaction file",
}
_MANIFEST = "manifest"
_INDEX = "index file"


class TrackedFiles:
    """Lists the files of one version after another.

    Parameters
    ----------
    store, root
        The table.
    uri
        Base URI reported for its files.
    storage_options, session
        For base paths, see `FileLocator`.
    """

    def __init__(
        self,
        store: ObjectStore,
        root: str,
        uri: str,
        storage_options: Mapping[str, str] | None = None,
        session: object | None = None,
    ) -> None:
        self._store = store
        self._root = root
        self._uri = uri
        self._options = storage_options
        self._session = session
        self._listed: dict[tuple[str, str], tuple[str, ...]] = {}

    def of_version(self, manifest: Manifest, files: VersionFiles) -> Iterator[tuple[str, str, str]]:
        """Yield the base URI, the path below it and the kind of every file of a version, its manifest first."""
        yield self._uri, manifest.path[len(self._root) + 1 :], _MANIFEST
        bases = {base.id: base for base in manifest.base_paths}
        for data in files.data:
            yield self._uri, f"{DATA_FOLDER}/{data_path(data, manifest.path)}", _KINDS[DATA_FOLDER]
        for path in files.own:
            if not path.startswith(f"{INDICES_FOLDER}/"):
                yield self._uri, path, _KINDS[path.partition("/")[0]]
        for base_id, path in files.in_bases:
            folder, _, below = path.partition("/")
            if folder != INDICES_FOLDER:
                base = _known_base(bases, base_id, manifest.path)
                yield base.path, path if base.is_dataset_root else below, _KINDS[folder]
        yield from self._index_files(manifest)

    def _index_files(self, manifest: Manifest) -> Iterator[tuple[str, str, str]]:
        bases = {base.id: base for base in manifest.base_paths}
        locator = FileLocator(self._store, self._root, manifest.base_paths, self._options, self._session)
        for index in parse_indices(manifest.index_section):
            uuid = uuid_from_proto(index.uuid, f"{manifest.path}: index {index.name!r}")
            base = _known_base(bases, index.base_id, manifest.path) if index.HasField("base_id") else None
            base_uri = self._uri if base is None else base.path
            folder = uuid if base is not None and not base.is_dataset_root else f"{INDICES_FOLDER}/{uuid}"
            names = [file.path for file in index.files]
            for name in names or self._list(locator, base_uri, uuid, index.base_id if base is not None else None):
                yield base_uri, f"{folder}/{name}", _INDEX

    def _list(self, locator: FileLocator, base_uri: str, uuid: str, base_id: int | None) -> tuple[str, ...]:
        """Return the files of an index whose metadata does not list them."""
        key = base_uri, uuid
        if key not in self._listed:
            store, folder = locator.index_folder(uuid, base_id)
            self._listed[key] = tuple(info.path[len(folder) + 1 :] for info in store.list_tree(folder))
        return self._listed[key]


def _known_base(bases: Mapping[int, BasePath], base_id: int, where: str) -> BasePath:
    if base_id not in bases:
        raise CorruptFileError(f"{where}: a file is in base path {base_id}, which the manifest does not list")
    return bases[base_id]
