"""Full-text indices that several workers build as one: each writes partitions, which become an index together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.index.files import WRITTEN_VERSION, IndexFolder, IndexTable, NewIndexFolder
from lance_dataset.index.text.layout import METADATA_FILE, PartitionFiles, metadata_batch
from lance_dataset.io.base import ObjectStore
from lance_dataset.types.schema import Schema

__all__ = ["STAGING", "StagingFolder", "merge_staged"]

#: Folder of the partitions, inside that of the index.
STAGING: Final = "staging"
_METADATA_NAME = re.compile(r"part_(\d{1,20})_metadata\.lance")
_STAGED_NAME = re.compile(r"part_(\d{1,20})_\w+\.lance")
_PARTITION_NAME = re.compile(r"part_(\d{1,10})_(\w+)\.lance")
_PARTITIONS = "partitions"
#: Bits of the number of a partition below those of its fragment.
_FRAGMENT_BITS = 32


class StagingFolder(NewIndexFolder):
    """Folder for the partitions of one worker, which have numbers of their own and a file of metadata each.

    Parameters
    ----------
    store, path
        Folder of the index; see `NewIndexFolder`.
    fragment_id
        First fragment of the worker, from which the numbers are made.
    """

    def __init__(self, store: ObjectStore, path: str, fragment_id: int) -> None:
        super().__init__(store, f"{path}/{STAGING}")
        self._first = fragment_id << _FRAGMENT_BITS
        self._remove_earlier(store, f"{path}/{STAGING}", fragment_id)

    @staticmethod
    def _remove_earlier(store: ObjectStore, folder: str, fragment_id: int) -> None:
        """Remove what the worker wrote before, if it failed and is repeated."""
        for info in list(store.list(folder)):
            found = _STAGED_NAME.fullmatch(info.path.rpartition("/")[2])
            if found is not None and int(found[1]) >> _FRAGMENT_BITS == fragment_id:
                store.delete(info.path)

    def write(
        self,
        name: str,
        schema: Schema,
        version: str,
        batches: Iterable[pa.RecordBatch],
        metadata: Mapping[str, str] | None = None,
        *others: Any,
        **options: Any,
    ) -> None:
        """Write a Lance file under its number among the partitions of all workers. See `NewIndexFolder.write`."""
        if name != METADATA_FILE:
            super().write(self._renamed(name), schema, version, batches, metadata, *others, **options)
            return
        known = dict(metadata or {})
        for number in json.loads(known[_PARTITIONS]):
            staged = self._first + number
            entries = {**known, _PARTITIONS: f"[{staged}]"}
            super().write(f"part_{staged}_metadata.lance", Schema((), {}), version, (), entries)

    def _renamed(self, name: str) -> str:
        found = _PARTITION_NAME.fullmatch(name)
        return name if found is None else f"part_{self._first + int(found[1])}_{found[2]}.lance"


def merge_staged(source: IndexFolder, target: NewIndexFolder) -> None:
    """Write an index of the partitions of all workers.

    Parameters
    ----------
    source
        Folder of the partitions.
    target
        Folder of the index.

    Raises
    ------
    InvalidInputError
        There are no partitions, or they have different parameters.
    CorruptFileError
        A file contradicts the format.
    """
    names = source.names()
    numbers = sorted(int(found[1]) for name in names if (found := _METADATA_NAME.fullmatch(name)) is not None)
    if not numbers:
        raise InvalidInputError(f"{source.uri('')}: no worker has written a partition of the index")
    tables = [source.open(f"part_{number}_metadata.lance") for number in numbers]
    parameters = _parameters(tables[0])
    for table in tables[1:]:
        if _parameters(table) != parameters:
            raise InvalidInputError(
                f"{table.where}: its parameters differ from those of {tables[0].where}; build all parts alike"
            )
    for place, number in enumerate(numbers):
        old, new = PartitionFiles(number), PartitionFiles(place)
        for kind in ("documents", "tokens", "postings"):
            target.copy(source.open_input(getattr(old, kind)), getattr(new, kind))
    batch = metadata_batch()
    metadata = {**parameters, _PARTITIONS: json.dumps(list(range(len(numbers))))}
    target.write(METADATA_FILE, Schema.from_arrow(batch.schema), WRITTEN_VERSION, [batch], metadata)


def _parameters(table: IndexTable) -> dict[str, str]:
    return {name: value for name, value in table.metadata.items() if name != _PARTITIONS}
