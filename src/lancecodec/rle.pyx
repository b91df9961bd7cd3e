"""Run-length encoding: a page of mini-block chunks, one chunk, or one block."""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, check_aligned, readable, writable
from lancecodec.problems cimport fail, lc_bytes

from lancecodec.errors import CodecError

cdef extern from "kernels/rle.h" nogil:
    int lc_rle_expand(const uint8_t *values, int64_t value_bits, const uint8_t *lengths, int64_t length_bits,
                      int64_t runs, int64_t n, int strict, uint8_t *out)
    int lc_rle_chunk(const lc_bytes *buffers, int64_t n, int64_t bits, uint8_t *out)
    int lc_rle_block(const uint8_t *src, int64_t size, int64_t n, int64_t bits, uint8_t *out)
    int lc_rle_take(const uint8_t *values, int64_t value_bits, const uint8_t *lengths, int64_t length_bits,
                    int64_t runs, const int64_t *at, int64_t count, uint8_t *out)

cdef extern from "kernels/runs.h" nogil:
    int64_t LC_RUNS_VALUES
    ctypedef struct lc_runs_page:
        const uint8_t *values
        int64_t n
        int64_t length_bytes
        int64_t unit
        int64_t longest
        int64_t max_values
        int64_t max_bytes
        uint8_t *out_values
        uint8_t *out_lengths
        int64_t capacity
    void lc_count_runs(const uint8_t *values, int64_t bits, int64_t n, int64_t cut, int64_t longest, int64_t *runs,
                       int64_t *entries)
    int64_t lc_rle_page(const lc_runs_page *page, int64_t bits, int64_t *entry_ends, int64_t *counts, int64_t chunks)
    void lc_rle_entries_of(const lc_runs_page *page, int64_t bits)

cdef extern from "kernels/bits.h" nogil:
    int64_t lc_find_outside(const int64_t *index, int64_t n, int64_t length)


cdef int check_widths(int64_t bits, int64_t length_bits) except -1:
    if bits not in (8, 16, 32, 64):
        raise CodecError(f"run-length encoding has no values of {bits} bits, only of 8, 16, 32 and 64")
    if length_bits not in (8, 16, 32):
        raise CodecError(f"run-length encoding has no lengths of {length_bits} bits, only of 8, 16 and 32")
    return 0


cdef int64_t whole(int64_t size, int64_t bits, str what) except -1:
    if size % (bits // 8):
        raise CodecError(f"{what} of {size} bytes is not a whole number of items of {bits} bits")
    return size // (bits // 8)


cdef int64_t entries_of(ByteView values, int64_t bits, ByteView lengths, int64_t length_bits) except -1:
    cdef int64_t runs = whole(lengths.size, length_bits, "a buffer of run lengths")
    if whole(values.size, bits, "a buffer of run values") != runs:
        raise CodecError(f"{values.size // (bits // 8)} run values have {runs} run lengths")
    return runs


cdef int check_output(int64_t size, int64_t n, int64_t bits) except -1:
    if n < 0 or size // (bits // 8) < n:
        raise CodecError(f"output of {size} bytes is too small for {n} values of {bits} bits")
    return 0


cdef int64_t longest_of(int64_t length_bits):
    return (<int64_t>1 << length_bits) - 1


cdef int check_limits(int64_t max_values, int64_t max_bytes, int64_t unit) except -1:
    if max_values < 64 or max_values > LC_RUNS_VALUES or max_values & (max_values - 1):
        raise ValueError(f"chunks of at most {max_values} values: choose a power of two from 64 to {LC_RUNS_VALUES}")
    if max_bytes < 64 * unit or max_bytes > 1 << 30:
        raise ValueError(f"chunks of at most {max_bytes} bytes: choose from {64 * unit}, for 64 entries, to {1 << 30}")
    return 0


def count(values, int64_t bits, int64_t cut=4096, int64_t length_bits=8):
    cdef ByteView source = readable(values)
    cdef int64_t n, longest, runs = 0, entries = 0
    check_widths(bits, length_bits)
    n = whole(source.size, bits, "a buffer of values")
    longest = longest_of(length_bits)
    if cut < 0 or cut % 64:
        raise ValueError(f"runs cannot be cut every {cut} values: choose a multiple of 64, or 0 for never")
    with nogil:
        lc_count_runs(source.data, bits, n, cut, longest, &runs, &entries)
    return runs, entries


def encode_bound(int64_t n, int64_t bits, int64_t entries, int64_t length_bits=8, int64_t max_values=4096,
                 int64_t max_bytes=8186):
    cdef int64_t unit, smallest = 64, most
    check_widths(bits, length_bits)
    unit = bits // 8 + length_bits // 8
    check_limits(max_values, max_bytes, unit)
    if n < 0 or entries < 0 or n > 1 << 56 or entries > n:
        raise CodecError(f"{n} values cannot have {entries} entries")
    while smallest * 2 <= max_values and smallest * 2 * unit <= max_bytes:
        smallest *= 2
    most = min(n, entries + n // smallest + 1) + max_values // longest_of(length_bits) + 2
    return most * (bits // 8), most * (length_bits // 8), n // smallest + 1


def encode(values, int64_t bits, out_values, out_lengths, int64_t[::1] value_ends not None,
           int64_t[::1] length_ends not None, int64_t[::1] counts not None, int64_t length_bits=8,
           int64_t max_values=4096, int64_t max_bytes=8186):
    cdef ByteView source = readable(values), runs = writable(out_values), lengths = writable(out_lengths)
    cdef lc_runs_page page
    cdef int64_t i, made, places = min(value_ends.shape[0], length_ends.shape[0], counts.shape[0])
    check_widths(bits, length_bits)
    page.values, page.n = source.data, whole(source.size, bits, "a buffer of values")
    page.length_bytes, page.longest = length_bits // 8, longest_of(length_bits)
    page.unit, page.max_values, page.max_bytes = bits // 8 + length_bits // 8, max_values, max_bytes
    page.out_values, page.out_lengths = runs.data, lengths.data
    page.capacity = min(runs.size // (bits // 8), lengths.size // (length_bits // 8))
    check_limits(max_values, max_bytes, page.unit)
    if page.n == 0:
        return 0
    check_aligned(&value_ends[0])
    check_aligned(&length_ends[0])
    check_aligned(&counts[0])
    with nogil:
        made = lc_rle_page(&page, bits, &value_ends[0], &counts[0], places)
        for i in range(made):
            length_ends[i] = value_ends[i] * page.length_bytes
            value_ends[i] *= bits // 8
    if made < 0:
        raise CodecError(f"output of {page.capacity} entries in {places} chunks is too small; see encode_bound")
    return made


def decode(values, lengths, int64_t n, int64_t bits, out, int64_t length_bits=8, bint strict=False):
    cdef ByteView runs = readable(values), sizes = readable(lengths), target = writable(out)
    cdef int64_t entries
    cdef int problem
    check_widths(bits, length_bits)
    check_output(target.size, n, bits)
    entries = entries_of(runs, bits, sizes, length_bits)
    with nogil:
        problem = lc_rle_expand(runs.data, bits, sizes.data, length_bits, entries, n, strict, target.data)
    if problem:
        fail(problem, f"run-length encoding of {n} values of {bits} bits in {entries} entries")


def decode_page(values, const int64_t[::1] value_ends not None, lengths, const int64_t[::1] length_ends not None,
                const int64_t[::1] counts not None, int64_t bits, out):
    cdef ByteView runs = readable(values), sizes = readable(lengths), target = writable(out)
    cdef int64_t i, chunks = counts.shape[0], done = 0, v = 0, s = 0, width
    cdef lc_bytes[2] chunk
    cdef int problem = 0
    check_widths(bits, 8)
    width = bits // 8
    if value_ends.shape[0] != chunks or length_ends.shape[0] != chunks:
        raise CodecError(f"{chunks} chunks have {value_ends.shape[0]} and {length_ends.shape[0]} buffers")
    for i in range(chunks):
        if counts[i] < 0 or counts[i] > target.size // width - done:
            raise CodecError(f"output of {target.size} bytes is too small for the values of chunk {i}")
        if not v <= value_ends[i] <= runs.size or not s <= length_ends[i] <= sizes.size:
            raise CodecError(f"chunk {i} ends before it begins, or after its buffers")
        done, v, s = done + counts[i], value_ends[i], length_ends[i]
    done = v = s = 0
    with nogil:
        for i in range(chunks):
            chunk[0].data, chunk[0].size = runs.data + v, value_ends[i] - v
            chunk[1].data, chunk[1].size = sizes.data + s, length_ends[i] - s
            problem = lc_rle_chunk(chunk, counts[i], bits, target.data + done * width)
            if problem:
                break
            done, v, s = done + counts[i], value_ends[i], length_ends[i]
    if problem:
        fail(problem, f"run-length encoding of {bits} bits, chunk {i}")
    return done


def take(values, lengths, int64_t n, int64_t bits, const int64_t[::1] positions not None, out,
         int64_t length_bits=8):
    cdef ByteView runs = readable(values), sizes = readable(lengths), target = writable(out)
    cdef int64_t entries, wanted = positions.shape[0], bad
    cdef int problem
    check_widths(bits, length_bits)
    check_output(target.size, wanted, bits)
    entries = entries_of(runs, bits, sizes, length_bits)
    check_aligned(&positions[0])
    with nogil:
        bad = lc_find_outside(&positions[0], wanted, max(n, 0))
    if bad >= 0:
        raise CodecError(f"position {positions[bad]} is outside {n} values")
    with nogil:
        problem = lc_rle_take(runs.data, bits, sizes.data, length_bits, entries, &positions[0], wanted, target.data)
    if problem:
        fail(problem, f"run-length encoding of {n} values of {bits} bits in {entries} entries")


def block_size(int64_t entries, int64_t bits):
    check_widths(bits, 8)
    if entries < 0 or entries > 1 << 56:
        raise CodecError(f"no block has {entries} entries")
    return 8 + entries * (bits // 8 + 1)


def encode_block(values, int64_t bits, out):
    cdef ByteView source = readable(values), target = writable(out)
    cdef lc_runs_page page
    cdef int64_t runs = 0, entries = 0, size
    check_widths(bits, 8)
    page.values, page.n = source.data, whole(source.size, bits, "a buffer of values")
    page.length_bytes, page.longest, page.unit = 1, 255, bits // 8 + 1
    page.max_values = page.max_bytes = 0
    with nogil:
        lc_count_runs(page.values, bits, page.n, 0, 255, &runs, &entries)
    size = block_size(entries, bits)
    if target.size < size:
        raise CodecError(f"output of {target.size} bytes is too small for a block of {size}")
    page.capacity, page.out_values = entries, target.data + 8
    page.out_lengths = page.out_values + entries * (bits // 8)
    for i in range(8):
        target.data[i] = (entries * (bits // 8)) >> (8 * i) & 0xFF
    with nogil:
        lc_rle_entries_of(&page, bits)
    return size


def decode_block(data, int64_t n, int64_t bits, out):
    cdef ByteView source = readable(data), target = writable(out)
    cdef int problem
    check_widths(bits, 8)
    check_output(target.size, n, bits)
    with nogil:
        problem = lc_rle_block(source.data, source.size, n, bits, target.data)
    if problem:
        fail(problem, f"run-length block of {source.size} bytes with {n} values of {bits} bits")
