import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

LISTED: int
PACKED: int
VARINT: int
CODES: int

class Positions:
    def __init__(self, data: Buffer, starts: Buffer, owners: Buffer | None, kind: int) -> None: ...
    @property
    def nbytes(self) -> int: ...

class Term:
    def __init__(self, data: Buffer, offsets: Buffer, length: int, documents: int, size: int, fixed: bool) -> None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def documents(self) -> int: ...
    @property
    def bound(self) -> float: ...
    def bound_by_impacts(self, data: Buffer, offsets: Buffer, norms: NDArray[np.float32]) -> None: ...
    def bound_by_documents(self, norms: NDArray[np.float32]) -> None: ...
    def decode(self, docs: NDArray[np.uint32], counts: NDArray[np.uint32]) -> None: ...

class Phrase:
    def __init__(self, terms: NDArray[np.int32], places: NDArray[np.int32], slop: int) -> None: ...

def search(
    terms: list[Term],
    weights: NDArray[np.float32],
    norms: NDArray[np.float32],
    allowed: Buffer | None,
    every: bool,
    best: int,
    above: float,
    docs: NDArray[np.uint32],
    scores: NDArray[np.float32],
    phrase: Phrase | None = None,
    positions: list[Positions] | None = None,
) -> int: ...
