"""Building of a report about pages from the columns of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.file.blob_fields import described
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.explain.batches import describe_batches
from lance_dataset.file.explain.facts import Facts
from lance_dataset.file.explain.measure import Measured, leaf_array, measure
from lance_dataset.file.explain.report import Alternative, EncodingReport, PageEncoding
from lance_dataset.file.explain.sparse import describe_sparse
from lance_dataset.file.explain.structural import describe_page
from lance_dataset.file.explain.trees import describe_tree
from lance_dataset.file.families import stored_indices
from lance_dataset.file.options import is_blob
from lance_dataset.file.sizes import size_text
from lance_dataset.file.structural.nesting import Branch, branches
from lance_dataset.file.structural.read.leaf import LeafColumn
from lance_dataset.file.structural.read.page import PageGrammar, open_pages, with_older_pages
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.v0_1.read.open import open_node
from lance_dataset.file.v0_1.spans import Spans
from lance_dataset.file.v2_0.decode import open_values
from lance_dataset.file.v2_1.pages import LEVEL_PAGES
from lance_dataset.file.v2_1.pre import PRE_PAGES
from lance_dataset.file.v2_1.pre.array_pages import file_has_array_pages
from lance_dataset.file.v2_3.layout import SparseLayout
from lance_dataset.file.v2_3.pages import PLANAR_PAGES
from lance_dataset.file.v2_3.pre import PRE_PAGES as EARLIER_PAGES
from lance_dataset.file.zone_gathering import contradicted_row
from lance_dataset.types.schema import Field, Schema

__all__ = ["StoredColumn", "columns_of_file", "explain_columns", "select_columns", "stored_columns"]

_GRAMMARS: dict[str, PageGrammar] = {
    "2.1": with_older_pages(LEVEL_PAGES, PRE_PAGES),
    "2.2": LEVEL_PAGES,
    "2.3": with_older_pages(PLANAR_PAGES, EARLIER_PAGES),
}
_OPTION_PREFIX = "lance-encoding:"


@dataclass(frozen=True)
class StoredColumn:
    """A column of a file.

    Attributes
    ----------
    path
        Dotted path of its field.
    branch
        The field and, from 2.1 on, those above it.
    metadata, index
        Number of the column and the file it belongs to.
    fragment_id
        Fragment of the dataset, None for a single file.
    """

    path: str
    branch: Branch
    metadata: FileMetadata | LegacyFile
    index: int
    fragment_id: int | None = None


def select_columns(schema: Schema, columns: Sequence[str] | None) -> Schema:
    """Return the schema with only the named columns, or with all columns if `columns` is None.

    Raises
    ------
    FieldNotFoundError
        Unknown column.
    InvalidInputError
        `columns` is a string instead of a list.
    """
    if isinstance(columns, str):
        raise InvalidInputError(f"columns must be a list of names, not the text {columns!r}")
    return schema if columns is None else schema.project(list(columns))


def stored_columns(
    schema: Schema,
    locate: Callable[[int], tuple[FileMetadata | LegacyFile, int] | None],
    fragment_id: int | None = None,
) -> Iterator[StoredColumn]:
    """Yield the columns that hold the fields of a schema; `locate` gives the file and column of a field id."""
    for top in schema.fields:
        leaves = {branch.leaf.id: branch for branch in branches(top)}
        for path, field in _walk(top, ""):
            found = locate(field.id)
            if found is None:
                continue
            metadata, index = found
            if _grammar(metadata) is None:
                yield StoredColumn(path, Branch(field), metadata, index, fragment_id)
            elif field.id in leaves:
                yield StoredColumn(path, leaves[field.id], metadata, index, fragment_id)


def _walk(field: Field, above: str) -> Iterator[tuple[str, Field]]:
    path = f"{above}{field.name}"
    yield path, field
    for child in field.children:
        yield from _walk(child, f"{path}.")


def columns_of_file(metadata: FileMetadata | LegacyFile, schema: Schema) -> list[StoredColumn]:
    """Return the columns of one file for a schema, which is the schema of the file or a projection of it."""
    owned = dict(stored_indices(metadata))
    return list(stored_columns(schema, lambda field_id: (metadata, owned[field_id]) if field_id in owned else None))


def explain_columns(columns: Iterable[StoredColumn], deep: bool = False) -> EncodingReport:
    """Describe every page of some columns.

    Parameters
    ----------
    deep
        Also decode the values, one page at a time. The report then has nulls, the plain size of all values, and the
        size that other encodings would need. Otherwise only chunk words and chunk headers are read.

    Raises
    ------
    CorruptFileError
        A page contradicts its description.
    UnsupportedError
        A page of version 2.1 or later has an encoding that this release does not know.
    """
    pages: list[PageEncoding] = []
    for column in columns:
        pages.extend(_pages(column, deep))
    return EncodingReport(pages)


# -- file versions -----------------------------------------------------------------------------------------------


def _pages(column: StoredColumn, deep: bool) -> Iterator[PageEncoding]:
    metadata = column.metadata
    if isinstance(metadata, LegacyFile):
        return _batches(column, metadata, deep)
    grammar = _grammar(metadata)
    return _trees(column, metadata, deep) if grammar is None else _structural(column, metadata, grammar, deep)


def _grammar(metadata: FileMetadata | LegacyFile) -> PageGrammar | None:
    """Return the grammar of the pages of a file, None if they are 2.0 encoding trees or legacy batches."""
    if isinstance(metadata, LegacyFile) or file_has_array_pages(metadata):
        return None
    return _GRAMMARS.get(metadata.version)


def _batches(column: StoredColumn, file: LegacyFile, deep: bool) -> Iterator[PageEncoding]:
    field = column.branch.leaf
    where = f"{file.source.path}, column {field.name!r}"
    node = open_node(field, file.pages, where) if deep and _has_values(field) else None
    start = 0
    for number, facts in enumerate(describe_batches(file, field, where)):
        measured = None
        if node is not None and facts.values:
            batch, first, count = (np.array([value]) for value in (number, 0, facts.values))
            page = Spans(batch, first, count, facts.values, is_range=True)
            measured = measure([node.read(page)])
        yield _page(column, number, start, facts.values, facts, measured)
        start += facts.values


def _has_values(field: Field) -> bool:
    """Return whether a node of a legacy file has values of its own, not only the structure of its children."""
    return field.logical_type.removesuffix(".struct") not in ("list", "large_list", "struct")


def _structural(
    column: StoredColumn, metadata: FileMetadata, grammar: PageGrammar, deep: bool
) -> Iterator[PageEncoding]:
    stored = metadata.column(column.index)
    branch = column.branch
    place = f"{metadata.source.path}, column {stored.index} ({branch.leaf.name!r})"
    pages = open_pages(metadata.source, stored, place, branch.rows_per_value, grammar)
    numbers = [number for number, page in enumerate(stored.pages) if page.length]
    values = Branch(described(branch.leaf), branch.above) if is_blob(branch.leaf) else branch
    for number, page in zip(numbers, pages, strict=True):
        sparse = isinstance(page.layout, SparseLayout)
        facts = describe_sparse(page, page.layout, branch) if sparse else describe_page(page, branch)
        measured = None
        if deep:
            alone = LeafColumn([replace(page, start=0)], values, column.path, grammar.open_page)
            arrays = [leaf_array(piece, branch) for piece in alone.read_chunks(0, page.length)]
            _check_bounds(column, metadata, arrays, page.start)
            measured = _blob_sizes(arrays) if is_blob(branch.leaf) else measure(arrays)
        yield _page(column, number, page.start, page.length, facts, measured)


def _check_bounds(column: StoredColumn, metadata: FileMetadata, arrays: Sequence[pa.Array], start: int) -> None:
    """Raise CorruptFileError if values of a page contradict the bounds that the file has for them."""
    bounds = None if column.branch.above else metadata.bounds(column.index)
    if bounds is None or not arrays or bounds.zones(arrays[0].type) is None:
        return
    for array in arrays:
        row = contradicted_row(bounds, array, start)
        if row is not None:
            raise CorruptFileError(
                f"{metadata.source.path}, column {column.index} ({column.branch.leaf.name!r}): values behind row {row} "
                "contradict their bounds, so filters may miss rows; write the column again"
            )
        start += len(array)


def _blob_sizes(descriptions: Sequence[pa.Array]) -> Measured:
    """Measure the values of blobs, which lie outside the page."""
    nulls = sum(array.null_count for array in descriptions)
    size = sum(pc.sum(array.field("size")).as_py() or 0 for array in descriptions)
    return Measured(nulls, None, (), f"the values have {size_text(size)}")


def _trees(column: StoredColumn, metadata: FileMetadata, deep: bool) -> Iterator[PageEncoding]:
    field = column.branch.leaf
    stored = metadata.column(column.index)
    start = 0
    for number, page in enumerate(stored.pages):
        where = f"{metadata.source.path}, column {column.index} ({field.name!r}), page {number}"
        facts = describe_tree(page, field, where)
        measured = _measure_tree(column, metadata, start, page.length) if deep and page.length else None
        yield _page(column, number, start, page.length, facts, measured)
        start += page.length


def _measure_tree(column: StoredColumn, metadata: FileMetadata, start: int, length: int) -> Measured | None:
    """Decode and measure a page, None if its column has no values of its own but only the structure of its children."""
    field = column.branch.leaf
    blob = metadata.column(column.index).kind == "blob"
    try:
        reader = open_values(described(field) if blob else field, metadata, column.index)
    except UnsupportedError:  # describe_tree already reports it
        return None
    if reader is None:
        return None
    array = reader.read(start, start + length)
    # a field that is not marked as a blob reads as its values
    return _blob_sizes([array]) if blob and pa.types.is_struct(array.type) else measure([array])


# -- one page ----------------------------------------------------------------------------------------------------


def _page(
    column: StoredColumn, number: int, start: int, rows: int, facts: Facts, measured: Measured | None
) -> PageEncoding:
    plain = facts.plain_bytes if measured is None else measured.plain_bytes
    others = _alternatives(facts, plain, measured)
    return PageEncoding(
        column=column.path,
        column_index=column.index,
        page=number,
        type=str(column.branch.leaf.storage_type),
        first_row=start,
        rows=rows,
        layout=facts.layout,
        encoding=facts.encoding,
        values=facts.values,
        buffers=facts.buffers,
        levels=facts.levels,
        dictionary_entries=facts.dictionary_entries,
        chunks=facts.chunks,
        value_bytes=facts.value_bytes,
        level_bytes=facts.level_bytes,
        plain_bytes=plain,
        bit_widths=facts.bit_widths,
        nulls=None if measured is None else measured.nulls,
        alternatives=others,
        reason=_reason(facts, measured, others, column.branch.leaf),
        fragment_id=column.fragment_id,
        file=column.metadata.source.path,
    )


def _alternatives(facts: Facts, plain: int | None, measured: Measured | None) -> tuple[Alternative, ...]:
    chosen = _chosen_name(facts)
    if facts.layout.endswith("all null") or facts.encoding == "null":
        return ()
    if measured is not None:
        return tuple(other for other in measured.alternatives if other.name != chosen)
    return () if facts.is_plain or plain is None else (Alternative("plain", plain),)


def _chosen_name(facts: Facts) -> str:
    """Return the name that `measure` uses for the chosen encoding."""
    if facts.is_plain:
        return "plain"
    return "dictionary" if facts.dictionary_entries is not None else facts.encoding.split("(")[0].rstrip(" 0123456789")


def _reason(facts: Facts, measured: Measured | None, others: tuple[Alternative, ...], field: Field) -> str:
    parts = [facts.why]
    if facts.level_bytes and facts.values:
        parts.append(f"nulls and lists {size_text(facts.level_bytes)}")
    if measured is not None and measured.note:
        parts.append(measured.note)
    if measured is not None and others and facts.values:
        sizes = ", ".join(f"{other.name} {size_text(other.size)}" for other in others)
        parts.append(f"estimates for others: {sizes}")
    options = [
        f"{key.removeprefix(_OPTION_PREFIX)}={value.decode(errors='replace')}"
        for key, value in sorted(field.metadata.items())
        if key.startswith(_OPTION_PREFIX)
    ]
    if options:
        parts.append(f"field metadata asks for {', '.join(options)}")
    return "; ".join(parts)
