from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

TABLE_SIZE: int
MAX_SYMBOLS: int

def encode_bound(size: int) -> int: ...
def build(data: Buffer, offsets: Buffer, wide: bool, n: int, table: Buffer) -> tuple[int, int]: ...
def write_table(symbols: Iterable[bytes], table: Buffer) -> None: ...
def write_verbatim_table(table: Buffer) -> None: ...

class SymbolTable:
    compressed: bool
    symbols: list[bytes]

    def __init__(self, table: Buffer) -> None: ...
    def decoded_size(self, data: Buffer) -> int: ...
    def decode(
        self,
        data: Buffer,
        ends: Buffer,
        wide: bool,
        first: int,
        n: int,
        base: int,
        out_wide: bool,
        out_ends: Buffer,
        out: Buffer,
    ) -> int: ...
    def take_ends(
        self,
        data: Buffer,
        ends: Buffer,
        wide: bool,
        first: int,
        n: int,
        rows: NDArray[np.int64],
        base: int,
        out_wide: bool,
        out_ends: Buffer,
    ) -> int: ...
    def take_bytes(
        self,
        data: Buffer,
        ends: Buffer,
        wide: bool,
        first: int,
        n: int,
        rows: NDArray[np.int64],
        out: Buffer,
    ) -> int: ...

class Encoder:
    def __init__(self, table: SymbolTable) -> None: ...
    def encode(
        self, data: Buffer, offsets: Buffer, wide: bool, n: int, out_wide: bool, out_offsets: Buffer, out: Buffer
    ) -> int: ...
