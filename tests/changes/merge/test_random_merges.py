"""Tests of random merges, compared with the reference: statistics, rows, lineage and kinds of errors."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_dataset
from lance_dataset.changes.merge import execution, matching

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
#: Messages of wrong plans of the reference, and of its belief that an empty source has all columns.
REFERENCE_BUGS = ("this indicates a logical plan pruning bug", "the source covers every dataset column")

KEY_TYPES = [pa.int64(), pa.string(), pa.float64()]
small = st.integers(0, 6)


@st.composite
def columns(draw: st.DrawFn, key: pa.DataType, names: list[str], max_rows: int, *, unique: bool) -> pa.Table:
    """Draw columns among ``k``, ``j``, ``v``, ``w`` and ``s`` with few different keys, some of them null."""
    keys: list[Any] = draw(st.lists(st.one_of(st.none(), small), max_size=max_rows))
    if unique:
        keys = list(dict.fromkeys(keys))
    rows = len(keys)

    def values(strategy: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(strategy, min_size=rows, max_size=rows))

    if pa.types.is_string(key):
        keys = [None if number is None else "abcdefg"[number] for number in keys]
    struct = pa.struct([("x", pa.int32()), ("y", pa.string())])
    made = {
        "k": lambda: pa.array(keys, key),
        "j": lambda: pa.array(values(st.one_of(st.none(), st.integers(0, 1))), pa.int16()),
        "v": lambda: pa.array(values(st.one_of(st.none(), st.text("ab", max_size=2))), pa.string()),
        "w": lambda: pa.array(values(st.integers(0, 9)), pa.int64()),
        "s": lambda: pa.array(
            values(st.one_of(st.none(), st.fixed_dictionaries({"x": small, "y": st.none()}))), struct
        ),
    }
    return pa.table({name: made[name]() for name in names})


@st.composite
def merges(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a table in several fragments, deletions, a source, clauses, and a small or sufficient memory budget."""
    key = draw(st.sampled_from(KEY_TYPES))
    names = ["k", "j", "v", "w", "s"]
    on = draw(st.sampled_from([["k"], ["k"], ["k", "j"]]))
    optional = draw(st.one_of(st.just(names[1:]), st.lists(st.sampled_from(names[1:]), unique=True)))
    source_names = draw(st.permutations(list(dict.fromkeys([*on, *optional]))))
    matched = draw(st.sampled_from(["nothing", "update", "update", "update if", "delete", "fail"]))
    conditions = ["target.w > 4", "target._rowaddr > 1", *(["source.w > target.w"] if "w" in source_names else [])]
    return {
        "table": draw(columns(key, names, 12, unique=False)),
        "source": draw(columns(key, list(source_names), 8, unique=draw(st.booleans()))),
        "on": on,
        "rows_per_file": draw(st.integers(2, 6)),
        "deleted": draw(st.sampled_from(["false", "w > 6", "k is null"])),
        "stable": draw(st.booleans()),
        "version": draw(st.sampled_from(["2.1", "2.2"])),
        "matched": matched,
        "condition": draw(st.sampled_from(conditions)) if matched == "update if" else None,
        "inserts": draw(st.booleans()),
        "rest": draw(st.sampled_from(["keep", "keep", "delete", "w < 5"])),
        "small": draw(st.booleans()),
        "mode": draw(st.sampled_from(["auto", "auto", "rewrite_rows", "rewrite_columns"])),
    }


def build(builder: Any, case: dict[str, Any]) -> Any:
    """Add the clauses of a case to a builder."""
    matched = case["matched"]
    if matched.startswith("update"):
        builder.when_matched_update_all(case["condition"])
    elif matched == "delete":
        builder.when_matched_delete()
    elif matched == "fail":
        builder.when_matched_fail()
    if case["inserts"]:
        builder.when_not_matched_insert_all()
    if case["rest"] != "keep":
        builder.when_not_matched_by_source_delete(None if case["rest"] == "delete" else case["rest"])
    return builder.write_mode(case["mode"])


def run(library: Any, path: Path, case: dict[str, Any]) -> Any:
    """Return the statistics and the rows in any order, or the error."""
    dataset = library.dataset(path)
    try:
        with pytest.MonkeyPatch.context() as patched:
            if case["small"]:
                patched.setattr(execution, "DEFAULT_BUDGET", 10)
                patched.setattr(matching, "INDEX_BUDGET", 100)
            statistics = build(dataset.merge_insert(case["on"]), case).execute(case["source"])
    except (ValueError, OSError) as error:
        return error
    names = [*case["table"].column_names, *(LINEAGE if case["stable"] else [])]
    rows = dataset.to_table(columns=names).to_pylist()
    other = (lance if library is lance_dataset else lance_dataset).dataset(path)
    assert other.to_table(columns=names).to_pylist() == rows
    return statistics, sorted(map(repr, rows)), dataset.version


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=merges())
def test_like_the_reference(case: dict[str, Any]) -> None:
    """A random merge gives the same result or kind of error as the reference."""
    with tempfile.TemporaryDirectory() as folder:
        ends = []
        for library in (lance_dataset, lance):
            path = Path(folder) / library.__name__
            made = lance.write_dataset(
                case["table"],
                path,
                max_rows_per_file=case["rows_per_file"],
                data_storage_version=case["version"],
                enable_stable_row_ids=case["stable"],
            )
            made.delete(case["deleted"])
            ends.append(run(library, path, case))
        ours, theirs = ends
        if isinstance(theirs, Exception):
            if REFERENCE_BUGS[0] in str(theirs) or (REFERENCE_BUGS[1] in str(theirs) and not case["source"].num_rows):
                return
            assert isinstance(ours, OSError if isinstance(theirs, OSError) else ValueError), (ours, theirs)
        else:
            assert ours == theirs
