import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

class Alphabet:
    def __init__(self, ranges: NDArray[np.int32]) -> None: ...

class FoundTokens:
    def __init__(
        self,
        codes: NDArray[np.int32],
        positions: NDArray[np.int32],
        ends: NDArray[np.int64],
        longest: int = ...,
        lower: bool = False,
    ) -> None: ...

class TokenTable:
    @property
    def count(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def runs(
        self,
        alphabet: Alphabet,
        found: FoundTokens,
        data: Buffer,
        offsets: Buffer,
        wide: bool,
        validity: Buffer | None = None,
        bit: int = 0,
    ) -> int: ...
    def grams(
        self,
        shortest: int,
        largest: int,
        prefixes: bool,
        found: FoundTokens,
        data: Buffer,
        offsets: Buffer,
        wide: bool,
        validity: Buffer | None = None,
        bit: int = 0,
    ) -> int: ...
    def whole(
        self,
        found: FoundTokens,
        data: Buffer,
        offsets: Buffer,
        wide: bool,
        validity: Buffer | None = None,
        bit: int = 0,
    ) -> int: ...
    def tokens(self, start: int = 0) -> tuple[bytes, bytes]: ...
