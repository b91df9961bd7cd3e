"""Files of a MinHash index, open for reading."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.scalar import minhash
from lance_dataset.index.scalar.minhash_parameters import MinHashParameters
from lance_dataset.index.scalar.minhash_signing import Signatures, distances, keys_of_bands

__all__ = ["MinHashFiles", "signature_batches"]

#: Documents whose signatures are read together.
_DOCUMENTS = 1 << 16


def signature_batches(
    folder: IndexFolder, parameters: MinHashParameters
) -> Iterator[tuple[NDArray[np.uint64], Signatures]]:
    """Yield the rows of an index and their signatures, in the order of documents.

    Raises
    ------
    CorruptFileError
        The file contradicts the format, or the parameters.
    """
    table = _open_signatures(folder, parameters)
    for batch in table.batches((minhash.ROW_ID, minhash.SIGNATURE)):
        yield _rows(batch.column(0), table), _signatures(batch.column(1), table, parameters.num_hashes)


class MinHashFiles:
    """Files of one segment of a MinHash index.

    Parameters
    ----------
    folder
        Folder of the files.
    parameters
        Parameters of the index.

    Raises
    ------
    CorruptFileError
        The files contradict the format, or the parameters.
    """

    def __init__(self, folder: IndexFolder, parameters: MinHashParameters) -> None:
        self._parameters = parameters
        self._documents = _open_signatures(folder, parameters)
        self._bands = bands = folder.open(minhash.BANDS)
        _check_details(bands, parameters)
        for name, kind in ((minhash.BAND_KEY, pa.uint64()), (minhash.DOCUMENT, pa.uint32())):
            if bands.column_type(name) != kind:
                raise bands.corrupt(f"{name} has type {bands.column_type(name)}, not {kind}")
        count = self._documents.num_rows
        if bands.metadata.get(minhash.DOCUMENTS) != str(count) or bands.num_rows != count * parameters.num_bands:
            raise bands.corrupt(
                f"{bands.num_rows} rows are not the {parameters.num_bands} bands of the {count} documents in "
                f"{minhash.SIGNATURES}; {minhash.DOCUMENTS} is {bands.metadata.get(minhash.DOCUMENTS)!r}"
            )
        self._page_rows = minhash.page_rows(bands)
        self._ends = self._page_table()

    @property
    def nbytes(self) -> int:
        """Estimated bytes of memory."""
        return self._ends.nbytes

    def _page_table(self) -> NDArray[np.uint64]:
        """Return the last band key of each page."""
        data = self._bands.global_buffer(minhash.PAGE_TABLE)
        pages = -(-self._bands.num_rows // self._page_rows)
        if data is None or len(data) != 8 * pages:
            size = "is missing" if data is None else f"has {len(data)} bytes"
            raise self._bands.corrupt(f"the table of {pages} pages {size}")
        ends = np.frombuffer(data, "<u8").astype(np.uint64)
        if (ends[1:] < ends[:-1]).any():
            raise self._bands.corrupt("the keys of the table of pages decrease")
        return ends

    def find(self, signature: Signatures) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
        """Return the rows whose signatures share a band with another one, and their distances.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        keys = keys_of_bands(signature.reshape(1, -1), self._parameters.num_bands)[0]
        found = [self._documents_of(int(key)) for key in keys.tolist()]
        documents = np.unique(np.concatenate(found)).astype(np.int64)
        rows, apart = [np.empty(0, np.uint64)], [np.empty(0, np.float32)]
        for start in range(0, len(documents), _DOCUMENTS):
            some = documents[start : start + _DOCUMENTS]
            rows.append(_rows(self._documents.take(some, minhash.ROW_ID), self._documents))
            values = self._documents.take(some, minhash.SIGNATURE)
            apart.append(distances(_signatures(values, self._documents, self._parameters.num_hashes), signature))
        return np.concatenate(rows), np.concatenate(apart)

    def _documents_of(self, key: int) -> NDArray[np.uint32]:
        """Return the documents with a band key."""
        first, last = (int(np.searchsorted(self._ends, np.uint64(key), side)) for side in ("left", "right"))
        pages = self._bands.read(
            first * self._page_rows, (last + 1) * self._page_rows, [minhash.BAND_KEY, minhash.DOCUMENT]
        )
        if any(column.null_count for column in pages.columns):
            raise self._bands.corrupt("holds a null")
        keys, documents = (column.to_numpy() for column in pages.columns)
        documents = documents[keys == np.uint64(key)]
        if len(documents) and int(documents.max()) >= self._documents.num_rows:
            raise self._bands.corrupt(f"refers to document {int(documents.max())} of {self._documents.num_rows}")
        found: NDArray[np.uint32] = documents
        return found


def _open_signatures(folder: IndexFolder, parameters: MinHashParameters) -> IndexTable:
    table = folder.open(minhash.SIGNATURES)
    _check_details(table, parameters)
    kinds = {minhash.ROW_ID: pa.uint64(), minhash.SIGNATURE: pa.list_(pa.uint16(), parameters.num_hashes)}
    for name, kind in kinds.items():
        if not table.column_type(name).equals(kind):
            raise table.corrupt(f"{name} has type {table.column_type(name)}, not {kind}")
    if table.num_rows > minhash.MAX_DOCUMENTS:
        raise table.corrupt(f"has {table.num_rows} documents, more than have a number")
    return table


def _check_details(table: IndexTable, parameters: MinHashParameters) -> None:
    """Raise CorruptFileError unless the file is of an index with these parameters."""
    text = table.metadata.get(minhash.DETAILS, "")
    try:
        found = MinHashParameters.of_details(bytes.fromhex(text), table.where)
    except ValueError:
        raise table.corrupt(f"{minhash.DETAILS} is not hexadecimal, or malformed") from None
    if found != parameters:
        raise table.corrupt(f"{minhash.DETAILS} differ from those of the index")
    if table.metadata.get(minhash.LAYOUT, "0") != "0":
        raise table.corrupt(f"{minhash.LAYOUT} is {table.metadata[minhash.LAYOUT]!r}, not 0")


def _rows(values: pa.Array, table: IndexTable) -> NDArray[np.uint64]:
    if values.null_count:
        raise table.corrupt(f"{minhash.ROW_ID} has a null")
    found: NDArray[np.uint64] = values.to_numpy()
    return found


def _signatures(values: pa.Array, table: IndexTable, num_hashes: int) -> Signatures:
    numbers = values.flatten()
    if values.null_count or numbers.null_count:
        raise table.corrupt(f"{minhash.SIGNATURE} has a null")
    found: Signatures = numbers.to_numpy().reshape(-1, num_hashes)
    return found
