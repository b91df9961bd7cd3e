"""Wavelet trees of texts in the shape of a Huffman code.

Nodes are numbered from the root on, parents before their children. A node has a bit for each symbol of the text that is
below it, in the order of the text: 0 if it is below the left child, 1 if below the right one. Leaves are symbols.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport LC_OK, fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/wavelet_tree.h" nogil:
    int LC_TREE_NODES, LC_TREE_BYTES, LC_CODE_BITS
    ctypedef struct lc_tree:
        int32_t count
        int32_t[255][2] child
    ctypedef struct lc_tree_paths:
        int32_t[257] at
        uint16_t *steps
    void lc_tree_build(const int64_t *counts, lc_tree *tree)
    int64_t lc_tree_write(const lc_tree *tree, uint8_t *out)
    int lc_tree_read(lc_bytes data, lc_tree *tree)
    int lc_tree_trace(const lc_tree *tree, lc_tree_paths *paths)
    void lc_tree_sizes(const lc_tree *tree, const int64_t *counts, int64_t *sizes)
    void lc_tree_fill(const lc_tree *tree, const int64_t *sizes, uint8_t *symbols, uint8_t *spare, uint8_t *words)
    void lc_count_bytes(const uint8_t *data, int64_t n, int64_t *counts)
    void lc_block_ranks(const uint8_t *words, int64_t count, int64_t words_per_block, uint64_t *out)


cdef class Tree:
    """Shape of a wavelet tree.

    Attributes
    ----------
    num_nodes : int
        Number of nodes.
    """

    cdef lc_tree tree
    cdef readonly int num_nodes

    @staticmethod
    def of_counts(const int64_t[::1] counts):
        """Return the tree of a Huffman code with paths of up to 32 bits.

        Parameters
        ----------
        counts
            Number of occurrences of each of the 256 symbols.

        Raises
        ------
        CodecError
            There are not 256 counts, a count is negative, or fewer than two symbols occur.
        """
        cdef Tree found = Tree.__new__(Tree)
        cdef int64_t limit = <int64_t>1 << 54
        if counts.shape[0] != 256 or any(not 0 <= count <= limit for count in counts):
            raise CodecError("256 counts are needed, none of which is negative")
        check_aligned(&counts[0])
        with nogil:
            lc_tree_build(&counts[0], &found.tree)
        if not found.tree.count:
            raise CodecError("a tree needs two symbols")
        found.num_nodes = found.tree.count
        return found

    @staticmethod
    def parse(data):
        """Return a tree from its bytes.

        Parameters
        ----------
        data
            Result of `to_bytes`.

        Raises
        ------
        CodecError
            The bytes are not a tree.
        """
        cdef Tree found = Tree.__new__(Tree)
        cdef ByteView source = readable(data)
        cdef lc_bytes view
        view.data, view.size = source.data, source.size
        cdef int problem
        with nogil:
            problem = lc_tree_read(view, &found.tree)
        if problem != LC_OK:
            fail(problem, "wavelet tree")
        found.num_nodes = found.tree.count
        return found

    def to_bytes(self):
        """Return the number of nodes (u32) and of each node the left and the right child.

        A child is u8 kind (0 node, 1 leaf), u32 number of the node or symbol.
        """
        cdef uint8_t[2554] out
        cdef int64_t size
        with nogil:
            size = lc_tree_write(&self.tree, out)
        return PyBytes_FromStringAndSize(<char *>out, size)

    def codes(self):
        """Return the path of each of the 256 symbols.

        It is u32 bits (the last step is the lowest bit), u8 number of steps, u16 number of nodes (the same), and
        u32 numbers of the nodes on the way.

        Raises
        ------
        CodecError
            A path has more than 32 steps.
        """
        cdef lc_tree_paths paths
        cdef int problem
        with nogil:
            problem = lc_tree_trace(&self.tree, &paths)
        if problem != LC_OK:
            fail(problem, "paths of a wavelet tree")
        try:
            parts = []
            for symbol in range(256):
                steps = [paths.steps[i] for i in range(paths.at[symbol], paths.at[symbol + 1])]
                if len(steps) > LC_CODE_BITS:
                    raise CodecError(f"a path has {len(steps)} steps, more than {LC_CODE_BITS}")
                bits = 0
                for step in steps:
                    bits = bits << 1 | step & 1
                parts.append(bits.to_bytes(4, "little") + bytes((len(steps), len(steps), 0)))
                parts.extend((step >> 1).to_bytes(4, "little") for step in steps)
            return b"".join(parts)
        finally:
            free(paths.steps)

    def sizes(self, const int64_t[::1] counts, int64_t[::1] out):
        """Write the number of bits of each node.

        Parameters
        ----------
        counts
            Number of occurrences of each of the 256 symbols.
        out
            Output int64 array with an entry for each node.

        Raises
        ------
        CodecError
            There are not 256 counts, or the output has another length.
        """
        if counts.shape[0] != 256 or out.shape[0] != self.tree.count:
            raise CodecError(f"{counts.shape[0]} counts and {out.shape[0]} nodes, not 256 and {self.tree.count}")
        if not out.shape[0]:
            return
        check_aligned(&counts[0])
        check_aligned(&out[0])
        with nogil:
            lc_tree_sizes(&self.tree, &counts[0], &out[0])

    def fill(self, text, const int64_t[::1] counts, out):
        """Write the bits of all nodes in their order, each from a new word of 64 bits on.

        Parameters
        ----------
        text
            Symbols, all of which are in the tree.
        counts
            Number of occurrences of each of the 256 symbols in it.
        out
            Output of ``8 * ceil(bits / 64)`` bytes for each node.

        Raises
        ------
        CodecError
            The counts are not those of the text, a symbol is not in the tree, or the output has another size.
        """
        cdef ByteView source = readable(text), target = writable(out)
        cdef int64_t[256] found
        cdef int64_t[255] sizes
        cdef int64_t words = 0, n = source.size
        cdef int problem = 0
        if counts.shape[0] != 256 or not self.tree.count:
            raise CodecError(f"{counts.shape[0]} counts and {self.tree.count} nodes, not 256 and at least one")
        cdef uint8_t *symbols = <uint8_t *>malloc(2 * n + 1)
        if symbols == NULL:
            raise MemoryError("text to be made into a tree")
        try:
            with nogil:
                memcpy(symbols, source.data, n)
                lc_count_bytes(symbols, n, found)
                lc_tree_sizes(&self.tree, found, sizes)
                for k in range(self.tree.count):
                    words += (sizes[k] + 63) // 64
                problem = 1 if memcmp(found, &counts[0], sizeof(found)) != 0 or sizes[0] != n else 0
                if problem == 0 and target.size == 8 * words:
                    lc_tree_fill(&self.tree, sizes, symbols, symbols + n, target.data)
        finally:
            free(symbols)
        if problem:
            raise CodecError("the counts are not those of the text, or the tree does not have all of its symbols")
        if target.size != 8 * words:
            raise CodecError(f"{words} words do not fit {target.size} bytes exactly")


def count_symbols(text, int64_t[::1] out):
    """Count the occurrences of each byte.

    Parameters
    ----------
    text
        Any bytes.
    out
        Output int64 array of 256 entries.

    Raises
    ------
    CodecError
        The output has another length.
    """
    cdef ByteView source = readable(text)
    if out.shape[0] != 256:
        raise CodecError(f"there are 256 bytes, not {out.shape[0]}")
    check_aligned(&out[0])
    with nogil:
        lc_count_bytes(source.data, source.size, &out[0])


def block_ranks(words, int64_t words_per_block, uint64_t[::1] out):
    """Write the number of ones in front of each block of a node.

    Parameters
    ----------
    words
        Bits of the node in words of 64 bits.
    words_per_block
        Number of words in a block, at least 1.
    out
        Output uint64 array with an entry for each block.

    Raises
    ------
    CodecError
        `words` are not whole words, or the output has another length.
    """
    cdef ByteView source = readable(words)
    cdef int64_t count = source.size // 8
    if words_per_block < 1 or source.size % 8 or out.shape[0] != (count + words_per_block - 1) // words_per_block:
        raise CodecError(f"{source.size} bytes are not {out.shape[0]} blocks of {words_per_block} words")
    if not out.shape[0]:
        return
    check_aligned(<const int64_t *>&out[0])
    with nogil:
        lc_block_ranks(source.data, count, words_per_block, &out[0])
