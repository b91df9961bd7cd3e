"""MinHash indices: a signature for each text, and the texts that share a band of their signatures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable, NewIndexFolder
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.moved_rows import Relocation

__all__ = [
    "BANDS",
    "BAND_KEY",
    "DETAILS",
    "DOCUMENT",
    "DOCUMENTS",
    "LAYOUT",
    "MAX_DOCUMENTS",
    "PAGE_ROWS",
    "PAGE_TABLE",
    "ROW_ID",
    "SIGNATURE",
    "SIGNATURES",
    "PageEnds",
    "page_rows",
    "remap",
]

#: Columns: row id, signature. The row number in the file is the document number.
SIGNATURES: Final = "signatures.lance"
#: Columns, in ascending order by both: band key, document number.
BANDS: Final = "bands.lance"

#: Columns.
ROW_ID: Final = "_rowid"
SIGNATURE: Final = "signature"
BAND_KEY: Final = "band_key"
DOCUMENT: Final = "doc_id"
#: Keys of the metadata: details of the index, version of the layout, number of documents, rows of a page of bands, and
#: the buffer with the last band key of each page.
DETAILS: Final = "minhash_lsh_details"
LAYOUT: Final = "minhash_lsh_index_version"
DOCUMENTS: Final = "minhash_lsh_num_docs"
PAGE_ROWS: Final = "minhash_lsh_page_rows"
PAGE_TABLE: Final = "minhash_lsh_page_table_buffer"
#: Documents have numbers of 32 bits, the largest of which is not used.
MAX_DOCUMENTS: Final = (1 << 32) - 1
_GONE = np.uint32(0xFFFFFFFF)


def remap(source: IndexFolder, target: NewIndexFolder, moved: Relocation, index: IndexMetadata) -> None:
    """Write the index with the new addresses of its rows; documents are renumbered to close gaps."""
    signatures, bands = source.open(SIGNATURES), source.open(BANDS)
    signatures.check_columns((ROW_ID, SIGNATURE))
    bands.check_columns((BAND_KEY, DOCUMENT))
    if bands.metadata.get(DOCUMENTS) != str(signatures.num_rows) or signatures.num_rows >= MAX_DOCUMENTS:
        raise bands.corrupt(
            f"{DOCUMENTS} is {bands.metadata.get(DOCUMENTS)!r}, {SIGNATURES} has {signatures.num_rows} documents"
        )
    numbers = np.full(signatures.num_rows, _GONE)
    target.write(
        SIGNATURES,
        signatures.schema,
        signatures.written_version,
        _moved_signatures(signatures, moved, numbers),
        signatures.metadata,
    )
    metadata = {key: value for key, value in bands.metadata.items() if key != PAGE_TABLE}
    metadata[DOCUMENTS] = str(int(np.count_nonzero(numbers != _GONE)))
    buffers: dict[str, bytes] = {}
    batches = _moved_bands(bands, numbers, page_rows(bands), buffers)
    target.write(BANDS, bands.schema, bands.written_version, batches, metadata, buffers)


class PageEnds:
    """Last band keys of pages.

    Parameters
    ----------
    page_rows
        Number of rows of a page.
    """

    def __init__(self, page_rows: int) -> None:
        self._page_rows = page_rows
        self._ends = [np.empty(0, np.uint64)]
        self._last = self._ends[0]
        self._rows = 0

    def add(self, keys: NDArray[np.uint64]) -> None:
        """Add the keys of the next rows."""
        self._ends.append(keys[(self._page_rows - 1 - self._rows) % self._page_rows :: self._page_rows].copy())
        self._last = keys[-1:].copy() if len(keys) else self._last
        self._rows += len(keys)

    def encode(self) -> bytes:
        """Return the keys of all pages, after the last row."""
        rest = [self._last] if self._rows % self._page_rows else []
        return np.concatenate([*self._ends, *rest]).astype("<u8").tobytes()


def page_rows(bands: IndexTable) -> int:
    """Return the number of rows of a page of bands.

    Raises
    ------
    CorruptFileError
        The file states something other than a positive number.
    """
    text = bands.metadata.get(PAGE_ROWS, "")
    rows = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
    if rows < 1:
        raise bands.corrupt(f"{PAGE_ROWS} is {text!r}, not a number of rows")
    return rows


def _moved_signatures(
    signatures: IndexTable, moved: Relocation, numbers: NDArray[np.uint32]
) -> Iterator[pa.RecordBatch]:
    """Yield the documents that remain; store the new number of each document in `numbers`."""
    read = written = 0
    for batch in signatures.batches():
        position = batch.schema.get_field_index(ROW_ID)
        ids = batch.column(position)
        if ids.type != pa.uint64() or ids.null_count:
            raise signatures.corrupt(f"{ROW_ID} has nulls or is of the type {ids.type}, not uint64")
        addresses, gone = moved.locate(ids.to_numpy(zero_copy_only=False))
        kept = np.flatnonzero(~gone)
        numbers[read + kept] = np.arange(written, written + len(kept), dtype=np.uint32)
        read, written = read + len(ids), written + len(kept)
        left = batch.set_column(position, batch.schema.field(position), pa.array(addresses))
        yield left.filter(pa.array(~gone)) if gone.any() else left


def _moved_bands(
    bands: IndexTable, numbers: NDArray[np.uint32], page_rows: int, buffers: dict[str, bytes]
) -> Iterator[pa.RecordBatch]:
    """Yield the bands of the documents that remain; append the last key of every page to `buffers`."""
    ends = PageEnds(page_rows)
    for batch in bands.batches((BAND_KEY, DOCUMENT)):
        if batch.schema.types != [pa.uint64(), pa.uint32()] or any(column.null_count for column in batch.columns):
            raise bands.corrupt(f"has nulls or columns of the types {batch.schema.types}, not uint64 and uint32")
        keys, documents = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        if len(documents) and int(documents.max()) >= len(numbers):
            raise bands.corrupt(f"refers to document {int(documents.max())} of {len(numbers)}")
        left = numbers[documents]
        kept = left != _GONE
        keys, left = keys[kept], left[kept]
        ends.add(keys)
        yield pa.RecordBatch.from_arrays([pa.array(keys), pa.array(left)], schema=batch.schema)
    buffers[PAGE_TABLE] = ends.encode()
