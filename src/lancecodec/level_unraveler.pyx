"""Offsets and validity of every layer of a page, computed from its repetition and definition levels.

The levels are those of Dremel, as in `level_builder`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport UINT32_MAX, int64_t, uint8_t, uint16_t, uint32_t

from lancecodec.buffers cimport ByteView, readable, writable
from lancecodec.problems cimport LC_BAD_LEVEL, LC_BAD_SIZE, fail

from lancecodec.errors import CodecError

cdef extern from "kernels/levels_unravel.h" nogil:
    ctypedef struct lc_levels:
        const uint8_t *rep
        const uint8_t *def_ "def"
        int64_t n
    ctypedef struct lc_layer:
        uint16_t base
        uint16_t high
        uint16_t top
        bint is_list
    ctypedef struct lc_valid_levels:
        uint16_t top
    int lc_layers_number(const uint8_t *kinds, int64_t n, lc_layer *layers, int64_t *max_rep)
    lc_valid_levels lc_layer_valid(lc_layer layer)
    int lc_levels_check(lc_levels levels, int64_t max_rep, uint16_t max_def)
    int64_t lc_levels_count_le(const uint8_t *levels, int64_t n, uint16_t limit)
    void lc_layer_count(lc_levels stage, lc_valid_levels valid, int64_t *slots, int64_t *nulls)
    int lc_lists_unravel(lc_levels stage, lc_layer layer, uint8_t *next_rep, uint8_t *next_def, uint32_t *starts,
                         int64_t *lists, int64_t *elements)
    int lc_fixed_lists_unravel(lc_levels stage, uint16_t top, int64_t dimension, uint8_t *next_rep, uint8_t *next_def)
    void lc_validity_fill(lc_levels stage, lc_valid_levels valid, int64_t slots, uint8_t *out, int64_t at)
    int lc_list_offsets(const uint32_t *starts, int64_t lists, int64_t elements, int64_t base, bint wide, uint8_t *out)

cdef extern from "kernels/bits.h" nogil:
    void lc_bits_fill(uint8_t *out, int64_t at, int64_t n, bint value)

cdef struct unraveled_layer:
    lc_layer levels
    lc_levels stage
    uint32_t *starts
    int64_t slots
    int64_t nulls
    int64_t elements


cdef class LevelUnraveler:
    """Layers of a page, or of whole rows of a page, computed from its levels.

    The constructor checks the levels and counts entries. `validity` and `offsets` then write into buffers of the
    caller, at any position, so that the pages of a column can be appended to one Arrow array. Layer 0 is the leaf.

    Parameters
    ----------
    repetition, definition
        Levels of 16 bits, little-endian, exactly `num_items` of them. None, or no items, means that all levels are 0.
        The buffers are kept for as long as this object lives.
    num_items
        Number of items, also of a page without streams.
    kinds
        Kind of each layer (1 to 6, as page descriptors number them), innermost first.
    dimensions
        For each layer the dimension of a structural fixed-size list, or 0 or None. None if there are no such lists.

    Raises
    ------
    CodecError
        A stream has the wrong length, a level does not exist in these layers, levels contradict each other, or the
        first item does not start a row.
    MemoryError
        There is not enough memory.
    """

    cdef unraveled_layer *layers
    cdef int64_t num_layers, max_rep
    cdef list keep

    def __cinit__(self, repetition, definition, int64_t num_items, kinds, dimensions=None):
        cdef ByteView numbers = readable(bytes(kinds))
        cdef lc_levels stage
        cdef int64_t i
        self.keep = []
        self.num_layers = numbers.size
        if self.num_layers == 0 or (dimensions is not None and len(dimensions) != self.num_layers):
            raise CodecError(f"{self.num_layers} layers, dimensions {dimensions}")
        if num_items < 0 or num_items > UINT32_MAX:
            raise CodecError(f"a page of {num_items} levels is not supported")
        self.layers = <unraveled_layer *>PyMem_Calloc(self.num_layers, sizeof(unraveled_layer))
        if self.layers == NULL:
            raise MemoryError()
        self.number(numbers)
        stage.rep = self.hold(repetition, num_items, "repetition levels")
        stage.def_ = self.hold(definition, num_items, "definition levels")
        stage.n = num_items
        self.check(stage)
        for i in range(self.num_layers):
            stage = self.unravel(i, stage, 0 if dimensions is None else dimensions[i] or 0)

    def __dealloc__(self):
        PyMem_Free(self.layers)

    cdef const uint8_t *hold(self, object buffer, int64_t num_items, str what) except? NULL:
        cdef ByteView view
        if buffer is None or num_items == 0:
            return NULL
        view = readable(buffer)
        if view.size != 2 * num_items:
            fail(LC_BAD_SIZE, f"{what}: {view.size} bytes for {num_items} items")
        self.keep.append(view)
        return view.data

    cdef uint8_t *reserve(self, int64_t size) except NULL:
        cdef bytes block = PyBytes_FromStringAndSize(NULL, size)
        self.keep.append(block)
        return <uint8_t *>PyBytes_AS_STRING(block)

    cdef int number(self, ByteView kinds) except -1:
        cdef lc_layer *layers = <lc_layer *>PyMem_Calloc(self.num_layers, sizeof(lc_layer))
        cdef int64_t i
        cdef int problem
        if layers == NULL:
            raise MemoryError()
        problem = lc_layers_number(kinds.data, self.num_layers, layers, &self.max_rep)
        for i in range(self.num_layers):
            self.layers[i].levels = layers[i]
        PyMem_Free(layers)
        if problem:
            fail(problem, "layers of the page")
        return 0

    cdef int check(self, lc_levels levels) except -1:
        cdef uint16_t max_def = self.layers[self.num_layers - 1].levels.high
        cdef int problem
        with nogil:
            problem = lc_levels_check(levels, self.max_rep, max_def)
        if problem:
            fail(problem, f"levels of {levels.n} items, {self.max_rep} list layers, {max_def} definition levels")
        return 0

    cdef lc_levels unravel(self, int64_t i, lc_levels stage, int64_t dimension) except *:
        """Unravel layer i and return the stage of the layer around it."""
        cdef unraveled_layer *layer = self.layers + i
        cdef lc_valid_levels valid = lc_layer_valid(layer.levels)
        if dimension:
            if layer.levels.is_list or dimension < 0 or i == 0:
                raise CodecError(f"layer {i} cannot be a fixed-size list of {dimension} items")
            stage = self.unravel_fixed_lists(i, stage, dimension)
        elif layer.levels.is_list:
            stage = self.unravel_lists(i, stage)
        layer.stage = stage
        with nogil:
            lc_layer_count(stage, valid, &layer.slots, &layer.nulls)
        return stage

    cdef lc_levels unravel_lists(self, int64_t i, lc_levels stage) except *:
        cdef unraveled_layer *layer = self.layers + i
        cdef lc_levels outer
        cdef uint8_t *rep = NULL
        cdef uint8_t *definition = NULL
        cdef int64_t lists = 0
        cdef int problem
        with nogil:
            outer.n = stage.n - lc_levels_count_le(stage.rep, stage.n, 0)
        layer.starts = <uint32_t *>self.reserve(4 * outer.n)
        self.max_rep -= 1
        if self.max_rep:
            rep = self.reserve(2 * outer.n)
        if stage.def_ != NULL:
            definition = self.reserve(2 * outer.n)
        with nogil:
            problem = lc_lists_unravel(stage, layer.levels, rep, definition, layer.starts, &lists, &layer.elements)
        if problem:
            fail(problem, f"list layer {i} (0 is the leaf)")
        outer.rep, outer.def_ = rep, definition
        return outer

    cdef lc_levels unravel_fixed_lists(self, int64_t i, lc_levels stage, int64_t dimension) except *:
        cdef uint16_t top = self.layers[i].levels.top
        cdef lc_levels outer
        cdef uint8_t *rep = NULL
        cdef uint8_t *definition = NULL
        cdef int64_t slots
        cdef int problem
        with nogil:
            slots = lc_levels_count_le(stage.def_, stage.n, top)
        if slots % dimension:
            fail(LC_BAD_LEVEL, f"layer {i} (0 is the leaf): {slots} items do not make up lists of {dimension}")
        outer.n = stage.n - slots + slots // dimension
        if stage.rep != NULL:
            rep = self.reserve(2 * outer.n)
        if stage.def_ != NULL:
            definition = self.reserve(2 * outer.n)
        with nogil:
            problem = lc_fixed_lists_unravel(stage, top, dimension, rep, definition)
        if problem:
            fail(problem, f"fixed-size list layer {i} (0 is the leaf)")
        outer.rep, outer.def_ = rep, definition
        return outer

    cdef unraveled_layer *at(self, int64_t layer) except NULL:
        if layer < 0 or layer >= self.num_layers:
            raise CodecError(f"there is no layer {layer} among {self.num_layers}")
        return self.layers + layer

    @property
    def lengths(self):
        """Tuple with the number of entries of each layer: values of the leaf first, rows last."""
        return tuple(self.layers[i].slots for i in range(self.num_layers))

    @property
    def null_counts(self):
        """Tuple with the number of nulls of each layer.

        A list below a null struct is null too. A leaf or struct of kind 1 never has nulls.
        """
        return tuple(self.layers[i].nulls for i in range(self.num_layers))

    def validity(self, int64_t layer, out, int64_t at=0):
        """Write the validity of the entries of a layer.

        Parameters
        ----------
        layer
            Position of the layer, 0 for the leaf.
        out
            Output bitmap with room for ``at + lengths[layer]`` bits. Other bits keep their values.
        at
            First bit of `out` to write.

        Raises
        ------
        CodecError
            The layer does not exist, or `out` is too small.
        """
        cdef unraveled_layer *it = self.at(layer)
        cdef ByteView target = writable(out)
        cdef lc_valid_levels valid = lc_layer_valid(it.levels)
        if at < 0 or at > target.size * 8 or it.slots > target.size * 8 - at:
            raise CodecError(f"output of {target.size} bytes does not hold {it.slots} bits from bit {at} on")
        with nogil:
            if it.nulls:
                lc_validity_fill(it.stage, valid, it.slots, target.data, at)
            else:
                lc_bits_fill(target.data, at, it.slots, 1)

    def offsets(self, int64_t layer, out, bint wide, int64_t at=0, int64_t base=0):
        """Write the Arrow offsets of a list layer. Null lists have no elements.

        Parameters
        ----------
        layer
            Position of a list layer (of kind 2, 4, 5 or 6).
        out
            Output with room for ``at + lengths[layer] + 1`` offsets of 32 bits, or 64 if `wide`.
        wide
            Whether the offsets written have 64 bits.
        at
            Entry of `out` that receives `base`, the begin of the first list.
        base
            Number of elements in front of those of this page.

        Returns
        -------
        int
            The last offset, which is the `base` of the next page.

        Raises
        ------
        CodecError
            The layer does not exist or is not a list layer, or `out` is too small.
        OffsetOverflowError
            The offsets do not fit 31 (63) bits.
        """
        cdef unraveled_layer *it = self.at(layer)
        cdef ByteView target = writable(out)
        cdef int64_t width = 8 if wide else 4, room = target.size // width
        cdef int problem
        if not it.levels.is_list:
            raise CodecError(f"layer {layer} is not a list layer")
        if at < 0 or at > room or room - at <= it.slots:
            raise CodecError(f"output of {target.size} bytes does not hold {it.slots + 1} offsets from entry {at} on")
        with nogil:
            problem = lc_list_offsets(it.starts, it.slots, it.elements, base, wide, target.data + at * width)
        if problem:
            fail(problem, f"{it.elements} elements from {base} on with {8 * width}-bit offsets")
        return base + it.elements
