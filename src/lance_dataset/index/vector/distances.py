"""Decoded vectors of a partition, and distances between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.vector.quantizers import FlatVectors, ProductQuantizer, Quantizer, ScalarQuantizer

__all__ = ["StoredVectors"]

Vectors = NDArray[np.floating[Any]]


class StoredVectors:
    """Vectors of a partition, decoded on request.

    Parameters
    ----------
    codes : array [rows, width]
        The plain codes, or the vectors.
    quantizer
        Meaning of the codes.
    distance
        Distance of the index.
    """

    def __init__(self, codes: NDArray[Any], quantizer: Quantizer, distance: str) -> None:
        self._codes = codes
        self._quantizer = quantizer
        # For cosine, codes are compared by squared distance, because they are made of vectors of unit length.
        exact_cosine = distance == "cosine" and isinstance(quantizer, FlatVectors)
        self._normalizes = exact_cosine
        self._is_product = distance == "dot" or exact_cosine

    @property
    def width(self) -> int:
        """Number of values of a decoded vector."""
        bits = 8 if self._codes.dtype == np.uint8 and isinstance(self._quantizer, FlatVectors) else 1
        return self._quantizer.dimension * bits

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Decode vectors ``float32[rows, width]``, or float64 if they are stored so; bits (hamming) become 0 and 1."""
        codes, quantizer = self._codes[rows], self._quantizer
        if isinstance(quantizer, ScalarQuantizer):
            step = (quantizer.end - quantizer.start) / 255
            return codes.astype(np.float32) * np.float32(step) + np.float32(quantizer.start)
        if isinstance(quantizer, ProductQuantizer):
            words = codes if quantizer.bits == 8 else np.stack([codes & 15, codes >> 4], axis=2).reshape(len(codes), -1)
            parts = quantizer.codebook.astype(np.float32, copy=False)[np.arange(quantizer.sub_vectors), words]
            return parts.reshape(len(codes), -1)
        if codes.dtype == np.uint8:
            return np.unpackbits(codes, axis=1).astype(np.float32)
        vectors = codes.astype(codes.dtype if codes.dtype == np.float64 else np.float32)
        if self._normalizes:
            with np.errstate(divide="ignore", invalid="ignore"):
                vectors /= np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, None]
        return vectors

    def between(self, first: Vectors, second: Vectors) -> NDArray[np.float32]:
        """Return the distances of pairs of vectors ``[n, width]``: float32[n]."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self._is_product:
                return (1 - np.einsum("nd,nd->n", first, second)).astype(np.float32, copy=False)
            difference = first - second
            return np.einsum("nd,nd->n", difference, difference).astype(np.float32, copy=False)

    def among(self, first: Vectors, second: Vectors) -> NDArray[np.float32]:
        """Return the distances of all pairs in groups ``[n, a, width]``, ``[n, b, width]``: float32[n, a, b]."""
        with np.errstate(over="ignore", invalid="ignore"):
            products = first @ second.transpose(0, 2, 1)
            if self._is_product:
                return (1 - products).astype(np.float32, copy=False)
            mine, theirs = (np.einsum("nad,nad->na", vectors, vectors) for vectors in (first, second))
            lengths = mine[:, :, None] + theirs[:, None]
            return np.maximum(lengths - 2 * products, 0).astype(np.float32, copy=False)
