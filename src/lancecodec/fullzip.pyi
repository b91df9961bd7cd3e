import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

class ZipLayout:
    item_size: int | None

    def __init__(
        self,
        *,
        bits_rep: int = 0,
        bits_def: int = 0,
        max_repetition: int = 0,
        max_definition: int = 0,
        max_visible: int = 0,
        width: int | None = None,
        offset_bits: int | None = None,
        symbol_table: Buffer | None = None,
    ) -> None: ...
    def count(self, data: Buffer, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> tuple[int, int, int, int]: ...
    def unzip_fixed(
        self,
        data: Buffer,
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
        values: Buffer,
        *,
        repetition: Buffer | None = None,
        definition: Buffer | None = None,
    ) -> tuple[int, int, int]: ...
    def unzip_variable(
        self,
        data: Buffer,
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
        wide: bool,
        offsets: Buffer,
        values: Buffer,
        *,
        repetition: Buffer | None = None,
        definition: Buffer | None = None,
        base: int = 0,
    ) -> tuple[int, int, int, int]: ...
    def scan_fixed(
        self, data: Buffer, start: int, stop: int, values: Buffer, definition: Buffer | None = None
    ) -> None: ...
    def take_fixed(
        self, data: Buffer, items: NDArray[np.int64], values: Buffer, definition: Buffer | None = None
    ) -> None: ...
    def zipped_size(
        self,
        length: int,
        values: Buffer,
        *,
        repetition: Buffer | None = None,
        definition: Buffer | None = None,
        offsets: Buffer | None = None,
        wide: bool = False,
    ) -> tuple[int, int, int]: ...
    def zip_items(
        self,
        length: int,
        values: Buffer,
        out: Buffer,
        index: Buffer | None = None,
        index_width: int = 0,
        *,
        repetition: Buffer | None = None,
        definition: Buffer | None = None,
        offsets: Buffer | None = None,
        wide: bool = False,
    ) -> tuple[int, int]: ...

def index_width(size: int, rows: int) -> int: ...
def row_ranges(
    index: Buffer,
    width: int,
    rows: NDArray[np.int64],
    size: int,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    first: int = 0,
) -> None: ...
def row_span(index: Buffer, width: int, start: int, stop: int, size: int, first: int = 0) -> tuple[int, int]: ...
