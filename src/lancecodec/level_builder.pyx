"""Repetition and definition levels of one page, built from nested Arrow data.

The levels are those of Dremel (Melnik et al., "Dremel: Interactive Analysis of Web-Scale Datasets", VLDB 2010), in the
numbering of Lance 2.1: 0 is a value that is present, and levels grow from the leaf outwards. `level_unraveler` is the
inverse.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memmove, memset

from lancecodec.buffers cimport ByteView, check_aligned, readable
from lancecodec.problems cimport fail

from lancecodec.errors import CodecError

cdef extern from "kernels/levels_unravel.h" nogil:
    int LC_ALL_VALID_ITEM, LC_ALL_VALID_LIST, LC_NULLABLE_ITEM, LC_NULLABLE_LIST, LC_EMPTYABLE_LIST
    int LC_NULL_AND_EMPTY_LIST

cdef extern from "kernels/levels_build.h" nogil:
    ctypedef struct lc_slot_range:
        int64_t start
        int64_t count
    ctypedef struct lc_list_layer:
        const uint8_t *offsets
        const uint8_t *validity
        int64_t validity_bit
        uint16_t empty
        uint16_t null
    ctypedef struct lc_lists_found:
        int64_t lists
        int64_t elements
        int64_t ranges
        int64_t last
    ctypedef struct lc_parents:
        const uint8_t *rep
        const uint8_t *marks
        int64_t n
        const uint32_t *lengths
        int64_t factor
    int64_t lc_slots_nulls(const lc_slot_range *ranges, int64_t num_ranges, const uint8_t *bits, int64_t bit)
    void lc_marks_first_nulls(const lc_slot_range *ranges, int64_t num_ranges, const uint8_t *bits, int64_t bit,
                              uint16_t mark, uint8_t *marks)
    void lc_marks_more_nulls(const lc_slot_range *ranges, int64_t num_ranges, const uint8_t *bits, int64_t bit,
                             uint16_t mark, uint8_t *marks)
    int64_t lc_marks_count(const uint8_t *marks, int64_t n, uint16_t mark)
    void lc_marks_replace(uint8_t *marks, int64_t n, uint16_t mark, uint16_t by)
    void lc_marks_to_levels(uint8_t *marks, int64_t n, uint16_t num_marks)
    void lc_marks_repeat(const uint8_t *marks, int64_t n, int64_t dimension, uint8_t *out)
    int lc_lists_scan(lc_list_layer layer, bint wide, const lc_slot_range *ranges, int64_t num_ranges, bint fresh,
                      uint8_t *marks, uint32_t *lengths, lc_lists_found *found)
    void lc_lists_ranges(const uint8_t *offsets, bint wide, const lc_slot_range *ranges, int64_t num_ranges,
                         const uint8_t *marks, lc_slot_range *out)
    void lc_parents_expand(lc_parents parents, const uint8_t *children, int64_t num_children, uint8_t *rep,
                           uint8_t *marks, int64_t n)


cdef bytes new_bytes(int64_t size):
    """Return uninitialised memory; fill it before passing it on."""
    return PyBytes_FromStringAndSize(NULL, size)


cdef inline uint8_t *address(bytes block) noexcept:
    return NULL if block is None else <uint8_t *>PyBytes_AS_STRING(block)


cdef class Levels:
    """Levels of a page; the result of `build`.

    Attributes
    ----------
    kinds : tuple of int
        Kind of each layer (1 to 6, as page descriptors number them), innermost first.
    repetition, definition : bytes or None
        Levels of 16 bits, little-endian, one per item. None if the page does not have the stream.
    num_items : int
        Number of entries in the streams. Without a stream it is the number of values.
    num_visible_items : int
        Number of items that own a value of the leaf, valid or null.
    max_repetition : int
        Number of list layers. A row starts where the repetition level has this value.
    max_definition : int
        Highest definition level of the layers. It may not occur in the page.
    max_visible_definition : int
        Highest definition level of an item that owns a value.
    """

    cdef readonly tuple kinds
    cdef readonly bytes repetition
    cdef readonly bytes definition
    cdef readonly int64_t num_items
    cdef readonly int64_t num_visible_items
    cdef readonly int64_t max_repetition
    cdef readonly int64_t max_definition
    cdef readonly int64_t max_visible_definition
    cdef bytes ranges
    cdef int64_t num_ranges

    @property
    def slot_range(self):
        """Start and length ``(start, count)`` of the values in the leaf array, or None if they are in several
        ranges.
        """
        cdef lc_slot_range *ranges = <lc_slot_range *>address(self.ranges)
        if self.num_ranges > 1:
            return None
        if self.num_ranges == 0:
            return 0, 0
        return ranges[0].start, ranges[0].count

    def slot_ranges(self, int64_t[::1] starts not None, int64_t[::1] lengths not None):
        """Write the ranges of the leaf array that hold the values, in order.

        Parameters
        ----------
        starts, lengths
            Output int64 arrays with `num_slot_ranges` entries: first slot and number of slots of each range.

        Raises
        ------
        CodecError
            An output is too small.
        """
        cdef lc_slot_range *ranges = <lc_slot_range *>address(self.ranges)
        cdef int64_t i
        if starts.shape[0] < self.num_ranges or lengths.shape[0] < self.num_ranges:
            raise CodecError(f"outputs of {starts.shape[0]} and {lengths.shape[0]} entries are too small for "
                             f"{self.num_ranges} slot ranges")
        check_aligned(&starts[0])
        check_aligned(&lengths[0])
        with nogil:
            for i in range(self.num_ranges):
                starts[i], lengths[i] = ranges[i].start, ranges[i].count

    def slot_indices(self, int64_t[::1] out not None):
        """Write the position of every value in the leaf array, in order.

        Parameters
        ----------
        out
            Output int64 array with `num_visible_items` entries.

        Raises
        ------
        CodecError
            `out` is too small.
        """
        cdef lc_slot_range *ranges = <lc_slot_range *>address(self.ranges)
        cdef int64_t i, k, at = 0
        if out.shape[0] < self.num_visible_items:
            raise CodecError(f"output of {out.shape[0]} entries is too small for {self.num_visible_items} slots")
        check_aligned(&out[0])
        with nogil:
            for i in range(self.num_ranges):
                for k in range(ranges[i].count):
                    out[at] = ranges[i].start + k
                    at += 1

    @property
    def num_slot_ranges(self):
        """Number of ranges of the leaf array that hold the values."""
        return self.num_ranges


cdef class _Builder:
    """Slots of the next layer, and entries of the layers above the last list layer."""

    cdef list kinds
    cdef int64_t num_marks, marks_of_lists, num_lists
    # slots: their ranges in the array, and their marks (None if no slot is marked)
    cdef bytes ranges, marks
    cdef int64_t num_ranges, slots
    cdef bint some_null  # at a layer since the last list or fixed-size list layer
    # entries of the layers above the last list layer
    cdef bytes parent_rep, parent_marks, lengths
    cdef int64_t parents, lists, factor

    def __cinit__(self, int64_t rows):
        if rows < 0 or rows > UINT32_MAX:
            raise CodecError(f"a page of {rows} rows is not supported")
        self.kinds = []
        self.slots, self.factor = rows, 1
        self.set_range(0, rows)

    cdef int set_range(self, int64_t start, int64_t count) except -1:
        cdef lc_slot_range *range_
        self.ranges = new_bytes(sizeof(lc_slot_range))
        range_ = <lc_slot_range *>address(self.ranges)
        range_.start, range_.count = start, count
        self.num_ranges = 1 if count else 0
        return 0

    cdef lc_slot_range *slot_ranges(self) noexcept:
        return <lc_slot_range *>address(self.ranges)

    cdef int64_t array_length(self) noexcept:
        """Minimum number of entries in the arrays of the next layer."""
        cdef lc_slot_range *ranges = self.slot_ranges()
        return ranges[self.num_ranges - 1].start + ranges[self.num_ranges - 1].count if self.num_ranges else 0

    cdef ByteView bitmap(self, object validity, int64_t bit):
        """Return the bitmap, which must have a bit for every slot."""
        cdef ByteView bits = readable(validity)
        cdef int64_t length = self.array_length()
        if bit < 0 or bit > bits.size * 8 or length > bits.size * 8 - bit:
            raise CodecError(f"validity of layer {len(self.kinds)} (0 is the outermost): {bits.size} bytes do not hold "
                             f"{length} bits from bit {bit} on")
        return bits

    cdef uint16_t next_mark(self, int more) except? 0:
        if self.num_marks + more > 0xFFFF:
            raise CodecError("the layers need more than 65535 definition levels")
        return self.num_marks + 1

    cdef int item(self, object validity, int64_t bit) except -1:
        if validity is not None:
            self.mark_nulls(self.bitmap(validity, bit), bit)
        self.close_item()
        return 0

    cdef int close_item(self) except -1:
        """Finish an item layer. Items below a null struct count as null, as in the files of the reference."""
        if self.some_null:
            self.num_marks = self.next_mark(1)
        self.kinds.append(LC_NULLABLE_ITEM if self.some_null else LC_ALL_VALID_ITEM)
        return 0

    cdef int mark_nulls(self, ByteView bits, int64_t bit) except -1:
        cdef lc_slot_range *ranges = self.slot_ranges()
        cdef bint fresh = self.marks is None
        cdef uint16_t mark = self.next_mark(1)
        cdef int64_t nulls
        cdef uint8_t *marks
        with nogil:
            nulls = lc_slots_nulls(ranges, self.num_ranges, bits.data, bit)
        if nulls == 0:
            return 0
        self.some_null = True
        if fresh:
            self.marks = new_bytes(2 * self.slots)
        marks = address(self.marks)
        with nogil:
            if fresh:
                lc_marks_first_nulls(ranges, self.num_ranges, bits.data, bit, mark, marks)
            else:
                lc_marks_more_nulls(ranges, self.num_ranges, bits.data, bit, mark, marks)
        return 0

    cdef int all_null(self) except -1:
        """Add the leaf of Arrow's null type."""
        cdef uint16_t mark = self.next_mark(1)
        cdef uint8_t *marks
        if self.marks is None and self.slots:
            self.marks = new_bytes(2 * self.slots)
            memset(address(self.marks), 0, 2 * self.slots)
        if self.slots:
            self.some_null = True
            marks = address(self.marks)
            with nogil:
                lc_marks_replace(marks, self.slots, 0, mark)
        self.close_item()
        return 0

    cdef int fixed_size_list(self, int64_t dimension, object validity, int64_t bit) except -1:
        cdef lc_slot_range *ranges
        cdef bytes repeated
        cdef uint8_t *marks
        cdef uint8_t *out
        cdef int64_t i
        if dimension < 1 or dimension > UINT32_MAX:
            raise CodecError(f"a structural fixed-size list of {dimension} items is not supported")
        self.item(validity, bit)
        self.some_null = False
        if self.slots > UINT32_MAX // dimension or self.array_length() > INT64_MAX // dimension:
            raise CodecError(f"{self.slots} fixed-size lists of {dimension} items are more than a page holds; "
                             f"split the page")
        if self.marks is not None:
            repeated = new_bytes(2 * self.slots * dimension)
            marks, out = address(self.marks), address(repeated)
            with nogil:
                lc_marks_repeat(marks, self.slots, dimension, out)
            self.marks = repeated
        ranges = self.slot_ranges()
        for i in range(self.num_ranges):
            ranges[i].start *= dimension
            ranges[i].count *= dimension
        self.slots *= dimension
        # without slots there are no entries to repeat either, and the factor could grow without bound
        self.factor = self.factor * dimension if self.slots else 1
        return 0

    cdef int list_layer(self, object offsets, bint wide, object validity, int64_t bit) except -1:
        cdef ByteView ends = readable(offsets), bits = None
        cdef int64_t needed = self.array_length()
        cdef lc_list_layer layer
        cdef lc_lists_found found
        cdef bytes lengths
        if needed and ends.size // (8 if wide else 4) <= needed:
            raise CodecError(f"offsets of layer {len(self.kinds)} (0 is the outermost): {ends.size} bytes are too few "
                             f"for {needed} lists")
        if validity is not None:
            bits = self.bitmap(validity, bit)
        if self.num_lists == 0xFFFF:
            raise CodecError("the layers need more than 65535 repetition levels")
        layer.empty = self.next_mark(2)
        layer.null = layer.empty + 1
        layer.offsets, layer.validity, layer.validity_bit = ends.data, bits.data if bits is not None else NULL, bit
        lengths = self.scan_lists(&layer, wide, &found)
        self.expand()
        self.lengths, self.lists, self.factor = lengths, found.lists, 1
        self.descend(&layer, wide, &found)
        self.num_lists += 1
        return 0

    cdef bytes scan_lists(self, lc_list_layer *layer, bint wide, lc_lists_found *found):
        """Mark the slots that are null or empty lists, set the kind, and return the lengths of the other lists."""
        cdef bint fresh = self.marks is None
        cdef bytes lengths = new_bytes(4 * (self.slots + 1))
        cdef lc_slot_range *ranges = self.slot_ranges()
        cdef uint8_t *marks
        cdef uint32_t *out = <uint32_t *>address(lengths)
        cdef int64_t nulls = 0, empties = 0
        cdef int problem
        if fresh:
            self.marks = new_bytes(2 * self.slots)
        marks = address(self.marks)
        with nogil:
            problem = lc_lists_scan(layer[0], wide, ranges, self.num_ranges, fresh, marks, out, found)
            if problem == 0:
                out[found.lists] = 0
                empties = lc_marks_count(marks, self.slots, layer.empty)
                nulls = self.slots - found.lists - empties  # including those below null structs
            if nulls and not empties:
                lc_marks_replace(marks, self.slots, layer.null, layer.empty)
        if problem:
            fail(problem, f"lists of layer {len(self.kinds)} (0 is the outermost)")
        self.num_marks += (nulls != 0) + (empties != 0)
        if nulls:
            self.kinds.append(LC_NULL_AND_EMPTY_LIST if empties else LC_NULLABLE_LIST)
        else:
            self.kinds.append(LC_EMPTYABLE_LIST if empties else LC_ALL_VALID_LIST)
        if fresh and found.lists == self.slots:
            self.marks = None
        return lengths

    cdef int expand(self) except -1:
        """Turn parents and slots into the entries of all layers so far: the parents of the next list layer."""
        cdef bytes rep, marks
        cdef lc_parents parents
        cdef uint8_t *children
        cdef uint8_t *out_rep
        cdef uint8_t *out_marks
        cdef int64_t entries
        if self.num_lists == 0:
            self.parent_marks, self.parents = self.marks, self.slots
            return 0
        entries = self.parents - self.lists + self.slots
        if entries > UINT32_MAX:
            raise CodecError(f"{entries} levels are more than a page holds; split the page")
        rep, marks = new_bytes(2 * entries), None if self.parent_marks is None else new_bytes(2 * entries)
        parents.rep, parents.marks, parents.n = address(self.parent_rep), address(self.parent_marks), self.parents
        parents.lengths, parents.factor = <const uint32_t *>address(self.lengths), self.factor
        children = NULL if self.parent_marks is None else address(self.marks)
        out_rep, out_marks = address(rep), address(marks)
        with nogil:
            lc_parents_expand(parents, children, self.slots, out_rep, out_marks, entries)
        self.parent_rep, self.parents = rep, entries
        self.parent_marks = self.marks if marks is None else marks
        return 0

    cdef int descend(self, lc_list_layer *layer, bint wide, lc_lists_found *found) except -1:
        """Continue with the elements of the lists."""
        cdef bytes ranges
        cdef lc_slot_range *slots = self.slot_ranges()
        cdef lc_slot_range *out
        cdef uint8_t *marks = address(self.marks)
        if found.ranges <= 1:
            self.set_range(found.last - found.elements if found.ranges else 0, found.elements)
        else:
            ranges = new_bytes(sizeof(lc_slot_range) * (found.ranges + 2))
            out = <lc_slot_range *>address(ranges)
            with nogil:
                lc_lists_ranges(layer.offsets, wide, slots, self.num_ranges, marks, out)
                memmove(out, out + 1, sizeof(lc_slot_range) * found.ranges)
            self.ranges, self.num_ranges = ranges, found.ranges
        self.slots, self.marks, self.marks_of_lists, self.some_null = found.elements, None, self.num_marks, False
        return 0

    cdef Levels finish(self):
        cdef Levels levels = Levels.__new__(Levels)
        cdef uint8_t *marks
        self.expand()
        if not self.kinds or self.kinds[len(self.kinds) - 1] not in (LC_ALL_VALID_ITEM, LC_NULLABLE_ITEM):
            raise CodecError("the last layer must be the leaf, an item layer")
        if self.num_marks > 1:
            marks = address(self.parent_marks)
            with nogil:
                lc_marks_to_levels(marks, self.parents, self.num_marks)
        levels.kinds = tuple(reversed(self.kinds))
        levels.repetition, levels.definition = self.parent_rep, self.parent_marks
        levels.num_items, levels.num_visible_items = self.parents, self.slots
        levels.max_repetition, levels.max_definition = self.num_lists, self.num_marks
        levels.max_visible_definition = self.num_marks - self.marks_of_lists
        levels.ranges, levels.num_ranges = self.ranges, self.num_ranges
        return levels


def build(int64_t rows, layers):
    """Build the levels of one page of a leaf column with any nesting.

    Everything below a null list is dropped. Below a null struct or a null fixed-size list, lists become entries without
    a value, and values are kept. The kind of a layer depends on what is kept: it has nulls if a slot is null or is
    below a null struct. A list layer has empty lists if an empty list is not below a null struct. The files of the
    reference implementation are the same.

    Parameters
    ----------
    rows
        Number of rows in the page: slots 0 to ``rows - 1`` of the outermost layer.
    layers
        Iterable of layers, outermost first. The last one is the leaf. A layer is one of these tuples:

        * ``("item", validity, bit)``: a struct or a leaf;
        * ``("list", offsets, wide, validity, bit)``: a list or map, with offsets of 32 bits, or 64 if `wide`;
        * ``("fixed_size_list", dimension, validity, bit)``: a structural fixed-size list;
        * ``("null",)``: a leaf of Arrow's null type.

        The validity is a bitmap whose bit `bit` belongs to slot 0, or None. The first offset belongs to slot 0 and need
        not be 0. The children of struct slot k are slots k. The elements of list slot k are slots ``offsets[k]`` to
        ``offsets[k + 1] - 1``. Those of fixed-size list slot k are slots ``k * dimension`` to ``(k + 1) * dimension -
        1``. So the child of a sliced struct or fixed-size list must be sliced too, the child of a sliced list must not.

    Returns
    -------
    Levels
        The levels, and where the values are.

    Raises
    ------
    CodecError
        A buffer is too small for its slots, offsets decrease, a layer is not valid, or the page has more than 2**32 - 1
        items.
    """
    cdef _Builder builder = _Builder(rows)
    for layer in layers:
        kind, *parts = layer
        if kind == "item" and len(parts) == 2:
            builder.item(parts[0], parts[1])
        elif kind == "list" and len(parts) == 4:
            builder.list_layer(parts[0], parts[1], parts[2], parts[3])
        elif kind == "fixed_size_list" and len(parts) == 3:
            builder.fixed_size_list(parts[0], parts[1], parts[2])
        elif kind == "null" and not parts:
            builder.all_null()
        else:
            raise CodecError(f"a layer {kind!r} with {len(parts)} parts is not supported")
    return builder.finish()
