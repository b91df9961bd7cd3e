"""The files of a version, copied into another table."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lance_dataset._proto import table_pb2
from lance_dataset.errors import AlreadyExistsError, CorruptFileError, LanceError
from lance_dataset.file.options import is_blob_v2
from lance_dataset.io.base import InputFile, ObjectStore
from lance_dataset.io.paths import safe_join
from lance_dataset.table.fragment import DataFile, DeletionFile
from lance_dataset.table.indices.coverage import parse_indices
from lance_dataset.table.indices.metadata import uuid_from_proto
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import FileLocator, is_in_memory

__all__ = ["FileCopy", "copy_files", "files_of", "remove_copies"]

_log = logging.getLogger(__name__)
_STEP = 8 << 20
_WORKERS = 8


@dataclass(frozen=True)
class FileCopy:
    """A file to be copied.

    Attributes
    ----------
    source, source_path
        Where it is.
    target, target_path
        Where it goes.
    size
        The size it must have, None where nothing says.
    """

    source: ObjectStore
    source_path: str
    target: ObjectStore
    target_path: str
    size: int | None = None


def files_of(locator: FileLocator, manifest: Manifest, target: ObjectStore, root: str) -> list[FileCopy]:
    """All files that a version refers to, and where a table of its own has them.

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
        Two files of different base paths would have the same place.
    """
    there = FileLocator(target, root)
    has_blob_files = any(is_blob_v2(node) for node in manifest.schema.walk())
    found: dict[str, FileCopy] = {}
    for copy in _files(locator, there, manifest, has_blob_files):
        known = found.setdefault(copy.target_path, copy)
        if (known.source.uri(known.source_path)) != copy.source.uri(copy.source_path):
            raise CorruptFileError(
                f"{known.source.uri(known.source_path)} and {copy.source.uri(copy.source_path)} are files of one "
                "version with the same name; they cannot be copied to one place"
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
    return FileCopy(*locator.data_file(file), *there.data_file(home), file.file_size_bytes or None)


def _blob_files(locator: FileLocator, there: FileLocator, file: DataFile) -> Iterator[FileCopy]:
    """Files with the large values of a data file, in a folder of its name."""
    store, path = locator.data_file(file)
    copy = _data_file(locator, there, file)
    folder, target = path.rpartition(".")[0], copy.target_path.rpartition(".")[0]
    for info in store.list_tree(folder):
        inner = safe_join(target, info.path[len(folder) + 1 :], what="blob file")
        yield FileCopy(store, info.path, copy.target, inner, info.size)


def _deletion_file(locator: FileLocator, there: FileLocator, fragment_id: int, file: DeletionFile) -> FileCopy:
    home = DeletionFile(file.file_type, file.read_version, file.id)
    return FileCopy(*locator.deletion_file(fragment_id, file), *there.deletion_file(fragment_id, home))


def _index_files(locator: FileLocator, there: FileLocator, index: table_pb2.IndexMetadata) -> Iterator[FileCopy]:
    """What the folder of an index holds, and what its entry lists; system indices may have no files."""
    name = uuid_from_proto(index.uuid, f"index {index.name!r}")
    store, folder = locator.index_folder(name, index.base_id if index.HasField("base_id") else None)
    target, home = there.index_folder(name, None)
    sizes: dict[str, int | None] = {info.path[len(folder) + 1 :]: info.size for info in store.list_tree(folder)}
    sizes.update({file.path: file.size_bytes or None for file in index.files})
    for path, size in sizes.items():
        source = safe_join(folder, path, what="index file")
        yield FileCopy(store, source, target, safe_join(home, path, what="index file"), size)


def copy_files(copies: Sequence[FileCopy], made: list[FileCopy]) -> None:
    """Copy files, several at a time; when this returns they are durable.

    Parameters
    ----------
    copies
        The files.
    made
        Gets every copy that was begun.

    Raises
    ------
    MissingFileError
        A file is gone.
    CorruptFileError
        A file does not have the size it must have.
    """

    def run(copy: FileCopy) -> None:
        made.append(copy)
        _copy(copy)

    if len(copies) < 2:
        for copy in copies:
            run(copy)
        return
    pool = ThreadPoolExecutor(min(_WORKERS, len(copies)), thread_name_prefix="lance-clone")
    try:
        for _ in pool.map(run, copies):
            pass
    finally:
        # No copy may go on, or begin, once the caller takes back what was made.
        pool.shutdown(wait=True, cancel_futures=True)


def _copy(copy: FileCopy) -> None:
    source = copy.source.open_input(copy.source_path, copy.size)
    try:
        if _is_same(copy.source, copy.target, copy.source_path):
            copy.target.copy(copy.source_path, copy.target_path)
        else:
            _stream(source, copy.target, copy.target_path)
        size = source.size
    finally:
        source.close()
    made = copy.target.open_input(copy.target_path)
    try:
        if made.size != size:
            raise CorruptFileError(
                f"{copy.target.uri(copy.target_path)}: the copy has {made.size} bytes, the file it was made of {size}; "
                "clone again"
            )
    finally:
        made.close()


def _is_same(first: ObjectStore, second: ObjectStore, path: str) -> bool:
    """Whether a path means the same object in two stores; memory of different sessions is spelled alike."""
    if first is second:
        return True
    return not is_in_memory(first) and type(first) is type(second) and first.uri(path) == second.uri(path)


def _stream(source: InputFile, target: ObjectStore, path: str) -> None:
    try:
        output = target.open_output(path)
    except AlreadyExistsError:  # of a clone that was interrupted; there is no table that could use it
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
    """Remove copies; failures only leave files behind."""
    for copy in copies:
        try:
            copy.target.delete(copy.target_path)
        except (LanceError, OSError) as error:
            _log.debug("copy %s not removed: %s", copy.target.uri(copy.target_path), error)
