"""Tests that the change log and the files about the project name the version of the package."""

from __future__ import annotations

import re
from pathlib import Path

import lance_dataset

ROOT = Path(__file__).parents[2]


def test_files_about_the_project_name_its_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {lance_dataset.__version__}\n" in citation
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changes, re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == lance_dataset.__version__


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if f": {page}\n" not in navigation} == set()
