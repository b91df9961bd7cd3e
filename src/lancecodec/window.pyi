from collections.abc import Sequence

from typing_extensions import Buffer

from lancecodec.take import ColumnTaker

class SpareMemory:
    def __init__(self, most: int) -> None: ...

class WindowArrays:
    def column(self, number: int) -> int | None: ...

class Window:
    num_rows: int
    def __init__(
        self,
        columns: Sequence[ColumnTaker | None],
        start: int,
        stop: int,
        mask: Buffer | None = None,
        bit: int = 0,
    ) -> None: ...
    def room(self) -> list[tuple[bool, int] | None]: ...
    def read(
        self, outputs: Sequence[tuple[Buffer, Buffer | None, Buffer | None, bool, bool] | None]
    ) -> list[tuple[int, int] | None]: ...
    def readable(self) -> list[bool]: ...
    def arrays(self, kinds: Sequence[tuple[bool, bool]], memory: SpareMemory) -> WindowArrays: ...
