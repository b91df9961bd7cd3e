import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def measure(
    values: NDArray[np.uint64], stops: NDArray[np.int64], count_bytes: int, sized: bool, bounds: NDArray[np.int64]
) -> None: ...
def encode(
    values: NDArray[np.uint64],
    stops: NDArray[np.int64],
    count_bytes: int,
    sized: bool,
    bounds: NDArray[np.int64],
    out: Buffer,
) -> None: ...

class RowSets:
    def __init__(self, data: Buffer, bounds: NDArray[np.int64], count_bytes: int, sized: bool) -> None: ...
    def describe(self, stops: NDArray[np.int64], counts: NDArray[np.int64]) -> int: ...
    def decode(self, start: int, stop: int, out: NDArray[np.uint64]) -> None: ...
    def intersect(self, out: NDArray[np.uint64]) -> int: ...
    def unite(
        self, order: NDArray[np.int64], stops: NDArray[np.int64], bounds: NDArray[np.int64], out: Buffer
    ) -> None: ...
