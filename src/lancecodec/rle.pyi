import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def count(values: Buffer, bits: int, cut: int = 4096, length_bits: int = 8) -> tuple[int, int]: ...
def encode_bound(
    n: int, bits: int, entries: int, length_bits: int = 8, max_values: int = 4096, max_bytes: int = 8186
) -> tuple[int, int, int]: ...
def encode(
    values: Buffer,
    bits: int,
    out_values: Buffer,
    out_lengths: Buffer,
    value_ends: NDArray[np.int64],
    length_ends: NDArray[np.int64],
    counts: NDArray[np.int64],
    length_bits: int = 8,
    max_values: int = 4096,
    max_bytes: int = 8186,
) -> int: ...
def decode(
    values: Buffer, lengths: Buffer, n: int, bits: int, out: Buffer, length_bits: int = 8, strict: bool = False
) -> None: ...
def decode_page(
    values: Buffer,
    value_ends: NDArray[np.int64],
    lengths: Buffer,
    length_ends: NDArray[np.int64],
    counts: NDArray[np.int64],
    bits: int,
    out: Buffer,
) -> int: ...
def take(
    values: Buffer,
    lengths: Buffer,
    n: int,
    bits: int,
    positions: NDArray[np.int64],
    out: Buffer,
    length_bits: int = 8,
) -> None: ...
def block_size(entries: int, bits: int) -> int: ...
def encode_block(values: Buffer, bits: int, out: Buffer) -> int: ...
def decode_block(data: Buffer, n: int, bits: int, out: Buffer) -> None: ...
