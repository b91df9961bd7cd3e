"""Suffix arrays and Burrows-Wheeler transforms of texts.

A text is bytes of which only the last one is 0. It is made of documents, each followed by byte 255.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/suffix_array.h" nogil:
    int lc_suffix_array(const uint8_t *text, int64_t n, int32_t *sa)
    void lc_transform(const uint8_t *text, const int32_t *sa, int64_t n, uint8_t *out)
    int64_t lc_texts_join(lc_bytes data, const uint8_t *offsets, int wide, int64_t count, uint8_t zero, uint8_t top,
                          lc_bytes out)


cdef int check_suffixes(const int32_t[::1] suffixes, int64_t size) except -1:
    if suffixes.shape[0] != size or not size:
        raise CodecError(f"{size} bytes of text have as many suffixes, not {suffixes.shape[0]}")
    if <uintptr_t>&suffixes[0] % sizeof(int32_t):
        raise CodecError("the array of suffixes is not aligned to 4 bytes; copy it first")
    return 0


def join_documents(data, offsets, bint wide, uint8_t zero, uint8_t top, out):
    """Write documents one after another, each followed by byte 255, and a byte 0 at the end.

    Parameters
    ----------
    data
        Bytes of the documents.
    offsets
        One more offset than documents.
    wide
        True for offsets of 64 bits, False for 32 bits.
    zero
        Replaces byte 0 in the documents.
    top
        Replaces byte 255 in the documents.
    out
        Output with room for the documents and one more byte than documents.

    Returns
    -------
    int
        Number of bytes written.

    Raises
    ------
    CodecError
        Offsets decrease or exceed the data.
    OffsetOverflowError
        `out` is too small.
    """
    cdef ByteView source = readable(data), ends = readable(offsets), target = writable(out)
    cdef int64_t width = 8 if wide else 4, written
    cdef lc_bytes values, room
    if ends.size < width or ends.size % width:
        raise CodecError(f"{ends.size} bytes are not a whole number of offsets of {width} bytes, at least one")
    values.data, values.size = source.data, source.size
    room.data, room.size = target.data, target.size
    with nogil:
        written = lc_texts_join(values, ends.data, wide, ends.size // width - 1, zero, top, room)
    if written < 0:
        fail(<int>-written, "documents of a text")
    return written


def suffix_array(text, int32_t[::1] out):
    """Write the positions of all suffixes of a text in ascending order of the suffixes.

    The algorithm is SA-IS: Nong, Zhang, Chan, "Linear suffix array construction by almost pure induced-sorting", 2009.

    Parameters
    ----------
    text
        Text of n bytes, of which only the last one is 0; less than 2**31 - 1. It must not change during the call.
    out
        Output int32 array of length n.

    Raises
    ------
    CodecError
        The text does not end with its only byte 0, or the output has another length.
    """
    cdef ByteView source = readable(text)
    cdef int problem
    check_suffixes(out, source.size)
    with nogil:
        problem = lc_suffix_array(source.data, source.size, &out[0])
    if problem != LC_OK:
        fail(problem, f"suffixes of {source.size} bytes, of which only the last one must be 0")


def transform(text, const int32_t[::1] suffixes, out):
    """Write the byte in front of each suffix, in the order of the suffixes; the last byte for the whole text.

    Parameters
    ----------
    text
        Text of n bytes.
    suffixes
        Result of `suffix_array`.
    out
        Output of n bytes.

    Raises
    ------
    CodecError
        The three have different lengths.
    """
    cdef ByteView source = readable(text), target = writable(out)
    check_suffixes(suffixes, source.size)
    if target.size != source.size:
        raise CodecError(f"{target.size} bytes of output are not as many as those of the text, {source.size}")
    with nogil:
        lc_transform(source.data, &suffixes[0], source.size, target.data)
