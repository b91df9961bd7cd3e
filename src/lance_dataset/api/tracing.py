"""Events of datasets for callbacks and as files for Chrome."""

from __future__ import annotations

import atexit
import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from lance_dataset.errors import InvalidInputError
from lance_dataset.events import TraceEvent, listen, stop_listening
from lance_dataset.log import logs_events

__all__ = ["capture_trace_events", "trace_to_chrome"]

_logger = logging.getLogger("lance_dataset")
_lock = threading.Lock()


class _Callback:
    """Calls a function with each event, in a thread of its own."""

    def __init__(self, callback: Callable[[TraceEvent], None]) -> None:
        self._callback = callback
        self._events: queue.SimpleQueue[TraceEvent | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="lance-trace-events", daemon=True)
        self.process = os.getpid()

    def start(self) -> None:
        self._thread.start()
        listen(self._events.put)
        atexit.register(self.end)

    def end(self) -> None:
        """Wait until the function has had all events."""
        if self.process == os.getpid():
            self._events.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                self._callback(event)
            except Exception:  # of the user's code; the other events are still of interest
                _logger.exception("error in the callback for trace events %r", self._callback)


class _ChromeFile:
    """Writes events to a file that ``chrome://tracing`` and Perfetto open.

    The file has no buffer: a forked child would write the rest of it a second time.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._started = time.perf_counter_ns()
        self._threads: dict[int, int] = {}
        self._first = True
        self._process = os.getpid()
        self._writing = threading.Lock()

    def start(self) -> None:
        self._append("[\n")
        listen(self.write)
        atexit.register(self.end)

    def end(self) -> None:
        """Finish and close the file."""
        stop_listening(self.write)
        atexit.unregister(self.end)
        if self._process == os.getpid():
            with self._writing:
                if not self._file.closed:
                    self._tell("\n]", last=True)

    def write(self, event: TraceEvent) -> None:
        """Write an event."""
        if not logs_events(event.target):
            return
        with self._writing:
            if not self._file.closed:
                self._tell("".join(map(self._entry, self._entries(event))), last=False)

    def _entries(self, event: TraceEvent) -> Iterator[dict[str, object]]:
        ident = threading.get_ident()
        known = ident in self._threads
        number = self._threads.setdefault(ident, len(self._threads))
        if not known:
            thread = {"name": threading.current_thread().name}
            yield {"ph": "M", "pid": 1, "name": "thread_name", "tid": number, "args": thread}
        micros = (time.perf_counter_ns() - self._started) / 1000
        found = event.quoted
        name = found.get("event", found.get("type", "event")).strip('"')
        told = {"ph": "i", "pid": 1, "ts": micros, "name": name, "cat": event.target, "tid": number, "s": "t"}
        yield {**told, "args": found}

    def _entry(self, entry: dict[str, object]) -> str:
        before, self._first = "" if self._first else ",\n", False
        return before + json.dumps(entry)

    def _tell(self, text: str, *, last: bool) -> None:
        """Append a text. After an error nothing follows: what the events tell of must not fail because of the file."""
        try:
            self._append(text)
        except OSError as error:
            last = True
            _logger.warning("the file of trace events %s ends early: %s", self._file.name, error)
        if last:
            self._file.close()

    def _append(self, text: str) -> None:
        data = memoryview(text.encode())
        while data:
            data = data[self._file.write(data) :]


_callback: _Callback | None = None
_chrome: _ChromeFile | None = None


def capture_trace_events(callback: Callable[[TraceEvent], None]) -> None:
    """Call a function with each event of datasets from now on.

    It is called in a thread of its own, so it does not delay what is going on and may come later. At the end of the
    process all events are handed over. Its errors are logged. Child processes have no callback.

    Parameters
    ----------
    callback
        Function that gets a `TraceEvent`: with ``target``, such as ``lance::dataset_events``, and ``args``, a
        dictionary of text.

    Raises
    ------
    InvalidInputError
        The process has a callback already.
    """
    global _callback
    if not callable(callback):
        raise TypeError(f"callback must be callable, not {type(callback).__name__}")
    with _lock:
        if _callback is not None and _callback.process == os.getpid():
            raise InvalidInputError("Callback already set")
        _callback = _Callback(callback)
        _callback.start()


def trace_to_chrome(*, file: str | None = None) -> None:
    """Write the events of datasets to a file that ``chrome://tracing`` or Perfetto opens.

    The file is complete when the process ends, or when another begins. The variable ``LANCE_LOG`` chooses the events,
    as for the log; all are written if it is not set.

    Parameters
    ----------
    file
        Path of the file; None for ``trace-{microseconds}.json`` in the current folder.
    """
    global _chrome
    path = Path(f"trace-{time.time_ns() // 1000}.json" if file is None else file)
    opened = path.open("wb", buffering=0)
    with _lock:
        if _chrome is not None:
            _chrome.end()
            _chrome = None
        made = _ChromeFile(opened)
        try:
            made.start()
        except OSError:
            opened.close()
            raise
        _chrome = made
