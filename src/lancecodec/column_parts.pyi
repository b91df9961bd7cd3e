from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

VALUES: int
TEXTS: int
WIDE_TEXTS: int
INDICES: int

class ColumnParts:
    def __init__(
        self,
        parts: list[tuple[Buffer, int, int, int, int, int]],
        plans: dict[tuple[bytes, bytes], tuple[int, int, Any, tuple[Any, ...]] | None],
        plan_of: Callable[[bytes, bytes], tuple[int, int, Any, tuple[Any, ...]] | None],
    ) -> None: ...
    def groups(self, limit: int) -> list[tuple[int, int, int, int, int]]: ...
    def places(self, first: int, last: int) -> list[tuple[int, int]]: ...
    def dictionaries(self, first: int, last: int) -> list[tuple[Any, int, int]]: ...
    def read(self, first: int, last: int, out: Buffer, validity: Buffer) -> int: ...
    def read_indices(
        self,
        first: int,
        last: int,
        bases: NDArray[np.int64],
        counts: NDArray[np.int64],
        out: Buffer,
        validity: Buffer,
    ) -> int: ...
    def read_texts(self, first: int, last: int, wide: bool, offsets: Buffer, out: Buffer, validity: Buffer) -> int: ...
