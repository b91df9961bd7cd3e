import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

MAX_WIDTH: int

def build_fixed(
    values: Buffer,
    width: int,
    codes: Buffer,
    code_width: int,
    positions: NDArray[np.int64],
    validity: Buffer | None = None,
    bit: int = 0,
    max_bytes: int = ...,
) -> tuple[int, int] | None: ...
def build_variable(
    values: Buffer,
    offsets: Buffer,
    wide: bool,
    codes: Buffer,
    code_width: int,
    positions: NDArray[np.int64],
    validity: Buffer | None = None,
    bit: int = 0,
    max_bytes: int = ...,
) -> tuple[int, int] | None: ...
def sample_fixed(
    values: Buffer, width: int, validity: Buffer | None = None, bit: int = 0, blocks: int = 32, size: int = 128
) -> tuple[int, int]: ...
def sample_variable(
    values: Buffer,
    offsets: Buffer,
    wide: bool,
    validity: Buffer | None = None,
    bit: int = 0,
    blocks: int = 32,
    size: int = 128,
) -> tuple[int, int]: ...
