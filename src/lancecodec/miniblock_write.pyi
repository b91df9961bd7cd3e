from collections.abc import Iterable, Sequence

from typing_extensions import Buffer

class Assembly:
    words_size: int
    chunks_size: int

    def __init__(
        self,
        counts: Iterable[int],
        values: Sequence[tuple[Buffer, Iterable[int]]],
        large: bool,
        *,
        levels: Iterable[int] | None = None,
        level_streams: Sequence[tuple[Buffer, Iterable[int]]] = (),
        full: int = 0,
    ) -> None: ...
    def write(self, words: Buffer, chunks: Buffer) -> None: ...
