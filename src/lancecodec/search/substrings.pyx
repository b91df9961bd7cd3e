"""Search for substrings in documents, of which the Burrows-Wheeler transform is kept in a wavelet tree.

The text is the documents, each followed by a separator. A row is the place of a suffix of the text in their order.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/substring_search.h" nogil:
    ctypedef struct lc_fm:
        int64_t size
        int64_t documents
        int64_t[257] first
        int64_t allocated
    ctypedef struct lc_fm_parts:
        lc_bytes tree
        lc_bytes sizes
        lc_bytes words
        lc_bytes known
        lc_bytes starts
        lc_bytes names
        lc_bytes owners
    ctypedef struct lc_fm_rows:
        int64_t start
        int64_t stop
    int lc_fm_open(lc_fm *fm, int64_t size, int64_t rate, lc_fm_parts parts)
    void lc_fm_close(lc_fm *fm)
    lc_fm_rows lc_fm_find(const lc_fm *fm, const uint8_t *pattern, int64_t n)
    int64_t lc_fm_locate(const lc_fm *fm, lc_fm_rows rows, uint64_t *out)
    int64_t lc_fm_way(const lc_fm *fm)
    int lc_fm_text(const lc_fm *fm, uint8_t *out)
    int lc_hex_read(const uint8_t *digits, int64_t n, uint8_t *out)


cdef lc_bytes view(ByteView source) noexcept:
    cdef lc_bytes found
    found.data, found.size = source.data, source.size
    return found


cdef class Partition:
    """Documents that can be searched. All content is copied.

    Parameters
    ----------
    size
        Number of symbols of the text.
    rate
        Positions are known of each row whose number is a multiple of it.
    tree
        Shape of the wavelet tree, see `lancecodec.search.wavelet.Tree.to_bytes`.
    sizes
        Number of bits of each node (u64).
    words
        Bits of the nodes, each from a new word of 64 bits on.
    known
        Known positions (u64).
    starts
        Position of each document (u64), ascending from 0.
    names
        Number that names each document (u64).
    owners
        The document, by its place, that ends at each separator, in the order of their rows (u16); empty if not known.

    Attributes
    ----------
    size : int
        Number of symbols of the text.
    num_documents : int
        Number of documents.
    nbytes : int
        Allocated bytes.
    way : int
        Estimated number of steps to the document of a row.

    Raises
    ------
    CodecError
        The parts contradict each other.
    """

    cdef lc_fm fm

    def __cinit__(self, int64_t size, int64_t rate, tree, sizes, words, known, starts, names, owners=b""):
        cdef ByteView tree_view = readable(tree), sizes_view = readable(sizes), words_view = readable(words)
        cdef ByteView known_view = readable(known), starts_view = readable(starts), names_view = readable(names)
        cdef ByteView owners_view = readable(owners)
        cdef lc_fm_parts parts
        cdef int problem
        parts.tree, parts.sizes, parts.words = view(tree_view), view(sizes_view), view(words_view)
        parts.known, parts.starts, parts.names = view(known_view), view(starts_view), view(names_view)
        parts.owners = view(owners_view)
        with nogil:
            problem = lc_fm_open(&self.fm, size, rate, parts)
        if problem != LC_OK:
            fail(problem, f"transform of {size} symbols")

    def __dealloc__(self):
        with nogil:
            lc_fm_close(&self.fm)

    @property
    def size(self):
        """Number of symbols of the text."""
        return self.fm.size

    @property
    def num_documents(self):
        """Number of documents."""
        return self.fm.documents

    @property
    def nbytes(self):
        """Allocated bytes."""
        return self.fm.allocated

    @property
    def way(self):
        """Estimated number of steps to the document of a row."""
        cdef int64_t found
        with nogil:
            found = lc_fm_way(&self.fm)
        return found

    def first_rows(self):
        """Return for each of the 256 symbols the first row of a suffix that begins with it, and the size (u64)."""
        return PyBytes_FromStringAndSize(<char *>self.fm.first, sizeof(self.fm.first))

    def find(self, pattern):
        """Return the rows, from the first up to the end, of the suffixes that begin with a pattern.

        Parameters
        ----------
        pattern
            Bytes. It must not contain the separator.
        """
        cdef ByteView source = readable(pattern)
        cdef lc_fm_rows rows
        with nogil:
            rows = lc_fm_find(&self.fm, source.data, source.size)
        return rows.start, rows.stop

    def locate(self, int64_t start, int64_t stop, uint64_t[::1] out):
        """Write the names of the documents that some rows are in, each once, in the order of the documents.

        Parameters
        ----------
        start, stop
            The rows.
        out
            Output uint64 array with room for all documents.

        Returns
        -------
        int
            Number of documents.

        Raises
        ------
        CodecError
            The output is too small, there are no such rows, or the transform is not that of a text.
        """
        cdef lc_fm_rows rows
        cdef int64_t found
        rows.start, rows.stop = start, stop
        if out.shape[0] < self.fm.documents:
            raise CodecError(f"{out.shape[0]} entries are too few for {self.fm.documents} documents")
        check_aligned(<const int64_t *>&out[0])
        with nogil:
            found = lc_fm_locate(&self.fm, rows, &out[0])
        if found < 0:
            fail(<int>-found, f"rows {start} to {stop} of {self.fm.size}, whose steps must lead to all rows")
        return found

    def text(self, out):
        """Write the text.

        Parameters
        ----------
        out
            Output with a byte for each symbol.

        Raises
        ------
        CodecError
            The output has another size, the text has several bytes 0, or the transform is not that of a text.
        """
        cdef ByteView target = writable(out)
        cdef int problem
        if target.size != self.fm.size:
            raise CodecError(f"{target.size} bytes are not {self.fm.size}, the size of the text")
        with nogil:
            problem = lc_fm_text(&self.fm, target.data)
        if problem != LC_OK:
            fail(problem, f"text of {self.fm.size} symbols, whose steps must lead to all rows")


def decode_hex(digits, out):
    """Decode hexadecimal digits, two for each byte, of either case.

    Parameters
    ----------
    digits
        ASCII digits.
    out
        Output of half as many bytes.

    Raises
    ------
    CodecError
        A character is not a digit, or the output has another size.
    """
    cdef ByteView source = readable(digits), target = writable(out)
    cdef int problem
    if source.size != 2 * target.size:
        raise CodecError(f"{target.size} bytes do not have {source.size} digits")
    with nogil:
        problem = lc_hex_read(source.data, target.size, target.data)
    if problem != LC_OK:
        fail(problem, "hexadecimal digits")
