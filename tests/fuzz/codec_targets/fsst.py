from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import fsst


def symbol_table(c: Chaos) -> fsst.SymbolTable:
    kind = c.random.random()
    table = np.empty(fsst.TABLE_SIZE, np.uint8)
    if kind < 0.1:
        fsst.write_verbatim_table(table)
    else:
        most = c.random.choice([0, 1, 5, 127, 128, 255, 255, 255, 256])
        symbols = [c.rng.integers(0, c.random.choice([3, 256]), c.random.randint(1, 8), np.uint8) for _ in range(most)]
        fsst.write_table([symbol.tobytes() for symbol in symbols], table)
    if c.random.random() < 0.1:
        table[c.random.randrange(8 if c.random.random() < 0.5 else len(table))] = c.random.randrange(256)
    return fsst.SymbolTable(table if c.random.random() < 0.98 else c.out(fsst.TABLE_SIZE))


def codes(c: Chaos, size: int) -> Any:
    """Return bytes that are mostly codes of small tables, with some escapes."""
    if c.random.random() < 0.2:
        return c.out(size)
    values = c.rng.integers(0, c.random.choice([1, 5, 127, 255]), size).astype(np.uint8)
    if c.random.random() < 0.5:
        values[c.rng.random(size) < c.random.choice([0.01, 0.2, 0.9])] = 255
    return values


def offsets(c: Chaos, n: int, size: int, wide: bool, begin: int = 0) -> Any:
    values = np.sort(c.rng.integers(0, size + 1, max(n, 0))) + begin
    if len(values) and c.random.random() < 0.9:
        values[-1] = size + begin
    if len(values) and c.random.random() < 0.1:
        values[c.random.randrange(len(values))] = c.random.choice([-1, size + begin + 1, 2**31 - 1, -(2**31)])
    data = values.astype(np.int64 if wide else np.int32).view(np.uint8)
    return data if c.random.random() < 0.95 else c.out(len(data))


def sizes(c: Chaos) -> tuple[int, int, bool]:
    size = c.random.choice([0, 1, 8, 100, c.random.randint(0, 5000)])
    return size, c.random.choice([0, 1, 2, 40, c.random.randint(0, 600)]), c.random.random() < 0.5


def strings(c: Chaos) -> tuple[Any, Any, bool, int, int]:
    size, n, wide = sizes(c)
    first = c.random.choice([0, 0, 7, 1000])
    count = n if c.random.random() < 0.95 else c.number(n)
    begin = first if c.random.random() < 0.95 else c.number()
    return codes(c, size), offsets(c, n, size, wide, first), wide, begin, count


def decode(c: Chaos) -> object:
    given, out_wide = strings(c), c.random.random() < 0.5
    n = given[4] if isinstance(given[4], int) and 0 <= given[4] < 1000 else 9
    base = c.random.choice([0, 0, 9, 2**31 - 100, c.number()])
    table = symbol_table(c)
    capacity = c.random.choice([8 * len(given[0]), c.random.randint(0, 40_000)])
    if c.random.random() < 0.5:
        capacity = table.decoded_size(given[0])
    ends = given[1] if out_wide == given[2] and c.random.random() < 0.2 else c.out(n * (8 if out_wide else 4))
    return table.decode(*given, base, out_wide, ends, c.out(capacity))


def take(c: Chaos) -> object:
    given, rows, out_wide = strings(c), c.integers(c.random.choice([1, 40, 600])), c.random.random() < 0.5
    if isinstance(given[4], int) and 0 < given[4] < 1000 and c.random.random() < 0.8:
        rows = c.rng.integers(0, given[4], c.random.randint(0, 100))
    table = symbol_table(c)
    size = table.take_ends(*given, rows, c.number(), out_wide, c.out(len(rows) * (8 if out_wide else 4)))
    return table.take_bytes(*given, rows, c.out(size))


def text(c: Chaos) -> tuple[Any, Any, bool, int]:
    size, n, wide = sizes(c)
    begin = c.random.choice([0, 0, 3])
    data = c.out(size + begin)
    if c.random.random() < 0.5:
        data = c.rng.choice(np.frombuffer(b"etaoin \0\xff", np.uint8), c.random.choice([size + begin, 50_000]))
    count = n if c.random.random() < 0.95 else c.number(n)
    return data, offsets(c, n + 1, max(len(data) - begin, 0), wide, begin), wide, count


def build(c: Chaos) -> object:
    return fsst.build(*text(c), c.out(fsst.TABLE_SIZE) if c.random.random() < 0.05 else bytearray(fsst.TABLE_SIZE))


def encode(c: Chaos) -> object:
    """Encode with a built or any other table, and check that the result can be decoded."""
    data, places, wide, n = text(c)
    if c.random.random() < 0.5:
        table = symbol_table(c)
    else:
        own = bytearray(fsst.TABLE_SIZE)
        fsst.build(data, places, wide, n, own)
        table = fsst.SymbolTable(own)
    out_wide = c.random.random() < 0.5
    ends, out = np.zeros((n + 1) * (8 if out_wide else 4), np.uint8), c.out(fsst.encode_bound(len(data)))
    size = fsst.Encoder(table).encode(data, places, wide, n, out_wide, ends, out)
    back, decoded = np.empty(n * 8, np.uint8), np.empty(len(data), np.uint8)
    stored = np.frombuffer(out, np.uint8)[:size].copy()
    written = table.decode(stored, ends[8 if out_wide else 4 :], out_wide, 0, n, 0, True, back, decoded)
    first = int(np.frombuffer(places, np.int64 if wide else np.int32)[0])
    if bytes(decoded[:written]) != bytes(data)[first : first + written]:
        raise AssertionError("what was encoded does not decode to the same")
    return written


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "fsst.SymbolTable": symbol_table,
    "fsst.decode": decode,
    "fsst.decoded_size": lambda c: symbol_table(c).decoded_size(codes(c, c.size())),
    "fsst.take": take,
    "fsst.build": build,
    "fsst.encode": encode,
}
