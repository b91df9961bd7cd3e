import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def plan_bound(length: int) -> int: ...
def plan(
    offsets: Buffer,
    wide: bool,
    length: int,
    out_wide: bool,
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
    target: int = 4096,
    max_values: int = 4096,
) -> int: ...
def encode(
    offsets: Buffer,
    wide: bool,
    data: Buffer,
    length: int,
    out_wide: bool,
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
    out: Buffer,
) -> int: ...
def decode_bound(size: int, length: int, chunks: int, wide: bool) -> int: ...
def decode(
    source: Buffer,
    wide: bool,
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
    length: int,
    out_wide: bool,
    offsets: Buffer,
    out: Buffer,
) -> int: ...
def decode_chunk(
    buffer: Buffer, length: int, wide: bool, out_wide: bool, offsets: Buffer, base: int = 0
) -> tuple[int, int]: ...
def chunk_value(buffer: Buffer, length: int, wide: bool, index: int) -> tuple[int, int]: ...
def decode_generic(
    coded_offsets: Buffer,
    wide: bool,
    length: int,
    values_size: int,
    out_wide: bool,
    offsets: Buffer,
    base: int = 0,
) -> None: ...
def rebase(offsets: Buffer, wide: bool, length: int, out_wide: bool, out: Buffer, base: int = 0) -> tuple[int, int]: ...
def block_bound(length: int, size: int, wide: bool) -> int: ...
def encode_block(offsets: Buffer, wide: bool, data: Buffer, length: int, out_wide: bool, out: Buffer) -> int: ...
def decode_block(buffer: Buffer, length: int, out_wide: bool, offsets: Buffer, base: int = 0) -> tuple[int, int]: ...
def measure(offsets: Buffer, wide: bool, length: int) -> tuple[int, int]: ...
def select_offsets(
    offsets: Buffer, wide: bool, length: int, index: NDArray[np.int64], out_wide: bool, out: Buffer
) -> int: ...
def select_bytes(
    offsets: Buffer, wide: bool, data: Buffer, length: int, index: NDArray[np.int64], out: Buffer
) -> int: ...
