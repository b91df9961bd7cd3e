"""Tests of `explain_encodings` and `metadata` of files, compared with the reference and with the data."""

from __future__ import annotations

import decimal
import random
from pathlib import Path
from typing import Any

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, LanceError
from lance_dataset.file import EncodingReport, LanceFileReader, LanceFileWriter, PageEncoding
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.explain.columns import columns_of_file, explain_columns
from lance_dataset.file.sizes import size_text
from lance_dataset.io.resolve import resolve

VERSIONS = ["2.0", "2.1", "2.2"]
ROWS = 6000
RNG = np.random.default_rng(7)
TEXTS = [f"{word} text number {i}" for i, word in enumerate(RNG.choice(["some", "other", "long"], ROWS))]


def write(path: Path, table: pa.Table, version: str, **options: Any) -> Path:
    """Write a file with the reference."""
    with lance.file.LanceFileWriter(str(path), table.schema, version=version, **options) as writer:
        writer.write_batch(table)
    return path


def explain(path: Path, deep: bool = False) -> EncodingReport:
    """Return the report on a file of any supported version."""
    store, location = resolve(path, None)
    metadata = FileMetadata(store.open_input(location))
    return explain_columns(columns_of_file(metadata, metadata.schema), deep)


def with_metadata(array: pa.Array, **options: str) -> pa.Table:
    metadata = {f"lance-encoding:{name.replace('_', '-')}": value for name, value in options.items()}
    return pa.table([array], pa.schema([pa.field("x", array.type, metadata=metadata)]))


def only_page(table: pa.Table, path: Path, version: str = "2.2", deep: bool = False) -> PageEncoding:
    [page] = explain(write(path, table, version), deep)
    return page


def mixed() -> pa.Table:
    return pa.table(
        {
            "number": pa.array(np.arange(ROWS) * 3, pa.int64()),
            "some null": pa.array([None if i % 7 == 0 else i for i in range(ROWS)], pa.int32()),
            "word": [f"word {i % 5}" for i in range(ROWS)],
            "text": TEXTS,
            "flag": pa.array([i % 3 == 0 for i in range(ROWS)]),
            "nothing": pa.nulls(ROWS, pa.int16()),
            "same": pa.array([4.5] * ROWS),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(RNG.random(ROWS * 8, np.float32)), 8),
            "wide": pa.FixedSizeListArray.from_arrays(pa.array(RNG.random(ROWS * 80, np.float32)), 80),
            "price": pa.array([decimal.Decimal(i) for i in range(ROWS)], pa.decimal128(20, 2)),
            "list": [list(range(i % 4)) for i in range(ROWS)],
            "struct": pa.array([{"a": i, "b": [{"c": "q"}] * (i % 2)} for i in range(ROWS)]),
            "kind": pa.array([f"kind {i % 9}" for i in range(ROWS)]).dictionary_encode(),
        }
    )


# -- against the reference ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_pages_and_buffers_are_those_of_the_reference(tmp_path: Path, version: str) -> None:
    path = write(tmp_path / "x.lance", mixed(), version, max_page_bytes=64 << 10)
    theirs = lance.file.LanceFileReader(str(path))
    columns = theirs.metadata().columns
    report = LanceFileReader(path).explain_encodings()
    for index, column in enumerate(columns):
        pages = [page for page in report if page.column_index == index]
        assert [page.page for page in pages] == list(range(len(column.pages)))
        for mine, page in zip(pages, column.pages, strict=True):
            assert [buffer.size for buffer in mine.buffers] == [buffer.size for buffer in page.buffers]
    assert [column.stored_bytes for column in report.columns] == [
        c.size_bytes for c in theirs.file_statistics().columns
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_and_statistics_are_those_of_the_reference(tmp_path: Path, version: str) -> None:
    path = write(tmp_path / "x.lance", mixed(), version)
    theirs, ours = lance.file.LanceFileReader(str(path)), LanceFileReader(path)
    expected, found = theirs.metadata(), ours.metadata()
    for name in ("num_rows", "major_version", "minor_version", "num_data_bytes", "num_column_metadata_bytes"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.schema.equals(expected.schema)
    for mine, column in zip(found.columns, expected.columns, strict=True):
        for page, other in zip(mine.pages, column.pages, strict=True):
            assert [(b.position, b.size) for b in page.buffers] == [(b.position, b.size) for b in other.buffers]
            assert page.encoding.split()[0] == other.encoding.split()[0]  # the name of the message
            assert len(page.encoding) < 4000
    expected_sizes = [(c.num_pages, c.size_bytes) for c in theirs.file_statistics().columns]
    assert [(c.num_pages, c.size_bytes) for c in ours.file_statistics().columns] == expected_sizes


def test_metadata_names_the_encoding_of_structural_pages(tmp_path: Path) -> None:
    path = write(tmp_path / "x.lance", pa.table({"t": TEXTS, "i": range(ROWS)}), "2.1")
    text, numbers = LanceFileReader(path).metadata().columns
    assert "fsst" in text.pages[0].encoding
    assert "inline_bitpacking" in numbers.pages[0].encoding
    assert "mini_block_layout" in numbers.pages[0].encoding


@pytest.mark.parametrize("version", [*VERSIONS, "2.3"])
def test_rows_and_sizes_add_up(tmp_path: Path, version: str) -> None:
    table = mixed()
    report = explain(write(tmp_path / "x.lance", table, version), deep=True)
    for column in report.columns:
        if column.column in table.column_names:
            assert column.rows == ROWS
    for page in report:
        assert page.stored_bytes == sum(buffer.size for buffer in page.buffers)
        assert (page.value_bytes or 0) + (page.level_bytes or 0) <= page.stored_bytes + 32  # inline constants
        assert page.reason
        first = next(other for other in report if other.column == page.column)
        assert first.first_row == 0


@pytest.mark.parametrize("version", [*VERSIONS, "2.3"])
def test_deep_facts_are_those_of_the_data(tmp_path: Path, version: str) -> None:
    table = mixed()
    pages = {page.column: page for page in explain(write(tmp_path / "x.lance", table, version), deep=True)}
    for name in ("number", "some null", "nothing", "text", "word", "flag", "vector", "price"):
        assert pages[name].nulls == table[name].null_count, name
    assert pages["number"].plain_bytes == ROWS * 8
    assert pages["flag"].plain_bytes == ROWS // 8
    assert pages["price"].plain_bytes == ROWS * 16
    assert pages["vector"].plain_bytes == ROWS * 8 * 4
    assert pages["text"].plain_bytes == sum(map(len, TEXTS)) + (ROWS + 1) * 4
    assert pages["list.item"].values == sum(i % 4 for i in range(ROWS))
    assert pages["list.item"].plain_bytes == pages["list.item"].values * 8
    assert pages["struct.b.item.c"].values == ROWS // 2


# -- encodings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_bit_packing_says_the_widths_of_the_chunks(tmp_path: Path, version: str) -> None:
    values = np.concatenate([RNG.integers(2**9, 2**10, 1024), RNG.integers(2**4, 2**5, 1024), [1] * 100])
    values[[0, 1024]] = [2**10 - 1, 2**5 - 1]
    page = only_page(with_metadata(pa.array(values, pa.int32())), tmp_path / "x.lance", version)
    assert (page.layout, page.encoding) == ("mini-block", "bit packing 32")
    assert page.bit_widths == (1, 10)
    assert page.chunks == 3
    assert page.value_bytes == sum(4 + 128 * width for width in (10, 5, 1))
    assert "fit in 1 to 10 of 32 bits" in page.reason


def test_widths_are_found_behind_levels_too(tmp_path: Path) -> None:
    values = pa.array([None if i % 5 == 0 else i % 64 for i in range(3000)], pa.int64())
    page = only_page(with_metadata(values), tmp_path / "x.lance", "2.1")
    assert page.bit_widths == (6, 6)
    assert page.level_bytes
    assert page.levels.startswith("definition ")
    assert f"nulls and lists {size_text(page.level_bytes)}" in page.reason


def test_a_dictionary_says_its_entries(tmp_path: Path) -> None:
    page = only_page(with_metadata(pa.array([f"a longer text {i % 12}" for i in range(ROWS)])), tmp_path / "x.lance")
    assert page.dictionary_entries == 12
    assert page.encoding.startswith("dictionary(bit packing 32; 12 lz4(variable 32")
    assert [buffer.name for buffer in page.buffers] == ["chunk words", "chunks", "dictionary"]
    assert "12 entries for 6,000 values (500.0 values each)" in page.reason
    assert page.plain_bytes is None


def test_fsst_says_what_it_saves_when_decoded(tmp_path: Path) -> None:
    table = with_metadata(pa.array(TEXTS))
    page = only_page(table, tmp_path / "x.lance")
    assert page.encoding == "fsst(variable 32)"
    assert "frequent strings as codes of one byte" in page.reason
    assert page.alternatives == ()
    assert page.nulls is None
    deep = only_page(table, tmp_path / "y.lance", deep=True)
    plain = sum(map(len, TEXTS)) + (ROWS + 1) * 4
    assert {other.name for other in deep.alternatives} == {"plain", "dictionary"}
    assert deep.plain_bytes == plain > deep.stored_bytes
    assert f"plain {size_text(plain)}" in deep.reason


def test_runs_are_counted(tmp_path: Path) -> None:
    values = np.repeat(np.arange(60), 100)
    page = only_page(with_metadata(pa.array(values, pa.int32()), rle_threshold="1.0"), tmp_path / "x.lance", "2.1")
    assert page.encoding == "rle(flat 32, flat 8)"
    assert "runs of" in page.reason
    runs = int(page.reason.split(" runs")[0].replace(",", ""))
    assert 60 <= runs <= 60 + page.chunks
    assert page.value_bytes == runs * 5


@pytest.mark.parametrize(
    ("array", "options", "layout", "encoding"),
    [
        (pa.array(RNG.random(ROWS)), {"compression": "none"}, "mini-block", "flat 64"),
        (pa.array(np.arange(ROWS) / 8), {"compression": "zstd", "bss": "on"}, "mini-block", "zstd(byte-stream split"),
        (pa.array(np.arange(ROWS) / 8), {"compression": "lz4", "bss": "on"}, "mini-block", "lz4(byte-stream split"),
        (pa.array(TEXTS), {"compression": "none"}, "mini-block", "variable 32"),
        (pa.array(TEXTS), {"compression": "zstd"}, "mini-block", "zstd(variable 32)"),
        (pa.array(TEXTS, pa.large_string()), {"compression": "none"}, "mini-block", "variable 64"),
        (pa.array(TEXTS), {"structural_encoding": "fullzip", "compression": "none"}, "full-zip", "variable 32"),
        (pa.array([b"x" * 600] * 9 + [b"y" * 600]), {}, "full-zip", "variable 32"),
        (pa.array([True, False, None] * 500), {}, "mini-block", "flat 1"),
        (pa.nulls(ROWS, pa.string()), {}, "all null", ""),
        (pa.array(["same"] * ROWS), {}, "constant", "constant"),
        (pa.array([{"a": i, "b": i} for i in range(100)]), {"packed": "true"}, "mini-block", "packed struct("),
        (pa.array([b"blob", None, b""] * 40, pa.large_binary()), {"blob": "true"}, "blob in mini-block", "packed"),
    ],
)  # fmt: skip
def test_encodings_have_names(
    tmp_path: Path, array: pa.Array, options: dict[str, str], layout: str, encoding: str
) -> None:
    table = with_metadata(array, **options)
    page = only_page(table, tmp_path / "x.lance")
    assert page.layout == layout
    assert page.encoding.startswith(encoding)
    for name, value in options.items():
        assert f"{name.replace('_', '-')}={value}" in page.reason
    deep = only_page(table, tmp_path / "y.lance", deep=True)
    assert deep.nulls == array.null_count
    if options.get("blob"):
        assert "the values have 160 B" in deep.reason


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_strings_stored_as_they_are_have_their_size_without_decoding(tmp_path: Path, version: str) -> None:
    exact = sum(map(len, TEXTS)) + (ROWS + 1) * 4
    page = only_page(with_metadata(pa.array(TEXTS), compression="none"), tmp_path / "x.lance", version)
    assert page.chunks
    assert exact <= page.plain_bytes <= exact + 8 * page.chunks
    zipped = with_metadata(pa.array(TEXTS), compression="none", structural_encoding="fullzip")
    assert only_page(zipped, tmp_path / "y.lance", version).plain_bytes == exact


def test_empty_lists_have_no_values_in_constant_pages(tmp_path: Path) -> None:
    lists = pa.array([[5] * (i % 3) if i % 4 else None for i in range(999)])
    for version, layout in (("2.1", "mini-block"), ("2.2", "constant")):
        page = only_page(with_metadata(lists), tmp_path / f"{version}.lance", version)
        assert page.layout == layout
        assert page.values == len(lists.flatten())
    nulls = pa.array([[None] * (i % 3) for i in range(999)], pa.list_(pa.int8()))
    assert only_page(with_metadata(nulls), tmp_path / "nulls.lance").values == len(nulls.flatten())


@pytest.mark.parametrize("sparse", [True, False])
def test_unstable_version(tmp_path: Path, sparse: bool) -> None:
    options = {"structural_encoding": "sparse"} if sparse else {}
    values = pa.array([None if i % 9 == 0 else list(range(i % 5)) for i in range(2000)])
    page = only_page(with_metadata(values, **options), tmp_path / "x.lance", "2.3")
    assert page.layout == ("sparse mini-block" if sparse else "mini-block")
    assert page.values == len(values.flatten())
    assert ("lists with items" in page.levels) == sparse


def test_trees_of_2_0(tmp_path: Path) -> None:
    pages = {page.column: page for page in explain(write(tmp_path / "x.lance", mixed(), "2.0"))}
    assert pages["number"].encoding == "flat 64"
    assert pages["some null"].encoding == "nullable(flat 32)"
    assert [buffer.name for buffer in pages["some null"].buffers] == ["validity", "values"]
    assert pages["word"].dictionary_entries == 5
    assert pages["text"].encoding == "binary"
    assert pages["vector"].encoding == "fixed-size list 8(flat 32)"
    assert (pages["list"].encoding, pages["struct"].encoding) == ("list", "struct")
    assert pages["nothing"].stored_bytes == 0


# -- our files, datasets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_our_own(tmp_path: Path, version: str) -> None:
    table = mixed()
    path = tmp_path / "x.lance"
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    theirs = lance.file.LanceFileReader(str(path)).file_statistics()
    report = explain(path, deep=True)
    assert [column.stored_bytes for column in report.columns] == [column.size_bytes for column in theirs.columns]


def test_files_that_are_not_mapped(tmp_path: Path) -> None:
    path = write(tmp_path / "x.lance", mixed(), "2.2")
    mapped = LanceFileReader(path)
    unmapped = LanceFileReader(path, storage_options={"mmap": "false"})
    assert unmapped.explain_encodings(deep=True) == mapped.explain_encodings(deep=True)


def test_columns_are_selected(tmp_path: Path) -> None:
    path = write(tmp_path / "x.lance", mixed(), "2.2")
    reader = LanceFileReader(path, columns=["number", "struct"])
    assert [page.column for page in reader.explain_encodings()] == ["number", "struct.a", "struct.b.item.c"]
    assert [page.column for page in reader.explain_encodings(["struct.a"])] == ["struct.a"]
    assert len(reader.explain_encodings().column("struct")) == 2
    with pytest.raises(FieldNotFoundError, match="nmber"):
        reader.explain_encodings(["nmber"])
    with pytest.raises(InvalidInputError, match="list of names"):
        reader.explain_encodings("number")


@pytest.mark.parametrize("version", VERSIONS)
def test_datasets_and_fragments(tmp_path: Path, version: str) -> None:
    table = mixed().select(["number", "word"])
    lance.write_dataset(table, tmp_path / "d", max_rows_per_file=ROWS // 2, data_storage_version=version)
    lance.dataset(tmp_path / "d").alter_columns({"path": "word", "name": "term"})
    dataset = lance_dataset.dataset(tmp_path / "d")
    report = dataset.explain_encodings()
    assert {(page.fragment_id, page.column) for page in report} == {(i, c) for i in (0, 1) for c in ("number", "term")}
    assert [(column.column, column.rows) for column in report.columns] == [("number", ROWS), ("term", ROWS)]
    assert {page.file for page in report} == {str(path) for path in (tmp_path / "d" / "data").iterdir()}
    [fragment] = [f for f in dataset.get_fragments() if f.fragment_id == 1]
    assert {page.fragment_id for page in fragment.explain_encodings(["term"], deep=True)} == {1}


def test_added_columns_come_from_their_own_files(tmp_path: Path) -> None:
    theirs = lance.write_dataset(pa.table({"a": range(10)}), tmp_path / "d")
    theirs.add_columns({"b": "a * 2"})
    theirs.add_columns(pa.field("c", pa.int32()))  # in no file
    pages = lance_dataset.dataset(tmp_path / "d").explain_encodings()
    assert [page.column for page in pages] == ["a", "b"]
    assert len({page.file for page in pages}) == 2


# -- how it looks ------------------------------------------------------------------------------------------------


def test_prints_as_a_table(tmp_path: Path) -> None:
    report = explain(write(tmp_path / "x.lance", mixed(), "2.2"))
    lines = str(report).splitlines()
    assert lines[0].split()[:4] == ["column", "page", "rows", "layout"]
    assert len(lines) == len(report) + 3
    assert lines[-1].startswith(f"{len(report)} pages, ")
    assert repr(report) == f"<EncodingReport: {lines[-1]}>"
    assert len(str(report.columns).splitlines()) == len(report.columns) + 3
    assert report._repr_html_().count("<tr>") == len(report) + 1
    assert "fixed-size list 80(flat 32)" in report._repr_html_()


def test_a_long_report_prints_its_columns(tmp_path: Path) -> None:
    report = explain(write(tmp_path / "x.lance", mixed().select(["wide"]), "2.2"))
    many = EncodingReport(list(report) * 300)
    assert len(str(many).splitlines()) == 4
    assert many.columns[0].pages == 300 * len(report)


def test_as_arrow_and_pandas(tmp_path: Path) -> None:
    report = explain(write(tmp_path / "x.lance", mixed(), "2.2"), deep=True)
    table = report.to_arrow()
    assert table["stored_bytes"].to_pylist() == [page.stored_bytes for page in report]
    assert table["reason"].to_pylist() == [page.reason for page in report]
    assert table["buffers"][0].as_py()[0]["name"] == "chunk words"
    assert list(report.to_pandas()["column"]) == [page.column for page in report]
    assert EncodingReport([]).to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (9999, "9,999 B"),
        (10_000, "10.0 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (5.12e9, "5.12 GB"),
    ],
)
def test_sizes_read_well(size: int, text: str) -> None:
    assert size_text(size) == text


# -- damage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [*VERSIONS, "2.3"])
def test_damaged_files_raise_our_errors_only(tmp_path: Path, version: str) -> None:
    table = mixed().slice(0, 900).drop_columns(["wide"])
    good = write(tmp_path / "good.lance", table, version).read_bytes()
    pick = random.Random(version)
    bad = tmp_path / "bad.lance"
    refused = 0
    for _ in range(60):
        damaged = bytearray(good)
        for _ in range(pick.randrange(1, 4)):
            # metadata and the start of buffers are damaged more often than values
            at = pick.randrange(len(good) - 6000, len(good)) if pick.random() < 0.5 else pick.randrange(len(good))
            damaged[at] = pick.randrange(256)
        bad.write_bytes(damaged)
        for deep in (False, True):
            try:
                str(explain(bad, deep))
            except LanceError:
                refused += 1
    assert refused


def test_legacy_files(tmp_path: Path) -> None:
    """Each batch of a legacy file is reported as a page, nested or not, and nothing is compressed."""
    table = pa.table(
        {
            "i": pa.array(range(10), pa.int64()),
            "s": [f"text {i}" for i in range(10)],
            "l": [[i] * (i % 3) for i in range(10)],
            "d": pa.array(["a", "b"] * 5).dictionary_encode(),
            "x": [{"a": i, "n": None} for i in range(10)],
        }
    )
    dataset = lance_dataset.write_dataset(table, tmp_path / "t", data_storage_version="legacy", max_rows_per_group=4)
    for deep in (False, True):
        pages = list(dataset.explain_encodings(deep=deep))
        assert [(page.rows, page.first_row) for page in pages if page.column == "i"] == [(4, 0), (4, 4), (2, 8)]
        assert {page.layout for page in pages} == {"batch"}
        encodings = {page.column: page.encoding for page in pages}
        assert encodings == {
            "i": "plain",
            "s": "binary",
            "l": "list",
            "l.item": "plain",
            "d": "dictionary",
            "x.a": "plain",
            "x.n": "null",
        }
        stored = sum(page.value_bytes for page in pages if page.column == "s")
        assert stored == sum(len(text) for text in table["s"].to_pylist()) + (4 + 4 + 2 + 3) * 8
    assert "plain" in str(dataset.explain_encodings(["i"]))
