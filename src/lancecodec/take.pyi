from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from lancecodec.blocks import FileBlocks
from lancecodec.take_pages import PageTaker

ADDRESSES: Final[str]

class ColumnTaker:
    width: int
    def __init__(self, starts: Sequence[int], width: int, open_page: Callable[[int], PageTaker | None]) -> None: ...
    @property
    def num_rows(self) -> int: ...
    def open(self, number: int) -> None: ...

class FragmentTaker:
    def __init__(
        self, columns: Sequence[ColumnTaker | str | None], rows: int, fragment_id: int, deleted: Buffer | None = None
    ) -> None: ...

class RowTaker:
    num_columns: int
    def __init__(
        self,
        shapes: Sequence[tuple[int, bool, bool, Sequence[int], int]],
        starts: Buffer,
        open_fragment: Callable[[int], FragmentTaker],
    ) -> None: ...
    @property
    def num_rows(self) -> int: ...
    def open(self, position: int) -> None: ...
    def numbers(
        self, rows: NDArray[np.int64], pending: list[tuple[RowTaker | ColumnTaker, int]] | None = None
    ) -> TakenRows: ...
    def places(
        self, rows: NDArray[np.int64], pending: list[tuple[RowTaker | ColumnTaker, int]] | None = None
    ) -> TakenRows: ...

class TakenRows:
    num_rows: int
    waits: bool
    def requests(self) -> list[tuple[FileBlocks, list[tuple[int, int]]]]: ...
    def decode(self, column: int) -> None: ...
    def decode_all(self) -> None: ...
    @property
    def missing(self) -> list[int]: ...
    def column(self, column: int) -> int: ...
    def batch(self) -> int: ...

def integers(values: list[object]) -> memoryview | None: ...
