"""Tests that docs/compatibility.md shows every release, file version and type that its script knows."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from compatibility.kinds import FAMILIES
from compatibility.page import DIRECTIONS, columns, essence, title
from compatibility.releases import RELEASES, VERSIONS
from compatibility.trial import MARKS, Outcome, Reading, judge_ours, judge_theirs

PAGE = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")
TABLES = [(version, direction) for version in VERSIONS for direction in DIRECTIONS]


def section(heading: str) -> list[str]:
    """Return the lines below a heading."""
    assert f"\n## {heading}\n" in PAGE, f"no {heading!r}; run `make compatibility`"
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0].strip().splitlines()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_the_releases() -> None:
    rows = [cells(line) for line in section("Releases") if line.startswith("|")][2:]
    assert [row[0] for row in rows] == [release.name for release in RELEASES]
    for row, release in zip(rows, RELEASES, strict=True):
        assert row[3].replace("\\*", "").split(", ") == list(release.versions)


@pytest.mark.parametrize(("version", "direction"), TABLES, ids=lambda value: value)
def test_a_table(version: str, direction: str) -> None:
    lines = [line for line in section(title(version, direction)) if line.startswith("|")]
    releases = columns(version, direction)
    assert [name.removesuffix("\\*") for name in cells(lines[0])[1:]] == [release.name for release in releases]
    shown = {family: set() for family in FAMILIES}
    for line in lines[2:]:
        types, *marks = cells(line)
        family, names = re.fullmatch(r"\*\*(.*)\*\*: (.*)", types).groups()
        shown[family].update(name.strip("`") for name in names.split(", "))
        assert len(marks) == len(releases)
        for mark in marks:
            text, _, notes = mark.partition(" ")
            assert set(text.strip("`")) <= set(MARKS.values()), mark
            assert len(text.strip("`")) in (1, 3), mark
            assert re.fullmatch(r"(\(\d+(, \d+)*\))?", notes), mark
    assert shown == {family: set(kinds) for family, kinds in FAMILIES.items()}, "run `make compatibility`"


def test_notes_are_there() -> None:
    for version, direction in TABLES:
        lines = section(title(version, direction))
        rows = [line for line in lines if line.startswith("|")]
        used = {int(number) for line in rows for number in re.findall(r"[ (](\d+)(?=[,)])", line)}
        listed = {int(line.split(".")[0]) for line in lines if re.match(r"\d+\. ", line)}
        assert used == listed


def test_nothing_of_the_machine() -> None:
    assert not re.search(r"/(home|tmp|root|usr|work|Users)/", PAGE)


def test_essence() -> None:
    message = "OSError: Io error: External error: no rows 3, /home/runner/work/lance/rust/a.rs:12:3"
    assert essence(message) == "no rows N"
    assert essence("column 'value (field m)': 2.0 has no maps") == "2.0 has no maps"
    assert essence("CorruptFileError: /a/b.lance: a page") == "CorruptFileError: a page"
    assert essence("CorruptFileError: /a/b.lance, column 'value': a page") == "CorruptFileError: the column: a page"


def reading(*values: int | None) -> Reading:
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "value": pa.array(values, pa.int64())})
    return Reading({"scan": table}).consistent()


TRUTH, LOST, WRONG = reading(1, None, 3), reading(1, 0, 3), reading(7, 0, 3)
FAILED = Reading({}, dict.fromkeys(("scan", "take", "filter"), "no"))


@pytest.mark.parametrize(
    ("theirs", "ours", "mark"),
    [
        (TRUTH, TRUTH, "same"),
        (LOST, LOST, "lossy"),
        (FAILED, TRUTH, "right"),
        (WRONG, LOST, "right"),
        (TRUTH, FAILED, "refused"),
        (FAILED, FAILED, "unreadable"),
        (TRUTH, WRONG, "differs"),
    ],
)
def test_marks_of_what_they_write(theirs: Reading, ours: Reading, mark: str) -> None:
    assert judge_theirs("", theirs, ours, TRUTH).mark == mark
    assert judge_theirs("no such type", theirs, ours, TRUTH).mark == "none"


@pytest.mark.parametrize(
    ("theirs", "ours", "own", "mark"),
    [
        (TRUTH, TRUTH, "same", "same"),
        (LOST, LOST, "lossy", "lossy"),
        (FAILED, TRUTH, "same", "refused"),
        (FAILED, TRUTH, "none", "unknown"),
        (FAILED, TRUTH, "unreadable", "right"),
        (WRONG, TRUTH, "same", "differs"),
        (TRUTH, FAILED, "same", "broken"),
    ],
)
def test_marks_of_what_we_write(theirs: Reading, ours: Reading, own: str, mark: str) -> None:
    assert judge_ours("", theirs, ours, TRUTH, Outcome(own)).mark == mark
    assert judge_ours("no such type", theirs, ours, TRUTH, Outcome(own)).mark == "none"
