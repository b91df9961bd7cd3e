"""RaBitQ codes: signs of rotated vectors, more bits of each value, and factors for estimates of distances.

The codes are those of Gao and Long (RaBitQ, 2024) and Gao et al. (Practical and asymptotically optimal quantization of
high-dimensional vectors, 2025).
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.vector.packing import pack_blocks
from lance_dataset.index.vector.rabit_codes import packed_blocks
from lance_dataset.threads.streams import map_parallel
from lancecodec.search.quantized import extra_codes, rotate

__all__ = ["RabitEncoder"]

Floats: TypeAlias = NDArray[np.float32]
_BLOCK_VALUES = 1 << 18
#: First scale to try, as a part of the last one, by the number of bits beyond the sign.
_FIRST_SCALES: Final = (0.0, 0.15, 0.20, 0.52, 0.59, 0.71, 0.75, 0.77, 0.81)
#: Width of the confidence interval of an estimate, in standard deviations.
_CONFIDENCE = 1.9


class RabitEncoder:
    """Encoding with a rotation.

    Parameters
    ----------
    centroids : float[partitions, dimension]
        Centroids of the partitions.
    bits
        Bits of a value, from 1 to 9, its sign included.
    metric
        ``l2``, ``cosine`` or ``dot``.
    signs : uint8[4 * ceil(dimension / 8)]
        Signs of the rotation.
    in_blocks
        True if the signs of a partition are stored in blocks of 32 rows.
    """

    column, residual, codebook = "_rabit_codes", True, None

    def __init__(
        self, centroids: NDArray[Any], bits: int, metric: str, signs: NDArray[np.uint8], in_blocks: bool = True
    ) -> None:
        self._in_blocks = in_blocks
        self._dimension = centroids.shape[1]
        self._bits = bits
        self._is_dot = metric == "dot"
        self._signs = signs
        self._centroids = self._rotated(centroids)

    def encode(self, vectors: NDArray[Any], places: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """Return the columns of codes and factors.

        Parameters
        ----------
        vectors : float[n, dimension]
            Vectors minus the centroids of their partitions.
        places : int32[n]
            Their partitions.
        """
        step = max(1, _BLOCK_VALUES // self._dimension)
        starts = range(0, max(len(vectors), 1), step)
        blocks = map_parallel(
            lambda start: self._block(vectors[start : start + step], places[start : start + step]),
            starts,
            parallel=True,
        )
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def stored(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the signs in blocks of 32 rows, or as they are."""
        return pack_blocks(codes) if self._in_blocks else codes

    def metadata(self, dimension: int) -> str:
        """Return the description in the file."""
        described = {
            "rotate_mat_position": None,
            "fast_rotation_signs": self._signs.tolist(),
            "rotation_type": "fast",
            "code_dim": dimension,
            "num_bits": self._bits,
            "packed": self._in_blocks,
            "query_estimator": "raw_query",
        }
        return json.dumps(described)

    def _rotated(self, vectors: NDArray[Any]) -> Floats:
        rotated = np.array(vectors, np.float32, order="C")
        rotate(rotated.data, self._dimension, self._signs.data)
        return rotated

    def _block(self, vectors: NDArray[Any], places: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        residuals = vectors.astype(np.float32, copy=False)
        norms = _products(residuals, residuals)
        x, centers = self._rotated(residuals), self._centroids[places]
        positive = ~np.signbit(x)
        halves = positive.astype(np.float32) - np.float32(0.5)
        along = _products(x, halves)
        found: dict[str, NDArray[Any]] = {self.column: np.packbits(positive, axis=1, bitorder="little")}
        found["__add_factors"], found["__scale_factors"] = self._factors(norms, along, x, centers, halves)
        found["__error_factors"] = self._errors(norms, along)
        if self._bits > 1:
            extra = np.empty(x.shape, np.uint8)
            extra_codes(x.data, self._dimension, self._bits - 1, _FIRST_SCALES[self._bits - 1], extra.data)
            top = np.float32(1 << (self._bits - 1))
            full = (positive * top + extra - (top - np.float32(0.5))).astype(np.float32, copy=False)
            along = _products(x, full)
            found["__blocked_ex_codes"] = packed_blocks(extra, self._bits - 1)
            found["__add_factors_ex"], found["__scale_factors_ex"] = self._factors(norms, along, x, centers, full)
        return found

    def _factors(self, norms: Floats, along: Floats, x: Floats, centers: Floats, codes: Floats) -> tuple[Floats, ...]:
        scale = _ratio(-norms, along)
        crossed = _ratio(norms * _products(centers, codes), along)
        if self._is_dot:
            return 1 - _products(x, centers) + crossed, scale
        return norms + 2 * crossed, 2 * scale

    def _errors(self, norms: Floats, along: Floats) -> Floats:
        if self._dimension < 2:
            return np.zeros_like(norms)
        spread = np.maximum(_ratio(norms * np.float32(self._dimension / 4), along * along) - 1, 0)
        errors = np.sqrt(norms) * np.float32(_CONFIDENCE) * np.sqrt(spread / np.float32(self._dimension - 1))
        errors = np.where((norms > 0) & (along != 0), errors, 0).astype(np.float32)
        return errors if self._is_dot else 2 * errors


def _products(first: Floats, second: Floats) -> Floats:
    found: Floats = np.einsum("nd,nd->n", first, second)
    return found


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return quotients, 0 where the denominator is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)
