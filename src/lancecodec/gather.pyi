import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def fixed(
    values: Buffer,
    width: int,
    indices: Buffer,
    index_width: int,
    out: Buffer,
    validity: Buffer | None = None,
    bit: int = 0,
) -> None: ...
def binary_offsets(
    values: Buffer,
    offsets: Buffer,
    wide: bool,
    indices: Buffer,
    index_width: int,
    out_wide: bool,
    out: Buffer,
    base: int = 0,
    validity: Buffer | None = None,
    bit: int = 0,
) -> int: ...
def binary(
    values: Buffer,
    offsets: Buffer,
    wide: bool,
    indices: Buffer,
    index_width: int,
    out: Buffer,
    validity: Buffer | None = None,
    bit: int = 0,
) -> int: ...

SHORT_ENTRY: int

class ShortEntries:
    longest: int

    def __init__(self, values: Buffer, offsets: Buffer, wide: bool) -> None: ...
    def room(self, length: int) -> int: ...
    def gather(
        self, indices: Buffer, index_width: int, out_wide: bool, offsets: Buffer, out: Buffer, base: int = 0
    ) -> int: ...

def variable_offsets(
    value_offsets: NDArray[np.int64], indices: Buffer, index_width: int, out: NDArray[np.int64]
) -> int: ...
def variable(
    values: Buffer,
    value_offsets: NDArray[np.int64],
    indices: Buffer,
    index_width: int,
    out_offsets: NDArray[np.int64],
    out: Buffer,
) -> None: ...
def expand_ranges(begins: NDArray[np.int64], offsets: Buffer, wide: bool, out: NDArray[np.int64]) -> None: ...
