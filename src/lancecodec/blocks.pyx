"""Memory that holds blocks of files at the offsets that they have in the file, for files that are not mapped.

Address space is reserved for the whole file, and blocks are read into it when rows are taken. They stay for later
takes until all files together have more than `set_limit` bytes. Then blocks are dropped that were not used lately.
Systems without reserved addresses (Windows) cannot make a `FileBlocks`.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy

from lancecodec.buffers cimport ByteView, readable
from lancecodec.problems cimport fail

import os
from collections import deque

from lancecodec.errors import CodecError

cdef extern from "kernels/blocks.h" nogil:
    int64_t LC_BLOCK_LOG
    int64_t LC_BLOCKS_MOST
    int64_t lc_blocks_bytes(const lc_blocks_run *run)
    int64_t lc_blocks_mark(const lc_blocks_run *run)
    uint64_t lc_blocks_forget(lc_blocks *blocks, int64_t extent)

cdef extern from "kernels/blocks_memory.h" nogil:
    int LC_BLOCKS_END, LC_BLOCKS_FAILED
    int64_t LC_BLOCKS_DENSE
    int lc_blocks_reserve(lc_blocks *blocks)
    void lc_blocks_release(lc_blocks *blocks)
    void lc_blocks_drop(lc_blocks *blocks, int64_t extent)
    void lc_blocks_enlarge(lc_blocks *blocks)
    int lc_blocks_read(int file, const lc_blocks_run *runs, int64_t n, int64_t *done, int *error)

cdef extern from "kernels/bits.h" nogil:
    int64_t lc_popcount64(uint64_t word)

#: Bytes of the blocks of all files, and the limit.
cdef int64_t total_bytes = 0
cdef int64_t most_bytes = 256 << 20
cdef int64_t next_serial = 0
#: Files by their serial numbers, as addresses: they remove themselves.
cdef dict living = {}
#: Extents with blocks, as (serial number of the file, extent), oldest first. It may have some without blocks.
cdef object order = deque()
cdef int64_t num_extents = 0
#: The order is cleaned when it has more than this many entries in addition to twice the extents with blocks.
cdef int64_t STALE = 4096
#: Bytes from which on other threads may use the interpreter while they are copied.
cdef int64_t LARGE = 16 << 10


def set_limit(int64_t size):
    """Set how many bytes the blocks of all files may take. Blocks in use do not count as droppable.

    Parameters
    ----------
    size
        Number of bytes. At once, blocks are dropped until the rest fits.

    Raises
    ------
    CodecError
        The number is negative.
    """
    global most_bytes
    if size < 0:
        raise CodecError(f"a limit of {size} bytes")
    most_bytes = size
    drop_blocks()


def usage():
    """Return the bytes of the blocks of all files, and the limit.

    Returns
    -------
    tuple of int
        Both numbers.
    """
    return total_bytes, most_bytes


cdef int drop_blocks() except -1:
    """Drop blocks that were not used lately, until the others fit the limit."""
    cdef int64_t left, extent
    cdef FileBlocks blocks
    left = 2 * len(order)
    while total_bytes > most_bytes and left > 0 and order:
        left -= 1
        entry = order.popleft()
        address = living.get(entry[0])
        if address is None:
            continue
        blocks = <FileBlocks><object><void *><uintptr_t>address
        extent = entry[1]
        if blocks.blocks.loaded[extent] == 0:
            continue
        if blocks.blocks.pins[extent] or blocks.blocks.used[extent]:
            blocks.blocks.used[extent] = 0
            order.append(entry)
            continue
        if forget(&blocks.blocks, extent):
            lc_blocks_drop(&blocks.blocks, extent)
        else:
            order.append(entry)
    return 0


cdef bint forget(lc_blocks *blocks, int64_t extent) noexcept:
    """Forget the blocks of an extent; return False if there are none, or if a take needs them."""
    global total_bytes, num_extents
    cdef uint64_t loaded = lc_blocks_forget(blocks, extent) if blocks.loaded[extent] else 0
    if loaded:
        total_bytes -= lc_popcount64(loaded) << LC_BLOCK_LOG
        num_extents -= 1
    return loaded != 0


cdef class FileBlocks:
    """Blocks of one file. The object has the buffer protocol: the bytes of the file, and zeros where none were loaded.

    Load bytes with `hold` before they are looked at, and keep its result until then.

    Parameters
    ----------
    size
        Size of the file in bytes.
    fetch
        Function that takes a list of ``(offset, length)`` and returns a list of buffers with these bytes.
    lend, give_back
        Functions for local files. The first returns a descriptor for `pread`. The second takes the number of reads and
        of bytes and ends the use of the descriptor. `fetch` is then used only if reads are slow.

    Raises
    ------
    CodecError
        The size is out of range.
    MemoryError
        The system cannot reserve so much address space.
    """

    def __cinit__(self, int64_t size, fetch, lend=None, give_back=None):
        global next_serial
        self.blocks.size = size
        if size < 0 or size > LC_BLOCKS_MOST:
            raise CodecError(f"a file of {size} bytes")
        if lc_blocks_reserve(&self.blocks):
            raise MemoryError(f"addresses for {size} bytes")
        self.blocks.owner = <void *>self
        self.fetch, self.lend, self.give_back = fetch, lend, give_back
        self.serial = next_serial
        next_serial += 1
        living[self.serial] = <uintptr_t><void *>self

    def __dealloc__(self):
        cdef int64_t extent
        if self.blocks.base != NULL:
            if living is not None:
                living.pop(self.serial, None)
            for extent in range(self.blocks.extents):
                forget(&self.blocks, extent)
        with nogil:
            lc_blocks_release(&self.blocks)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.blocks.base, self.blocks.size, True, flags)

    def hold(self, const int64_t[::1] begins not None, const int64_t[::1] ends not None):
        """Load bytes, and keep them until the result is released.

        Parameters
        ----------
        begins, ends
            int64 arrays with the ranges of bytes, in any order.

        Returns
        -------
        Held
            An object that keeps the bytes as long as it lives.

        Raises
        ------
        CodecError
            A range is outside of the file, or the file is shorter than its size.
        OSError
            The system cannot read the file.
        """
        cdef Held held = new_held(self)
        cdef int64_t i
        cdef int problem
        if begins.shape[0] != ends.shape[0]:
            raise CodecError(f"{begins.shape[0]} begins and {ends.shape[0]} ends of ranges")
        for i in range(begins.shape[0]):
            if begins[i] < 0 or begins[i] > self.blocks.size or ends[i] < begins[i]:
                raise CodecError(f"bytes {begins[i]} to {ends[i]} of a file of {self.blocks.size}")
            problem = lc_need(&held.needs, &self.blocks, self.blocks.base + begins[i], ends[i] - begins[i])
            if problem:
                fail(problem, f"bytes {begins[i]} to {ends[i]} of a file of {self.blocks.size}")
        load_needs(&held.needs)
        return held

    def load(self, ranges):
        """Load whole blocks, as `lancecodec.take.TakenRows.requests` returns them.

        Parameters
        ----------
        ranges
            List of ``(first block, last block + 1)``, ascending.

        Raises
        ------
        CodecError
            A range is outside of the file, or `fetch` returned buffers of another size.
        """
        cdef Held held = new_held(self)
        cdef int64_t begin, end, size = self.blocks.size
        cdef int problem
        for begin, end in ranges:
            if begin < 0 or end < begin or end > (size >> LC_BLOCK_LOG) + 1:
                raise CodecError(f"blocks {begin} to {end} of a file of {size} bytes")
            begin, end = begin << LC_BLOCK_LOG, min(end << LC_BLOCK_LOG, size)
            problem = lc_need(&held.needs, &self.blocks, self.blocks.base + begin, end - begin)
            if problem:
                fail(problem, f"bytes {begin} to {end} of a file of {size}")
        load_needs(&held.needs)

    @property
    def is_local(self):
        """True if the file has a descriptor."""
        return self.lend is not None

    cdef int load_runs(self, const lc_blocks_run *runs, int64_t n) except -1:
        """Load runs of missing blocks, which are pinned."""
        cdef int64_t i, size = 0
        for i in range(n):
            size += lc_blocks_bytes(runs + i)
        if not self.enlarged and size >= (1 << 21) and size >= self.blocks.size // LC_BLOCKS_DENSE:
            self.enlarged = self.blocks.size <= most_bytes // 2
            if self.enlarged:
                lc_blocks_enlarge(&self.blocks)
        if self.lend is None:
            self.fetch_runs(runs, n)
        else:
            self.read_runs(runs, n)
        if total_bytes > most_bytes:
            drop_blocks()
        return 0

    cdef int read_runs(self, const lc_blocks_run *runs, int64_t n) except -1:
        cdef int64_t done = 0, size = 0, i
        cdef int problem, error = 0, file = self.lend()
        try:
            with nogil:
                problem = lc_blocks_read(file, runs, n, &done, &error)
        finally:
            for i in range(done):
                size += lc_blocks_bytes(runs + i)
            self.give_back(done, size)
        if problem == LC_BLOCKS_END:
            raise CodecError(f"ends before byte {runs[done].end << LC_BLOCK_LOG}; it shrank after it was opened")
        if problem:
            raise OSError(error, os.strerror(error))
        self.record(runs, done)
        if done < n:
            self.fetch_runs(runs + done, n - done)
        return 0

    cdef int fetch_runs(self, const lc_blocks_run *runs, int64_t n) except -1:
        cdef int64_t i
        cdef ByteView view
        cdef uint8_t *target
        cdef list ranges = [(runs[i].begin << LC_BLOCK_LOG, lc_blocks_bytes(runs + i)) for i in range(n)]
        cdef list buffers = list(self.fetch(ranges))
        if len(buffers) != n:
            raise CodecError(f"{len(buffers)} buffers instead of {n}")
        for i in range(n):
            view = readable(buffers[i])
            if view.size != lc_blocks_bytes(runs + i):
                raise CodecError(f"{view.size} bytes instead of {lc_blocks_bytes(runs + i)}")
            target = self.blocks.base + (runs[i].begin << LC_BLOCK_LOG)
            if view.size < LARGE:
                memcpy(target, view.data, view.size)
            else:
                with nogil:
                    memcpy(target, view.data, view.size)
        self.record(runs, n)
        return 0

    cdef int record(self, const lc_blocks_run *runs, int64_t n) except -1:
        """Record that runs were loaded."""
        global total_bytes, num_extents, order
        cdef int64_t i, extent
        for i in range(n):
            for extent in range(runs[i].begin >> 6, ((runs[i].end - 1) >> 6) + 1):
                if self.blocks.loaded[extent] == 0:
                    order.append((self.serial, extent))
                    num_extents += 1
            total_bytes += lc_blocks_mark(runs + i) << LC_BLOCK_LOG
        if len(order) > 2 * num_extents + STALE:
            order = deque([entry for entry in order if entry[0] in living])
        return 0


@cython.no_gc_clear  # the files must live until their extents are unpinned
cdef class Held:
    """Bytes of files that stay in memory as long as this object lives."""

    def __dealloc__(self):
        lc_needs_close(&self.needs)


cdef Held new_held(FileBlocks blocks):
    cdef Held held = Held.__new__(Held)
    held.owners = [blocks]
    return held


cdef int load_needs(lc_needs *needs) except -1:
    """Load the missing blocks, file by file."""
    cdef int64_t i = 0, stop
    if needs.count == 0:
        return 0
    lc_needs_merge(needs)
    while i < needs.count:
        stop = i + 1
        while stop < needs.count and needs.runs[stop].blocks == needs.runs[i].blocks:
            stop += 1
        (<FileBlocks><object>needs.runs[i].blocks.owner).load_runs(needs.runs + i, stop - i)
        i = stop
    needs.count = 0
    return 0


cdef list needed_ranges(lc_needs *needs):
    """Return the missing blocks as (file, list of (first block, last block + 1)), and forget them."""
    cdef int64_t i = 0
    cdef list found = []
    lc_needs_merge(needs)
    for i in range(needs.count):
        if i == 0 or needs.runs[i].blocks != needs.runs[i - 1].blocks:
            found.append((<object>needs.runs[i].blocks.owner, []))
        found[len(found) - 1][1].append((needs.runs[i].begin, needs.runs[i].end))
    needs.count = 0
    return found
