"""Tests of searches with vector indices whose files lie: errors that say where, bounded memory, no wrong rows."""

from __future__ import annotations

import contextlib
import json
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset._proto import vector_index_pb2
from lance_dataset.dataset import VectorIndexReader
from lance_dataset.errors import LanceError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.io.resolve import resolve

ROWS, DIMENSION = 900, 16
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("IVF_FLAT", {}),
    "pq": ("IVF_PQ", {"num_sub_vectors": 4}),
    "sq": ("IVF_SQ", {}),
    "rq": ("IVF_RQ", {}),
    "graph": ("IVF_HNSW_SQ", {"m": 4, "ef_construction": 20}),
    "legacy": ("IVF_PQ", {"num_sub_vectors": 4, "index_file_version": "legacy"}),
}
VALUES = np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32)
MOST_BYTES = 64 << 20
MAIN, STORAGE = "index.idx", "auxiliary.idx"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(VALUES.reshape(-1)), DIMENSION)
    found = {}
    for name, (kind, options) in KINDS.items():
        found[name] = tmp_path_factory.mktemp(name) / "table"
        dataset = lance.write_dataset(pa.table({"id": range(ROWS), "v": lists}), found[name], max_rows_per_file=500)
        dataset.create_index("v", kind, num_partitions=3, **options)
    return found


class Files:
    """The files of the index of a copy of a table, which can be written anew with changes."""

    def __init__(self, table: Path, target: Path) -> None:
        self.path = target
        shutil.copytree(table, target)
        (self.folder,) = (target / "_indices").iterdir()
        store, root = resolve(self.folder)
        self._source = IndexFolder(store, root)

    def change(
        self,
        name: str,
        *,
        metadata: Callable[[dict[str, Any]], None] | None = None,
        message: Callable[[Any], None] | None = None,
        tensor: Callable[[Any], None] | None = None,
        rows: Callable[[pa.Table], pa.Table] | None = None,
    ) -> None:
        table = self._source.open(name)
        entries: dict[str, Any] = dict(table.metadata)
        buffers = [table.numbered_buffer(number) for number in range(1, table.num_buffers + 1)]
        content = pa.Table.from_batches(list(table.batches()), table.read(0, 0).schema)
        if metadata is not None:
            metadata(entries)
        kinds: list[Any] = [vector_index_pb2.IVF, vector_index_pb2.Tensor]
        for number, (kind, edit) in enumerate(zip(kinds, (message, tensor), strict=True)):
            if edit is not None:
                parsed = kind.FromString(buffers[number])
                edit(parsed)
                buffers[number] = parsed.SerializeToString()
        if rows is not None:
            content = rows(content)
        schema = lance_dataset.types.schema.Schema.from_arrow(content.schema)
        store, root = resolve(self.path / "new")
        new = NewIndexFolder(store, root)
        given = {key: value for key, value in entries.items() if value is not None}
        new.write(name, schema, table.version, content.to_batches(), given, numbered_buffers=buffers)
        (self.path / "new" / name).replace(self.folder / name)

    def storage_entry(self, **changes: Any) -> Callable[[dict[str, Any]], None]:
        def edit(entries: dict[str, Any]) -> None:
            (inner,) = json.loads(entries["storage_metadata"])
            entries["storage_metadata"] = json.dumps([json.dumps({**json.loads(inner), **changes})])

        return edit


def uses(path: Path) -> list[Callable[[], Any]]:
    """Return calls that read the index."""

    def search(**options: Any) -> Any:
        near = {"column": "v", "q": VALUES[3], "k": 10, **options}
        return lance_dataset.dataset(path, session=lance_dataset.Session()).to_table(nearest=near)

    def partitions() -> None:
        reader = VectorIndexReader(lance_dataset.dataset(path, session=lance_dataset.Session()), "v_idx")
        for number in range(reader.num_partitions()):
            reader.read_partition(number, with_vector=True)

    return [lambda: search(nprobes=3), lambda: search(nprobes=1, refine_factor=5), partitions]


def check_refused(path: Path, problem: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(LanceError, match=problem):
            uses(path)[0]()
        for use in uses(path)[1:]:
            with contextlib.suppress(LanceError):
                use()
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def assign(**fields: Any) -> Callable[[Any], None]:
    """Return what replaces repeated fields of a message."""

    def edit(message: Any) -> None:
        for name, values in fields.items():
            message.ClearField(name)
            getattr(message, name).extend(values)

    return edit


#: A kind of index that is not known.
NEW = {"type": "IVF_NEW", "distance_type": "l2"}

MESSAGES: list[tuple[Callable[[Any], None], str]] = [
    (assign(lengths=[(1 << 32) - 1] * 3), "partition 0 ends"),
    (assign(lengths=[300, 300, 301], offsets=[0, 300, 600]), "partition 2 ends"),
    (assign(offsets=[0, 0, 0]), "share rows"),
    (assign(offsets=[(1 << 64) - 1, 0, 0]), "out of range"),
    (assign(offsets=[1 << 62, 0, 0]), "partition 0 ends"),
    (assign(offsets=[0]), "1 offsets for 3"),
    (assign(lengths=[], offsets=[]), "partitions"),
    (assign(lengths=[0] * 100_000, offsets=[]), "partitions"),
]


@pytest.mark.parametrize("number", range(len(MESSAGES)))
@pytest.mark.parametrize("name", ["flat", "rq"])
def test_partitions_of_the_storage(tables: dict[str, Path], tmp_path: Path, name: str, number: int) -> None:
    change, problem = MESSAGES[number]
    files = Files(tables[name], tmp_path / "table")
    files.change(STORAGE, message=change)
    check_refused(files.path, problem)


def centroids(**fields: Any) -> Callable[[Any], None]:
    def edit(message: Any) -> None:
        for name, value in fields.items():
            if name == "shape":
                assign(shape=value)(message.centroids_tensor)
            else:
                setattr(message.centroids_tensor, name, value)

    return edit


CENTROIDS: list[tuple[Callable[[Any], None], str]] = [
    (centroids(data=b"123"), "bytes"),
    (centroids(shape=[3]), "1 dimensions instead of 2"),
    (centroids(shape=[3, 4, 4]), "3 dimensions"),
    (centroids(shape=[(1 << 32) - 1, (1 << 32) - 1]), "bytes"),
    (centroids(shape=[2, 24]), "2 centroids for 3|partitions"),
    (centroids(shape=[3, 8], data=bytes(96)), "shape|elements"),
    (centroids(shape=[3, 8], data_type=vector_index_pb2.Tensor.FLOAT64), "shape|elements"),
    (centroids(shape=[3, 32], data_type=vector_index_pb2.Tensor.FLOAT16), "shape|elements"),
    (centroids(data=np.zeros((3, 16)).tobytes(), data_type=vector_index_pb2.Tensor.FLOAT64), "elements of the type"),
    (lambda message: message.ClearField("centroids_tensor"), "centroids"),
    (assign(lengths=[0], offsets=[0]), "3 centroids for 1"),
]


@pytest.mark.parametrize("number", range(len(CENTROIDS)))
@pytest.mark.parametrize("name", ["flat", "pq"])
def test_centroids(tables: dict[str, Path], tmp_path: Path, name: str, number: int) -> None:
    change, problem = CENTROIDS[number]
    files = Files(tables[name], tmp_path / "table")
    files.change(MAIN, message=change)
    check_refused(files.path, problem)


QUANTIZERS: list[tuple[str, dict[str, Any], str]] = [
    ("flat", {"dim": 8}, "8 values"),
    ("flat", {"dim": 1 << 40}, "dim"),
    ("pq", {"nbits": 5}, "num_sub_vectors"),
    ("pq", {"nbits": 4}, "codebook has"),
    ("pq", {"num_sub_vectors": 1 << 30}, "num_sub_vectors"),
    ("pq", {"num_sub_vectors": 8}, "lists of 8"),
    ("pq", {"dimension": 1 << 24, "num_sub_vectors": 1 << 24}, "codebook has"),
    ("pq", {"codebook_position": 9}, "global buffer"),
    ("pq", {"codebook_position": 0, "codebook_tensor": [1, 2]}, "auxiliary"),
    ("pq", {"transposed": 1}, "transposed"),
    ("sq", {"bounds": {"start": 2, "end": 1}}, "bounds"),
    ("sq", {"bounds": {"start": "a", "end": 1}}, "bounds"),
    ("sq", {"bounds": {"start": -1e999, "end": 1}}, "bounds|JSON"),
    ("sq", {"num_bits": 4}, "num_bits"),
    ("rq", {"num_bits": 10}, "num_bits"),
    ("rq", {"num_bits": 3}, "__blocked_ex_codes"),
    ("rq", {"fast_rotation_signs": [1]}, "fast_rotation_signs"),
    ("rq", {"code_dim": 8, "fast_rotation_signs": [1] * 4}, "code|centroids|values"),
    ("rq", {"query_estimator": "residual_query"}, "query_estimator"),
    ("rq", {"rotation_type": "matrix", "rotate_mat_position": 7}, "global buffer"),
    ("graph", {"dim": 15}, "15"),
]


@pytest.mark.parametrize(("name", "changes", "problem"), QUANTIZERS)
def test_quantizers(tables: dict[str, Path], tmp_path: Path, name: str, changes: dict[str, Any], problem: str) -> None:
    files = Files(tables[name], tmp_path / "table")
    files.change(STORAGE, metadata=files.storage_entry(**changes))
    check_refused(files.path, problem)


def test_codebooks(tables: dict[str, Path], tmp_path: Path) -> None:
    changes: list[tuple[Callable[[Any], None], str]] = [
        (assign(shape=[256, 8]), "bytes"),
        (assign(shape=[4096]), "1 dimensions"),
        (lambda message: setattr(message, "data_type", vector_index_pb2.Tensor.UINT32), "floats"),
    ]
    for number, (change, problem) in enumerate(changes):
        files = Files(tables["pq"], tmp_path / str(number))
        files.change(STORAGE, tensor=change)
        check_refused(files.path, problem)


def test_what_may_be_of_a_later_release_is_not_used(tables: dict[str, Path], tmp_path: Path) -> None:
    def brain_floats(message: Any) -> None:
        message.data_type = vector_index_pb2.Tensor.BFLOAT16

    changes: list[Callable[[Files], None]] = [
        lambda files: files.change(STORAGE, tensor=brain_floats),
        lambda files: files.change(STORAGE, metadata=files.storage_entry(codebook_position=1)),
        lambda files: files.change(MAIN, metadata=lambda entries: entries.update({"lance:index": json.dumps(NEW)})),
    ]
    for number, change in enumerate(changes):
        files = Files(tables["pq"], tmp_path / str(number))
        change(files)
        assert uses(files.path)[0]()["id"][0].as_py() == 3
        near = {"column": "v", "q": VALUES[3]}
        assert "is not used" in lance_dataset.dataset(files.path).scanner(nearest=near).explain_plan(True)


def with_column(name: str, values: Any) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.column_names.index(name), name, values(table.column(name)))


def masked(column: pa.ChunkedArray) -> pa.Array:
    mask = np.zeros(len(column), bool)
    mask[-1] = True
    array = column.combine_chunks()
    if pa.types.is_fixed_size_list(array.type):
        return pa.FixedSizeListArray.from_arrays(array.flatten(), array.type.list_size, mask=pa.array(mask))
    return pa.array(np.asarray(array), mask=mask)


COLUMNS: list[tuple[str, Callable[[pa.Table], pa.Table], str]] = [
    ("flat", with_column("_rowid", masked), "nulls"),
    ("sq", with_column("__sq_code", masked), "nulls"),
    ("rq", with_column("__add_factors", masked), "nulls"),
    ("flat", lambda table: table.drop_columns(["flat"]), "flat"),
    ("flat", lambda table: table.drop_columns(["_rowid"]), "_rowid"),
    ("rq", lambda table: table.drop_columns(["__error_factors"]), "__error_factors"),
    ("rq", lambda table: table.drop_columns(["__blocked_ex_codes"]), "__ex_codes"),
    ("flat", with_column("_rowid", lambda column: column.cast(pa.int64())), "_rowid"),
    ("rq", with_column("__add_factors", lambda column: column.cast(pa.float64())), "__add_factors"),
    ("flat", with_column("flat", lambda column: column.cast(pa.list_(pa.float64(), DIMENSION))), "float64"),
    ("sq", with_column("__sq_code", lambda column: column.cast(pa.list_(pa.int8(), DIMENSION), safe=False)), "int8"),
    ("pq", lambda table: table.slice(0, 100), "ends at row"),
]


@pytest.mark.parametrize("number", range(len(COLUMNS)))
def test_columns(tables: dict[str, Path], tmp_path: Path, number: int) -> None:
    name, change, problem = COLUMNS[number]
    files = Files(tables[name], tmp_path / "table")
    files.change(STORAGE, rows=change)
    check_refused(files.path, problem)


WRONG_IDS = [(1 << 64) - 1, 499 + 1, (1 << 32) + 400, 2 << 32, 1 << 63, (7 << 32) + 1]


@pytest.mark.parametrize("name", ["flat", "pq", "sq", "rq", "graph"])
def test_rows_that_do_not_exist_are_not_found(tables: dict[str, Path], tmp_path: Path, name: str) -> None:
    def moved(column: pa.ChunkedArray) -> pa.Array:
        ids = np.asarray(column).copy()
        ids[::2] = np.resize(np.array(WRONG_IDS, np.uint64), len(ids[::2]))
        return pa.array(ids)

    files = Files(tables[name], tmp_path / "table")
    files.change(STORAGE, rows=with_column("_rowid", moved))
    near = {"column": "v", "q": VALUES[3], "k": 600, "nprobes": 3}
    dataset = lance_dataset.dataset(files.path)
    for options in ({}, {"refine_factor": 1}, {"ef": 600}):
        found = dataset.to_table(columns=["id"], with_row_id=True, nearest={**near, **options})
        assert 0 < found.num_rows <= 450
        rows = [(each >> 32) * 500 + (each & 0xFFFFFFFF) for each in found["_rowid"].to_pylist()]
        assert found["id"].to_pylist() == rows
    pairs = lance_dataset.vector.find_duplicate_pairs(dataset, "v", 5).read_all()
    assert not set(WRONG_IDS) & {*pairs["row_id_a"].to_pylist(), *pairs["row_id_b"].to_pylist()}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize(("name", "column"), [("flat", "flat"), ("rq", "__add_factors_ex"), ("rq", "__error_factors")])
def test_numbers_that_are_none(tables: dict[str, Path], tmp_path: Path, name: str, column: str, value: float) -> None:
    """Distances that are NaN are not found, and what is found is in order."""

    def spoiled(stored: pa.ChunkedArray) -> pa.Array:
        array = stored.combine_chunks()
        lists = pa.types.is_fixed_size_list(array.type)
        numbers = np.asarray(array.flatten() if lists else array).copy()
        numbers[:: 5 * (DIMENSION if lists else 1)] = value
        return pa.FixedSizeListArray.from_arrays(pa.array(numbers), DIMENSION) if lists else pa.array(numbers)

    files = Files(tables[name], tmp_path / "table")
    files.change(STORAGE, rows=with_column(column, spoiled))
    near = {"column": "v", "q": VALUES[3], "k": 50, "nprobes": 3}
    distances = np.asarray(lance_dataset.dataset(files.path).to_table(nearest=near)["_distance"])
    assert not np.isnan(distances).any()
    assert (np.diff(distances[np.isfinite(distances)]) >= 0).all()


def test_centroids_that_are_no_numbers(tables: dict[str, Path], tmp_path: Path) -> None:
    for number, (name, value) in enumerate([("flat", np.nan), ("pq", np.inf), ("rq", np.nan), ("sq", -np.inf)]):
        files = Files(tables[name], tmp_path / str(number))
        data = np.full((3, DIMENSION), value, np.float32).tobytes()
        files.change(MAIN, message=centroids(data=data))
        for use in uses(files.path):
            with contextlib.suppress(LanceError):
                use()


LEGACY: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda data: data[:-16] + struct.pack("<Q", 1 << 63) + data[-8:], "description"),
    (lambda data: data[:-16] + struct.pack("<Q", len(data) - 17) + data[-8:], "description"),
    (lambda data: data[:-4] + b"LANE", "index.idx"),
    (lambda data: data[:16], "bytes"),
    (lambda data: b"", "index.idx"),
    (lambda data: edited(data, lambda m: assign(offsets=[1 << 61] * 3)(m.vector_index.stages[0].ivf)), "ends"),
    (lambda data: edited(data, lambda m: assign(lengths=[(1 << 32) - 1] * 3)(m.vector_index.stages[0].ivf)), "ends"),
    (lambda data: edited(data, lambda m: assign(lengths=[1])(m.vector_index.stages[0].ivf)), "offsets for"),
    (lambda data: edited(data, lambda m: setattr(m.vector_index.stages[1].pq, "num_bits", 16)), "cut into"),
    (lambda data: edited(data, lambda m: setattr(m.vector_index.stages[1].pq, "num_sub_vectors", 0)), "cut into"),
    (
        lambda data: edited(data, lambda m: setattr(m.vector_index.stages[1].pq, "num_sub_vectors", 16)),
        "ends|share rows",
    ),
    (lambda data: edited(data, lambda m: setattr(m.vector_index.stages[1].pq, "dimension", 32)), "centroids of 32"),
    (lambda data: edited(data, lambda m: setattr(m.vector_index, "metric_type", 3)), "hamming|metric"),
    (lambda data: edited(data, lambda m: m.vector_index.stages[1].pq.ClearField("codebook_tensor")), "codebook"),
]


def edited(data: bytes, change: Callable[[Any], None]) -> bytes:
    (position,) = struct.unpack("<Q", data[-16:-8])
    message = vector_index_pb2.Index.FromString(data[position + 4 : -16])
    change(message)
    content = message.SerializeToString()
    return data[:position] + struct.pack("<I", len(content)) + content + data[-16:]


@pytest.mark.parametrize("number", range(len(LEGACY)))
def test_single_files(tables: dict[str, Path], tmp_path: Path, number: int) -> None:
    change, problem = LEGACY[number]
    files = Files(tables["legacy"], tmp_path / "table")
    data = (files.folder / MAIN).read_bytes()
    (files.folder / MAIN).write_bytes(change(data))
    check_refused(files.path, problem)


def test_both_files_are_needed(tables: dict[str, Path], tmp_path: Path) -> None:
    for name in (MAIN, STORAGE):
        files = Files(tables["flat"], tmp_path / name)
        (files.folder / name).unlink()
        check_refused(files.path, name)
    files = Files(tables["flat"], tmp_path / "other")
    (other,) = (tables["sq"] / "_indices").iterdir()
    shutil.copy(other / STORAGE, files.folder / STORAGE)
    check_refused(files.path, STORAGE)


@pytest.mark.parametrize("name", KINDS)
def test_damaged_bytes(tables: dict[str, Path], tmp_path: Path, name: str) -> None:
    """Searches with damaged files find something or raise errors of the package, in bounded memory."""
    rng = np.random.default_rng(5)
    files = Files(tables[name], tmp_path / "table")
    paths = sorted(files.folder.iterdir())
    tracemalloc.start()
    try:
        for _ in range(25):
            path = paths[int(rng.integers(len(paths)))]
            whole = path.read_bytes()
            content = bytearray(whole)
            for place in len(content) - 1 - rng.integers(0, min(len(content), 2500), 3):
                content[place] = rng.integers(0, 256)
            path.write_bytes(content)
            for use in uses(files.path):
                with contextlib.suppress(LanceError):
                    use()
            path.write_bytes(whole)
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
