"""Files of blob values beside new data files, and references to objects outside of the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.file.blob_descriptors import blob_name
from lance_dataset.file.blob_writing import BlobOutput, External
from lance_dataset.file.options import BLOB_V2
from lance_dataset.io.base import InputFile, ObjectStore, OutputFile
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.paths import FileLocator, blob_folder
from lance_dataset.types.schema import EXTENSION_NAME

__all__ = ["BlobPolicy", "ExternalMode", "check_external_mode", "with_checked_references"]

#: What a writer does with references to external objects.
ExternalMode: TypeAlias = Literal["reference", "ingest"]
_MODES = ("reference", "ingest")


def check_external_mode(mode: str) -> None:
    """Raise InvalidInputError unless `mode` is an `ExternalMode`."""
    if mode not in _MODES:
        raise InvalidInputError(f"Invalid external blob mode: {mode}; use 'reference' or 'ingest'")


@dataclass(frozen=True)
class BlobPolicy:
    """Rules for values of blob columns that are not stored in data files.

    Attributes
    ----------
    locator
        Locator of the files of the table, with its base paths.
    external_mode
        ``reference`` keeps references to external objects, ``ingest`` copies their bytes.
    outside_bases
        True if references may lead anywhere; otherwise only to base paths that are not roots of tables.
    pack_threshold
        Maximum size of a file with several values; None for that of each column.
    """

    locator: FileLocator
    external_mode: ExternalMode = "reference"
    outside_bases: bool = True
    pack_threshold: int | None = None

    def beside(self, store: ObjectStore, path: str) -> BlobOutput:
        """Return the place of the values of the data file at a path."""
        return _Beside(self, store, blob_folder(path))


@dataclass(frozen=True)
class _Beside:
    policy: BlobPolicy
    store: ObjectStore
    folder: str

    @property
    def pack_threshold(self) -> int | None:
        return self.policy.pack_threshold

    def open_side(self, number: int) -> OutputFile:
        return self.store.open_output(f"{self.folder}/{blob_name(number)}")

    def reference(self, uri: str, where: str) -> External | None:
        if self.policy.external_mode == "ingest":
            return None
        found = self.policy.locator.base_of(uri)
        if found is not None:
            return External(*found)
        if "://" not in uri:
            raise InvalidInputError(
                f"{where}: External URI {uri!r} is outside registered external bases and is not a valid absolute URI"
            )
        if not self.policy.outside_bases:
            raise InvalidInputError(
                f"{where}: External blob URI {uri!r} is outside registered external bases (dataset root is not "
                "allowed). Set allow_external_blob_outside_bases=True to store it as absolute external URI, or "
                "external_blob_mode='ingest' to store its bytes"
            )
        return External(0, uri)

    def fetch(self, uri: str) -> InputFile:
        store, path = self.policy.locator.external_object(uri)
        return store.open_input(path)

    def remove(self) -> None:
        self.store.delete_tree(self.folder)


def with_checked_references(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], locator: FileLocator
) -> Iterator[pa.RecordBatch]:
    """Return new data as a stream that refuses references to objects outside of the base paths of a table.

    Parameters
    ----------
    schema, batches
        The data.
    locator
        Locator of the files of the table.

    Returns
    -------
    iterator of pyarrow.RecordBatch
        The same object if the data has no blob columns.

    Raises
    ------
    InvalidInputError
        While reading: a reference leads elsewhere. The message names the column.
    """
    if not any(map(_holds_blobs, schema)):
        return batches
    return (_with_checked(batch, schema, locator) for batch in batches)


def _with_checked(batch: pa.RecordBatch, schema: pa.Schema, locator: FileLocator) -> pa.RecordBatch:
    for number, field in enumerate(schema):
        for uri in _references(batch.column(number), field):
            if locator.base_of(uri) is None:
                raise InvalidInputError(
                    f"External blob URI {uri!r} in field {field.name!r} is outside registered external bases (dataset "
                    "root is not allowed); append it with allow_external_blob_outside_bases=True, or pass its bytes"
                )
    return batch


def _is_blob(field: pa.Field) -> bool:
    if isinstance(field.type, pa.BaseExtensionType):
        return bool(field.type.extension_name.encode() == BLOB_V2)
    return bool((field.metadata or {}).get(EXTENSION_NAME.encode()) == BLOB_V2)


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(number) for number in range(kind.num_fields)] if pa.types.is_nested(kind) else []


def _holds_blobs(field: pa.Field) -> bool:
    return _is_blob(field) or any(map(_holds_blobs, _children(field.type)))


def _references(array: pa.Array, field: pa.Field) -> Iterator[str]:
    """Yield the URIs of references at any depth, each once."""
    if _is_blob(field):
        storage = array.storage if isinstance(array, pa.ExtensionArray) else array
        if storage.type.get_field_index("uri") >= 0:
            yield from storage.field("uri").drop_null().unique().to_pylist()
    elif pa.types.is_struct(field.type):
        for number, child in enumerate(field.type):
            yield from _references(array.field(number), child)
    elif _holds_blobs(field) and (pa.types.is_list(field.type) or pa.types.is_large_list(field.type)):
        yield from _references(array.flatten(), field.type.value_field)
