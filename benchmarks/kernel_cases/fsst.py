from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import fsst

SIZE = 32 << 20
#: Number of distinct strings in a column.
POOL = 20_000
TAKEN = 100_000
SITES = ["www.example.com", "en.wikipedia.org", "shop.example.net", "news.example.org"]
NAMES = ["James", "Mary", "Robert", "Patricia", "Smith", "Garcia", "Johnson", "Rodriguez", "Nguyen", "Müller"]
TEXT = (
    "the of and to in is that for it as was with be by on not he his but at are this have from or had an "
    "they which one you were all her she there would their we him been has when who will no more if out "
    "so up said what its about than into them can only other time new some could these two may first then "
    "do any like my now over such our man even most after also made many before must through years where "
    "much your way down should because long people those little state good make world still see own work "
    "men day get here between life being under three never know same last another while us off might "
    "great go come since against right came take used himself few house use place during high without "
)
WORDS = TEXT.split()

Text = Callable[[np.random.Generator], str]


def url(random: np.random.Generator) -> str:
    return f"https://{random.choice(SITES)}/{phrase(random, 2).replace(' ', '-')}?id={random.integers(10**6)}&from=mail"


def name(random: np.random.Generator) -> str:
    return " ".join(random.choice(NAMES, 2))


def row(random: np.random.Generator) -> str:
    score, tags = random.random(), random.choice(WORDS, 2).tolist()
    return f'{{"id": {random.integers(10**7)}, "name": "{random.choice(NAMES)}", "score": {score:.4f}, "tags": {tags}}}'


def phrase(random: np.random.Generator, words: int) -> str:
    return " ".join(random.choice(WORDS, words))


def comment(random: np.random.Generator) -> str:
    return phrase(random, int(random.integers(4, 40)))


KINDS: dict[str, Text] = {
    "urls": url,
    "names": name,
    "json": row,
    "comments": comment,
    "hex ids": lambda random: random.bytes(16).hex(),
    "8 bytes": lambda random: f"{random.choice(WORDS)[:3]:3}-{random.integers(10**4):04}",
    "2 KB": lambda random: phrase(random, 450),
    "noise": lambda random: random.bytes(40).decode("latin-1"),
}


@dataclass(frozen=True)
class Column:
    """Strings, their symbol table, and their encoded form."""

    data: np.ndarray
    offsets: np.ndarray
    table: fsst.SymbolTable
    codes: np.ndarray
    places: np.ndarray

    @property
    def n(self) -> int:
        return len(self.offsets) - 1


def pool(kind: str) -> Sequence[bytes]:
    random = rng()
    count = POOL // 20 if kind == "2 KB" else POOL
    return [KINDS[kind](random).encode("latin-1" if kind == "noise" else "utf-8") for _ in range(count)]


@cache
def column(kind: str) -> Column:
    values = pool(kind)
    values = [*values] * (SIZE // sum(map(len, values)) + 1)
    data = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    table, n = np.empty(fsst.TABLE_SIZE, np.uint8), len(values)
    fsst.build(data, offsets, False, n, table)
    symbols = fsst.SymbolTable(table)
    out, places = np.empty(fsst.encode_bound(len(data)), np.uint8), np.empty(n + 1, np.int32)
    size = fsst.Encoder(symbols).encode(data, offsets, False, n, False, places, out)
    return Column(data, offsets, symbols, out[:size].copy(), places)


def decode(kind: str) -> Case:
    given = column(kind)
    ends, out = np.empty(given.n, np.int32), np.empty(len(given.data), np.uint8)
    source = given.places[1:]
    return Case(
        lambda: given.table.decode(given.codes, source, False, 0, given.n, 0, False, ends, out), len(given.data)
    )


def decoded_size(kind: str) -> Case:
    given = column(kind)
    return Case(lambda: given.table.decoded_size(given.codes), len(given.data))


def encode(kind: str) -> Case:
    given, encoder = column(kind), fsst.Encoder(column(kind).table)
    out, places = np.empty(fsst.encode_bound(len(given.data)), np.uint8), np.empty(given.n + 1, np.int32)
    return Case(lambda: encoder.encode(given.data, given.offsets, False, given.n, False, places, out), len(given.data))


def build(kind: str) -> Case:
    """Build a table; the size is that of the sample, which construction reads several times."""
    given, table = column(kind), np.empty(fsst.TABLE_SIZE, np.uint8)
    sampled, _ = fsst.build(given.data, given.offsets, False, given.n, table)
    return Case(lambda: fsst.build(given.data, given.offsets, False, given.n, table), sampled)


def take(kind: str) -> Case:
    """Run both passes: ends, then bytes."""
    given, rows = column(kind), rng().integers(0, column(kind).n, TAKEN)
    place = (given.codes, given.places[1:], False, 0, given.n)
    ends = np.empty(TAKEN, np.int64)
    out = np.empty(given.table.take_ends(*place, rows, 0, True, ends), np.uint8)

    def work() -> None:
        given.table.take_ends(*place, rows, 0, True, ends)
        given.table.take_bytes(*place, rows, out)

    return Case(work, len(out))


def cases(function: str, make: Callable[[str], Case], *kinds: str) -> dict[str, Callable[[], Case]]:
    return {f"fsst.{function}, {kind}": lambda kind=kind: make(kind) for kind in kinds or KINDS}


CASES: dict[str, Callable[[], Case]] = {
    **cases("decode", decode),
    **cases("decoded_size", decoded_size, "comments"),
    **cases("encode", encode),
    **cases("build", build, "urls", "comments", "8 bytes"),
    **cases("take", take, "names", "comments"),
}
