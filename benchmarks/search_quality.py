"""Quality of full-text search: nDCG@10 of this package and of bm25s, on documents whose relevance is known.

Documents are the docstrings of installed packages and the manual pages of the system, without their first sentence or
their one-line description. Each of these is a query, for which the documents that it was taken from are relevant. Both
packages use k1 = 1.2, b = 0.75, the English Snowball stemmer, and the same stop words.

    python benchmarks/search_quality.py [--documents 60000] [--queries 3000] [--folder DIR] [--limit 0.2]

It needs the package bm25s. The exit code is 1 if the scores differ by more points than the limit.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import random
import re
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import bm25s
import numpy as np
import pyarrow as pa
import Stemmer

import lance_dataset as lance
from lance_dataset.index.text.analysis.stop_words import stop_words

_K = 10
_MANUALS = Path("/usr/share/man")
_LEAST_WORDS = 20
_QUERY_WORDS = range(4, 25)
_SECTION = re.compile(r"^\.S[Hh]\s+\"?NAME\"?\s*\n(.*?)^\.S[Hh]\s", re.DOTALL | re.MULTILINE)
_ESCAPE = re.compile(r"\\(?:f[A-Z]|f\(..|f\[[^]]*\]|\*\(..|\*\[[^]]*\]|s[-+]?\d+|[&|^/,:])")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True)
class Collection:
    """Documents and queries.

    Attributes
    ----------
    documents
        The texts.
    queries
        The queries.
    relevant
        For each query the numbers of the documents that are relevant.
    """

    documents: list[str]
    queries: list[str]
    relevant: list[set[int]]


def docstrings(folders: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield the first sentence and the rest of the docstrings of modules, classes and functions below folders."""
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, ValueError, OSError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                first, _, rest = text.partition("\n\n")
                yield first, rest


def manual_pages(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the description and the other text of manual pages in English."""
    for path in sorted(folder.glob("man[1-8]/*")):
        try:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        except OSError:
            continue
        source = data.decode("utf-8", "replace")
        name = _SECTION.search(source)
        if name is not None:
            _, _, description = _plain(name.group(1)).partition(" - ")
            yield description, _plain(source[name.end() :])


def _plain(source: str) -> str:
    """Return the text of a source for roff."""
    lines = []
    for line in source.splitlines():
        if line.startswith(("'", ".")):
            command, _, line = line.partition(" ")
            if command.startswith((".\\", "'\\", ".if", ".ie", ".el", ".de", ".ds", ".nr", ".TH", ".so")):
                continue
        lines.append(_ESCAPE.sub("", line).replace("\\-", "-").replace("\\e", "\\").replace('"', " "))
    return " ".join(lines)


def collection(pairs: Iterable[tuple[str, str]], documents: int, queries: int) -> Collection:
    """Choose documents and queries; the choice is always the same for the same pairs."""
    pick = random.Random(1)
    texts: dict[str, set[str]] = {}
    for first, rest in pairs:
        heading, text = (_BLANKS.sub(" ", each).strip() for each in (first, rest))
        if len(heading.split()) in _QUERY_WORDS and len(text.split()) >= _LEAST_WORDS:
            texts.setdefault(text, set()).add(heading.casefold())
    chosen = pick.sample(sorted(texts), min(documents, len(texts)))
    owners: dict[str, set[int]] = {}
    for number, text in enumerate(chosen):
        for heading in texts[text]:
            owners.setdefault(heading, set()).add(number)
    asked = pick.sample(sorted(owners), min(queries, len(owners)))
    return Collection(chosen, asked, [owners[heading] for heading in asked])


def ours(found: Collection, folder: Path) -> list[list[int]]:
    """Return the best documents for each query, as this package finds them."""
    table = pa.table({"number": range(len(found.documents)), "text": found.documents})
    dataset = lance.write_dataset(table, folder / "quality.lance", mode="overwrite")
    dataset.create_scalar_index("text", "INVERTED", max_token_length=None)
    return [dataset.search(query, columns=["number"], k=_K)["number"].to_pylist() for query in found.queries]


def theirs(found: Collection) -> list[list[int]]:
    """Return the best documents for each query, as bm25s finds them."""
    options = {
        "stopwords": sorted(stop_words("English")),
        "stemmer": Stemmer.Stemmer("english"),
        "token_pattern": r"[^\W_]+",
        "show_progress": False,
    }
    index = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    index.index(bm25s.tokenize(found.documents, **options), show_progress=False)
    results, _ = index.retrieve(bm25s.tokenize(found.queries, **options), k=_K, show_progress=False)
    return [[int(number) for number in row] for row in results]


def ndcg(rankings: list[list[int]], relevant: list[set[int]]) -> float:
    """Return the mean normalized discounted cumulative gain of the first documents, from 0 to 100.

    Jarvelin and Kekalainen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20(4), 2002.
    """
    discounts = 1 / np.log2(np.arange(2, _K + 2))
    scores = []
    for ranking, wanted in zip(rankings, relevant, strict=True):
        gains = np.array([number in wanted for number in ranking[:_K]], float)
        scores.append(float(gains @ discounts[: len(gains)]) / float(discounts[: len(wanted)].sum()))
    return 100 * float(np.mean(scores))


def main() -> int:
    """Print both scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=60_000)
    parser.add_argument("--queries", type=int, default=3_000)
    parser.add_argument("--folder", type=Path, help="folder for the dataset; a temporary one by default")
    parser.add_argument("--limit", type=float, default=0.2, help="points by which the scores may differ")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SyntaxWarning)
    folders = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}
    pairs = [*docstrings(folders), *manual_pages(_MANUALS)]
    found = collection(pairs, options.documents, options.queries)
    size, asked = len(found.documents), len(found.queries)
    words = sum(len(text.split()) for text in found.documents) / max(size, 1)
    print(f"{size:,} documents of {words:.0f} words, {asked:,} queries")
    with tempfile.TemporaryDirectory() as folder:
        mine = ndcg(ours(found, options.folder or Path(folder)), found.relevant)
    other = ndcg(theirs(found), found.relevant)
    print(f"nDCG@{_K}: lance-dataset {mine:.2f}, bm25s {other:.2f}, difference {mine - other:+.2f}")
    return 0 if abs(mine - other) <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
