"""Files that the versions of a table refer to."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import NamedTuple, TypeVar

import numpy as np

from lance_dataset._proto import table_pb2
from lance_dataset.errors import CorruptFileError, LanceError, MissingFileError, UnsupportedError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.fragment_list import FragmentList
from lance_dataset.table.index_metadata import uuid_from_proto
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.manifest import Manifest, decode_manifest, read_manifest
from lance_dataset.table.manifest_summary import summarized
from lance_dataset.table.messages import parse_message
from lance_dataset.table.naming import VERSIONS_FOLDER, ManifestName, Naming, named_path, parse_manifest_name
from lance_dataset.table.paths import (
    DATA_FOLDER,
    DELETIONS_FOLDER,
    INDICES_FOLDER,
    TRANSACTIONS_FOLDER,
    deletion_name,
)
from lance_dataset.table.versions import read_named
from lance_dataset.threads.pools import storage_pool
from lance_dataset.threads.streams import stream

__all__ = [
    "FileKind",
    "FileUsage",
    "VersionFiles",
    "VersionUsage",
    "data_path",
    "detached_versions",
    "read_manifests",
    "read_usage",
    "version_files",
]

#: Manifests that are read at the same time, or held in memory, as each may be large.
_READERS = 16

_BLOB_SUFFIX = ".blob"
_FILE_SUFFIX = ".lance"


class FileKind(enum.Enum):
    """Purpose of a file of a table. The values are the names that users see."""

    MANIFEST = "manifest"
    DATA = "data"
    DELETION = "deletion"
    TRANSACTION = "transaction"
    INDEX = "index"
    TEMPORARY_MANIFEST = "temporary_manifest"


@dataclass(frozen=True)
class VersionFiles:
    """Files that a version refers to, except its own manifest.

    Attributes
    ----------
    data
        Data files of the table itself, as named in manifests: paths below ``data``, in UTF-8. There may be very many.
    own
        Its other files by path below the root, such as ``_deletions/x.bin``. For an index, its folder.
    in_bases
        (base path id, path below it) of files in base paths, including data files.
    """

    data: frozenset[bytes]
    own: frozenset[str]
    in_bases: frozenset[tuple[int, str]]


def version_files(manifest: Manifest) -> VersionFiles:
    """Return the data files, deletion files, index folders and transaction file of a version.

    Raises
    ------
    CorruptFileError
        The manifest contradicts the format.
    """
    fragments = FragmentList.of(manifest.fragments, manifest.path)
    paths, bases = fragments.file_paths(), fragments.columns.file_base_ids
    own: set[str] = set()
    in_bases: set[tuple[int, str]] = set()
    for position in np.flatnonzero(bases >= 0).tolist():
        in_bases.add((int(bases[position]), f"{DATA_FOLDER}/{data_path(paths[position], manifest.path)}"))
    data = frozenset(paths) if not in_bases else frozenset(compress(paths, (bases < 0).tolist()))
    overlays: set[bytes] = set()
    for base_id, path in _other_files(manifest, fragments):
        if base_id is not None:
            in_bases.add((base_id, path))
        elif path.startswith(f"{DATA_FOLDER}/"):
            overlays.add(path[len(DATA_FOLDER) + 1 :].encode())
        else:
            own.add(path)
    return VersionFiles(data | overlays if overlays else data, frozenset(own), frozenset(in_bases))


def data_path(path: bytes, where: str) -> str:
    """Return the path of a data file below its folder.

    Raises
    ------
    CorruptFileError
        The path is not UTF-8.
    """
    try:
        return path.decode()
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"{where}: the path {path!r} of a data file is not UTF-8 text") from error


def _other_files(manifest: Manifest, fragments: FragmentList) -> Iterator[tuple[int | None, str]]:
    """Yield all files except the data files of fragments, each as base path id and path below it."""
    numbers = fragments.columns
    for position in np.flatnonzero(numbers.has_deletions | numbers.has_overlays):
        yield from _rare_files(fragments[int(position)], manifest.path)
    for index in parse_indices(manifest.index_section):
        uuid = uuid_from_proto(index.uuid, f"{manifest.path}: index {index.name!r}")
        yield index.base_id if index.HasField("base_id") else None, f"{INDICES_FOLDER}/{uuid}"
    if manifest.transaction_file:
        yield None, f"{TRANSACTIONS_FOLDER}/{manifest.transaction_file}"


def _rare_files(fragment: Fragment, where: str) -> Iterator[tuple[int | None, str]]:
    """Yield the deletion file and overlay files of a fragment."""
    deletion = fragment.deletion_file
    if deletion is not None:
        yield deletion.base_id, f"{DELETIONS_FOLDER}/{deletion_name(fragment.id, deletion)}"
    for message in fragment.overlays:
        overlay = parse_message(table_pb2.DataOverlayFile, message, where)
        file = DataFile.from_proto(overlay.data_file)
        yield file.base_id, f"{DATA_FOLDER}/{file.path}"


class FileUsage:
    """Files of one table that a set of versions uses.

    Own files of the versions are matched by path, and files in base paths by name. A base path may be this table under
    another spelling, and names are unique anyway.
    """

    def __init__(self) -> None:
        self._data: set[bytes] = set()
        self._paths: set[str] = set()
        self._names: set[str] = set()

    def add(self, files: VersionFiles) -> None:
        """Add the files of a version of this table."""
        self._data |= files.data
        self._paths |= files.own
        self.add_foreign(files)

    def add_foreign(self, files: VersionFiles) -> None:
        """Add the files that a version of another table, such as a branch, may use of this one."""
        self._names.update(_name(path) for _, path in files.in_bases)

    def uses(self, path: str) -> bool:
        """Return True if a version refers to a file.

        Parameters
        ----------
        path
            Path below the root of the table. A file of an index belongs to the folder of the index. A blob file belongs
            to the data file with the name of its folder.
        """
        return any(self._refers_to(key) or _name(key) in self._names for key in _keys(path))

    def _refers_to(self, path: str) -> bool:
        if path.startswith(f"{DATA_FOLDER}/"):
            return path[len(DATA_FOLDER) + 1 :].encode(errors="surrogateescape") in self._data
        return path in self._paths

    def uses_any(self, files: VersionFiles) -> bool:
        """Return True if a version of a branch has a file of this table's version in its base paths."""
        if not self._names:
            return False
        data = (path.decode(errors="replace") for path in files.data)
        return any(_name(path) in self._names for path in (*files.own, *data))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _keys(path: str) -> tuple[str, ...]:
    """Return the paths by which a manifest may refer to a file."""
    folder, _, rest = path.partition("/")
    if folder == INDICES_FOLDER:
        return (f"{folder}/{rest.partition('/')[0]}",)
    if folder == DATA_FOLDER and path.endswith(_BLOB_SUFFIX):
        return path, path.rpartition("/")[0] + _FILE_SUFFIX
    return (path,)


def detached_versions(store: ObjectStore, root: str) -> list[ManifestName]:
    """Return the detached versions. They are not part of the history, so they never count as old."""
    names = map(parse_manifest_name, store.list_names(f"{root}/{VERSIONS_FOLDER}"))
    return [name for name in names if name is not None and name.naming is Naming.DETACHED]


class VersionUsage(NamedTuple):
    """Facts that a cleanup must know of a version.

    Attributes
    ----------
    version, timestamp_nanos
        See `Manifest`.
    has_inline_transaction
        True if the manifest has the transaction itself.
    files
        The files it refers to.
    """

    version: int
    timestamp_nanos: int
    has_inline_transaction: bool
    files: VersionFiles

    @classmethod
    def read(cls, data: bytes, path: str) -> VersionUsage:
        """Read the content of a manifest file.

        Raises
        ------
        CorruptFileError, UnsupportedError
            The version cannot be read, or has features with files unknown to this release.
        """
        summary = summarized(data, path)
        if summary is None or (folders := _index_folders(summary.index_section)) is None:
            manifest, files = _decoded(data, path).parts
            return cls(manifest.version, manifest.timestamp_nanos, manifest.inline_transaction is not None, files)
        check_writable(summary.writer_flags, path)
        own = [f"{DELETIONS_FOLDER}/{name}" for name in summary.deletion_files]
        if summary.transaction_file:
            own.append(f"{TRANSACTIONS_FOLDER}/{summary.transaction_file}")
        files = VersionFiles(frozenset(summary.data_files), frozenset((*own, *folders)), frozenset())
        return cls(summary.version, summary.timestamp_nanos, summary.has_inline_transaction, files)


@lru_cache(maxsize=16)
def _index_folders(section: bytes | None) -> tuple[str, ...] | None:
    """Return the folders of indices, which most versions share; None if the manifest must be decoded for them."""
    try:
        indices = parse_indices(section)
        if any(index.HasField("base_id") for index in indices):
            return None
        return tuple(f"{INDICES_FOLDER}/{uuid_from_proto(index.uuid, index.name)}" for index in indices)
    except LanceError:  # again with the name of the manifest
        return None


class _Decoded(NamedTuple):
    version: int
    parts: tuple[Manifest, VersionFiles]


def _decoded(data: bytes, path: str) -> _Decoded:
    manifest = decode_manifest(data, path)
    check_writable(manifest.writer_flags, path)
    return _Decoded(manifest.version, (manifest, version_files(manifest)))


def read_usage(store: ObjectStore, root: str, names: Sequence[ManifestName]) -> Iterator[VersionUsage]:
    """Yield the facts that a cleanup must know of versions. Versions removed in the meantime are left out.

    Raises
    ------
    CorruptFileError, UnsupportedError
        A version cannot be read, or has features with files unknown to this release.
    """
    return _read_each(store, root, names, VersionUsage.read)


def read_manifests(
    store: ObjectStore, root: str, names: Sequence[ManifestName]
) -> Iterator[tuple[Manifest, VersionFiles]]:
    """Yield versions and the files they refer to; see `read_usage`."""
    return (read.parts for read in _read_each(store, root, names, _decoded))


_Read = TypeVar("_Read", VersionUsage, _Decoded)


def _read_each(
    store: ObjectStore, root: str, names: Sequence[ManifestName], decode: Callable[[bytes, str], _Read]
) -> Iterator[_Read]:
    def read(name: ManifestName) -> _Read | None:
        try:
            if name.naming is Naming.DETACHED:
                return read_manifest(store, named_path(root, name), decode)
            return read_named(store, root, name, decode)
        except MissingFileError:  # removed by another cleanup
            return None
        except LanceError as error:
            problem = f"the files that version {name.version} needs are not known, so no file can be removed: {error}"
            kind = UnsupportedError if isinstance(error, UnsupportedError) else CorruptFileError
            raise kind(problem) from error

    ahead = _READERS - 1 if store.waits(f"{root}/{VERSIONS_FOLDER}") else 0
    return filter(None, stream(read, names, ahead=ahead, pool=storage_pool, join=True))
