"""Proxy in front of an S3 server: it counts requests, delays answers, and fails on demand like a network."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from support.stores.s3_server import S3Server

__all__ = ["LOSE_ANSWER", "LOSE_REQUEST", "Proxy", "proxied"]

#: Possible faults, in addition to an HTTP status to answer with instead of asking the server.
LOSE_ANSWER = "the server acts, its answer is lost"
LOSE_REQUEST = "the server never hears of it"

Fault = str | int | None


@dataclass
class Proxy:
    """Running proxy.

    Attributes
    ----------
    server
        Server to use in place of the real one.
    requests
        (method, path with query, value of the header Range) of all requests so far.
    fault
        Function of method and path of each request that decides what happens to it.
    delay
        Delay of every answer, in seconds.
    """

    server: S3Server
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    fault: Callable[[str, str], Fault] = lambda method, path: None
    delay: float = 0.0

    def count(self, method: str = "", text: str = "") -> int:
        """Count the requests of a method whose path contains a text."""
        return sum(method in each[0] and text in each[1] for each in self.requests)


@contextmanager
def proxied(server: S3Server) -> Iterator[Proxy]:
    """Run a proxy for the duration of the context."""
    proxy = Proxy(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            proxy.requests.append((self.command, self.path, self.headers.get("Range", "")))
            fault = proxy.fault(self.command, self.path)
            if proxy.delay:
                time.sleep(proxy.delay)
            if isinstance(fault, int):
                self.send_response(fault)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if fault != LOSE_REQUEST:
                status, headers, content = _ask(server, self.command, self.path, dict(self.headers), body)
            if fault is not None:
                self.close_connection = True
                return
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            length = {name.lower(): value for name, value in headers}.get("content-length")
            self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    proxy.server = replace(server, endpoint=f"http://127.0.0.1:{listener.server_port}")
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


def _ask(
    server: S3Server, method: str, path: str, headers: dict[str, str], body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    # The header Host is part of what the client signed, so it is forwarded unchanged.
    connection = http.client.HTTPConnection(urlsplit(server.endpoint).netloc, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()
