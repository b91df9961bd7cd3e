"""Clocks: how far the clock of this machine is ahead of the one that dates the files of a table.

Cleanup compares ages. A clock that is hours or days ahead would make files of commits in progress, and versions made a
moment ago, look old enough to be removed. A clock that is behind only makes it remove less.
"""

from __future__ import annotations

import logging
import time
import uuid
from contextlib import suppress

from lance_dataset.errors import LanceError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.naming import VERSIONS_FOLDER

__all__ = ["clock_lead"]

_log = logging.getLogger(__name__)
#: Stores round times to seconds, and clocks of a cluster differ a little. Smaller leads are not looked at.
_TOLERANCE_SECONDS = 60.0


def clock_lead(store: ObjectStore, root: str) -> float:
    """Measure how far this machine's clock is ahead of the clock of a store, with a temporary file in the table.

    Parameters
    ----------
    store, root
        The table.

    Returns
    -------
    float
        Seconds; 0.0 if the clock is behind, or less than a minute ahead.

    Raises
    ------
    LanceError, OSError
        The file cannot be written.
    """
    path = f"{root}/{VERSIONS_FOLDER}/.tmp_clock_{uuid.uuid4().hex}"
    store.put(path, b"", durable=False)
    try:
        lead = time.time() - store.modified(path)
    finally:
        # a cleanup removes it as a temporary file otherwise
        with suppress(LanceError, OSError):
            store.delete(path)
    if lead < _TOLERANCE_SECONDS:
        return 0.0
    _log.warning(
        "the clock of this machine is %.0f s ahead of the one of %s; the cleanup goes by the latter",
        lead,
        store.uri(root),
    )
    return lead
