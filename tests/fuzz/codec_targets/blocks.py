from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import CodecError, blocks
from lancecodec.blocks import FileBlocks
from lancecodec.pages import EndsPages, FixedPages


def opened(c: Chaos, content: bytes) -> FileBlocks:
    """Return blocks over a file, or over a function that may lie."""
    if c.flag():
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.flush()
            descriptor = os.dup(file.fileno())
        size = c.random.choice([len(content), len(content), len(content) + 5000])
        made = FileBlocks(size, lambda _: [], lambda: descriptor, lambda _, __: None)
        weakref.finalize(made, os.close, descriptor)
        return made

    def fetch(ranges: list[tuple[int, int]]) -> list[bytes]:
        parts = [content[offset : offset + length] for offset, length in ranges]
        return parts[: -1 if c.flag(0.05) else None]

    return FileBlocks(len(content), fetch)


def hold(c: Chaos) -> object:
    """Load ranges, most of them inside the file, while few blocks may stay."""
    blocks.set_limit(c.random.choice([0, 1 << 16, 1 << 28]))
    content = c.content(c.random.choice([1, 4096, 100_000, 1_000_000])).tobytes()
    file = opened(c, content)
    held = []
    for _ in range(c.random.randint(1, 8)):
        begins = c.rng.integers(0, len(content), c.random.randint(1, 9))
        ends = np.minimum(begins + c.rng.integers(0, 9000, len(begins)), len(content))
        if c.flag(0.05):
            ends[0] = c.random.choice([-1, 0, len(content) + 9000, 2**63 - 1])
        held.append((begins, ends, file.hold(begins, ends)))
        if c.flag():
            held.pop(c.random.randrange(len(held)))
    view = memoryview(file)
    for begins, ends, _ in held:
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            if view[begin:end] != content[begin:end]:
                raise AssertionError(f"bytes {begin} to {end} are not those of the file")
    if c.flag():
        file.load([(c.number(), c.number()) for _ in range(3)])
    return None


def pages(c: Chaos) -> object:
    """Load what pages of version 2.0 need, at places that they do not have as well."""
    content = c.content(20_000).tobytes()
    file = opened(c, content)
    view = memoryview(file)
    rows = c.integers(1000)
    if c.flag():
        found: FixedPages | EndsPages = FixedPages(
            [0, 1000], 64, [view[8:8008]], [view[9000:9125] if c.flag() else None]
        )
    else:
        found = EndsPages([0, 1000], [(view[:8000], 10_001, 10_000, 0, view[8000:18_000], None, 0)])
    other = opened(c, content[:100])
    return found.hold(rows, file if c.flag(0.9) else other)


def needless(c: Chaos) -> object:
    if not 0 <= (limit := c.number()) < 2**40:
        raise CodecError("not a limit")
    blocks.set_limit(limit)
    return blocks.usage()


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "blocks.hold": hold,
    "blocks.pages": pages,
    "blocks.set_limit": needless,
}
