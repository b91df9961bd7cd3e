"""Tests of calls for many items on several threads: results in order, the most expensive item first."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.threads import streams
from lance_dataset.threads.pools import SharedPool, cpu_count
from lance_dataset.threads.streams import map_parallel


@pytest.fixture(params=["1", "3"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LANCE_CPU_THREADS", request.param)
    monkeypatch.setattr(streams, "cpu_pool", SharedPool("test", cpu_count))
    return request.param


@given(st.lists(st.floats(0, 1e9), max_size=60))
def test_map_parallel_keeps_the_order(costs: list[float]) -> None:
    items = list(range(len(costs)))
    assert map_parallel(lambda item: -item, items, parallel=True, costs=costs) == [-item for item in items]


def test_expensive_items_start_first(threads: str) -> None:
    started, lock = [], threading.Lock()

    def work(item: int) -> None:
        with lock:
            started.append(item)

    map_parallel(work, range(50), parallel=True, costs=[float(item == 40) for item in range(50)])
    assert (started[0] == 40) == (threads != "1")
    assert sorted(started) == list(range(50))
