"""Tests of MinHash indices: their files, and searches for similar texts, as in the reference."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import lance.indices
import lance.query
import numpy as np
import pyarrow as pa
import pytest
from lance.dataset import ColumnOrdering as TheirOrdering
from lance.dataset import ScannerBuilder as TheirBuilder
from lance.file import LanceFileReader

import lance_dataset
from lance_dataset.dataset import ColumnOrdering, ScannerBuilder, serialize_row_addrs
from lance_dataset.errors import CorruptFileError, FieldNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.scalar.minhash_files import MinHashFiles
from lance_dataset.index.scalar.minhash_parameters import MinHashParameters
from lance_dataset.index.scalar.minhash_search import TextPattern
from lance_dataset.index.scalar.minhash_training import TRAINER
from lance_dataset.index.scalar.sorting import entry_schema
from lance_dataset.index.trainer import Training
from lance_dataset.indices import IndexConfig
from lance_dataset.io.local import LocalStore
from lance_dataset.query import MinHashQuery
from lance_dataset.types.schema import Schema

WORDS = [f"w{i}" for i in range(60)]
BASE = " ".join(random.Random(3).choices(WORDS, k=40))


def similar(pick: random.Random, changes: int) -> str:
    words = BASE.split()
    for _ in range(changes):
        words[pick.randrange(len(words))] = pick.choice(WORDS)
    return " ".join(words)


def table(rows: int, first: int = 0, kind: pa.DataType | None = None) -> pa.Table:
    pick = random.Random(first)
    texts = [None if pick.random() < 0.1 else similar(pick, pick.randint(0, 9)) for _ in range(rows)]
    numbers = pa.array(range(first, first + rows), pa.int64())
    return pa.table({"t": pa.array(texts, kind or pa.string()), "i": numbers})


def search(module: ModuleType, uri: str, query: str = BASE, **options: Any) -> pa.Table:
    is_ours = module is lance_dataset
    builders, queries = (ScannerBuilder, MinHashQuery) if is_ours else (TheirBuilder, lance.query.MinHashQuery)
    dataset = module.dataset(uri)
    builder = builders(dataset).minhash_search(queries(query, "t"))
    for name, value in options.items():
        if name == "order_by":
            value = [(ColumnOrdering if is_ours else TheirOrdering)(*each) for each in value]
        if name == "with_fragments":
            value = [dataset.get_fragments()[position] for position in value]
        builder = getattr(builder, name)(value)
    return builder.to_scanner().to_table()


def brute_force(uri: str, **numbers: int) -> list[tuple[int, float]]:
    """Return rows and distances of all similar texts, without an index."""
    known = MinHashParameters.of(numbers)
    found = lance_dataset.dataset(uri).to_table(with_row_id=True)
    texts = found.column("t").combine_chunks()
    places, distances = TextPattern(BASE, known).compare(texts)
    rows = zip(
        distances.tolist(), found.column("_rowid").to_numpy()[places], found.column("i").to_numpy()[places], strict=True
    )
    return [(int(number), distance) for distance, _, number in sorted(rows)]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"limit": 3},
    {"offset": 4},
    {"limit": 5, "offset": 2},
    {"columns": ["i"]},
    {"columns": ["_distance", "i"]},
    {"columns": {"x": "i+1", "d": "_distance"}},
    {"columns": {"x": "_distance * 2", "y": "i + 1"}},
    {"with_row_id": True, "with_row_address": True},
    {"columns": ["_rowid", "i"]},
    {"filter": "i>20"},
    {"filter": "i>20", "prefilter": True},
    {"filter": "i%3=0", "prefilter": True, "limit": 100},
    {"filter": "_distance>0.1", "limit": 50},
    {"filter": "_distance>0.1 and i<70", "limit": 50},
    {"order_by": [("i", False)], "limit": 7},
    {"order_by": [("i",)], "offset": 2, "limit": 4, "filter": "i>9"},
    {"disable_scoring_autoprojection": True},
    {"fast_search": True, "limit": 100},
    {"with_fragments": [1], "limit": 100},
    {"with_fragments": [1, 0], "limit": 100},
    {"with_fragments": []},
    {"limit": 1000, "columns": ["i"]},
    {"use_scalar_index": False},
]


def check(uri: str, options: list[dict[str, Any]]) -> None:
    found = search(lance_dataset, uri, limit=10_000, columns=["i"])
    assert list(zip(*found.to_pydict().values(), strict=True)) == brute_force(uri)
    for each in options:
        ours, expected = search(lance_dataset, uri, **each), search(lance, uri, **each)
        assert ours.schema.equals(expected.schema), each
        assert ours.to_pydict() == expected.to_pydict(), each


@pytest.mark.parametrize("builder", [lance_dataset, lance], ids=["ours", "theirs"])
@pytest.mark.parametrize("stable", [False, True])
def test_searches(tmp_path: Path, builder: ModuleType, stable: bool) -> None:
    """Both implementations find the same rows, with indices of either, after every kind of change."""
    uri = str(tmp_path)
    lance_dataset.write_dataset(table(60), uri, max_rows_per_file=25, enable_stable_row_ids=stable)
    builder.dataset(uri).create_scalar_index("t", "MINHASHLSH")
    check(uri, OPTIONS)
    lance_dataset.dataset(uri).delete("i%7=3")
    lance.dataset(uri).insert(table(30, 100))
    check(uri, OPTIONS)
    lance_dataset.dataset(uri).update({"t": f"'{similar(random.Random(9), 4)}'"}, where="i%11=0")
    check(uri, OPTIONS[:3])
    builder.dataset(uri).optimize.optimize_indices()
    check(uri, OPTIONS)
    lance_dataset.dataset(uri).insert(table(20, 200))
    builder.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)
    assert len(lance_dataset.dataset(uri).list_indices()) == 2
    check(uri, OPTIONS[:3] if not stable else OPTIONS[-2:-1])
    lance_dataset.dataset(uri).delete("i%5=1")
    (lance if builder is lance_dataset else lance_dataset).dataset(uri).optimize.compact_files()
    check(uri, OPTIONS if not stable else OPTIONS[-2:-1])
    builder.dataset(uri).optimize.optimize_indices(num_indices_to_merge=9)
    check(uri, OPTIONS)


def test_deferred_compaction(tmp_path: Path) -> None:
    """Rows are found after a compaction that leaves indices as they are."""
    uri = str(tmp_path)
    lance_dataset.write_dataset(table(60), uri, max_rows_per_file=25)
    lance_dataset.dataset(uri).create_scalar_index("t", "MINHASHLSH")
    lance_dataset.dataset(uri).delete("i%6=1")
    lance_dataset.dataset(uri).optimize.compact_files(defer_index_remap=True)
    check(uri, OPTIONS[:5])
    lance.dataset(uri).insert(table(20, 200))
    lance_dataset.dataset(uri).optimize.optimize_indices()
    check(uri, OPTIONS[:5])


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"num_hashes": 12, "num_bands": 4, "shingle_size": 1},
        {"num_hashes": 256, "num_bands": 256},
        {"tokenizer": {"base_tokenizer": "ngram", "language": "French", "stem": True, "max_token_length": None}},
        {"tokenizer": {"base_tokenizer": "code", "split_identifiers": True, "with_position": True}},
        {"tokenizer": {"stem": None, "block_size": 256, "unknown": 1}, "num_hashes": None},
    ],
)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_files(tmp_path: Path, parameters: dict[str, Any], kind: pa.DataType) -> None:
    """Files have the content of the reference's, and are not larger."""
    uri = str(tmp_path / "data")
    lance_dataset.write_dataset(table(1200, kind=kind), uri, max_rows_per_file=500)
    content, sizes = [], []
    for module, config in ((lance_dataset, IndexConfig), (lance, lance.indices.IndexConfig)):
        module.dataset(uri).create_scalar_index("t", config("minhashlsh", parameters), name="x")
        (index,) = lance_dataset.dataset(uri).list_indices()
        files = sorted((tmp_path / "data" / "_indices" / index["uuid"]).iterdir())
        readers = [LanceFileReader(str(file)) for file in files]
        metadata = [dict(reader.metadata().schema.metadata) for reader in readers]
        content.append(([reader.read_all().to_table().to_pydict() for reader in readers], metadata))
        sizes.append(sum(file.stat().st_size for file in files))
        described = module.dataset(uri).describe_indices()[0]
        content[-1] += (described.details, described.index_type, described.type_url)
    assert content[0] == content[1]
    assert sizes[0] <= 1.02 * sizes[1]


@pytest.mark.parametrize(
    "parameters",
    [
        *({name: value} for name in ("num_hashes", "shingle_size") for value in (0, -1, "a", 1.5, True, 1 << 40)),
        *({"num_bands": value} for value in (0, 257, 3)),
        *({"tokenizer": value} for value in (5, [], {"base_tokenizer": "x"}, {"stem": 5}, {"language": "x"})),
        *({"tokenizer": {name: value}} for name, value in (("custom_stop_words", ["a"]), ("lance_tokenizer", "text"))),
        *({"tokenizer": {"base_tokenizer": value}} for value in ("jieba/x", "lindera/x")),
        *(
            {"tokenizer": value}
            for value in ({"block_size": 100}, {"split_identifiers": True}, {"max_token_length": -1})
        ),
        {"foo": 1},
        {"base_tokenizer": "ngram"},
    ],
)
def test_wrong_parameters(tmp_path: Path, parameters: dict[str, Any]) -> None:
    """Parameters that the reference refuses are refused with the same class of error."""
    uri = str(tmp_path)
    lance_dataset.write_dataset(table(3), uri)
    with pytest.raises(ValueError):
        lance.dataset(uri).create_scalar_index("t", lance.indices.IndexConfig("minhashlsh", parameters))
    with pytest.raises(InvalidInputError):
        lance_dataset.dataset(uri).create_scalar_index("t", IndexConfig("minhashlsh", parameters))


@pytest.mark.parametrize("column", ["i", "b", "l"])
def test_wrong_columns(tmp_path: Path, column: str) -> None:
    """Only columns of text can have such an index."""
    uri = str(tmp_path)
    rows = pa.table({"i": [1], "b": [b"x"], "l": [["x"]]})
    lance_dataset.write_dataset(rows, uri)
    with pytest.raises(ValueError):
        lance.dataset(uri).create_scalar_index(column, "MINHASHLSH")
    with pytest.raises(InvalidInputError, match="MINHASHLSH"):
        lance_dataset.dataset(uri).create_scalar_index(column, "MINHASHLSH")


@pytest.mark.parametrize("texts", [[], [None, "", None], ["a b"]])
def test_few_texts(tmp_path: Path, texts: list[str | None]) -> None:
    """Tables without texts, and texts with few tokens, are indexed and searched; rows added later are found, too."""
    uri = str(tmp_path)
    rows = pa.table({"t": pa.array(texts, pa.string()), "i": pa.array(range(len(texts)), pa.int64())})
    lance_dataset.write_dataset(rows, uri)
    lance_dataset.dataset(uri).create_scalar_index("t", "MINHASHLSH")
    assert search(lance_dataset, uri, "A b!").column("i").to_pylist() == [0] * texts.count("a b")
    if texts:  # the reference does not search an index of nothing
        assert search(lance, uri, "A b!").column("i").to_pylist() == [0] * texts.count("a b")
    assert search(lance_dataset, uri, "").num_rows == 0
    lance_dataset.dataset(uri).insert(table(20, 100))
    check(uri, OPTIONS[:2] if texts else [])
    lance_dataset.dataset(uri).optimize.optimize_indices()
    check(uri, OPTIONS[:2])


def test_untrained_index(tmp_path: Path) -> None:
    """An index that is not trained is searched row by row, and trained by the first optimization."""
    uri = str(tmp_path)
    lance_dataset.write_dataset(table(30), uri)
    for module in (lance_dataset, lance):
        module.dataset(uri).create_scalar_index("t", "MINHASHLSH", train=False, name="x")
        check(uri, [])
        module.dataset(uri).optimize.optimize_indices()
        check(uri, OPTIONS[:2])


def test_field_of_a_struct(tmp_path: Path) -> None:
    """A field of a struct can be indexed and searched."""
    rows = table(30)
    nested = pa.table(
        {"s": pa.StructArray.from_arrays([rows.column("t").combine_chunks()], ["t"]), "i": rows.column("i")}
    )
    dataset = lance_dataset.write_dataset(nested, tmp_path)
    dataset.create_scalar_index("s.t", "MINHASHLSH")
    found = dataset.to_table(nearest=MinHashQuery(BASE, "s.t"), columns=["i"])
    builder = TheirBuilder(lance.dataset(str(tmp_path)))
    expected = builder.minhash_search(lance.query.MinHashQuery(BASE, "s.t")).columns(["i"]).to_scanner().to_table()
    assert found.to_pydict() == expected.to_pydict()


def test_memory_limit(tmp_path: Path) -> None:
    """With little memory, keys of bands are sorted on disk, with the same result."""
    uri = str(tmp_path / "data")
    texts = pa.array([similar(random.Random(i % 50), i % 7) for i in range(4000)])
    lance_dataset.write_dataset(pa.table({"t": texts}), uri)
    content = []
    for limit in (None, 100_000):
        lance_dataset.dataset(uri).create_scalar_index("t", "MINHASHLSH", memory_limit=limit)
        (index,) = lance_dataset.dataset(uri).list_indices()
        folder = tmp_path / "data" / "_indices" / index["uuid"]
        content.append([LanceFileReader(str(file)).read_all().to_table() for file in sorted(folder.iterdir())])
    assert content[0] == content[1]
    keys, documents = (column.to_numpy() for column in content[1][0].columns)
    assert (np.lexsort((documents, keys)) == np.arange(len(keys))).all()


def test_scanner(tmp_path: Path) -> None:
    """Scanners of searches have the methods of others."""
    dataset = lance_dataset.write_dataset(table(60), tmp_path, max_rows_per_file=25)
    dataset.create_scalar_index("t", "MINHASHLSH")
    dataset.insert(table(9, 100))
    scanner = dataset.scanner(nearest=MinHashQuery(BASE, "t"), columns=["i"], filter="i > 1", order_by=["i"])
    expected = scanner.to_table()
    assert scanner.projected_schema == expected.schema == scanner.schema
    assert pa.Table.from_batches(scanner.to_batches()) == expected
    assert scanner.to_reader().read_all() == expected
    assert scanner.to_pandas().shape == expected.shape
    assert scanner.head(2).num_rows == 2
    assert scanner.dataset_schema == dataset.schema
    plan = scanner.explain_plan()
    assert all(word in plan for word in ("MinHashSearch", "MinHashFlatSearch", "FilterExec: i > 1", "SortExec"))
    assert "MinHashQuery" in repr(scanner)
    seen: list[Any] = []
    told = dataset.scanner(nearest=MinHashQuery(BASE, "t"), scan_stats_callback=seen.append, batch_size=3)
    steps: list[tuple[int, int]] = []
    assert told.to_table(progress=lambda done, total: steps.append((done, total))).num_rows == steps[-1][0] == 10
    assert [batch.num_rows for batch in told.to_batches()] == [3, 3, 3, 1]
    assert len(seen) == 2
    rows = dataset.to_table(with_row_address=True).column("_rowaddr").to_pylist()[:20]
    few = dataset.to_table(nearest=MinHashQuery(BASE, "t"), row_addr_allowlist=serialize_row_addrs(rows), limit=99)
    assert set(few.column("i").to_pylist()) <= set(range(20))
    with pytest.raises(ValueError):
        scanner.count_rows()
    with pytest.raises(UnsupportedError):
        scanner.analyze_plan()


def test_wrong_searches(tmp_path: Path) -> None:
    """Queries of columns without an index, and options that do not fit, are refused."""
    dataset = lance_dataset.write_dataset(table(9), tmp_path)
    with pytest.raises(ValueError, match="No MinHash LSH index found"):
        dataset.to_table(nearest=MinHashQuery("a", "t"))
    dataset.create_scalar_index("t", "MINHASHLSH")
    query = MinHashQuery("a", "t")
    with pytest.raises(ValueError, match="No MinHash LSH index found"):
        dataset.to_table(nearest=MinHashQuery("a", "nope"))
    with pytest.raises(ValueError, match="deleted rows"):
        dataset.to_table(nearest=query, include_deleted_rows=True, with_row_id=True)
    with pytest.raises(FieldNotFoundError):
        dataset.to_table(nearest=query, filter="_distance < 1", prefilter=True)
    with pytest.raises(FieldNotFoundError):
        dataset.to_table(nearest=query, columns=["nope"])
    with pytest.raises(TypeError, match="MinHashQuery"):
        ScannerBuilder(dataset).minhash_search("text")  # type: ignore[arg-type]
    for wrong in (MinHashQuery(5, "t"), MinHashQuery("a", 5)):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="must be text"):
            dataset.to_table(nearest=wrong)
    with pytest.raises(TypeError, match="must be a vector"):
        dataset.to_table(nearest={"column": "t", "q": [1.0]})


# -- damage ------------------------------------------------------------------------------------------------------


PARAMETERS = MinHashParameters.of({"num_hashes": 8, "num_bands": 4})


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("index")
    pick = random.Random(0)
    texts = pa.array([similar(pick, pick.randint(0, 30)) for _ in range(2000)])
    batch = pa.RecordBatch.from_arrays([texts, pa.array(range(2000), pa.uint64())], schema=entry_schema(pa.string()))
    target = NewIndexFolder(LocalStore(fsync=False), str(folder / "x"))
    trainer = TRAINER.specialize({"num_hashes": 8, "num_bands": 4})  # type: ignore[misc]
    assert trainer.write(Training(iter([batch]), pa.string(), target, {}, 1 << 30)) == PARAMETERS.details
    return {file.name: file.read_bytes() for file in (folder / "x").iterdir()}


def test_damaged_files(tmp_path: Path, stored: dict[str, bytes]) -> None:
    """Damaged files raise CorruptFileError, or are read without harm."""
    signature = TextPattern(BASE, PARAMETERS).signature
    assert signature is not None
    (tmp_path / "x").mkdir()
    folder = IndexFolder(LocalStore(fsync=False), str(tmp_path / "x"))
    for seed in range(150):
        pick = random.Random(seed)
        for name, data in stored.items():
            changed = bytearray(data)
            if seed and pick.random() < 0.6:
                for _ in range(pick.randint(1, 4)):
                    place = (
                        pick.randrange(len(changed)) if pick.random() < 0.3 else len(changed) - 1 - pick.randrange(1500)
                    )
                    changed[place] = pick.randrange(256)
            (tmp_path / "x" / name).write_bytes(
                changed[: pick.randrange(len(changed))] if pick.random() < 0.02 * seed else changed
            )
        try:
            rows, distances = MinHashFiles(folder, PARAMETERS).find(signature)
        except (CorruptFileError, UnsupportedError):
            assert seed
            continue
        assert len(rows) == len(distances) <= 2000


Change = Callable[[pa.Table, dict[str, str]], tuple[pa.Table, dict[str, str]]]


def _without(name: str) -> Change:
    return lambda rows, metadata: (rows, {key: value for key, value in metadata.items() if key != name})


def _with(name: str, value: str) -> Change:
    return lambda rows, metadata: (rows, {**metadata, name: value})


def _column(name: str, values: Callable[[pa.Array], pa.Array]) -> Change:
    def change(rows: pa.Table, metadata: dict[str, str]) -> tuple[pa.Table, dict[str, str]]:
        place = rows.schema.get_field_index(name)
        return rows.set_column(place, name, values(rows.column(place).combine_chunks())), metadata

    return change


def changes() -> Iterator[tuple[str, str, Change]]:
    for name in ("bands.lance", "signatures.lance"):
        yield "no details", name, _without("minhash_lsh_details")
        yield "bad details", name, _with("minhash_lsh_details", "xyz")
        yield (
            "other details",
            name,
            _with("minhash_lsh_details", MinHashParameters.of({"num_hashes": 4, "num_bands": 4}).details.hex()),
        )
        yield "other layout", name, _with("minhash_lsh_index_version", "1")
        yield "fewer rows", name, lambda rows, metadata: (rows.slice(1), metadata)
    for text in ("0", "-1", "x", "9" * 30):
        yield f"pages of {text} rows", "bands.lance", _with("minhash_lsh_page_rows", text)
    yield "other pages", "bands.lance", _with("minhash_lsh_page_rows", "100")
    yield "no page table", "bands.lance", _without("minhash_lsh_page_table_buffer")
    yield "wrong page table", "bands.lance", _with("minhash_lsh_page_table_buffer", "7")
    yield "wrong count", "bands.lance", _with("minhash_lsh_num_docs", "5")
    yield "documents beyond", "bands.lance", _column("doc_id", lambda ids: pa.array(ids.to_numpy() + 2000, pa.uint32()))
    yield "keys of another type", "bands.lance", _column("band_key", lambda keys: keys.cast(pa.int64(), safe=False))
    yield "documents of another type", "bands.lance", _column("doc_id", lambda ids: ids.cast(pa.int64()))
    yield "ids of another type", "signatures.lance", _column("_rowid", lambda ids: ids.cast(pa.int64()))
    yield (
        "plain numbers",
        "signatures.lance",
        _column("signature", lambda found: pa.array(range(len(found)), pa.uint16())),
    )


CHANGES = list(changes())


@pytest.mark.parametrize(
    ("name", "change"), [each[1:] for each in CHANGES], ids=[f"{each[1]}: {each[0]}" for each in CHANGES]
)
def test_files_that_contradict_the_format(tmp_path: Path, stored: dict[str, bytes], name: str, change: Change) -> None:
    """Files whose parts contradict each other raise CorruptFileError that names the file."""
    store, folder = LocalStore(fsync=False), str(tmp_path / "x")
    (tmp_path / "x").mkdir()
    for each, data in stored.items():
        (tmp_path / "x" / each).write_bytes(data)
    source = IndexFolder(store, folder).open(name)
    rows, metadata = change(pa.Table.from_batches([source.read()]), dict(source.metadata))
    buffers = {}
    if metadata.get("minhash_lsh_page_table_buffer") == "1":
        buffers["minhash_lsh_page_table_buffer"] = source.numbered_buffer(1)
    (tmp_path / "x" / name).unlink()
    NewIndexFolder(store, folder).write(
        name, Schema.from_arrow(rows.schema), "2.2", rows.to_batches(), metadata, buffers
    )
    pattern = TextPattern(BASE, PARAMETERS)
    assert pattern.signature is not None
    with pytest.raises(CorruptFileError, match=r"bands\.lance|signatures\.lance"):
        MinHashFiles(IndexFolder(store, folder), PARAMETERS).find(pattern.signature)
