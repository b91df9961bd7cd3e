"""Validation of indices with damaged files."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.tables.damaged_indices import (
    INDICES,
    problem_of,
    replace_index,
    segment_of,
    validate,
)

from lance_dataset.errors import DamagedIndexError
from lance_dataset.index.files import NewIndexFolder
from lance_dataset.index.segments import Segment
from lance_dataset.index.trainer import Training
from lance_dataset.index.training import TRAINERS
from lance_dataset.types.schema import Schema

_Edit = Callable[[pa.RecordBatch, dict[str, str], dict[str, bytes]], pa.RecordBatch]


_BUFFERS = ("null_bitmap", "lance:label_list_nulls", "minhash_lsh_page_table_buffer")


def _edited(path: Path, name: str, file: str, edit: _Edit) -> None:
    """Replace an index by one with a file that is changed."""

    def write(old: Segment, target: NewIndexFolder) -> None:
        for each in old.folder.names():
            table = old.folder.open(each)
            buffers = {key: table.global_buffer(key) or b"" for key in _BUFFERS if key in table.metadata}
            metadata = {key: value for key, value in table.metadata.items() if key not in buffers}
            batch = table.read()
            schema = table.schema
            if each == file:
                batch = edit(batch, metadata, buffers)
                if batch.schema != schema.storage_arrow:
                    schema = Schema.from_arrow(batch.schema)
            target.write(each, schema, table.version, [batch], metadata, buffers)

    replace_index(path, name, write)


def _set(column: str, change: Callable[[list[Any]], list[Any]]) -> _Edit:
    def edit(batch: pa.RecordBatch, metadata: dict[str, str], buffers: dict[str, bytes]) -> pa.RecordBatch:
        at = batch.schema.get_field_index(column)
        field = batch.schema.field(at)
        return batch.set_column(at, field, pa.array(change(batch.column(at).to_pylist()), field.type))

    return edit


def _rows(change: Callable[[list[int]], list[int]]) -> _Edit:
    return lambda batch, metadata, buffers: batch.take(pa.array(change(list(range(batch.num_rows)))))


def _with(target: str, key: str, value: Any) -> _Edit:
    def edit(batch: pa.RecordBatch, metadata: dict[str, str], buffers: dict[str, bytes]) -> pa.RecordBatch:
        content: dict[str, Any] = metadata if target == "metadata" else buffers
        content[key] = value(content[key]) if callable(value) else value
        return batch

    return edit


def _put(place: int, value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [*values[:place], value, *values[place + 1 :]]


def _swap(one: int, other: int) -> Callable[[list[Any]], list[Any]]:
    def swapped(values: list[Any]) -> list[Any]:
        values = list(values)
        values[one], values[other] = values[other], values[one]
        return values

    return swapped


def _shrunk_box(values: list[Any]) -> list[Any]:
    return [*values[:-1], {**values[-1], "xmax": values[-1]["xmax"] - 1}]


def _cleared(filters: list[bytes]) -> list[bytes]:
    return [bytes([*filters[0][:-64], *bytes(64)]), *filters[1:]]


def _fewer_nulls(sets: bytes) -> bytes:
    return b"\0\0\0\0"


_DAMAGES: dict[str, tuple[str, str, _Edit, str]] = {
    "page order": ("btree", "page_data.lance", _set("values", _swap(100, 110)), "page 3 are not in order"),
    "null after values": ("btree", "page_data.lance", _set("values", _put(100, None)), "not in order: null"),
    "no row": ("btree", "page_data.lance", _set("ids", _put(1, 5)), "has 35, and is under null"),
    "page minimum": ("btree", "page_lookup.lance", _set("min", _put(4, 700)), "min of page 4 is 700"),
    "page maximum": ("btree", "page_lookup.lance", _set("max", _put(4, 5)), "max of page 4 is 5"),
    "page nulls": ("btree", "page_lookup.lance", _set("null_count", _put(2, 1)), "null_count of page 2 is 1"),
    "page number": ("btree", "page_lookup.lance", _set("page_idx", _put(2, 3)), "page_idx of page 2 is 3"),
    "pages": ("btree", "page_lookup.lance", _rows(lambda rows: rows[:-1]), "bounds of 11 pages"),
    "page size": ("btree", "page_lookup.lance", _with("metadata", "batch_size", "0"), "batch_size"),
    "key twice": ("bitmap", "bitmap_page_lookup.lance", _set("keys", _put(4, "v10")), "the key 'v10' several times"),
    "null key": ("bitmap", "bitmap_page_lookup.lance", _set("keys", _put(3, None)), "several keys that are null"),
    "key": ("bitmap", "bitmap_page_lookup.lance", _set("keys", _put(3, "w")), "but is under 'w'"),
    "sets swapped": ("bitmap", "bitmap_page_lookup.lance", _set("bitmaps", _swap(3, 4)), "is wrong about 8 rows"),
    "set": ("bitmap", "bitmap_page_lookup.lance", _set("bitmaps", _put(3, b"\1\0\0\0abc")), "row set"),
    "key count": (
        "bitmap",
        "bitmap_page_lookup.lance",
        _with("metadata", "lance:index_stats", '{"num_bitmaps":3}'),
        "counts 3 keys",
    ),
    "null lists": (
        "labels",
        "bitmap_page_lookup.lance",
        _with("buffers", "lance:label_list_nulls", _fewer_nulls),
        "has null, and is not under a null list",
    ),
    "token order": ("ngram", "ngram_postings.lance", _rows(_swap(5, 6)), "is not in order"),
    "token lost": ("ngram", "ngram_postings.lance", _rows(lambda rows: rows[:50] + rows[51:]), "is not under"),
    "token sets swapped": ("ngram", "ngram_postings.lance", _set("posting_list", _swap(50, 90)), "is not under"),
    "zone minimum": ("zones", "zonemap.lance", _set("min", _put(2, 28.0)), "zone 2, which has values from 28.0"),
    "zone maximum": ("text_zones", "zonemap.lance", _set("max", _put(2, "v60")), "zone 2, which has values from"),
    "zone bounds": ("text_zones", "zonemap.lance", _set("max", _put(2, "a")), "its least value is above its greatest"),
    "zone nulls": ("text_zones", "zonemap.lance", _set("null_count", _put(2, 0)), "has null, and is in zone 2"),
    "zone too many nulls": ("text_zones", "zonemap.lance", _set("null_count", _put(2, 99)), "99 nulls"),
    "zone NaNs": (
        "zones",
        "zonemap.lance",
        lambda batch, metadata, buffers: _set("max", _put(2, 39.0))(
            _set("nan_count", _put(2, 0))(batch, metadata, buffers), metadata, buffers
        ),
        "has nan, and is in zone 2",
    ),
    "zone length": ("text_zones", "zonemap.lance", _set("zone_length", _put(4, 20)), "is in no zone"),
    "zone beyond": ("text_zones", "zonemap.lance", _set("zone_length", _put(4, 200)), "beyond the rows"),
    "null rows": (
        "zones",
        "zonemap.lance",
        _with("buffers", "null_bitmap", _fewer_nulls),
        "has null, and is not under",
    ),
    "filter bits": ("bloom", "bloomfilter.lance", _set("bloom_filter_data", _cleared), "a filter without it"),
    "filter size": ("bloom", "bloomfilter.lance", _set("bloom_filter_data", _put(1, b"abc")), "filter of 3 bytes"),
    "filter nulls": ("bloom", "bloomfilter.lance", _set("has_null", _put(0, False)), "no nulls"),
    "page box": ("rtree", "page_data.lance", _set("bbox", _shrunk_box), "whose boxes reach"),
    "page of box": ("rtree", "page_data.lance", _set("id", lambda ids: [*ids[:-2], ids[-1], ids[-2]]), "names page"),
    "null boxes": ("rtree", "nulls.lance", _set("nulls", lambda sets: [_fewer_nulls(sets[0])]), "is not under null"),
    "samples": (
        "fm",
        "part_0_fm.lance",
        _set("words", lambda words: [*words[:-1], words[-1][:80] + words[-1][88:96] + words[-1][88:]]),
        "1 positions of suffixes are wrong",
    ),
    "ranks": ("fm", "part_0_fm.lance", _set("prefix_rank", _put(3, 9)), "9 bits before it are set"),
    "separators": (
        "fm",
        "part_0_fm.lance",
        _with("metadata", "separator_documents", lambda text: text[4:8] + text[:4] + text[8:]),
        "documents of its separators",
    ),
    "starts": (
        "fm",
        "part_0_fm.lance",
        _with("metadata", "doc_start_positions", lambda text: text[:16] + "03" + text[18:]),
        "documents",
    ),
    "bands": ("minhash", "bands.lance", _set("doc_id", _swap(40, 80)), "bands of 2 documents"),
    "band order": ("minhash", "bands.lance", _rows(_swap(40, 80)), "not in order"),
    "band pages": (
        "minhash",
        "bands.lance",
        _with("buffers", "minhash_lsh_page_table_buffer", lambda data: bytes([data[0] ^ 1]) + data[1:]),
        "last keys of its pages",
    ),
    "signature": (
        "minhash",
        "signatures.lance",
        _set("signature", _swap(40, 80)),
        "bands of 2 documents are not those of their signatures",
    ),
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_damaged_files_are_found(copied_single: Callable[[str], Path], damage: str) -> None:
    name, file, edit, text = _DAMAGES[damage]
    copied = copied_single(name)
    _edited(copied, name, file, edit)
    found = problem_of(copied, name)
    assert text in found.what
    if found.num_rows is None and damage != "signature":
        assert f"{found.segment}/{file}" in found.what


@pytest.mark.parametrize("name", [each[0] for each in INDICES])
def test_files_of_other_content_are_found(copied_single: Callable[[str], Path], name: str) -> None:
    copied = copied_single(name)

    def write(old: Segment, target: NewIndexFolder) -> None:
        for number, each in enumerate(old.folder.names()):
            source = old.folder.open_input(each)
            content = bytes(source.read(0, source.size))
            target.put(each, content if number else bytes(64) + content[64 : len(content) // 2])

    uuid = replace_index(copied, name, write)
    assert uuid in problem_of(copied, name).what


def test_values_of_another_type_are_found(copied: Path) -> None:
    def write(old: Segment, target: NewIndexFolder) -> None:
        entries = pa.RecordBatch.from_arrays([pa.array([1.5]), pa.array([0], pa.uint64())], names=["values", "ids"])
        trainer = TRAINERS["btree"]
        trainer.write(Training([entries], pa.float64(), target, trainer.defaults, 1 << 26))

    replace_index(copied, "texts", write)
    assert "has values of double, but the column has string" in problem_of(copied, "texts").what


@pytest.mark.filterwarnings("ignore:the index")
@pytest.mark.parametrize("name", [each[0] for each in INDICES])
def test_damaged_bytes_raise_no_other_errors(copied_single: Callable[[str], Path], name: str) -> None:
    path = copied_single(name)
    rng = random.Random(7)
    segment = segment_of(path, name)
    for each in segment.folder.names():
        file = path / "_indices" / segment.metadata.uuid / each
        content = file.read_bytes()
        for _ in range(3):
            changed = bytearray(content)
            changed[rng.randrange(len(content))] = rng.randrange(256)
            file.write_bytes(changed)
            with suppress(DamagedIndexError):
                validate(path)
        file.write_bytes(content)
