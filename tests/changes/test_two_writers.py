"""Tests of changes computed before another commit: verdict and rows match the reference.

``LANCE_STRESS=1`` tries every pair of changes, instead of every other one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.errors import CommitConflictError

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
Work = Callable[[Any, Any], object]
LINEAGE = ["_row_created_at_version", "_row_last_updated_at_version"]
KEY = "lance-schema:unenforced-primary-key"
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), False, metadata={KEY: "true"}), pa.field("a", pa.int32()), pa.field("b", pa.string())]
)
#: Verdicts: the change must be computed again, it cannot be made, it was made.
RETRY, NEVER, DONE = "retry", "never", "done"


def rows(*ids: int, a: int = 0) -> pa.Table:
    numbers = [identity + a for identity in ids]
    return pa.table([pa.array(ids, pa.int64()), pa.array(numbers, pa.int32()), list(map(str, ids))], schema=SCHEMA)


def merge(dataset: Any, source: pa.Table, retries: int | None) -> None:
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    (builder if retries is None else builder.conflict_retries(retries)).execute(source)


def retried(retries: int | None) -> dict[str, int]:
    return {} if retries is None else {"conflict_retries": retries}


#: Changes by name. Each takes a handle and the number of retries (None is the default).
WORK: dict[str, Work] = {
    "update of some rows": lambda handle, n: handle.update({"a": "a + 1000"}, "id in (2, 3, 12)", **retried(n)),
    "update of all rows": lambda handle, n: handle.update({"a": "a + 1000"}, **retried(n)),
    "merge": lambda handle, n: merge(handle, rows(3, 12, 500, a=7), n),
    "merge of new keys": lambda handle, n: merge(handle, rows(500, 501, a=7), n),
    "delete": lambda handle, n: handle.delete("id in (2, 3, 12)", **retried(n)),
    "new column": lambda handle, _: handle.add_columns({"c": "a * 2"}),
    "new column of nulls": lambda handle, _: handle.add_columns(pa.schema([("c", pa.int32())])),
    "cast": lambda handle, _: handle.alter_columns({"path": "a", "data_type": pa.int64()}),
    "rename": lambda handle, _: handle.alter_columns({"path": "a", "name": "aa"}),
    "not nullable": lambda handle, _: handle.alter_columns({"path": "a", "nullable": False}),
    "drop": lambda handle, _: handle.drop_columns(["b"]),
    "compaction": lambda handle, _: handle.optimize.compact_files(target_rows_per_fragment=25),
}
#: Changes that take a number of retries.
COUNTED = ["update of some rows", "update of all rows", "merge", "merge of new keys", "delete"]
#: Changes that others commit first: the changes above, and changes of other rows.
BEFORE: dict[str, Work] = {
    **WORK,
    "append": lambda handle, _: handle.insert(rows(500, 600)),
    "delete of other rows": lambda handle, _: handle.delete("id in (4, 15)"),
    "delete of a fragment": lambda handle, _: handle.delete("id < 10"),
    "update of other rows": lambda handle, _: handle.update({"a": "-1"}, "id in (5, 11)"),
    "merge of other keys": lambda handle, _: merge(handle, rows(5, 600, a=9), None),
    "overwrite": lambda handle, _: handle.insert(rows(2, 500, a=3), mode="overwrite"),
    "restore": lambda handle, _: handle.checkout_version(1).restore(),
}


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable"])
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "t"
    options = {"max_rows_per_file": 10, "enable_stable_row_ids": request.param}
    lance.write_dataset(rows(*range(40)), path, **options)
    lance.dataset(path).delete("id = 33")
    return path


def attempt(work: Work, handle: Any, retries: int | None) -> str:
    try:
        work(handle, retries)
    except (OSError, ValueError) as error:
        if isinstance(error, CommitConflictError):
            return RETRY if error.retryable else NEVER
        if "ncompatible" in str(error):
            return NEVER
        return RETRY if isinstance(handle, lance.LanceDataset) and isinstance(error, OSError) else str(error)
    return DONE


def content(path: Path) -> list[str]:
    """Return the rows in any order, with created and updated versions of rows that have stable ids.

    Check that both libraries read the same.
    """
    dataset = lance.dataset(path)
    names = [*dataset.schema.names, "_rowid", *(LINEAGE if dataset.has_stable_row_ids else ())]
    table = lance_dataset.dataset(path).to_table(columns=names)
    assert_same(table, dataset.to_table(columns=names))
    dataset.validate()
    return sorted(map(repr, table.drop_columns("_rowid").to_pylist()))


def result(original: Path, path: Path, author: Any, before: Work, module: Any, work: Work | None, retries: int | None):
    """Return verdict and rows of a change by `module` that starts before a change by `author` and ends after it."""
    shutil.copytree(original, path)
    handle = module.dataset(path)
    before(author.dataset(path), None)
    return attempt(work, handle, retries) if work else DONE, content(path)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder for the tables, in memory if possible, as there are many."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as path:
        yield Path(path)


@pytest.mark.parametrize(
    ("name", "retries"),
    [*((name, None) for name in WORK), *((name, 0) for name in COUNTED)],
    ids=[*WORK, *(f"{name}, once" for name in COUNTED)],
)
def test_verdicts(folder: Path, original: Path, name: str, retries: int | None) -> None:
    """Verdicts and rows match the reference.

    If the reference leaves the retry to the user and this package retries, rows match those of a second attempt.
    """
    work, wrong = WORK[name], []
    for number, (other, before) in enumerate(BEFORE.items()):
        if not THOROUGH and (number + len(name)) % 2:
            continue
        place = folder / str(number)
        author = (lance, lance_dataset)[(number // 2 + len(name)) % 2]
        theirs, their_rows = result(original, place / "reference", author, before, lance, work, retries)
        ours, our_rows = result(original, place / "ours", author, before, lance_dataset, work, retries)
        if theirs == ours:
            expected = their_rows
        elif theirs == RETRY and ours not in (RETRY, NEVER) and (retries is None or name not in COUNTED):
            serial = place / "serial"
            shutil.copytree(original, serial)
            before(lance.dataset(serial), None)
            verdict = attempt(work, lance.dataset(serial), None)
            expected = content(serial) if (verdict == DONE) == (ours == DONE) else [verdict]
        else:
            expected = ["another verdict"]
        if our_rows != expected:
            wrong.append((other, author.__name__, theirs, ours, our_rows[:2], expected[:2]))
    assert not wrong
