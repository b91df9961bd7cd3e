"""Analysis of queries that many threads share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from lance_dataset.index.text.searching.query_tokens import UNINDEXED, QueryAnalyzer


def test_threads_get_the_tokens_of_their_own_query() -> None:
    shared = QueryAnalyzer(UNINDEXED, is_json=False)
    queries = [f"word{number % 50} other{number % 7}" for number in range(2000)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(shared.tokens, queries))
    assert found == [QueryAnalyzer(UNINDEXED, is_json=False).tokens(query) for query in queries]
