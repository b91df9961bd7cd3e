"""Tests of contradictory files of vector indices, and of the parts that these files consist of."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lance_dataset._proto import vector_index_pb2
from lance_dataset.errors import CorruptFileError, LanceError, UnsupportedError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.vector.distances import StoredVectors
from lance_dataset.index.vector.graph import Graph, GraphLevel, decode_graph, encode_graph
from lance_dataset.index.vector.ivf import IvfModel, Partitions
from lance_dataset.index.vector.mending import without_nodes
from lance_dataset.index.vector.packing import pack_blocks, transposed, unpack_blocks, untransposed
from lance_dataset.index.vector.quantizers import FlatVectors, parse_quantizer
from lance_dataset.index.vector.remap import remap
from lance_dataset.index.vector.tensors import decode_tensor
from lance_dataset.io.resolve import resolve
from lance_dataset.table.index_metadata import IndexMetadata

MARKED = IndexMetadata("", "marked")
DIMENSION = 8
SCHEMA = pa.schema(
    {"__vector_id": pa.uint32(), "__neighbors": pa.list_(pa.uint32()), "_distance": pa.list_(pa.float32())}
)


class EveryFifthGone:
    """A relocation of all rows that removes every fifth."""

    loses_rows = True

    def locate(self, addresses: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        return addresses + np.uint64(7 << 32), addresses % np.uint64(5) == 0


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of an index of each layout."""
    values = np.random.default_rng(3).standard_normal((300, DIMENSION)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION)
    found = {}
    for name, kind, options in [
        ("flat", "IVF_FLAT", {}),
        ("pq", "IVF_PQ", {"num_sub_vectors": 2}),
        ("legacy", "IVF_PQ", {"num_sub_vectors": 2, "index_file_version": "legacy"}),
        ("rq", "IVF_RQ", {}),
        ("graph", "IVF_HNSW_SQ", {}),
    ]:
        path = tmp_path_factory.mktemp(name)
        dataset = lance.write_dataset(pa.table({"v": vectors}), path / "table", data_storage_version="2.0")
        dataset.create_index("v", kind, num_partitions=2, **options)
        found[name] = next((path / "table" / "_indices").iterdir())
    return found


def remapped(folder: Path, target: Path) -> IndexFolder:
    store, root = resolve(folder)
    new_store, new_root = resolve(target)
    remap(IndexFolder(store, root), NewIndexFolder(new_store, new_root), EveryFifthGone(), MARKED)  # type: ignore[arg-type]
    return IndexFolder(new_store, new_root)


@pytest.mark.parametrize("name", ["flat", "pq", "legacy", "rq", "graph"])
def test_damaged_bytes_are_refused_or_make_no_difference(folders: dict[str, Path], tmp_path: Path, name: str) -> None:
    generator = np.random.default_rng(11)
    for attempt in range(20):
        damaged = tmp_path / f"damaged{attempt}"
        shutil.copytree(folders[name], damaged)
        file = generator.choice(sorted(damaged.iterdir()))
        content = bytearray(file.read_bytes())
        for place in len(content) - 1 - generator.integers(0, min(len(content), 2500), 3):
            content[place] = generator.integers(0, 256)
        file.write_bytes(content)
        with contextlib.suppress(LanceError):
            remapped(damaged, tmp_path / f"new{attempt}")


@pytest.mark.parametrize("name", ["flat", "legacy", "graph"])
def test_cut_files_are_refused(folders: dict[str, Path], tmp_path: Path, name: str) -> None:
    shutil.copytree(folders[name], tmp_path / "cut")
    file = tmp_path / "cut" / "index.idx"
    content = file.read_bytes()
    for length in (0, 10, 40, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:length])
        with pytest.raises(LanceError, match="index"):
            remapped(tmp_path / "cut", tmp_path / "new")
    file.unlink()
    with pytest.raises(LanceError, match="index"):
        remapped(tmp_path / "cut", tmp_path / "new")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"lance:index": '{"type":"IVF_NEW","distance_type":"l2"}'}, "IVF_NEW"),
        ({"lance:index": '{"type":"IVF_HNSW_SQ","distance_type":"manhattan"}'}, "manhattan"),
        ({"lance:index": '{"type":"IVF_HNSW_SQ","distance_type":"dot"}'}, "has distance dot"),
        ({"lance:index": "[["}, "not JSON"),
        ({"lance:ivf": "9"}, "global buffer"),
        ({"lance:ivf": "x"}, "global buffer"),
        ({"lance:hnsw": '["",""]'}, "no description of a graph"),
        ({"lance:hnsw": '[""]'}, "one text for each of 2 partitions"),
        ({"lance:hnsw": None}, "no lance:hnsw"),
    ],
)
def test_metadata_that_contradict_the_files(
    folders: dict[str, Path], tmp_path: Path, change: dict[str, str | None], problem: str
) -> None:
    store, root = resolve(folders["graph"])
    table = IndexFolder(store, root).open("index.idx")
    metadata = {key: value for key, value in {**table.metadata, **change}.items() if value is not None}
    new_store, new_root = resolve(tmp_path / "odd")
    buffers = [table.numbered_buffer(1)]
    odd = NewIndexFolder(new_store, new_root)
    odd.write("index.idx", table.schema, "2.0", table.batches(), metadata, numbered_buffers=buffers)
    shutil.copy(folders["graph"] / "auxiliary.idx", tmp_path / "odd")
    with pytest.raises((CorruptFileError, UnsupportedError), match=problem):
        remapped(tmp_path / "odd", tmp_path / "new")


@given(st.integers(0, 100), st.integers(1, 9), st.randoms(use_true_random=False))
def test_packed_codes(rows: int, width: int, random: Any) -> None:
    codes = np.frombuffer(random.randbytes(rows * width), np.uint8).reshape(rows, width)
    assert np.array_equal(unpack_blocks(pack_blocks(codes)), codes)
    assert np.array_equal(untransposed(transposed(codes)), codes)


def test_known_packed_codes() -> None:
    plain = bytes.fromhex("03080d12171c21262b30353a3f44494e53585d62676c71767b80858a8f94999ea3")
    packed = "33bb8800dd5522aa77ffcc44119966ee50725083508361836183619472947294a3"
    assert pack_blocks(np.frombuffer(plain, np.uint8).reshape(33, 1)).tobytes().hex() == packed
    assert transposed(np.frombuffer(b"abABxy", np.uint8).reshape(3, 2)).tobytes() == b"aAxbBy"


def test_known_messages() -> None:
    tensor = bytes.fromhex("0802120202021a100000803f000000400000404000008040")
    values = decode_tensor(vector_index_pb2.Tensor.FromString(tensor), "file")
    assert np.array_equal(values, np.array([[1, 2], [3, 4]], np.float32))
    message = bytes.fromhex("120200001a0200002218") + tensor + bytes.fromhex("29000000000000e03f")
    model = IvfModel.decode(message, "file")
    assert model.centroids is not None
    assert model.centroids.tolist() == [[1, 2], [3, 4]]
    assert IvfModel.decode(model.encode(model.partitions), "file").message == model.message
    moved = IvfModel.decode(model.encode(Partitions.one_after_another(np.array([2, 3]))), "file")
    assert moved.message.loss == 0.5
    assert moved.partitions.offsets.tolist() == [0, 2]
    old = IvfModel.from_message(vector_index_pb2.IVF(centroids=[1, 2, 3, 4], lengths=[5, 6]), "file")
    assert old.centroids is not None
    assert old.centroids.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "message",
    [
        vector_index_pb2.IVF(offsets=[0], lengths=[1, 2]),
        vector_index_pb2.IVF(offsets=[0, 1 << 63], lengths=[1, 2]),
        vector_index_pb2.IVF(offsets=[0, 9], lengths=[1, 2]),
        vector_index_pb2.IVF(offsets=[0, 1], lengths=[2, 2]),
        vector_index_pb2.IVF(lengths=[1, 2], centroids=[1, 2, 3]),
        vector_index_pb2.IVF(
            lengths=[1], centroids_tensor=vector_index_pb2.Tensor(data_type=2, shape=[2, 1], data=b"x" * 8)
        ),
        vector_index_pb2.IVF(
            lengths=[1], centroids_tensor=vector_index_pb2.Tensor(data_type=2, shape=[1], data=b"xxxx")
        ),
        vector_index_pb2.IVF(
            lengths=[1], centroids_tensor=vector_index_pb2.Tensor(data_type=2, shape=[1, 9], data=b"x")
        ),
    ],
)
def test_partitions_that_cannot_be(message: vector_index_pb2.IVF) -> None:
    with pytest.raises(CorruptFileError, match="file"):
        IvfModel.from_message(message, "file").partitions.check_inside(10, "file")


@pytest.mark.parametrize(
    ("family", "values"),
    [
        ("FLAT", {}),
        ("FLAT", {"dim": 0}),
        ("FLAT", {"dim": 1e9}),
        ("SQ", {"dim": 4, "num_bits": 4, "bounds": {"start": 0, "end": 1}}),
        ("SQ", {"dim": 4, "num_bits": 8, "bounds": {"start": 2, "end": 1}}),
        ("SQ", {"dim": 4, "num_bits": 8, "bounds": {"start": 2, "end": float("nan")}}),
        ("PQ", {"nbits": 5, "num_sub_vectors": 2, "dimension": 4, "codebook_position": 1, "transposed": True}),
        ("PQ", {"nbits": 8, "num_sub_vectors": 3, "dimension": 4, "codebook_position": 1, "transposed": True}),
        ("PQ", {"nbits": 8, "num_sub_vectors": 2, "dimension": 4, "codebook_position": 1, "transposed": True}),
        ("RQ", {"num_bits": 0, "packed": True}),
        ("RQ", {"num_bits": 1, "packed": True, "rotation_type": "fast", "code_dim": 8, "fast_rotation_signs": [1]}),
        ("RQ", {"num_bits": 1, "packed": True, "rotate_mat_position": 1}),
    ],
)
def test_quantizers_that_cannot_be(family: str, values: dict[str, Any]) -> None:
    small = vector_index_pb2.Tensor(data_type=2, shape=[2, 1], data=bytes(8)).SerializeToString()
    with pytest.raises(CorruptFileError, match="file"):
        parse_quantizer(family, json.dumps([json.dumps(values)]), lambda _: small, "file")


def level(*neighbors: list[int]) -> GraphLevel:
    lengths = [len(found) for found in neighbors]
    edges = np.array([place for found in neighbors for place in found], np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return GraphLevel(np.arange(len(neighbors)), offsets, edges, np.ones(len(edges), np.float32))


def test_a_graph_that_falls_apart_is_joined() -> None:
    points = StoredVectors(np.arange(7, dtype=np.float32)[:, None], FlatVectors(1), "l2")
    chain = level([1], [0, 2], [1, 3], [2, 4], [3, 5], [4, 6], [])
    for gone in ([3], [1, 3, 5], [0], [2, 3, 4], [0, 1, 2, 3, 4, 5]):
        mask = np.isin(np.arange(7), gone)
        mended = without_nodes(Graph((chain,), 0, {"m": 2}), mask, points)
        assert mended.levels[0].nodes.tolist() == list(range(7 - len(gone)))
        reached, fresh = set(), {mended.entry_point}
        offsets, neighbors = mended.levels[0].offsets, mended.levels[0].neighbors
        while fresh:
            reached |= fresh
            fresh = {int(n) for node in fresh for n in neighbors[offsets[node] : offsets[node + 1]]} - reached
        assert len(reached) == 7 - len(gone)
    assert without_nodes(Graph((chain,), 0, {"m": 2}), np.ones(7, bool), points).levels == ()


def damaged(change: Callable[[dict[str, Any], dict[str, list[Any]]], None]) -> tuple[str, pa.RecordBatch]:
    note, batch = encode_graph(Graph((level([1], [0]), level([])), 0, {"m": 4, "max_level": 2}), SCHEMA)
    values, columns = json.loads(note), batch.to_pydict()
    change(values, columns)
    return json.dumps(values), pa.RecordBatch.from_pydict(columns, SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        lambda note, rows: note.update(entry_point=1),
        lambda note, rows: note.update(entry_point=-1),
        lambda note, rows: note.update(params=None),
        lambda note, rows: note.update(level_offsets=[0, 3, 2]),
        lambda note, rows: note.update(level_offsets=[0, 2, 9]),
        lambda note, rows: note.update(level_offsets=[1, 2, 3]),
        lambda note, rows: note.update(level_offsets=[0, 3]),
        lambda note, rows: note.update(level_offsets="x"),
        lambda note, rows: rows.update(__vector_id=[0, 5, 0]),
        lambda note, rows: rows.update(__vector_id=[1, 0, 0]),
        lambda note, rows: rows.update(__vector_id=[0, 1, None]),
        lambda note, rows: rows.update(__neighbors=[[1], [7], []]),
        lambda note, rows: rows.update(__neighbors=[[1], None, []]),
        lambda note, rows: rows.update(_distance=[[1.0], [1.0, 2.0], []]),
        lambda note, rows: rows.update(__neighbors=[[1], [0], [1]], _distance=[[1.0], [1.0], [1.0]]),
    ],
)
def test_graphs_that_cannot_be(change: Callable[[dict[str, Any], dict[str, list[Any]]], None]) -> None:
    note, batch = damaged(lambda values, columns: None)
    assert decode_graph(note, batch, 2, "file").entry_point == 0
    with pytest.raises(CorruptFileError, match="file"):
        decode_graph(*damaged(change), 2, "file")


def test_a_graph_of_an_old_release_counts_its_first_node_once() -> None:
    columns = {"__vector_id": [0, 1, 2, 0, 2, 0], "__neighbors": [[1], [0], [0], [2], [0], []]}
    batch = pa.RecordBatch.from_pydict({**columns, "_distance": [[1.0]] * 5 + [[]]}, SCHEMA)
    note = json.dumps({"entry_point": 0, "params": {"max_level": 3}, "level_offsets": [0, 3, 4, 4]})
    graph = decode_graph(note, batch, 3, "file")
    assert [found.nodes.tolist() for found in graph.levels] == [[0, 1, 2], [0, 2], [0]]
    assert json.loads(encode_graph(graph, SCHEMA)[0])["level_offsets"] == [0, 3, 5, 6]
