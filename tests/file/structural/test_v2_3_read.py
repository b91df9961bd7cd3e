"""Tests of files of 2.3 that the reference wrote, read whole, by range and by row; and of hostile files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import any_pb2
from lance.file import LanceFileWriter
from support.arrays.random_arrays import whole
from support.files.file_parts import FileParts, take_apart_file

from lance_dataset._proto import encodings23_pb2 as pb
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.bitpacking import OutOfLineBitpacking
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.general import General
from lance_dataset.file.structural.encodings.rle import Rle
from lance_dataset.file.structural.encodings.variable import Variable
from lance_dataset.file.structural.layout import MiniBlockLayout
from lance_dataset.file.v2_3.family import column_indices, open_column
from lance_dataset.file.v2_3.layout import DictionaryLayout
from lance_dataset.file.v2_3.messages import parse_planar_layout
from lance_dataset.io.resolve import resolve
from lancecodec import general

SPARSE = {"lance-encoding:structural-encoding": "sparse"}
PACKED = {"lance-encoding:packed": "true"}


def option(**options: str) -> dict[str, str]:
    return {f"lance-encoding:{name.replace('_', '-')}": value for name, value in options.items()}


# -- files -----------------------------------------------------------------------------------------------------------


def write(
    path: Path, arrays: list[pa.Array], kind: pa.DataType | None = None, metadata: dict[str, str] | None = None
) -> Path:
    """Write a file of one column in which every array becomes a page."""
    schema = pa.schema([pa.field("x", kind or arrays[0].type, metadata=metadata)])
    with LanceFileWriter(str(path), schema, version="2.3", data_cache_bytes=1) as writer:
        for array in arrays:
            writer.write_batch(pa.record_batch([array], schema=schema))
    return path


def open_file(path: Path) -> ColumnReader:
    store, inner = resolve(str(path))
    metadata = FileMetadata(store.open_input(inner))
    indices = dict(column_indices(metadata.schema))
    [field] = metadata.schema.fields
    return open_column(
        field, lambda node: (metadata, indices[node.id]) if node.id in indices else None, metadata.num_rows
    )


def layouts(path: Path) -> list[Any]:
    store, inner = resolve(str(path))
    metadata = FileMetadata(store.open_input(inner))
    return [
        parse_planar_layout(page.encoding)
        for index in range(metadata.num_columns)
        for page in metadata.column(index).pages
    ]


def same(actual: pa.Array, expected: list[Any]) -> None:
    actual.validate(full=True)
    found = actual.to_pylist()
    assert found == expected or repr(found) == repr(expected)


def check(column: ColumnReader, expected: list[Any], seed: int = 0) -> None:
    """Check reads of everything, in chunks, by ranges and by rows in any order."""
    rows = column.num_rows
    assert rows == len(expected)
    same(column.read(0, rows), expected)
    assert repr([value for chunk in column.read_chunks(0, rows) for value in chunk.to_pylist()]) == repr(expected)
    rng = np.random.default_rng(seed)
    for start, stop in [(0, 1), (rows // 3, rows // 2), (rows - 1, rows), (rows // 2, rows)]:
        if start < stop:
            same(column.read(start, stop), expected[start:stop])
    for count in (1, 40):
        chosen = rng.integers(0, rows, count)
        same(column.take(chosen), [expected[row] for row in chosen])
        same(column.take(np.sort(chosen)), [expected[row] for row in np.sort(chosen)])


def round_trip(path: Path, array: pa.Array, metadata: dict[str, str] | None = None, cut: bool = True) -> Path:
    rows = len(array)
    cuts = [0, rows // 3, rows // 3 + 1, rows] if cut and rows > 3 else [0, rows]
    pieces = [whole(pa.table({"x": array.slice(low, high - low)})) for low, high in itertools.pairwise(cuts)]
    write(path, [piece.column(0).chunk(0) for piece in pieces], array.type, metadata)
    check(open_file(path), array.to_pylist())
    return path


# -- data ------------------------------------------------------------------------------------------------------------


class Data:
    """Random arrays with a share of nulls on every level."""

    def __init__(self, seed: int, nulls: float) -> None:
        self.rng = np.random.default_rng(seed)
        self.nulls = nulls

    def mask(self, rows: int) -> pa.Array | None:
        return pa.array(self.rng.random(rows) < self.nulls) if self.nulls else None

    def leaf(self, kind: str, rows: int) -> pa.Array:
        made, arrow_type = LEAVES[kind]
        if kind == "null":
            return pa.nulls(rows)
        values = made(self.rng, rows)
        mask = self.mask(rows)
        if pa.types.is_dictionary(arrow_type):
            indices = pa.array(values, arrow_type.index_type, mask=None if mask is None else np.array(mask))
            return pa.DictionaryArray.from_arrays(indices, pa.array([f"word {number}" for number in range(20)]))
        if pa.types.is_fixed_size_list(arrow_type):
            items = pa.array(values, arrow_type.value_type, mask=self.rng.random(len(values)) < self.nulls)
            return pa.FixedSizeListArray.from_arrays(items, arrow_type.list_size, mask=mask)
        hidden = np.zeros(rows, np.bool_) if mask is None else np.array(mask)
        return pa.array([None if null else value for value, null in zip(values, hidden, strict=True)], arrow_type)

    def lists(self, rows: int, make: Callable[[int], pa.Array], empty: float = 0.3, large: bool = False) -> pa.Array:
        lengths = self.rng.integers(1, 5, rows)
        lengths[self.rng.random(rows) < empty] = 0
        mask = self.mask(rows)
        if mask is not None:
            lengths[np.array(mask)] = 0
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        cls = pa.LargeListArray if large else pa.ListArray
        index = pa.int64() if large else pa.int32()
        return cls.from_arrays(pa.array(offsets, index), make(int(offsets[-1])), mask=mask)

    def struct(self, rows: int, make: Callable[[int], pa.Array], children: int = 2) -> pa.Array:
        arrays = [make(rows) for _ in range(children)]
        return pa.StructArray.from_arrays(arrays, [f"f{number}" for number in range(children)], mask=self.mask(rows))

    def fixed(self, rows: int, make: Callable[[int], pa.Array], dimension: int = 2) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(make(rows * dimension), dimension, mask=self.mask(rows))

    def map(self, rows: int, make: Callable[[int], pa.Array]) -> pa.Array:
        def entries(count: int) -> pa.Array:
            values = make(count)
            key = pa.array([f"k{number}" for number in range(count)], pa.string())
            fields = [pa.field("key", pa.string(), False), pa.field("value", values.type)]
            return pa.StructArray.from_arrays([key, values], fields=fields)

        base = self.lists(rows, entries)
        mask = base.is_null() if self.nulls else None
        return pa.MapArray.from_arrays(base.offsets, base.values.field(0), base.values.field(1), mask=mask)


Maker = Callable[[np.random.Generator, int], Any]
LEAVES: dict[str, tuple[Maker, pa.DataType]] = {
    "int8": (lambda rng, rows: rng.integers(-9, 9, rows).tolist(), pa.int8()),
    "int32": (lambda rng, rows: rng.integers(-9, 2**30, rows).tolist(), pa.int32()),
    "runs": (
        lambda rng, rows: np.repeat(rng.integers(0, 9**9, rows), rng.integers(1, 90, rows))[:rows].tolist(),
        pa.int64(),
    ),
    "few": (lambda rng, rows: (rng.integers(0, 9, rows) << 40).tolist(), pa.uint64()),
    "double": (lambda rng, rows: rng.normal(size=rows).tolist(), pa.float64()),
    "bool": (lambda rng, rows: (rng.random(rows) < 0.5).tolist(), pa.bool_()),
    "decimal": (lambda rng, rows: [Decimal(int(value)) for value in rng.integers(0, 9**9, rows)], pa.decimal128(20, 0)),
    "constant": (lambda rng, rows: [7] * rows, pa.int32()),
    "string": (lambda rng, rows: [f"{'v' * (value % 7)}{value}" for value in rng.integers(0, 30, rows)], pa.string()),
    "fixed length": (lambda rng, rows: [f"{value:09d}" for value in rng.integers(0, 9**9, rows)], pa.string()),
    "text": (lambda rng, rows: [f"text {value}" for value in rng.integers(0, 9**9, rows)], pa.large_string()),
    "binary": (lambda rng, rows: [rng.bytes(int(value)) for value in rng.integers(0, 90, rows)], pa.binary()),
    "wide": (lambda rng, rows: ["w" * int(value) for value in rng.integers(0, 600, rows)], pa.string()),
    "wide fixed": (lambda rng, rows: [bytes([value]) * 300 for value in rng.integers(0, 255, rows)], pa.binary(300)),
    "null": (lambda rng, rows: None, pa.null()),
    "dictionary": (lambda rng, rows: rng.integers(0, 20, rows), pa.dictionary(pa.int16(), pa.string())),
    "vector": (lambda rng, rows: rng.integers(0, 9, rows * 3), pa.list_(pa.int16(), 3)),
    "wide vector": (lambda rng, rows: rng.integers(0, 9, rows * 100).astype("f4"), pa.list_(pa.float32(), 100)),
}
SHAPES: dict[str, Callable[[Data, str, int], pa.Array]] = {
    "leaf": lambda data, leaf, rows: data.leaf(leaf, rows),
    "list": lambda data, leaf, rows: data.lists(rows, lambda n: data.leaf(leaf, n)),
    "large list": lambda data, leaf, rows: data.lists(rows, lambda n: data.leaf(leaf, n), 0, True),
    "struct": lambda data, leaf, rows: data.struct(rows, lambda n: data.leaf(leaf, n)),
    "list of struct of list": lambda data, leaf, rows: data.lists(
        rows, lambda n: data.struct(n, lambda m: data.lists(m, lambda k: data.leaf(leaf, k)))
    ),
    "list of lists": lambda data, leaf, rows: data.lists(rows, lambda n: data.lists(n, lambda m: data.leaf(leaf, m))),
    "map": lambda data, leaf, rows: data.map(rows, lambda n: data.leaf(leaf, n)),
    "fixed-size list of struct": lambda data, leaf, rows: data.fixed(
        rows, lambda n: data.struct(n, lambda m: data.leaf(leaf, m))
    ),
    "list of fixed-size list of struct": lambda data, leaf, rows: data.lists(
        rows, lambda n: data.fixed(n, lambda m: data.struct(m, lambda k: data.leaf(leaf, k), 1), 3)
    ),
    "fixed-size list of struct of list": lambda data, leaf, rows: data.fixed(
        rows, lambda n: data.struct(n, lambda m: data.lists(m, lambda k: data.leaf(leaf, k)), 1)
    ),
}


@pytest.mark.parametrize("structure", [{}, SPARSE], ids=["default", "sparse"])
@pytest.mark.parametrize("nulls", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_type_in_every_shape(tmp_path: Path, shape: str, nulls: float, structure: dict[str, str]) -> None:
    for number, leaf in enumerate(LEAVES):
        for rows in (1, 8, 600) if shape in ("leaf", "list") else (90,):
            round_trip(tmp_path / f"{leaf}{rows}.lance", SHAPES[shape](Data(number, nulls), leaf, rows), structure)


@pytest.mark.parametrize(
    "options",
    [
        option(compression="zstd"),
        option(compression="lz4", rle_threshold="1.0", dict_divisor="1000000"),
        option(compression="zstd", structural_encoding="sparse", dict_divisor="1000000"),
        option(compression="none"),
        option(bss="on", compression="lz4"),
        option(structural_encoding="fullzip"),
        option(structural_encoding="miniblock"),
    ],
    ids=str,
)
def test_writer_options(tmp_path: Path, options: dict[str, str]) -> None:
    for nulls in (0.0, 0.1):
        for leaf in ("int32", "runs", "double", "string", "text", "binary", "decimal", "bool", "vector"):
            round_trip(tmp_path / "a.lance", Data(1, nulls).leaf(leaf, 6000), options)
            data = Data(2, nulls)
            items = data.leaf(leaf, 4000)
            kind = pa.list_(pa.field("item", items.type, metadata=options))
            lists = data.lists(1700, lambda n, items=items: items.slice(0, n))
            lists = pa.ListArray.from_arrays(
                lists.offsets, lists.values, type=kind, mask=lists.is_null() if nulls else None
            )
            round_trip(tmp_path / "b.lance", lists)


@pytest.mark.parametrize("structure", [{}, SPARSE], ids=["default", "sparse"])
@pytest.mark.parametrize(
    "children",
    [
        ("int32", "int8"),
        ("int32", "text"),
        ("decimal", "wide fixed"),
        ("int32", "vector", "string"),
        ("wide vector", "wide"),
    ],
    ids=str,
)
def test_packed_structs(tmp_path: Path, children: tuple[str, ...], structure: dict[str, str]) -> None:
    for nulls, rows in itertools.product((0.0, 0.2, 1.0), (1, 300, 2500)):
        arrays = [Data(rows, 0.0).leaf(child, rows) for child in children]
        names = [f"f{number}" for number in range(len(children))]
        packed = pa.StructArray.from_arrays(arrays, names, mask=Data(3, nulls).mask(rows))
        round_trip(tmp_path / "a.lance", packed, {**PACKED, **structure}, cut=False)


def test_many_empty_lists(tmp_path: Path) -> None:
    lists = Data(4, 0.1).lists(40_000, lambda n: Data(5, 0.1).leaf("int32", n), empty=0.97)
    round_trip(tmp_path / "a.lance", lists)
    round_trip(tmp_path / "b.lance", lists, SPARSE)
    round_trip(tmp_path / "c.lance", pa.array([[]] * 50, pa.list_(pa.string())), SPARSE)


def test_lists_over_many_chunks(tmp_path: Path) -> None:
    lists = pa.array([list(range(4000 * (row % 3))) for row in range(20)], pa.list_(pa.int32()))
    round_trip(tmp_path / "a.lance", lists)
    round_trip(tmp_path / "b.lance", lists, SPARSE)


def test_empty_structs(tmp_path: Path) -> None:
    round_trip(tmp_path / "a.lance", pa.array([{}] * 9, pa.struct([])))


def test_a_child_that_may_not_be_null_below_one_that_is(tmp_path: Path) -> None:
    for leaf in ("int32", "wide", "string"):
        child = Data(6, 0.0).leaf(leaf, 500)
        for structure in ({}, SPARSE):
            array = pa.StructArray.from_arrays(
                [child], fields=[pa.field("f", child.type, False)], mask=Data(7, 0.3).mask(500)
            )
            round_trip(tmp_path / "a.lance", array, structure)


@pytest.mark.parametrize("mapped", ["0", "1"])
def test_dictionaries_of_wide_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: str) -> None:
    monkeypatch.setenv("LANCE_MMAP", mapped)
    rng = np.random.default_rng(8)
    words = [rng.bytes(300).hex()[: int(rng.integers(1, 600))] for _ in range(400)]
    array = pa.array([None if rng.random() < 0.2 else words[word] for word in rng.integers(0, 400, 2000)])
    path = round_trip(tmp_path / "a.lance", array, SPARSE, cut=False)
    assert any(isinstance(layout.values, DictionaryLayout) for layout in layouts(path))


@pytest.mark.parametrize("leaf", ["fixed length", "text"])
def test_encoded_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaf: str) -> None:
    monkeypatch.setenv("LANCE_MMAP", "0")
    array = Data(9, 0.0).lists(500, lambda n: Data(10, 0.0).leaf(leaf, n))
    [layout] = layouts(round_trip(tmp_path / "a.lance", array, cut=False))
    assert isinstance(layout, MiniBlockLayout)
    assert isinstance(layout.values, Variable)
    assert not isinstance(layout.values.offsets, Flat)


@pytest.mark.parametrize(
    ("run", "bits", "options", "encoding"),
    [
        (7, 32, {}, Rle(Flat(32), OutOfLineBitpacking(8, 3))),
        (500, 16, {}, Rle(Flat(16), Flat(16))),
        (7, 32, {"compression": "zstd", "bss": "off"}, Rle(General("zstd", Flat(32)), General("zstd", Flat(8)))),
        (37, 64, {"compression": "zstd", "bss": "off"}, Rle(General("zstd", Flat(64)), General("zstd", Flat(8)))),
    ],
)
@pytest.mark.parametrize("mapped", ["0", "1"])
def test_encoded_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: int,
    bits: int,
    options: dict[str, str],
    encoding: Encoding,
    mapped: str,
) -> None:
    monkeypatch.setenv("LANCE_MMAP", mapped)
    rng = np.random.default_rng(run)
    values = np.repeat(rng.integers(0, 1 << (bits // 2 - 2), 20_000 // run).astype(f"i{bits // 8}") << (bits // 2), run)
    if "compression" not in options:
        values = np.repeat(rng.integers(0, 1 << (bits - 2), 20_000 // run).astype(f"i{bits // 8}"), run)
    metadata = option(dict_divisor="1000000", **options)
    [layout] = layouts(round_trip(tmp_path / "a.lance", pa.array(values), metadata, cut=False))
    assert layout.values == encoding


@pytest.mark.parametrize("stored", ["general", "runs"])
def test_encoded_levels(tmp_path: Path, stored: str) -> None:
    """Encoded levels are read: the format has them, although no release was seen to write them."""
    rows = 700
    values, nulls = np.arange(rows, dtype=np.int32), np.arange(rows) % 7 == 3
    parts = take_apart_file(write(tmp_path / "good.lance", [pa.array(values, mask=nulls)]))
    layout = descriptor(parts)
    definition = layout.values.chunked.levels.def_compression
    definition.Clear()
    if stored == "general":
        definition.general.compression.scheme = 2
        definition.general.values.flat.bits_per_value = 16
        levels = general.compress("zstd", 3, nulls.astype(np.uint16))
    else:
        runs = np.diff(np.flatnonzero(np.diff(nulls, prepend=True, append=not nulls[-1]))).astype(np.uint16)
        marks = (np.arange(len(runs)) % 2).astype(np.uint16)
        definition.rle.values.flat.bits_per_value = definition.rle.run_lengths.flat.bits_per_value = 16
        levels = len(marks.tobytes()).to_bytes(8, "little") + marks.tobytes() + runs.tobytes()
    layout.values.chunked.value_compression.flat.bits_per_value = 32
    chunk = rows.to_bytes(2, "little") + len(levels).to_bytes(2, "little") + (4 * rows).to_bytes(4, "little")
    chunk += levels + bytes(-len(levels) % 8) + values.tobytes()
    parts.set_encoding(0, layout)
    parts.replace_buffer(0, 0, ((len(chunk) // 8 - 1) << 4).to_bytes(4, "little"))
    parts.replace_buffer(0, 1, chunk)
    path = tmp_path / "other.lance"
    path.write_bytes(parts.assemble())
    check(open_file(path), pa.array(values, mask=nulls).to_pylist())


# -- files that lie --------------------------------------------------------------------------------------------------


def descriptor(parts: FileParts) -> pb.PlanarLayout:
    wrapped = any_pb2.Any.FromString(parts.columns[0].pages[0].encoding.direct.encoding)
    return pb.PlanarLayout.FromString(wrapped.value)


def read_every_way(path: Path) -> list[Any]:
    """Return lists of values, or errors of this package, for every way to read."""
    outcomes: list[Any] = []
    for read in (
        lambda column: column.read(0, column.num_rows),
        lambda column: column.take(np.arange(column.num_rows)[::-3].copy()),
        lambda column: column.read(column.num_rows // 2, column.num_rows),
    ):
        try:
            outcomes.append(read(open_file(path)))
        except LanceError as error:
            outcomes.append(error)
    return outcomes


def sparse_list(layout: pb.PlanarLayout) -> Any:
    return layout.structure.sparse.layers[0].list


EDITS: dict[str, Callable[[pb.PlanarLayout], Any]] = {
    "no structure": lambda layout: layout.ClearField("structure"),
    "no values": lambda layout: layout.ClearField("values"),
    "no layers": lambda layout: layout.structure.sparse.ClearField("layers"),
    "a layer less": lambda layout: layout.structure.sparse.layers.pop(),
    "a layer of no kind": lambda layout: layout.structure.sparse.layers[0].ClearField("list"),
    "another layer": lambda layout: layout.structure.sparse.layers[0].fixed_size_list.validity.CopyFrom(
        sparse_list(layout).validity
    ),
    "meaning": lambda layout: setattr(sparse_list(layout).validity, "meaning", 3),
    "no counts": lambda layout: sparse_list(layout).ClearField("counts"),
    "more child slots": lambda layout: setattr(sparse_list(layout), "num_child_slots", 10**6),
    "huge child slots": lambda layout: setattr(sparse_list(layout), "num_child_slots", 2**63),
    "more positions": lambda layout: setattr(sparse_list(layout), "num_positions", 2**40),
    "more nulls": lambda layout: setattr(sparse_list(layout).validity, "num_positions", 2**39),
    "null lists with items": lambda layout: setattr(
        sparse_list(layout).validity, "meaning", 3 - sparse_list(layout).validity.meaning
    ),
    "levels": lambda layout: layout.values.chunked.levels.SetInParent(),
    "items": lambda layout: setattr(layout.values.chunked, "num_items", 3),
    "buffers": lambda layout: setattr(layout.values.chunked, "num_buffers", 2),
    "no value encoding": lambda layout: layout.values.chunked.ClearField("value_compression"),
    "another width": lambda layout: setattr(layout.values.chunked.value_compression.flat, "bits_per_value", 64),
    "no data at all": lambda layout: layout.values.none.SetInParent(),
    "an unknown plane": lambda layout: layout.values.ParseFromString(b"\x4a\x00"),
    "dense": lambda layout: layout.structure.dense.layers.append(3),
}


@pytest.mark.parametrize("edit", EDITS)
def test_lying_descriptors(tmp_path: Path, edit: str, little_memory: None) -> None:
    lists = Data(11, 0.2).lists(400, lambda n: Data(12, 0.2).leaf("int32", n))
    path = write(tmp_path / "good.lance", [lists], metadata=SPARSE)
    parts = take_apart_file(path)
    layout = descriptor(parts)
    EDITS[edit](layout)
    parts.set_encoding(0, layout)
    bad = tmp_path / "bad.lance"
    bad.write_bytes(parts.assemble())
    for outcome in read_every_way(bad):
        assert isinstance(outcome, CorruptFileError), outcome
        assert "bad.lance" in str(outcome)


def test_a_page_of_2_0_does_not_belong_here(tmp_path: Path) -> None:
    parts = take_apart_file(write(tmp_path / "good.lance", [pa.array([1, None])]))
    parts.set_encoding(0, pb.PlanarLayout(), name="lance.encodings.PageLayout")
    (tmp_path / "bad.lance").write_bytes(parts.assemble())
    with pytest.raises(CorruptFileError, match="PageLayout"):
        open_file(tmp_path / "bad.lance")


def _fuzzed() -> Iterator[tuple[str, pa.Array, dict[str, str]]]:
    data = Data(13, 0.15)
    for leaf in ("int32", "fixed length", "text", "wide", "double", "wide vector", "string"):
        yield f"list {leaf}", data.lists(300, lambda n, leaf=leaf: data.leaf(leaf, n)), SPARSE
        yield (
            f"fixed {leaf}",
            data.fixed(200, lambda n, leaf=leaf: data.struct(n, lambda m: data.leaf(leaf, m), 1)),
            SPARSE,
        )
        yield f"dense {leaf}", data.lists(300, lambda n, leaf=leaf: data.leaf(leaf, n)), {}
    yield "runs", Data(13, 0.0).leaf("runs", 4000), option(dict_divisor="1000000", rle_threshold="1.0", bss="off")


FUZZED = list(_fuzzed())


@pytest.mark.parametrize("case", range(len(FUZZED)), ids=[name for name, _, _ in FUZZED])
def test_damaged_files(tmp_path: Path, case: int, little_memory: None) -> None:
    """Changed bytes of the descriptor or of a buffer give an error of this package, or values."""
    _, array, metadata = FUZZED[case]
    path = write(tmp_path / "good.lance", [array], metadata=metadata)
    good = path.read_bytes()
    rng = np.random.default_rng(case)
    rounds = int(os.environ.get("LANCE_FUZZ_ROUNDS", "24"))
    bad, refused = tmp_path / "bad.lance", 0
    for number in range(rounds):
        parts = take_apart_file(path)
        page = parts.columns[0].pages[0]
        if number % 2:
            wrapped = any_pb2.Any.FromString(page.encoding.direct.encoding)
            wrapped.value = _damage(wrapped.value, rng)
            page.encoding.direct.encoding = wrapped.SerializeToString()
        else:
            buffer = int(rng.integers(0, len(page.buffer_sizes)))
            start, size = page.buffer_offsets[buffer], page.buffer_sizes[buffer]
            parts.replace_buffer(0, buffer, _damage(good[start : start + size], rng))
        bad.write_bytes(parts.assemble())
        outcomes = read_every_way(bad)
        refused += any(isinstance(outcome, LanceError) for outcome in outcomes)
        for outcome in outcomes:
            if isinstance(outcome, pa.Array):
                outcome.validate(full=True)
    assert refused > rounds // 10


def _damage(content: bytes, rng: np.random.Generator) -> bytes:
    if not content:
        return b"\1"
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(changed)))
        changed[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, changed[at] ^ 1 << int(rng.integers(0, 8))]))
    cut = int(rng.integers(0, 20))
    return bytes(changed[: -1 - cut]) if cut < 2 else bytes(changed)
