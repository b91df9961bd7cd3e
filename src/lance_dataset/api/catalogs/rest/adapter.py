"""Running a server of a catalog, in a thread or until it is stopped."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from lance_dataset.api.catalogs.directory.namespace import DirectoryNamespace
from lance_dataset.api.catalogs.packages import package
from lance_dataset.api.catalogs.rest.client import RestNamespace
from lance_dataset.api.catalogs.rest.server import CatalogApplication, ServerLimits
from lance_dataset.errors import InvalidInputError, StorageError
from lance_dataset.io.external.base import required_package
from lance_dataset.read.session import Session, check_session

__all__ = ["RestAdapter", "serve_catalog"]

_DEFAULT_HOST, _DEFAULT_PORT = "127.0.0.1", 2333
_START_SECONDS = 30.0
#: A client that does not send what it announced is waited for this long at the end.
_STOP_SECONDS = 10
#: Connections at once; more are answered with 503.
_MOST_CONNECTIONS = 256
_OWN: Mapping[str, Any] = {"dir": DirectoryNamespace, "rest": RestNamespace}


class RestAdapter:
    """Server of a catalog in a thread, such as for tests. Needs ``lance-dataset[namespace]``.

    Parameters
    ----------
    namespace_client_impl
        ``dir``, ``rest``, or another name that `lance_namespace.connect` knows.
    namespace_client_properties
        Properties of the catalog.
    session
        Session of the tables of a catalog in a folder.
    host, port
        Address to listen on, ``127.0.0.1`` and 2333 by default; port 0 for any free one.
    limits
        Who may use the server.

    Examples
    --------
    >>> with RestAdapter("dir", {"root": "/data/tables"}, port=0) as server:
    ...     client = RestNamespace(uri=f"http://127.0.0.1:{server.port}")
    """

    def __init__(
        self,
        namespace_client_impl: str,
        namespace_client_properties: Mapping[str, str] | None = None,
        session: Session | None = None,
        host: str | None = None,
        port: int | None = None,
        *,
        limits: ServerLimits | None = None,
    ) -> None:
        properties: dict[str, Any] = dict(namespace_client_properties or {})
        made = _OWN.get(namespace_client_impl)
        if namespace_client_impl == "dir":
            self._catalog: Any = DirectoryNamespace(check_session(session), **properties)
        elif made is not None:
            self._catalog = made(**properties)
        else:
            self._catalog = package.connect(namespace_client_impl, properties)
        self._host = host or _DEFAULT_HOST
        self._asked = _DEFAULT_PORT if port is None else port
        self._limits = limits or ServerLimits(hosts=("localhost", "127.0.0.1", "::1", self._host))
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None

    def __enter__(self) -> RestAdapter:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """Port that the server listens on."""
        return self._asked

    def start(self) -> None:
        """Start to listen. Return when requests are answered.

        Raises
        ------
        StorageError
            The address is in use or not one of this machine.
        """
        if self._thread is not None:
            raise InvalidInputError("the server is running already")
        self._socket = _listening(self._host, self._asked)
        self._asked = int(self._socket.getsockname()[1])
        self._server = _server(self._catalog, self._limits)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="lance-namespace", daemon=True
        )
        self._thread.start()
        waiting = threading.Event()
        for _ in range(int(_START_SECONDS / 0.01)):
            if self._server.started or not self._thread.is_alive():
                break
            waiting.wait(0.01)
        if not self._server.started:
            self.stop()
            raise StorageError(f"the server on {self._host}:{self._asked} did not start")

    def stop(self) -> None:
        """Stop to listen. Requests that run are finished before this returns, unless that takes long."""
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(_START_SECONDS)
        if self._socket is not None:
            self._socket.close()
        self._server = self._thread = self._socket = None


def serve_catalog(catalog: Any, host: str, port: int, limits: ServerLimits) -> None:
    """Serve a catalog until the process is interrupted."""
    listening = _listening(host, port)
    try:
        _server(catalog, limits).run(sockets=[listening])
    finally:
        listening.close()


def _server(catalog: Any, limits: ServerLimits) -> Any:
    uvicorn = required_package("uvicorn", "namespace", "a server of catalogs")
    application = CatalogApplication(catalog, limits)
    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    return uvicorn.Server(config)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except (OSError, OverflowError) as error:
        made.close()
        raise StorageError(f"{host}:{port} cannot be listened on: {error}") from error
    return made
