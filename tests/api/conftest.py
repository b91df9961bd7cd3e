"""Fixtures with a dataset that the reference wrote, opened by both implementations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance.arrow  # it cannot be imported when another package has registered the types
import pytest
from support.reference.outcomes import build_table

import lance_dataset


@pytest.fixture(scope="session")
def reference_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a dataset with fragments of 25, 20, 10 and 5 rows.

    Rows of the first and third fragment are deleted, in two versions.
    """
    path = tmp_path_factory.mktemp("reference") / "data.lance"
    written = None
    for start, stop in ((0, 25), (25, 45), (45, 55), (55, 60)):
        mode = "create" if written is None else "append"
        part = build_table(stop - start, start)
        written = lance.write_dataset(part, path, mode=mode, data_storage_version="2.0")
    assert written is not None
    written.delete("id in (0, 3, 4, 24, 46)")
    written.delete("id = 5 or id = 54")
    return path


@pytest.fixture(scope="session")
def both(reference_path: Path) -> tuple[Any, Any]:
    """Return the dataset as opened by this package and by the reference."""
    return lance_dataset.dataset(reference_path), lance.dataset(reference_path)
