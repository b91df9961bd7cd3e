"""Damage legacy (0.1) data files and read them in every way, through their dataset and alone.

Anything but right data or a LanceError is a failure. Columns and batches that are not damaged must read as before. The
tests run a few cases; run it by hand for longer::

    python tests/fuzz/fuzz_file_v0_1.py --cases 20000 --seed 7

Each case is reproducible from its number: ``--only NUMBER`` with the same seed.
"""

from __future__ import annotations

import random
import shutil
import struct
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import fuzz_runner
import numpy as np
import pyarrow as pa
from fuzz_damage import damage_bytes, flip, mutate, number
from fuzz_file import check
from legacy_parts import CELL, LegacyParts, offsets_width, take_apart_legacy
from support.arrays.random_arrays import FLAT_TYPES, random_array
from support.files.file_parts import problem
from support.files.legacy_model import LegacyOptions, encode_legacy
from support.tables.equality import assert_same

import lance_dataset as lance
from lance_dataset.file.standalone import LanceFileReader
from lance_dataset.file.v0_1.layout import bits_per_row
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest, decode_manifest, encode_manifest
from lance_dataset.types.schema import Field, Schema

_ROWS = 130
_BATCH = 40
_PLAIN = {"mmap": "false"}


# -- corpus ------------------------------------------------------------------------------------------------------


def corpus_tables() -> dict[str, dict[str, pa.DataType]]:
    """Return the columns of the tables: every type that legacy files support."""
    text = [name for name in FLAT_TYPES if name.endswith(("string", "binary"))]
    fixed = [name for name in FLAT_TYPES if name not in (*text, "fixed_binary_0")]  # which none can read
    row = pa.struct([("a", pa.int8()), ("s", pa.string()), ("n", pa.null()), ("e", pa.struct([]))])
    few = pa.dictionary(pa.int8(), pa.string())
    return {
        "numbers": {name: FLAT_TYPES[name] for name in fixed[:16]},
        "times": {name: FLAT_TYPES[name] for name in fixed[16:]},
        "text": {name: FLAT_TYPES[name] for name in text},
        "lists": {
            "l": pa.list_(pa.int16()),
            "s": pa.list_(pa.string()),
            "b": pa.large_list(pa.large_binary()),
            "deep": pa.list_(pa.large_list(pa.list_(pa.bool_()))),
            "n": pa.list_(pa.null()),
        },
        "structs": {
            "r": row,
            "l": pa.list_(pa.struct([("l", pa.list_(pa.string())), ("v", pa.list_(pa.float32(), 4))])),
            "d": pa.struct([("l", pa.large_list(pa.struct([("x", pa.decimal128(9, 2))]))), ("i", pa.int32())]),
            "n": pa.null(),
        },
        "vectors": {
            "v": pa.list_(pa.float32(), 8),
            "b": pa.list_(pa.bool_(), 3),
            "n": pa.list_(pa.list_(pa.decimal128(5, 1), 2), 3),
            "f": pa.list_(pa.binary(3), 2),
            "i": pa.int64(),
        },
        "dictionaries": {
            "d": few,
            "i": pa.dictionary(pa.uint16(), pa.int64()),
            "b": pa.dictionary(pa.int64(), pa.large_binary()),
            "s": pa.struct([("d", pa.dictionary(pa.int32(), pa.string())), ("x", pa.int32())]),
            "l": pa.list_(few),
        },
    }


def _random_table(kinds: dict[str, pa.DataType]) -> pa.Table:
    rng = np.random.default_rng(len(kinds))
    return pa.table({name: random_array(kind, _ROWS, 0.2, rng) for name, kind in kinds.items()})


#: Files of the encoder of the tests: its options, sizes of batches, first field id.
_LIBERTIES: dict[str, tuple[LegacyOptions, list[int], int]] = {
    "gaps": (LegacyOptions(gap=37, first_offset=2, excess=3, minor=1), [40, 40, 40, 10], 0),
    "bare": (LegacyOptions(with_manifest=False, align=64), [40, 40, 40, 10], 0),
    "behind": (LegacyOptions(), [40, 40, 40, 10], 5),
    "from zero": (LegacyOptions(from_zero=True), [40, 40, 40, 10], 5),
    "uneven": (LegacyOptions(gap=1, minor=0), [5, 0, 90, 1, 34], 0),
}


def write_corpus(folder: Path) -> None:
    """Write datasets of one fragment with this package's writer and with the encoder of the tests."""
    for name, kinds in corpus_tables().items():
        table = _random_table(kinds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the nulls that legacy files lose
            lance.write_dataset(table, folder / name, data_storage_version="legacy", max_rows_per_group=_BATCH)
        [path] = (folder / name / "_versions").glob("*.manifest")
        manifest = decode_manifest(path.read_bytes(), str(path))
        path.write_bytes(encode_manifest(replace(manifest, fragments=tuple(map(_of_any_size, manifest.fragments)))))
        if name == "dictionaries":
            continue
        for liberty, (options, sizes, first) in _LIBERTIES.items():
            _write_by_hand(folder / f"{name} {liberty}", table, options, sizes, first)


def _of_any_size(fragment: Fragment) -> Fragment:
    return replace(fragment, files=tuple(replace(file, file_size_bytes=0) for file in fragment.files))


def _write_by_hand(folder: Path, table: pa.Table, options: LegacyOptions, sizes: list[int], first: int) -> None:
    schema = Schema.from_arrow(table.schema, max_field_id=first - 1)
    ends = np.cumsum([0, *sizes]).tolist()
    batches = [
        pa.RecordBatch.from_arrays(
            [column.chunk(0).slice(start, size) for column in table.columns], schema=table.schema
        )
        for start, size in zip(ends, sizes, strict=False)
    ]
    file = DataFile("a.lance", tuple(node.id for node in schema.walk()), (), 0, 2)
    manifest = Manifest(1, schema, (Fragment(0, (file,), physical_rows=_ROWS),), "0.1")
    (folder / "data").mkdir(parents=True)
    (folder / "_versions").mkdir()
    (folder / "data" / "a.lance").write_bytes(encode_legacy(schema, batches, options))
    (folder / "_versions" / "1.manifest").write_bytes(encode_manifest(manifest))


# -- damages -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Harm:
    """A damaged file, and the parts that may be wrong.

    Attributes
    ----------
    content
        The file.
    columns
        Top-level columns that may be wrong; all of them if None.
    batches
        Batches in which they may be wrong; all if None.
    refused
        True if the other batches of these columns may be refused, too.
    statistics
        True if a filter may find other rows.
    alone
        True if the file alone, without a dataset, must read as far as that.
    """

    content: bytes
    columns: frozenset[str] | None = None
    batches: frozenset[int] | None = None
    refused: bool = True
    statistics: bool = True
    alone: bool = True


@dataclass(frozen=True)
class Original:
    """An entry of the corpus."""

    folder: Path
    content: bytes
    schema: Schema
    base: int
    expected: pa.Table

    def parts(self) -> LegacyParts:
        """The parts of the file."""
        return take_apart_legacy(self.content, self.base)

    def spared(self, batches: frozenset[int]) -> list[tuple[int, int]]:
        """Return first row and end of the non-empty batches that are not among the given ones."""
        ranges = enumerate(pairwise(self.parts().metadata.batch_offsets))
        return [(start, end) for number, (start, end) in ranges if number not in batches and start < end]

    @property
    def pages(self) -> list[tuple[str, Field]]:
        """Return the fields that have pages, with the top-level columns to which they belong."""
        return [(top.name, node) for top in self.schema.fields for node in _walk(top) if node.logical_type != "struct"]


def _walk(field: Field) -> list[Field]:
    return [field, *(node for child in field.children for node in _walk(child))]


@cache
def original(entry: Path) -> Original:
    """Read an entry of the corpus."""
    [path] = (entry / "_versions").glob("*.manifest")
    schema = decode_manifest(path.read_bytes(), str(path)).schema
    [file] = (entry / "data").iterdir()
    base = 0 if "from zero" in entry.name else min(node.id for node in schema.walk())
    return Original(entry, file.read_bytes(), schema, base, lance.dataset(entry).to_table())


def whole(given: Original, chance: random.Random) -> Harm:
    """Damage bytes anywhere."""
    return Harm(damage_bytes(given.content, chance), alone=False)


def footer(given: Original, chance: random.Random) -> Harm:
    values = list(struct.unpack("<Qhh4s", given.content[-16:]))
    kind = chance.randrange(4)
    if kind < 2:
        values[0] = number(values[0], 64, chance)
    elif kind == 2:
        values[chance.choice((1, 2))] = chance.choice((0, 1, 2, 3, 7, -1, 32767))
    else:
        values[3] = chance.choice((b"LANX", bytes(4)))
    return Harm(given.content[:-16] + struct.pack("<Qhh4s", *values), alone=False)


def metadata(given: Original, chance: random.Random) -> Harm:
    parts = given.parts()
    parts.metadata.ClearField("statistics")
    mutate(parts.metadata, chance)
    return Harm(parts.assemble(), alone=False)


def batch_offsets(given: Original, chance: random.Random) -> Harm:
    parts = given.parts()
    offsets = list(parts.metadata.batch_offsets)
    kind = chance.randrange(4)
    at = chance.randrange(len(offsets))
    if kind == 0:
        offsets.insert(at, offsets[at])
    elif kind == 1:
        del offsets[at]
    else:
        changed = number(offsets[at], 32, chance)
        offsets[at] = changed - 2**32 if changed >= 2**31 else changed
        if kind == 3:
            offsets.sort()
    del parts.metadata.batch_offsets[:]
    parts.metadata.batch_offsets.extend(offsets)
    return Harm(parts.assemble(), alone=False)


def _some_page(
    given: Original, chance: random.Random, wanted: Callable[[Field], bool]
) -> tuple[str, Field, int] | None:
    found = [(name, node) for name, node in given.pages if wanted(node)]
    if not found:
        return None
    name, node = chance.choice(found)
    return name, node, chance.randrange(given.parts().num_batches)


def cell(given: Original, chance: random.Random) -> Harm | None:
    """Damage the position or length of a page."""
    found = _some_page(given, chance, lambda node: True)
    if found is None:
        return None
    name, node, batch = found
    parts = given.parts()
    values = [value % 2**64 for value in parts.cell(node.id, batch)]
    index = chance.randrange(2)
    other = chance.choice(given.pages)[1]
    near = (*parts.cell(other.id, chance.randrange(parts.num_batches)), len(given.content), len(given.content) - 1)
    values[index] = number(values[index], 64, chance) if chance.random() < 0.6 else chance.choice(near)
    struct.pack_into("<QQ", parts.body, parts.cell_at(node.id, batch), *values)
    return Harm(parts.assemble(), frozenset([name]), frozenset([batch]), statistics=False)


def offsets(given: Original, chance: random.Random) -> Harm | None:
    """Damage an entry of the offsets of strings or lists."""
    found = _some_page(given, chance, lambda node: offsets_width(node) > 0)
    if found is None:
        return None
    name, node, batch = found
    parts, width = given.parts(), offsets_width(node)
    position, length = parts.cell(node.id, batch)
    count = length if node.logical_type.removesuffix(".struct") in ("list", "large_list") else length + 1
    if count == 0:
        return None
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = position + width * chance.choice((0, count - 1, chance.randrange(count)))
        old = int.from_bytes(parts.body[at : at + width], "little")
        parts.body[at : at + width] = number(old, 8 * width, chance).to_bytes(width, "little")
    return Harm(parts.assemble(), frozenset([name]), frozenset([batch]), refused=False, statistics=False)


def values(given: Original, chance: random.Random) -> Harm | None:
    """Damage bytes of the values of a page of fixed width, including dictionary indices."""
    found = _some_page(given, chance, lambda node: not offsets_width(node) and node.logical_type != "null")
    if found is None:
        return None
    name, node, batch = found
    parts = given.parts()
    position, length = parts.cell(node.id, batch)
    kind = node.storage_type
    size = length * bits_per_row(kind.index_type if pa.types.is_dictionary(kind) else kind) // 8
    if size == 0:
        return None
    parts.body[position : position + size] = flip(bytes(parts.body[position : position + size]), chance)
    return Harm(parts.assemble(), frozenset([name]), frozenset([batch]), refused=False, statistics=False)


def embedded_manifest(given: Original, chance: random.Random) -> Harm | None:
    """Damage the schema in the file, which its dataset needs only if the first field id is not 0."""
    parts = given.parts()
    manifest = parts.manifest()
    if manifest is None:
        return None
    if chance.random() < 0.2:
        parts.metadata.manifest_position = number(parts.metadata.manifest_position, 64, chance)
    else:
        for _ in range(chance.choice((1, 1, 3))):
            mutate(manifest, chance)
        parts.set_manifest(manifest)
    unneeded = min(node.id for node in given.schema.walk()) == 0
    columns: frozenset[str] | None = frozenset() if unneeded else None
    return Harm(parts.assemble(), columns, statistics=not unneeded, alone=False)


def statistics(given: Original, chance: random.Random) -> Harm | None:
    """Damage description, cells or values of the statistics, which scans without a filter do not use."""
    parts = given.parts()
    if not parts.metadata.HasField("statistics"):
        return None
    stored = parts.metadata.statistics
    kind = chance.randrange(3)
    if kind == 0:
        mutate(stored, chance)
    else:
        node = chance.choice([node for node in stored.schema if node.parent_id >= 0])
        at = parts.statistics_cell_at(node.id)
        position, length = CELL.unpack_from(parts.body, at)
        if kind == 1:
            at += chance.choice((0, 8))
            old = int.from_bytes(parts.body[at : at + 8], "little")
            parts.body[at : at + 8] = number(old, 64, chance).to_bytes(8, "little")
        else:
            end = position + length * 8 + 8
            parts.body[position:end] = flip(bytes(parts.body[position:end]), chance)
    return Harm(parts.assemble(), frozenset(), statistics=True)


_DAMAGES = (whole, footer, metadata, batch_offsets, cell, cell, offsets, offsets, values, embedded_manifest)
DAMAGES: tuple[Callable[[Original, random.Random], Harm | None], ...] = (*_DAMAGES, statistics, statistics)


# -- reading -----------------------------------------------------------------------------------------------------


def predicates(name: str, kind: pa.DataType) -> list[str]:
    """Return filters on a column: some that statistics can decide and some that they cannot."""
    found = [f"`{name}` is null", f"`{name}` is not null"]
    decimal = pa.types.is_decimal(kind) and kind.scale >= 0  # Arrow cannot compare others
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or decimal:
        found += [f"`{name}` > 3", f"`{name}` = 0", f"`{name}` > 100 or `{name}` in (1, 2)"]
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        found += [f"`{name}` >= 'b'", f"`{name}` = 'null'", f"`{name}` like 'x%'"]
    elif pa.types.is_boolean(kind):
        found += [f"`{name}`", f"not `{name}`"]
    elif pa.types.is_date(kind):
        found += [f"`{name}` > date '1990-01-01'"]
    elif pa.types.is_struct(kind):
        found += [predicate for child in kind for predicate in predicates(f"{name}`.`{child.name}", child.type)]
    return found


Way: TypeAlias = Callable[[lance.LanceDataset], pa.Table]


def outcome(read: Callable[[], pa.Table], expected: pa.Table | None, where: str, *, sound: bool) -> None:
    """Read, and check that the result is valid and, if known, as expected; only a damaged part may be refused."""
    tables: list[pa.Table] = []
    said = problem(lambda: tables.append(read()))
    if said is not None:
        assert not sound, f"refused, though unharmed: {said}"
        known = ".lance" in said or " row" in said or where in said or "the file has no columns" in said
        assert known, f"an error that does not say where: {said}"
        return
    check(tables[0])
    if expected is not None:
        assert_same(tables[0], expected)


@dataclass(frozen=True)
class Reading:
    """Reads of a dataset whose file was damaged."""

    folder: Path
    given: Original
    harm: Harm
    chance: random.Random
    options: dict[str, str]

    def open(self) -> lance.LanceDataset:
        """Open the dataset."""
        return lance.dataset(self.folder, storage_options=self.options)

    def read(self) -> None:
        """Read everything."""
        names, harmed = self.given.expected.column_names, self.harm.columns
        spared = [name for name in names if harmed is not None and name not in harmed]
        others = [name for name in names if name not in spared]
        for columns in (spared, others):
            if columns:
                self._scan(columns, columns is spared)
                self._filter(self.chance.choice(columns), columns is spared)
        if others and self.harm.batches is not None:
            self._other_batches(others)

    def _scan(self, columns: list[str], sound: bool) -> None:
        row = self.chance.randrange(_ROWS)
        rows = [row, 0, _ROWS - 1, row, self.chance.randrange(_ROWS)]
        right = self.given.expected.select(columns)
        ways: list[tuple[Way, pa.Table]] = [
            (lambda it: it.to_table(columns), right),
            (lambda it: it.to_table(columns, offset=row, limit=17), right.slice(row, 17)),
            (lambda it: pa.Table.from_batches(it.to_batches(columns=columns, batch_size=32), right.schema), right),
            (lambda it: it.take(rows, columns=columns), right.take(rows)),
        ]
        for way, table in ways:
            outcome(lambda way=way: way(self.open()), table if sound else None, self.folder.name, sound=sound)
        said = problem(lambda: str(self.open().explain_encodings(columns, deep=True)))
        assert said is None or not sound, f"not explained, though unharmed: {said}"
        problem(lambda: self.open().validate())

    def _filter(self, name: str, spared: bool) -> None:
        """Check that a filter finds the right rows if the column is right, with and without its statistics."""
        predicate = self.chance.choice(predicates(name, self.given.expected.schema.field(name).type))
        right = lance.dataset(self.given.folder).to_table([name], filter=predicate)
        for asked in (True, False):
            sound = spared and not (asked and self.harm.statistics)

            def scanner(asked: bool = asked) -> lance.LanceScanner:
                return self.open().scanner([name], predicate, use_stats=asked)

            outcome(lambda: scanner().to_table(), right if sound else None, name, sound=sound)
            counts: list[int] = []
            said = problem(lambda counts=counts: (scanner().explain_plan(), counts.append(scanner().count_rows())))
            assert not sound or (said is None and counts == [right.num_rows]), f"{said}, {counts} rows"

    def _other_batches(self, columns: list[str]) -> None:
        """Check the rows of the batches that were not damaged."""
        right, sound = self.given.expected.select(columns), not self.harm.refused
        for start, end in self.given.spared(self.harm.batches or frozenset()):
            for rows in ([start, end - 1, self.chance.randrange(start, end)], list(range(start, end))):
                table = right.take(rows)
                outcome(lambda rows=rows: self.open().take(rows, columns=columns), table, self.folder.name, sound=sound)


def read_alone(path: Path, given: Original, harm: Harm, chance: random.Random) -> None:
    """Read the file by the schema embedded in it."""
    options = chance.choice((None, _PLAIN))
    sound = harm.alone and harm.columns == frozenset() and given.parts().manifest() is not None
    right, rows = given.expected, [0, _ROWS - 1, chance.randrange(_ROWS), 3, 3]
    ways: list[tuple[Callable[[LanceFileReader], pa.Table], pa.Table]] = [
        (lambda it: it.read_all().to_table(), right),
        (lambda it: it.read_all(batch_size=32).to_batches().read_all(), right),
        (lambda it: it.read_range(41, 50).to_table(), right.slice(41, 50)),
        (lambda it: it.take_rows(rows).to_table(), right.take(rows)),
    ]
    for way, table in ways:
        outcome(lambda way=way: way(LanceFileReader(path, options)), table if sound else None, path.name, sound=sound)
    said = problem(lambda: str(LanceFileReader(path, options).explain_encodings(deep=True)))
    assert said is None or not sound, f"not explained, though unharmed: {said}"
    if harm.batches is None or given.parts().manifest() is None:
        return
    for start, end in given.spared(harm.batches):
        table, size = right.slice(start, end - start), end - start

        def read(start: int = start, size: int = size) -> pa.Table:
            return LanceFileReader(path, options).read_range(start, size).to_table()

        outcome(read, table, path.name, sound=not harm.refused)


def case(entry: Path, chance: random.Random, scratch: Path) -> None:
    """Damage the file of a dataset and read it."""
    given, harm = original(entry), None
    while harm is None:
        harm = chance.choice(DAMAGES)(given, chance)
    folder = scratch / "t.lance"
    shutil.copytree(entry, folder)
    [file] = (folder / "data").iterdir()
    file.write_bytes(harm.content)
    Reading(folder, given, harm, chance, chance.choice(({}, _PLAIN))).read()
    read_alone(file, given, harm, chance)


if __name__ == "__main__":
    raise SystemExit(fuzz_runner.main(__file__, __doc__, write_corpus, case))
