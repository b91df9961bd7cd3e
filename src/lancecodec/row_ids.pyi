import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

MAX_LANES: int

def split(
    src: Buffer,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    rows: NDArray[np.int64],
    bases: NDArray[np.uint64],
    few: int,
    first: NDArray[np.uint64],
    lengths: NDArray[np.int64],
    addresses: NDArray[np.uint64],
    wholes: NDArray[np.int64],
) -> tuple[int, int]: ...
def lanes(first: NDArray[np.uint64], lengths: NDArray[np.int64], count: int, out: Buffer) -> None: ...
