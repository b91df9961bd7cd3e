"""Copies of the files of a version in another table."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lance_dataset._proto import table_pb2
from lance_dataset.errors import AlreadyExistsError, CorruptFileError, LanceError
from lance_dataset.file.options import is_blob_v2
from lance_dataset.file.reader import open_metadata
from lance_dataset.io.base import InputFile, ObjectStore, safe_join
from lance_dataset.io.guarded import plain_store
from lance_dataset.table.fragment import DataFile, DeletionFile
from lance_dataset.table.index_metadata import uuid_from_proto
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import FileLocator, is_in_memory
from lance_dataset.threads.progress import Progress
from lance_dataset.threads.waiting import map_waiting

__all__ = ["FileCopy", "copy_files", "files_of", "remove_copies"]

_log = logging.getLogger(__name__)
_BLOB_SUFFIX = ".blob"
_STEP = 8 << 20
_WORKERS = 8


@dataclass(frozen=True)
class FileCopy:
    """A file to be copied.

    Attributes
    ----------
    source, source_path
        Source location.
    target, target_path
        Target location.
    size
        Expected size, or None if it is not recorded.
    is_data
        True for a data file, which must be a Lance file: its name is chosen by the manifest.
    """

    source: ObjectStore
    source_path: str
    target: ObjectStore
    target_path: str
    size: int | None = None
    is_data: bool = False


def files_of(locator: FileLocator, manifest: Manifest, target: ObjectStore, root: str) -> list[FileCopy]:
    """Return all files that a version refers to, with their locations in a separate table.

    Parameters
    ----------
    locator
        Finds the files of the version.
    manifest
        The version.
    target, root
        The other table.

    Raises
    ------
    CorruptFileError
        Two files of different base paths would get the same location.
    """
    there = FileLocator(target, root)
    has_blob_files = any(is_blob_v2(node) for node in manifest.schema.walk())
    found: dict[str, FileCopy] = {}
    for copy in _files(locator, there, manifest, has_blob_files):
        known = found.setdefault(copy.target_path, copy)
        if (known.source.uri(known.source_path)) != copy.source.uri(copy.source_path):
            raise CorruptFileError(
                f"{known.source.uri(known.source_path)} and {copy.source.uri(copy.source_path)} are files of one "
                "version with the same name; they cannot be copied to the same place"
            )
    return list(found.values())


def _files(locator: FileLocator, there: FileLocator, manifest: Manifest, has_blob_files: bool) -> Iterator[FileCopy]:
    for fragment in manifest.fragments:
        overlays = (table_pb2.DataOverlayFile.FromString(overlay).data_file for overlay in fragment.overlays)
        for file in (*fragment.files, *map(DataFile.from_proto, overlays)):
            yield _data_file(locator, there, file)
            if has_blob_files:
                yield from _blob_files(locator, there, file)
        if fragment.deletion_file is not None:
            yield _deletion_file(locator, there, fragment.id, fragment.deletion_file)
    for index in parse_indices(manifest.index_section):
        yield from _index_files(locator, there, index)


def _data_file(locator: FileLocator, there: FileLocator, file: DataFile) -> FileCopy:
    home = DataFile(file.path, (), (), file.file_major_version, file.file_minor_version)
    return FileCopy(*locator.data_file(file), *there.data_file(home), file.file_size_bytes or None, is_data=True)


def _blob_files(locator: FileLocator, there: FileLocator, file: DataFile) -> Iterator[FileCopy]:
    """Yield the files with the large values of a data file, which are in a folder with its name."""
    store, path = locator.data_file(file)
    copy = _data_file(locator, there, file)
    folder, target = path.rpartition(".")[0], copy.target_path.rpartition(".")[0]
    for info in store.list_tree(folder):
        if not info.name.endswith(_BLOB_SUFFIX):
            continue
        inner = safe_join(target, info.path[len(folder) + 1 :], what="blob file")
        yield FileCopy(store, info.path, copy.target, inner, info.size)


def _deletion_file(locator: FileLocator, there: FileLocator, fragment_id: int, file: DeletionFile) -> FileCopy:
    home = DeletionFile(file.file_type, file.read_version, file.id)
    return FileCopy(*locator.deletion_file(fragment_id, file), *there.deletion_file(fragment_id, home))


def _index_files(locator: FileLocator, there: FileLocator, index: table_pb2.IndexMetadata) -> Iterator[FileCopy]:
    """Yield the files in the folder of an index and those that its entry lists. System indices may have no files."""
    name = uuid_from_proto(index.uuid, f"index {index.name!r}")
    store, folder = locator.index_folder(name, index.base_id if index.HasField("base_id") else None)
    target, home = there.index_folder(name, None)
    sizes: dict[str, int | None] = {info.path[len(folder) + 1 :]: info.size for info in store.list_tree(folder)}
    sizes.update({file.path: file.size_bytes or None for file in index.files})
    for path, size in sizes.items():
        source = safe_join(folder, path, what="index file")
        yield FileCopy(store, source, target, safe_join(home, path, what="index file"), size)


def copy_files(copies: Sequence[FileCopy], made: list[FileCopy], progress: Progress | None = None) -> None:
    """Copy files, several at a time. When this returns, they are durable.

    Parameters
    ----------
    copies
        The files.
    made
        Receives every copy that was begun.
    progress
        Is told of each file.

    Raises
    ------
    MissingFileError
        A file is gone.
    CorruptFileError
        A file does not have the expected size, or a data file is not a Lance file.
    UnsafePathError
        A file is a link below the root of its table, or lies behind one.
    """
    if progress is not None:
        progress.expect(len(copies))

    def run(copy: FileCopy) -> None:
        made.append(copy)
        _copy(copy)
        if progress is not None:
            progress.advance()

    # No copy may continue or begin once the caller removes what was made.
    map_waiting(run, copies, workers=_WORKERS, stop_at_error=True)


def _copy(copy: FileCopy) -> None:
    source = copy.source.open_own(copy.source_path, copy.size)
    try:
        if copy.is_data:
            open_metadata(source)
        if _is_same(copy.source, copy.target, copy.source_path):
            copy.target.copy(copy.source_path, copy.target_path, copy.source)
        else:
            _stream(source, copy.target, copy.target_path)
        size = source.size
    finally:
        source.close()
    made = copy.target.open_input(copy.target_path)
    try:
        if made.size != size:
            raise CorruptFileError(
                f"{copy.target.uri(copy.target_path)}: the copy has {made.size} bytes, but the original has {size}; "
                "clone again"
            )
    finally:
        made.close()


def _is_same(first: ObjectStore, second: ObjectStore, path: str) -> bool:
    """Return True if a path means the same object in two stores. URIs of memory in different sessions look alike."""
    first, second = plain_store(first), plain_store(second)
    if first is second:
        return True
    return not is_in_memory(first) and type(first) is type(second) and first.uri(path) == second.uri(path)


def _stream(source: InputFile, target: ObjectStore, path: str) -> None:
    try:
        output = target.open_output(path)
    except AlreadyExistsError:  # left by an interrupted clone; no table uses it
        target.delete(path)
        output = target.open_output(path)
    try:
        for offset in range(0, source.size, _STEP):
            length = min(_STEP, source.size - offset)
            output.write(source.read(offset, length))
            source.discard(offset, length)
        output.close()
    except BaseException:
        output.abort()
        raise


def remove_copies(copies: Iterable[FileCopy]) -> None:
    """Remove copies. Failures only leave files behind."""
    for copy in copies:
        try:
            copy.target.delete(copy.target_path)
        except (LanceError, OSError) as error:
            _log.debug("copy %s not removed: %s", copy.target.uri(copy.target_path), error)
