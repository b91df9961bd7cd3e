from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

_Pair: TypeAlias = tuple[int, int]
_Entries: TypeAlias = tuple[int, int, Callable[[Any, int, int], Buffer | None] | None]
_Plan: TypeAlias = tuple[int, int, int, int, bool, float, _Pair | None, _Entries | None]

IN_PLACE: int
SIDE_BY_SIDE: int
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
        plan_of: Callable[[Hashable, bytes, bytes], _Plan | None],
    ) -> None: ...
    def in_place(self) -> list[int | None]: ...
    def extent(self) -> tuple[int, int, int]: ...
    def places(self, rows: int, taken: bool) -> list[int]: ...
    def read(self, first: int, last: int, start: int, stop: int, out: Buffer) -> list[int]: ...
    def take(self, first: int, last: int, rows: NDArray[np.int64], out: Buffer) -> list[int]: ...
