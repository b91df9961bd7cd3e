"""The server of the page, in the foreground for the command line and in a thread for programs and notebooks."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Sequence
from html import escape
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import quote

from lance_dataset.errors import InvalidInputError, StorageError, UnsupportedError

if TYPE_CHECKING:
    import uvicorn

    from lance_dataset import LanceDataset

__all__ = ["Viewer", "view"]

LOOPBACK = "127.0.0.1"
_ALL_ADDRESSES = ("0.0.0.0", "::")
_NOTEBOOKS = ("http://localhost:*", "http://127.0.0.1:*")
#: Connections at once; more are answered with 503.
_MOST_CONNECTIONS = 256
_IDLE_SECONDS = 10
_START_SECONDS = 10.0


class Viewer:
    """A page that shows a dataset, served on this machine until it is closed. `view` makes it.

    Parameters
    ----------
    dataset
        The version to show first.
    host
        Address to listen at.
    port
        Port; 0 for any that is free.
    ancestors
        Sources of pages that may show the page in a frame.
    """

    def __init__(self, dataset: LanceDataset, host: str, port: int, ancestors: Sequence[str]) -> None:
        self._token = secrets.token_urlsafe(24)
        self._host = host
        self._server = _server(dataset, self._token, host, ancestors)
        self._socket = _bound(host, port)  # last, so that nothing that fails leaves it open
        self._thread: Thread | None = None

    def __repr__(self) -> str:
        return f"Viewer({self.url!r})"

    def _repr_html_(self) -> str:
        """Return a frame for notebooks."""
        return f'<iframe src="{escape(self.url)}" title="Dataset" width="100%" height="600" frameborder="0"></iframe>'

    @property
    def url(self) -> str:
        """Address of the page, with the token that it needs."""
        name = LOOPBACK if self._host in _ALL_ADDRESSES else self._host
        shown = f"[{name}]" if ":" in name else name
        return f"http://{shown}:{self._socket.getsockname()[1]}/{quote(self._token)}/"

    def run(self) -> None:
        """Serve until the process is interrupted."""
        self._server.run(sockets=[self._socket])

    def start(self) -> Viewer:
        """Serve in a thread, and return as soon as the page can be opened."""
        self._thread = Thread(target=self.run, name="lance-viewer", daemon=True)
        self._thread.start()
        end = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > end:
                raise StorageError(f"the server of the page did not start at {self.url}")
            time.sleep(0.01)
        return self

    def close(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(_START_SECONDS)
        self._socket.close()

    def __enter__(self) -> Viewer:
        return self if self._thread is not None else self.start()

    def __exit__(self, *raised: object) -> None:
        self.close()


def view(dataset: LanceDataset, *, host: str = LOOPBACK, port: int = 0) -> Viewer:
    """Show a dataset in a page of this machine; as the last value of a notebook's cell, inside the notebook.

    Parameters
    ----------
    dataset
        Dataset, in the version to show first.
    host
        Address to listen at. The default is for this machine only; ``0.0.0.0`` lets others in who have the address with
        its token. It is not encrypted.
    port
        Port; 0 for any that is free.

    Returns
    -------
    Viewer
        The page, which is served by a thread until `Viewer.close`.

    Raises
    ------
    UnsupportedError
        The extra ``viewer`` is not installed.
    InvalidInputError
        The address cannot be listened at.
    """
    return Viewer(dataset, host, port, _NOTEBOOKS).start()


def _bound(host: str, port: int) -> socket.socket:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise InvalidInputError(f"port must be a number from 0 to 65535, not {port!r}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.create_server(address[:2], family=family)
    except OSError as error:
        raise InvalidInputError(f"cannot listen at {host} port {port}: {error}") from error
    return opened


def _server(dataset: LanceDataset, token: str, host: str, ancestors: Sequence[str]) -> uvicorn.Server:
    try:
        import uvicorn

        from lance_dataset.viewer.app import application
        from lance_dataset.viewer.guard import Guard, allowed_names
        from lance_dataset.viewer.source import Source
    except ModuleNotFoundError as error:
        raise UnsupportedError(f"the viewer needs {error.name}: pip install 'lance-dataset[viewer]'") from error
    guarded = Guard(
        application(Source(dataset)),
        token,
        allowed_names(host),
        any_address=host in _ALL_ADDRESSES,
        ancestors=ancestors,
    )
    config = uvicorn.Config(
        guarded,
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        ws="none",
        http="h11",
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)
