import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def max_level(levels: Buffer) -> int: ...
def count_rows(repetition: Buffer, max_repetition: int) -> int: ...
def count_visible(definition: Buffer, start: int, stop: int, max_visible_definition: int) -> int: ...
def row_starts(repetition: Buffer, max_repetition: int, out: NDArray[np.int64]) -> int: ...
def row_items(repetition: Buffer, max_repetition: int, start: int, stop: int) -> tuple[int, int]: ...
def cut(
    definition: Buffer | None,
    num_items: int,
    max_visible_definition: int,
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int: ...
def repetition_index(repetition: Buffer, max_repetition: int, ends: NDArray[np.int64], out: Buffer) -> None: ...
def control_width(bits_repetition: int, bits_definition: int) -> int: ...
def pack_control_words(
    repetition: Buffer | None,
    definition: Buffer | None,
    num_items: int,
    bits_repetition: int,
    bits_definition: int,
    out: Buffer,
) -> None: ...
def unpack_control_words(
    words: Buffer,
    num_items: int,
    bits_repetition: int,
    bits_definition: int,
    repetition: Buffer | None,
    definition: Buffer | None,
) -> None: ...
