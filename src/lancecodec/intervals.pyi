from collections.abc import Sequence

from typing_extensions import Buffer

from lancecodec.miniblock import Chunks

MOST_INTERVALS: int
UNSIGNED: int
SIGNED: int
FLOAT: int
NONE_PASS: int
ALL_PASS: int
SOME_PASS: int

class IntervalTest:
    null: bool
    def __init__(self, bits: int, order: int, intervals: Sequence[tuple[int, int]], *, null: bool = False) -> None: ...
    @property
    def bits(self) -> int: ...
    @property
    def order(self) -> int: ...
    def verdicts(self, low: Buffer, high: Buffer, flags: Buffer, out: Buffer) -> None: ...
    def values(self, values: Buffer, out: Buffer) -> None: ...

class ChunkRanges:
    def __init__(self, count: int, *, wide: bool = False) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, chunk: int) -> tuple[int, int] | None: ...

def search(
    chunks: Chunks,
    kind: int,
    bits: int,
    definition: tuple[int, int] | None,
    test: IntervalTest,
    ranges: ChunkRanges,
    start: int,
    stop: int,
    out: Buffer,
    kept: Buffer | None = None,
) -> None: ...
def search_indices(
    chunks: Chunks,
    kind: int,
    bits: int,
    definition: tuple[int, int] | None,
    test: IntervalTest,
    ranges: ChunkRanges,
    start: int,
    stop: int,
    out: Buffer,
    kept: Buffer | None = None,
    *,
    entries: int,
    marks: Buffer | None = None,
) -> None: ...
def search_nulls(
    chunks: Chunks,
    definition: tuple[int, int] | None,
    valid: bool,
    null: bool,
    ranges: ChunkRanges,
    start: int,
    stop: int,
    out: Buffer,
    kept: Buffer | None = None,
) -> None: ...
