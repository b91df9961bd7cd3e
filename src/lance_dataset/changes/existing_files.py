"""Data files that exist already, written by whomever: what a table has to know to take them in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError, nearest_name_hint
from lance_dataset.file.families import stored_indices
from lance_dataset.file.reader import DataFile as OpenFile
from lance_dataset.file.reader import open_metadata
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.input import check_append_schema
from lance_dataset.schema import Field
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import DataReplacement
from lance_dataset.table.paths import FileLocator

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["check_replacements", "existing_data_file", "existing_fragment"]


def existing_data_file(dataset: LanceDataset, path: str, base_id: int | None = None) -> DataFile:
    """Describe a data file whose columns a dataset has, by name.

    Parameters
    ----------
    dataset
        The dataset.
    path
        The file, below the data folder of the dataset or of a base path.
    base_id
        The base path, None for the dataset itself.

    Raises
    ------
    SchemaError
        A column that the dataset does not have, has with another type, or with other fields inside.
    UnsupportedError
        A legacy (0.1) file with other field ids than the dataset, which does not say which column is which.
    InvalidInputError
        No such base path.
    MissingFileError, CorruptFileError
        The file is not there, or no data file.
    """
    return _described(dataset, path, base_id)[0]


def existing_fragment(dataset: LanceDataset, path: str, fragment_id: int) -> Fragment:
    """A fragment made of one data file; nullable columns that it lacks are null. Errors as for `existing_data_file`."""
    file, opened = _described(dataset, path, None)
    check_append_schema(opened.schema.storage_arrow, dataset._manifest.schema)
    return Fragment(id=fragment_id, files=(file,), physical_rows=opened.num_rows)


def _described(dataset: LanceDataset, path: str, base_id: int | None) -> tuple[DataFile, OpenFile]:
    if not isinstance(path, str):
        raise TypeError(f"a data file is given by its path as text, not by {type(path).__name__}")
    manifest = dataset._manifest
    if base_id is not None and base_id not in {base.id for base in manifest.base_paths}:
        raise InvalidInputError(f"base path id {base_id} not found in version {manifest.version}")
    store, place = dataset._reader.locator.data_file(DataFile(path, (), (), 0, 0, base_id=base_id))
    opened = open_metadata(store.open_input(place))
    ids = dict(_matched(opened.schema.fields, manifest.schema.fields, path))
    if isinstance(opened, LegacyFile):
        if any(own != known for own, known in ids.items()):
            raise UnsupportedError(
                f"data file {path!r} is of version 0.1, whose columns go by field id, and its ids are not those of the "
                "dataset; write the data again with write_fragments"
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
    """Version of a file as manifests spell it."""
    if isinstance(opened, LegacyFile):
        return 0, 2
    major, minor = opened.version.split(".")
    return int(major), int(minor)


def _matched(own: Sequence[Field], known: Sequence[Field], file: str, above: str = "") -> Iterator[tuple[int, int]]:
    """Field ids of a file and the ids that a dataset gives these fields."""
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
    """Whether two fields are stored alike; lists of structs have two spellings."""
    return own.logical_type.removesuffix(".struct") == known.logical_type.removesuffix(".struct")


def check_replacements(manifest: Manifest, locator: FileLocator, operation: DataReplacement) -> None:
    """Open the new files of a replacement, and see whether they fit the fragments and columns they are for.

    Raises
    ------
    InvalidInputError
        One has another number of rows than its fragment, or columns of another type.
    MissingFileError, CorruptFileError
        One is not there, or no data file.
    """
    known = {node.id: node for node in manifest.schema.walk()}
    for fragment_id, file in operation.replacements:
        fragment = manifest.fragment(fragment_id)
        if fragment is None:
            continue  # others say so
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
