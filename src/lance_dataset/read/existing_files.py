"""Metadata of existing data files, written by any writer, that are to be added to a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError, nearest_name_hint
from lance_dataset.file.families import stored_indices
from lance_dataset.file.legacy import LegacyFile
from lance_dataset.file.reader import DataFile as OpenFile
from lance_dataset.file.reader import open_metadata
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.append_schema import check_append_schema
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import DataReplacement
from lance_dataset.table.paths import FileLocator
from lance_dataset.types.schema import Field

__all__ = ["check_replacements", "existing_data_file", "existing_fragment"]


def existing_data_file(snapshot: Snapshot, path: str, base_id: int | None = None) -> DataFile:
    """Describe a data file whose columns are matched with those of a dataset by name.

    Parameters
    ----------
    snapshot
        Open version of the dataset.
    path
        Path of the file, relative to the data folder of the dataset or of a base path.
    base_id
        Id of the base path; None for the dataset itself.

    Raises
    ------
    SchemaError
        The dataset does not have a column of the file, or has it with another type or other child fields.
    UnsupportedError
        A legacy (0.1) file has other field ids than the dataset, so its columns cannot be matched.
    InvalidInputError
        The base path does not exist.
    MissingFileError, CorruptFileError
        The file does not exist, or is not a data file.
    """
    return _described(snapshot, path, base_id)[0]


def existing_fragment(snapshot: Snapshot, path: str, fragment_id: int) -> Fragment:
    """Describe a fragment made of one data file. Nullable columns that it lacks are null.

    Errors are those of `existing_data_file`.
    """
    file, opened = _described(snapshot, path, None)
    check_append_schema(opened.schema.storage_arrow, snapshot.manifest.schema)
    return Fragment(id=fragment_id, files=(file,), physical_rows=opened.num_rows)


def _described(snapshot: Snapshot, path: str, base_id: int | None) -> tuple[DataFile, OpenFile]:
    if not isinstance(path, str):
        raise TypeError(f"the path of a data file must be text, not {type(path).__name__}")
    manifest = snapshot.manifest
    if base_id is not None and base_id not in {base.id for base in manifest.base_paths}:
        raise InvalidInputError(f"base path id {base_id} not found in version {manifest.version}")
    store, place = snapshot.reader.locator.data_file(DataFile(path, (), (), 0, 0, base_id=base_id))
    opened = open_metadata(store.open_input(place))
    ids = dict(_matched(opened.schema.fields, manifest.schema.fields, path))
    if isinstance(opened, LegacyFile):
        if any(own != known for own, known in ids.items()):
            raise UnsupportedError(
                f"data file {path!r} has version 0.1, whose columns are identified by field id, and its ids differ "
                "from those of the dataset; write the data again with write_fragments"
            )
        columns = [(field_id, -1) for field_id in sorted(ids)]
    else:
        columns = [(ids[own], index) for own, index in stored_indices(opened)]
    major, minor = _file_version(opened)
    file = DataFile(
        path=path,
        fields=tuple(field_id for field_id, _ in columns),
        column_indices=() if isinstance(opened, LegacyFile) else tuple(index for _, index in columns),
        file_major_version=major,
        file_minor_version=minor,
        file_size_bytes=opened.source.size,
        base_id=base_id,
    )
    return file, opened


def _file_version(opened: OpenFile) -> tuple[int, int]:
    """Return the version of a file as manifests store it."""
    if isinstance(opened, LegacyFile):
        return 0, 2
    major, minor = opened.version.split(".")
    return int(major), int(minor)


def _matched(own: Sequence[Field], known: Sequence[Field], file: str, above: str = "") -> Iterator[tuple[int, int]]:
    """Yield the field ids of a file with the ids of these fields in the dataset."""
    by_name = {field.name: field for field in known}
    for field in own:
        path = f"{above}{field.name}"
        match = by_name.get(field.name)
        if match is None:
            hint = nearest_name_hint(field.name, by_name)
            raise SchemaError(f"data file {file!r}: the file has extra field {path!r}, the dataset does not{hint}")
        if not _is_like(field, match):
            raise SchemaError(
                f"data file {file!r}: field {path!r} is {field.logical_type}, but the dataset has {match.logical_type}"
            )
        missing = {child.name for child in match.children} - {child.name for child in field.children}
        if missing:
            raise SchemaError(f"data file {file!r}: field {path!r} lacks the fields {sorted(missing)} of the dataset")
        yield field.id, match.id
        yield from _matched(field.children, match.children, file, f"{path}.")


def _is_like(own: Field, known: Field) -> bool:
    """Return True if two fields are stored alike. Lists of structs have two logical types."""
    return own.logical_type.removesuffix(".struct") == known.logical_type.removesuffix(".struct")


def check_replacements(manifest: Manifest, locator: FileLocator, operation: DataReplacement) -> None:
    """Check that the new files of a replacement fit their fragments and columns.

    Raises
    ------
    InvalidInputError
        A file has another number of rows than its fragment, or columns of another type.
    MissingFileError, CorruptFileError
        A file does not exist, or is not a data file.
    """
    known = {node.id: node for node in manifest.schema.walk()}
    for fragment_id, file in operation.replacements:
        fragment = manifest.fragment(fragment_id)
        if fragment is None:
            continue  # reported elsewhere
        store, place = locator.data_file(file)
        opened = open_metadata(store.open_input(place), file.fields, legacy=file.is_legacy)
        if fragment.physical_rows and opened.num_rows != fragment.physical_rows:
            raise InvalidInputError(
                f"data file {file.path!r} has {opened.num_rows} rows, fragment {fragment_id} has "
                f"{fragment.physical_rows}, deleted ones included"
            )
        if isinstance(opened, LegacyFile):
            continue
        nodes = {node.id: node for node in opened.schema.walk()}
        stored = {index: nodes[own] for own, index in stored_indices(opened) if own in nodes}
        for field_id, index in file.columns:
            wanted, own = known.get(field_id), stored.get(index)
            if wanted is not None and own is not None and not _is_like(own, wanted):
                raise InvalidInputError(
                    f"data file {file.path!r} has {own.logical_type} in column {index}, but field id {field_id} "
                    f"({wanted.name!r}) is {wanted.logical_type}"
                )
