"""Proxy in front of an S3 server: it counts requests, delays answers, and fails on demand like a network."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from support.stores.s3_server import S3Server

__all__ = [
    "CUT_ANSWER",
    "LATE",
    "LOSE_ANSWER",
    "LOSE_REQUEST",
    "REPLAY",
    "SHORT_ANSWER",
    "STALE_LIST",
    "WRONG_LIST_SIZE",
    "WRONG_SIZE",
    "Fault",
    "Proxy",
    "proxied",
]

#: Possible faults, in addition to an HTTP status to answer with instead of asking the server.
LOSE_ANSWER = "the server acts, its answer is lost"
LOSE_REQUEST = "the server never hears of it"
LATE = "the answer is late"
CUT_ANSWER = "the connection is cut in the middle of the answer"
REPLAY = "the server gets the request twice, the client gets the second answer"
SHORT_ANSWER = "the answer ends too early, and its headers say so"
WRONG_SIZE = "headers state another size of the object"
WRONG_LIST_SIZE = "a list states other sizes"
STALE_LIST = "a list is that of an earlier time"

_LATE_SECONDS = 0.2

Fault = str | int | None


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: list[tuple[str, str]]
    content: bytes
    length: str


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
    _lists: dict[str, _Answer] = field(default_factory=dict)

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
            time.sleep(proxy.delay + (_LATE_SECONDS if fault == LATE else 0))
            if isinstance(fault, int):
                self._answer(_Answer(fault, [], b"", ""))
                return
            if fault != LOSE_REQUEST:
                answer = _ask(server, self.command, self.path, dict(self.headers), body)
                if fault == REPLAY:
                    answer = _ask(server, self.command, self.path, dict(self.headers), body)
            if fault in (LOSE_ANSWER, LOSE_REQUEST):
                self.close_connection = True
                return
            self._answer(_distorted(proxy, self.path, fault, answer), cut=fault == CUT_ANSWER)

        def _answer(self, answer: _Answer, cut: bool = False) -> None:
            self.send_response_only(answer.status)
            for name, value in answer.headers:
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            length = answer.length if self.command == "HEAD" and answer.length else str(len(answer.content))
            self.send_header("Content-Length", length)
            self.end_headers()
            self.wfile.write(answer.content[: len(answer.content) // 2] if cut else answer.content)
            self.close_connection = self.close_connection or cut

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

    listener = _Listener(("127.0.0.1", 0), Handler)
    proxy.server = replace(server, endpoint=f"http://127.0.0.1:{listener.server_port}")
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Do nothing: clients hang up when they have waited long enough."""


def _distorted(proxy: Proxy, path: str, fault: Fault, answer: _Answer) -> _Answer:
    """Return an answer as the client gets it."""
    if fault == SHORT_ANSWER:
        return replace(answer, content=answer.content[: len(answer.content) // 2])
    if fault == WRONG_SIZE:
        headers = [
            (name, _larger(value) if name.lower() == "content-range" else value) for name, value in answer.headers
        ]
        length = str(int(answer.length) + 7) if answer.length else ""
        return replace(answer, headers=headers, length=length)
    if "list-type=2" not in path or answer.status != 200:
        return answer
    if fault == WRONG_LIST_SIZE:
        sizes = re.compile(rb"<Size>(\d+)</Size>")
        return replace(
            answer, content=sizes.sub(lambda found: b"<Size>%d</Size>" % (int(found[1]) + 7), answer.content)
        )
    if fault == STALE_LIST:
        return proxy._lists.get(path, answer)
    proxy._lists[path] = answer
    return answer


def _larger(content_range: str) -> str:
    start, _, size = content_range.rpartition("/")
    return f"{start}/{int(size) + 7}"


def _ask(server: S3Server, method: str, path: str, headers: dict[str, str], body: bytes) -> _Answer:
    # The header Host is part of what the client signed, so it is forwarded unchanged.
    connection = http.client.HTTPConnection(urlsplit(server.endpoint).netloc, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        length = answer.getheader("Content-Length", "")
        return _Answer(answer.status, answer.getheaders(), answer.read(), length)
    finally:
        connection.close()
