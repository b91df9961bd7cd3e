"""Rows like those of TPC-H's line-item table, generated with numpy: same columns and domains, different text."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

PARTS = 66_667  # a third of the parts of scale factor 1, because 2 million rows are a third of its line items
SUPPLIERS = 3_333
_FIRST_DAY, _LAST_DAY = 8035, 10440  # order dates, 1992-01-01 to 1998-08-02, as days since 1970
_CURRENT_DAY = 9298  # 1995-06-17
_TEXT_WORDS = 700_000
_COMMENT_BYTES = (10, 43)
_PRICE = pa.decimal128(12, 2)

SCHEMA = pa.schema(
    [
        ("orderkey", pa.int64()),
        ("partkey", pa.int64()),
        ("suppkey", pa.int64()),
        ("linenumber", pa.int32()),
        ("quantity", _PRICE),
        ("extendedprice", _PRICE),
        ("discount", _PRICE),
        ("tax", _PRICE),
        ("returnflag", pa.string()),
        ("linestatus", pa.string()),
        ("shipdate", pa.date32()),
        ("commitdate", pa.date32()),
        ("receiptdate", pa.date32()),
        ("shipinstruct", pa.string()),
        ("shipmode", pa.string()),
        ("comment", pa.string()),
    ]
)

_INSTRUCTIONS = pa.array(["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"])
_MODES = pa.array(["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"])
_FLAGS = pa.array(["A", "R", "N"])
_STATUS = pa.array(["F", "O"])
# More common words come first.
_VOCABULARY = """
    the carefully furiously deposits packages accounts requests ideas quickly instructions final regular
    pending slyly special express bold even above about according to ironic blithely silent unusual pinto
    beans sleep haggle along across against foxes theodolites dependencies asymptotes excuses platelets courts
    dolphins multipliers sauternes warthogs frets dinos attainments somas braids hockey players sheaves frays
    warhorses dugouts notornis epitaphs pearls tithes waters orbits gifts patterns forges decoys nag wake are
    cajole detect integrate maintain solve nod sublate affix engage doze boost dazzle hang mold serve unwind
    thrash hinder grow doubt promise poach use was print snooze x-ray believe hinges ruthless thin close
    dogged daring brave stealthy permanent enticing idle busy sometimes always never fluffily finally daringly
    evenly quietly closely doggedly ruthlessly permanently thinly busily among after atop before beneath
    between beyond despite during except inside instead near of outside over past since through throughout
    toward under until up upon without with within
"""
WORDS = _VOCABULARY.split()


@cache
def _text() -> np.ndarray:
    """Return the bytes of running text that comments are cut from."""
    rng = np.random.default_rng(1)
    weights = 1.0 / (np.arange(len(WORDS)) + 4)
    chosen = rng.choice(len(WORDS), _TEXT_WORDS, p=weights / weights.sum())
    return np.frombuffer(" ".join(WORDS[i] for i in chosen).encode(), np.uint8)


def _comments(rng: np.random.Generator, count: int) -> pa.Array:
    low, high = _COMMENT_BYTES
    lengths = rng.integers(low, high + 1, count)
    ends = np.cumsum(lengths)
    starts = rng.integers(0, len(_text()) - high, count)
    positions = np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1])
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(_text()[positions]))


def _orders(rng: np.random.Generator, start: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return key, line number and order day of each line; orders have 1 to 7 lines, and keys ascend with gaps."""
    lines = rng.integers(1, 8, count)
    order = np.repeat(np.arange(count), lines)[:count]
    first_line = np.cumsum(lines) - lines
    days = rng.integers(_FIRST_DAY, _LAST_DAY - 151, count)
    # There are more numbers than orders in a batch, so that the next batch continues above them.
    number = order + start * 17 // 64
    key = number // 8 * 32 + number % 8 + 1
    return key, np.arange(count) - first_line[order] + 1, days[order]


def _decimals(cents: np.ndarray) -> pa.Array:
    words = np.empty((len(cents), 2), np.int64)
    words[:, 0] = cents
    words[:, 1] = cents >> 63
    return pa.Array.from_buffers(_PRICE, len(cents), [None, pa.py_buffer(words)])


def _dates(days: np.ndarray) -> pa.Array:
    return pa.array(days.astype(np.int32)).view(pa.date32())


def make_batch(rng: np.random.Generator, start: int, count: int) -> list[pa.Array]:
    """Return line items starting at row number `start`."""
    key, line, order_day = _orders(rng, start, count)
    part = rng.integers(1, PARTS + 1, count)
    quantity = rng.integers(1, 51, count)
    retail_cents = 90_000 + part // 10 % 20_001 + 100 * (part % 1_000)
    ship = order_day + rng.integers(1, 122, count)
    receipt = ship + rng.integers(1, 31, count)
    flag = np.where(receipt <= _CURRENT_DAY, rng.integers(0, 2, count), 2)
    return [
        pa.array(key),
        pa.array(part),
        pa.array(rng.integers(1, SUPPLIERS + 1, count)),
        pa.array(line.astype(np.int32)),
        _decimals(quantity * 100),
        _decimals(quantity * retail_cents),
        _decimals(rng.integers(0, 11, count)),
        _decimals(rng.integers(0, 9, count)),
        _FLAGS.take(pa.array(flag)),
        _STATUS.take(pa.array((ship > _CURRENT_DAY).astype(np.int8))),
        _dates(ship),
        _dates(order_day + rng.integers(30, 91, count)),
        _dates(receipt),
        _INSTRUCTIONS.take(pa.array(rng.integers(0, len(_INSTRUCTIONS), count))),
        _MODES.take(pa.array(rng.integers(0, len(_MODES), count))),
        _comments(rng, count),
    ]
