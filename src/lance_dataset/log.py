"""Where the messages of the package go: they are logged below the logger ``lance_dataset``."""

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
    """Send the messages of a logger to a file, or to a handler; a second call for the logger replaces the first.

    Parameters
    ----------
    file_path
        The file, which is made with the first message.
    name
        Name of the logger; those of this package are below ``lance_dataset``.
    level
        Lowest level of messages to keep.
    format_string
        How a message looks, as for `logging.Formatter`.
    log_handler
        What gets the messages instead of the file.
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
