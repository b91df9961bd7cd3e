"""Tests of the cloud store on a real S3 server, with network faults where they matter."""

from __future__ import annotations

import random
import re
import signal
import sys
import threading
import time

import pytest
from support.processes.child_process import run_script
from support.stores.s3_proxy import LOSE_ANSWER, LOSE_REQUEST, Proxy, proxied
from support.stores.s3_server import S3Server

from lance_dataset.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InvalidInputError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.resolve import resolve

PART = 10 << 20


def store_at(proxy: Proxy, bucket: str, **options: str) -> ObjectStore:
    return resolve(f"s3://{bucket}/t", {**proxy.server.options, **options})[0]


# -- small objects, listings -------------------------------------------------------------------------------------


def test_small_objects(store: ObjectStore) -> None:
    store.put("t/a", b"one")
    store.put("t/a", b"two")
    store.put("/t/b", b"")
    assert store.read("t/a") == b"two"
    assert store.read("t/b") == b""
    assert store.exists("t/a")
    assert not store.exists("t")
    assert not store.exists("t/c")
    with pytest.raises(MissingFileError, match=r"s3://.*/t/c does not exist"):
        store.read("t/c")
    store.copy("t/a", "t/c")
    store.copy("t/a", "t/b")
    assert store.read("t/c") == store.read("t/b") == b"two"
    with pytest.raises(MissingFileError):
        store.copy("t/none", "t/c")
    store.delete("t/a")
    store.delete("t/a")
    assert not store.exists("t/a")


def test_time_of_change(store: ObjectStore) -> None:
    store.put("t/x", b"abc")
    [listed] = store.list("t")
    assert store.modified("t/x") == pytest.approx(listed.modified, abs=1)
    with pytest.raises(MissingFileError, match="t/y"):
        store.modified("t/y")


def test_listings(store: ObjectStore) -> None:
    names = [f"{number:04}.manifest" for number in range(25)]
    for name in names:
        store.put(f"t/_versions/{name}", b"x")
    store.put("t/_versions-other/a", b"")
    assert store.lists_in_order
    assert list(store.list_names("t/_versions")) == names
    found = next(iter(store.list("t/_versions/")))
    assert (found.path, found.name, found.size) == (f"t/_versions/{names[0]}", names[0], 1)
    assert abs(found.modified - time.time()) < 300
    assert list(store.list("t/none")) == list(store.list_names("t/none")) == list(store.list_tree("t/none")) == []
    store.put("t/data/b/c/1", b"")
    store.put("t/data/b/2", b"")
    store.put("t/data/a", b"")
    store.put("t/data/z", b"")
    assert sorted(info.path for info in store.list("t/data")) == ["t/data/a", "t/data/z"]
    assert sorted(store.list_names("t/data")) == ["a", "b", "z"]
    assert sorted(info.path for info in store.list_tree("t/data")) == [
        "t/data/a",
        "t/data/b/2",
        "t/data/b/c/1",
        "t/data/z",
    ]
    store.delete_tree("t/_versions")
    store.delete_tree("t/nothing")
    assert not list(store.list("t/_versions"))
    assert list(store.list_names("t/_versions-other")) == ["a"]


def test_the_first_name_of_many_costs_one_request(s3_server: S3Server, bucket: str, store: ObjectStore) -> None:
    names = [f"{number:05}.manifest" for number in range(1100)]
    threads = [
        threading.Thread(target=lambda part=part: [store.put(f"t/_versions/{name}", b"x") for name in part])
        for part in (names[start::8] for start in range(8))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with proxied(s3_server) as proxy:
        assert next(iter(store_at(proxy, bucket).list_names("t/_versions"))) == names[0]
        assert proxy.count() == 1
        assert list(store_at(proxy, bucket).list_names("t/_versions")) == names
    store.delete_tree("t")
    assert not list(store.list_tree(""))


@pytest.mark.parametrize("name", ["a b", "ü/ö", "a%20b", "x#y?z", "a+b:c", "a{b}*", "~x", "[y]"])
def test_names(s3_server: S3Server, bucket: str, store: ObjectStore, name: str) -> None:
    store.put(f"t/{name}", b"x")
    assert s3_server.keys(bucket) == [f"t/{name}"]
    assert [info.path for info in store.list_tree("t")] == [f"t/{name}"]
    assert store.read(f"t/{name}") == b"x"
    assert store.open_input(f"t/{name}").read(0, 1).to_pybytes() == b"x"


def test_locations(s3_server: S3Server) -> None:
    options = s3_server.options
    store, root = resolve("s3://some-bucket/a%20b/%C3%BC/", options)
    assert root == "a b/ü"
    assert store.uri(root) == "s3://some-bucket/a b/ü"
    for root in ("a%20b", "a#b/c?d", "100%", "%", "a+b ü"):
        again, found = resolve(store.uri(root), options)
        assert (again.uri(found), found) == (store.uri(root), root)
    assert store.uri("a%20b#c") == "s3://some-bucket/a%2520b%23c"
    assert resolve("S3://some-bucket", options)[1] == ""
    same, other = (resolve("s3://some-bucket", given)[0] for given in (options, {**options, "timeout": "9s"}))
    assert same._connection is store._connection is not other._connection  # each store counts its own reads
    assert same.statistics is not store.statistics
    for uri in ("s3://", "s3:///x", "s3://b/a//b", "s3://b/../a", "s3://b//a", "s3://b/a?b=c", "s3://b/a#b"):
        with pytest.raises(InvalidInputError, match=re.escape(uri)):
            resolve(uri, options)


# -- reading -----------------------------------------------------------------------------------------------------


def test_opening_costs_one_request(s3_server: S3Server, bucket: str, store: ObjectStore) -> None:
    content = random.Random(1).randbytes(300_001)
    store.put("t/a", content)
    with proxied(s3_server) as proxy:
        for size in (None, len(content)):
            proxy.requests.clear()
            opened = store_at(proxy, bucket).open_input("t/a", size)
            assert (opened.size, opened.mapped, opened.path) == (300_001, None, f"s3://{bucket}/t/a")
            assert opened.read(290_000, 10_001) == content[290_000:]
            assert opened.read(300_001, 0).size == opened.read(0, 0).size == 0
            assert proxy.count() == 1
            assert opened.read(5, 100_000) == content[5:100_005]
            assert proxy.count() == 2


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_ranges(s3_server: S3Server, bucket: str, store: ObjectStore, size: int) -> None:
    content = random.Random(size).randbytes(size)
    store.put("t/a", content)
    chosen = random.Random(7)
    for opened in (store.open_input("t/a"), store.open_input("t/a", size)):
        ranges = [(0, size), (size, 0)]
        for _ in range(30):
            start = chosen.randint(0, size)
            ranges.append((start, chosen.randint(0, size - start)))
        for (start, length), buffer in zip(ranges, opened.read_ranges(ranges), strict=True):
            assert buffer == content[start : start + length]
            assert length == 0 or buffer.address % 64 == start % 64
        for offset, length in ((-1, 1), (0, -1), (0, size + 1), (size + 1, 0)):
            with pytest.raises(CorruptFileError, match="lie outside"):
                opened.read(offset, length)
        opened.close()
        with pytest.raises(InvalidInputError, match="closed"):
            opened.read(0, 0)


def test_a_large_object_is_fetched_once(s3_server: S3Server, bucket: str, store: ObjectStore) -> None:
    content = random.Random(2).randbytes(40 << 20)
    output = store.open_output("t/large")
    output.write(content)
    output.close()
    with proxied(s3_server) as proxy:
        opened = store_at(proxy, bucket).open_input("t/large", len(content))
        proxy.requests.clear()
        buffers = opened.read_ranges([(0, 30 << 20), (30 << 20, 100), ((30 << 20) + 50_000, 1 << 20)])
        assert buffers == [content[: 30 << 20], content[30 << 20 :][:100], content[(30 << 20) + 50_000 :][: 1 << 20]]
        spans = [tuple(map(int, re.findall(r"\d+", header))) for _, _, header in proxy.requests]
        assert sum(stop - start + 1 for start, stop in spans) < (31 << 20) + 60_000
        proxy.requests.clear()
        assert opened.read_ranges([(start << 20, 10) for start in range(20)]) == [
            content[start << 20 :][:10] for start in range(20)
        ]
        assert proxy.count() == 20


def test_reading_from_several_threads(store: ObjectStore) -> None:
    content = random.Random(3).randbytes(1 << 20)
    store.put("t/a", content)
    opened = store.open_input("t/a")
    wrong = []

    def read(seed: int) -> None:
        chosen = random.Random(seed)
        for _ in range(20):
            ranges = [(chosen.randrange(900_000), chosen.randrange(100_000)) for _ in range(5)]
            wrong.extend(
                range_
                for range_, buffer in zip(ranges, opened.read_ranges(ranges), strict=True)
                if buffer != content[range_[0] : sum(range_)]
            )

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_objects_that_are_not_as_expected(store: ObjectStore) -> None:
    content = random.Random(4).randbytes(200_000)
    store.put("t/a", content)
    for size in (0, 1, 199_999, 200_001, 900_000):
        with pytest.raises(CorruptFileError, match=f"has 200000 bytes, but its manifest says {size}"):
            store.open_input("t/a", size)
    store.put("t/empty", b"")
    with pytest.raises(CorruptFileError, match="has 0 bytes"):
        store.open_input("t/empty", 5)
    for size in (None, 0, 5):
        with pytest.raises(MissingFileError, match="t/none does not exist"):
            store.open_input("t/none", size)
    opened = store.open_input("t/a")
    for other in (content[:100], content[1:] + b"x", content + b"x"):
        store.put("t/a", other)
        with pytest.raises(CorruptFileError, match="another object"):
            opened.read(1000, 10)
    store.delete("t/a")
    with pytest.raises(MissingFileError):
        opened.read(1000, 10)


def test_a_download_that_breaks_off_is_repeated(s3_server: S3Server, bucket: str, store: ObjectStore) -> None:
    store.put("t/a", bytes(200_000))
    with proxied(s3_server) as proxy:
        opened = store_at(proxy, bucket).open_input("t/a")
        faults = iter([LOSE_ANSWER, 503, LOSE_REQUEST])
        proxy.fault = lambda method, path: next(faults, None)
        assert opened.read(0, 10).to_pybytes() == bytes(10)
        proxy.fault = lambda method, path: 500
        hopeless = store_at(proxy, bucket, client_max_retries="0", download_retry_count="1")
        with pytest.raises(StorageError, match="500"):
            hopeless.read("t/a")


# -- writing only what is absent ---------------------------------------------------------------------------------


def test_of_many_writers_one_wins(s3_server: S3Server, bucket: str, store: ObjectStore) -> None:
    for turn in range(4):
        outcome: dict[int, str] = {}
        start = threading.Barrier(8)

        def write(number: int, turn: int = turn, outcome: dict[int, str] = outcome, start=start) -> None:
            start.wait()
            try:
                store.put_if_absent(f"t/{turn}", b"%d" % number * 1000)
                outcome[number] = "won"
            except AlreadyExistsError:
                outcome[number] = "lost"

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcome.values()) == ["lost"] * 7 + ["won"]
        winner = next(number for number, what in outcome.items() if what == "won")
        assert store.read(f"t/{turn}") == b"%d" % winner * 1000


@pytest.mark.parametrize("faults", [[LOSE_ANSWER], [LOSE_REQUEST, 503, LOSE_ANSWER], [500, 429], [LOSE_ANSWER] * 3])
def test_a_lost_answer_is_not_a_lost_race(
    s3_server: S3Server, bucket: str, store: ObjectStore, faults: list[str | int]
) -> None:
    with proxied(s3_server) as proxy:
        rest = iter(faults)
        proxy.fault = lambda method, path: next(rest, None) if method == "PUT" else None
        store_at(proxy, bucket).put_if_absent("t/a", b"mine")
        assert store.read("t/a") == b"mine"
        with pytest.raises(AlreadyExistsError):
            store_at(proxy, bucket).put_if_absent("t/a", b"mine")


@pytest.mark.parametrize("faults", [[LOSE_ANSWER], [LOSE_REQUEST], [503, 503], [LOSE_ANSWER] * 9])
def test_a_lost_answer_is_not_a_victory(
    s3_server: S3Server, bucket: str, store: ObjectStore, faults: list[str | int]
) -> None:
    store.put("t/a", b"theirs")
    with proxied(s3_server) as proxy:
        rest = iter(faults)
        proxy.fault = lambda method, path: next(rest, None) if method == "PUT" else None
        with pytest.raises(AlreadyExistsError):
            store_at(proxy, bucket).put_if_absent("t/a", b"mine")
    assert store.read("t/a") == b"theirs"


def test_what_cannot_be_written(s3_server: S3Server, bucket: str, store: ObjectStore) -> None:
    with proxied(s3_server) as proxy:
        proxied_store = store_at(proxy, bucket, client_max_retries="1")
        proxy.fault = lambda method, path: 503 if method == "PUT" else None
        with pytest.raises(StorageError, match="it is not there now"):
            proxied_store.put_if_absent("t/a", b"x")
        proxy.fault = lambda method, path: LOSE_ANSWER if method == "PUT" else 503
        with pytest.raises(StorageError, match="whether it was written is not known"):
            proxied_store.put_if_absent("t/b", b"x")
        proxy.fault = lambda method, path: 501 if method == "PUT" else None
        with pytest.raises(UnsupportedError, match="external manifest store"):
            proxied_store.put_if_absent("t/c", b"x")
        proxy.fault = lambda method, path: 409 if method == "PUT" else None
        with pytest.raises(StorageError, match="it is not there now"):
            proxied_store.put_if_absent("t/d", b"x")
        proxy.fault = lambda method, path: LOSE_REQUEST
        with pytest.raises(StorageError, match="no answer"):
            proxied_store.put("t/e", b"x")
    assert not store.exists("t/a")


# -- long objects ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 3 * PART + 17])
def test_long_objects(s3_server: S3Server, bucket: str, store: ObjectStore, size: int) -> None:
    content = random.Random(size).randbytes(size)
    output = store.open_output("t/a")
    output.write(content[:100])
    output.write_many([memoryview(content)[100:5000], content[5000:]])
    assert output.tell() == size
    assert s3_server.keys(bucket) == []
    output.close()
    output.close()
    output.abort()
    assert store.read("t/a") == content
    assert s3_server.unfinished_uploads(bucket) == []
    with pytest.raises(InvalidInputError, match="closed"):
        output.write(b"x")
    again = store.open_output("t/a")
    with pytest.raises(AlreadyExistsError):  # noqa: PT012 - before the end or at it
        again.write(content + b"more")
        again.close()
    again.abort()
    assert store.read("t/a") == content


def test_an_aborted_object_leaves_nothing(s3_server: S3Server, bucket: str, store: ObjectStore) -> None:
    for size in (0, 5, PART, 2 * PART + 5, 9 * PART):
        output = store.open_output("t/a")
        output.write(bytes(size))
        output.abort()
        output.abort()
        dropped = store.open_output("t/b")
        dropped.write(bytes(size))
        del dropped
    assert s3_server.keys(bucket) == []
    assert s3_server.unfinished_uploads(bucket) == []


def test_an_upload_that_fails_leaves_nothing(s3_server: S3Server, bucket: str) -> None:
    with proxied(s3_server) as proxy:
        proxied_store = store_at(proxy, bucket, client_max_retries="0")
        for fails in ("partNumber=2", "uploads", "uploadId"):
            proxy.fault = lambda method, path, fails=fails: 400 if fails in path and method != "DELETE" else None
            output = proxied_store.open_output("t/a")
            with pytest.raises(StorageError, match=r"writing s3://.*/t/a failed.*400"):  # noqa: PT012 - or later
                for _ in range(6):
                    output.write(bytes(PART))
                output.close()
            output.abort()
    assert s3_server.keys(bucket) == []
    if sys.version_info >= (3, 11):  # earlier versions of the client library leave them to the bucket's rules
        assert s3_server.unfinished_uploads(bucket) == []


_WRITE_FOREVER = """
    import sys
    from lance_dataset.io.resolve import resolve
    store, root = resolve(sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[2:]))
    output = store.open_output(root)
    for number in range(10**6):
        output.write(bytes(1 << 20))
        print(number, flush=True)
"""


def test_a_killed_writer_leaves_no_object(s3_server: S3Server, bucket: str) -> None:
    process = run_script(_WRITE_FOREVER, f"s3://{bucket}/t/a", **s3_server.options)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == 45:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert s3_server.keys(bucket) == []


_MEASURE = """
    import resource, sys
    from lance_dataset.io.resolve import resolve
    store, root = resolve(sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[2:]))
    store.put("warm", bytes(PART))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    output = store.open_output(root)
    for number in range(400):
        output.write(bytes(1 << 20))
    output.close()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_an_object_is_not_held_whole(s3_server: S3Server, bucket: str) -> None:
    process = run_script(_MEASURE.replace("PART", str(PART)), f"s3://{bucket}/t/a", **s3_server.options)
    grown = int(process.communicate(timeout=120)[0]) * 1024
    assert process.returncode == 0
    assert grown < 200 << 20
    assert s3_server.client().head_object(Bucket=bucket, Key="t/a")["ContentLength"] == 400 << 20
