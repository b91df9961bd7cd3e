from typing_extensions import Buffer

def decode(
    raw: Buffer,
    start: int,
    stop: int,
    adjustment: int,
    limit: int,
    wide: bool,
    offsets: Buffer,
    validity: Buffer,
) -> tuple[int, int, int]: ...
def encode(
    offsets: Buffer,
    wide: bool,
    length: int,
    validity: Buffer | None,
    bit: int,
    base: int,
    adjustment: int,
    out: Buffer,
) -> None: ...
