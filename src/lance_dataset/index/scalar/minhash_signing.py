"""Signatures of texts for MinHash indices."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.scalar.minhash_parameters import MinHashParameters
from lance_dataset.index.text.analysis.analyzer import Analyzer
from lancecodec.search.minhash import Signer, band_keys, count_equal

__all__ = ["Signatures", "TextSigner", "distances", "keys_of_bands"]

#: Signatures, one a row.
Signatures = NDArray[np.uint16]

#: Bytes of distinct tokens that are kept in memory.
_MOST_TOKENS = 64 << 20
#: Texts whose signatures are made together: their tokens are looked up in a copy of all distinct ones.
_TEXTS = 1 << 16


class TextSigner:
    """Makes the signatures of texts. An object is used by one thread at a time.

    Parameters
    ----------
    parameters
        Parameters of the index.
    """

    def __init__(self, parameters: MinHashParameters) -> None:
        self._parameters = parameters
        self._analyzer = Analyzer(parameters.analysis)
        self._signer = Signer(parameters.num_hashes, parameters.shingle_size)

    def sign(self, texts: pa.Array) -> tuple[NDArray[np.int64], Signatures]:
        """Return the signatures of the texts that have tokens, and the numbers of these texts."""
        if self._analyzer.nbytes > _MOST_TOKENS:
            self._analyzer.forget()
        parts = [self._signed(texts.slice(start, _TEXTS)) for start in range(0, len(texts), _TEXTS)]
        starts = range(0, len(texts), _TEXTS)
        numbers = [part + start for (part, _), start in zip(parts, starts, strict=True)]
        empty = np.empty((0, self._parameters.num_hashes), np.uint16)
        return np.concatenate([np.empty(0, np.int64), *numbers]), np.concatenate([empty, *(made for _, made in parts)])

    def _signed(self, texts: pa.Array) -> tuple[NDArray[np.int64], Signatures]:
        found = self._analyzer.analyze(texts)
        numbers = np.flatnonzero(found.counts)
        made = np.empty((len(numbers), self._parameters.num_hashes), np.uint16)
        self._signer.sign(*self._analyzer.table.tokens(), found.codes.data, found.ends[numbers].data, made.data)
        return numbers, made


def keys_of_bands(signatures: Signatures, num_bands: int) -> NDArray[np.uint64]:
    """Return the keys of the bands of signatures, one row for each."""
    keys = np.empty((len(signatures), num_bands), np.uint64)
    band_keys(np.ascontiguousarray(signatures).data, signatures.shape[1], num_bands, keys.data)
    return keys


def distances(signatures: Signatures, other: Signatures) -> NDArray[np.float32]:
    """Return the distances of signatures from another one: 1 minus the part of the values that are equal."""
    hashes = signatures.shape[1]
    equal = np.empty(len(signatures), np.uint32)
    count_equal(np.ascontiguousarray(signatures).data, hashes, other.data, equal.data)
    found: NDArray[np.float32] = np.float32(1) - equal.astype(np.float32) / np.float32(hashes)
    return found
