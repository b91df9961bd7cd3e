"""Tests of the contract of the two external manifest stores."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path

import pytest
import sqlalchemy
from support.stores.dynamodb_server import DynamoServer, dynamodb_server

from lance_dataset.errors import AlreadyExistsError, CorruptFileError, InvalidInputError, MissingFileError, StorageError
from lance_dataset.io.external.base import LARGEST_VERSION, ExternalManifests, ManifestEntry
from lance_dataset.io.external.dynamodb import DynamoAccess, DynamoManifests, dynamo_manifests
from lance_dataset.io.external.options import without_manifests
from lance_dataset.io.external.sql import DEFAULT_TABLE, SqlManifests, sql_manifests

__all__ = ["dynamodb_server"]

KEY = "dir/t.lance"
Opener = Callable[[], ExternalManifests]


@pytest.fixture(params=["sqlite", "dynamodb"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Return a function that makes clients of one and the same table."""
    if request.param == "sqlite":
        return lambda: SqlManifests(f"sqlite:///{tmp_path}/manifests.db", DEFAULT_TABLE)
    server: DynamoServer = request.getfixturevalue("dynamodb_server")
    table = server.new_table()
    return lambda: DynamoManifests(table, access(server))


def access(server: DynamoServer) -> DynamoAccess:
    return DynamoAccess(server.endpoint, "us-east-1", "test", "test")


def entry(version: int, path: str = "", size: int | None = 7) -> ManifestEntry:
    return ManifestEntry(version, path or f"_versions/{version}.manifest", size)


def test_entries(opener: Opener) -> None:
    manifests = opener()
    assert manifests.get(KEY, 1) is None
    assert manifests.get_latest(KEY) is None
    for version in (1, 2, 10):
        manifests.put_if_absent(KEY, entry(version))
    other = opener()
    assert other.get(KEY, 2) == entry(2)
    assert other.get(KEY, 3) is None
    assert other.get_latest(KEY) == entry(10)
    with pytest.raises(AlreadyExistsError):
        other.put_if_absent(KEY, entry(2, "other"))
    assert other.get(KEY, 2) == entry(2)
    other.put_if_exists(KEY, entry(2, "other", None))
    other.put_if_exists(KEY, entry(2, "other", None))
    assert manifests.get(KEY, 2) == entry(2, "other", None)
    with pytest.raises(MissingFileError):
        other.put_if_exists(KEY, entry(3))
    assert manifests.get(KEY, 3) is None


def test_datasets_are_apart(opener: Opener) -> None:
    manifests = opener()
    for key in (KEY, f"{KEY}/tree/b", KEY.upper(), "dir/t"):
        assert manifests.get_latest(key) is None
        manifests.put_if_absent(key, entry(len(key)))
    manifests.delete(KEY)
    assert manifests.get_latest(KEY) is None
    for key in (f"{KEY}/tree/b", KEY.upper(), "dir/t"):
        assert manifests.get_latest(key) == entry(len(key))


def test_delete(opener: Opener) -> None:
    manifests = opener()
    for version in range(1, 61):
        manifests.put_if_absent(KEY, entry(version))
    manifests.delete(KEY, range(2, 56))
    manifests.delete(KEY, [3, 1000, 2**63 + 5])
    assert [version for version in range(61) if manifests.get(KEY, version)] == [1, 56, 57, 58, 59, 60]
    manifests.delete(KEY)
    manifests.delete(KEY)
    assert manifests.get_latest(KEY) is None


def test_largest_versions(opener: Opener) -> None:
    manifests = opener()
    manifests.put_if_absent(KEY, entry(LARGEST_VERSION))
    assert manifests.get_latest(KEY) == manifests.get(KEY, LARGEST_VERSION) == entry(LARGEST_VERSION)
    assert manifests.get(KEY, 2**64 - 1) is None


def test_one_of_many_threads_inserts(opener: Opener) -> None:
    clients = [opener() for _ in range(8)]

    def insert(number: int) -> list[int]:
        won = []
        for version in range(10):
            try:
                clients[number].put_if_absent(KEY, entry(version, f"by-{number}"))
                won.append(version)
            except AlreadyExistsError:
                pass
        return won

    with ThreadPoolExecutor(8) as pool:
        won = dict(enumerate(pool.map(insert, range(8))))
    assert sorted(version for versions in won.values() for version in versions) == list(range(10))
    for number, versions in won.items():
        assert all(clients[0].get(KEY, version) == entry(version, f"by-{number}") for version in versions)


def test_a_client_works_in_a_forked_process(opener: Opener) -> None:
    manifests = opener()
    manifests.put_if_absent(KEY, entry(1))
    process = multiprocessing.get_context("fork").Process(target=manifests.put_if_absent, args=(KEY, entry(2)))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert manifests.get_latest(KEY) == entry(2)


def test_pickled_clients_see_the_same(opener: Opener) -> None:
    manifests = opener()
    again = pickle.loads(pickle.dumps(manifests))
    again.put_if_absent(KEY, entry(1))
    assert manifests.get_latest(KEY) == entry(1)


# -- DynamoDB ----------------------------------------------------------------------------------------------------------


def test_dynamodb_rows(dynamodb_server: DynamoServer) -> None:
    table = dynamodb_server.new_table()
    manifests = DynamoManifests(table, access(dynamodb_server))
    key = manifests.key("memory://dir/t.lance", "/dir/t.lance")
    manifests.put_if_absent(key, entry(3, "_versions/18446744073709551612.manifest", 368))
    assert dynamodb_server.rows(table) == [
        {
            "base_uri": "dir/t.lance",
            "version": 3,
            "path": "dir/t.lance/_versions/18446744073709551612.manifest",
            "committer": "lancedb",
            "size": 368,
        }
    ]
    with pytest.raises(InvalidInputError, match="root of a bucket"):
        manifests.key("memory://", "/")


def test_dynamodb_rows_of_others(dynamodb_server: DynamoServer) -> None:
    table = dynamodb_server.new_table()
    manifests = DynamoManifests(table, access(dynamodb_server))
    dynamodb_server.put(table, base_uri=KEY, version=1, path=f"{KEY}/_versions/1.manifest", e_tag="x", committer="y")
    assert manifests.get_latest(KEY) == entry(1, size=None)
    # Detached versions, which the reference lists.
    dynamodb_server.put(table, base_uri=KEY, version=2**63 + 17, path=f"{KEY}/_versions/d1.manifest")
    assert manifests.get_latest(KEY) == entry(1, size=None)
    dynamodb_server.put(table, base_uri=KEY, version=2, path="elsewhere/_versions/2.manifest")
    with pytest.raises(CorruptFileError, match="outside"):
        manifests.get_latest(KEY)
    dynamodb_server.put(table, base_uri=KEY, version=2)
    with pytest.raises(CorruptFileError, match="without a proper"):
        manifests.get(KEY, 2)
    manifests.delete(KEY)
    assert dynamodb_server.rows(table) == []


@pytest.mark.parametrize(
    "keys",
    [
        (("base_uri", "S", "HASH"),),
        (("base_uri", "S", "HASH"), ("version", "S", "RANGE")),
        (("version", "N", "HASH"), ("base_uri", "S", "RANGE")),
        (("uri", "S", "HASH"), ("version", "N", "RANGE")),
    ],
)
def test_dynamodb_keys_are_checked(dynamodb_server: DynamoServer, keys: tuple[tuple[str, str, str], ...]) -> None:
    table = dynamodb_server.new_table(*keys)
    with pytest.raises(InvalidInputError, match="needs exactly base_uri"):
        DynamoManifests(table, access(dynamodb_server)).get(KEY, 1)


def test_dynamodb_failures(dynamodb_server: DynamoServer) -> None:
    with pytest.raises(InvalidInputError, match="there is no DynamoDB table 'none-such'"):
        DynamoManifests("none-such", access(dynamodb_server)).get(KEY, 1)
    with pytest.raises(StorageError, match="cannot be reached"):
        DynamoManifests("t", DynamoAccess("http://127.0.0.1:1", "us-east-1", "a", "b")).get(KEY, 1)


def test_dynamodb_access(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DYNAMODB_ENDPOINT", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    assert DynamoAccess.from_options({}) == DynamoAccess()
    options = {"aws_access_key_id": "a", "secret_access_key": "b", "region": "eu-west-1", "aws_session_token": "c"}
    assert DynamoAccess.from_options(options) == DynamoAccess(None, "eu-west-1", "a", "b", "c")
    monkeypatch.setenv("DYNAMODB_ENDPOINT", "http://there")
    assert DynamoAccess.from_options({}) == DynamoAccess("http://there", "us-east-1")
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    given = DynamoAccess.from_options({"dynamodb_endpoint": "http://here"})
    assert given == DynamoAccess("http://here", "ap-south-1")
    assert dynamo_manifests("t", given) is dynamo_manifests("t", DynamoAccess("http://here", "ap-south-1"))


def test_dynamodb_locations() -> None:
    uri, manifests = without_manifests("s3+ddb://bucket/a/b.lance?ddbTableName=x", {"region": "us-east-1"})
    assert uri == "s3://bucket/a/b.lance"
    assert repr(manifests) == "DynamoManifests('x')"
    for query in ("", "?", "?ddbTableName=", "?ddbTableName=x&y=1", "?table=x"):
        with pytest.raises(ValueError, match="expects exactly one query"):
            without_manifests(f"s3+ddb://bucket/a{query}", {})
    with pytest.raises(InvalidInputError, match="must be left out"):
        without_manifests("s3+ddb://bucket/a?ddbTableName=x", {"manifest_store_url": "sqlite:////x.db"})


# -- SQL ---------------------------------------------------------------------------------------------------------------


def _first_use(url: str, number: int) -> None:
    SqlManifests(url, DEFAULT_TABLE).put_if_absent(KEY, entry(number))


def test_sql_processes_make_the_table_at_the_same_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/manifests.db"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_first_use, args=(url, number)) for number in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 8
    assert all(SqlManifests(url, DEFAULT_TABLE).get(KEY, number) for number in range(8))


def test_sql_rows(tmp_path: Path) -> None:
    manifests = SqlManifests(f"sqlite:///{tmp_path}/manifests.db", "mine")
    assert manifests.key("/data/t.lance", "/data/t.lance") == "/data/t.lance"
    manifests.put_if_absent("/data/t.lance", entry(1))
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/manifests.db")
    with engine.connect() as connection:
        rows = connection.execute(sqlalchemy.text("select version, location, path, size from mine")).all()
    engine.dispose()
    assert rows == [(1, "/data/t.lance", "_versions/1.manifest", 7)]


def test_sql_waits_for_another_writer(tmp_path: Path) -> None:
    manifests = SqlManifests(f"sqlite:///{tmp_path}/manifests.db", DEFAULT_TABLE)
    manifests.put_if_absent(KEY, entry(1))
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/manifests.db")
    with ThreadPoolExecutor(1) as pool:
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text("begin immediate"))
            waiting = pool.submit(manifests.put_if_absent, KEY, entry(2))
            with pytest.raises(FutureTimeout):
                waiting.result(0.3)
            connection.execute(sqlalchemy.text("rollback"))
        waiting.result(30)
    engine.dispose()
    assert manifests.get_latest(KEY) == entry(2)


def test_sql_table_of_somebody_else(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("create table lance_manifests (version integer primary key, name text)"))
    engine.dispose()
    with pytest.raises(InvalidInputError, match="used for something else, its columns are name, version"):
        sql_manifests(url).get(KEY, 1)
    assert sql_manifests(url, "mine").get(KEY, 1) is None


def test_sql_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert without_manifests("/data/t", {}) == ("/data/t", None)
    uri, manifests = without_manifests("/data/t", {"Manifest_Store_URL": "sqlite:///m.db"})
    assert uri == "/data/t"
    assert repr(manifests) == f"SqlManifests('sqlite:///{tmp_path}/m.db')"
    monkeypatch.chdir("/")
    assert without_manifests("/data/t", {"manifest_store_url": f"sqlite:///{tmp_path}/m.db"})[1] is manifests
    with pytest.raises(InvalidInputError, match="which is missing"):
        without_manifests("/data/t", {"manifest_store_table": "x"})


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true", "nonsense"]
)
def test_sql_bad_urls(url: str) -> None:
    with pytest.raises(InvalidInputError, match="manifest_store_url"):
        sql_manifests(url)


def test_sql_failures(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="unable to open database file"):
        sql_manifests(f"sqlite:///{tmp_path}/missing/m.db").get(KEY, 1)
    with pytest.raises(InvalidInputError, match="cannot be used"):
        sql_manifests("nosuchdatabase://user:secret@host/db").get(KEY, 1)


def test_passwords_are_not_shown() -> None:
    with pytest.raises(InvalidInputError) as caught:
        sql_manifests("nosuchdatabase://user:secret@host/db")
    assert "secret" not in str(caught.value)
