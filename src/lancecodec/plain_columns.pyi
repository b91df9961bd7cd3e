from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

IN_PLACE: int
MOST_ROWS: int

class PlainColumns:
    rows: int
    def __init__(
        self,
        file: Buffer,
        table: Buffer,
        numbers: list[int],
        kinds: list[Hashable],
        rows: int,
        plan_of: Callable[[Hashable, bytes, bytes], tuple[int, int, int, bool, float] | None],
    ) -> None: ...
    def in_place(self) -> list[int | None]: ...
    def extent(self) -> tuple[int, int, int]: ...
    def places(self, rows: int, taken: bool) -> list[int]: ...
    def read(self, first: int, last: int, start: int, stop: int, out: Buffer) -> list[int]: ...
    def take(self, first: int, last: int, rows: NDArray[np.int64], out: Buffer) -> list[int]: ...
