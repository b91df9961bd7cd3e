"""Tests of full-text indices of compacted tables, compared with the reference's on a copy of the table."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance as reference
import numpy as np
import pyarrow as pa
import pytest
from lance.query import (
    BooleanQuery,
    BoostQuery,
    DocumentGranularity,
    FullTextOperator,
    MatchQuery,
    Occur,
    PhraseQuery,
)

import lance_dataset
from lance_dataset.errors import LanceError, UnsupportedError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.text.documents import ROW_ID
from lance_dataset.index.text.fst_reader import read_fst
from lance_dataset.index.text.layout import METADATA_FILE
from lance_dataset.index.text.remap import remap
from lance_dataset.index.text.token_sets import FST_BYTES, TOKEN, TOKEN_ID
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.moved_rows import MovedRows, Relocation, RewrittenGroup
from lance_dataset.table.roaring import encode_bitmap, encode_treemap
from lance_dataset.types.schema import Schema

ROWS = 900
DAMAGES = 15
INDEX = IndexMetadata("00000000-0000-0000-0000-000000000000", "words")
#: Parameters of indices of all layouts.
LAYOUTS: dict[str, dict[str, Any]] = {
    "1": {"format_version": 1},
    "1 with positions": {"format_version": 1, "with_position": True},
    "2": {},
    "2 with positions": {"with_position": True},
    "3": {"block_size": 256},
    "3 with positions": {"block_size": 256, "with_position": True},
}


def texts(rows: int, seed: int = 0) -> list[str | None]:
    """Return texts with words in few to many documents, some often in one document, and empty documents."""
    pick = random.Random(seed)
    words = [f"w{number}" for number in range(400)]
    weights = [1 / (number + 1) for number in range(400)]
    found: list[str | None] = []
    for _ in range(rows):
        length = pick.choice([0, 3, 10, 20, 250]) if pick.random() < 0.3 else 12
        found.append(None if pick.random() < 0.03 else " ".join(pick.choices(words, weights, k=length)))
    return found


def table(rows: int = ROWS, first: int = 0, values: pa.Array | None = None) -> pa.Table:
    words = pa.array(texts(rows, first), pa.string()) if values is None else values
    return pa.table({"i": pa.array(range(first, first + rows), pa.int64()), "t": words})


def lists(rows: int) -> pa.Array:
    values = [
        None if row % 11 == 0 else [None if item % 5 == 4 else f"w{row % 50} w{item}" for item in range(row % 6)]
        for row in range(rows)
    ]
    return pa.array(values, pa.list_(pa.string()))


class Twins:
    """A table and a copy of it, compacted by the reference and by this package.

    Parameters
    ----------
    folder
        Folder of both tables.
    data
        The rows, in four fragments.
    parameters
        Parameters of the index.
    """

    def __init__(self, folder: Path, data: pa.Table, **parameters: Any) -> None:
        self.theirs, self.ours = str(folder / "theirs"), str(folder / "ours")
        dataset = reference.write_dataset(data, self.theirs, max_rows_per_file=-(-data.num_rows // 4))
        dataset.create_scalar_index("t", "INVERTED", **parameters)

    def prepare(self, *changes: Callable[[Any], Any]) -> None:
        """Make changes before the table is copied."""
        for change in changes:
            change(reference.dataset(self.theirs))

    def compact(self) -> None:
        shutil.copytree(self.theirs, self.ours)
        for path, module in ((self.theirs, reference), (self.ours, lance_dataset)):
            module.dataset(path).optimize.compact_files(target_rows_per_fragment=1_000_000)

    def contents(self, path: str) -> list[dict[str, tuple[dict[str, str], pa.Table]]]:
        """Return the files of each segment of the index: metadata and columns."""
        segments = []
        for index in reference.dataset(path).list_indices():
            folder = Path(path) / "_indices" / index["uuid"]
            segments.append({each.name: content(each) for each in sorted(folder.iterdir())})
        return sorted(segments, key=lambda files: (len(files), str(files.get("part_0_docs.lance"))))

    def check_same_files(self) -> None:
        theirs, ours = self.contents(self.theirs), self.contents(self.ours)
        assert len(theirs) == len(ours)
        for expected, made in zip(theirs, ours, strict=True):
            assert expected.keys() == made.keys()
            for name, (metadata, columns) in expected.items():
                assert made[name][0] == metadata, name
                assert made[name][1].schema.equals(columns.schema), name
                check_same_columns(name, columns, made[name][1], wide=metadata.get("posting_block_size") == "256")

    def check_same_answers(self, **options: bool) -> None:
        theirs, ours = (answers(reference.dataset(path), **options) for path in (self.theirs, self.ours))
        for name, expected in theirs.items():
            assert ours[name] == expected, name


def content(path: Path) -> tuple[dict[str, str], pa.Table]:
    reader = reference.file.LanceFileReader(str(path))
    metadata = {key.decode(): value.decode() for key, value in (reader.metadata().schema.metadata or {}).items()}
    if "partitions" in metadata:
        metadata["partitions"] = "".join(sorted(metadata["partitions"]))  # which the reference shuffles
    return metadata, reader.read_all().to_table().replace_schema_metadata(None)


def check_same_columns(name: str, expected: pa.Table, made: pa.Table, *, wide: bool) -> None:
    """Check that both are equal, except for the last bit of scores, which depends on the machine's logarithm."""
    for column in expected.column_names:
        ours, theirs = (each[column].combine_chunks() for each in (made, expected))
        if column == "_max_score":
            scores = (ours.to_numpy(), theirs.to_numpy())
            # With blocks of 256 the reference takes exact lengths, which do not bound its own scores.
            np.testing.assert_allclose(*scores, rtol=0.1 if wide else 1e-6)
            assert not wide or (scores[0] >= scores[1] * (1 - 1e-6)).all()
        elif column == "_posting" and not wide:
            blocks = [array.flatten().to_pylist() for array in (ours, theirs)]
            assert ours.value_lengths().equals(theirs.value_lengths())
            assert [block[4:] for block in blocks[0]] == [block[4:] for block in blocks[1]]
            block_scores = [np.frombuffer(b"".join(block[:4] for block in each), "<f4") for each in blocks]
            np.testing.assert_allclose(*block_scores, rtol=1e-6)
        else:
            assert ours.equals(theirs), (name, column)


def answers(dataset: Any, *, positions: bool = False, elements: bool = False) -> dict[str, Any]:
    """Return the rows and scores that queries of all kinds find."""

    def match(words: str, **options: Any) -> MatchQuery:
        return MatchQuery(words, "t", **options)

    queries: dict[str, Any] = {
        "or": match("w1 w5"),
        "and": match("w1 w5", operator=FullTextOperator.AND),
        "rare": match("w390 w377 w311"),
        "fuzzy": match("w12", fuzziness=1),
        "prefix": match("w123", fuzziness=2, prefix_length=2, max_expansions=20),
        "boolean": BooleanQuery(
            [(Occur.MUST, match("w0")), (Occur.SHOULD, match("w3")), (Occur.MUST_NOT, match("w9"))]
        ),
        "boost": BoostQuery(match("w2"), match("w1"), negative_boost=0.3),
    }
    if positions:
        queries |= {"phrase": PhraseQuery("w0 w1", "t"), "slop": PhraseQuery("w0 w2", "t", slop=2)}
    found: dict[str, Any] = {}
    for name, query in queries.items():
        columns = ["i", "_score", *(["_doc_index"] if elements else [])]
        rows = dataset.to_table(columns=columns, full_text_query=query).to_pylist()
        found[name] = sorted((row["i"], round(row["_score"], 5), str(row.get("_doc_index"))) for row in rows)
    best = dataset.to_table(columns=["_score"], full_text_query=match("w0 w4 w9"), limit=7)
    found["best"] = [round(score, 5) for score in best["_score"].to_pylist()]
    scan = {"columns": ["i", "_score"], "full_text_query": match("w0 w3")}
    for name, options in {
        "prefilter": {"filter": "i % 5 = 0", "prefilter": True},
        "fast": {"fast_search": True},
    }.items():
        rows = dataset.to_table(**scan, **options).to_pylist()
        found[name] = sorted((row["i"], round(row["_score"], 5)) for row in rows)
    assert found["or"]
    assert found["best"]
    return found


@pytest.mark.parametrize("deleted", ["i % 7 = 3", "i < 400 OR i % 2 = 1", None])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_same_files_and_answers(tmp_path: Path, layout: str, deleted: str | None) -> None:
    parameters = LAYOUTS[layout]
    twins = Twins(tmp_path, table(), **parameters)
    if deleted is not None:
        twins.prepare(lambda dataset: dataset.delete(deleted))
    twins.compact()
    twins.check_same_files()
    twins.check_same_answers(positions="with_position" in parameters)


def test_elements_of_lists(tmp_path: Path) -> None:
    of_elements = {"document_granularity": DocumentGranularity.LIST_ELEMENT, "with_position": True}
    for name, parameters in {"elements": of_elements, "rows": {"with_position": True}}.items():
        twins = Twins(tmp_path / name, table(values=lists(ROWS)), **parameters)
        twins.prepare(lambda dataset: dataset.delete("i % 7 = 3 OR i < 300 AND i > 20"))
        twins.compact()
        twins.check_same_files()
        assert len(reference.dataset(twins.ours).to_table(full_text_query=MatchQuery("w3 w17", "t"))) > 0


def test_documents_that_are_all_gone(tmp_path: Path) -> None:
    words = [None if row % 2 else f"word{row}" for row in range(ROWS)]
    for name, parameters in LAYOUTS.items():
        twins = Twins(tmp_path / name, table(values=pa.array(words)), **parameters)
        twins.prepare(lambda dataset: dataset.delete("i % 2 = 0"))
        twins.compact()
        twins.check_same_files()
        assert reference.dataset(twins.ours).to_table(full_text_query=MatchQuery("word2", "t")).num_rows == 0


@pytest.mark.parametrize("words", [pa.nulls(ROWS, pa.string()), pa.array([""] * ROWS)])
def test_no_documents(tmp_path: Path, words: pa.Array) -> None:
    twins = Twins(tmp_path, table(values=words))
    twins.prepare(lambda dataset: dataset.delete("i % 2 = 0"))
    twins.compact()
    twins.check_same_files()


def append(dataset: Any) -> None:
    first = dataset.to_table(columns=["i"])["i"].to_numpy().max() + 1
    reference.write_dataset(table(300, int(first)), dataset.uri, mode="append", max_rows_per_file=100)


@pytest.mark.parametrize("layout", ["1 with positions", "3 with positions"])
def test_segments_and_partitions_and_what_comes_after(tmp_path: Path, layout: str) -> None:
    parameters = LAYOUTS[layout]
    positions = "with_position" in parameters
    twins = Twins(tmp_path, table(), **parameters)
    twins.prepare(
        append,
        lambda dataset: dataset.optimize.optimize_indices(),
        append,
        lambda dataset: dataset.optimize.optimize_indices(num_indices_to_merge=0),
        append,
        lambda dataset: dataset.delete("i % 5 = 3 OR i > 1000 AND i < 1100"),
    )
    twins.compact()
    twins.check_same_files()
    twins.check_same_answers(positions=positions)
    for path in (twins.theirs, twins.ours):
        append(reference.dataset(path))
        reference.dataset(path).optimize.optimize_indices()
    twins.check_same_answers(positions=positions)
    for path, module in ((twins.theirs, reference), (twins.ours, lance_dataset)):
        module.dataset(path).delete("i % 11 = 2")
        module.dataset(path).optimize.compact_files(target_rows_per_fragment=2_000_000)
    twins.check_same_answers(positions=positions)
    for path in (twins.theirs, twins.ours):
        reference.dataset(path).delete("i % 13 = 2")
        reference.dataset(path).optimize.compact_files(target_rows_per_fragment=3_000_000)
    twins.check_same_answers(positions=positions)


# -- folders of files, without a table -------------------------------------------------------------------------------

#: Removes every third row of the first of two fragments, and joins both.
LIVE = np.array([row for row in range(300) if row % 3], np.uint32)
MOVED = Relocation(
    (
        MovedRows(
            [
                RewrittenGroup(
                    encode_treemap({0: encode_bitmap(LIVE), 1: encode_bitmap(np.arange(300))}),
                    ((0, 300), (1, 300)),
                    ((7, len(LIVE) + 300),),
                )
            ],
            "test",
        ),
    )
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """Return the files of indices of all layouts, each over two fragments of 300 rows."""
    found = {}
    for name, parameters in LAYOUTS.items():
        path = tmp_path_factory.mktemp("stored")
        dataset = reference.write_dataset(table(600), str(path), max_rows_per_file=300)
        dataset.create_scalar_index("t", "INVERTED", **parameters)
        (folder,) = (path / "_indices").iterdir()
        found[name] = {each.name: each.read_bytes() for each in folder.iterdir()}
    return found


def remapped(files: dict[str, bytes], moved: Relocation = MOVED) -> IndexFolder:
    store = MemoryStore()
    for name, data in files.items():
        store.put(f"/old/{name}", data)
    remap(IndexFolder(store, "/old"), NewIndexFolder(store, "/new"), moved, INDEX)
    return IndexFolder(store, "/new")


def changed(files: dict[str, bytes], name: str, batch: pa.RecordBatch, metadata: dict[str, str]) -> dict[str, bytes]:
    """Return the files with other content of one."""
    store = MemoryStore()
    NewIndexFolder(store, "/f").write(name, Schema.from_arrow(batch.schema), "2.2", [batch], metadata)
    return files | {name: store.read(f"/f/{name}")}


def words_of(folder: IndexFolder) -> list[tuple[bytes, int]]:
    row = folder.open("part_0_tokens.lance").read()
    return list(read_fst(row.column(FST_BYTES)[0].as_py(), 1 << 20, "index"))


def test_dictionary_as_table(stored: dict[str, dict[str, bytes]]) -> None:
    files = stored["1"]
    store = MemoryStore()
    for name, data in files.items():
        store.put(f"/f/{name}", data)
    folder = IndexFolder(store, "/f")
    words = words_of(folder)
    rows = pa.record_batch(
        {TOKEN: [word.decode() for word, _ in words], TOKEN_ID: pa.array([number for _, number in words], pa.uint32())}
    )
    metadata = folder.open(METADATA_FILE)
    files = changed(files, "part_0_tokens.lance", rows, {})
    files = changed(files, METADATA_FILE, metadata.read(), metadata.metadata | {"token_set_format": "arrow"})
    made = remapped(files).open("part_0_tokens.lance").read()
    expected = words_of(remapped(stored["1"]))
    assert [(word.encode(), number) for word, number in zip(*made.to_pydict().values(), strict=True)] == expected


def test_fragments_whose_documents_are_ignored(stored: dict[str, dict[str, bytes]]) -> None:
    """Ignored documents keep their addresses, as they would be found again otherwise."""
    store = MemoryStore()
    store.put(f"/f/{METADATA_FILE}", stored["2"][METADATA_FILE])
    metadata = IndexFolder(store, "/f").open(METADATA_FILE)
    hidden = pa.record_batch({"deleted_fragments": pa.array([encode_bitmap([1])], pa.binary())})
    folder = remapped(changed(stored["2"], METADATA_FILE, hidden, metadata.metadata))
    fragments = folder.open("part_0_docs.lance").read().column(ROW_ID).to_numpy() >> np.uint64(32)
    assert set(fragments.tolist()) == {1, 7}
    assert folder.open(METADATA_FILE).read().equals(hidden)


def test_layout_before_1_0(stored: dict[str, dict[str, bytes]]) -> None:
    with pytest.raises(UnsupportedError, match=r"'words'.*defer_index_remap"):
        remapped({"docs.lance": b"", "tokens.lance": b"", "invert.lance": b""})


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "positions" in name])
def test_damaged_files(stored: dict[str, dict[str, bytes]], layout: str) -> None:
    """Files of any bytes give an error of this package or a result."""
    files = stored[layout]
    pick = random.Random(layout)
    for _ in range(DAMAGES):
        name = pick.choice(sorted(files))
        data = bytearray(files[name])
        for _ in range(pick.randint(1, 4)):
            data[pick.randrange(len(data))] = pick.choice([0, 1, 127, 128, 255, pick.randrange(256)])
        try:
            remapped(files | {name: bytes(data)})
        except LanceError:
            continue


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "positions" in name])
def test_damaged_content(stored: dict[str, dict[str, bytes]], layout: str) -> None:
    """Wrong bytes in the columns of valid files give an error of this package or a result."""
    store = MemoryStore()
    for name, data in stored[layout].items():
        store.put(f"/f/{name}", data)
    folder = IndexFolder(store, "/f")
    pick = random.Random(layout)
    names = ["part_0_docs.lance", "part_0_invert.lance", "part_0_tokens.lance"]
    batches = {name: folder.open(name).read() for name in names}
    refused = []
    for _ in range(DAMAGES):
        name = pick.choice(names)
        batch = damaged(batches[name], pick)
        try:
            remapped(changed(stored[layout], name, batch, folder.open(name).metadata))
        except LanceError as error:
            refused.append(str(error))
    assert refused
    assert all("part_0_" in message for message in refused)


def damaged(batch: pa.RecordBatch, pick: random.Random) -> pa.RecordBatch:
    """Change bytes in the values of one column."""
    place = pick.randrange(batch.num_columns)
    column = batch.column(place)
    kind, depth = column.type, 0
    while pa.types.is_list(kind):
        kind, depth = kind.value_type, depth + 1
    values = column.to_pylist()

    def change(value: Any) -> Any:
        if isinstance(value, list):
            spot = pick.randrange(len(value)) if value else 0
            return [change(item) if at == spot else item for at, item in enumerate(value)]
        if isinstance(value, bytes):
            data = bytearray(value or b"\x00")
            data[pick.randrange(len(data))] = pick.randrange(256)
            return bytes(data[: pick.choice([len(data), len(data), max(len(data) - 1, 0)])])
        return type(value)(pick.randrange(1 << 20))

    for _ in range(3):
        row = pick.randrange(len(values))
        values[row] = change(values[row])
    return batch.set_column(place, batch.schema.field(place), pa.array(values, column.type))
