"""Check of MinHash indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.scalar import minhash
from lance_dataset.index.scalar.minhash_files import MinHashFiles, signature_batches
from lance_dataset.index.scalar.minhash_parameters import MinHashParameters
from lance_dataset.index.scalar.minhash_signing import Signatures, TextSigner, keys_of_bands
from lance_dataset.index.validating.keyed_rows import Digests, KeyedRows, mixed

__all__ = ["MinHashContent"]

#: Documents whose bands are compared together.
_TOGETHER: Final = 1 << 22


class MinHashContent:
    """Entries of a segment of a MinHash index: the signature of each text that has words.

    Parameters
    ----------
    folder
        Folder of its files.
    details
        Value of the details in the manifest.

    Raises
    ------
    CorruptFileError
        A file contradicts the format, or the details.
    """

    is_exact = True

    def __init__(self, folder: IndexFolder, details: bytes) -> None:
        self._folder = folder
        self._parameters = MinHashParameters.of_details(details, folder.uri(""))
        MinHashFiles(folder, self._parameters)
        self._signer = TextSigner(self._parameters)

    def entries(self) -> Iterator[KeyedRows]:
        """Yield all entries. The bands of each signature must be listed in order."""
        self._check_bands()
        for rows, made in signature_batches(self._folder, self._parameters):
            yield _keyed(made, rows)

    def _check_bands(self) -> None:
        bands = self._folder.open(minhash.BANDS)
        count = bands.num_rows // self._parameters.num_bands
        last: tuple[int, int] | None = None
        ends = minhash.PageEnds(minhash.page_rows(bands))
        for first in range(0, max(count, 1), _TOGETHER):
            listed = np.zeros(min(_TOGETHER, count - first), np.uint64)
            for batch in bands.batches([minhash.BAND_KEY, minhash.DOCUMENT]):
                keys, documents = _columns(bands, batch, count)
                if not first:
                    last = _checked_order(bands, keys, documents, last)
                    ends.add(keys)
                places = documents.astype(np.int64) - first
                inside = (places >= 0) & (places < len(listed))
                np.add.at(listed, places[inside], mixed(keys[inside]))
            self._compare_bands(bands, first, listed)
        if bands.global_buffer(minhash.PAGE_TABLE) != ends.encode():
            raise bands.corrupt("the table of pages does not have the last keys of its pages")

    def _compare_bands(self, bands: IndexTable, first: int, listed: Digests) -> None:
        """Compare the bands of documents from the first one on with their signatures."""
        start = 0
        for _, made in signature_batches(self._folder, self._parameters):
            low, high = max(first - start, 0), min(first + len(listed) - start, len(made))
            if low < high:
                keys = keys_of_bands(made[low:high], self._parameters.num_bands)
                expected = mixed(keys).sum(axis=1, dtype=np.uint64)
                wrong = np.flatnonzero(listed[start + low - first : start + high - first] != expected)
                if len(wrong):
                    raise bands.corrupt(
                        f"the bands of {len(wrong)} documents are not those of their signatures, such as of document "
                        f"{start + low + int(wrong[0])}"
                    )
            start += len(made)

    def expected(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that texts should have."""
        numbers, made = self._signer.sign(values)
        yield _keyed(made, numbers.astype(np.uint64))

    def required(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield all entries that texts should have."""
        return self.expected(values)


def _columns(bands: IndexTable, batch: pa.RecordBatch, count: int) -> tuple[Digests, NDArray[np.uint32]]:
    if any(column.null_count for column in batch.columns):
        raise bands.corrupt("holds a null")
    keys, documents = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
    if len(documents) and int(documents.max()) >= count:
        raise bands.corrupt(f"refers to document {int(documents.max())} of {count}")
    return keys, documents


def _checked_order(
    bands: IndexTable, keys: Digests, documents: NDArray[np.uint32], last: tuple[int, int] | None
) -> tuple[int, int] | None:
    """Check that bands ascend; return the last one."""
    if not len(keys):
        return last
    falls = (keys[1:] < keys[:-1]) | (keys[1:] == keys[:-1]) & (documents[1:] <= documents[:-1])
    first = int(keys[0]), int(documents[0])
    if falls.any() or (last is not None and first <= last):
        raise bands.corrupt("its bands are not in order")
    return int(keys[-1]), int(documents[-1])


def _keyed(made: Signatures, rows: Digests) -> KeyedRows:
    digest = np.zeros(len(made), np.uint64)
    for column in made.T:
        digest = mixed(digest ^ column.astype(np.uint64))
    return KeyedRows(pa.array(digest), digest, rows)
