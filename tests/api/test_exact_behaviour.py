"""Behaviour that programs for the reference depend on, in both packages: messages, warnings, system columns."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import lance
import lance.file
import lance.fragment
import lance.sampler
import pyarrow as pa
import pytest

import lance_dataset
import lance_dataset.file
import lance_dataset.fragment
import lance_dataset.sampler

ROWS = pa.table(
    {
        "a": pa.array([1, 2, 3, None, 5], pa.int32()),
        "s": ["x1", "y'2", None, "a,b", "(z)"],
        "l": pa.array([["x", "y"], None, ["a,b"], [], ["q"]]),
        "f": [0.5, 1.0, 2.0, None, 3.0],
    }
)
MANY = pa.table({"i": range(20_000), "s": [f"v{row}" for row in range(20_000)]})


def both(tmp_path: Path, call: Callable[[Any, Path], object]) -> tuple[object, object]:
    """Return the results of a call with the reference and with this package, each in a folder of its own."""
    results = []
    for module, name in ((lance, "theirs"), (lance_dataset, "ours")):
        (tmp_path / name).mkdir(exist_ok=True)
        results.append(call(module, tmp_path / name))
    return results[0], results[1]


def write(module: Any, folder: Path, **options: Any) -> Any:
    return module.write_dataset(ROWS, folder / "t", **options)


@pytest.mark.parametrize("values", ["1.0, 2.5", "1.5, 3", "1.5, NULL", "3000000000"])
def test_lists_of_other_numbers(tmp_path: Path, values: str) -> None:
    """Filters refuse numbers outside the type of the column; SQL compares them."""
    for module in (lance, lance_dataset):
        dataset = module.write_dataset(ROWS, tmp_path / module.__name__)
        with pytest.raises(ValueError, match=r"(?i)literal"):
            dataset.to_table(filter=f"a IN ({values})")
    query = f"SELECT a IN ({values}) AS found FROM dataset"
    theirs, ours = (
        pa.Table.from_batches(module.dataset(tmp_path / module.__name__).sql(query).build().to_batch_records())
        for module in (lance, lance_dataset)
    )
    assert ours["found"].to_pylist() == theirs["found"].to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        "s IN ('a,b', '(z)')",
        "s = 'y''2'",
        "regexp_match(s, '[a,)(]')",
        "array_has_any(l, ['a,b'])",
        "array_has_any(l, make_array('x', 'q'))",
        "array_has_any(l, [regexp_replace('q,q', ',q', '')])",
        "array_has(l, 'a,b')",
    ],
)
def test_quoted_text_in_arguments(tmp_path: Path, text: str) -> None:
    theirs, ours = both(tmp_path, lambda m, folder: write(m, folder).to_table(filter=text).to_pylist())
    assert ours == theirs


def _strict_overwrite(module: Any, folder: Path) -> object:
    write(module, folder)
    write(module, folder, mode="append")
    files = module.fragment.write_fragments(ROWS, folder / "t")
    operation = module.LanceOperation.Overwrite(ROWS.schema, files)
    return module.LanceDataset.commit(folder / "t", operation, read_version=1, max_retries=0)


FAILURES: list[tuple[str, Callable[[Any, Path], object]]] = [
    (r"No field named '?nope", lambda m, f: write(m, f).to_table(filter="nope = 1")),
    (r"No field named nope", lambda m, f: write(m, f).to_table(columns=["nope"])),
    (r"does not return a boolean", lambda m, f: write(m, f).to_table(filter="a + 1")),
    (r"does not return a boolean", lambda m, f: write(m, f).delete("a + 1")),
    (r"Invalid function 'unknown'", lambda m, f: write(m, f).to_table(filter="unknown(a) = 1")),
    (r"Column nope does not exist in the dataset", lambda m, f: write(m, f).drop_columns(["nope"])),
    (
        r"""Column ["']nope["'] does not exist in the dataset""",
        lambda m, f: write(m, f).alter_columns({"path": "nope", "name": "b"}),
    ),
    (
        r"""Cannot cast column ["']a["'] from (?i:int32) to (?i:list)""",
        lambda m, f: write(m, f).alter_columns({"path": "a", "data_type": pa.list_(pa.int32())}),
    ),
    (
        r"contains NULL values and cannot be made non-nullable",
        lambda m, f: write(m, f).alter_columns({"path": "a", "nullable": False}),
    ),
    (r"Duplicate field name", lambda m, f: write(m, f).alter_columns({"path": "a", "name": "s"})),
    (r"Column 'nope' does not exist in (the )?dataset schema", lambda m, f: write(m, f).update({"nope": "1"})),
    (r"Merge insert key column 'nope' does not exist in schema", lambda m, f: write(m, f).merge_insert("nope")),
    (r"nope", lambda m, f: write(m, f).create_scalar_index("nope", "BTREE")),
    (r"reserved", lambda m, f: m.write_dataset(pa.table({"_rowid": [1]}), f / "t")),
    (r"Dataset already exists", lambda m, f: (write(m, f), write(m, f))),
    (
        r"Append with different schema: fields did not match, missing=\[\], unexpected=\[z\]",
        lambda m, f: (write(m, f), m.write_dataset(pa.table({"z": [1]}), f / "t", mode="append")),
    ),
    (r"was not found", lambda m, f: m.dataset(f / "none")),
    (r"was not found", lambda m, f: (write(m, f), m.dataset(f / "t", version=9))),
    (r"(?i)commit conflict for version 2", _strict_overwrite),
    (r"Must provide schema to write dataset", lambda m, f: m.write_dataset(iter([]), f / "t")),
    (r"(?i)no schema (was given|provided)", lambda m, f: m.file.LanceFileWriter(str(f / "e.lance")).close()),
    (r"Duplicate column name: a", lambda m, f: write(m, f).to_table(columns=["a", "a"])),
]


@pytest.mark.parametrize(("text", "call"), FAILURES)
def test_messages_and_kinds_of_errors(tmp_path: Path, text: str, call: Callable[[Any, Path], object]) -> None:
    """Both messages have the text that programs match, and ours is also an error of their kind."""

    def failure(module: Any, folder: Path) -> BaseException:
        with pytest.raises(Exception, match=text) as caught:
            call(module, folder)
        return caught.value

    theirs, ours = both(tmp_path, failure)
    kind = next(each for each in type(theirs).__mro__ if each.__module__ == "builtins")
    assert isinstance(ours, kind)


def _warned(call: Callable[[Any, Path], object]) -> Callable[[Any, Path], object]:
    def run(module: Any, folder: Path) -> object:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call(module, folder)
        found = [each for each in caught if each.category is DeprecationWarning]
        return result, [(each.category, re.split(r"is deprecated", str(each.message))[0]) for each in found]

    return run


def _merge(module: Any, folder: Path) -> object:
    dataset = write(module, folder)
    operation = module.LanceOperation.Merge([each.metadata for each in dataset.get_fragments()], ROWS.schema)
    return module.LanceDataset.commit(dataset, operation, read_version=1).version


def _old_commit(module: Any, folder: Path) -> object:
    files = module.fragment.write_fragments(ROWS, folder / "t")
    return module.LanceDataset._commit(folder / "t", module.LanceOperation.Overwrite(ROWS.schema, files)).version


DEPRECATED: list[Callable[[Any, Path], object]] = [
    _merge,
    _old_commit,
    lambda m, f: len(write(m, f).get_fragments()[0].metadata.data_files()),
    lambda m, f: write(m, f).replace_schema_metadata({"k": "v"}),
]


@pytest.mark.parametrize("call", DEPRECATED)
def test_deprecated_calls_work_and_warn(tmp_path: Path, call: Callable[[Any, Path], object]) -> None:
    theirs, ours = both(tmp_path, _warned(call))
    assert ours == theirs
    assert theirs[1]  # type: ignore[index]


def test_messages_and_properties_of_commits(tmp_path: Path) -> None:
    def call(module: Any, folder: Path) -> object:
        dataset = write(module, folder, commit_message="first", transaction_properties={"k": "v"})
        dataset.delete("a = 1")
        operation = module.LanceOperation.Append(module.fragment.write_fragments(ROWS, dataset))
        made = module.LanceDataset.commit(dataset, operation, read_version=2, commit_message="third")
        return [made.read_transaction(version).transaction_properties or {} for version in (1, 2, 3)]

    theirs, ours = both(tmp_path, call)
    assert ours == theirs
    assert theirs[0] == {"__lance_commit_message": "first", "k": "v"}  # type: ignore[index]


COLUMNS = (["_rowid"], ["_rowid", "a"], ["a", "_rowid", "s"], ["_rowaddr", "a"], ["a", "_rowaddr", "_rowid"], [])
OPTIONS = [{}, {"with_row_id": True}, {"with_row_address": True}, {"with_row_id": True, "with_row_address": True}]


def test_system_columns_named_and_asked_for(tmp_path: Path) -> None:
    def call(module: Any, folder: Path) -> object:
        dataset = write(module, folder)
        scans = [dataset.to_table(columns=each, **more).to_pydict() for each in COLUMNS for more in OPTIONS]
        takes = [list(dataset.take([2, 0], columns=each).to_pydict().items()) for each in COLUMNS if each]
        rows = [list(dataset._take_rows([2, 0], columns=each).to_pydict().items()) for each in COLUMNS if each]
        return [list(each.items()) for each in scans], takes, rows

    theirs, ours = both(tmp_path, call)
    assert ours == theirs


@pytest.mark.parametrize("batch_size", [None, 7, 1000, 5000])
def test_batches(tmp_path: Path, batch_size: int | None) -> None:
    options = {} if batch_size is None else {"batch_size": batch_size}

    def call(module: Any, folder: Path) -> object:
        dataset = module.write_dataset(MANY, folder / "t", max_rows_per_file=9000)
        samplers = [module.sampler.FullScanSampler(), module.sampler.ShardedBatchSampler(0, 2)]
        scans = [dataset.to_batches(batch_size=batch_size), *(sampler(dataset, **options) for sampler in samplers)]
        return [[batch.num_rows for batch in scan] for scan in scans]

    theirs, ours = both(tmp_path, call)
    assert ours == theirs


def test_compaction_into_files_of_limited_size(tmp_path: Path) -> None:
    def call(module: Any, folder: Path) -> object:
        dataset = module.write_dataset(MANY, folder / "t", max_rows_per_file=2500)
        metrics = dataset.optimize.compact_files(max_bytes_per_file=50_000)
        return metrics.fragments_added, [each.count_rows() for each in dataset.get_fragments()]

    theirs, ours = both(tmp_path, call)
    assert ours == theirs


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_dictionaries_of_several_pages(tmp_path: Path, version: str) -> None:
    chunks = [pa.array(["a", "b", None] * 3000).dictionary_encode(), pa.array(["c", "a"] * 4000).dictionary_encode()]
    table = pa.table({"d": pa.chunked_array(chunks)})
    lance_dataset.write_dataset(table, tmp_path / "t", data_storage_version=version)
    expected = table["d"].cast(pa.string()).to_pylist()
    for module in (lance, lance_dataset):
        assert module.dataset(tmp_path / "t").to_table()["d"].cast(pa.string()).to_pylist() == expected


def _pages(module: Any, folder: Path, array: pa.Array[Any], version: str) -> list[int]:
    """Write an array into pages of 64 KiB and return their numbers of rows."""
    dataset = module.write_dataset(
        pa.table({"v": array}), folder / "t", data_storage_version=version, max_page_bytes=1 << 16, mode="overwrite"
    )
    path = folder / "t" / "data" / dataset.get_fragments()[0].data_files()[0].path
    pages = lance_dataset.file.LanceFileReader(str(path)).explain_encodings()
    assert module.dataset(folder / "t").to_table()["v"].combine_chunks().equals(array)
    return [page.rows for page in pages]


PAGED = {
    "numbers": pa.array(range(50_000)),
    "nulls": pa.array([None if row % 3 == 0 else row for row in range(30_000)]),
    "text": pa.array([f"v{row}" for row in range(40_000)]),
    "vectors": pa.FixedSizeListArray.from_arrays(pa.array(range(64_000), pa.float32()), 64),
    "one value": pa.array(["x" * 500_000]),
    "small": pa.array([True, False, None]),
}


@pytest.mark.parametrize("name", PAGED)
def test_pages_of_limited_size(tmp_path: Path, name: str) -> None:
    """The reference limits pages of version 2.0. Later versions have equal pages here, and there one for an array."""
    theirs, ours = both(tmp_path, lambda module, folder: _pages(module, folder, PAGED[name], "2.0"))
    assert ours == theirs
    theirs, later = both(tmp_path, lambda module, folder: _pages(module, folder, PAGED[name], "2.2"))
    assert later == ours
    assert theirs == [len(PAGED[name])]


def test_pages_of_batches_are_never_larger(tmp_path: Path) -> None:
    values = ["a" * 10] * 20_000 + ["b" * 1000] * 200 + ["c" * 100_000] * 3 + ["d"]
    batches = pa.table({"v": values}).to_batches(max_chunksize=3000)
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    dataset = lance_dataset.write_dataset(reader, tmp_path / "t", max_page_bytes=1 << 16)
    assert dataset.to_table()["v"].to_pylist() == values
    start = 0
    for page in dataset.explain_encodings():
        size = pa.array(values[start : start + page.rows]).nbytes
        assert size <= 3 << 15 or page.rows == 1
        start += page.rows


NULLS: list[tuple[dict[str, str], str]] = [
    ({"n": "CAST(NULL AS int)"}, "2.0"),
    ({"n": "CAST((NULL) AS decimal(5, 2))"}, "2.1"),
    ({"n": "NULL::string", "m": "(CAST(NULL AS double))"}, "2.2"),
    ({"n": "CAST(NULL AS int)", "m": "NULL"}, "2.2"),
    ({"n": "CAST(NULL AS int)", "m": "a + 1"}, "2.2"),
    ({"n": "TRY_CAST(NULL AS int)"}, "2.2"),
    ({"n": "CAST(NULL AS int) + 1"}, "2.2"),
    ({"n": "CAST(CAST(NULL AS int) AS string)"}, "2.2"),
    ({"n": "arrow_cast(NULL, 'Int32')"}, "2.2"),
    ({"n": "NULL"}, "2.2"),
    ({"n": "nullif(a, a)"}, "2.2"),
]


@pytest.mark.parametrize(("columns", "version"), NULLS)
def test_files_of_columns_without_values(tmp_path: Path, columns: dict[str, str], version: str) -> None:
    """A column of typed NULLs has no file in either package; other columns without values have files of equal size."""

    def call(module: Any, folder: Path) -> object:
        dataset = write(module, folder, data_storage_version=version)
        old = {each.name for each in (folder / "t" / "data").iterdir()}
        merged, _ = dataset.get_fragments()[0].merge_columns(columns)
        dataset.add_columns(columns)
        files = [each for each in (folder / "t" / "data").iterdir() if each.name not in old]
        facts = [(file.fields, file.column_indices) for file in dataset.get_fragments()[0].metadata.files]
        sizes = [] if "m" in columns and files else [each.stat().st_size for each in files]
        return sizes, len(files), facts, len(merged.files), dataset.schema, dataset.to_table().to_pydict()

    theirs, ours = both(tmp_path, call)
    assert ours == theirs


def test_statistics_of_files_with_blobs(tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"x" * 100, None, b"y" * 20], pa.large_binary())], schema=pa.schema([field]))

    def call(module: Any, folder: Path) -> object:
        dataset = module.write_dataset(table, folder / "t", data_storage_version="2.1")
        path = folder / "t" / "data" / dataset.get_fragments()[0].data_files()[0].path
        reader = module.file.LanceFileReader(str(path))
        columns = reader.file_statistics().columns
        return reader.metadata().num_rows, [(each.num_pages, each.size_bytes) for each in columns]

    theirs, ours = both(tmp_path, call)
    assert ours == theirs


def test_a_lock_that_raises(tmp_path: Path) -> None:
    @contextlib.contextmanager
    def lock(version: int) -> Generator[None]:
        raise RuntimeError(f"no lock of {version}")
        yield

    for module in (lance, lance_dataset):
        write(module, tmp_path / module.__name__)
        with pytest.raises(OSError, match="RuntimeError: no lock of 2"):
            write(module, tmp_path / module.__name__, mode="append", commit_lock=lock)
        assert module.dataset(tmp_path / module.__name__ / "t").version == 1


@pytest.mark.parametrize("call", ["update_metadata", "update_config", "update_schema_metadata"])
@pytest.mark.parametrize("value", [{"a": 1}, {1: "a"}, [("a", "b")], "x", None])
def test_metadata_of_wrong_types(tmp_path: Path, call: str, value: object) -> None:
    for module in (lance, lance_dataset):
        with pytest.raises(TypeError, match="values"):
            getattr(write(module, tmp_path / module.__name__), call)(value)


def test_names_that_programs_find_in_plans(tmp_path: Path) -> None:
    def call(module: Any, folder: Path) -> object:
        builder = write(module, folder).merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
        return str(builder.explain_plan()).splitlines()[0].strip()

    theirs, ours = both(tmp_path, call)
    assert ours == theirs
