from typing_extensions import Buffer

HAS_NULL: int
HAS_VALID: int
HAS_NAN: int
BOUNDED: int

class ZoneBounds:
    num_rows: int
    zone_rows: int

    def __init__(self, zone_rows: int) -> None: ...
    def __len__(self) -> int: ...
    def add_fixed(
        self, values: Buffer, bits: int, order: int, validity: Buffer | None = None, bit: int = 0
    ) -> None: ...
    def add_texts(
        self, data: Buffer, offsets: Buffer, wide: bool, validity: Buffer | None = None, bit: int = 0
    ) -> None: ...
    def halve(self) -> None: ...
    def write(self, low: Buffer, high: Buffer, flags: Buffer) -> None: ...
