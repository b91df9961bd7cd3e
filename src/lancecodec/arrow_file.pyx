"""Files of Arrow with one record batch, such as deletion files: where its schema and its buffers lie."""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, readable

cdef extern from "kernels/arrow_file.h" nogil:
    ctypedef struct lc_bytes:
        const uint8_t *data
        int64_t size
    ctypedef struct lc_arrow_batch:
        int64_t schema_end, rows, codec, columns
        int64_t *nulls
        int64_t *starts
        int64_t *sizes
    int lc_arrow_only_batch(lc_bytes src, lc_arrow_batch *out)


def only_batch(src):
    """Find the only record batch of a file of Arrow that has at most 16 columns, all of fixed width.

    Parameters
    ----------
    src
        The whole file.

    Returns
    -------
    schema_end : int
        Position after the message with the schema.
    rows : int
        Number of rows.
    codec : int
        Codec of the buffers: -1 for none, 0 for LZ4, 1 for Zstandard.
    nulls : list of int
        Stated number of nulls of each column.
    places : list of (int, int)
        Position and size of the validity and of the values of each column, within the file.

    None instead of all these if the file has another form, or is damaged.
    """
    cdef ByteView view = readable(src)
    cdef lc_bytes given
    cdef lc_arrow_batch found
    cdef int64_t i
    given.data, given.size = view.data, view.size
    if not lc_arrow_only_batch(given, &found):
        return None
    nulls = [found.nulls[i] for i in range(found.columns)]
    places = [(found.starts[i], found.sizes[i]) for i in range(2 * found.columns)]
    return found.schema_end, found.rows, found.codec, nulls, places
