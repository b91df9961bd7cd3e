import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def encode(
    data: Buffer, offsets: Buffer, wide: bool, skip: Buffer, row: int, out: Buffer, ends: NDArray[np.int64]
) -> int: ...
def decode(
    data: Buffer, offsets: Buffer, wide: bool, skip: Buffer, row: int, out: Buffer, ends: NDArray[np.int64]
) -> int: ...
