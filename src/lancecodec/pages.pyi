from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from lancecodec.blocks import FileBlocks, Held

#: One page of `EndsPages`, for type checkers only.
EndsTable: TypeAlias = tuple[Buffer, int, int, int, Buffer | None, Buffer | None, int]

class FixedPages:
    has_nulls: bool
    num_rows: int

    def hold(self, rows: NDArray[np.int64], blocks: FileBlocks) -> Held: ...
    def __init__(
        self, starts: Sequence[int], bits: int, values: list[Buffer | None], validity: list[Buffer | None]
    ) -> None: ...
    def take(self, rows: NDArray[np.int64], out: Buffer, validity: Buffer | None = None) -> int: ...

class EndsPages:
    num_rows: int

    def hold(self, rows: NDArray[np.int64], blocks: FileBlocks) -> Held: ...
    def __init__(
        self,
        starts: Sequence[int],
        pages: list[EndsTable | None],
    ) -> None: ...
    def take_offsets(
        self,
        rows: NDArray[np.int64],
        wide: bool,
        offsets: Buffer,
        validity: Buffer,
        begins: NDArray[np.int64] | None = None,
    ) -> tuple[int, int]: ...
    def take_bytes(self, rows: NDArray[np.int64], wide: bool, offsets: Buffer, out: Buffer) -> None: ...
