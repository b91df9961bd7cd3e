from typing import Literal

from typing_extensions import Buffer

class FixedStatistics:
    count: int
    null_count: int
    first_valid: int
    width: int
    all_equal: bool
    run_count: int
    cut_run_count: int | None
    rle_entries: int | None
    bit_width: int
    inline_size: int | None
    nan_count: int | None
    min: int | float | None
    max: int | float | None

    @property
    def rle_size(self) -> int | None: ...

class VariableStatistics:
    count: int
    null_count: int
    first_valid: int
    all_equal: bool
    min_length: int
    max_length: int
    total_length: int
    empty_count: int

def fixed(
    values: Buffer,
    width: int,
    kind: Literal["u", "i", "f"] = "u",
    validity: Buffer | None = None,
    bit: int = 0,
    widths: Buffer | None = None,
    run_cut: int = 4096,
) -> FixedStatistics: ...
def fixed_bytes(values: Buffer, width: int, validity: Buffer | None = None, bit: int = 0) -> FixedStatistics: ...
def variable(
    values: Buffer, offsets: Buffer, wide: bool, validity: Buffer | None = None, bit: int = 0
) -> VariableStatistics: ...
def byte_entropy(values: Buffer, width: int) -> float: ...

class DistinctSketch:
    precision: int

    def __init__(self, precision: int = 12) -> None: ...
    def add_fixed(self, values: Buffer, width: int, validity: Buffer | None = None, bit: int = 0) -> None: ...
    def add_variable(
        self, values: Buffer, offsets: Buffer, wide: bool, validity: Buffer | None = None, bit: int = 0
    ) -> None: ...
    def merge(self, other: DistinctSketch) -> None: ...
    def estimate(self) -> float: ...
    def __bytes__(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: Buffer) -> DistinctSketch: ...
