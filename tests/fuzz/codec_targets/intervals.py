from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from codec_targets.miniblock import chunk_buffers, counts_of, level_buffers, opened
from lancecodec import intervals, miniblock_values
from lancecodec import miniblock_levels as levels
from lancecodec.intervals import ChunkRanges, IntervalTest


def random_test(c: Chaos, bits: int) -> IntervalTest:
    """Return a test of some intervals, mostly in order."""
    edges = sorted({c.random.getrandbits(c.random.choice([3, bits, bits])) for _ in range(c.random.randint(0, 34))})
    pairs = list(zip(edges[::2], edges[1::2], strict=False))
    if c.flag(0.1):
        c.random.shuffle(pairs)
    return IntervalTest(bits, c.random.randint(0, 2), pairs, null=c.flag())


def plain(c: Chaos) -> object:
    bits, count = c.random.choice([8, 16, 32, 64, 128]), c.random.randint(0, 300)
    return random_test(c, bits).values(c.buffer(bits // 8 * count), c.out((count + 7) // 8))


def searched(c: Chaos) -> object:
    kinds = [miniblock_values.FLAT, miniblock_values.INLINE, miniblock_values.RLE, miniblock_values.SPLIT]
    kind = c.random.choice(kinds)
    bits = c.random.choice([32, 64] if kind == miniblock_values.SPLIT else [8, 16, 32, 64])
    if kind == miniblock_values.FLAT and c.flag(0.2):
        bits = 128
    counts, level_kind = counts_of(c), c.random.choice([levels.FLAT, levels.RLE])
    streams = {}
    if c.flag():
        parts = [level_buffers(c, level_kind, n, 1) for n in counts]
        ends = [sum(map(len, parts[: number + 1])) for number in range(len(parts))]
        streams = {"levels": counts, "level_streams": [(b"".join(parts), ends)]}
    page = opened(c, [chunk_buffers(c, kind, bits, n) for n in counts], counts, **streams)
    test, ranges = random_test(c, bits), ChunkRanges(len(counts) + c.flag(0.05), wide=c.flag() or bits == 128)
    definition = (level_kind, c.number(17)) if streams or c.flag(0.05) else None
    for _ in range(3):
        start, stop = sorted([c.number(sum(counts)), c.number(sum(counts))])
        size = (min(stop - start, sum(counts)) + 7) // 8
        kept = c.out(size) if c.flag(0.3) else None
        out = c.out(size)
        which = c.random.randrange(3)
        if which == 0:
            intervals.search(page, kind, bits, definition, test, ranges, start, stop, out, kept)
        elif which == 1:
            entries = c.random.randint(0, 300)
            marks = c.buffer(entries) if c.flag() else None
            options = {"entries": c.number(entries) if c.flag(0.1) else entries, "marks": marks}
            intervals.search_indices(page, kind, bits, definition, test, ranges, start, stop, out, kept, **options)
        else:
            intervals.search_nulls(page, definition, c.flag(), c.flag(), ranges, start, stop, out, kept)
    return ranges


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "intervals.IntervalTest": plain,
    "intervals.search": searched,
}
