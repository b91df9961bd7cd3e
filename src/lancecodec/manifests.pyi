from typing import TypeAlias

from typing_extensions import Buffer

_Scanned: TypeAlias = tuple[
    int,
    int,
    int,
    int,
    int,
    bytes,
    bool,
    bytes,
    bytes,
    tuple[int, int] | None,
    list[bytes],
    list[tuple[int, int, int, int]],
    int,
    int,
    int,
    int,
]

def scan(src: Buffer, most_files: int) -> _Scanned | None: ...
