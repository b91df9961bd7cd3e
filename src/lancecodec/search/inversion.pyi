import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def rank_codes(codes: NDArray[np.uint16] | NDArray[np.uint32], ranks: NDArray[np.uint32]) -> None: ...

class WordDocuments:
    def __init__(
        self,
        words: NDArray[np.uint16] | NDArray[np.uint32],
        lengths: NDArray[np.uint32],
        first: int = 0,
        positions: NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32] | None = None,
    ) -> None: ...
    def count(self, seen: NDArray[np.uint32], documents: NDArray[np.int64], occurrences: NDArray[np.int64]) -> None: ...
    def fill(self, lists: WordLists) -> None: ...

class WordLists:
    def __init__(
        self,
        low: int,
        next: NDArray[np.int64],
        next_step: NDArray[np.int64],
        seen: NDArray[np.uint32],
        last: NDArray[np.uint32],
        documents: NDArray[np.uint32],
        frequencies: NDArray[np.uint32],
        steps: NDArray[np.uint32] | None = None,
    ) -> None: ...

class DocumentNorms:
    def __init__(self, lengths: NDArray[np.uint32], norms: NDArray[np.float32]) -> None: ...

def write_lists(
    lengths: NDArray[np.int64],
    documents: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    norms: DocumentNorms,
    limits: NDArray[np.float32],
    size: int,
    fixed_tail: bool,
    blocks: Buffer,
    block_ends: NDArray[np.int64],
    impacts: Buffer,
    impact_ends: NDArray[np.int64],
    best: NDArray[np.float32],
) -> tuple[int, int]: ...
def write_positions(
    lengths: NDArray[np.int64],
    frequencies: NDArray[np.uint32],
    steps: NDArray[np.uint32],
    size: int,
    out: Buffer,
    ends: NDArray[np.int64],
) -> int: ...
