from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from lancecodec.miniblock import Chunks

FLAT: Final[int]
INLINE: Final[int]
RLE: Final[int]
SPLIT: Final[int]

class FixedValues:
    def __init__(self, chunks: Chunks, kind: int, bits: int, buffer: int = 0) -> None: ...
    def scan(self, start: int, stop: int, out: Buffer, at: int = 0) -> None: ...
    def take(self, items: NDArray[np.int64], out: Buffer, at: int = 0) -> None: ...
    def scan_dictionary(
        self,
        start: int,
        stop: int,
        entries: Buffer,
        width: int,
        count: int,
        out: Buffer,
        at: int = 0,
        validity: Buffer | None = None,
        bit: int = 0,
    ) -> None: ...
    def take_dictionary(
        self,
        items: NDArray[np.int64],
        entries: Buffer,
        width: int,
        count: int,
        out: Buffer,
        at: int = 0,
        validity: Buffer | None = None,
        bit: int = 0,
    ) -> None: ...

def check_indices(
    indices: Buffer, bits: int, length: int, count: int, validity: Buffer | None = None, bit: int = 0
) -> None: ...

class VariableValues:
    def __init__(self, chunks: Chunks, wide: bool, symbol_table: Buffer | None = None, buffer: int = 0) -> None: ...
    @property
    def most_bytes(self) -> int: ...
    def size(self, start: int, stop: int) -> int: ...
    def estimate(self, start: int, stop: int) -> int: ...
    def scan(
        self, start: int, stop: int, wide: bool, offsets: Buffer, out: Buffer, base: int = 0, exact: bool = False
    ) -> tuple[int, int]: ...
    def scan_offsets(self, start: int, stop: int, wide: bool, out: Buffer, base: int = 0) -> int: ...
    def scan_bytes(self, start: int, stop: int, out: Buffer) -> int: ...
    def take_offsets(self, items: NDArray[np.int64], wide: bool, out: Buffer, base: int = 0) -> int: ...
    def take_bytes(self, items: NDArray[np.int64], out: Buffer) -> int: ...
