"""DataFrames written to a dataset for a while, beside the one they change: many tasks write it, the driver reads it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lance_dataset import LanceDataset
from lance_dataset import dataset as open_dataset
from lance_dataset.spark.snapshot import settings_option

__all__ = ["staged"]


@contextmanager
def staged(frame: Any, uri: str, settings: dict[str, str] | None) -> Iterator[Any]:
    """Write the rows of a DataFrame beside a dataset; drop them at the end.

    Parameters
    ----------
    frame
        Spark DataFrame.
    uri, settings
        The dataset that will be changed, and settings of its object store.

    Yields
    ------
    LanceDataset
        The rows. They are not held in memory.
    """
    place = f"{uri.rstrip('/')}.staged-{uuid.uuid4().hex}"
    try:
        frame.write.format("lance").mode("append").options(**settings_option(settings)).save(place)
        yield open_dataset(place, storage_options=settings)
    finally:
        LanceDataset.drop(place, storage_options=settings, ignore_not_found=True)
