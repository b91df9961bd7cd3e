"""Batches of a streaming query merged into a dataset by key, for ``foreachBatch``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from lance_dataset import dataset as open_dataset
from lance_dataset import write_dataset
from lance_dataset.errors import AlreadyExistsError, FieldNotFoundError, InvalidInputError, nearest_name_hint
from lance_dataset.memwal.batches import put_batch
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.places import checked_shard_id
from lance_dataset.spark.changes.merge import merged
from lance_dataset.spark.jobs.job_marks import JobMark
from lance_dataset.spark.option_parsing import storage_options_text
from lance_dataset.spark.snapshot import newest_or_none
from lance_dataset.spark.streaming.changes import CHANGE_COLUMNS
from lance_dataset.spark.write_schema import created_schema

__all__ = ["upsert_into"]

_QUERY_ID = "sql.streaming.queryId"
_CHANGE, _VERSION, _ = CHANGE_COLUMNS.names
_RANK = "__rank"
_UPSERT = ("update", None, "insert", "keep", None)
_DELETE = ("delete", None, "ignore", "keep", None)


def upsert_into(
    uri: str,
    on: str | Sequence[str],
    *,
    latest_by: str | None = None,
    name: str | None = None,
    shard: str | None = None,
    merge_every: int | None = None,
    enable_stable_row_ids: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> Callable[[Any, int], None]:
    """Return a function for ``foreachBatch`` that merges each batch of a streaming query into a dataset by key.

    A batch that Spark runs again counts once. If the rows are changes of another dataset (the option
    ``read_change_feed`` of ``readStream``), the last change of each key is applied: deleted rows are deleted,
    others updated or inserted.

    Parameters
    ----------
    uri
        Path or URI of the dataset. It is created by the first batch if it does not exist.
    on
        Key columns.
    latest_by
        Column that orders the rows of a key in a batch: the row with the greatest value counts. Without it, a batch
        must not have two rows with one key.
    name
        Name of the query, the same after a restart; by default the id that Spark keeps in the checkpoint. It must be
        given with Spark Connect. A new checkpoint needs a new name, as its batches are numbered from 0 again and would
        be taken for those that are done.
    shard
        Id of a shard of the MemWAL of the dataset, which must have one: each batch becomes an SSTable of it instead of
        a version of the dataset, which costs the same for a dataset of any size. `on` must name the primary key. The
        rows of a batch pass through the memory of the driver. Each query needs a shard of its own; if a writer of
        another library claims it meanwhile, a batch that Spark repeats may be written a second time, which changes
        rows only if its content is not the same again.
    merge_every
        Number of batches after which the SSTables of the shard are merged into the dataset; None to leave that to
        `merge_mem_wal`.
    enable_stable_row_ids
        True if a dataset that is created gets stable row ids, so that its changes can be read.
    storage_options
        Settings of the object store.

    Returns
    -------
    callable
        ``stream.writeStream.foreachBatch(upsert_into(uri, "id")).option("checkpointLocation", ...)``. It raises
        FieldNotFoundError if a key is missing, and the errors of `merge_into`.
    """
    keys = [on] if isinstance(on, str) else list(on)
    if not keys:
        raise InvalidInputError("Name at least one key column")
    if shard is None and merge_every is not None:
        raise InvalidInputError("The option 'merge_every' goes with 'shard' only")
    if merge_every is not None and merge_every < 1:
        raise InvalidInputError(f"The option 'merge_every' must be at least 1, not {merge_every}")
    target = None if shard is None else _Shard(uri, shard, merge_every, storage_options)
    if target is not None and enable_stable_row_ids:
        raise InvalidInputError("The option 'enable_stable_row_ids' does not go with 'shard', whose dataset exists")

    def upsert(batch: Any, number: int) -> None:
        query = name or _query_of(batch)
        for column in [*keys, *([latest_by] if latest_by else [])]:
            if column not in batch.columns:
                raise FieldNotFoundError(
                    f"There is no column {column!r} in the batch{nearest_name_hint(column, batch.columns)}"
                )
        changed = _CHANGE in batch.columns
        rows = batch.drop(*CHANGE_COLUMNS.names)
        if target is not None:
            last = _last_of_keys(batch, keys, latest_by) if changed or latest_by else batch
            target.put(query, number, keys, last, rows.columns)
            return
        if newest_or_none(uri, storage_options_text(storage_options)) is None:
            _create(uri, rows.schema, enable_stable_row_ids, storage_options)
        last = _last_of_keys(batch, keys, latest_by).persist() if changed or latest_by else batch
        try:
            if changed:
                gone = last.where(F.col(_CHANGE).isin("delete", "update_preimage")).select(*keys)
                merged(gone, uri, keys, _DELETE, JobMark(query, number, "deletes"), storage_options)
                last = last.where(F.col(_CHANGE).isin("insert", "update_postimage"))
            merged(last.select(*rows.columns), uri, keys, _UPSERT, JobMark(query, number), storage_options)
        finally:
            if last is not batch:
                last.unpersist()

    return upsert


@dataclass(frozen=True)
class _Shard:
    """Shard that batches go to."""

    uri: str
    shard_id: str
    merge_every: int | None
    storage_options: Mapping[str, str] | None = field(repr=False)

    def put(self, query: str, number: int, keys: Sequence[str], batch: Any, columns: Sequence[str]) -> None:
        """Publish a batch, in which each key occurs once.

        Raises
        ------
        InvalidInputError
            The dataset has no MemWAL, or the keys are not its primary key.
        """
        dataset = open_dataset(self.uri, storage_options=dict(self.storage_options) if self.storage_options else None)
        key = KeyColumns.of(dataset.snapshot.manifest.schema).names
        if set(key) != set(keys):
            raise InvalidInputError(
                f"Batches for a shard replace rows by the primary key {list(key)}, not by {list(keys)}"
            )
        content, gone = batch.toArrow(), None
        if _CHANGE in batch.columns:
            is_new = pc.is_in(content[_CHANGE], pa.array(["insert", "update_postimage"]))
            content, gone = content.filter(is_new), content.filter(pc.invert(is_new))
        shard_id = checked_shard_id(self.shard_id)
        put_batch(dataset.snapshot, shard_id, query, number, content.select(columns), gone)
        if self.merge_every is not None and (number + 1) % self.merge_every == 0:
            dataset.merge_mem_wal(shard_id)


def _query_of(batch: Any) -> str:
    """Return the id of the query whose batch this is."""
    context = getattr(batch.sparkSession, "_jsc", None)
    found = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID) if context is not None else None
    if not found:
        raise InvalidInputError("The id of the query is not known here; give upsert_into a name for it")
    return str(found)


def _last_of_keys(batch: Any, keys: Sequence[str], latest_by: str | None) -> Any:
    """Return the last row of each key: of changes the one of the newest version, and new values before old ones."""
    order = [F.col(latest_by).desc_nulls_last()] if latest_by else []
    if _CHANGE in batch.columns:
        if _VERSION not in batch.columns:
            raise FieldNotFoundError(f"Changes need the column {_VERSION!r}, which tells the last change of a key")
        order = [F.col(_VERSION).desc(), F.col(_CHANGE).isin("insert", "update_postimage").desc(), *order]
    window = Window.partitionBy(*keys).orderBy(*order)
    return batch.withColumn(_RANK, F.row_number().over(window)).where(F.col(_RANK) == 1).drop(_RANK)


def _create(uri: str, schema: Any, stable: bool, storage_options: Mapping[str, str] | None) -> None:
    """Make a dataset without rows, unless another writer does."""
    settings = dict(storage_options) if storage_options else None
    empty = created_schema(schema).empty_table()
    try:
        write_dataset(empty, uri, mode="create", enable_stable_row_ids=stable, storage_options=settings)
    except AlreadyExistsError:
        return
