"""Logging of the package, below the logger ``lance_dataset``."""

from __future__ import annotations

import logging
import os

__all__ = ["LOGGER", "set_logger"]

#: Parent of all loggers of the package.
LOGGER = logging.getLogger("lance_dataset")

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
