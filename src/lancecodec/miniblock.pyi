"""Mini-block pages of file versions 2.1 and 2.2: where the chunks are, and the bytes of those that were read.

A page's `ChunkTable` comes from its chunk words alone and can be cached; `Chunks` holds chunk bytes for one read.
`lancecodec.miniblock_values` and `lancecodec.miniblock_levels` decode what is in them.
"""

from typing_extensions import Buffer

class ChunkTable:
    """Places and first values of the chunks of a page. Does not change, so threads may share it.

    Parameters
    ----------
    words
        Page buffer 0: one word of 16 bits, or 32 if `large`, per chunk.
    num_items
        Values (visible items) of the page.
    chunks_size
        Bytes of page buffer 1.
    large
        The layout's ``has_large_chunk``.

    Raises
    ------
    CodecError
        The words do not add up to `chunks_size` bytes or `num_items` values, or a chunk has a count the format does not
        allow there.
    """

    large: bool
    num_chunks: int
    num_items: int
    largest: int
    """Values of the largest chunk."""
    starts: memoryview
    """int64: first byte of each chunk in page buffer 1, then the size of all."""
    firsts: memoryview
    """int64: first value of each chunk, then `num_items`."""

    def __init__(self, words: Buffer, num_items: int, chunks_size: int, large: bool) -> None: ...
    def locate(self, item: int) -> tuple[int, int]:
        """Chunk of a value, and its position there."""

    def chunk_range(self, start: int, stop: int) -> tuple[int, int]:
        """First chunk with values of [start, stop), and the one behind the last; (0, 0) for none."""

class Chunks:
    """Bytes of the chunks of one page, all of them or those that were read.

    Load (and replace) before decoding; afterwards threads may decode from it at the same time. The buffers given are
    kept alive, not copied.

    Parameters
    ----------
    table
        Where the chunks are.
    num_buffers
        Value buffers per chunk, at most 16.
    repetition, definition
        Whether the chunks have such streams.
    wrapped
        Value buffer 0 is compressed (General): every chunk must be given its decompressed one with `replace` before it
        is decoded.
    data
        The bytes of all chunks, as for `load`.
    """

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
    def load(self, data: Buffer, first: int = 0) -> int:
        """Take over the bytes of whole chunks, from chunk `first` on; returns how many there are."""

    def header(self, chunk: int) -> tuple[int, int | None, int | None, tuple[int, ...]]:
        """Number of levels as stored, sizes of the repetition, definition and value buffers."""

    def stored(self, chunk: int, buffer: int = 0) -> bytes:
        """A copy of a value buffer as it is in the file: what to decompress."""

    def replace(self, chunk: int, plain: Buffer) -> None:
        """Set what value buffer 0 of a chunk is when decompressed."""

    def is_ready(self, chunk: int) -> bool:
        """Whether a chunk was loaded and, if `wrapped`, replaced."""
