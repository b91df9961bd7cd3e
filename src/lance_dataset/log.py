"""Logging of the package, below the logger ``lance_dataset``, and its variables ``LANCE_LOG*``."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path
from typing import Final

__all__ = [
    "ENV_NAME_PYLANCE_LOGGING_LEVEL",
    "LOGGER",
    "get_log_level",
    "get_python_log_level",
    "logs_events",
    "set_logger",
]

#: Variable with the levels of messages, such as ``info`` or ``warn,lance::events=info``.
ENV_NAME_PYLANCE_LOGGING_LEVEL: Final = "LANCE_LOG"

#: Parent of all loggers of the package.
LOGGER = logging.getLogger("lance_dataset")

_LEVELS: Final = {
    "off": logging.CRITICAL + 10,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
}
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_set: dict[str, logging.Handler] = {}


def set_logger(
    file_path: str | os.PathLike[str] = "lance_dataset.log",
    name: str = "lance_dataset",
    level: int = logging.INFO,
    format_string: str | None = None,
    log_handler: logging.Handler | None = None,
) -> None:
    """Send the messages of a logger to a file or to a handler. A second call for the logger replaces the first.

    Parameters
    ----------
    file_path
        Path of the file. It is created with the first message.
    name
        Name of the logger. The loggers of this package are below ``lance_dataset``.
    level
        Lowest level of messages to log.
    format_string
        Format of a message, as for `logging.Formatter`.
    log_handler
        Handler that gets the messages instead of the file.
    """
    handler = log_handler or logging.FileHandler(file_path, encoding="utf-8", delay=True)
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter(format_string or _FORMAT))
    logger = logging.getLogger(name)
    before = _set.pop(name, None)
    if before is not None:
        logger.removeHandler(before)
        if before is not log_handler:
            before.close()
    logger.setLevel(level)
    logger.addHandler(handler)
    _set[name] = handler


def get_log_level() -> str:
    """Return the first level of the variable ``LANCE_LOG`` that is for all modules, in capitals; else ``INFO``."""
    for directive in os.environ.get(ENV_NAME_PYLANCE_LOGGING_LEVEL, "").split(","):
        if directive and "=" not in directive:
            return get_python_log_level(directive).upper()
    return "INFO"


def get_python_log_level(rust_log_level: str) -> str:
    """Return the level of Python's logging for a level of ``LANCE_LOG``."""
    return "DEBUG" if rust_log_level.lower() == "trace" else rust_log_level


def logs_events(target: str) -> bool:
    """Return True unless the variable ``LANCE_LOG`` leaves out events of a target, such as ``lance::file_audit``."""
    text = os.environ.get(ENV_NAME_PYLANCE_LOGGING_LEVEL)
    return not text or _level(_directives(text), target.replace("::", "::events::", 1)) <= logging.INFO


def _directives(text: str) -> dict[str, int]:
    """Return the lowest level of messages by the beginning of a module's name; "" is that of all others."""
    found = {"": logging.CRITICAL + 10}
    for directive in filter(None, (each.strip() for each in text.split(","))):
        module, given, level = directive.rpartition("=")
        if not given and level.lower() not in _LEVELS:  # a module alone has all of its messages
            found[level] = logging.DEBUG
        elif level.lower() in _LEVELS:
            found[module] = _LEVELS[level.lower()]
        else:
            print(f"{ENV_NAME_PYLANCE_LOGGING_LEVEL}: {level!r} is not a level and is ignored", file=sys.stderr)
    return found


def _level(directives: dict[str, int], module: str) -> int:
    """Return the lowest level of a module: that of the longest beginning of its name."""
    return directives[max((each for each in directives if module.startswith(each)), key=len)]


def _module(logger: str) -> str:
    """Return the name of a logger as the reference writes those of its modules."""
    return logger.replace("lance_dataset", "lance", 1).replace(".", "::")


class _Filter(logging.Filter):
    def __init__(self, directives: dict[str, int]) -> None:
        super().__init__()
        self._directives = directives

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= _level(self._directives, _module(record.name))


class _Formatter(logging.Formatter):
    """Makes lines such as ``[2026-01-31T12:00:00Z INFO  lance::module] message``."""

    def __init__(self, digits: int, colored: bool) -> None:
        super().__init__()
        self._digits = digits
        self._colored = colored

    def format(self, record: logging.LogRecord) -> str:
        level = "WARN" if record.levelno == logging.WARNING else record.levelname
        opening, closing, level = "[", "]", f"{level:<5}"
        if self._colored:
            color = 31 if record.levelno >= logging.ERROR else 33 if record.levelno >= logging.WARNING else 32
            opening, closing = "\x1b[90m[\x1b[0m", "\x1b[90m]\x1b[0m"
            level = f"\x1b[{color if record.levelno >= logging.INFO else 34}m{level}\x1b[0m"
        text = f"{opening}{self._time(record)} {level} {_module(record.name)}{closing} {record.getMessage()}"
        return text if record.exc_info is None else f"{text}\n{self.formatException(record.exc_info)}"

    def _time(self, record: logging.LogRecord) -> str:
        nanos = int(record.created * 1e6) * 1000
        seconds, rest = divmod(nanos, 10**9)
        fraction = f".{rest:09d}"[: self._digits + 1] if self._digits else ""
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + fraction + "Z"


def _handler(path: str | None) -> logging.Handler:
    """Return the handler for a file, or for the standard error if there is none or it cannot be opened."""
    if path:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            print(f"Failed to create parent directories for log file '{path}': {error}, using stderr", file=sys.stderr)
            return logging.StreamHandler()
        try:
            return logging.FileHandler(path, encoding="utf-8")
        except OSError as error:
            print(f"Failed to open log file '{path}': {error}, using stderr", file=sys.stderr)
    return logging.StreamHandler()


def _follow_variables() -> None:
    """Log as the variables ``LANCE_LOG``, ``LANCE_LOG_FILE``, ``LANCE_LOG_STYLE`` and ``LANCE_LOG_TS_PRECISION`` say.

    Without the first two nothing is changed, and messages go where the program sends them.
    """
    text, path = os.environ.get(ENV_NAME_PYLANCE_LOGGING_LEVEL), os.environ.get("LANCE_LOG_FILE")
    if not (text or path):
        return
    precision = os.environ.get("LANCE_LOG_TS_PRECISION") or "s"
    if precision not in _DIGITS:
        print(f"Invalid timestamp precision (valid values: ns, us, ms, s): {precision}, using default", file=sys.stderr)
    directives = _directives(text or "warn")
    handler = _handler(path)
    style = os.environ.get("LANCE_LOG_STYLE", "auto")
    stream = handler.stream if isinstance(handler, logging.StreamHandler) else None
    is_terminal = not isinstance(handler, logging.FileHandler) and stream is not None and stream.isatty()
    handler.setFormatter(_Formatter(_DIGITS.get(precision, 0), style == "always" or (style != "never" and is_terminal)))
    handler.addFilter(_Filter(directives))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(min(directives.values()))
    LOGGER.propagate = False  # else the program's own handlers, or the last resort, repeat each line


_follow_variables()
