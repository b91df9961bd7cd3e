"""One change made by both implementations on copies of one table: compare the results, or the kinds of errors."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_dataset
from support.tables.equality import assert_same

__all__ = ["ROWS", "assert_same_change", "change_table", "example"]

#: Live rows of the example.
ROWS = 96
#: Built-in classes that catch errors of the reference.
_CLASSES = (OSError, ValueError, TypeError, OverflowError, NotImplementedError)


def example(path: Path, version: str, **options: Any) -> Path:
    """Make a table of 100 rows in three fragments; four rows are deleted: the first, the last and two in between."""
    numbers = np.arange(100)
    table = pa.table(
        {
            "i": numbers,
            "s": [str(i) for i in numbers],
            "f": numbers / 2,
            "st": [{"a": i, "b": str(i)} for i in numbers.tolist()],
        }
    ).replace_schema_metadata({"made": "here"})
    options = {"data_storage_version": version, "max_rows_per_file": 40, **options}
    lance.write_dataset(table, path, **options).delete("i in (0, 3, 50, 99)")
    return path


def change_table(path: Path, target: Path, module: ModuleType, change: Callable[[ModuleType, Any], Any]) -> Any:
    """Make a change on a copy of a table; return the error or None."""
    shutil.copytree(path, target)
    try:
        change(module, module.dataset(target))
    except Exception as error:
        return error
    return None


def assert_same_change(path: Path, scratch: Path, change: Callable[[ModuleType, Any], Any]) -> pa.Table | Exception:
    """Make a change with both implementations and compare; return the rows or our error.

    Parameters
    ----------
    path
        The table.
    scratch
        Folder for the copies.
    change
        Function that changes a dataset, given the implementation and the dataset.
    """
    files = _data_files(path)
    theirs = change_table(path, scratch / "theirs", lance, change)
    ours = change_table(path, scratch / "ours", lance_dataset, change)
    if theirs is not None or ours is not None:
        assert theirs is not None, f"the reference succeeds: {ours!r}"
        assert ours is not None, f"the reference fails: {theirs!r}"
        expected = next((kind for kind in _CLASSES if isinstance(theirs, kind)), Exception)
        assert isinstance(ours, expected), f"{ours!r} instead of {theirs!r}"
        assert _data_files(scratch / "ours") == files, "files are left over"
        return ours
    made, wanted = lance.dataset(scratch / "ours"), lance.dataset(scratch / "theirs")
    assert made.version == wanted.version
    assert made.schema.equals(wanted.schema, check_metadata=True)
    assert _ids(made) == _ids(wanted)
    assert [[file.fields for file in each.metadata.files] for each in made.get_fragments()] == [
        [file.fields for file in each.metadata.files] for each in wanted.get_fragments()
    ]
    assert _operation(made) == _operation(wanted)
    rows = wanted.to_table()
    assert_same(made.to_table(), rows)
    again = lance_dataset.dataset(scratch / "ours")
    again.validate()
    assert_same(again.to_table(), rows)
    assert_same(lance_dataset.dataset(scratch / "theirs").to_table(), rows)
    return rows


def _data_files(path: Path) -> list[str]:
    return sorted(file.name for file in path.glob("data/*"))


def _ids(dataset: Any) -> list[Any]:
    def below(field: Any) -> Any:
        return field.name(), field.id(), [below(child) for child in field.children()]

    return [below(field) for field in dataset.lance_schema.fields()]


def _operation(dataset: Any) -> tuple[str, Any]:
    operation = dataset.read_transaction(dataset.version).operation
    return type(operation).__name__, getattr(operation, "preserves_nullability", None)
