import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from lancecodec.blocks import FileBlocks, Held
from lancecodec.miniblock import Chunks

class PageTaker:
    @property
    def num_rows(self) -> int: ...
    def load_from(self, blocks: FileBlocks) -> None: ...

def nulls(rows: int, width: int, *, required: bool = False) -> PageTaker: ...
def constant(
    rows: int, width: int, value: Buffer, *, definition: Buffer | None = None, required: bool = False
) -> PageTaker: ...

class Lists:
    num_rows: int
    def __init__(
        self,
        started: Buffer,
        repetition: tuple[int, int],
        *,
        null_items: bool = False,
        null_lists: bool = False,
        empty_lists: bool = False,
        required: bool = False,
    ) -> None: ...

def fixed_chunks(
    chunks: Chunks,
    width: int,
    kind: int,
    bits: int,
    *,
    definition: tuple[int, int] | None = None,
    entries: Buffer | None = None,
    offsets: Buffer | None = None,
    wide: bool = False,
    count: int = 0,
    lists: Lists | None = None,
    required: bool = False,
) -> PageTaker: ...
def indexed_chunks(
    chunks: Chunks,
    width: int,
    kind: int,
    bits: int,
    block: Buffer,
    count: int,
    *,
    wide: bool = False,
    definition: tuple[int, int] | None = None,
    required: bool = False,
) -> PageTaker: ...
def text_chunks(
    chunks: Chunks,
    wide: bool,
    *,
    symbol_table: Buffer | None = None,
    definition: tuple[int, int] | None = None,
    lists: Lists | None = None,
    required: bool = False,
) -> PageTaker: ...
def zipped(
    data: Buffer,
    rows: int,
    width: int,
    *,
    bits_def: int = 0,
    index: Buffer | None = None,
    index_width: int = 0,
    offset_bits: int | None = None,
    symbol_table: Buffer | None = None,
    required: bool = False,
) -> PageTaker: ...
def hold_values(chunks: Chunks, blocks: FileBlocks, items: NDArray[np.int64]) -> Held: ...
def hold_lists(chunks: Chunks, blocks: FileBlocks, started: Buffer, rows: NDArray[np.int64]) -> Held: ...
