"""Tests of random sequences of changes by this package, by the reference, and by both in turn on one table.

After every change the three tables are equal in both readers: rows, row ids, lineage of rows, schema with field ids,
fragments, and the rest of the manifest.

``LANCE_STRESS=1`` tries many more sequences, new ones in every run.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from support.grammar.table_steps import (
    POOL,
    SIZES,
    VERSIONS,
    alterations,
    expressions,
    merges,
    paths_of,
    predicates,
    random_rows,
    schemas,
)
from support.reference.table_copies import OURS, REFERENCE, Change, Copies, Order

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
SEQUENCES = 1000 if THOROUGH else 8
STEPS = 12
#: Weights of the changes, by the names of methods.
WEIGHTS = {
    "append": 1,
    "overwrite": 1,
    "delete": 2,
    "update": 2,
    "merge_insert": 3,
    "add_columns": 1,
    "add_by_function": 1,
    "add_nulls": 1,
    "join_columns": 1,
    "alter_columns": 2,
    "drop_columns": 1,
    "restore": 1,
    "tag": 1,
    "look_back": 1,
    "compact": 2,
    "cleanup": 1,
}
NEXT = st.sampled_from([name for name, weight in WEIGHTS.items() for _ in range(weight)])
SEEDS = st.integers(0, 2**16)
BEHIND = st.sampled_from([False, False, False, True])
AUTHORS = st.sampled_from([OURS, REFERENCE])
#: Folder of the tables: in memory if possible, as thousands of files are made and removed.
MEMORY = Path("/dev/shm")


def ignored(_: object) -> None:
    """Drop the handle that a library returns: it cannot be compared with that of the other library."""


class Sequence(RuleBasedStateMachine):
    """One sequence of changes."""

    version: str
    stable: bool

    def __init__(self) -> None:
        super().__init__()
        above = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.folder = tempfile.mkdtemp(dir=above)
        self.copies = Copies(Path(self.folder))
        self.last_id = -1
        self.named = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # -- helpers

    def new_name(self) -> str:
        self.named += 1
        return f"c{self.named}"

    @property
    def schema(self) -> pa.Schema:
        assert self.copies.view is not None
        return self.copies.view.schema

    def rows(self, schema: pa.Schema, count: int, seed: int) -> pa.Table:
        ids = range(self.last_id + 1, self.last_id + 1 + count)
        self.last_id += count
        return random_rows(schema, ids, seed, null_structs=self.version != "2.0")

    def make(self, data: st.DataObject, change: Change, **options: Any) -> Any:
        return self.copies.make(change, data.draw(AUTHORS, "shared by"), **options)

    def names(self) -> list[str]:
        """Return the names of the columns except the key, and add a column if there is no other."""
        if len(self.schema.names) == 1:
            added = pa.schema([(self.new_name(), pa.string())])
            self.copies.make(lambda module, path: module.dataset(path).add_columns(added), OURS)
        return self.schema.names[1:]

    def opened(self, module: Any, path: str, behind: bool) -> Any:
        """Return a handle on the newest version, or on the one before if `behind` and both have the same schema."""
        dataset = module.dataset(path)
        return module.dataset(path, version=max(1, dataset.version - 1)) if behind and self.copies.settled else dataset

    @initialize(schema=schemas(), count=SIZES, seed=SEEDS, per_file=st.sampled_from([100, 5]))
    def create(self, schema: pa.Schema, count: int, seed: int, per_file: int) -> None:
        rows = self.rows(schema, count + 5, seed)
        options = {"data_storage_version": self.version, "enable_stable_row_ids": self.stable}

        self.copies.make(
            lambda module, path: ignored(module.write_dataset(rows, path, max_rows_per_file=per_file, **options)), OURS
        )

    @rule(data=st.data(), change=NEXT)
    def then(self, data: st.DataObject, change: str) -> None:
        getattr(self, change)(data)

    # -- rows

    def append(self, data: st.DataObject) -> None:
        rows = self.rows(self.schema, data.draw(SIZES, "rows"), data.draw(SEEDS, "seed"))
        optional = [field.name for field in self.schema if field.nullable][1:]
        left_out = data.draw(st.sampled_from([None, None, *optional]), "without")
        rows = rows.select([name for name in rows.column_names if name != left_out])
        per_file = data.draw(st.sampled_from([100, 4]), "rows per file")
        self.make(
            data,
            lambda module, path: ignored(module.write_dataset(rows, path, mode="append", max_rows_per_file=per_file)),
        )

    def overwrite(self, data: st.DataObject) -> None:
        schema = data.draw(st.just(self.schema) | schemas(), "schema")
        rows = self.rows(schema, data.draw(SIZES, "rows"), data.draw(SEEDS, "seed"))
        self.make(
            data,
            lambda module, path: ignored(module.write_dataset(rows, path, mode="overwrite", max_rows_per_file=7)),
            order=Order.EXACT,
        )

    def delete(self, data: st.DataObject) -> None:
        predicate = data.draw(predicates(self.schema, self.last_id), "where")
        behind = data.draw(BEHIND, "behind")
        self.make(data, lambda module, path: self.opened(module, path, behind).delete(predicate))

    def update(self, data: st.DataObject) -> None:
        where = data.draw(st.none() | predicates(self.schema, self.last_id), "where")
        behind = data.draw(BEHIND, "behind")
        names = data.draw(st.lists(st.sampled_from(self.names()), min_size=1, max_size=2, unique=True), "set")
        # The reference sets columns one after the other, in any order: an expression may not read another set column.
        usable = {
            name: pa.schema([each for each in self.schema if each.name not in {*names} - {name}]) for name in names
        }
        values = {name: data.draw(expressions(usable[name], usable[name].field(name).type), name) for name in names}
        self.make(data, lambda module, path: self.opened(module, path, behind).update(values, where))

    def merge_insert(self, data: st.DataObject) -> None:
        merge = data.draw(merges(self.schema, self.last_id), "merge")
        behind = data.draw(BEHIND, "behind")
        source = merge.source(self.schema, data.draw(SEEDS, "seed"), null_structs=self.version != "2.0")
        self.last_id = max([self.last_id, *source["id"].to_pylist()])
        self.make(data, lambda module, path: merge.run(self.opened(module, path, behind), source), reorders=True)

    # -- columns

    def add_columns(self, data: st.DataObject) -> None:
        kinds = [pa.int32(), pa.string(), pa.float64(), pa.bool_(), *self.schema.types[1:]]
        kind = data.draw(st.sampled_from(kinds), "type")
        values = data.draw(expressions(self.schema, kind), "values")
        name = self.new_name()
        self.make(data, lambda module, path: module.dataset(path).add_columns({name: values}))

    def add_by_function(self, data: st.DataObject) -> None:
        name, factor = self.new_name(), data.draw(st.integers(1, 3), "factor")
        size = data.draw(st.sampled_from([None, 3]), "batch size")

        def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.record_batch({name: pc.multiply(batch["id"], factor)})

        def change(module: Any, path: str) -> None:
            function = module.batch_udf(output_schema=pa.schema([(name, pa.int64())]))(twice)
            module.dataset(path).add_columns(function, read_columns=["id"], batch_size=size)

        self.make(data, change)

    def add_nulls(self, data: st.DataObject) -> None:
        kinds = data.draw(st.lists(st.sampled_from(list(POOL.values())), min_size=1, max_size=2), "types")
        added = pa.schema([(self.new_name(), kind) for kind in kinds])
        self.make(data, lambda module, path: module.dataset(path).add_columns(added))

    def join_columns(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(0, 9), "from")
        ids = range(first, max(first, self.last_id) + 5, 2)
        schema = pa.schema([("id", pa.int64()), (self.new_name(), data.draw(st.sampled_from(list(POOL.values()))))])
        rows = random_rows(schema, ids, data.draw(SEEDS, "seed"), null_structs=self.version != "2.0")
        self.make(data, lambda module, path: module.dataset(path).merge(rows, "id"))

    def alter_columns(self, data: st.DataObject) -> None:
        self.names()
        change = data.draw(alterations(self.schema, self.new_name(), cast_children=self.version != "2.0"), "alteration")
        self.make(data, lambda module, path: module.dataset(path).alter_columns(change))

    def drop_columns(self, data: st.DataObject) -> None:
        self.names()
        paths = [path for path, _ in paths_of(self.schema)[1:]]
        dropped = data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=2, unique=True), "columns")
        self.make(data, lambda module, path: module.dataset(path).drop_columns(dropped))

    # -- versions

    def restore(self, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(self.copies.versions()), "version")
        order = self.copies.order_of(version)
        self.make(data, lambda module, path: module.dataset(path, version=version).restore(), order=order)

    def tag(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(["first", "second"]), "tag")
        version = data.draw(st.sampled_from(self.copies.versions()), "version")

        def change(module: Any, path: str) -> None:
            tags = module.dataset(path).tags
            (tags.update if name in tags.list() else tags.create)(name, version)

        self.make(data, change)
        self.copies.look_back(name)

    def look_back(self, data: st.DataObject) -> None:
        self.copies.look_back(data.draw(st.sampled_from(self.copies.versions()), "version"))

    # -- maintenance

    def compact(self, data: st.DataObject) -> None:
        if self.copies.order is not Order.EXACT:
            return  # fragments are divided by number of rows
        options = {
            "target_rows_per_fragment": data.draw(st.sampled_from([1000, 10, 4]), "rows"),
            "materialize_deletions": data.draw(st.booleans(), "materialize"),
            "materialize_deletions_threshold": data.draw(st.sampled_from([0.1, 0.0, 0.5]), "threshold"),
        }

        def change(module: Any, path: str) -> Any:
            metrics = module.dataset(path).optimize.compact_files(**options)
            names = ("fragments_removed", "fragments_added", "files_removed", "files_added")
            return [getattr(metrics, name) for name in names]

        self.make(data, change)

    def cleanup(self, data: st.DataObject) -> None:
        def change(module: Any, path: str) -> Any:
            dataset = module.dataset(path)
            done = dataset.cleanup_old_versions(older_than=dt.timedelta(0), error_if_tagged_old_versions=False)
            return done.old_versions

        self.make(data, change)
        self.copies.versions()


CASES = [(version, stable) for version in VERSIONS for stable in (False, True)]


@pytest.mark.parametrize(
    ("number", "version", "stable"),
    [(number, *case) for number, case in enumerate(CASES)],
    ids=[f"{version}-{'stable' if stable else 'addresses'}" for version, stable in CASES],
)
def test_sequences(number: int, version: str, stable: bool) -> None:
    machine = type("Sequence", (Sequence,), {"version": version, "stable": stable})
    if not THOROUGH:  # the same sequences in every run, different ones in every case
        machine = seed(number)(machine)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=SEQUENCES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
