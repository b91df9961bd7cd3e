"""Dictionaries of legacy (0.1) fragments that are about to be committed.

A legacy table has one array of values per dictionary field, in its manifest. Each data file also contains a copy of the
dictionaries that it was written with. They are read from there if only the fragments are available.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from lance_dataset.errors import SchemaError
from lance_dataset.file.legacy import LegacyFile, empty_as_null
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import FileLocator
from lance_dataset.types.schema import Field, Schema

__all__ = [
    "check_dictionaries",
    "check_dictionaries_kept",
    "is_extension",
    "replaced_fields",
    "with_file_dictionaries",
    "without_dictionaries",
]


def with_file_dictionaries(
    schema: Schema, fragments: Sequence[Fragment], locator: FileLocator, manifest: Manifest | None
) -> Schema:
    """Return the schema of a legacy overwrite with the dictionaries of the new files.

    Parameters
    ----------
    schema
        Schema of the new version.
    fragments
        All its fragments.
    locator
        Finds their files.
    manifest
        The version that is overwritten, if any.

    Returns
    -------
    Schema
        The unchanged schema if the table is not a legacy one or has no dictionary fields.

    Raises
    ------
    SchemaError
        Files were written with different dictionaries.
    """
    if not _dictionary_fields(schema):
        return schema
    found: dict[int, tuple[pa.Array, str]] = {}
    for file, held in _file_dictionaries(fragments, locator):
        for field_id, values in held.items():
            longest, path = found.get(field_id, (values, file.path))
            if not is_extension(longest, values) and not is_extension(values, longest):
                raise SchemaError(
                    f"field {field_id}: the data files {path!r} and {file.path!r} were written with different "
                    "dictionaries, but a legacy (0.1) table has one per field; write all data in one call, or append "
                    "it, or use a later data_storage_version"
                )
            found[field_id] = (longest, path) if len(longest) >= len(values) else (values, file.path)
    stays_legacy = manifest is not None and manifest.storage_version == LEGACY_VERSION and not fragments
    return schema if not (found or stays_legacy) else _filled(schema, {key: value for key, (value, _) in found.items()})


def check_dictionaries(schema: Schema, fragments: Sequence[Fragment], locator: FileLocator) -> None:
    """Check that legacy fragments to append use the dictionaries of the table.

    Parameters
    ----------
    schema
        Schema of the table, with its dictionaries.
    fragments
        The new fragments.
    locator
        Finds their files.

    Raises
    ------
    SchemaError
        A file was written with another dictionary.
    """
    known = _dictionary_fields(schema)
    if not known:
        return
    for file, held in _file_dictionaries(fragments, locator):
        for field_id, values in held.items():
            field = known.get(field_id)
            if field is not None and not is_extension(field.dictionary_values, values):
                raise SchemaError(
                    f"column {field.name!r}: data file {file.path!r} was written with another dictionary than that of "
                    "the table, which cannot change in a legacy (0.1) table; write the fragments in mode 'append'"
                )


def check_dictionaries_kept(before: Schema, after: Schema) -> None:
    """Raise an error if a legacy table would need new dictionary values. Those in its manifest apply to all its files.

    Parameters
    ----------
    before, after
        Schema of the table, and schema of the new files.

    Raises
    ------
    SchemaError
        A dictionary would change. The message names the column.
    """
    for old, new in zip(before.walk(), after.walk(), strict=True):
        if new.dictionary_values is not None and not is_extension(old.dictionary_values, new.dictionary_values):
            raise SchemaError(
                f"column {old.name!r}: its rows need dictionary values that the legacy (0.1) table does not have; "
                "compact the dataset with data_storage_version='2.0' or later"
            )


def is_extension(longer: pa.Array | None, values: pa.Array | None) -> bool:
    """Return True if a dictionary starts with the values of another, so that indices into that one fit both."""
    if longer is None or values is None:
        return longer is values
    if longer.type != values.type or len(longer) < len(values):
        return False
    return empty_as_null(longer.slice(0, len(values))).equals(empty_as_null(values))


def without_dictionaries(schema: Schema) -> Schema:
    """Return the schema with its dictionaries cleared, to be determined later."""

    def cleared(node: Field) -> Field:
        return replace(node, children=tuple(cleared(child) for child in node.children), dictionary_values=None)

    return Schema(tuple(cleared(top) for top in schema.fields), schema.metadata)


def replaced_fields(schema: Schema, written: Schema) -> Schema:
    """Return the schema with the written top-level fields, including dictionaries, in place of its own."""
    by_id = {top.id: top for top in written.fields}
    return Schema(tuple(by_id.get(top.id, top) for top in schema.fields), schema.metadata)


def _dictionary_fields(schema: Schema) -> dict[int, Field]:
    return {node.id: node for node in schema.walk() if pa.types.is_dictionary(node.storage_type)}


def _file_dictionaries(
    fragments: Sequence[Fragment], locator: FileLocator
) -> Iterator[tuple[DataFile, dict[int, pa.Array]]]:
    """Yield each legacy file with the values of its dictionaries by field id."""
    for fragment in fragments:
        for file in fragment.files:
            if not file.is_legacy:
                continue
            store, path = locator.data_file(file)
            source = store.open_input(path)  # sizes of legacy files are wrong in manifests of some releases
            try:
                fields = _dictionary_fields(LegacyFile(source, file.fields).schema)
            finally:
                source.close()
            yield file, {field_id: node.dictionary_values for field_id, node in fields.items()}


def _filled(schema: Schema, values: dict[int, pa.Array]) -> Schema:
    """Return the schema with dictionaries, which are empty if no file has the field."""

    def filled(node: Field) -> Field:
        children = tuple(filled(child) for child in node.children)
        if not pa.types.is_dictionary(node.storage_type):
            return replace(node, children=children)
        known = values.get(node.id)
        return replace(node, dictionary_values=pa.array([], node.storage_type.value_type) if known is None else known)

    return Schema(tuple(filled(top) for top in schema.fields), schema.metadata)
