import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

MISSING: int
NULL_VALUE: int
STRING: int
INTEGER: int
UNSIGNED: int
FLOAT: int
FALSE: int
TRUE: int
ARRAY: int
OBJECT: int
OTHER: int

def find(
    data: Buffer,
    offsets: Buffer,
    wide: bool,
    keys: Buffer,
    steps: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    words: NDArray[np.int64],
    ranges: NDArray[np.int64],
) -> None: ...
