"""Exceptions for the problem numbers that kernels return: kernels return numbers, and this module has the messages.

It has no public functions; the other compiled modules cimport ``fail``.
"""

from lancecodec.errors import CodecError, OffsetOverflowError

cdef dict MESSAGES = {
    LC_BAD_SIZE: "a buffer is shorter or longer than its values",
    LC_BAD_WIDTH: "the codec does not support this bit width",
    LC_BAD_COUNT: "the counts do not add up, or exceed what one unit of the codec can hold",
    LC_BAD_OFFSETS: "offsets decrease, start too early or exceed their bytes",
    LC_BAD_RUN: "a run has length 0, or the runs do not cover the values",
    LC_BAD_CODE: "a code has no symbol, or an escape has no byte",
    LC_BAD_TABLE: "this is not a valid symbol table",
    LC_BAD_INDEX: "an index has no dictionary entry",
    LC_BAD_LEVEL: "a repetition or definition level does not exist in these layers",
    LC_BAD_HEADER: "a header contradicts the buffer it describes",
    LC_BAD_ROW: "a packed row is shorter or longer than its fields",
}


cdef int fail(int problem, str what) except -1:
    """Raise the exception for a problem number. `what` names the codec and, if known, the chunk or value."""
    if problem == LC_NO_MEMORY:
        raise MemoryError(what)
    if problem == LC_NO_SPACE:
        raise OffsetOverflowError(f"{what}: the values do not fit the output or its offsets")
    raise CodecError(f"{what}: {MESSAGES.get(problem, f'problem {problem}')}")
