import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

PLAIN: int
FOLDED: int

def room(data: Buffer, offsets: Buffer, wide: bool, folded: bool) -> int: ...
def find(
    data: Buffer,
    offsets: Buffer,
    wide: bool,
    folded: bool,
    tokens: NDArray[np.uint32],
    rows: NDArray[np.uint32],
    others: NDArray[np.uint32],
) -> tuple[int, int]: ...
def group(
    tokens: NDArray[np.uint32],
    rows: NDArray[np.uint32],
    ids: NDArray[np.uint64],
    starts: NDArray[np.int64],
    out: NDArray[np.uint64],
) -> None: ...
