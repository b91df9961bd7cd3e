"""Putting the buffers of a page's chunks together: chunk words and chunks."""

from collections.abc import Iterable, Sequence

from typing_extensions import Buffer

class Assembly:
    """The chunks of a page about to be written, checked against the limits of the format.

    Parameters
    ----------
    counts
        Values per chunk: powers of two from 2 to 32768, the last chunk any number from 1 on.
    values
        Value buffers: the bytes of all chunks back to back, and the end of each chunk in them.
    large
        2.2 and later: words and value buffer sizes have 32 bits. Else chunks are at most 32 KiB.
    levels
        Entries per chunk, at most 65,535, if there are level streams.
    level_streams
        Encoded repetition levels, then definition levels, those of both that exist; as `values`.
    full
        Values of a full chunk for codecs whose chunks all have one size (flat values, fixed-size lists, packed
        structs): a last chunk of so many has its logarithm in its word, as the reference has it. 0 for other codecs.

    Raises
    ------
    CodecError
        A count, a size or a sum is not allowed; the message names the chunk.
    """

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
    def write(self, words: Buffer, chunks: Buffer) -> None:
        """Write page buffers 0 and 1, of `words_size` and `chunks_size` bytes."""
