from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from lancecodec.miniblock import Chunks

FLAT: Final[int]
INLINE: Final[int]
RLE: Final[int]
OUT_OF_LINE: Final[int]

class Levels:
    def __init__(
        self,
        chunks: Chunks,
        *,
        repetition: tuple[int, int] | None = None,
        definition: tuple[int, int] | None = None,
        max_repetition: int = 0,
        max_definition: int = 0,
        max_visible: int = 0,
    ) -> None: ...
    def begins(self, first: int, stop: int) -> memoryview: ...
    def scan(
        self, first: int, stop: int, repetition: Buffer | None = None, definition: Buffer | None = None
    ) -> int: ...
    def take(self, items: NDArray[np.int64], definition: Buffer) -> None: ...
    def take_rows(
        self,
        index: RepetitionIndex,
        rows: NDArray[np.int64],
        begins: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> tuple[bytes, bytes | None]: ...

def row_starts(
    repetition: Buffer,
    definition: Buffer | None,
    length: int,
    max_repetition: int,
    max_visible: int,
    entries: NDArray[np.int64],
    values: NDArray[np.int64],
) -> int: ...

class RepetitionIndex:
    num_chunks: int
    num_rows: int
    started: memoryview
    ended: memoryview

    def __init__(self, data: Buffer, num_chunks: int, num_rows: int) -> None: ...
    def chunk_range(self, start: int, stop: int) -> tuple[int, int, int]: ...
