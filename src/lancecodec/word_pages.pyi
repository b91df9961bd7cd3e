import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

MAX_VALUES: int
MAX_SAMPLE: int

def encode(
    values: Buffer,
    begin: int,
    count: int,
    width: int,
    large: bool,
    rows: NDArray[np.int64],
    most: int,
) -> tuple[bytes, bytes] | tuple[()] | None: ...
