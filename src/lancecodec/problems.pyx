"""Problem numbers of the kernels, as exceptions: the words are in one place, the kernels return numbers."""

from lancecodec.errors import CodecError, OffsetOverflowError

cdef dict MESSAGES = {
    LC_BAD_SIZE: "a buffer is shorter or longer than its values",
    LC_BAD_WIDTH: "the codec has no such bit width",
    LC_BAD_COUNT: "the counts do not add up, or are more than the codec holds in one unit",
    LC_BAD_OFFSETS: "offsets decrease, start too early or pass their bytes",
    LC_BAD_RUN: "a run has length 0, or the runs do not cover the values",
    LC_BAD_CODE: "a code has no symbol, or an escape has no byte",
    LC_BAD_TABLE: "this is not a symbol table",
    LC_BAD_INDEX: "an index has no dictionary entry",
    LC_BAD_LEVEL: "a repetition or definition level does not exist in these layers",
    LC_BAD_HEADER: "a header contradicts the buffer it describes",
    LC_BAD_ROW: "a packed row is shorter or longer than its fields",
}


cdef int fail(int problem, str what) except -1:
    """Raise what a kernel's number stands for; `what` names the codec and, where known, the chunk or value."""
    if problem == LC_NO_MEMORY:
        raise MemoryError(what)
    if problem == LC_NO_SPACE:
        raise OffsetOverflowError(f"{what}: the values do not fit the output or its offsets")
    raise CodecError(f"{what}: {MESSAGES.get(problem, f'problem {problem}')}")
