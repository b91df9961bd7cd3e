"""Public calls on a dataset: reads, and changes."""

from __future__ import annotations

import datetime as dt
import random
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyarrow as pa
from fuzz_file import check

import lance_dataset as lance

__all__ = ["CHANGES", "READS", "Call"]

#: Called with the path of a dataset, storage options, and a source of choices.
Call = Callable[[str, dict[str, str], random.Random], object]


def _open(path: str, options: dict[str, str]) -> lance.LanceDataset:
    return lance.dataset(path, storage_options=options or None)


def _column(dataset: lance.LanceDataset, chance: random.Random) -> str:
    return chance.choice(dataset.schema.names or ["a"])


def _read(work: Callable[[lance.LanceDataset, random.Random], object]) -> Call:
    return lambda path, options, chance: work(_open(path, options), chance)


def _blobs(dataset: lance.LanceDataset, chance: random.Random) -> object:
    for field in dataset.schema:
        if b"lance-encoding:blob" in (field.metadata or {}):
            return [blob.readall() for blob in dataset.take_blobs(field.name, indices=[0, 1, 2])]
    return None


def _filters(dataset: lance.LanceDataset, chance: random.Random) -> object:
    name = _column(dataset, chance)
    text = chance.choice(
        (
            "id = 20",
            "id < 9",
            "id in (1, 5, 1001)",
            "text = 'changed'",
            "flag = true",
            f"`{name}` is null",
            f"`{name}` is not null",
        )
    )
    return check(dataset.to_table(filter=text, with_row_id=chance.random() < 0.5))


def _pandas(dataset: lance.LanceDataset, chance: random.Random) -> object:
    try:
        return dataset.to_pandas()
    except (pa.ArrowException, ValueError) as error:
        # pandas cannot hold all valid data, such as dictionaries with a value twice
        if isinstance(error, lance.errors.LanceError):
            raise
        return check(dataset.to_table())


def _plan(dataset: lance.LanceDataset, chance: random.Random) -> object:
    return [dataset.scanner(filter="id > 3").explain_plan(), dataset.scanner(filter="id > 3").count_rows()]


READS: dict[str, Call] = {
    "describe": _read(lambda ds, chance: (ds.schema, ds.version, repr(ds), ds.lance_schema, ds.stats.dataset_stats())),
    "settings": _read(lambda ds, chance: (ds.config(), ds.metadata, ds.schema_metadata, ds.base_paths())),
    "versions": _read(lambda ds, chance: (ds.versions(), ds.latest_version, ds.version_refs())),
    "checkout": _read(lambda ds, chance: [check(ds.checkout_version(v).head(5)) for v in (1, 2, 3)]),
    "to_table": _read(lambda ds, chance: check(ds.to_table())),
    "to_batches": _read(lambda ds, chance: [check(batch) for batch in ds.to_batches(batch_size=33)]),
    "with_ids": _read(lambda ds, chance: check(ds.to_table(columns=[], with_row_id=True, with_row_address=True))),
    "deleted": _read(lambda ds, chance: check(ds.to_table(with_row_id=True, include_deleted_rows=True))),
    "filter": _read(_filters),
    "column": _read(lambda ds, chance: check(ds.to_table(columns=[_column(ds, chance)], limit=7, offset=3))),
    "ordered": _read(lambda ds, chance: check(ds.to_table(order_by=["id"], limit=20))),
    "plan": _read(_plan),
    "take": _read(lambda ds, chance: check(ds.take([0, 5, 5, 149, 44]))),
    "take_column": _read(lambda ds, chance: check(ds.take([0, 77], columns=[_column(ds, chance)]))),
    "sample": _read(lambda ds, chance: check(ds.sample(5))),
    "head": _read(lambda ds, chance: check(ds.head(5))),
    "count": _read(lambda ds, chance: (ds.count_rows(), ds.count_rows("id > 10"))),
    "pandas": _read(_pandas),
    "sql": _read(lambda ds, chance: ds.sql("select count(*) from dataset").build().to_batch_records()),
    "blobs": _read(_blobs),
    "describe_indices": _read(lambda ds, chance: str(ds.snapshot.manifest.index_section)),
    "statistics": _read(lambda ds, chance: (ds.stats.data_stats(), ds.tracked_files(), ds.all_files())),
    "tags": _read(lambda ds, chance: [check(ds.checkout_version(name).to_table()) for name in ds.tags.list()]),
    "branches": _read(
        lambda ds, chance: [check(ds.checkout_version((name, None)).to_table()) for name in ds.branches.list()]
    ),
    "transactions": _read(lambda ds, chance: (ds.get_transactions(), ds.read_transaction(ds.version))),
    "delta": _read(lambda ds, chance: ds.delta(compared_against=1).list_transactions()),
    "inserted": _read(lambda ds, chance: ds.delta(compared_against=1).get_inserted_rows().read_all()),
    "validate": _read(lambda ds, chance: ds.validate()),
    "encodings": _read(lambda ds, chance: str(ds.explain_encodings())),
    "fragments": _read(
        lambda ds, chance: [
            (f.metadata, f.count_rows(), f.physical_rows, f.num_deletions, check(f.to_table()), check(f.take([0, 1])))
            for f in ds.get_fragments()
        ]
    ),
    "explain_cleanup": _read(lambda ds, chance: str(ds.explain_cleanup_old_versions(older_than=dt.timedelta(0)))),
}


def _append(ds: lance.LanceDataset, chance: random.Random) -> object:
    return lance.write_dataset(ds.head(3), ds, mode="append")


def _merge(ds: lance.LanceDataset, chance: random.Random) -> object:
    return ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(ds.head(9))


def _cleanup(ds: lance.LanceDataset, chance: random.Random) -> object:
    return ds.cleanup_old_versions(
        older_than=dt.timedelta(0), delete_unverified=chance.random() < 0.5, error_if_tagged_old_versions=False
    )


def _clone(ds: lance.LanceDataset, chance: random.Random) -> object:
    target = f"{ds.uri}-copy{chance.randrange(10**6)}"
    copy = ds.deep_clone(target, ds.version) if chance.random() < 0.5 else ds.shallow_clone(target, ds.version)
    return check(copy.to_table())


def _overwrite(ds: lance.LanceDataset, chance: random.Random) -> object:
    return lance.write_dataset(pa.table({"new": [1]}), ds.uri, mode="overwrite")


CHANGES: dict[str, Call] = {
    "append": _read(_append),
    "delete": _read(lambda ds, chance: ds.delete(chance.choice(("id = 3", "id % 2 = 0", "true")))),
    "update": _read(lambda ds, chance: ds.update({"text": "'new'"}, where="id < 30")),
    "merge": _read(_merge),
    "add_columns": _read(lambda ds, chance: ds.add_columns({"added": "id + 1"})),
    "drop_columns": _read(lambda ds, chance: ds.drop_columns([_column(ds, chance)])),
    "rename": _read(lambda ds, chance: ds.alter_columns({"path": _column(ds, chance), "name": "renamed"})),
    "cast": _read(lambda ds, chance: ds.alter_columns({"path": "id", "data_type": pa.int32()})),
    "compact": _read(
        lambda ds, chance: ds.optimize.compact_files(target_rows_per_fragment=1000, materialize_deletions_threshold=0.0)
    ),
    "cleanup": _read(_cleanup),
    "tag": _read(lambda ds, chance: (ds.tags.create("new", ds.version), ds.tags.list(), ds.tags.delete("new"))),
    "untag": _read(lambda ds, chance: [ds.tags.delete(name) for name in ds.tags.list()]),
    "branch": _read(lambda ds, chance: (ds.create_branch("new"), ds.branches.list(), ds.branches.delete("new"))),
    "unbranch": _read(lambda ds, chance: [ds.branches.delete(name) for name in ds.branches.list()]),
    "restore": _read(lambda ds, chance: ds.checkout_version(1).restore()),
    "config": _read(lambda ds, chance: (ds.update_config({"a": "b"}), ds.delete_config_keys(["a"]))),
    "migrate": _read(lambda ds, chance: ds.migrate_manifest_paths_v2()),
    "clone": _read(_clone),
    "overwrite": _read(_overwrite),
    "drop": lambda path, options, chance: lance.LanceDataset.drop(path),
}
