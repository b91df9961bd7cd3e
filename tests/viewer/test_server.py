"""Tests of the viewer's server: what it answers, and what it refuses."""

from __future__ import annotations

import http.client
import json
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import lance_dataset as lance
from lance_dataset.errors import InvalidInputError
from lance_dataset.viewer import Viewer, app, view
from lance_dataset.viewer.source import Rows

ROWS = 1000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    """Return a dataset of three versions with deletions, vectors, bytes, nested values and a full-text index."""
    random = np.random.default_rng(5)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.normal(size=ROWS * 64).astype("f4")), 64)
    table = pa.table(
        {
            "id": pa.array(range(ROWS)),
            "price": pa.array([None if i % 10 == 0 else i / 4 for i in range(ROWS)]),
            "text": [f"word{i % 7} <script>alert({i})</script>" for i in range(ROWS)],
            "vector": vectors,
            "image": pa.array([PNG if i % 2 else None for i in range(ROWS)], pa.binary()),
            "nested": [{"a": i, "b": ["x"] * (i % 3)} for i in range(ROWS)],
        }
    )
    made = lance.write_dataset(table, str(tmp_path_factory.mktemp("viewer") / "rows.lance"))
    made.delete("id % 5 = 3")
    made.create_scalar_index("text", "INVERTED")
    made.tags.create("start", 1)
    return made


@pytest.fixture(scope="module")
def viewer(dataset: lance.LanceDataset) -> Iterator[Viewer]:
    with view(dataset) as served:
        yield served


class Answer:
    """Status, headers and content of an answer."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.content = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def table(self) -> pa.Table:
        assert self.status == 200, self.content
        return pa.ipc.open_stream(self.content).read_all()


def ask(
    viewer: Viewer, path: str, method: str = "GET", headers: dict[str, str] | None = None, body: bytes | None = None
) -> Answer:
    """Send one request; the path is relative to the address with the token, or has it already."""
    parts = urlsplit(viewer.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    connection.request(method, path if path.startswith("/") else parts.path + path, body, headers or {})
    try:
        return Answer(connection.getresponse())
    finally:
        connection.close()


def get(viewer: Viewer, name: str, **given: object) -> Answer:
    return ask(viewer, f"{name}?{urlencode(given)}")


# -- answers -----------------------------------------------------------------------------------------------------------


def test_table(viewer: Viewer, dataset: lance.LanceDataset) -> None:
    found = get(viewer, "api/table").json
    assert found["rows"] == 800
    assert found["version"] == dataset.version == found["latest"]
    kinds = [column["kind"] for column in found["columns"]]
    assert kinds == ["number", "number", "text", "vector", "binary", "nested"]
    assert get(viewer, "api/table", version=1).json["rows"] == ROWS
    assert get(viewer, "api/table", version="start").json["version"] == 1


@pytest.mark.parametrize("condition", [None, "price > 100", "id % 5 = 1 and price is null", "false"])
def test_windows_are_the_rows_of_the_filter(viewer: Viewer, dataset: lance.LanceDataset, condition: str | None) -> None:
    expected = dataset.to_table(columns=["id"], filter=condition)["id"].to_pylist()
    given = {} if condition is None else {"filter": condition}
    assert get(viewer, "api/count", **given).json == {"rows": len(expected)}
    for start, count in ((0, 7), (150, 200), (max(len(expected) - 3, 0), 50), (5000, 5)):
        found = get(viewer, "api/rows", start=start, count=count, columns="0,5", **given).table
        assert list(map(int, found["0"].to_pylist())) == expected[start : start + count]
        numbers = [int(number) for number in found["row"].to_pylist()]
        assert dataset.take(numbers, columns=["id"])["id"].to_pylist() == expected[start : start + count]


def test_previews(viewer: Viewer, dataset: lance.LanceDataset) -> None:
    found = get(viewer, "api/rows", columns="1,2,3,4,5", count=3).table
    assert found["0"].to_pylist() == [None, "0.25", "0.5"]
    assert found["1"][1].as_py() == "word1 <script>alert(1)</script>"
    assert len(found["2"][0].as_py()) == 48
    vector = dataset.take([0], columns=["vector"])["vector"][0].as_py()
    assert found["2"][0].as_py()[0] == pytest.approx(vector[0])
    assert found["2"][0].as_py()[-1] == pytest.approx(vector[-1])
    assert found["3"].to_pylist() == [None, "208 B", None]
    assert found.schema.field("4").metadata == {b"kind": b"nested", b"name": b"nested"}


def test_cell(viewer: Viewer) -> None:
    assert get(viewer, "api/cell", row=1, column=2).json["text"] == "word1 <script>alert(1)</script>"
    assert get(viewer, "api/cell", row=0, column=1).json["text"] is None
    assert get(viewer, "api/cell", row=800, column=1).json["error"]["type"] == "RowIndexError"


def test_long_values_are_cut(tmp_path: Path) -> None:
    long = lance.write_dataset(pa.table({"s": ["x" * 3_000_000]}), str(tmp_path / "long"))
    with view(long) as served:
        assert len(get(served, "api/rows", columns=0).content) < 5_000
        found = get(served, "api/cell", row=0, column=0).json
        assert found["characters"] == 3_000_000
        assert len(found["text"]) == 1_000_000


def test_bytes_by_range(viewer: Viewer) -> None:
    whole = get(viewer, "media", row=1, column=4)
    assert (whole.status, whole.content, whole.headers["Content-Type"]) == (200, PNG, "image/png")
    assert "sandbox" in whole.headers["Content-Security-Policy"]
    part = ask(viewer, "media?row=1&column=4", headers={"Range": "bytes=8-11"})
    assert (part.status, part.content, part.headers["Content-Range"]) == (206, PNG[8:12], "bytes 8-11/208")
    assert get(viewer, "media", row=0, column=4).status == 404
    assert get(viewer, "media", row=1, column=4, most=10).status == 400
    assert ask(viewer, "media?row=1&column=4", headers={"Range": "bytes=900-"}).status == 400
    assert get(viewer, "media", row=1, column=2).status == 400


def test_blobs(tmp_path: Path) -> None:
    html = b"<html><script>alert(1)</script>"
    table = pa.table([lance.blob_array([PNG, None, html])], schema=pa.schema([lance.blob_field("b")]))
    with view(lance.write_dataset(table, str(tmp_path / "blobs"), data_storage_version="2.2")) as served:
        assert get(served, "api/rows", columns=0).table["0"].to_pylist() == ["208 B", None, "31 B"]
        assert get(served, "media", row=0, column=0).content == PNG
        assert get(served, "media", row=1, column=0).status == 404
        page = get(served, "media", row=2, column=0)
        assert page.headers["Content-Type"] == "application/octet-stream"
        assert page.headers["Content-Disposition"].startswith("attachment")


def test_sql(viewer: Viewer) -> None:
    found = get(viewer, "api/sql", query="select count(*) as n, 1 as one from dataset where id < 10").table
    assert [column[0].as_py() for column in found.columns] == ["8", "1"]
    many = get(viewer, "api/sql", query="select a.id from dataset a, dataset b").table
    assert many.num_rows == 2000
    assert many.schema.metadata[b"more"] == b"true"


@pytest.mark.parametrize(
    "query",
    [
        "copy (select 1 as a) to '{}'",
        "explain analyze copy (select 1 as a) to '{}'",
        "create external table t stored as csv location '/etc/hostname'",
        "create view v as select 1",
        "set datafusion.catalog.information_schema = true",
        "insert into dataset select * from dataset",
        "drop table dataset",
        "select 1; select 2",
    ],
)
def test_sql_only_reads(viewer: Viewer, tmp_path: Path, query: str) -> None:
    target = tmp_path / "written.csv"
    assert get(viewer, "api/sql", query=query.format(target)).status == 400
    assert not target.exists()


@pytest.mark.parametrize(
    ("path", "given", "position"),
    [
        ("count", {"filter": "price > > 3"}, 8),
        ("count", {"filter": "nothing = 3"}, 0),
        ("rows", {"filter": "id in (", "columns": 0}, 7),
        ("sql", {"query": "select id\nfrom dataset whre id"}, None),
        ("sql", {"query": "select\n  nothing from dataset"}, 9),
        ("sql", {"query": "selec 1"}, 0),
    ],
)
def test_errors_have_their_place(viewer: Viewer, path: str, given: dict[str, object], position: int | None) -> None:
    answer = get(viewer, f"api/{path}", **given)
    assert answer.status == 400
    if position is not None:
        assert answer.json["error"]["position"] == position


def test_search(viewer: Viewer, dataset: lance.LanceDataset) -> None:
    by_words = get(viewer, "api/search", text="word3", k=20).table
    assert by_words.schema.field("0").metadata[b"name"] == b"_score"
    assert by_words.schema.field("1").metadata[b"name"] == b"_why"
    assert all(re.fullmatch(r"word3 \d\.\d\d \(\d of \d+\)", why) for why in by_words["1"].to_pylist())
    assert all("word3" in text for text in by_words["4"].to_pylist())
    alike = get(viewer, "api/search", row=7, column=3, k=5).table
    assert alike["1"][0].as_py() == str(dataset.take([7], columns=["id"])["id"][0].as_py())
    both = get(viewer, "api/search", text="word3", row=7, column=3).table
    assert [both.schema.field(str(place)).metadata[b"name"] for place in range(4)] == [
        b"_relevance",
        b"_score",
        b"_distance",
        b"_why",
    ]
    assert 0 < both["3"].null_count < both.num_rows  # rows that only the vector found have no words to explain
    assert get(viewer, "api/search").status == 400
    assert get(viewer, "api/search", row=1, column=0).status == 400


def test_facts(viewer: Viewer) -> None:
    history = get(viewer, "api/versions").json
    assert [each["operation"] for each in history["versions"]] == ["CreateIndex", "Delete", "Overwrite"]
    assert history["tags"] == {"start": {"version": 1, "branch": None}}
    assert get(viewer, "api/versions", count=1).json["earlier"] == 2
    assert get(viewer, "api/compare", old=1).json["rows"] == {"old": 1000, "new": 800}
    assert get(viewer, "api/compare", old=3, new=1).status == 400
    storage = get(viewer, "api/storage").json
    assert storage["deleted_rows"] == 200
    assert {column["column"] for column in storage["columns"]} >= {"id", "nested.a", "vector"}
    assert storage["advice"][0].startswith("lance-dataset compact ")
    assert "LanceRead" in get(viewer, "api/plan", filter="id > 3").json["analysis"]
    assert get(viewer, "api/map", column=3, filter="id < 100").table.num_rows == 80
    assert get(viewer, "api/map", column=0).status == 400
    assert get(viewer, "api/statistics", column=1).json["nulls"] == 100


def test_methods_of_maps(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = get(viewer, "api/map", column=3, count=50).table
    assert get(viewer, "api/map", column=3, count=50, method="pca").table == usual
    refused = get(viewer, "api/map", column=3, method="x")
    assert refused.status == 400
    assert refused.json["error"]["message"].startswith("method must be one of pca, umap")
    assert get(viewer, "api/map", column=3, count=4001, method="umap").status == 400
    monkeypatch.setitem(sys.modules, "umap", None)
    missing = get(viewer, "api/map", column=3, method="umap")
    assert missing.status == 400
    assert "pip install 'lance-dataset[umap]'" in missing.json["error"]["message"]


class _Places:
    """Stands for the model of umap-learn, which is too large for the test run: keeps two numbers of each vector."""

    def __init__(self, n_neighbors: int, init: str, random_state: int, n_jobs: int) -> None:
        assert (random_state, n_jobs) == (0, 1)
        self._neighbors, self._init = n_neighbors, init

    def fit_transform(self, vectors: np.ndarray) -> np.ndarray:
        assert self._neighbors == min(15, len(vectors) - 1)
        assert self._init == ("spectral" if len(vectors) > 15 else "random")
        return vectors[:, :2] + 100


def test_maps_by_neighbors(viewer: Viewer, dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=_Places))
    for last in (6, 100):
        found = get(viewer, "api/map", column=3, filter=f"id < {last}", method="umap").table
        assert found["row"].to_pylist() == list(range(dataset.count_rows(f"id < {last}")))
        for name in ("x", "y"):
            assert (min(found[name].to_pylist()), max(found[name].to_pylist())) == (-1, 1)
    assert "at least 5" in get(viewer, "api/map", column=3, filter="id < 4", method="umap").json["error"]["message"]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_export(viewer: Viewer, dataset: lance.LanceDataset, kind: str) -> None:
    answer = get(viewer, "export", format=kind, columns="0,1", filter="id < 500")
    expected = dataset.to_table(columns=["id", "price"], filter="id < 500")
    readers = {
        "parquet": pq.read_table,
        "arrow": lambda file: pa.ipc.open_file(file).read_all(),
        "csv": pa.csv.read_csv,
    }
    assert readers[kind](pa.BufferReader(answer.content)).equals(expected)
    assert answer.headers["Content-Disposition"] == f"attachment; filename=rows.{kind}"
    assert get(viewer, "export", format="exe").status == 400
    assert get(viewer, "export", format="csv").status == 400


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/", "/api/table", "/wrong/api/table", "//api/table", "/static/main.js", "/%2e%2e/", "/main.js", "/\xff/"],
)
def test_no_token_no_answer(viewer: Viewer, path: str) -> None:
    assert ask(viewer, quote(path, safe="/%*")).status in (400, 403)


@pytest.mark.parametrize(
    "path",
    [
        "../../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "static/../../__init__.py",
        "..%5c..%5cwindows",
        "main.js%00.html",
        "/etc/passwd",
        "api/../../../server.py",
        "app.py",
        "static/",
    ],
)
def test_no_other_files(viewer: Viewer, path: str) -> None:
    assert ask(viewer, path).status in (403, 404)


def test_only_own_names(viewer: Viewer) -> None:
    port = urlsplit(viewer.url).port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "169.254.169.254", ""):
        assert ask(viewer, "api/table", headers={"Host": host}).status in (400, 421)
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert ask(viewer, "api/table", headers={"Host": host}).status == 200


def test_requests_of_other_pages(viewer: Viewer) -> None:
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ):
        assert ask(viewer, "api/table", headers=headers).status == 403
    own = viewer.url.partition("://")[2].partition("/")[0]
    assert ask(viewer, "api/table", headers={"Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"}).status == 200
    opened = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ask(viewer, "", headers=opened).status == 200


def test_only_reading(viewer: Viewer, dataset: lance.LanceDataset) -> None:
    before = dataset.latest_version
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"):
        assert ask(viewer, "api/table", method).status == 405
    assert dataset.latest_version == before


def test_headers_for_the_browser(viewer: Viewer) -> None:
    for path in ("", "main.js", "api/table", "api/nothing"):
        headers = ask(viewer, path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http:" not in policy.partition("frame-ancestors")[0]


def test_large_requests(viewer: Viewer) -> None:
    assert ask(viewer, "api/table", body=b"x" * 1000).status == 413
    assert ask(viewer, "api/table", headers={"Transfer-Encoding": "chunked"}).status in (400, 413)
    assert get(viewer, "api/count", filter="x" * 30_000).status == 400
    assert ask(viewer, "api/table?" + "x" * 70_000).status in (400, 414, 431)
    assert get(viewer, "api/rows", columns=",".join(["0"] * 201)).status == 400
    assert get(viewer, "api/rows", columns="0", count=1_001).status == 400
    assert get(viewer, "api/rows", columns=",".join(["0"] * 200), count=1_000).status == 400
    assert get(viewer, "api/search", text="a", k=10**9).status == 400
    assert get(viewer, "api/rows", columns="0", start=-1).status == 400
    assert get(viewer, "api/rows", columns="99").status == 400
    assert get(viewer, "api/cell", row=10**30, column=0).status == 400
    assert get(viewer, "api/rows", columns="zero").status == 400
    assert get(viewer, "api/table", version="9" * 40).status == 400
    assert get(viewer, "api/table", version="main:x").status == 400
    assert get(viewer, "api/count", filter="(" * 5_000 + "id" + ")" * 5_000).status in (200, 400)
    parts = urlsplit(viewer.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 30) as opened:
        opened.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 200_000)
        assert b" 400 " in opened.recv(100)


def test_slow_clients(viewer: Viewer) -> None:
    """50 clients that never end their request, and 50 that never read the answer, are in nobody's way."""
    parts = urlsplit(viewer.url)
    at = (parts.hostname or "", parts.port or 0)
    opened = [socket.create_connection(at, 30) for _ in range(100)]
    try:
        for slow in opened[:50]:
            slow.sendall(b"GET /" + parts.path.encode())
        for greedy in opened[50:]:
            greedy.sendall(f"GET {parts.path}export?format=arrow HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        assert get(viewer, "api/table").json["rows"] == 800
        assert get(viewer, "api/rows", columns="0").status == 200
    finally:
        for each in opened:
            each.close()
    assert get(viewer, "api/table").status == 200


def test_hostile_names(tmp_path: Path) -> None:
    names = ["<img src=x>", "a b", 'quo"te', "quo'te", "", "select", "x" * 5000, "\u202ertl", "new\nline"]
    table = pa.table({name: [1, 2] for name in names})
    with view(lance.write_dataset(table, str(tmp_path / "names"))) as served:
        assert [column["name"] for column in get(served, "api/table").json["columns"]] == names
        places = ",".join(map(str, range(len(names))))
        assert get(served, "api/rows", columns=places).table.num_rows == 2
        for place in range(len(names)):
            assert get(served, "api/statistics", column=place).status == 200


def test_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    made = lance.write_dataset(pa.table({"a": range(10)}), str(path))
    for file in (path / "data").iterdir():
        file.unlink()
    with view(made) as served:
        assert get(served, "api/table").status == 200
        answer = get(served, "api/rows", columns="0")
        assert answer.status == 400
        assert answer.json["error"]["type"] == "MissingFileError"


def test_addresses(dataset: lance.LanceDataset) -> None:
    with view(dataset) as first, view(dataset) as second:
        assert first.url != second.url
        assert urlsplit(first.url).hostname == "127.0.0.1"
        assert "<iframe" in first._repr_html_()
        with pytest.raises(InvalidInputError, match="cannot listen"):
            view(dataset, port=urlsplit(first.url).port or 0)
    with pytest.raises(InvalidInputError, match="port"):
        view(dataset, port=70_000)


class _FailingScan:
    """Dataset whose first scan fails in the middle."""

    def __init__(self) -> None:
        self.scans = 0

    def scanner(self, *_: object, **__: object) -> _FailingScan:
        return self

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        self.scans += 1
        for start in (0, 100, 200):
            if start and self.scans == 1:
                raise OSError("the connection broke")
            yield pa.record_batch({"_rowoffset": pa.array(range(start, start + 100), pa.uint64())})


def test_selection_after_a_failure() -> None:
    """A scan that fails once does not end the rows of a filter for all later requests."""
    selected = Rows(cast("lance.LanceDataset", _FailingScan()), "id > 0")
    with pytest.raises(OSError, match="connection broke"):
        selected.numbers(0, 150)
    assert selected.numbers(0, 150).tolist() == list(range(150))
    assert selected.numbers(250, 100).tolist() == list(range(250, 300))
    assert selected.numbers_at(np.array([3, 299])).tolist() == [3, 299]


def test_places_of_a_large_table() -> None:
    """Some rows of a table of any length are chosen without a list of all."""
    places = np.array([5, 10**15])
    assert Rows(cast("lance.LanceDataset", None), None).numbers_at(places) is places


def test_answers_that_are_no_json(dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that cannot be written is an error that the page can show, as any other failure."""
    monkeypatch.setitem(app._ANSWERS, "count", lambda source, given: {"rows": float("nan")})
    with view(dataset) as served:
        answer = ask(served, "api/count")
    assert answer.status == 500
    assert answer.json["error"]["type"] == "ServerError"
