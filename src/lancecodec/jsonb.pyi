import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

MISSING: int
NULL_VALUE: int
STRING: int
INTEGER: int
UNSIGNED: int
FLOAT: int
FALSE: int
TRUE: int
ARRAY: int
OBJECT: int
OTHER: int
EXISTS: int
AND: int
OR: int
EQUAL: int
UNEQUAL: int
LESS: int
LESS_OR_EQUAL: int
GREATER: int
GREATER_OR_EQUAL: int
STARTS_WITH: int
REFUTED: int
MET: int
UNKNOWN: int
LEFT: int
MAX_VERDICTS: int
MAX_LEVELS: int

def find(
    data: Buffer,
    offsets: Buffer,
    wide: bool,
    keys: Buffer,
    steps: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    words: NDArray[np.int64],
    ranges: NDArray[np.int64],
) -> None: ...
def follow(
    data: Buffer,
    keys: Buffer,
    steps: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    words: NDArray[np.int64],
    ranges: NDArray[np.int64],
) -> None: ...
def count(
    data: Buffer,
    objects: bool,
    alone: int,
    kinds: NDArray[np.uint8],
    ranges: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None: ...
def children(
    data: Buffer,
    objects: bool,
    kinds: NDArray[np.uint8],
    words: NDArray[np.int64],
    ranges: NDArray[np.int64],
    counts: NDArray[np.int64],
    child_kinds: NDArray[np.uint8],
    child_words: NDArray[np.int64],
    child_ranges: NDArray[np.int64],
) -> None: ...
def documents(
    data: Buffer, kinds: NDArray[np.uint8], ranges: NDArray[np.int64], out: Buffer, ends: NDArray[np.int64]
) -> None: ...
def test(
    data: Buffer,
    texts: Buffer,
    steps: NDArray[np.int64],
    tests: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    words: NDArray[np.int64],
    ranges: NDArray[np.int64],
    verdicts: NDArray[np.uint8],
) -> None: ...
def digits(data: Buffer, kinds: NDArray[np.uint8], words: NDArray[np.int64], ranges: NDArray[np.int64]) -> None: ...
def strings(
    data: Buffer, kinds: NDArray[np.uint8], ranges: NDArray[np.int64], out: Buffer, ends: NDArray[np.int64]
) -> None: ...
