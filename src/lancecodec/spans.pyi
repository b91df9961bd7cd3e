import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def fixed(src: Buffer, positions: NDArray[np.int64], counts: NDArray[np.int64], width: int, out: Buffer) -> None: ...
def bits(src: Buffer, positions: NDArray[np.int64], counts: NDArray[np.int64], out: Buffer) -> None: ...
def offsets(
    src: Buffer,
    positions: NDArray[np.int64],
    counts: NDArray[np.int64],
    wide: bool,
    out_wide: bool,
    out: Buffer,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> int: ...
def empties(offsets: Buffer, wide: bool, n: int, out_validity: Buffer) -> int: ...

class BatchPages:
    def __init__(
        self,
        src: Buffer,
        starts: NDArray[np.int64],
        positions: NDArray[np.int64],
        lengths: NDArray[np.int64],
        bits: int,
    ) -> None: ...
    def locate(self, rows: NDArray[np.int64], out: NDArray[np.int64]) -> None: ...
    def take(self, rows: NDArray[np.int64], out: Buffer) -> None: ...
