"""Shared pools where the system gives fewer threads than they may have, or none."""

from __future__ import annotations

import threading

import pytest

from lance_dataset.io.threads import SharedPool
from lance_dataset.query import prefetch


def allow_threads(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let so many threads start from now on."""
    left, start = [count], threading.Thread.start

    def starting(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starting)


@pytest.mark.parametrize("count", [1, 3])
def test_pools_make_do_with_fewer(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    allow_threads(monkeypatch, count)
    assert list(SharedPool("few", lambda: 8)().map(str, range(100))) == [str(number) for number in range(100)]


@pytest.mark.parametrize("count", [0, 1, 20])
def test_tasks_of_tasks_with_few_threads(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    pools = [SharedPool(f"few-{level}", lambda: 16) for level in range(2)]
    monkeypatch.setattr(prefetch, "_pools", pools)
    allow_threads(monkeypatch, count)

    def inner(number: int) -> list[int]:
        return prefetch.together([lambda add=add: number + add for add in range(5)], waiting=True)

    found = prefetch.together([lambda number=number: inner(number) for number in range(20)], waiting=True)
    assert found == [[number + add for add in range(5)] for number in range(20)]

    def failing() -> None:
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        prefetch.together([failing] * 3, waiting=True)
