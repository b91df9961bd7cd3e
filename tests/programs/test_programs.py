"""Whole programs in the manner of those that people run on pylance print the same when the import is changed.

Half of them run by default, and all with ``LANCE_STRESS=1``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.reference.programs import compare

ALL = sorted(path for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("test_"))
PROGRAMS = ALL if os.environ.get("LANCE_STRESS") else ALL[::2]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_the_import_is_changed_and_nothing_else(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(path, tmp_path, monkeypatch)


def test_there_are_enough_programs() -> None:
    assert len(ALL) >= 20
