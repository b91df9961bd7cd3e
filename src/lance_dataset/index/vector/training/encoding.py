"""Codes of vectors: plain, as bytes between bounds, or as numbers of codewords of their parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.vector.packing import transposed
from lance_dataset.index.vector.training.clustering import assigned, cluster

__all__ = ["Encoder", "FlatEncoder", "ProductEncoder", "ScalarEncoder"]

#: Tolerance of the training of codewords: few more iterations find noticeably more of the nearest vectors.
_TOLERANCE = 3e-4


class Encoder(Protocol):
    """Encoding of the vectors of an index."""

    #: Name of the column of codes.
    column: str
    #: True if vectors are encoded as differences from the centroid.
    residual: bool

    def encode(self, vectors: NDArray[Any], places: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """Return the columns of codes ``[n, width]`` and factors ``[n]``.

        Parameters
        ----------
        vectors : float or uint8 [n, dimension]
            Vectors, or differences from the centroids.
        places : int32[n]
            Their partitions.
        """

    def stored(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the codes of a partition in the layout of the file, in the same shape."""

    def metadata(self, dimension: int) -> str:
        """Return the description in the file, without the enclosing array."""

    @property
    def codebook(self) -> NDArray[Any] | None:
        """Codewords ``[words, dimension]`` in the order of the file."""


class FlatEncoder:
    """Vectors as they are."""

    column, residual, codebook = "flat", False, None

    def encode(self, vectors: NDArray[Any], places: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """Return the vectors."""
        return {self.column: vectors}

    def stored(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the codes as they are."""
        return codes

    def metadata(self, dimension: int) -> str:
        """Return the description in the file."""
        return json.dumps({"dim": dimension})


class ScalarEncoder:
    """Values as bytes, from 0 for `start` to 255 for `end`."""

    column, residual, codebook = "__sq_code", False, None

    def __init__(self, start: float, end: float) -> None:
        self._start, self._end = start, end

    def encode(self, vectors: NDArray[Any], places: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """Return a byte for each value."""
        span = self._end - self._start
        if not span:
            return {self.column: np.zeros(vectors.shape, np.uint8)}
        scaled = vectors.astype(np.float64)
        scaled -= self._start
        scaled *= 255
        scaled /= span
        return {self.column: np.clip(scaled, 0, 255).astype(np.uint8)}

    def stored(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the codes as they are."""
        return codes

    def metadata(self, dimension: int) -> str:
        """Return the description in the file."""
        return json.dumps({"dim": dimension, "num_bits": 8, "bounds": {"start": self._start, "end": self._end}})


class ProductEncoder:
    """Vectors cut into parts, each replaced by its nearest codeword (Jegou, Product quantization, 2011).

    Parameters
    ----------
    words : float[parts, 2 ** bits, dimension / parts]
        The codewords.
    residual
        True if vectors are encoded as differences.
    by_column
        True if the codes of a partition are stored column by column.
    """

    column = "__pq_code"

    def __init__(self, words: NDArray[Any], residual: bool, by_column: bool = True) -> None:
        self._words, self.residual, self._by_column = words, residual, by_column
        self._parts, self._bits = len(words), 8 if words.shape[1] == 256 else 4

    @classmethod
    def trained(
        cls,
        sample: NDArray[Any],
        parts: int,
        bits: int,
        residual: bool,
        rng: np.random.Generator,
        iterations: int,
        clustering: Callable[..., NDArray[Any]] = cluster,
    ) -> ProductEncoder:
        """Train the codewords.

        Parameters
        ----------
        sample : float[n, dimension]
            Vectors, or differences from centroids; at least ``2 ** bits``.
        parts, bits
            Number of parts, and bits of the number of a codeword.
        residual
            True if vectors are encoded as differences.
        rng
            Draws the first codewords.
        iterations
            Maximum number of iterations.
        clustering
            Finds the codewords of a part, with the parameters of `cluster`.
        """
        cuts = np.split(sample, parts, axis=1)
        words = [clustering(np.ascontiguousarray(cut), 1 << bits, "l2", rng, iterations, _TOLERANCE) for cut in cuts]
        return cls(np.stack(words).astype(sample.dtype), residual)

    def _cut(self, vectors: NDArray[Any], part: int) -> NDArray[Any]:
        width = vectors.shape[1] // self._parts
        return vectors[:, part * width : (part + 1) * width]

    def encode(self, vectors: NDArray[Any], places: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """Return the numbers of codewords; two of 4 bits share a byte, the lower half first."""
        codes = np.empty((len(vectors), self._parts), np.uint8)
        for part in range(self._parts):
            mine = np.ascontiguousarray(self._cut(vectors, part))
            codes[:, part] = assigned(mine, self._words[part], "l2")[0]
        return {self.column: codes if self._bits == 8 else codes[:, ::2] | codes[:, 1::2] << 4}

    def stored(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the codes column by column, or as they are."""
        return transposed(codes) if self._by_column else codes

    def metadata(self, dimension: int) -> str:
        """Return the description in the file."""
        described = {
            "codebook_position": 2,
            "nbits": self._bits,
            "num_sub_vectors": self._parts,
            "dimension": dimension,
            "codebook_tensor": [],
            "transposed": self._by_column,
        }
        return json.dumps(described)

    @property
    def codebook(self) -> NDArray[Any]:
        """Codewords, part by part, in the shape of the file."""
        return self._words.reshape(1 << self._bits, -1)
