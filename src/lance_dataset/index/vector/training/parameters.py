"""Parameters of vector indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.vector.graph import GraphParameters

if TYPE_CHECKING:
    import torch

__all__ = ["REASON", "VectorParameters"]

#: Name of the reason in the details of an index.
REASON: Final = "lance_dataset.reason"


@dataclass(frozen=True)
class VectorParameters:
    """Parameters of a vector index.

    Attributes
    ----------
    kind
        One of `BUILT_KINDS`.
    metric
        ``l2``, ``cosine``, ``dot`` or ``hamming``.
    partitions
        Number of partitions; None for one that follows from the number of vectors.
    partition_rows
        Wanted vectors of a partition; None for the default of the kind.
    sub_vectors
        Parts of a vector of product quantizers.
    bits
        Bits of a part of product quantizers, or of a value of RaBitQ codes.
    sample_rate, iterations
        Vectors for a cluster, and maximum number of iterations, of the training.
    centroids : float or uint8 [partitions, dimension]
        Centroids to use; None to train them.
    codewords : float[sub_vectors * 2 ** bits * dimension / sub_vectors]
        Codewords to use, part by part; None to train them.
    signs : uint8[4 * ceil(dimension / 8)]
        Signs of the rotation of RaBitQ to use; None to draw them.
    is_grouped
        True to store codes of product quantization and signs of RaBitQ so that they are fast to compare; False to store
        them row by row.
    is_part
        True for a segment to be merged with others of the same models. Its codes are stored row by row, as pylance
        needs them for that; those of the merged segment are as `is_grouped` says.
    reason
        Why the kind was chosen, for people who did not choose it.
    graph
        Parameters of the graphs of partitions; None for kinds without graphs.
    device
        Device of PyTorch that trains centroids and codewords; None for processors.
    """

    kind: str
    metric: str = "l2"
    partitions: int | None = None
    partition_rows: int | None = None
    sub_vectors: int | None = None
    bits: int = 8
    sample_rate: int = 256
    iterations: int = 50
    centroids: NDArray[Any] | None = None
    codewords: NDArray[Any] | None = None
    signs: NDArray[np.uint8] | None = None
    is_grouped: bool = True
    is_part: bool = False
    reason: str = ""
    graph: GraphParameters | None = None
    device: torch.device | None = None

    @property
    def stores_groups(self) -> bool:
        """True if the files are to have codes that are fast to compare, False if row by row."""
        return self.is_grouped and not self.is_part

    @property
    def family(self) -> str:
        """Storage of the vectors: ``FLAT``, ``PQ``, ``SQ`` or ``RQ``."""
        return self.kind.rpartition("_")[2]
