"""Tests of the server of catalogs with hostile requests, and of its client with bad answers."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from lance_namespace import errors
from lance_namespace_urllib3_client import models
from support.api.catalog_calls import example_rows, stream_of
from support.processes.cli_runs import run

from lance_dataset.api.catalogs.rest import adapter
from lance_dataset.errors import InvalidInputError, StorageError
from lance_dataset.namespace import RestAdapter, RestNamespace, ServerLimits

_ROWS = stream_of(example_rows())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestAdapter]:
    limits = ServerLimits(token="a-long-secret", max_body_bytes=100_000)
    with RestAdapter("dir", {"root": str(tmp_path / "root")}, port=0, limits=limits) as made:
        yield made


def _ask(server: RestAdapter, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    sent = {"Authorization": "Bearer a-long-secret", "Host": f"localhost:{server.port}", **headers}
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in sent.items()})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, json.loads(content) if content else {}


def test_token(server: RestAdapter) -> None:
    """Requests without the token are refused; the client sends it as a header, also from a provider."""
    assert _ask(server, "GET", "/v1/table", Authorization="Bearer wrong")[0] == 401
    assert _ask(server, "GET", "/v1/table", Authorization="")[1]["code"] == 16
    uri = f"http://127.0.0.1:{server.port}"
    with pytest.raises(errors.UnauthenticatedError):
        RestNamespace(uri=uri).list_all_tables(models.ListTablesRequest())
    allowed = RestNamespace(uri=uri, **{"header.Authorization": "Bearer a-long-secret"})
    assert allowed.list_all_tables(models.ListTablesRequest()).tables == []


def test_foreign_host(server: RestAdapter) -> None:
    """A request for another host, as a page of another site makes it, is refused."""
    for host in ("evil.example", "evil.example:2333", "", "[::2]:80", "localhost.evil.example"):
        status, answer = _ask(server, "GET", "/v1/table", Host=host)
        assert (status, answer["code"]) == (421, 15)
    assert _ask(server, "GET", "/v1/table", Host="LOCALHOST")[0] == 200


def test_pages_of_other_sites(tmp_path: Path) -> None:
    """A page of another site cannot use a server of this machine through the browser of its user, without token."""
    with RestAdapter("dir", {"root": str(tmp_path / "root")}, port=0) as open_server:
        own = f"http://localhost:{open_server.port}"
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": f"{own}0"},
            {"Sec_Fetch_Site": "cross-site"},
            {"Sec_Fetch_Site": "same-site", "Origin": own},
        ):
            status, answer = _ask(
                open_server, "POST", "/v1/table/t/create", _ROWS, Content_Type="text/plain", **headers
            )
            assert (status, answer["code"]) == (403, 15), headers
        assert not list((tmp_path / "root").glob("*"))
        own_page = {"Origin": own, "Sec_Fetch_Site": "same-origin"}
        assert _ask(open_server, "POST", "/v1/table/t/create", _ROWS, **own_page)[0] == 200


def test_clients_that_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not send the content that it announced does not keep a server from stopping."""
    monkeypatch.setattr(adapter, "_STOP_SECONDS", 0.2)
    running = RestAdapter("dir", {"root": str(tmp_path / "root")}, port=0)
    running.start()
    thread = running._thread
    assert thread is not None
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as stalled:
        stalled.sendall(b"POST /v1/table/t/describe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        assert _ask(running, "GET", "/v1/table")[0] == 200
        running.stop()
        assert not thread.is_alive()


@pytest.mark.parametrize("name", ["..%2F..%2Fetc", "%2e%2e", "a%2Fb", "a%00b", "%24%24", "%FF", "x" * 500])
def test_traversal(server: RestAdapter, tmp_path: Path, name: str) -> None:
    """Ids that lead out of the folder are invalid input, or not found; nothing is written."""
    for call in ("describe", "declare", "drop", "exists"):
        status, answer = _ask(server, "POST", f"/v1/table/{name}/{call}", b"{}")
        assert status in (400, 404), answer
    assert _ask(server, "POST", f"/v1/table/{name}/create", _ROWS)[0] == 400
    assert [path.name for path in tmp_path.iterdir()] in ([], ["root"])


def test_large_bodies(server: RestAdapter) -> None:
    """A body that is too large is refused before it is read, also if its length is not announced."""
    large = b"x" * 100_001
    assert _ask(server, "POST", "/v1/table/t/create", large)[0] == 413
    assert _ask(server, "POST", "/v1/table/t/describe", b" " * (5 << 20))[0] == 413
    chunked = (b"x" * 60_000 for _ in range(2))
    assert _ask(server, "POST", "/v1/table/t/create", chunked)[0] == 413  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/table/t/describe", b"not json"),
        ("POST", "/v1/table/t/describe", b"[1]"),
        ("POST", "/v1/table/t/describe", b'{"version": "x"}'),
        ("POST", "/v1/table/t/describe", b"[" * 100_000),
        ("POST", "/v1/table/t/describe?with_table_uri=perhaps", b"{}"),
        ("GET", "/v1/table?limit=many", b""),
        ("POST", "/v1/table/t/query", b"{}"),
        ("POST", "/v1/table/t/create?properties=x", _ROWS),
        ("POST", "/v1/table/t/insert", b"garbage"),
        ("GET", "/v1/nothing", b""),
        ("DELETE", "/v1/table/t/describe", b""),
        ("GET", "/../../etc/passwd", b""),
    ],
)
def test_malformed_requests(server: RestAdapter, method: str, path: str, body: bytes) -> None:
    """Malformed requests are refused with a code and a text, and never with a failure of the server."""
    status, answer = _ask(server, method, path, body)
    assert 400 <= status < 500
    assert answer["error"]
    assert isinstance(answer["code"], int)


def test_several_servers(tmp_path: Path) -> None:
    """A port that is in use is an error; a server that was stopped leaves its port."""
    with RestAdapter("dir", {"root": str(tmp_path)}, port=0) as first:
        with pytest.raises(StorageError, match="cannot be listened on"):
            RestAdapter("dir", {"root": str(tmp_path)}, port=first.port).start()
    with RestAdapter("dir", {"root": str(tmp_path)}, port=first.port) as second:
        assert second.port == first.port


def test_bad_answers() -> None:
    """Answers that are not those of a catalog are errors of the interface; a server that is away is one, too."""
    answers = iter([(200, b"<html>"), (200, b'{"tables": 7}'), (502, b"bad gateway"), (404, b'{"code": "x"}')])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = next(answers)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    answering = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=answering.serve_forever, daemon=True).start()
    client = RestNamespace(uri=f"http://127.0.0.1:{answering.server_port}")
    for kind in (
        errors.InternalError,
        errors.InternalError,
        errors.ServiceUnavailableError,
        errors.TableNotFoundError,
    ):
        with pytest.raises(kind):
            client.list_all_tables(models.ListTablesRequest())
    answering.shutdown()
    answering.server_close()
    with pytest.raises(errors.ServiceUnavailableError):
        RestNamespace(uri="http://127.0.0.1:9").list_all_tables(models.ListTablesRequest())
    with pytest.raises(InvalidInputError, match="uri"):
        RestNamespace(uri="ftp://x")


def test_command_needs_a_token(tmp_path: Path) -> None:
    """The command serves other machines only with a token, and refuses malformed properties."""
    assert "needs a token" in run("serve-namespace", tmp_path, "--host", "0.0.0.0", status=2).output
    assert "NAME=VALUE" in run("serve-namespace", tmp_path, "--property", "x", status=2).output
