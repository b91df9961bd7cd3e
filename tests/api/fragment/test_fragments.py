"""Tests of fragments, compared with the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.reference.outcomes import Call, check_call

import lance_dataset


def of_fragment(call: Any, position: int = 0) -> Call:
    return lambda lib, ds: call(ds.get_fragments()[position])


CALLS: dict[str, Call] = {}
for i in range(4):
    CALLS.update(
        {
            f"{k}-{i}": of_fragment(v, i)
            for k, v in {
                "count": lambda f: f.count_rows(),
                "countf": lambda f: f.count_rows("n>3"),
                "table": lambda f: f.to_table(),
                "cols": lambda f: f.to_table(columns=["s", "id"], with_row_id=True),
                "phys": lambda f: (f.physical_rows, f.num_deletions),
                "meta": lambda f: f.metadata.to_json(),
                "take": lambda f: f.take([0, 2, 2, 1]),
                "limoff": lambda f: f.to_table(columns=["id"], limit=3, offset=2),
                "filter": lambda f: f.to_table(columns=["id"], filter="n>3", limit=2),
                "head": lambda f: f.head(3),
            }.items()
        }
    )
CALLS.update(
    {
        k: of_fragment(v)
        for k, v in {
            "oob": lambda f: f.take([1000]),
            "neg": lambda f: f.take([-1]),
            "takecols": lambda f: f.take([5, 1], columns=["id", "_rowid"]),
            "takeempty": lambda f: f.take([], columns=["id"]),
            "takenested": lambda f: f.take([1], columns=["st.x"]),
            "takedict": lambda f: f.take([1], columns={"a": "id+1"}),
            "schema": lambda f: f.schema,
            "physchema": lambda f: f.physical_schema,
            "pe": lambda f: f.partition_expression,
            "files": lambda f: [
                (d.path, d.fields, d.column_indices, d.file_major_version, d.file_minor_version, d.file_size_bytes)
                for d in f.data_files()
            ],
            "delf": lambda f: f.deletion_file(),
            "batches": lambda f: [b.num_rows for b in f.to_batches(columns=["id"], batch_size=10)],
            "pandas": lambda f: f.to_pandas(columns=["id", "s"]),
            "pandaskw": lambda f: f.to_pandas(columns=["id", "s"], limit=2),
            "scanner": lambda f: f.scanner(columns=["id"], filter=pc.field("n") > 3).to_table(),
            "incl": lambda f: f.to_table(columns=["id"], with_row_id=True, include_deleted_rows=True),
            "order": lambda f: f.to_table(columns=["id"], order_by=["n", "id"]),
            "offset": lambda f: f.to_table(columns=["id", "_rowoffset"]),
            "rowaddr": lambda f: f.to_table(columns=["id"], with_row_address=True),
            "gf": lambda f: len(f.get_fragments()),
            "validate": lambda f: f.validate(),
            "badcol": lambda f: f.to_table(columns=["zz"]),
            "badfilter": lambda f: f.count_rows("zz>1"),
            "strict": lambda f: [
                b.num_rows for b in f.to_batches(columns=["id"], batch_size=4, strict_batch_size=True)
            ],
            "id": lambda f: f.fragment_id,
            "delnothing": lambda f: f.delete("id > 1000").to_json(),
            "delbad": lambda f: f.delete("zz"),
            "delrowsoob": lambda f: f.delete_rows([1000]),
            "delall": lambda f: f.delete("true"),
            "takesys": lambda f: f.take([1], columns=["_rowaddr", "_rowoffset"]),
            "heade": lambda f: f.head(0),
            "posit": lambda f: f.to_table(["id"], "n>3", 3, 1),
            "positp": lambda f: f.to_pandas(["id"], "n>3", 3, 1),
        }.items()
    }
)
CALLS["frag_none"] = lambda lib, ds: lib.LanceFragment(ds, None)
CALLS["frag_bad"] = lambda lib, ds: lib.LanceFragment(ds, 99)

#: Known differences: this package accepts more, checks more strictly, or the reference fails.
DIFFERENT = [
    "frag_bad",
    "gf",
    "order",
    "physchema",
    "take-0",
    "take-1",
    "take-2",
    "take-3",
    "takecols",
    "takedict",
    "takesys",
]


@pytest.mark.parametrize("name", CALLS)
def test_like_the_reference(both: tuple[Any, Any], name: str) -> None:
    """Results match the reference, or the exception is one that handlers written for the reference catch."""
    check_call(CALLS[name], both, different=name in DIFFERENT)


def test_a_fragment_stays_at_its_version(tmp_path: Path) -> None:
    """A fragment keeps its version when the handle that returned it moves on."""

    def seen(lib: Any, name: str) -> list[Any]:
        dataset = lib.write_dataset(pa.table({"i": range(10)}), tmp_path / name)
        of_list, by_id, made = dataset.get_fragments()[0], dataset.get_fragment(0), lib.LanceFragment(dataset, 0)
        dataset.delete("i < 5")
        return [
            (
                *(fragment.count_rows(), fragment.count_rows("i > 0"), fragment.to_table().num_rows),
                *(fragment.num_deletions, fragment.take([0])["i"].to_pylist(), fragment.head(20).num_rows),
            )
            for fragment in (of_list, by_id, made)
        ] + [dataset.get_fragment(0).to_table().num_rows]

    assert seen(lance_dataset, "ours") == seen(lance, "theirs")


def test_fragments_outlive_those_of_the_handle(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"i": range(10)}), tmp_path / "data")
    fragment = dataset.get_fragment(0)
    dataset.delete("true")
    assert dataset.get_fragments() == []
    assert fragment.to_table()["i"].to_pylist() == list(range(10))
