from typing_extensions import Buffer

class ChunkTable:
    large: bool
    num_chunks: int
    num_items: int
    largest: int
    starts: memoryview
    firsts: memoryview

    def __init__(self, words: Buffer, num_items: int, chunks_size: int, large: bool) -> None: ...
    def locate(self, item: int) -> tuple[int, int]: ...
    def chunk_range(self, start: int, stop: int) -> tuple[int, int]: ...

class Chunks:
    table: ChunkTable

    def __init__(
        self,
        table: ChunkTable,
        num_buffers: int = 1,
        *,
        repetition: bool = False,
        definition: bool = False,
        wrapped: bool = False,
        data: Buffer | None = None,
    ) -> None: ...
    def load(self, data: Buffer, first: int = 0) -> int: ...
    def header(self, chunk: int) -> tuple[int, int | None, int | None, tuple[int, ...]]: ...
    def stored(self, chunk: int, buffer: int = 0) -> bytes: ...
    def replace(self, chunk: int, plain: Buffer) -> None: ...
    def is_ready(self, chunk: int) -> bool: ...
