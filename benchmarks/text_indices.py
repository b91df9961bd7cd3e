"""Comparison of full-text searches by this package, the reference implementation, and tantivy if it is installed.

All run in one process, and a query is asked of every contender before the next. Each build runs in a process of its
own, which says how much memory it took.
"""

from __future__ import annotations

import multiprocessing
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import lineitem
from memory import peak_memory, reset_peak

__all__ = ["text"]

_K = 10
_QUERIES = 200
_BATCH_ROWS = 1 << 16
_VOCABULARY = 50_000
_WORDS = 34
_THREADS = (1, 8, 100)
#: Seconds that queries from threads are counted.
_SPAN = 3.0
_PARAMETERS = {"with_position": True, "stem": False, "remove_stop_words": False}

Find = Callable[[str], list[float]]


@dataclass(frozen=True)
class _Contender:
    """A package with an index.

    Attributes
    ----------
    match, phrase
        Searches that return the scores of the best rows.
    """

    match: Find
    phrase: Find


def text(rows: int, rounds: int, folder: Path) -> None:
    """Print builds and queries of full-text indices over words of a Zipf distribution and over comments of TPC-H.

    Parameters
    ----------
    rows
        Number of documents with 34 words; there are ten times as many comments.
    rounds
        Repetitions of all queries.
    folder
        Where the tables go.
    """
    _compare("documents of 34 words", documents(rows), rounds, folder / "documents")
    _compare("comments of line items", _comments(10 * rows), rounds, folder / "comments")


# -- data ------------------------------------------------------------------------------------------------------------


def documents(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, _VOCABULARY + 1)
    words = pa.array([f"w{number:x}" for number in range(_VOCABULARY)])

    def batch(count: int) -> pa.Array:
        codes = pa.array(rng.choice(_VOCABULARY, count * _WORDS, p=shares / shares.sum()).astype(np.int32))
        offsets = pa.array(np.arange(0, count * _WORDS + 1, _WORDS, dtype=np.int32))
        return pc.binary_join(pa.ListArray.from_arrays(offsets, words.take(codes)), " ")

    counts = [min(_BATCH_ROWS, rows - start) for start in range(0, rows, _BATCH_ROWS)]
    return pa.table({"t": pa.chunked_array([batch(count) for count in counts])})


def _comments(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    place = lineitem.SCHEMA.get_field_index("comment")
    counts = [(start, min(_BATCH_ROWS, rows - start)) for start in range(0, rows, _BATCH_ROWS)]
    return pa.table({"t": pa.chunked_array([lineitem.make_batch(rng, start, n)[place] for start, n in counts])})


def _queries(table: pa.Table) -> tuple[list[str], list[str]]:
    """Return queries of one to three words, and phrases of two, from the documents."""
    rng = np.random.default_rng(1)
    column = table["t"]
    matches, phrases = [], []
    while len(matches) < _QUERIES:
        words = str(column[int(rng.integers(len(column)))]).split()
        if len(words) < 3:
            continue
        matches.append(" ".join(rng.choice(words, 1 + len(matches) % 3, replace=False)))
        first = int(rng.integers(len(words) - 1))
        phrases.append(" ".join(words[first : first + 2]))
    return matches, phrases


# -- builds ----------------------------------------------------------------------------------------------------------


def _compare(name: str, table: pa.Table, rounds: int, folder: Path) -> None:
    import lance

    import lance_dataset

    print(f"{len(table):,} {name}")
    lance_dataset.write_dataset(table, str(folder / "ours"))
    shutil.copytree(folder / "ours", folder / "pylance")
    _print_builds(folder)
    contenders = {
        "ours": _lance(lance_dataset, str(folder / "ours")),
        "pylance": _lance(lance, str(folder / "pylance")),
        **_tantivy(folder / "tantivy"),
    }
    matches, phrases = _queries(table)
    for kind, queries in (("match", matches), ("phrase", phrases)):
        finders: dict[str, Find] = {each: getattr(contender, kind) for each, contender in contenders.items()}
        _print_queries(kind, queries, finders, rounds)
    for each, contender in contenders.items():
        _print_rates(each, contender.match, matches)


def _print_builds(folder: Path) -> None:
    builds = [("ours", "lance_dataset", folder / "ours"), ("pylance", "lance", folder / "pylance")]
    if _has_tantivy():
        builds.append(("tantivy", "tantivy", folder / "tantivy"))
    spawned = multiprocessing.get_context("spawn")
    for name, package, path in builds:
        with spawned.Pool(1) as pool:
            seconds, peak = pool.apply(_build, (package, str(path), str(folder / "ours")))
        places = [each for each in path.rglob("*") if each.is_file()]
        size = sum(each.stat().st_size for each in places if "_indices" in each.parts or name == "tantivy")
        print(
            f"  built by {name} in {seconds:.2f} s, {peak / 1e6:.0f} MB more, {size / 1e6:.1f} MB of files", flush=True
        )


def _build(package: str, path: str, source: str) -> tuple[float, int]:
    """Build an index; return seconds and the bytes by which the process grew."""
    if package == "tantivy":
        return _measured(lambda: _build_tantivy(path, source))
    module = __import__(package)
    dataset = module.dataset(path)
    dataset.to_table(columns=["t"], limit=10)
    return _measured(lambda: dataset.create_scalar_index("t", "INVERTED", **_PARAMETERS))


def _measured(build: Callable[[], object]) -> tuple[float, int]:
    reset_peak()
    before = peak_memory()
    start = time.perf_counter()
    build()
    return time.perf_counter() - start, peak_memory() - before


# -- contenders ------------------------------------------------------------------------------------------------------


def _lance(module: Any, path: str) -> _Contender:
    dataset = module.dataset(path)
    queries = __import__(f"{module.__name__}.query", fromlist=["query"])

    def find(query: object) -> list[float]:
        found = dataset.to_table(columns=["_score", "_rowid"], full_text_query=query, limit=_K)
        scores: list[float] = found["_score"].to_pylist()
        return scores

    return _Contender(find, lambda text: find(queries.PhraseQuery(text, "t")))


def _has_tantivy() -> bool:
    try:
        import tantivy  # noqa: F401
    except ImportError:
        return False
    return True


def _tantivy_schema() -> Any:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("t", stored=False, tokenizer_name="default", index_option="position")
    return builder.build()


def _texts(source: str) -> Iterator[str]:
    import lance_dataset

    for batch in lance_dataset.dataset(source).to_batches(columns=["t"]):
        yield from batch.column(0).to_pylist()


def _build_tantivy(path: str, source: str) -> None:
    import tantivy

    Path(path).mkdir()
    index = tantivy.Index(_tantivy_schema(), path)
    writer = index.writer(heap_size=256 << 20, num_threads=2)
    for text in _texts(source):
        writer.add_document(tantivy.Document(t=text))
    writer.commit()
    writer.wait_merging_threads()


def _tantivy(path: Path) -> dict[str, _Contender]:
    if not _has_tantivy():
        return {}
    import tantivy

    index = tantivy.Index(_tantivy_schema(), str(path))
    searcher = index.searcher()

    def find(query: Any) -> list[float]:
        return [score for score, _ in searcher.search(query, _K, count=False).hits]

    return {
        "tantivy": _Contender(
            lambda text: find(index.parse_query(text, ["t"])), lambda text: find(index.parse_query(f'"{text}"', ["t"]))
        )
    }


# -- queries ---------------------------------------------------------------------------------------------------------


def _print_queries(kind: str, queries: list[str], finders: dict[str, Find], rounds: int) -> None:
    times: dict[str, list[float]] = {each: [] for each in finders}
    scores: dict[str, list[list[float]]] = {each: [] for each in finders}
    for number in range(rounds + 1):
        for query in queries:
            for each, find in finders.items():
                start = time.perf_counter()
                found = find(query)
                if number:
                    times[each].append(time.perf_counter() - start)
                else:
                    scores[each].append(found)
    pairs = list(zip(scores["ours"], scores["pylance"], strict=True))
    if any(len(ours) != len(theirs) or not np.allclose(ours, theirs, rtol=1e-5) for ours, theirs in pairs):
        raise SystemExit(f"{kind}: the scores of the packages differ")
    medians = {each: 1e3 * statistics.median(found) for each, found in times.items()}
    means = {each: 1e3 * statistics.mean(found) for each, found in times.items()}
    shown = ", ".join(f"{each} {medians[each]:.3f} (mean {means[each]:.3f})" for each in finders)
    print(f"  {kind}, milliseconds: {shown}; {medians['pylance'] / medians['ours']:.1f} times pylance", flush=True)


def _print_rates(name: str, find: Find, queries: list[str]) -> None:
    rates = []
    for threads in _THREADS:
        end = time.perf_counter() + _SPAN
        with ThreadPoolExecutor(threads) as pool:
            done = sum(pool.map(lambda first: _asked_until(end, find, queries, first), range(threads)))  # noqa: B023
        rates.append(f"{threads}: {done / _SPAN:,.0f}")
    print(f"  {name}, queries a second by threads: {', '.join(rates)}", flush=True)


def _asked_until(end: float, find: Find, queries: list[str], first: int) -> int:
    done = 0
    while time.perf_counter() < end:
        find(queries[(first + done) % len(queries)])
        done += 1
    return done
