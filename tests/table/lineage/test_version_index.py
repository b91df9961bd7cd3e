"""Tests of row versions by row id, compared with dictionaries."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.lineage.segments import Runs
from lance_dataset.table.lineage.version_index import VersionIndex


@st.composite
def fragments(draw: st.DrawFn) -> list[tuple[list[int], list[int]]]:
    """Draw ids of fragments, in runs of any order and shared by fragments, and a version of each row."""
    made = []
    for _ in range(draw(st.integers(0, 4))):
        starts = draw(st.lists(st.integers(0, 12), max_size=4, unique=True))
        ids = [30 * start + shift for start in starts for shift in range(draw(st.integers(1, 30)))]
        runs = draw(st.lists(st.tuples(st.integers(1, 100), st.integers(1, 5)), min_size=len(ids), max_size=len(ids)))
        made.append((ids, [version for count, version in runs for _ in range(count)][: len(ids)]))
    if draw(st.booleans()):
        made.insert(draw(st.integers(0, len(made))), (list(range(400)), [9] * draw(st.integers(0, 400))))
        ids, versions = made[[len(ids) for ids, _ in made].index(400)]
        versions.extend([8] * (len(ids) - len(versions)))
    return made


@given(fragments())
def test_the_last_fragment_with_an_id_tells_its_version(made: list[tuple[list[int], list[int]]]) -> None:
    expected: dict[int, int] = {}
    for ids, versions in made:
        expected.update(zip(ids, versions, strict=True))
    index = VersionIndex.build(
        (Runs.of(np.array(ids, np.uint64)), RowVersions.from_values(versions)) for ids, versions in made
    )
    wanted = np.random.default_rng(1).permutation(420).astype(np.uint64)
    versions, found = index.look_up(wanted)
    for number, version, there in zip(wanted.tolist(), versions.tolist(), found.tolist(), strict=True):
        assert there == (number in expected)
        assert not there or version == expected[number]


def test_a_later_run_that_begins_before_an_earlier_one_tells_the_version() -> None:
    runs = [(np.arange(12, 40), 1), (np.arange(10, 20), 2)]
    index = VersionIndex.build(
        (Runs.of(ids.astype(np.uint64)), RowVersions.constant(len(ids), version)) for ids, version in runs
    )
    versions, found = index.look_up(np.arange(10, 40, dtype=np.uint64))
    assert found.all()
    assert versions.tolist() == [2] * 10 + [1] * 20


def test_whole_fragments_are_stretches() -> None:
    index = VersionIndex.build(
        [
            (Runs.of(np.arange(1000, dtype=np.uint64)), RowVersions.constant(1000, 3)),
            (Runs.of(np.arange(1000, 2000, dtype=np.uint64)), RowVersions.constant(1000, 4)),
            (Runs.of(np.arange(100, 300, dtype=np.uint64)), RowVersions.constant(200, 5)),
            (Runs.of(np.array([2**64 - 1, 7], np.uint64)), RowVersions.constant(2, 6)),
        ]
    )
    assert index.long.lengths.tolist() == [1000, 1000]
    versions, found = index.look_up(np.array([0, 7, 99, 100, 299, 300, 1000, 1999, 2000, 2**64 - 1], np.uint64))
    assert found.tolist() == [True] * 8 + [False, True]
    assert versions[found].tolist() == [3, 6, 3, 5, 5, 3, 4, 4, 6]


def test_many_long_runs_across_a_fragment_and_across_each_other() -> None:
    whole = np.arange(2_000_000, dtype=np.uint64)
    moved = np.arange(2_000_000, dtype=np.uint64)
    moved = moved[moved % 130 < 64]
    last = np.arange(1_000_000, 3_000_000, dtype=np.uint64)
    last = last[last % 200 < 150]
    index = VersionIndex.build(
        (Runs.of(ids), RowVersions.constant(len(ids), version)) for ids, version in ((whole, 1), (moved, 2), (last, 3))
    )
    assert index.long.lengths.max() == 2_000_000
    wanted = np.arange(0, 3_000_000, 7, dtype=np.uint64)
    expected = np.where(wanted < 2_000_000, np.where(wanted % 130 < 64, 2, 1), 0)
    expected[(wanted >= 1_000_000) & (wanted % 200 < 150)] = 3
    versions, found = index.look_up(wanted)
    assert found.tolist() == (expected > 0).tolist()
    assert versions[found].tolist() == expected[found].tolist()
