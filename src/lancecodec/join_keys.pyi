from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

KeyColumn: TypeAlias = tuple[int, bool, Buffer | None, int, Buffer, int, Buffer | None, bool]

BITS: int
TEXTS: int
NOTHING: int

class KeyTable:
    def __init__(self) -> None: ...
    def add(self, columns: Iterable[KeyColumn], rows: int, out: NDArray[np.int64]) -> None: ...
    def find(
        self, columns: Iterable[KeyColumn], rows: int, places: NDArray[np.int64], out: NDArray[np.int64]
    ) -> int: ...
    def __len__(self) -> int: ...

class KeyParts:
    def __init__(self, parts: int) -> None: ...
    def numbers(self, columns: Iterable[KeyColumn], rows: int, out: NDArray[np.int64]) -> None: ...

def pack(columns: Iterable[KeyColumn], rows: int, ends: NDArray[np.int64]) -> bytes: ...
def measure_groups(groups: NDArray[np.int64], first: NDArray[np.int64], sizes: NDArray[np.int64]) -> None: ...
