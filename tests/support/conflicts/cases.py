"""Operations of every kind and condition on one table, to be committed against each other in pairs.

The table has the fields 0 ``id`` (not null), 1 ``a``, 2 ``b`` and four fragments (0 to 3) of ten rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from lance_dataset._proto import table_pb2
from lance_dataset.table.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata
from lance_dataset.table.manifest import BasePath, Manifest
from lance_dataset.table.operations import (
    Append,
    Clone,
    CompactedSsTable,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    KeyFilter,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Unknown,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
    UpdateMemWalState,
    UpdateMode,
)
from lance_dataset.table.roaring import encode_bitmap
from lance_dataset.types.schema import Field

__all__ = ["ARROW", "INDEX", "ROWS", "cases", "new_fragment"]

ARROW = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("a", pa.int64()), pa.field("b", pa.string())],
)
ROWS = 10
ID, A, B, C = 0, 1, 2, 3
BTREE = IndexDetails("/lance.table.BTreeIndexDetails", b"")
NGRAM = IndexDetails("/lance.table.NGramIndexDetails", b"")
REUSE = IndexDetails("/lance.table.FragmentReuseIndexDetails", b"\x0a\x00")
INDEX = IndexMetadata(str(uuid.UUID(int=1)), "b_idx", (B,), 1, encode_bitmap([0, 1, 2, 3]), BTREE, 0, 1_700_000_000_000)
SHARD, OTHER_SHARD = str(uuid.UUID(int=7)), str(uuid.UUID(int=8))


def data_file(*fields: int) -> DataFile:
    return DataFile(f"{uuid.uuid4()}.lance", fields, tuple(range(len(fields))), 2, 2, 1000)


def new_fragment(*fields: int) -> Fragment:
    return Fragment(0, (data_file(*(fields or (ID, A, B))),), physical_rows=ROWS)


def masked(fragment: Fragment) -> Fragment:
    """Return a fragment with one deleted row in a new deletion file."""
    return replace(fragment, deletion_file=DeletionFile(DeletionFileType.ARROW_ARRAY, 1, uuid.uuid4().int >> 64, 1))


def with_new_column(fragment: Fragment, field_id: int) -> Fragment:
    """Return a fragment with a new file for one field."""
    old = fragment.files[0]
    kept = replace(old, fields=tuple(-2 if each == field_id else each for each in old.fields))
    return replace(fragment, files=(kept, data_file(field_id)))


def overlay(field_id: int, offsets: Iterable[int]) -> bytes:
    file = data_file(field_id).to_proto()
    return table_pb2.DataOverlayFile(
        data_file=file, shared_offset_bitmap=encode_bitmap(list(offsets))
    ).SerializeToString()


def index(number: int, name: str, field_id: int, fragments: Iterable[int] | None, details: IndexDetails = BTREE):
    bitmap = b"" if fragments is None else encode_bitmap(list(fragments))
    return IndexMetadata(str(uuid.UUID(int=number)), name, (field_id,), 1, bitmap, details, 0, 1_700_000_000_000)


def system_index(number: int, name: str, details: IndexDetails, fragments: Iterable[int] = ()) -> IndexMetadata:
    covered = list(fragments)
    bitmap = encode_bitmap(covered) if covered else b""
    return IndexMetadata(str(uuid.UUID(int=number)), name, (), 1, bitmap, details, 0, 1_700_000_000_000)


def log_details(*progress: tuple[str, int]) -> IndexDetails:
    """Return details of the index of a log with its merged generations: field 9, an id and a generation each."""
    tables = [
        b"\x0a\x12" + table_pb2.UUID(uuid=uuid.UUID(shard).bytes).SerializeToString() + bytes([0x10, generation])
        for shard, generation in progress
    ]
    value = b"".join(b"\x4a" + bytes([len(each)]) + each for each in tables)
    return IndexDetails("/lance.table.MemWalIndexDetails", value)


def cases(base: Manifest) -> Mapping[str, Operation]:
    """Return every operation by a short name, computed against `base`."""
    f0, f1, f2, _ = base.fragments
    fields = base.schema.fields
    wider = replace(base.schema, fields=(*fields, Field("c", C, "int64", nullable=True)))
    renamed = replace(base.schema, fields=(*fields[:2], replace(fields[2], name="bb")))
    without_b = replace(base.schema, fields=fields[:2])
    return {
        "append": Append((new_fragment(),)),
        **_row_changes(f0, f1),
        "overwrite": Overwrite(base.schema, (new_fragment(),)),
        "overwrite config k": Overwrite(base.schema, (new_fragment(),), {"k": "o"}),
        **_index_changes(),
        "rewrite 0": Rewrite((RewriteGroup((f0,), (new_fragment(),)),)),
        "rewrite 1": Rewrite((RewriteGroup((f1,), (new_fragment(),)),)),
        "rewrite 0+2": Rewrite((RewriteGroup((f0, f2), (new_fragment(),)),)),
        "merge": Merge(tuple(base.fragments), wider),
        "merge preserving": Merge(tuple(base.fragments), wider, preserves_nullability=True),
        "project rename": Project(renamed),
        "project rename preserving": Project(renamed, preserves_nullability=True),
        "project drop b": Project(without_b),
        "project drop b preserving": Project(without_b, preserves_nullability=True),
        "restore": Restore(1),
        "reserve": ReserveFragments(3),
        **_config_changes(),
        **_column_changes(),
        "mem_wal 5": UpdateMemWalState((CompactedSsTable(SHARD, 5),)),
        "mem_wal 6": UpdateMemWalState((CompactedSsTable(SHARD, 6),)),
        "mem_wal other shard": UpdateMemWalState((CompactedSsTable(OTHER_SHARD, 5),)),
        "bases x": UpdateBases((BasePath(0, "/somewhere/x", "x"),)),
        "bases x elsewhere": UpdateBases((BasePath(0, "/elsewhere/x", "x"),)),
        "bases y at x": UpdateBases((BasePath(0, "/somewhere/x", "y"),)),
        "bases z": UpdateBases((BasePath(9, "/somewhere/z", "z"),)),
        "bases w id of z": UpdateBases((BasePath(9, "/somewhere/w", "w"),)),
        "clone": Clone(True, 1, "/elsewhere/t"),
        "unknown": Unknown(),
    }


def _row_changes(f0: Fragment, f1: Fragment) -> dict[str, Operation]:
    columns = UpdateMode.REWRITE_COLUMNS
    bloom = KeyFilter((ID,), None, b"\x01" + bytes(31), 256, 8, 0.1)
    other_bloom = replace(bloom, bitmap=bytes(31) + b"\x01")
    return {
        "delete in 0": Delete((masked(f0),), (), "a = 1"),
        "delete in 1": Delete((masked(f1),), (), "a = 1"),
        "delete all of 0": Delete((), (0,), "a = 1"),
        "update rows of 0": Update((), (masked(f0),), (new_fragment(),), fields_for_preserving_bitmap=(A,)),
        "update rows of 1": Update((), (masked(f1),), (new_fragment(),), fields_for_preserving_bitmap=(A,)),
        "update all of 0": Update((0,), (), (new_fragment(),), fields_for_preserving_bitmap=(A,)),
        "update masks 0": Update((), (masked(f0),), ()),
        "update a of 0": Update((), (with_new_column(f0, A),), (), (A,), (), (), columns),
        "update b of 0": Update((), (with_new_column(f0, B),), (), (B,), (), (), columns),
        "update a of 1": Update((), (with_new_column(f1, A),), (), (A,), (), (), columns),
        "insert": Update((), (), (new_fragment(),)),
        "insert keys 1 2": _insert(KeyFilter((ID,), frozenset({1, 2}))),
        "insert keys 2 3": _insert(KeyFilter((ID,), frozenset({2, 3}))),
        "insert keys 3 4": _insert(KeyFilter((ID,), frozenset({3, 4}))),
        "insert keys of a": _insert(KeyFilter((A,), frozenset({8}))),
        "insert bloom": _insert(bloom),
        "insert other bloom": _insert(other_bloom),
        "insert larger bloom": _insert(replace(other_bloom, bitmap=bytes(63) + b"\x02", num_bits=512)),
        "update log 5": Update((), (), (new_fragment(),), compacted_sstables=(CompactedSsTable(SHARD, 5),)),
        "update log 6": Update((), (), (new_fragment(),), compacted_sstables=(CompactedSsTable(SHARD, 6),)),
    }


def _insert(keys: KeyFilter) -> Update:
    return Update((), (), (new_fragment(),), inserted_rows=keys)


def _index_changes() -> dict[str, Operation]:
    b_again = replace(INDEX, uuid=str(uuid.UUID(int=11)), fragment_bitmap=encode_bitmap([0, 1, 2, 3]))
    return {
        "index a on all": CreateIndex((index(21, "a_idx", A, range(4)),)),
        "index a on 0": CreateIndex((index(22, "a_idx", A, [0]),)),
        "index a on 1": CreateIndex((index(23, "other_idx", A, [1]),)),
        "index a unknown": CreateIndex((index(24, "vague_idx", A, None),)),
        "index b ngram": CreateIndex((index(25, "ngram_idx", B, range(4), NGRAM),)),
        "index b replaced": CreateIndex((b_again,), (INDEX,)),
        "index b extended": CreateIndex((index(26, "b_idx", B, [3]),)),
        "index b dropped": CreateIndex((), (INDEX,)),
        "reuse index on 0": CreateIndex((system_index(31, "__lance_frag_reuse", REUSE, [0]),)),
        "reuse index on 1": CreateIndex((system_index(32, "__lance_frag_reuse", REUSE, [1]),)),
        "reuse index trimmed": CreateIndex(
            (system_index(35, "__lance_frag_reuse", REUSE, [0]),),
            (system_index(36, "__lance_frag_reuse", REUSE, [0]),),
        ),
        "reuse index dropped": CreateIndex((), (system_index(36, "__lance_frag_reuse", REUSE, [0]),)),
        "log index": CreateIndex((system_index(33, "__lance_mem_wal", log_details()),)),
        "log index 5": CreateIndex((system_index(34, "__lance_mem_wal", log_details((SHARD, 5))),)),
    }


def _config_changes() -> dict[str, Operation]:
    return {
        "config k=1": UpdateConfig(UpdateMap({"k": "1"})),
        "config k=2": UpdateConfig(UpdateMap({"k": "2"})),
        "config no k": UpdateConfig(UpdateMap({"k": None})),
        "config l=1": UpdateConfig(UpdateMap({"l": "1"})),
        "config only l": UpdateConfig(UpdateMap({"l": "1"}, replace=True)),
        "table k=1": UpdateConfig(None, UpdateMap({"k": "1"})),
        "table no k": UpdateConfig(None, UpdateMap({"k": None})),
        "table l=1": UpdateConfig(None, UpdateMap({"l": "1"})),
        "table only m": UpdateConfig(None, UpdateMap({"m": "1"}, replace=True)),
        "schema k=1": UpdateConfig(None, None, UpdateMap({"k": "1"})),
        "schema l=1": UpdateConfig(None, None, UpdateMap({"l": "1"})),
        "schema cleared": UpdateConfig(None, None, UpdateMap({}, replace=True)),
        "field a": UpdateConfig(field_metadata={A: UpdateMap({"k": "1"})}),
        "field a other": UpdateConfig(field_metadata={A: UpdateMap({"l": "1"})}),
        "field b": UpdateConfig(field_metadata={B: UpdateMap({"k": "1"})}),
        "config nothing": UpdateConfig(),
    }


def _column_changes() -> dict[str, Operation]:
    return {
        "replace a of 0": DataReplacement(((0, data_file(A)),)),
        "replace b of 0": DataReplacement(((0, data_file(B)),)),
        "replace a of 1": DataReplacement(((1, data_file(A)),)),
        "replace a of 0 1": DataReplacement(((0, data_file(A)), (1, data_file(A)))),
        "overlay a of 0": DataOverlay(((0, (overlay(A, [1, 2]),)),)),
        "overlay b of 0": DataOverlay(((0, (overlay(B, [1, 2]),)),)),
        "overlay a of 1": DataOverlay(((1, (overlay(A, [1, 2]),)),)),
    }
