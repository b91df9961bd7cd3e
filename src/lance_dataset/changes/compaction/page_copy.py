"""Data files made of copied pages of other files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from lance_dataset._proto import encodings21_pb2, encodings23_pb2, encodings_pb2, file2_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.container import ContainerWriter, FileMetadata, PageMetadata, pack_any
from lance_dataset.file.families import family_of
from lance_dataset.file.options import is_blob, is_blob_v2
from lance_dataset.file.structural.layout import Layer
from lance_dataset.file.summary import DataFileSummary
from lance_dataset.file.versions import manifest_pair
from lance_dataset.io.base import InputFile, OutputFile
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.table.fragment import LEGACY_VERSION
from lance_dataset.table.messages import parse_message
from lance_dataset.types.schema import Schema

__all__ = ["copy_pages", "why_not_copied"]

#: Buffers that lie closer together than this number of bytes are copied together with the gap between them.
_GAP = 4 << 10
_FIRST_VERSION = "2.0"
_LEVEL_LAYOUT = encodings21_pb2.PageLayout.DESCRIPTOR.full_name
_PLANAR_LAYOUT = encodings23_pb2.PlanarLayout.DESCRIPTOR.full_name
_ITEMS = (Layer.ALL_VALID_ITEM, Layer.NULLABLE_ITEM)


def why_not_copied(fragments: Sequence[FragmentReader], schema: Schema, version: str) -> str | None:
    """Return the reason that the pages of fragments cannot be copied to new files, in words; None if they can.

    Parameters
    ----------
    fragments
        Fragments whose rows are copied.
    schema
        Schema of the table.
    version
        File version of the new files.
    """
    if version == LEGACY_VERSION:
        return "files of version 0.1 do not have pages to copy"
    blob = next((node for node in schema.walk() if is_blob(node) or is_blob_v2(node)), None)
    if blob is not None:
        return f"values of the blob column {blob.name!r} lie outside of pages"
    for reader in fragments:
        reason = _why_not(reader, schema, version)
        if reason is not None:
            return f"fragment {reader.fragment.id} {reason}"
    return _why_not_together(fragments, schema, version)


def _why_not(reader: FragmentReader, schema: Schema, version: str) -> str | None:
    fragment = reader.fragment
    if fragment.deletion_file is not None:
        return "has deleted rows"
    if fragment.overlays:
        return "has data overlay files"
    for field_id, _ in family_of(version).column_indices(schema):
        stored = reader.stored(field_id)
        if stored is None:
            name = next(node.name for node in schema.walk() if node.id == field_id)
            return f"does not store the column {name!r}"
        file, index = stored
        if not isinstance(file, FileMetadata) or file.version != version:
            return f"has a file of version {file.version}, but {version} must be written"
        if file.column(index).buffers or file.column(index).kind != "values":
            return f"has a column with buffers outside of its pages in {file.source.path!r}"
    return None


def _why_not_together(fragments: Sequence[FragmentReader], schema: Schema, version: str) -> str | None:
    """Return the reason that pages, each of which can be copied, cannot be in one file; None if they can.

    Pages store nulls of structs only if there are any. The reference cannot read a column with a list below a struct
    if its pages differ in that: "Incorrect number of nulls for StructArray".
    """
    for field_id, _ in family_of(version).column_indices(schema):
        noted = set()
        for file, index in filter(None, (reader.stored(field_id) for reader in fragments)):
            if isinstance(file, FileMetadata):
                where = file.source.path
                noted |= {
                    _structs_above_lists(_layers(page, where))
                    for page in file.column(index).pages
                    if page.type_name in (_LEVEL_LAYOUT, _PLANAR_LAYOUT)
                }
        if len(noted) > 1:
            name = next(node.name for node in schema.walk() if node.id == field_id)
            return f"only some pages of the column {name!r} store nulls of structs above its lists"
    return None


def _layers(page: PageMetadata, where: str) -> Sequence[int]:
    """Return the layers of a page, innermost first; empty for pages that describe them in another way."""
    if page.type_name == _PLANAR_LAYOUT:
        return parse_message(encodings23_pb2.PlanarLayout, page.encoding, where).structure.dense.layers
    layout = parse_message(encodings21_pb2.PageLayout, page.encoding, where)
    kind = layout.WhichOneof("layout")
    return [] if kind is None else getattr(layout, kind).layers


def _structs_above_lists(layers: Sequence[int]) -> tuple[int, ...]:
    """Return the layers of structs that have a list below them."""
    first = next((place for place, layer in enumerate(layers) if layer not in _ITEMS), len(layers))
    return tuple([layer for layer in layers[first:] if layer in _ITEMS])


def copy_pages(
    fragments: Sequence[FragmentReader], schema: Schema, version: str, output: OutputFile, most_bytes: int
) -> DataFileSummary:
    """Write a data file that holds the pages of fragments one after another.

    Parameters
    ----------
    fragments
        Fragments for which `why_not_copied` returns None.
    schema, version
        Schema and version of the new file.
    output
        The new file, which is left open.
    most_bytes
        Maximum number of bytes to hold in memory.

    Raises
    ------
    CorruptFileError
        A file does not have the rows that it should have.
    """
    container = ContainerWriter(output, version)
    indices = family_of(version).column_indices(schema)
    columns = [file2_pb2.ColumnMetadata(encoding=pack_any(encodings_pb2.ColumnEncoding(values={}))) for _ in indices]
    num_rows = 0
    for reader in fragments:
        found = [reader.stored(field_id) for field_id, _ in indices]
        stored = [(file, index) for file, index in filter(None, found) if isinstance(file, FileMetadata)]
        moves = {
            id(file): _copied(container, file, [index for other, index in stored if other is file], most_bytes)
            for file in {id(file): file for file, _ in stored}.values()
        }
        for column, (file, index) in zip(columns, stored, strict=True):
            if file.num_rows != reader.physical_rows:
                raise CorruptFileError(
                    f"{file.source.path}: has {file.num_rows} rows, but its fragment {reader.fragment.id} should have "
                    f"{reader.physical_rows}"
                )
            _append(column, file.stored_column(index), moves[id(file)], num_rows, version)
        num_rows += reader.physical_rows
    container.write_aligned([b""], 0)  # the reference requires an aligned descriptor
    size = container.finish(schema, num_rows, [column.SerializeToString() for column in columns])
    fields, numbers = zip(*indices, strict=True) if indices else ((), ())
    return DataFileSummary(num_rows, size, tuple(fields), tuple(numbers), *manifest_pair(version))


def _append(
    column: file2_pb2.ColumnMetadata,
    stored: file2_pb2.ColumnMetadata,
    moves: dict[tuple[int, int], int],
    rows_before: int,
    version: str,
) -> None:
    for page in stored.pages:
        if version == _FIRST_VERSION and not page.buffer_sizes and column.pages:
            last = column.pages[-1]
            if not last.buffer_sizes and last.encoding == page.encoding:  # readers require structs to have one page
                last.length += page.length
                continue
        added = column.pages.add(length=page.length, priority=page.priority + rows_before, encoding=page.encoding)
        added.buffer_sizes.extend(page.buffer_sizes)
        added.buffer_offsets.extend(moves[place] for place in zip(page.buffer_offsets, page.buffer_sizes, strict=True))


def _copied(
    container: ContainerWriter, file: FileMetadata, columns: Sequence[int], most_bytes: int
) -> dict[tuple[int, int], int]:
    """Copy the buffers of some columns; return their new positions by their old (position, size)."""
    buffers = sorted({buffer for index in columns for page in file.column(index).pages for buffer in page.buffers})
    places: dict[tuple[int, int], int] = {}
    for start, stop in _joined(buffers):
        moved = _copy(container, file.source, start, stop, most_bytes) - start
        places |= {(at, size): at + moved for at, size in buffers if start <= at and at + size <= stop}
    return places


def _joined(buffers: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield ranges that cover all buffers; buffers that lie close together share a range."""
    if not buffers:
        return
    start, stop = buffers[0][0], buffers[0][0]
    for at, size in buffers:
        if at > stop + _GAP:
            yield start, stop
            start, stop = at, at
        stop = max(stop, at + size)
    yield start, stop


def _copy(container: ContainerWriter, source: InputFile, start: int, stop: int, most_bytes: int) -> int:
    """Copy a range in pieces and return its new start."""
    cuts = [*range(start, stop, max(most_bytes, 1)), stop] if stop > start else [start, start]
    begin = None
    for low, high in pairwise(cuts):
        at = container.write_aligned([source.read(low, high - low)], low)
        source.discard(low, high - low)
        begin = at if begin is None else begin
    return start if begin is None else begin
