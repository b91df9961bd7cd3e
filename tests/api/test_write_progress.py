"""Tests of the hooks that are told of each fragment of a write, beside those of pylance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import lance.progress
import pyarrow as pa
import pytest

import lance_dataset
import lance_dataset.progress
from lance_dataset.fragment import LanceFragment, write_fragments
from lance_dataset.progress import FileSystemFragmentWriteProgress, FragmentWriteProgress, NoopFragmentWriteProgress

ROWS = pa.table({"a": range(25)})
Told = list[tuple[Any, ...]]


def recorder(package: ModuleType) -> tuple[Any, Told]:
    """Return hooks of a package, and the list of what they are told."""
    told: Told = []

    class Recorder(package.progress.FragmentWriteProgress):  # type: ignore[name-defined, misc]
        def begin(self, fragment: Any, **kwargs: object) -> None:
            told.append(("begin", fragment.id, kwargs))

        def complete(self, fragment: Any, **kwargs: object) -> None:
            fields = [list(file.fields) for file in fragment.files]
            told.append(("complete", fragment.id, fields, fragment.physical_rows, kwargs))

    return Recorder(), told


@pytest.mark.parametrize("version", ["2.2", "2.0", "0.1"])
@pytest.mark.parametrize("rows", [0, 5, 20, 25])
def test_hooks(tmp_path: Path, version: str, rows: int) -> None:
    """They are told the same as in pylance, and that the last, smaller fragment is complete."""
    found: list[Told] = []
    for package in (lance_dataset, lance):
        hooks, told = recorder(package)
        options: dict[str, Any] = {"max_rows_per_file": 10, "max_rows_per_group": 5, "progress": hooks}
        target = tmp_path / package.__name__
        package.write_dataset(ROWS.slice(0, rows), target, data_storage_version=version, **options)
        assert package.dataset(target).count_rows() == rows
        found.append(told)
    ours, theirs = found
    if rows % 10:
        assert ours.pop() == ("complete", 0, [[0]], rows % 10, {})
    assert ours == theirs


def test_files_are_there_when_a_fragment_is_complete(tmp_path: Path) -> None:
    sizes: list[int] = []

    class Sizes(NoopFragmentWriteProgress):
        def complete(self, fragment: lance_dataset.FragmentMetadata, **kwargs: object) -> None:
            (file,) = fragment.files
            assert (tmp_path / "t" / "data" / file.path).stat().st_size == file.file_size_bytes
            sizes.append(fragment.num_rows)

    fragments = write_fragments(ROWS, tmp_path / "t", max_rows_per_file=10, progress=Sizes())
    assert sizes == [each.num_rows for each in fragments] == [10, 10, 5]


def test_the_id_of_a_single_fragment(tmp_path: Path) -> None:
    hooks, told = recorder(lance_dataset)
    assert LanceFragment.create(tmp_path / "t", ROWS, fragment_id=7, progress=hooks).id == 7
    assert [each[:2] for each in told] == [("begin", 7), ("complete", 7)]


def names(folder: Path) -> Sequence[str]:
    return sorted(each.name for each in folder.iterdir())


def test_files_of_progress(tmp_path: Path) -> None:
    """They have the names and the content of pylance's, whose last fragment stays in progress."""
    seen: list[Sequence[str]] = []

    class Watched(FileSystemFragmentWriteProgress):
        def begin(self, fragment: lance_dataset.FragmentMetadata, **kwargs: object) -> None:
            super().begin(fragment, **kwargs)
            seen.append(names(tmp_path / "ours"))

    hooks = Watched(tmp_path / "ours", {"worker": "1"})
    lance_dataset.write_dataset(ROWS, tmp_path / "a", max_rows_per_file=20, progress=hooks)
    assert seen == [["fragment_0.in_progress", "fragment_0.json"]] * 2
    assert names(tmp_path / "ours") == ["fragment_0.json"]
    theirs = lance.progress.FileSystemFragmentWriteProgress(str(tmp_path / "theirs"), {"worker": "1"})
    lance.write_dataset(ROWS, tmp_path / "b", max_rows_per_file=20, progress=theirs)
    assert names(tmp_path / "theirs") == seen[0]
    hooks = FileSystemFragmentWriteProgress(tmp_path / "again", {"worker": "1"})
    hooks.begin(lance_dataset.FragmentMetadata(0, [], 0))
    for name in seen[0]:
        ours, other = (json.loads((tmp_path / each / name).read_text()) for each in ("again", "theirs"))
        assert ours == (other | {"physical_rows": 0} if name.endswith("json") else other)


@pytest.mark.parametrize("name", ["begin", "complete"])
def test_errors_of_hooks_end_the_write(tmp_path: Path, name: str) -> None:
    def fail(self: object, fragment: object, **kwargs: object) -> None:
        raise KeyError("no")

    kind = type("Failing", (NoopFragmentWriteProgress,), {name: fail})
    with pytest.raises(KeyError, match="no"):
        lance_dataset.write_dataset(ROWS, tmp_path / "t", max_rows_per_file=10, progress=kind())
    assert not (tmp_path / "t").exists()


def test_other_objects_are_refused(tmp_path: Path) -> None:
    for wrong in (3, FragmentWriteProgress):
        with pytest.raises(TypeError, match="derive a class"):
            lance_dataset.write_dataset(ROWS, tmp_path / "t", progress=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="metadata must be"):
        FileSystemFragmentWriteProgress(tmp_path, {"a": 1})  # type: ignore[dict-item]
    assert not (tmp_path / "t").exists()
