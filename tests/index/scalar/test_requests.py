"""Requests of queries through indices in object stores, beside those of the reference."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from support.stores.s3_proxy import Proxy, proxied
from support.stores.s3_server import S3Server

import lance_dataset

_COUNT = 300_000


def _requests(module: ModuleType, uri: str, proxy: Proxy, filters: list[str]) -> tuple[list[int], list[Any]]:
    """Return the number of requests of each query after opening, and the results."""
    dataset = module.dataset(uri, storage_options=proxy.server.options)
    counts, results = [], []
    for each in filters:
        before = len(proxy.requests)
        results.append(dataset.scanner(columns=["v"], filter=each).to_table())
        counts.append(len(proxy.requests) - before)
    return counts, results


def test_point_queries_take_no_more_requests_than_with_the_reference(s3_server: S3Server) -> None:
    random = np.random.default_rng(4)
    table = pa.table({"k": random.permutation(_COUNT), "v": random.random(_COUNT)})
    bucket = s3_server.new_bucket()
    with proxied(s3_server) as proxy:
        found = {}
        for module in (lance, lance_dataset):
            uri = f"s3://{bucket}/{module.__name__}"
            options = proxy.server.options
            dataset = module.write_dataset(table, uri, storage_options=options, max_rows_per_file=_COUNT // 3)
            dataset.create_scalar_index("k", "BTREE")
            found[module] = _requests(module, uri, proxy, ["k = 500", "k = 77777", "k = 200000", "k = 77777"])
        (theirs, expected), (ours, results) = found[lance], found[lance_dataset]
        assert results == expected
        assert all(mine <= other for mine, other in zip(ours, theirs, strict=True)), (ours, theirs)
