"""Tests of scan options: accepted values and results, compared with the reference."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.reference.outcomes import Call, check_call

import lance_dataset
from lance_dataset.dataset import ScannerBuilder, serialize_row_addrs


def scan(**options: Any) -> Call:
    return lambda lib, ds: ds.scanner(**{"columns": ["id"], "filter": "id >= 0", **options}).to_table()


def addresses(*values: int) -> bytes:
    return bytes(importlib.import_module("lance.dataset").serialize_row_addrs(list(values)))


ALLOWED = addresses(0, 1, 3, 7, (1 << 32) + 2, (2 << 32) + 1, (9 << 32) + 1)
WHOLE_FRAGMENT = struct.pack("<III", 1, 1, 0)

VALUES: dict[str, list[Any]] = {
    "batch_readahead": [1, 4, 0, -1, 1.5],
    "batch_size": [1, 0, 1.0, "1", 2**32, np.int16(3)],
    "batch_size_bytes": [0, 100, 1.5, "1"],
    "blob_handling": ["x", 1, "all_descriptions"],
    "columns": [["st.x", "id"], ["id", "id"], ["_score"], {"st.x"}, "id", 5, [1], [None], [("a", "id")], {"a": 1}],
    "disable_scoring_autoprojection": [True, False, 1, "x"],
    "fast_search": [True, False, "x", 1],
    "filter": ["", "  ", "id >", "zz = 1", {}, {"expr_filter": None}, {"expr_filter": "id < 5"}],
    "fragment_readahead": [1, 2, 0, -1],
    "include_deleted_rows": [True, False, 1, "x"],
    "io_buffer_size": [0, 1, 1 << 30, "1", 1.5],
    "late_materialization": [True, False, ["id"], ["s"], ("s",), ["st.x"], ["zz"], 1, "id", {}, [1]],
    "limit": [0, 1, -1, 1.0, "1", np.uint8(2), np.float64(2), 2**62],
    "offset": [0, 1, 50, 100, -1, 1.0, "1", np.int8(3)],
    "order_by": [["id"], ("id",), ["id", "id"], [], "id", 5, [1], [None], [("id", "descending")], ["zz"], ["`id`"]],
    "prefilter": [True, False, 1, "x"],
    "row_addr_allowlist": [ALLOWED, addresses(), bytearray(ALLOWED), b"", b"junk", ALLOWED[:-1], ALLOWED + b"x", "x"],
    "row_addr_blocklist": [ALLOWED, addresses(), WHOLE_FRAGMENT, b"", b"\x01\x00\x00\x00", 5],
    "scan_in_order": [True, 1, "x"],
    "scan_stats_callback": [print, 1],
    "strict_batch_size": [True, False, 1, "x"],
    "use_scalar_index": [True, False, 0, "x"],
    "use_stats": [True, False, 1, "x"],
    "with_row_address": [True, False, 1, "x"],
    "with_row_id": [True, False, 1, "x"],
}
CASES = [(name, value) for name, values in VALUES.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{name}={str(value)[:40]!r}" for name, value in CASES])
def test_values(both: tuple[Any, Any], name: str, value: Any) -> None:
    check_call(scan(**{name: value}), both)


COMBINED: dict[str, Call] = {
    "allow_and_block": scan(row_addr_allowlist=ALLOWED, row_addr_blocklist=addresses(1)),
    "allow_limit": scan(filter=None, row_addr_allowlist=ALLOWED, limit=2, offset=1),
    "allow_no_filter": scan(filter=None, row_addr_allowlist=ALLOWED),
    "block_no_filter": scan(filter=None, row_addr_blocklist=ALLOWED),
    "allow_whole": scan(filter=None, row_addr_allowlist=WHOLE_FRAGMENT),
    "allow_row_id": scan(filter="_rowid in (1, 2, 7)", row_addr_allowlist=ALLOWED),
    "allow_sorted": scan(columns=["n"], row_addr_allowlist=ALLOWED, order_by=["id"], with_row_id=True),
    "allow_count": lambda lib, ds: ds.scanner(columns=["id"], row_addr_allowlist=ALLOWED).count_rows(),
    "allow_empty_columns": scan(columns=[], filter=None, row_addr_allowlist=ALLOWED, with_row_id=True),
    "allow_offset": scan(columns=["_rowoffset", "id"], row_addr_allowlist=ALLOWED),
    "allow_deleted": scan(filter=None, row_addr_allowlist=ALLOWED, include_deleted_rows=True, with_row_id=True),
    "allow_fragments": lambda lib, ds: ds.scanner(
        columns=["id"], fragments=ds.get_fragments()[1:], row_addr_allowlist=ALLOWED
    ).to_table(),
    "fragments_iterator": lambda lib, ds: ds.scanner(columns=["id"], fragments=iter(ds.get_fragments()[:1])).to_table(),
    "fragments_number": lambda lib, ds: ds.scanner(fragments=3),
    "fragments_one": lambda lib, ds: ds.scanner(fragments=ds.get_fragments()[0]),
    "order_nested": scan(columns=["s"], with_row_id=True, order_by=["st.x"]),
    "order_nested_limit": scan(columns=["s"], with_row_id=True, order_by=["st.`x`"], limit=4, offset=1),
    "order_deep": scan(columns=["id"], with_row_id=True, order_by=["st.deep.z"], limit=4),
    "default_options": lambda lib, ds: lib.dataset(
        ds.uri, default_scan_options={"columns": ["id"], "limit": 3, "with_row_id": True}
    ).to_table(),
    "default_overridden": lambda lib, ds: (
        lib.dataset(ds.uri, default_scan_options={"columns": ["id"], "limit": 3, "with_row_id": True})
        .scanner(columns=["s"], limit=1, with_row_id=False)
        .to_table()
    ),
    "default_unknown": lambda lib, ds: lib.dataset(ds.uri, default_scan_options={"foo": 1}).to_table(),
    "nearest": scan(nearest={"column": "vec", "q": [1.0] * 3}),
    "full_text": scan(full_text_query="x"),
    "index_segments": scan(index_segments=["x"]),
}


@pytest.mark.parametrize("name", COMBINED)
def test_combined(both: tuple[Any, Any], name: str) -> None:
    check_call(COMBINED[name], both)


def test_stable_row_ids(tmp_path: Path) -> None:
    """Allow lists and block lists hold row addresses, not row ids, where these differ."""
    written = lance.write_dataset(
        pa.table({"id": range(40), "n": [row % 7 for row in range(40)]}),
        tmp_path,
        max_rows_per_file=15,
        enable_stable_row_ids=True,
    )
    written.update({"n": "100"}, where="id = 1")
    written.delete("id = 0")
    both = lance_dataset.dataset(tmp_path), lance.dataset(tmp_path)
    chosen = addresses(0, 1, 2, 3 << 32)
    for options in (
        {"row_addr_allowlist": chosen},
        {"row_addr_blocklist": chosen},
        {"row_addr_allowlist": chosen, "filter": "_rowid = 1"},
        {"row_addr_blocklist": chosen, "filter": "n > 3", "order_by": ["n", "id"]},
    ):
        check_call(scan(with_row_id=True, with_row_address=True, **{"filter": None, **options}), both)


def test_row_address_bytes() -> None:
    for values in ([], [0], [1, 0, 1, (2 << 32) + 5], list(range(0, 100_000, 7)), [(1 << 64) - 1], {3, 2}):
        assert serialize_row_addrs(values) == addresses(*values)
    with pytest.raises(TypeError, match="integer"):
        serialize_row_addrs(["x"])
    with pytest.raises(lance_dataset.errors.InvalidInputError, match="between"):
        serialize_row_addrs([-1])


def test_hostile_row_address_bytes(both: tuple[Any, Any]) -> None:
    """Truncated sets and sets with too large counts raise `InvalidInputError`."""
    for size in range(len(ALLOWED)):
        with pytest.raises(lance_dataset.errors.InvalidInputError, match="row_addr_allowlist"):
            both[0].scanner(row_addr_allowlist=ALLOWED[:size])
    with pytest.raises(lance_dataset.errors.InvalidInputError, match="serialize_row_addrs"):
        both[0].scanner(row_addr_blocklist=b"\xff" * 12)


REFUSED: list[tuple[str, Callable[[ScannerBuilder], ScannerBuilder]]] = [
    ("Substrait", lambda builder: builder.substrait_aggregate(b"")),
]


@pytest.mark.parametrize(("words", "refused"), REFUSED)
def test_refused(both: tuple[Any, Any], words: str, refused: Callable[[ScannerBuilder], ScannerBuilder]) -> None:
    with pytest.raises(lance_dataset.errors.UnsupportedError, match=words):
        refused(ScannerBuilder(both[0]))


def test_messages_say_what_was_meant(both: tuple[Any, Any]) -> None:
    ds = both[0]
    with pytest.raises(TypeError, match="did you mean 'with_row_id'"):
        ds.scanner(with_rowid=True)
    with pytest.raises(lance_dataset.errors.InvalidInputError, match="did you mean 'limit'"):
        ScannerBuilder(ds).apply_defaults({"limits": 3})
    with pytest.raises(lance_dataset.errors.InvalidInputError, match="did you mean 'expr_filter'"):
        ds.scanner(filter={"expr_filtre": "id > 3"})
    with pytest.raises(lance_dataset.errors.FieldNotFoundError, match="to sort by; did you mean 'flag'"):
        ds.scanner(order_by=["flg"])
    with pytest.raises(lance_dataset.errors.FieldNotFoundError, match="to read late"):
        ds.scanner(late_materialization=["flg"])
    with pytest.raises(lance_dataset.errors.FilterError, match=r"position 5[\s\S]*\n       \^"):
        ds.scanner(filter="id > > 3")
    with pytest.raises(lance_dataset.errors.UnsupportedError, match="no order"):
        ds.scanner(order_by=["st"])


def test_fast_search_leaves_out_fragments_without_an_index(tmp_path: Path) -> None:
    """As in the reference: only if an index answers the filter or a part of it, whatever a scan would cost."""
    table = pa.table({"id": range(10), "x": range(10), "y": range(10)})
    lance.write_dataset(table, tmp_path).create_scalar_index("id", "BTREE")
    theirs = lance.write_dataset(table, tmp_path, mode="append")
    ds = lance_dataset.dataset(tmp_path)
    filters = ("id > 3", "x > 3", "id > 3 AND x > 5", "id > 3 OR x = 0", "NOT (id > 3)", "id IS NULL", "id + 1 = 4")
    for each in filters:
        found = ds.scanner(filter=each, fast_search=True)
        expected = theirs.scanner(filter=each, fast_search=True)
        assert found.to_table() == expected.to_table(), each
        assert found.count_rows() == expected.count_rows()
        assert list(found.to_batches()) == list(found.to_table().to_batches())
    assert ds.scanner(filter="id > 3", fast_search=True).count_rows() == 6
    assert ds.scanner(filter="id > 3", fast_search=True, use_scalar_index=False).count_rows() == 12
    assert ds.scanner(fast_search=True).count_rows() == 20
    assert ds.scanner(filter="id > 3", fast_search=True, limit=2, offset=5).to_table()["id"].to_pylist() == [9]


def test_a_builder_forgets(both: tuple[Any, Any]) -> None:
    builder = ScannerBuilder(both[0]).columns(iter(["id"])).limit(3).filter("id > 3")
    assert builder.to_scanner().to_table() == builder.to_scanner().to_table()
    builder.limit(None).filter(None).columns(None)
    assert builder.to_scanner().projected_schema == both[0].schema
    assert builder.to_scanner().count_rows() == both[0].count_rows()


def test_any_order(both: tuple[Any, Any]) -> None:
    """A scan returns the same rows in whatever order they come."""
    found = both[0].scanner(columns=["id"], filter=pc.field("n") > 3, scan_in_order=False).to_table()
    expected = both[1].scanner(columns=["id"], filter="n > 3").to_table()
    assert sorted(found["id"].to_pylist()) == expected["id"].to_pylist()


X = pa.field("x", pa.int64(), nullable=False)
NOT_NULL = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("st", pa.struct([X, pa.field("y", pa.int64())]), nullable=False),
        pa.field("loose", pa.struct([X])),
        pa.field("n", pa.int64()),
    ]
)
COMPUTED = [
    *("id + 1", "id + n", "id % 2", "-id", "id << 1", "cast(id as double)", "try_cast(id as int)"),
    *("id = 3", "id is null", "n is null", "id is distinct from n", "(id > 3) is true", "(n > 3) is true"),
    *("id in (1, 2)", "n in (1, 2)", "id in (1, null)", "id > 3 and id < 4", "id > 3 or n < 4", "not (id > 3)"),
    *("abs(id)", "upper(text)", "text || 'x'", "text like 'a%'", "starts_with(text, 'a')", "coalesce(id, 1)"),
    *("coalesce(n, 1)", "coalesce(n, n)", "nullif(id, 1)", "st.x", "st.y", "loose.x", "id between 1 and 2"),
]


def test_which_computed_columns_may_be_null(tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "a", "st": {"x": 1, "y": None}, "loose": None, "n": None}]
    lance.write_dataset(pa.Table.from_pylist(rows, NOT_NULL), tmp_path)
    columns = {"id": "id", **{f"c{number}": text for number, text in enumerate(COMPUTED)}}
    ours, theirs = (lib.dataset(tmp_path).scanner(columns=columns) for lib in (lance_dataset, lance))
    for number, text in enumerate(COMPUTED):
        name = f"c{number}"
        assert ours.projected_schema.field(name).nullable == theirs.projected_schema.field(name).nullable, text
    ours.to_table().validate(full=True)
