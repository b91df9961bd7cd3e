"""Spark programs that people write against pylance print the same when the import is changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reference.programs import compare

PROGRAMS = sorted((Path(__file__).parents[1] / "first_contact" / "spark_programs").glob("*.py"))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_the_import_is_changed_and_nothing_else(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(path, tmp_path, monkeypatch)
