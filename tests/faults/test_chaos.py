"""Tests of datasets on an S3 server behind a network that delays, cuts, repeats and loses, and of servers that lie.

``LANCE_STRESS=1`` makes many more operations, ``LANCE_STRESS_SEED`` sets the seed.
"""

from __future__ import annotations

import os
import time

import pytest
from support.stores.chaos import CHANGES, LYING, NETWORK, READS, STALE, Chaos
from support.stores.s3_proxy import LOSE_ANSWER, REPLAY, Fault, proxied
from support.stores.s3_server import S3Server

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
SEED = int(os.environ.get("LANCE_STRESS_SEED", "20261123"))
ROUNDS, STEPS = (10, 60) if THOROUGH else (1, 10)
#: Operations on a server that always fails: each of them waits for its retries.
HOPELESS = [*CHANGES, *READS] if THOROUGH else ["create", "append", "cleanup", "take"]


@pytest.mark.parametrize("kinds", [NETWORK, LYING, STALE], ids=["network", "lying", "stale"])
def test_random_operations(s3_server: S3Server, kinds: tuple[Fault, ...]) -> None:
    for number in range(ROUNDS):
        seed = SEED + number
        with proxied(s3_server) as proxy:
            chaos = Chaos(s3_server, proxy, s3_server.new_bucket(), seed, kinds, 0.4 if kinds == STALE else 0.1)
            for turn in range(STEPS):
                try:
                    chaos.step()
                except Exception as error:
                    raise AssertionError(f"seed {seed}, step {turn}: {type(error).__name__}: {error}") from error
            chaos.check_all()
        print(f"seed {seed}: done {chaos.done}, failed {chaos.failed}, faults {chaos.faults}")
        assert chaos.done


@pytest.mark.parametrize("name", HOPELESS)
def test_a_server_that_always_fails(s3_server: S3Server, name: str) -> None:
    """Every operation ends after a few requests."""
    with proxied(s3_server) as proxy:
        chaos = Chaos(s3_server, proxy, s3_server.new_bucket(), SEED, (503,), 0.0)
        if name != "create":
            chaos.step("create")
        chaos._often = 1.0
        proxy.requests.clear()
        start = time.monotonic()
        chaos.step(name)
        assert chaos.failed == {name: 1}
        assert proxy.count() <= 8
        assert time.monotonic() - start < 30


@pytest.mark.parametrize("fault", [LOSE_ANSWER, REPLAY])
def test_a_commit_whose_answer_is_lost(s3_server: S3Server, fault: Fault) -> None:
    """The manifest is written, but the writer hears nothing, or that it exists: the commit succeeds, only once."""
    with proxied(s3_server) as proxy:
        chaos = Chaos(s3_server, proxy, s3_server.new_bucket(), SEED, (), 0.0)
        chaos.step("create")
        faults = iter([fault])
        proxy.fault = lambda method, path: (
            next(faults, None) if method == "PUT" and path.endswith(".manifest") else None
        )
        chaos.write({100: 1}, "append")
        assert next(faults, None) is None
    assert chaos.open(clean=True).version == 2
    assert chaos.seen().rows == {**(chaos.state.rows or {}), 100: 1}
