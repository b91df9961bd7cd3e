import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

LAST: int
COUNT: int
ITEMS: int
MAX: int
LAST_32: int
SIGNS: int
MAX_COLUMNS: int
BYTES_FIELD: int
NUMBERS_FIELD: int

def locate(
    src: Buffer,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    field: int,
    owners: NDArray[np.int64],
    heads: NDArray[np.int64],
    inner_starts: NDArray[np.int64],
    inner_ends: NDArray[np.int64],
) -> int: ...
def numbers(
    src: Buffer,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    field: int,
    owners: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int: ...
def columns(
    src: Buffer,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    wanted: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None: ...
def weigh(src: Buffer, fixed: NDArray[np.int64], fields: NDArray[np.int64]) -> tuple[int, int, int]: ...
