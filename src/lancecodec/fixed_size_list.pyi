from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

class Shape:
    dimensions: tuple[int, ...]
    has_validity: tuple[bool, ...]

    def __init__(self, dimensions: Sequence[int], has_validity: Sequence[bool], bits: int) -> None: ...
    @property
    def bits(self) -> int: ...
    @property
    def buffers(self) -> int: ...
    @property
    def row_bytes(self) -> int: ...
    def rows_per_chunk(self) -> int: ...
    def plan(self, rows: int, per_chunk: int, ends: NDArray[np.int64]) -> int: ...
    def encode(
        self,
        validity: Sequence[tuple[Buffer, int] | None],
        values: Buffer | None,
        first: int,
        rows: int,
        per_chunk: int,
        outputs: Sequence[Buffer],
    ) -> None: ...
    def decode_chunk(
        self,
        buffers: Sequence[Buffer],
        rows: int,
        validity: Sequence[Buffer | None],
        values: Buffer | None,
        row: int = 0,
    ) -> None: ...
    def decode(
        self,
        buffers: Sequence[Buffer],
        ends: NDArray[np.int64],
        counts: NDArray[np.int64],
        validity: Sequence[Buffer | None],
        values: Buffer | None,
        row: int = 0,
    ) -> None: ...
    def take_chunk(
        self,
        buffers: Sequence[Buffer],
        rows: int,
        index: NDArray[np.int64],
        validity: Sequence[Buffer | None],
        values: Buffer | None,
        row: int = 0,
    ) -> None: ...
    def pack_rows(
        self,
        validity: Sequence[tuple[Buffer, int] | None],
        values: Buffer | None,
        first: int,
        rows: int,
        out: Buffer,
        stride: int = 0,
    ) -> None: ...
    def unpack_rows(
        self,
        source: Buffer,
        rows: int,
        validity: Sequence[Buffer | None],
        values: Buffer | None,
        row: int = 0,
        stride: int = 0,
        places: NDArray[np.int64] | None = None,
    ) -> None: ...
