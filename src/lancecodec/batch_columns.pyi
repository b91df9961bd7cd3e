import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

MOST_BATCHES: int

class BatchColumns:
    rows: int
    def __init__(
        self,
        file: Buffer,
        starts: NDArray[np.int64],
        table: int,
        numbers: list[int],
        bits: list[int],
        entries: list[int],
    ) -> None: ...
    def in_place(self) -> list[int | None]: ...
    def extent(self) -> tuple[int, int, int]: ...
    def places(self, rows: int, taken: bool) -> list[int]: ...
    def read(self, first: int, last: int, start: int, stop: int, out: Buffer) -> list[int]: ...
    def take(self, first: int, last: int, rows: NDArray[np.int64], out: Buffer) -> list[int]: ...
