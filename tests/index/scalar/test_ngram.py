"""N-gram indices: files are those of the reference, which uses ours, and answers are those of scans."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import lance.indices
import numpy as np
import pyarrow as pa
import pyroaring
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.scalar import ngram_runs, ngram_training
from lance_dataset.index.scalar.conditions import (
    AllTexts,
    Answer,
    AnyText,
    CaselessTextCondition,
    Text,
    TextCondition,
    ValueCondition,
)
from lance_dataset.index.scalar.ngram import POSTINGS, ROWS, SCHEMA, TOKENS
from lance_dataset.index.scalar.ngram_search import NgramSearch
from lance_dataset.index.scalar.ngram_tokens import tokens_of
from lance_dataset.index.trainer import OldSegment, Training
from lance_dataset.indices import IndexConfig
from lance_dataset.io.local import LocalStore
from lance_dataset.types.schema import Schema

_FIXTURE = Path(__file__).parents[2] / "fixtures" / "indices" / "pylance-1.0.0-ngram"
_WORDS = [
    *("the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs", "straße", "café", "ℂomplex", "½cup", "ªbc"),
    *("Ɓravo", "ⅫI", "naïve", "Ångström", "İstanbul", "ﬁsh", "𝐁old", "ＡＢＣ", "x-ray", "12345", "中文分词", "ΑΣ"),
    *("O'Neil", "foo_bar", "a", "ab", "Hello", "WORLD", "100%", "[x]"),
]
_FILTERS = (
    "contains(c, 'quick')",
    "contains(c, 'QUICK')",
    "contains(c, 'n fox')",
    "contains(c, 'straße')",
    "contains(c, 'trasse')",
    "contains(c, 'ℂomplex')",
    "contains(c, '𝐁old b')",
    "contains(c, '中文分')",
    "contains(c, 'zzzz')",
    "contains(c, 'ab')",
    "contains(c, 'x-r')",
    "c LIKE '%jumps%'",
    "c LIKE '%brown%lazy%'",
    "c LIKE 'the%'",
    "c LIKE 'the _uick%'",
    "c LIKE '%foo\\_bar%'",
    "c LIKE '%100\\%%'",
    "c ILIKE '%hello w%'",
    "c ILIKE '%KAFÉ%' OR c ILIKE '%straSSe%'",
    "starts_with(c, 'over')",
    "ends_with(c, 'dogs')",
    "regexp_like(c, 'fox|lazy')",
    "regexp_like(c, '^(the|over) qui.k')",
    "regexp_like(c, 'HELLO', 'i')",
    "regexp_like(c, '(?i)istanbul')",
    "regexp_like(c, 'fo{2}_ba(r|z)')",
    "regexp_match(c, 'caf[é]') IS NOT NULL",
    "contains(c, 'quick') AND c LIKE '%fox%'",
    "contains(c, 'quick') OR starts_with(c, 'lazy')",
    "contains(c, 'quick') AND n < 100",
    "NOT contains(c, 'quick')",
    "c IS NULL",
)
#: Those for tables that change.
_FEW = (
    "contains(c, 'quick')",
    "contains(c, 'straße')",
    "c LIKE '%brown%lazy%'",
    "c LIKE 'the%'",
    "regexp_like(c, '(?i)istanbul')",
    "contains(c, 'quick') OR starts_with(c, 'lazy')",
    "c IS NULL",
)


def _texts(count: int, seed: int, kind: pa.DataType | None = None) -> pa.Array:
    chosen = random.Random(seed)
    texts = [" ".join(chosen.choices(_WORDS, k=chosen.randint(0, 7))) for _ in range(count)]
    return pa.array([None if n % 23 == 5 else text for n, text in enumerate(texts)], kind or pa.string())


def _table(count: int, seed: int, start: int = 0, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"c": _texts(count, seed, kind), "n": np.arange(start, start + count)})


def _rows(dataset: Any, filter: str, **options: Any) -> list[int]:
    return sorted(dataset.scanner(columns=["n"], filter=filter, **options).to_table()["n"].to_pylist())


def _check(path: Path, filters: Sequence[str] = _FEW) -> None:
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for each in filters:
        expected = _rows(ours, each, use_scalar_index=False)
        assert _rows(ours, each) == expected, each
        assert ours.count_rows(each) == len(expected)
        assert _rows(theirs, each) == expected, each


def _postings(path: Path) -> dict[int, list[int]]:
    """Return the rows of each token of the newest index."""
    newest = max(path.glob("_indices/*/ngram_postings.lance"), key=lambda file: file.stat().st_mtime_ns)
    table = lance.file.LanceFileReader(str(newest)).read_all().to_table()
    assert table.schema.equals(SCHEMA, check_metadata=True)
    tokens = table["tokens"].to_pylist()
    assert tokens == sorted(tokens)
    sets = [list(pyroaring.BitMap64.deserialize(each)) for each in table["posting_list"].to_pylist()]
    return dict(zip(tokens, sets, strict=True))


def _size(path: Path) -> int:
    return max(file.stat().st_size for file in path.glob("_indices/*/ngram_postings.lance"))


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use indices wherever they answer, and compare each answer with the scan."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")


@pytest.mark.parametrize(("stable", "kind"), [(False, pa.string()), (True, pa.large_string())], ids=str)
def test_files_are_those_of_the_reference(tmp_path: Path, stable: bool, kind: pa.DataType) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    dataset = lance_dataset.write_dataset(
        _table(2000, 1, kind=kind), ours, max_rows_per_file=700, enable_stable_row_ids=stable
    )
    dataset.delete("n % 13 = 4")
    shutil.copytree(ours, theirs)
    dataset.create_scalar_index("c", "NGRAM")
    lance.dataset(theirs).create_scalar_index("c", "NGRAM")
    assert _postings(ours) == _postings(theirs)
    assert _size(ours) <= 1.02 * _size(theirs)
    for path in (ours, theirs):
        _check(path, _FILTERS)
        for module in (lance, lance_dataset):
            for each in ("contains(c, 'quick')", "c LIKE '%lazy%'", "c LIKE 'the%'"):
                assert "ScalarIndexQuery" in module.dataset(path).scanner(filter=each).explain_plan(), each


def test_the_plan_tells_what_is_looked_up(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table(500, 1), tmp_path)
    dataset.create_scalar_index("c", "NGRAM")
    used = {
        each: "ScalarIndexQuery" in dataset.scanner(filter=each).explain_plan()
        for each in (*_FILTERS, "regexp_like(c, 'fox.*')", "regexp_like(c, '(fox)?')", "regexp_like(c, '')")
    }
    unused = {each for each in used if not used[each]}
    assert unused == {
        "contains(c, '中文分')",
        "contains(c, 'ab')",
        "contains(c, 'x-r')",
        "NOT contains(c, 'quick')",
        "c IS NULL",
        "regexp_like(c, '(fox)?')",
        "regexp_like(c, '')",
    }


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("optimizer", [lance, lance_dataset], ids=lambda module: module.__name__)
def test_answers_stay_right_through_changes(tmp_path: Path, stable: bool, optimizer: Any) -> None:
    dataset = lance_dataset.write_dataset(_table(600, 2), tmp_path, max_rows_per_file=200, enable_stable_row_ids=stable)
    dataset.create_scalar_index("c", "NGRAM")
    keyed = pa.table({"c": pa.array(["quick straße", None]), "n": pa.array([7, 9999])})

    def optimize(**options: Any) -> None:
        optimizer.dataset(tmp_path).optimize.optimize_indices(**options)

    steps = [
        lambda dataset: dataset.insert(_table(150, 3, 1000)),
        lambda dataset: optimize(num_indices_to_merge=0),
        lambda dataset: dataset.update({"c": "'the quick test'"}, where="n BETWEEN 20 AND 40"),
        lambda dataset: dataset.delete("contains(c, 'lazy') AND n > 300"),
        lambda dataset: (
            dataset.merge_insert("n").when_matched_update_all().when_not_matched_insert_all().execute(keyed)
        ),
        lambda dataset: optimize(num_indices_to_merge=9),
        lambda dataset: dataset.optimize.compact_files(),
        lambda dataset: dataset.insert(_table(50, 4, 2000)),
        lambda dataset: optimize(),
        lambda dataset: lance.dataset(tmp_path).optimize.compact_files(),
        lambda dataset: dataset.update({"n": "n + 100000"}, where="n = 1001"),
    ]
    for step in steps:
        step(lance_dataset.dataset(tmp_path))
        _check(tmp_path)


def test_answers_stay_right_after_deferred_compaction(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table(600, 2), tmp_path, max_rows_per_file=100)
    dataset.create_scalar_index("c", "NGRAM")
    dataset.delete("n % 5 = 1")
    dataset.optimize.compact_files(defer_index_remap=True)
    _check(tmp_path)
    dataset.insert(_table(50, 4, 2000))
    dataset.optimize.optimize_indices()
    _check(tmp_path)


@pytest.mark.parametrize("stable", [False, True])
def test_merged_segments_are_like_new_ones(tmp_path: Path, stable: bool) -> None:
    """Rows that moved out of a segment are left out of its content, which is not read again."""
    path = tmp_path / "ours"
    dataset = lance_dataset.write_dataset(_table(900, 2), path, max_rows_per_file=300, enable_stable_row_ids=stable)
    dataset.create_scalar_index("c", "NGRAM")
    dataset.update({"c": "'moved fox'"}, where="n < 50")
    dataset.insert(_table(100, 5, 5000))
    dataset.optimize.optimize_indices()
    found = _postings(path)
    dataset.create_scalar_index("c", "NGRAM")
    alive = _postings(path)
    for token, rows in alive.items():
        assert set(rows) <= set(found[token])
    if stable:
        stale = {row for token, rows in found.items() for row in set(rows) - set(alive.get(token, ()))}
        assert not stale
    _check(path)


@pytest.mark.parametrize("limit", [1, 1 << 16, 1 << 20])
def test_a_small_memory_limit_gives_the_same_index(tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram_training, "_LEAST_BYTES", 1 << 12)
    monkeypatch.setattr(ngram_runs, "_LEAST_BYTES", 1 << 15)
    dataset = lance_dataset.write_dataset(_table(5000, 8), tmp_path, max_rows_per_file=900)
    dataset.create_scalar_index("c", "NGRAM")
    expected = _postings(tmp_path)
    dataset.create_scalar_index("c", "NGRAM", memory_limit=limit)
    assert _postings(tmp_path) == expected


def test_texts_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram_training, "_PIECE_BYTES", 1 << 12)
    rng = np.random.default_rng(1)
    texts = [rng.integers(97, 123, size).astype(np.uint8).tobytes().decode() for size in (0, 1, 3, 2000, 6000, 5)]
    table = pa.table({"c": [*texts, "é" * 3000, "\0abc\0é"], "n": np.arange(8)})
    for module, name in ((lance, "theirs"), (lance_dataset, "ours")):
        module.write_dataset(table, tmp_path / name).create_scalar_index("c", "NGRAM")
    assert _postings(tmp_path / "ours") == _postings(tmp_path / "theirs")
    ours = lance_dataset.dataset(tmp_path / "ours")
    assert ours.count_rows(f"contains(c, '{texts[4][100:3000]}')") == 1


def test_dense_tokens_of_many_fragments(tmp_path: Path) -> None:
    """Tokens of most rows have bitsets, and a bitmap for each fragment."""
    count = 150_000
    texts = pa.array([f"common {n % 7}{n % 1000}" for n in range(count)])
    table = pa.table({"c": texts, "n": np.arange(count)})
    for module, name in ((lance, "theirs"), (lance_dataset, "ours")):
        dataset = module.write_dataset(table, tmp_path / name, max_rows_per_file=70_000)
        dataset.create_scalar_index("c", "NGRAM")
    assert _postings(tmp_path / "ours") == _postings(tmp_path / "theirs")
    assert _size(tmp_path / "ours") <= 1.02 * _size(tmp_path / "theirs")
    ours = lance_dataset.dataset(tmp_path / "ours")
    assert ours.count_rows("contains(c, 'common 6999')") == sum(n % 7 == 6 and n % 1000 == 999 for n in range(count))


@pytest.mark.parametrize("rows", [0, 1])
def test_small_and_untrained_indices(tmp_path: Path, rows: int) -> None:
    for module, name in ((lance, "theirs"), (lance_dataset, "ours")):
        dataset = module.write_dataset(_table(5, 1).slice(0, rows), tmp_path / name)
        dataset.create_scalar_index("c", "NGRAM")
        assert [each.num_rows_indexed for each in dataset.describe_indices()] == [rows]
        dataset.create_scalar_index("c", "NGRAM", train=False)
        assert [each.num_rows_indexed for each in dataset.describe_indices()] == [0]
    ours = lance_dataset.dataset(tmp_path / "ours")
    assert ours.stats.index_stats("c_idx") == {
        **lance.dataset(tmp_path / "theirs").stats.index_stats("c_idx"),
        **{key: ours.stats.index_stats("c_idx")[key] for key in ("updated_at_timestamp_ms",)},
    }
    ours.insert(_table(300, 3, 100))
    ours.optimize.optimize_indices()
    _check(tmp_path / "ours")


def test_statistics_and_descriptions(tmp_path: Path) -> None:
    found = []
    for module, name in ((lance, "theirs"), (lance_dataset, "ours")):
        dataset = module.write_dataset(_table(500, 1), tmp_path / name)
        dataset.create_scalar_index("c", IndexConfig("NGram", {"ignored": 5}) if module is lance_dataset else "NGRAM")
        (described,) = dataset.describe_indices()
        statistics = dataset.stats.index_stats("c_idx")
        found.append(
            (described.name, described.index_type, described.type_url, described.details, statistics["indices"])
        )
        assert described.segments[0].index_version == 0
    assert found[0] == found[1]


_BAD: list[tuple[Any, Any, type[Exception]]] = [
    ("n", "NGRAM", TypeError),
    ("l", "NGRAM", TypeError),
    ("d", "NGRAM", TypeError),
    ("b", "NGRAM", TypeError),
    ("missing", "NGRAM", KeyError),
]


@pytest.mark.parametrize(("column", "kind", "error"), _BAD, ids=str)
def test_bad_input_gets_the_errors_of_the_reference(tmp_path: Path, column: str, kind: Any, error: Any) -> None:
    table = pa.table({"n": [1], "l": [["a"]], "d": pa.array(["a"]).dictionary_encode(), "b": [b"abc"]})
    dataset = lance_dataset.write_dataset(table, tmp_path)
    for each in (lance.dataset(tmp_path), dataset):
        with pytest.raises(error):
            each.create_scalar_index(column, kind)
    assert dataset.version == 1


def test_indices_of_old_releases(tmp_path: Path) -> None:
    """Old releases folded fewer characters; what a text contains is found all the same."""
    path = tmp_path / "t"
    shutil.copytree(_FIXTURE, path)
    ours = lance_dataset.dataset(path)
    filters = [f"contains(s, '{word}')" for word in (*_WORDS, "fox jumps", "ℂomplex ½cup") if "'" not in word]
    for each in filters:
        assert ours.count_rows(each) == ours.scanner(filter=each, use_scalar_index=False).count_rows()
    assert "ScalarIndexQuery" in ours.scanner(filter="contains(s, 'Ångström')").explain_plan()
    ours.insert(pa.table({"s": [*_WORDS, None], "n": np.arange(len(_WORDS) + 1)}))
    ours.optimize.optimize_indices()
    for each in filters:
        assert ours.count_rows(each) == ours.scanner(filter=each, use_scalar_index=False).count_rows()


def test_tokens_of_texts() -> None:
    assert tokens_of("ab") == []
    assert tokens_of("x-y") == []
    assert tokens_of("Hel") == [25219]
    assert tokens_of("straße") == tokens_of("STRASSE")
    assert tokens_of("ⱽⱽⱽ") == []
    assert tokens_of("abcªdef") == tokens_of("abc def")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset with an index."""
    path = tmp_path_factory.mktemp("indexed") / "t"
    lance_dataset.write_dataset(_table(3000, 4), path, max_rows_per_file=1000).create_scalar_index("c", "NGRAM")
    return path


@pytest.mark.parametrize("damage", ["cut", "zeros", "gone"])
def test_damaged_files_are_errors(indexed: Path, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "t"
    shutil.copytree(indexed, path)
    (file,) = path.glob("_indices/*/ngram_postings.lance")
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "zeros":
        file.write_bytes(bytes(len(content) // 2) + content[len(content) // 2 :])
    else:
        file.unlink()
    dataset = lance_dataset.dataset(path)
    with pytest.raises(LanceError, match=r"ngram_postings|wrongly"):
        dataset.count_rows("contains(c, 'quick')")
    assert dataset.scanner(filter="contains(c, 'quick')", use_scalar_index=False).count_rows() > 0


_QUICK = TextCondition(Text("quick"), True)


def _folder(path: Path, tokens: pa.Array, sets: pa.Array) -> IndexFolder:
    """Return an index with any content."""
    batch = pa.RecordBatch.from_arrays([tokens, sets], [TOKENS, ROWS])
    NewIndexFolder(LocalStore(), str(path)).write(POSTINGS, Schema.from_arrow(batch.schema), "2.2", [batch])
    return IndexFolder(LocalStore(), str(path))


def _set(*rows: int, runs: bool = False) -> bytes:
    bitmap = pyroaring.BitMap(rows)
    if runs:
        bitmap.run_optimize()
    return struct.pack("<QI", 1, 0) + bitmap.serialize()


def _numbers(tokens: list[int]) -> pa.Array:
    return pa.array(tokens, pa.uint32())


_QUICK_TOKENS = _numbers(tokens_of("quick"))
_GOOD = _set(3, 5, 70_000)
_BROKEN: dict[str, tuple[pa.Array, pa.Array]] = {
    "tokens": (_QUICK_TOKENS.cast(pa.int64()), pa.array([_GOOD] * 3)),
    "sets": (_QUICK_TOKENS, pa.array(["text"] * 3)),
    "null token": (pa.array([None, 1, 2], pa.uint32()), pa.array([_GOOD] * 3)),
    "null set": (_QUICK_TOKENS, pa.array([_GOOD, None, _GOOD])),
    "large token": (_numbers([1, 2, 1 << 31]), pa.array([_GOOD] * 3)),
    "token twice": (_numbers([1, 2, 2]), pa.array([_GOOD] * 3)),
    "empty set": (_QUICK_TOKENS, pa.array([b""] * 3)),
    "cut set": (_QUICK_TOKENS, pa.array([_GOOD, _GOOD[:-1], _GOOD])),
    "long set": (_QUICK_TOKENS, pa.array([_GOOD, _GOOD + b"0", _GOOD])),
    "descending set": (_QUICK_TOKENS, pa.array([_GOOD[:-6] + b"\x09\0\x03\0\x70\x11"] * 3)),
    "huge count": (_QUICK_TOKENS, pa.array([b"\xff" * 8 + _GOOD[8:]] * 3)),
    "cut runs": (_QUICK_TOKENS, pa.array([_set(*range(900), runs=True)[:-1]] * 3)),
}


@pytest.mark.parametrize("name", _BROKEN)
def test_wrong_content_is_an_error(tmp_path: Path, name: str) -> None:
    folder = _folder(tmp_path, *_BROKEN[name])
    with pytest.raises(CorruptFileError, match="ngram_postings"):
        NgramSearch(folder, lambda _: 0).search(_QUICK)
    with pytest.raises(CorruptFileError, match="ngram_postings"):
        _extended(folder, tmp_path / "new")


def _extended(folder: IndexFolder, target: Path) -> dict[int, list[int]]:
    """Return the content of an index that has the even rows of an old one."""
    old = OldSegment(folder, lambda rows: rows % np.uint64(2) == 0)
    work = Training(iter(()), pa.string(), NewIndexFolder(LocalStore(), str(target)), {}, 1 << 20)
    assert ngram_training.TRAINER.extend is not None
    ngram_training.TRAINER.extend([old], work)
    table = lance.file.LanceFileReader(str(target / POSTINGS)).read_all().to_table()
    sets = [list(pyroaring.BitMap64.deserialize(each)) for each in table[ROWS].to_pylist()]
    return dict(zip(table[TOKENS].to_pylist(), sets, strict=True))


def test_runs_of_rows_are_read(tmp_path: Path) -> None:
    """The reference writes no runs, but they are part of the format of the sets."""
    rows = [*range(9000), *range(100_000, 180_000), 200_001]
    sets = [_set(*rows, runs=True), _set(*rows[::2]), _set(*rows)]
    folder = _folder(tmp_path, _QUICK_TOKENS, pa.array(sets, pa.large_binary()))
    assert NgramSearch(folder, lambda _: 0).search(_QUICK).tolist() == rows[::2]
    even = [row for row in rows if row % 2 == 0]
    kept = [row for row in rows[::2] if row % 2 == 0]
    assert list(_extended(folder, tmp_path / "new").values()) == [even, kept, even]


def test_tokens_may_have_any_order(tmp_path: Path) -> None:
    folder = _folder(tmp_path, _QUICK_TOKENS[::-1], pa.array([_set(1, 2), _set(1, 2, 3), _set(2, 1)]))
    search = NgramSearch(folder, lambda _: 0)
    assert search.search(_QUICK).tolist() == [1, 2]
    assert search.estimate(_QUICK) == 2
    with pytest.raises(CorruptFileError, match="ascending"):
        _extended(folder, tmp_path / "new")


def test_conditions_are_combined(tmp_path: Path) -> None:
    tokens = sorted({token for text in ("abc", "def", "ghi") for token in tokens_of(text)})
    folder = _folder(tmp_path, _numbers(tokens), pa.array([_set(1, 2, 3), _set(2, 3, 4), _set(3, 4, 5)]))
    search = NgramSearch(folder, lambda _: 0)
    abc, other, ghi, short = Text("abc"), Text("def"), Text("ghi"), Text("xy")
    cases: list[tuple[Any, list[int] | None]] = [
        (abc, [1, 2, 3]),
        (AllTexts((abc, other)), [2, 3]),
        (AnyText((abc, other)), [1, 2, 3, 4]),
        (AllTexts((abc, AnyText((other, ghi)))), [2, 3]),
        (AllTexts((AnyText((abc, other)), AnyText((other, ghi)))), [2, 3, 4]),
        (AnyText((AllTexts((abc, other)), ghi)), [2, 3, 4, 5]),
        (AllTexts((abc, short)), [1, 2, 3]),
        (AnyText((abc, short)), None),
        (short, None),
        (Text("abd"), []),
    ]
    for need, expected in cases:
        for condition in (TextCondition(need, False), CaselessTextCondition(need)):
            answer = search.answers(condition)
            assert answer is (Answer.NONE if expected is None else Answer.CANDIDATES)
            assert search.search(condition).tolist() == (expected or [])
    assert search.answers(ValueCondition()) is Answer.NONE
