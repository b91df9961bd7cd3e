"""Events of datasets: opened, written, committed, cleaned up, and the files that were made for it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Final

from lance_dataset._version import __version__

__all__ = ["TraceEvent", "emit", "listen", "stop_listening"]

_LOGGERS: Final = {
    name: logging.getLogger(f"lance_dataset.events.{name}") for name in ("dataset_events", "file_audit", "io_events")
}
_listeners: tuple[Callable[[TraceEvent], None], ...] = ()


class TraceEvent:
    """Something that happened to a dataset.

    Attributes
    ----------
    target
        Kind of the event, such as ``lance::dataset_events``.
    args
        What happened, all as text.
    """

    __slots__ = ("_nanos", "_values", "target")

    def __init__(self, target: str, values: dict[str, object]) -> None:
        self.target = target
        self._values = values
        self._nanos = time.time_ns()

    @property
    def args(self) -> dict[str, str]:
        """Values of the event, with the time, all as text."""
        return {
            **{name: _text(value) for name, value in self._values.items()},
            "timestamp": self._timestamp(),
            "client_version": __version__,
        }

    @property
    def quoted(self) -> dict[str, str]:
        """Values of the event, all as text; texts are in quotes."""
        return {name: f'"{value}"' if isinstance(value, str) else _text(value) for name, value in self._values.items()}

    def _timestamp(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._nanos // 10**9))

    def __str__(self) -> str:
        told = {"target": f'"{self.target}"', **self.quoted}
        return "".join(f"{name}={value} " for name, value in told.items())

    def __repr__(self) -> str:
        return f"TraceEvent(target={self.target!r}, args={self.args!r})"


def listen(listener: Callable[[TraceEvent], None]) -> None:
    """Call a function with each event from now on, in the thread where it happens."""
    global _listeners
    _listeners = (*_listeners, listener)


def stop_listening(listener: Callable[[TraceEvent], None]) -> None:
    """Stop calling a function."""
    global _listeners
    _listeners = tuple(each for each in _listeners if each is not listener)


def emit(kind: str, **values: object) -> None:
    """Tell listeners and the log of an event. It costs little if there are none.

    Parameters
    ----------
    kind
        ``dataset_events``, ``file_audit`` or ``io_events``.
    **values
        What happened.
    """
    logger = _LOGGERS[kind]
    logged = logger.isEnabledFor(logging.INFO)
    if not (_listeners or logged):
        return
    event = TraceEvent(f"lance::{kind}", values)
    if logged:
        logger.info("%s", event)
    for listener in _listeners:
        listener(event)


def _forget() -> None:
    """Listeners belong to threads and files of the parent process."""
    global _listeners
    _listeners = ()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
