"""Tables with indices of all scalar kinds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tables.damaged_indices import create_indices, write_indexed_table

import lance_dataset


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset with an index of each kind, and a few deleted rows."""
    path = tmp_path_factory.mktemp("indexed") / "t"
    write_indexed_table(path)
    create_indices(lance_dataset, path)
    return path


@pytest.fixture
def copied(indexed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed, tmp_path / "t"))


@pytest.fixture(scope="session")
def single(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that returns a dataset with nothing but an index of some name."""
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("single") / "t"
            write_indexed_table(made[name])
            create_indices(lance_dataset, made[name], [name])
        return made[name]

    return make


@pytest.fixture
def copied_single(single: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    return lambda name: Path(shutil.copytree(single(name), tmp_path / name))
