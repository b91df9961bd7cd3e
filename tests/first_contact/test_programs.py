"""Programs that people write against pylance print the same when the import is changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reference.programs import compare

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_the_import_is_changed_and_nothing_else(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(path, tmp_path, monkeypatch)


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 30
