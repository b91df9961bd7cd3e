"""Tests of changed names, types and nullability of columns: the same call on copies of one dataset as the reference."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_dataset
from lance_dataset.errors import CommitConflictError, InvalidInputError, SchemaError, UnsupportedError

Alterations = tuple[dict[str, Any], ...]

TABLE = pa.table(
    {
        "a": pa.array([1, 2, 300, 4]),
        "b": ["x", "y", None, "w"],
        "s": [{"x": 1, "y": "p"}] * 3 + [None],
        "l": [[1], [2, 3], [], None],
        "ls": [[{"k": 1, "j": "q"}], [], None, [{"k": 2, "j": None}]],
        "m": pa.array([[("k", 1)], [], None, [("z", 2)]], pa.map_(pa.string(), pa.int64())),
    }
)
STRUCTS = TABLE.drop_columns(["m"]).set_column(2, "s", pa.array([{"x": 1, "y": "p"}, {"x": 5, "y": None}] * 2))


def at(path: str, **changes: Any) -> dict[str, Any]:
    return {"path": path, **changes}


def outcome(library: Any, path: Path, change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return the table after a change as both libraries read it, or the error."""
    try:
        change(library.dataset(path))
    except (OSError, TypeError, ValueError) as error:
        return error, None
    made, other = lance.dataset(path), lance_dataset.dataset(path)
    columns = [*made.schema.names, "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    rows = repr(made.to_table(columns=columns).to_pydict())
    assert repr(other.to_table(columns=columns).to_pydict()) == rows
    assert other.schema == made.schema
    operation = made.read_transaction(made.version).operation
    files = [
        [(sorted(file.fields), len(file.column_indices)) for file in each.data_files()] for each in made.get_fragments()
    ]
    ids = [(field.name(), field.id()) for field in made.lance_schema.fields()]
    preserves = getattr(operation, "preserves_nullability", None)
    return rows, str(made.schema), made.version, ids, files, type(operation).__name__, preserves


def both(
    tmp_path: Path, table: pa.Table, *alterations: dict[str, Any], delete: str | None = None, **options: Any
) -> Any:
    """Return the outcomes of this package and of the reference."""
    start = tmp_path / "start"
    if not start.exists():
        written = lance.write_dataset(table, start, max_rows_per_file=3, **options)
        if delete is not None:
            written.delete(delete)
    ends = []
    for library in (lance_dataset, lance):
        path = tmp_path / library.__name__
        shutil.copytree(start, path)
        ends.append(outcome(library, path, lambda dataset: dataset.alter_columns(*alterations)))
        shutil.rmtree(path)
    return ends


def assert_alike(ours: Any, theirs: Any) -> None:
    """Check that both have the same outcome, or that our error is of the class of the reference's error."""
    assert ours[1:] == theirs[1:]
    assert ours[0] == theirs[0] or isinstance(ours[0], type(theirs[0]))


LIKE_THE_REFERENCE: dict[str, Alterations] = {
    "nothing": (),
    "swap": (at("a", name="b"), at("b", name="a")),
    "chain": (at("a", name="b"), at("b", name="c"), at("s", name="a")),
    "taken": (at("a", name="b"),),
    "case": (at("a", name="A"),),
    "other case": (at("A", name="c"),),
    "dotted": (at("a", name="c.d"),),
    "nested": (at("s.x", name="q"),),
    "nested cast": (at("s.x", name="q", data_type=pa.int32()),),
    "item": (at("l.item", name="q"),),
    "item cast": (at("l.item", data_type=pa.int32()),),
    "below a list": (at("ls.item.k", data_type=pa.int32()),),
    "below a list, named": (at("ls.item", name="it"), at("ls.item.k", data_type=pa.int8(), name="j2")),
    "without the item": (at("ls.k", data_type=pa.int32()),),
    "map value": (at("m.entries.value", name="v"),),
    "twice": (at("a", name="c"), at("a", name="d")),
    "then": (at("a", name="c"), at("c", name="d")),
    "required": (at("a", nullable=False),),
    "required with nulls": (at("b", nullable=False),),
    "required below null structs": (at("s.x", nullable=False),),
    "required and cast": (at("a", data_type=pa.int32(), nullable=False),),
    "several": (at("a", data_type=pa.int32()), at("b", name="bb"), at("s.x", data_type=pa.int8())),
    "parent and child": (at("s", name="ss"), at("s.x", name="xx", data_type=pa.int32())),
    "same type": (at("a", data_type=pa.int64()),),
    "struct cast": (at("s", data_type=pa.struct([("x", pa.int32())])),),
    "list cast": (at("l", data_type=pa.large_list(pa.int16())),),
    "overflow": (at("a", data_type=pa.int8()),),
    "quoted": (at("`a`", name="q"),),
    "nullable": (at("s", nullable=True), at("s.x", nullable=True)),
    "no change": (at("a"),),
    "unknown key": (at("a", type=pa.int8()),),
    "no path": ({"name": "a"},),
    "unknown": (at("zz", name="a"),),
    "text for a type": (at("a", data_type="int32"),),
    "number for a truth": (at("a", nullable=1),),
}


@pytest.mark.parametrize("name", LIKE_THE_REFERENCE)
def test_like_the_reference(tmp_path: Path, name: str) -> None:
    assert_alike(*both(tmp_path, TABLE, *LIKE_THE_REFERENCE[name]))


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.3"])
@pytest.mark.parametrize("name", ["flat", "struct", "item"])
def test_file_versions(tmp_path: Path, version: str, name: str) -> None:
    """Rows stay correct in every file version.

    The reference misreads some columns that are spread over several files in early versions.
    """
    alteration = {
        "flat": at("a", data_type=pa.int16(), name="aa"),
        "struct": at("s.x", data_type=pa.int16()),
        "item": at("l.item", data_type=pa.int16()),
    }[name]
    table = STRUCTS if version != "0.1" else STRUCTS.slice(0, 2).append_column("z", pa.array([0, 0]))
    path = tmp_path / "d"
    lance.write_dataset(table, path, max_rows_per_file=3, data_storage_version=version)
    before = lance.dataset(path).to_table().to_pylist()
    outcome(lance_dataset, path, lambda dataset: dataset.alter_columns(alteration))
    renamed = [{"aa" if key == "a" and name == "flat" else key: value for key, value in row.items()} for row in before]
    assert lance.dataset(path).to_table().to_pylist() == renamed
    assert len(lance_dataset.dataset(path).get_fragments()[0].data_files()) == 2


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("delete", ["a = 300", "a < 3", "a > 1", "true"])
def test_values_of_deleted_rows_do_not_matter(tmp_path: Path, delete: str, stable: bool) -> None:
    """Values of deleted rows may be null or out of range, and row lineage matches the reference."""
    alterations = (at("a", data_type=pa.int16()), at("l.item", data_type=pa.int8()), at("ls.item.j", name="jj"))
    ours, theirs = both(tmp_path, TABLE, *alterations, delete=delete, enable_stable_row_ids=stable)
    assert ours == theirs
    assert_alike(*both(tmp_path, TABLE, at("s", nullable=False), delete=delete))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("delete", ["false", "i % 3 = 0", "i < 5", "i >= 12", "i < 14"])
def test_fields_of_list_items_with_deleted_rows(tmp_path: Path, version: str, delete: str) -> None:
    """Fields of list items can be cast in several steps when rows are deleted.

    The lists in all files must have the same lengths in deleted rows too. The reference cannot read what it writes
    here.
    """
    items = [[{"a": 10 * i + k, "b": f"{i} {k}", "c": {"d": k / 2}} for k in range(i % 4)] for i in range(30)]
    kind = pa.array(items).type
    nested = [[item, []] if i % 7 else None for i, item in enumerate(items)]
    wide = pa.array(items, pa.large_list(kind.value_type))
    table = pa.table({"i": range(30), "l": items, "ll": pa.array(nested, pa.list_(kind)), "w": wide})
    path = tmp_path / "d"
    lance.write_dataset(table, path, max_rows_per_file=15, data_storage_version=version).delete(delete)
    expected = lance.dataset(path).to_table()
    dataset = lance_dataset.dataset(path)
    dataset.alter_columns(at("l.item.a", data_type=pa.int32()), at("ll.item.item.c.d", data_type=pa.float32()))
    dataset.alter_columns(at("l.item.c.d", data_type=pa.float32()), at("l.item.b", name="bb"))
    dataset.alter_columns(at("l.item.bb", name="b"), at("w.item.a", data_type=pa.int16()))
    dataset.validate()
    rows = list(range(0, expected.num_rows, 2))
    for library in (lance, lance_dataset):
        read = library.dataset(path)
        assert read.to_table().to_pydict() == expected.to_pydict()
        assert read.take(rows).to_pydict() == expected.take(rows).to_pydict()
        assert library.dataset(path, version=1).to_table().to_pydict() == table.to_pydict()


@pytest.mark.parametrize("delete", ["i in (2, 5)", "i = 9", "i < 3"])
def test_lists_that_the_reference_cast(tmp_path: Path, delete: str) -> None:
    """List items that the reference cast are read correctly beside deleted rows.

    The reference writes null lists for deleted rows in the new file only. Rows 2 and 5 together have as many items.
    """
    lengths = [1, 2, 3, 1, 2, 0, 4, 1, 1, 2]
    items = [[{"a": i, "b": 100 * i + k} for k in range(length)] for i, length in enumerate(lengths)]
    dataset = lance.write_dataset(pa.table({"i": range(10), "l": items}), tmp_path / "d")
    dataset.delete(delete)
    expected = lance.dataset(tmp_path / "d").to_table()
    dataset = lance.dataset(tmp_path / "d")
    dataset.alter_columns(at("l.item.a", data_type=pa.int32()))
    for library in (lance, lance_dataset):
        read = library.dataset(tmp_path / "d")
        assert read.to_table().to_pydict() == expected.to_pydict()
        assert read.to_table(filter="i > 4")["l"].to_pylist() == expected.filter(pc.field("i") > 4)["l"].to_pylist()
        assert read.take([0, 3, 6]).to_pydict() == expected.take([0, 3, 6]).to_pydict()
    ours = lance_dataset.dataset(tmp_path / "d")
    ours.optimize.compact_files()
    assert lance.dataset(tmp_path / "d").to_table().to_pydict() == expected.to_pydict()


NULLS = {
    "a": pa.array([1, None, 3]),
    "t": pa.array(["x", None, "z"]),
    "l": pa.array([[1], None, [3]]),
    "f": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float32(), 2)),
    "s": pa.array([{"x": 1}, {"x": None}, {"x": 2}]),
    "r": pa.array([{"x": 1}, None, {"x": 2}]),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3"])
def test_nulls_in_deleted_rows_of_required_columns(tmp_path: Path, version: str) -> None:
    """Required columns with nulls in deleted rows can be read and cast, whichever library made them required.

    The reference cannot cast such columns.
    """
    table = pa.table(NULLS)
    if version == "2.0":
        table = table.drop_columns(["r"])
    required = [at("s.x" if name == "s" else name, nullable=False) for name in table.column_names]
    for library in (lance, lance_dataset):
        path = tmp_path / library.__name__
        lance.write_dataset(table, path, data_storage_version=version).delete("a is null")
        library.dataset(path).alter_columns(*required)
        expected = lance.dataset(path).to_table()
        assert expected.num_rows == 2
        dataset = lance_dataset.dataset(path)
        assert dataset.to_table() == expected == dataset.take([0, 1])
        dataset.alter_columns(at("a", data_type=pa.int8()), at("l", data_type=pa.list_(pa.int8())))
        dataset.alter_columns(at("t", data_type=pa.large_string()), at("s.x", data_type=pa.int16()))
        for reader in (lance, lance_dataset):
            assert reader.dataset(path).to_table().to_pydict() == expected.to_pydict()


def test_an_empty_table(tmp_path: Path) -> None:
    ours, theirs = both(tmp_path, TABLE.slice(0, 0), at("a", data_type=pa.int8()), at("s.x", data_type=pa.int8()))
    assert ours == theirs
    shutil.rmtree(tmp_path / "start")
    ours, theirs = both(tmp_path, TABLE.slice(0, 0), at("b", nullable=False))
    assert ours == theirs


# -- casts -------------------------------------------------------------------------------------------------------

STAMPS = [-1, -1_999_999, -86_400_000_001, 86_399_999_999, 1_600_000_000_123_456, None]
VALUES = {
    "int64": pa.array([1, -2, None, 127]),
    "uint64": pa.array([1, 2, None, 2**63], pa.uint64()),
    "double": pa.array([1.0, 1e300, None, float("nan"), -3.7, 1.0004882812509095]),
    "string": pa.array(["a", "b", None, "a"]),
    "binary": pa.array([b"a", None, b"\xff"]),
    "decimal": pa.array([Decimal("1.25"), Decimal("-0.05"), None, Decimal("99.94")], pa.decimal128(6, 2)),
    "date": pa.array([dt.date(2020, 1, 1), None, dt.date(1960, 2, 3)]),
    "stamp": pa.array(STAMPS, pa.timestamp("us")),
    "zoned": pa.array([0, 86_400, None], pa.timestamp("s", "America/New_York")),
    "duration": pa.array([1, 1999, None, -1], pa.duration("ms")),
    "time": pa.array([1, 1_999_999, None], pa.time64("us")),
    "dictionary": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    "fixed list": pa.array([[1, 2], None, [3, None]], pa.list_(pa.float32(), 2)),
    "list": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int64())),
    "nested list": pa.array([[[1], None], None, []], pa.list_(pa.list_(pa.int64()))),
    "bool": pa.array([True, None]),
    "struct": pa.array([{"x": 1}, None]),
}
TYPES = {
    *(pa.bool_(), pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.string(), pa.large_string()),
    *(pa.large_binary(), pa.binary(2), pa.decimal128(4, 1), pa.decimal256(40, 3), pa.date32(), pa.timestamp("s")),
    *(pa.timestamp("ns"), pa.timestamp("us", "America/New_York"), pa.time32("s"), pa.time64("ns"), pa.duration("s")),
    *(pa.list_(pa.float16(), 2), pa.list_(pa.int8(), 2), pa.list_(pa.int8()), pa.large_list(pa.float64())),
    *(pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.large_list(pa.int32())), pa.struct([("x", pa.int64())])),
}


@pytest.mark.parametrize("name", VALUES)
def test_casts(tmp_path: Path, name: str) -> None:
    """Casts accept, refuse and convert the same values as the reference."""
    start = tmp_path / "start"
    lance.write_dataset(pa.table({"c": VALUES[name]}), start)
    for wanted in sorted(TYPES, key=str):
        found = []
        for library in (lance_dataset, lance):
            path = tmp_path / library.__name__
            if not path.exists():
                shutil.copytree(start, path)
            found.append(
                outcome(library, path, lambda dataset, kind=wanted: dataset.alter_columns(at("c", data_type=kind)))
            )
            if found[-1][1] is not None:
                shutil.rmtree(path)
        assert_alike(*found)


def test_where_the_reference_gives_wrong_values(tmp_path: Path) -> None:
    late = pa.table({"d": pa.array([dt.date(9999, 1, 1)])})
    dataset = lance_dataset.write_dataset(late, tmp_path / "a")
    with pytest.raises(InvalidInputError, match="'d'"):
        dataset.alter_columns(at("d", data_type=pa.timestamp("ns")))
    dataset = lance_dataset.write_dataset(pa.table({"t": pa.array(STAMPS, pa.timestamp("us"))}), tmp_path / "b")
    dataset.alter_columns(at("t", data_type=pa.date64()))
    days = [None if s is None else (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=s)).date() for s in STAMPS]
    assert dataset.to_table()["t"].to_pylist() == days


def test_many_dictionary_values(tmp_path: Path) -> None:
    table = pa.table({"c": [f"text {number}" for number in range(300)]})
    dataset = lance_dataset.write_dataset(table, tmp_path / "d")
    with pytest.raises(InvalidInputError, match="'c'"):
        dataset.alter_columns(at("c", data_type=pa.dictionary(pa.int8(), pa.string())))
    dataset.alter_columns(at("c", data_type=pa.dictionary(pa.int16(), pa.string())))
    for library in (lance, lance_dataset):
        assert library.dataset(tmp_path / "d").to_table()["c"].to_pylist() == table["c"].to_pylist()


def test_more_than_the_reference(tmp_path: Path) -> None:
    """Values of maps can be cast and list items made required, and two fields of a struct cannot have the same name."""
    path = tmp_path / "d"
    dataset = lance_dataset.write_dataset(TABLE, path, max_rows_per_file=3)
    rows = dataset.to_table()
    dataset.alter_columns(at("m.entries.value", data_type=pa.int16()), at("m.entries.key", name="word"))
    dataset.alter_columns(
        at("l.item", nullable=False), at("ls.item.k", nullable=False), at("m.entries.value", nullable=False)
    )
    for refused, error in (
        (at("s.x", name="y"), SchemaError),
        (at("m.entries.word", nullable=True), SchemaError),
        (at("ls.item.j", nullable=False), InvalidInputError),
    ):
        with pytest.raises(error):
            dataset.alter_columns(refused)
    for library in (lance, lance_dataset):
        assert library.dataset(path).to_table().to_pylist() == rows.to_pylist()
    assert lance.dataset(path).schema.field("m").type.item_field == pa.field("value", pa.int16(), nullable=False)


def test_refused(tmp_path: Path) -> None:
    keyed = pa.schema([pa.field("a", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})])
    dataset = lance_dataset.write_dataset(pa.table({"a": [1]}, keyed), tmp_path / "key")
    with pytest.raises(InvalidInputError, match="Primary key"):
        dataset.alter_columns(at("a", nullable=True))
    indexed = lance.write_dataset(TABLE, tmp_path / "indexed")
    indexed.create_scalar_index("a", "BTREE")
    dataset = lance_dataset.dataset(tmp_path / "indexed")
    with pytest.raises(InvalidInputError, match="a_idx"):
        dataset.alter_columns(at("a", data_type=pa.int32()))
    dataset.alter_columns(at("a", name="q"), at("b", name="a"))
    assert [index["fields"] for index in lance.dataset(tmp_path / "indexed").list_indices()] == [["q"]]
    words = lance_dataset.write_dataset(pa.table({"j": pa.array(['{"a":1}'], pa.json_())}), tmp_path / "json")
    with pytest.raises(InvalidInputError, match="from large_binary to string"):
        words.alter_columns(at("j", data_type=pa.string()))
    with pytest.raises(UnsupportedError, match="its storage type int8"):
        dataset.alter_columns(at("q", data_type=pa.bool8()))
    with pytest.raises(TypeError):
        words.alter_columns("j")
    with pytest.raises(NotImplementedError):
        words.replace_schema(words.schema)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize(
    ("storage", "extension", "wanted"),
    [
        (pa.array([1, 0, None, 5], pa.int8()), pa.bool8(), pa.int16()),
        (pa.array([1, 0, None, 5], pa.int8()), pa.bool8(), pa.int8()),
        (pa.array(['{"a":1}', None, "[]"]), pa.json_(), pa.large_binary()),
        (pa.array(['{"a":1}', None, "[]"]), pa.json_(), pa.binary()),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)), pa.fixed_shape_tensor(pa.float32(), [2]), None),
        (pa.array([b"0" * 16, b"1" * 16], pa.binary(16)), pa.uuid(), pa.binary()),
    ],
    ids=["bool8 wider", "bool8", "json", "json, short", "tensor", "uuid"],
)
def test_extension_types(
    tmp_path: Path, storage: pa.Array, extension: pa.DataType, wanted: pa.DataType | None, version: str
) -> None:
    """A cast converts the storage type of an extension type, and the column has a plain type afterwards."""
    table = pa.table({"a": range(len(storage)), "x": pa.ExtensionArray.from_storage(extension, storage)})
    wanted = pa.list_(pa.float64(), 2) if wanted is None else wanted
    ours, theirs = both(tmp_path, table, at("x", data_type=wanted), data_storage_version=version, delete="a = 0")
    assert_alike(ours, theirs)


def test_failed_casts_leave_nothing(tmp_path: Path) -> None:
    table = pa.table({"a": np.r_[np.zeros(5000, np.int64), 300]})
    dataset = lance_dataset.write_dataset(table, tmp_path / "d", max_rows_per_file=1000)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError, match="300"):
        dataset.alter_columns(at("a", data_type=pa.int8()))
    assert sorted(tmp_path.rglob("*")) == before
    assert dataset.version == 1


def test_beside_other_writers(tmp_path: Path) -> None:
    """A change is repeated on the newest version if possible, and rows appended by other writers are cast too."""
    dataset = lance_dataset.write_dataset(pa.table({"a": [1], "b": [2]}), tmp_path / "d")
    lance.write_dataset(pa.table({"a": [3], "b": pa.nulls(1, pa.int64())}), tmp_path / "d", mode="append")
    dataset.alter_columns(at("a", data_type=pa.int16()))
    assert dataset.to_table().to_pydict() == {"a": [1, 3], "b": [2, None]}
    stale = lance_dataset.dataset(tmp_path / "d", version=1)
    with pytest.raises(InvalidInputError, match="NULL"):
        stale.alter_columns(at("b", nullable=False))
    stale.alter_columns(at("b", name="c"))
    assert lance.dataset(tmp_path / "d").schema.names == ["a", "c"]
    stale = lance_dataset.dataset(tmp_path / "d")
    lance.write_dataset(pa.table({"a": [1]}), tmp_path / "d", mode="overwrite")
    with pytest.raises(CommitConflictError):
        stale.alter_columns(at("a", name="z"))


def test_versions_before_stay(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "d")
    dataset.alter_columns(at("a", data_type=pa.int16(), name="b"), at("b", name="a"))
    for library in (lance, lance_dataset):
        assert library.dataset(tmp_path / "d", version=1).to_table().to_pydict() == TABLE.to_pydict()


# -- sequences ---------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d", "s", "s.x", "s.y", "l", "l.item"])
LEAVES = st.sampled_from([pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.large_string(), pa.list_(pa.int32())])
STEPS = st.one_of(
    st.tuples(st.just("drop"), st.lists(NAMES, min_size=1, max_size=2)),
    st.tuples(st.just("add"), st.sampled_from(["c", "d", "e"])),
    st.tuples(st.just("delete"), st.sampled_from(["true", "_rowid % 3 = 1", "_rowid < 2"])),
    st.tuples(
        st.just("alter"),
        st.lists(
            st.fixed_dictionaries(
                {"path": NAMES},
                optional={"name": st.sampled_from("abcdxyz"), "nullable": st.booleans(), "data_type": LEAVES},
            ),
            min_size=1,
            max_size=2,
        ),
    ),
)


def step(library: Any, path: Path, kind: str, given: Any) -> bool:
    """Run a step and return True if it succeeded."""
    dataset = library.dataset(path)
    try:
        if kind == "drop":
            dataset.drop_columns(given)
        elif kind == "delete":
            dataset.delete(given)
        elif kind == "add":
            dataset.add_columns(pa.field(given, pa.int64()))
        else:
            dataset.alter_columns(*given)
    except (OSError, ValueError):
        return False
    return True


def is_known_difference(path: Path, kind: str, given: Any) -> bool:
    """Return True for alterations that only one library supports, or that only one performs correctly."""
    if kind != "alter":
        return False
    paths = [each["path"] for each in given]
    below = any(each.get("nullable") is False and each["path"] == "l.item" for each in given)
    structs = any(each.get("name") in ("x", "y") and each["path"].startswith("s.") for each in given)
    return below or structs or len(set(paths)) < len(paths) or {"l", "l.item"} <= set(paths)


@settings(max_examples=25)
@given(stable=st.booleans(), steps=st.lists(STEPS, min_size=1, max_size=5))
def test_sequences(tmp_path_factory: pytest.TempPathFactory, stable: bool, steps: list[tuple[str, Any]]) -> None:
    """Random schema changes by each library on two copies give the same schemas, field ids and rows."""
    folder = tmp_path_factory.mktemp("sequence")
    table = pa.table(
        {
            "a": [1, 2, None, 4, 5],
            "b": ["x", None, "z", "w", "v"],
            "s": [{"x": 1, "y": "p"}, {"x": None, "y": "q"}, None, {"x": 2, "y": None}, {"x": 3, "y": "r"}],
            "l": [[1], [], None, [2, None], [3]],
        }
    )
    paths = {library: folder / library.__name__ for library in (lance_dataset, lance)}
    lance.write_dataset(table, paths[lance], max_rows_per_file=2, enable_stable_row_ids=stable)
    shutil.copytree(paths[lance], paths[lance_dataset])
    for kind, how in steps:
        if is_known_difference(folder, kind, how):
            continue
        done = [step(library, path, kind, how) for library, path in paths.items()]
        assert done[0] == done[1], (kind, how)
        ours, theirs = (lance.dataset(path) for path in paths.values())
        assert ours.schema == theirs.schema
        assert ours.max_field_id == theirs.max_field_id
        if not all(fragment.data_files() for fragment in theirs.get_fragments()):
            return  # the reference drops the last file of a fragment, and cannot read the rows any more
        mine = lance_dataset.dataset(paths[lance_dataset]).to_table()
        assert repr(mine.to_pydict()) == repr(ours.to_table().to_pydict()) == repr(theirs.to_table().to_pydict())


@pytest.mark.parametrize("stable", [False, True])
def test_rows_stay_when_the_last_columns_with_values_are_dropped(tmp_path: Path, stable: bool) -> None:
    """The columns that remain are null everywhere, and no file holds them."""
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})
    dataset = lance_dataset.write_dataset(table, tmp_path / "d", max_rows_per_file=2, enable_stable_row_ids=stable)
    dataset.add_columns(pa.field("c", pa.int64()))
    dataset.drop_columns(["a", "b"])
    expected = pa.table({"c": pa.nulls(3, pa.int64())})
    for library in (lance_dataset, lance):
        assert library.dataset(tmp_path / "d").to_table() == expected
        assert library.dataset(tmp_path / "d").take([2, 0]).num_rows == 2
    dataset.add_columns({"d": "1"})
    dataset.optimize.compact_files()
    assert lance.dataset(tmp_path / "d").to_table(columns=["d"])["d"].to_pylist() == [1, 1, 1]
