from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

#: Child to be packed: ``(data, width)``, or ``(data, bytes of the length, Arrow offsets, wide)``. For type checkers.
Child: TypeAlias = tuple[Buffer, int] | tuple[Buffer, int, Buffer, bool]
#: Child of a row to be split: whether it is variable, and its width or that of its length (4 or 8).
Field: TypeAlias = tuple[bool, int]

def row_bytes(widths: Sequence[int]) -> int: ...
def pack(columns: Sequence[Buffer], widths: Sequence[int], rows: int, out: Buffer, stride: int = 0) -> int: ...
def unpack(
    source: Buffer, widths: Sequence[int], rows: int, columns: Sequence[Buffer | None], stride: int = 0
) -> None: ...
def take(
    source: Buffer,
    widths: Sequence[int],
    rows: int,
    index: NDArray[np.int64],
    columns: Sequence[Buffer | None],
    stride: int = 0,
) -> None: ...
def row_offsets(
    children: Sequence[Child], rows: int, wide: bool, out: Buffer, validity: Buffer | None = None, bit: int = 0
) -> None: ...
def pack_rows(
    children: Sequence[Child], rows: int, out: Buffer, validity: Buffer | None = None, bit: int = 0
) -> int: ...
def split_rows(
    offsets: Buffer,
    wide: bool,
    data: Buffer,
    rows: int,
    fields: Sequence[Field],
    outputs: Sequence[Buffer | tuple[Buffer, bool] | None],
    validity: Buffer | None = None,
    bit: int = 0,
) -> list[int]: ...
def split_bytes(
    offsets: Buffer,
    wide: bool,
    data: Buffer,
    rows: int,
    fields: Sequence[Field],
    outputs: Sequence[Buffer | None],
    validity: Buffer | None = None,
    bit: int = 0,
) -> None: ...
