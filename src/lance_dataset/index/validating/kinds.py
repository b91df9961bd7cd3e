"""Content of a segment to check, by the kind of its index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.scalar.json_path import parse_details
from lance_dataset.index.scalar.json_values import JsonPath, values_of_type
from lance_dataset.index.segments import Segment
from lance_dataset.index.validating.boxes import RTreeContent
from lance_dataset.index.validating.keyed_rows import KeyedContent
from lance_dataset.index.validating.ordered_values import BTreeContent
from lance_dataset.index.validating.row_sets import BitmapContent, LabelListContent, NgramContent
from lance_dataset.index.validating.signatures import MinHashContent
from lance_dataset.index.validating.substrings import FmContent
from lance_dataset.index.validating.zones import BloomFilterContent, NullRowsContent, ZonedContent, ZoneMapContent
from lance_dataset.table.indices.changes import holds_addresses
from lance_dataset.table.indices.coverage import kind_of_details

__all__ = ["CHECKED_KINDS", "SegmentContent", "content_of"]

RowsIn = Callable[[int], int]

#: Kinds whose content is compared with the table, keys of `KINDS`.
CHECKED_KINDS: Final = frozenset(
    {"btree", "bitmap", "labellist", "ngram", "zonemap", "bloomfilter", "fm", "rtree", "minhashlsh", "json"}
)
#: Version of the files of releases that index values of JSON documents only if all have the same type.
_FIRST_STRICT: Final = "2.2"


@dataclass(frozen=True)
class SegmentContent:
    """Content of one segment.

    Attributes
    ----------
    kind
        Kind of its files.
    has_addresses
        True if its rows are addresses, also in tables with stable row ids.
    keyed
        What it says of each row.
    zoned
        What it says of zones.
    converted
        Returns the values that it is of for those of the column.
    is_doubtful
        True if `converted` may find out that nothing can be compared, so that it must see all values first.
    """

    kind: str
    has_addresses: bool
    keyed: KeyedContent | None
    zoned: ZonedContent | None
    converted: Callable[[pa.Array], pa.Array] = lambda values: values
    is_doubtful: bool = False


def content_of(segment: Segment, kind: str, rows_in: RowsIn) -> SegmentContent:
    """Open the files of a segment.

    Parameters
    ----------
    segment
        The segment.
    kind
        Kind of the index, one of `CHECKED_KINDS`.
    rows_in
        Returns the number of rows, deleted ones included, of a fragment; 0 if it does not exist.

    Raises
    ------
    CorruptFileError, MissingFileError
        The files contradict the format, or the type of the column.
    UnsupportedError
        This release cannot tell what they should contain.
    """
    details = b"" if segment.metadata.details is None else segment.metadata.details.value
    (field,) = segment.metadata.fields
    column = segment.reader.manifest.schema.by_id[field].storage_type
    if kind == "json":
        return _json_content(segment, details, rows_in)
    found, values = _opened(segment.folder, kind, details, rows_in)
    wanted = column.value_type if kind == "labellist" else column
    if values not in (wanted, None):
        raise CorruptFileError(f"{segment.folder.uri('')}: has values of {values}, but the column has {wanted}")
    return replace(found, has_addresses=holds_addresses(kind, segment.metadata.index_version))


def _opened(
    folder: IndexFolder, kind: str, details: bytes, rows_in: RowsIn
) -> tuple[SegmentContent, pa.DataType | None]:
    """Open files of a kind; return also the type of the values if they state it."""
    keyed: KeyedContent | None = None
    zoned: ZonedContent | None = None
    values: pa.DataType | None = None
    if kind == "btree":
        keyed = btree = BTreeContent(folder)
        values = btree.kind
    elif kind in ("bitmap", "labellist"):
        keyed = sets = (BitmapContent if kind == "bitmap" else LabelListContent)(folder, rows_in)
        values = sets.kind
    elif kind == "zonemap":
        zoned = zones = ZoneMapContent(folder)
        values = zones.kind
    elif kind == "bloomfilter":
        zoned = BloomFilterContent(folder)
    elif kind == "ngram":
        keyed = NgramContent(folder, rows_in)
    elif kind == "fm":
        keyed = FmContent(folder)
    elif kind == "rtree":
        keyed = RTreeContent(folder, rows_in)
    else:
        keyed = MinHashContent(folder, details)
    if zoned is not None and NullRowsContent.is_in(zoned.table):
        keyed = NullRowsContent(zoned.table, rows_in)
    return SegmentContent(kind, True, keyed, zoned), values


def _json_content(segment: Segment, details: bytes, rows_in: RowsIn) -> SegmentContent:
    message = parse_details(details, f"details of the index {segment.name!r}")
    kind = kind_of_details(message.target_details.type_url)
    if kind not in CHECKED_KINDS - {"json", "labellist", "rtree"}:
        raise UnsupportedError(f"its values are in an index of the kind {kind!r}")
    folder = segment.folder
    found, known = _opened(folder, kind, message.target_details.value, rows_in)
    if kind == "bloomfilter":
        raise UnsupportedError("its files do not say which type the values at its path had, so no query uses it")
    values, path = pa.string() if known is None else known, JsonPath(message.path)
    # old releases converted other values to text, each in their own way; their files have these versions
    versions = [folder.open(name).version for name in folder.names()[:1]]
    is_doubtful = values == pa.string() and any(each < _FIRST_STRICT for each in versions)

    def converted(documents: pa.Array) -> pa.Array:
        at_path = values_of_type(documents, path, values)
        if at_path is None and is_doubtful:
            raise UnsupportedError(f"an old release may have converted the values at {message.path!r} to text")
        if at_path is None:
            raise CorruptFileError(
                f"{folder.uri('')}: has values of {values}, but a covered row has another at {message.path!r}"
            )
        return at_path

    version = segment.metadata.index_version
    has_addresses = holds_addresses(kind, version)
    return replace(found, has_addresses=has_addresses, converted=converted, is_doubtful=is_doubtful)
