"""Search in scalar indices of old releases and in damaged ones, and the choice of an index."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError, LanceError

_FIXTURES = Path(__file__).parents[2] / "fixtures" / "indices"
_COUNT = 20_000


@pytest.mark.parametrize("release", ["0.10.18", "0.20.0", "1.0.0"])
def test_indices_of_old_releases(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")
    dataset = lance_dataset.dataset(_FIXTURES / f"pylance-{release}")
    values = [value for value in dataset.to_table(columns=["v"])["v"].to_pylist()[:300:30] if value is not None]
    filters = [f"v {operator} {value!r}" for value in values for operator in ("=", "<", ">=", "!=")]
    for each in (*filters, "v IS NULL", "v IS NOT NULL", f"v IN ({', '.join(map(repr, values))})"):
        scanner = dataset.scanner(filter=each)
        assert "ScalarIndexQuery" in scanner.explain_plan(), each
        assert scanner.count_rows() == dataset.scanner(filter=each, use_scalar_index=False).count_rows()


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset with an index of each kind."""
    path = tmp_path_factory.mktemp("indexed") / "t"
    numbers = np.random.default_rng(5).permutation(_COUNT)
    lists = pa.array([[int(n) % 900, int(n) % 77] for n in numbers])
    table = pa.table({"k": numbers, "b": numbers % 3, "l": lists, "s": [f"x{n % 5000}" for n in numbers]})
    dataset = lance_dataset.write_dataset(table, path, max_rows_per_file=_COUNT // 4)
    for column, kind in (("k", "BTREE"), ("b", "BITMAP"), ("l", "LABEL_LIST"), ("s", "BITMAP")):
        dataset.create_scalar_index(column, kind)
    return path


_FILTERS = {"k": "k BETWEEN 70 AND 90", "l": "array_has_any(l, [5, 800])", "s": "s IN ('x1', 'x77')", "b": "b = 1"}


@pytest.mark.parametrize("damage", ["cut", "zeros", "other", "gone"])
@pytest.mark.parametrize("column", _FILTERS)
def test_damaged_files_are_errors(
    indexed: Path, tmp_path: Path, column: str, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    ids = {each.field_names[0]: each.segments[0].uuid for each in lance_dataset.dataset(path).describe_indices()}
    other = path / "_indices" / ids["s" if column == "b" else "b"] / "bitmap_page_lookup.lance"
    for file in (path / "_indices" / ids[column]).iterdir():
        content = file.read_bytes()
        if damage == "cut":
            file.write_bytes(content[: len(content) // 2])
        elif damage == "zeros":
            file.write_bytes(bytes(len(content) // 2) + content[len(content) // 2 :])
        elif damage == "other":
            file.write_bytes(other.read_bytes())
        else:
            file.unlink()
    dataset = lance_dataset.dataset(path)
    with pytest.raises(LanceError) as caught:
        dataset.count_rows(_FILTERS[column])
    assert ids[column] in str(caught.value) or "wrongly" in str(caught.value)
    assert dataset.scanner(filter=_FILTERS[column], use_scalar_index=False).count_rows() > 0
    assert dataset.count_rows("k < 0 OR k > 10") > 0 if column != "k" else True


def test_wrong_answers_are_found_in_shadow_mode(indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    other = tmp_path / "other"
    table = lance_dataset.dataset(path).to_table()
    changed = table.set_column(0, "k", pa.array((np.asarray(table["k"]) + 1) % _COUNT))
    donor = lance_dataset.write_dataset(changed, other, max_rows_per_file=_COUNT // 4)
    donor.create_scalar_index("k", "BTREE")
    ids = {each.field_names[0]: each.segments[0].uuid for each in lance_dataset.dataset(path).describe_indices()}
    target, source = path / "_indices" / ids["k"], next((other / "_indices").iterdir())
    for file in source.iterdir():
        shutil.copy(file, target / file.name)
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")
    with pytest.raises(CorruptFileError, match="k_idx"):
        lance_dataset.dataset(path).to_table(filter="k = 500")


def test_an_index_is_used_where_it_is_cheaper(indexed: Path) -> None:
    dataset = lance_dataset.dataset(indexed)
    for each in ("k_idx", "b_idx", "s_idx"):
        dataset.prewarm_index(each)
    used = {each: "ScalarIndexQuery" in dataset.scanner(filter=each).explain_plan() for each in _PLANS}
    assert used == _PLANS


_PLANS = {
    "b = 1": False,  # a third of the rows
    "b IS NULL": True,
    "k = 17": True,
    "k = 17 AND b = 1": True,
    "k + 1 = 3": False,
    "k = 3 OR b + 1 = 2": False,
}


def test_an_index_is_opened_once_it_could_have_saved_enough(indexed: Path) -> None:
    dataset = lance_dataset.dataset(indexed, session=lance_dataset.Session())
    used = ["ScalarIndexQuery" in dataset.scanner(filter="s = 'x77'").explain_plan() for _ in range(100)]
    assert used == sorted(used)
    assert used[-1]


def test_random_conjunctions_and_disjunctions(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")
    random = np.random.default_rng(11)
    dataset = lance_dataset.dataset(indexed)
    theirs = lance.dataset(indexed)

    def condition(depth: int) -> str:
        if depth and random.random() < 0.6:
            joined = f" {random.choice(['AND', 'OR'])} ".join(condition(depth - 1) for _ in range(2))
            return f"{random.choice(['', 'NOT '])}({joined})"
        number = int(random.integers(0, _COUNT))
        return str(
            random.choice(
                [
                    f"k {random.choice(['=', '<', '>=', '!='])} {number}",
                    f"k BETWEEN {number} AND {number + 500}",
                    f"k NOT IN ({number}, {number + 1}, {number + 9}, 4)",
                    f"b = {number % 4}",
                    f"b != {number % 4}",
                    f"s = 'x{number % 5000}'",
                    f"s LIKE 'x{number % 50}%'",
                    f"array_has(l, {number % 900})",
                    f"k % 7 = {number % 7}",
                    "s IS NULL",
                ]
            )
        )

    for _ in range(60):
        each = condition(3)
        assert dataset.count_rows(each) == theirs.count_rows(each), each


def test_a_damaged_index_is_left_out_if_wanted(indexed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    ids = {each.field_names[0]: each.segments[0].uuid for each in lance_dataset.dataset(path).describe_indices()}
    for file in (path / "_indices" / ids["k"]).iterdir():
        file.write_bytes(b"x" * 100)
    dataset = lance_dataset.dataset(path)
    with pytest.raises(CorruptFileError, match=ids["k"]):
        dataset.scanner(filter="k = 5", on_index_error="raise", fast_search=True).to_table()
    found = dataset.to_table(filter="k = 5", on_index_error="scan", fast_search=True)
    assert found["k"].to_pylist() == [5]
    assert ids["k"] in caplog.text
    lenient = lance_dataset.dataset(path, default_scan_options={"on_index_error": "scan"})
    assert lenient.scanner(filter="k = 5", fast_search=True).count_rows() == 1
    with pytest.raises(ValueError, match="'raise' or 'scan'"):
        dataset.scanner(on_index_error="ignore")


def test_plans_say_why_an_index_is_not_used(indexed: Path) -> None:
    dataset = lance_dataset.dataset(indexed)
    reasons = {
        "k + 1 = 3": "k_idx(BTree) not used: no condition on the column that an index answers",
        "k = 3 OR b + 1 = 2": "k_idx(BTree) not used: another alternative of an OR has no index",
        "k = 3 AND k / b > 1": "k_idx(BTree) not used: the filter may raise an error",
        "k = 3 AND b = 1": "b_idx(Bitmap) not used: another index leaves fewer rows",
        "b = 1": "b_idx(Bitmap) not used: a scan is cheaper (about",
        "NOT array_has(l, 3)": "l_idx(LabelList) not used: an index of this kind does not answer NOT (array_has(l, 3))",
    }
    for name in ("k_idx", "b_idx", "l_idx"):
        dataset.prewarm_index(name)
    for filter, reason in reasons.items():
        assert reason in dataset.scanner(filter=filter).explain_plan(), filter
    closed = lance_dataset.dataset(indexed, session=lance_dataset.Session())
    assert "s_idx(Bitmap) not used: opening it takes about" in closed.scanner(filter="s = 'x1'").explain_plan()
    plan = dataset.scanner(filter="k = 3 AND (k = 3 OR s = 'x1')").explain_plan()
    assert "query=" in plan
