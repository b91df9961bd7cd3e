"""Program that uses the whole public API of the package, for type checkers to read.

Every result goes to a variable whose type is written down, so an annotation that is missing or wrong is an error of
``mypy --strict`` or ``basedpyright`` (both part of ``make lint``). It also runs: ``python public_face.py FOLDER``.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pydantic
import torch

import lance_dataset as lance
from lance_dataset import arrow, errors, file, mem_wal
from lance_dataset.bitmap import Bitmap
from lance_dataset.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile, BlobIterator, BlobType
from lance_dataset.commit import CommitConflictError, CommitLock
from lance_dataset.dataset import (
    LANCE_COMMIT_MESSAGE_KEY,
    AlterColumn,
    AutoCleanupConfig,
    Branch,
    Branches,
    BulkCommitResult,
    DatasetDelta,
    DatasetOptimizer,
    DatasetStats,
    DeleteResult,
    DocumentGranularity,
    ExecuteResult,
    LanceStats,
    MaintenancePolicy,
    MaintenanceReport,
    MaintenanceRunner,
    MaintenanceStep,
    PlanText,
    PurgeReport,
    RemainingCopy,
    SqlQuery,
    SqlQueryBuilder,
    Tag,
    Tags,
    UpdateResult,
    VectorIndexReader,
    VectorSearchQuery,
    Version,
    VersionEntry,
    VersionHistory,
    VersionRef,
    serialize_row_addrs,
)
from lance_dataset.debug import (
    Diagnosis,
    DiagnosisCause,
    DiagnosisKind,
    Finding,
    FindingSubject,
    RepairAction,
    RepairOutcome,
    RepairReport,
    RepairStep,
    diagnose,
    format_fragment,
    format_manifest,
    format_schema,
    list_transactions,
    repair,
)
from lance_dataset.download import (
    LANGUAGE_MODEL_HOME,
    check_lindera,
    download_jieba,
    download_lindera,
    import_requests,
    language_model_home,
)
from lance_dataset.download import main as download_main
from lance_dataset.file import (
    ColumnEncoding,
    EncodingReport,
    LanceBufferDescriptor,
    LanceColumnMetadata,
    LanceFileMetadata,
    LanceFileReader,
    LanceFileStatistics,
    LanceFileWriter,
    LancePageMetadata,
    PageEncoding,
    ReaderResults,
    StoredBuffer,
    resolve_version,
    stable_version,
)
from lance_dataset.fragment import (
    DEFAULT_MAX_BYTES_PER_FILE,
    DataFile,
    DeletionFile,
    FragmentMetadata,
    FragmentSession,
    LanceFragment,
    RowDatasetVersionMeta,
    RowIdMeta,
    RowIdSequence,
    remove_uncommitted,
    write_fragments,
)
from lance_dataset.hf import HuggingFaceConverter
from lance_dataset.indices import (
    IndexConfig,
    IndexDescription,
    IndexFileVersion,
    IndexInformation,
    IndexSegment,
    IndexSegmentDescription,
    IndicesBuilder,
    IvfModel,
    PqModel,
    SupportedDistributedIndices,
)
from lance_dataset.log import (
    ENV_NAME_PYLANCE_LOGGING_LEVEL,
    LOGGER,
    get_log_level,
    get_python_log_level,
    logs_events,
    set_logger,
)
from lance_dataset.optimize import (
    Compaction,
    CompactionMetrics,
    CompactionOptions,
    CompactionPlan,
    CompactionTask,
    RewriteResult,
)
from lance_dataset.otel import instrument_lance_metrics
from lance_dataset.progress import FileSystemFragmentWriteProgress, FragmentWriteProgress, NoopFragmentWriteProgress
from lance_dataset.pydantic import (
    FixedSizeListMixin,
    MultiVector,
    Vector,
    get_extras,
    is_nullable,
    pydantic_to_schema,
)
from lance_dataset.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextOperator,
    FullTextQuery,
    FullTextQueryType,
    Highlight,
    MatchQuery,
    MinHashQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)
from lance_dataset.sampler import (
    FragmentSampler,
    FullScanSampler,
    Sampler,
    ShardedBatchIterator,
    ShardedBatchSampler,
    ShardedFixedBatchSampler,
    ShardedFragmentSampler,
    maybe_sample,
    reservoir_sampling,
)
from lance_dataset.schema import LanceField, LanceSchema
from lance_dataset.tracing import TraceEvent, capture_trace_events, trace_to_chrome
from lance_dataset.udf import BatchUDF, BatchUDFCheckpoint, batch_udf, normalize_transform
from lance_dataset.util import (
    HNSW,
    KMeans,
    parse_duration,
    sanitize_ts,
    strict_bool,
    td_to_micros,
    validate_vector_index,
)
from lance_dataset.vector import (
    compute_partitions,
    compute_pq_codes,
    find_duplicate_pairs,
    find_duplicate_pairs_in_partition,
    get_ivf_partition_info,
    hamming_clustering_for_ivf_partition,
    hamming_clustering_for_range,
    hamming_clustering_for_sample,
    one_pass_assign_ivf_pq_on_accelerator,
    one_pass_train_ivf_pq_on_accelerator,
    train_ivf_centroids_on_accelerator,
    train_pq_codebook_on_accelerator,
    vec_to_table,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ROWS = 40


def people() -> pa.Table:
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), "name": [f"name {number}" for number in range(ROWS)]})


def no_lock(version: int) -> contextlib.AbstractContextManager[None]:
    """Take the version that is about to be committed, and return a context that locks nothing."""
    assert version > 0
    return contextlib.nullcontext()


# -- opening and writing -----------------------------------------------------------------------------------------------


def open_and_write(folder: Path) -> None:
    version_text: str = lance.__version__
    assert version_text
    path: Path = folder / "people"
    lock: CommitLock = no_lock
    cleanup: AutoCleanupConfig = {"interval": 100, "older_than_seconds": 3600}
    session: lance.Session = lance.Session(index_cache_size_bytes=1 << 20, metadata_cache_size_bytes=1 << 20)
    dataset: lance.LanceDataset = lance.write_dataset(
        people(),
        path,
        mode="create",
        max_rows_per_file=20,
        max_bytes_per_file=DEFAULT_MAX_BYTES_PER_FILE,
        commit_lock=lock,
        storage_options={"local_fsync": "false"},
        data_storage_version="2.1",
        enable_stable_row_ids=True,
        auto_cleanup_options=cleanup,
        commit_message="first",
        transaction_properties={"by": "a sample"},
        session=session,
    )
    dataset = lance.write_dataset({"id": [100], "name": ["from a dict"]}, str(path), mode="append")
    dataset = lance.write_dataset([{"id": 101, "name": "from a list"}], dataset, dataset.schema, mode="append")
    dataset = lance.write_dataset(iter(people().to_batches()), path, people().schema, mode="append")
    dataset = lance.write_dataset(dataset.scanner(limit=1), path, mode="append")
    dataset = lance.write_dataset(dataset.to_pandas(limit=1), path, mode="append")
    dataset = lance.dataset(path)
    dataset = lance.dataset(path, version=1, session=session, default_scan_options={"batch_size": 7})
    dataset = lance.dataset(path, asof=dt.datetime.now() + dt.timedelta(days=1), storage_options={"mmap": "false"})
    dataset = lance.dataset(path, asof=dt.date.today() + dt.timedelta(days=1), commit_lock=lock, block_size=4096)
    dataset = lance.dataset(path, (None, 1), read_params={"validate_on_decode": True}, index_cache_size_bytes=1)
    dataset = lance.dataset(path, max_result_bytes=1 << 30)
    dataset = lance.LanceDataset(path, version=2, session=session, commit_lock=lock)
    session_of: lance.Session = dataset.session()
    same: bool = session_of.is_same_as(session)
    kept: int = session.size_bytes() + session.index_cache_size_bytes()
    hits: int = session.cache_stats().hits
    session.clear_cache()
    assert same and kept >= 0 and hits >= 0
    assert isinstance(pickle.loads(pickle.dumps(lance.dataset(path))), lance.LanceDataset)


def identity(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.dataset(folder / "people")
    uri: str = dataset.uri
    schema: pa.Schema = dataset.schema
    lance_schema: LanceSchema = dataset.lance_schema
    numbers: list[int] = [dataset.version, dataset.latest_version, dataset.max_field_id, len(dataset)]
    version: Version = dataset.get_version()
    number: int = version["version"]
    when: dt.datetime = version["timestamp"]
    counts: dict[str, str] = version["metadata"]
    versions: list[Version] = dataset.versions()
    refs: list[VersionRef] = dataset.version_refs()
    storage: str = dataset.data_storage_version
    stable: bool = dataset.has_stable_row_ids
    branch: str | None = dataset.branch
    maps: list[dict[str, str]] = [dataset.metadata, dataset.schema_metadata, dataset.config()]
    options: list[dict[str, str] | None] = [dataset.initial_storage_options, dataset.latest_storage_options()]
    assert dataset.storage_options_accessor is None
    ids: list[int] = dataset.fragment_ids()
    fragments: list[LanceFragment] = dataset.get_fragments()
    fragment: LanceFragment | None = dataset.get_fragment(ids[0])
    statistics: lance.IOStats = dataset.io_stats_snapshot()
    statistics = dataset.io_stats_incremental()
    requests: int = statistics.read_iops + statistics.read_bytes + statistics.write_iops + statistics.written_bytes
    assert lance.IOStats(1, 2, 3, 4).read_iops == 1
    moved: pa.Array | None = dataset.remap_row_addrs(pa.array([0], pa.uint64()))
    dataset.validate()
    dataset.validate(indices=True, fragments=False)
    checked: Diagnosis = dataset.doctor()
    found: tuple[Finding, ...] = diagnose(dataset.uri).findings
    assert Finding(DiagnosisKind.DATA, "a file is cut", "restore it").is_damage
    mended: RepairReport = dataset.doctor(repair=True, execute=True, drop_lost_rows=True, progress=True)
    planned: RepairReport = repair(dataset.uri, restore_deleted_rows=True, on_plan=print)
    assert mended.is_healthy and planned.rows_lost == 0 and planned.quarantine is None
    step = RepairStep(RepairAction.LEAVE, "nothing", RepairOutcome.LEFT, "whole", paths=("data/a.lance",))
    lost_and_found: tuple[int | None, ...] = (step.rows_lost, step.rows_emptied, step.version, planned.rows_emptied)
    assert step.action == "leave" and step.outcome == "left" and step.reason and step.what and step.paths
    assert step.rows_restored == planned.rows_restored == 0
    assert step.branch is None and not any(lost_and_found) and mended.executed and not planned.executed
    assert mended.steps == () and mended.before == mended.after and "steps" in planned.to_dict() and planned.to_json()
    subject: FindingSubject = FindingSubject(DiagnosisCause.EMPTY, path="data/a.lance", versions=((None, 1),))
    assert subject.newest == () and dataset.doctor(progress=lambda done, total: done) == checked
    whole: tuple[str | None, ...] = (subject.path, subject.branch, subject.tag, subject.index, subject.column)
    assert subject.shard is None and DiagnosisKind.SHARD.value == "shard"
    amounts: tuple[int | None, ...] = (subject.fragment, subject.files, subject.size)
    assert subject.cause == "empty" and subject.versions[0][1] == 1 and whole[0] and not any(amounts)
    assert checked.versions >= 1 and isinstance(checked.branches, tuple)
    assert checked.is_healthy and checked.findings == found and checked.newest == dataset.version
    healthy: list[tuple[str, str, str, bool]] = [(each.kind, each.what, each.remedy, each.is_damage) for each in found]
    assert str(checked).startswith(checked.uri) and checked.versions and all(not damage for *_, damage in healthy)
    dataset.checkout_latest()
    old: lance.LanceDataset = dataset.checkout_version(1)
    old.restore()
    dataset.migrate_manifest_paths_v2()
    assert uri and schema.names and lance_schema.fields() and all(numbers) and number == versions[-1]["version"]
    assert when and counts and refs[0]["version"] == 1 and storage == "2.1" and stable and branch is None and maps
    assert options and fragments and fragment is not None and requests >= 0 and moved is None


# -- reading -----------------------------------------------------------------------------------------------------------


def read(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.dataset(folder / "people", version=1)
    seen: list[lance.ScanStatistics] = []
    expression: pc.Expression = pc.field("id") > 3
    table: pa.Table = dataset.to_table()
    table = dataset.to_table(["id"], "id > 3", 5, 1, with_row_id=True, with_row_address=True, progress=reported)
    table = dataset.to_table(
        {"twice": "id * 2"},
        expression,
        order_by=[lance.ColumnOrdering("id", ascending=False, nulls_first=True)],
        scan_stats_callback=seen.append,
        late_materialization=["name"],
        use_stats=False,
    )
    ordering: lance.ColumnOrdering = lance.ColumnOrdering("id")
    parts: tuple[str, bool, bool] = ordering.column_name, ordering.ascending, ordering.nulls_first
    assert parts == ("id", True, False)
    allowed: bytes = serialize_row_addrs([0, 1, 2])
    table = dataset.to_table(row_addr_allowlist=allowed, row_addr_blocklist=serialize_row_addrs(np.array([1])))
    statistics: lance.ScanStatistics = seen[0]
    totals: int = statistics.iops + statistics.requests + statistics.bytes_read
    nothing: int = statistics.indices_loaded + statistics.parts_loaded + statistics.index_comparisons
    nothing += statistics.index_cache_hits + statistics.index_cache_misses
    details: list[Mapping[str, int]] = [statistics.all_counts, statistics.all_times]
    assert totals >= 0 and nothing == 0 and details
    batches: Iterator[pa.RecordBatch] = dataset.to_batches(
        batch_size=8, strict_batch_size=True, io_buffer_size=1 << 20, memory_limit=1 << 25
    )
    first: pa.RecordBatch = next(batches)
    frame: pd.DataFrame = dataset.to_pandas(["id"], limit=3, blob_mode="lazy")
    rows: int = dataset.count_rows("id > 3") + dataset.count_rows()
    table = dataset.head(3, columns=["id"])
    table = dataset.take([3, 1], columns=["id"])
    table = dataset.take(pa.array([3, 1]))
    table = dataset.slice(2, 5)
    table = dataset.sample(3, ["id"], randomize_order=False)
    assert first.num_rows == 8 and len(frame) == 3 and rows and table.num_rows == 3

    scanner: lance.LanceScanner = dataset.scanner(
        fragments=dataset.get_fragments(), blob_handling="all_binary", include_deleted_rows=True, with_row_id=True
    )
    scan(scanner)
    build(dataset)
    query(dataset)
    stream: object = dataset.__arrow_c_stream__()
    assert stream is not None


def reported(done: int, total: int) -> None:
    assert done <= total


def scan(scanner: lance.LanceScanner) -> None:
    table: pa.Table = scanner.to_table(progress=None)
    table = scanner.head(2)
    batches: Iterator[pa.RecordBatch] = scanner.to_batches()
    batch: pa.RecordBatch = next(batches)
    reader: pa.RecordBatchReader = scanner.to_reader()
    table = reader.read_all()
    frame: pd.DataFrame = scanner.to_pandas(blob_mode="bytes")
    rows: int = scanner.count_rows()
    schemas: list[pa.Schema] = [scanner.projected_schema, scanner.dataset_schema, scanner.schema]
    plans: list[PlanText] = [
        scanner.explain_plan(verbose=True),
        scanner.analyze_plan(),
        scanner.analyze_plan(count_rows=True),
    ]
    picture: str = plans[0].to_svg()
    assert picture.startswith("<svg")
    assert table.num_rows == rows and batch.num_rows and len(frame) == rows and schemas and all(plans)


def build(dataset: lance.LanceDataset) -> None:
    builder: lance.ScannerBuilder = lance.ScannerBuilder(dataset, {"limit": 3}).apply_defaults({"offset": 1})
    builder = builder.columns(["id", "name"]).filter("id >= 0").limit(10).offset(0)
    builder = builder.batch_size(4).batch_size_bytes(1 << 20).strict_batch_size(True)
    builder = builder.order_by([lance.ColumnOrdering("id"), "name"]).with_row_id().with_row_address()
    builder = builder.with_fragments(dataset.get_fragments()).include_deleted_rows(False)
    builder = builder.row_addr_prefilter(serialize_row_addrs(range(10)), None)
    builder = builder.scan_stats_callback(ignored).blob_handling("blobs_descriptions")
    builder = builder.batch_readahead(2).fragment_readahead(2).io_buffer_size(1 << 20).late_materialization(True)
    with lance.limited_memory(1 << 30):
        builder = builder.memory_limit(1 << 25)
    builder = builder.scan_in_order(True).use_scalar_index(True).use_stats(True)
    builder = builder.prefilter(False).fast_search(False).disable_scoring_autoprojection(False)
    builder = builder.on_index_error("raise")
    scanner: lance.LanceScanner = builder.to_scanner()
    assert scanner.count_rows() == 10 or scanner.to_table().num_rows == 10
    ranged: pa.Table = lance.ScannerBuilder(dataset).row_range(0, 2).to_scanner().to_table()
    assert ranged.num_rows == 4


def ignored(statistics: lance.ScanStatistics) -> None:
    assert statistics.iops >= 0


def query(dataset: lance.LanceDataset) -> None:
    builder: SqlQueryBuilder = dataset.sql("SELECT id FROM rows WHERE id < 3").table_name("rows")
    builder = builder.with_row_id(False).with_row_addr(False).batch_size(8).batch_size_bytes(1 << 20)
    built: SqlQuery = builder.blob_handling("all_binary").read_only().build()
    batches: list[pa.RecordBatch] = built.to_batch_records()
    reader: pa.RecordBatchReader = built.to_stream_reader()
    assert sum(batch.num_rows for batch in batches) == reader.read_all().num_rows == 3


# -- changing ----------------------------------------------------------------------------------------------------------


@batch_udf(output_schema=pa.schema([pa.field("third", pa.int64())]))
def third(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"third": pc.multiply(batch.column("id"), 3)})


def change(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.write_dataset(people(), folder / "changed", max_rows_per_file=20)
    dataset.insert(people().slice(0, 2), mode="append")
    deleted: DeleteResult = dataset.delete("id = 1", conflict_retries=3, retry_timeout=dt.timedelta(seconds=5))
    updated: UpdateResult = dataset.update({"name": "'other'"}, where="id = 2", data_storage_version=None)
    rows: list[int] = [deleted["num_deleted_rows"], updated["num_rows_updated"]]
    dataset.add_columns({"twice": "id * 2"})
    dataset.add_columns(third, read_columns=["id"], batch_size=16)
    dataset.add_columns(pa.field("empty", pa.utf8()))
    dataset.add_columns([pa.field("a", pa.utf8()), pa.field("b", pa.utf8())])
    dataset.add_columns(pa.schema([pa.field("c", pa.utf8())]))
    alteration: AlterColumn = {"path": "a", "name": "d", "nullable": True, "data_type": pa.large_utf8()}
    dataset.alter_columns(alteration, {"path": "b", "name": "e"})
    dataset.drop_columns(["c", "d", "e"])
    dataset.merge(pa.table({"id": [3], "more": ["x"]}), "id")
    dataset.merge(pa.table({"key": [3], "evenmore": ["x"]}), left_on="id", right_on="key")
    transform: dict[str, str] | BatchUDF | pa.RecordBatchReader = normalize_transform({"x": "id"}, dataset)
    assert rows == [2, 1] and isinstance(transform, dict)
    merge_rows(dataset)
    dataset.truncate_table()
    lance.LanceDataset.drop(folder / "changed", ignore_not_found=True)


def merge_rows(dataset: lance.LanceDataset) -> None:
    source: pa.Table = pa.table({"id": pa.array([3, 1000], pa.int64()), "name": ["new", "newer"]})
    builder: lance.MergeInsertBuilder = dataset.merge_insert("id")
    builder = builder.when_matched_update_all("target.id > 0").when_not_matched_insert_all()
    builder = builder.when_not_matched_by_source_delete("id > 2000").write_mode("auto").use_index(True)
    builder = builder.conflict_retries(2).retry_timeout(dt.timedelta(seconds=5)).data_storage_version("2.2")
    builder = builder.mark_sstables_as_compacted([])
    plan: str = builder.explain_plan(source.schema, verbose=True) + builder.analyze_plan(source)
    plan += builder.analyze_plan_batches(source)
    prepared: tuple[lance.Transaction, ExecuteResult] = builder.execute_uncommitted(source)
    prepared = builder.execute_uncommitted_batches(source)
    result: ExecuteResult = builder.execute(source)
    counts: list[int] = [result["num_inserted_rows"], result["num_updated_rows"], result["num_deleted_rows"]]
    result = builder.execute_batches(source)
    assert plan and prepared[1]["num_inserted_rows"] == 1 and counts == [1, 1, 0] and result
    deleting: lance.MergeInsertBuilder = lance.MergeInsertBuilder(dataset, ["id"]).when_matched_delete()
    deleting.execute(source.to_pandas())
    with contextlib.suppress(errors.InvalidInputError):
        dataset.merge_insert("id").when_matched_fail().execute(
            iter(source.to_batches()), schema=source.schema, memory_limit=1 << 28
        )


def transform_columns(folder: Path) -> None:
    def added(batch: pa.RecordBatch) -> pd.DataFrame:
        return pa.table({"one": pc.add(batch.column("id"), 1)}).to_pandas()

    decorator: Callable[[Callable[[pa.RecordBatch], pa.RecordBatch | pd.DataFrame]], BatchUDF] = batch_udf()
    made: BatchUDF = decorator(added)
    udf: BatchUDF = BatchUDF(added, pa.schema([pa.field("one", pa.int64())]), folder / "checkpoint.db")
    batch: pa.RecordBatch = people().to_batches()[0]
    result: pa.RecordBatch = udf.result(batch)
    plain: pa.RecordBatch | pa.Table | pd.DataFrame = made(batch)
    schema: pa.Schema | None = udf.output_schema
    cache: BatchUDFCheckpoint | None = udf.cache
    checkpoint: BatchUDFCheckpoint = BatchUDFCheckpoint(folder / "other.db")
    place: BatchUDFCheckpoint.BatchInfo = BatchUDFCheckpoint.BatchInfo(fragment_id=0, batch_index=1, source="")
    checkpoint.insert_batch(place, batch)
    found: pa.RecordBatch | None = checkpoint.get_batch(place)
    checkpoint.insert_fragment(place.fragment_id, "{}")
    text: str | None = checkpoint.get_fragment(0)
    checkpoint.cleanup()
    assert result.num_rows == ROWS and len(plain) == ROWS and schema is not None and cache is not None
    assert found is not None and text == "{}" and place.batch_index == 1 and place.source == ""


# -- settings, references, history -------------------------------------------------------------------------------------


def settings(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.write_dataset(
        people(), folder / "settings", initial_bases=[lance.DatasetBasePath(str(folder / "base"), "base")]
    )
    config: dict[str, str] = dataset.update_config({"a": "1", "b": None}, replace=False)
    metadata: dict[str, str] = dataset.update_metadata({"c": "2"})
    of_schema: dict[str, str] = dataset.update_schema_metadata({"d": "3"}, replace=True)
    dataset.update_field_metadata({"id": {"e": "4", "f": None}})
    dataset.delete_config_keys(["a"])
    assert config["a"] == "1" and metadata["c"] == "2" and of_schema["d"] == "3"
    bases: dict[int, lance.DatasetBasePath] = dataset.base_paths()
    base: lance.DatasetBasePath = bases[1]
    parts: tuple[str, str | None, bool, int | None] = (base.path, base.name, base.is_dataset_root, base.id)
    same: lance.LanceDataset = dataset.add_bases([lance.DatasetBasePath(str(folder / "more"))], {"by": "a sample"})
    assert parts[1] == "base" and same is dataset
    lance.write_dataset(people(), dataset, mode="append", target_bases=["base"])
    everywhere: lance.LanceDataset = lance.write_dataset(people(), dataset, mode="append", target_all_bases=True)
    everywhere.merge_insert("id").when_not_matched_insert_all().target_bases(["base"]).execute(people().slice(0, 1))
    everywhere.merge_insert("id").when_not_matched_insert_all().target_all_bases().execute(people().slice(0, 1))
    lance_fields(everywhere)


def lance_fields(dataset: lance.LanceDataset) -> None:
    schema: LanceSchema = LanceSchema.from_pyarrow(dataset.schema)
    arrow: pa.Schema = schema.to_pyarrow()
    fields: list[LanceField] = schema.fields()
    field: LanceField | None = schema.field("id")
    field = schema.field_case_insensitive("ID")
    keys: list[LanceField] = schema.unenforced_primary_key() + schema.unenforced_clustering_key()
    assert field is not None and arrow.names and not keys
    name: str = field.name()
    number: int = field.id()
    children: list[LanceField] = fields[0].children()
    metadata: dict[str, str] = field.metadata
    arrow_field: pa.Field = field.to_arrow()
    flags: list[bool] = [field.is_unenforced_primary_key(), field.is_unenforced_clustering_key()]
    places: list[int | None] = [field.unenforced_primary_key_position(), field.unenforced_clustering_key_position()]
    assert name == arrow_field.name and number >= 0 and not children and not any(flags) and places
    assert metadata == {"e": "4"}


def references(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.write_dataset(people(), folder / "references")
    tags: Tags = dataset.tags
    tags.check_name("first")
    tags.create("first", 1)
    tags.create("newest", (None, None))
    tags.update("first", "newest")
    tags.replace_metadata("first", {"a": "b"})
    number: int = tags.get_version("first")
    known: dict[str, Tag] = tags.list()
    ordered: list[tuple[str, Tag]] = tags.list_ordered("asc")
    tag: Tag = known["first"]
    made: tuple[dt.datetime | None, dt.datetime | None] = tag["created_at"], tag["updated_at"]
    values: tuple[str | None, int, int, dict[str, str]] = (
        tag["branch"],
        tag["version"],
        tag["manifest_size"],
        tag["metadata"],
    )
    tags.delete("newest")
    assert number == 1 and len(ordered) == 2 and made[0] is not None and values[1] == 1

    opened: lance.LanceDataset = dataset.create_branch("dev/one", "first", storage_options={})
    branches: Branches = dataset.branches
    branches.check_name("dev/two")
    branches.replace_metadata("dev/one", {"a": "b"})
    listed: dict[str, Branch] = branches.list()
    in_order: list[tuple[str, Branch]] = branches.list_ordered("desc")
    branch: Branch = listed["dev/one"]
    parent: tuple[str | None, int, list[tuple[int, str]]] = (
        branch["parent_branch"],
        branch["parent_version"],
        branch["branch_identifier"],
    )
    others: tuple[int, int, dict[str, str]] = branch["create_at"], branch["manifest_size"], branch["metadata"]
    assert opened.branch == "dev/one" and in_order[0][1] == branch and parent[1] == 1 and others[0] > 0
    branches.delete("dev/one")
    shallow: lance.LanceDataset = dataset.shallow_clone(folder / "shallow", 1)
    deep: lance.LanceDataset = dataset.deep_clone(str(folder / "deep"), "first", storage_options={})
    assert shallow.count_rows() == deep.count_rows() == ROWS


def history(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.write_dataset(people(), folder / "history", enable_stable_row_ids=True)
    dataset.delete("id = 0")
    transaction: lance.Transaction | None = dataset.read_transaction(1)
    transactions: list[lance.Transaction | None] = dataset.get_transactions(recent_transactions=5)
    assert transaction is not None and len(transactions) == 2
    read_version: int = transaction.read_version
    operation: lance.LanceOperation.BaseOperation = transaction.operation
    unique: str = transaction.uuid
    properties: dict[str, str] | None = transaction.transaction_properties
    assert read_version == 0 and isinstance(operation, lance.LanceOperation.Overwrite) and unique and properties == {}
    delta: DatasetDelta = dataset.delta(compared_against=1)
    delta = dataset.delta(begin_version=1, end_version=2)
    known: list[lance.Transaction] = delta.list_transactions()
    readers: list[pa.RecordBatchReader] = [
        delta.get_inserted_rows(),
        delta.get_updated_rows(),
        delta.get_deleted_row_ids(),
    ]
    counts: tuple[int, int, int] = (delta.counts().inserted, delta.counts().updated, delta.counts().deleted)
    assert known and len(readers) == 3 and counts == (0, 0, 1)
    texts: list[str] = [format_schema(dataset), format_manifest(dataset), *list_transactions(dataset, 2)]
    texts.append(format_fragment(dataset.get_fragments()[0], dataset))
    texts.append(format_fragment(dataset.get_fragments()[0].metadata, dataset))
    assert all(texts)


INDEXED = Path(__file__).parents[1] / "fixtures" / "indices" / "pylance-1.0.0"

# -- maintenance -------------------------------------------------------------------------------------------------------


def maintain(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.write_dataset(people(), folder / "maintained", max_rows_per_file=10)
    optimizer: DatasetOptimizer = dataset.optimize
    optimizer.enable_auto_cleanup({"interval": 10, "older_than_seconds": 3600})
    optimizer.disable_auto_cleanup()
    options: CompactionOptions = {
        "target_rows_per_fragment": 20,
        "compaction_mode": "reencode",
        "materialize_deletions": True,
        "materialize_deletions_threshold": 0.2,
        "defer_index_remap": False,
        "binary_copy_read_batch_bytes": 1 << 20,
        "max_source_fragments": 100,
        "max_source_rows": 1000,
        "max_source_bytes": 1 << 30,
        "excluded_fragment_ids": [100],
    }
    plan: CompactionPlan = Compaction.plan(dataset, options)
    plan = CompactionPlan.from_json(plan.json())
    tasks: list[CompactionTask] = plan.tasks
    assert plan.num_tasks() == len(tasks) == 2 and plan.read_version == dataset.version
    task: CompactionTask = CompactionTask.from_json(tasks[0].json())
    old: list[FragmentMetadata] = task.fragments
    result: RewriteResult = task.execute(dataset)
    result = RewriteResult.from_json(result.json())
    planned: CompactionMetrics = result.metrics
    replaced: list[FragmentMetadata] = result.original_fragments + result.new_fragments
    assert task.read_version == result.read_version and len(old) == 2 and len(replaced) == 3
    done: CompactionMetrics = Compaction.commit(dataset, [result], options)
    done = Compaction.execute(dataset, options)
    done = dataset.optimize.compact_files(
        target_rows_per_fragment=100, num_threads=1, compaction_mode="try_binary_copy"
    )
    numbers: list[int] = [done.fragments_removed, done.fragments_added, done.files_removed, done.files_added]
    assert planned == CompactionMetrics(2, 1, 2, 1) and numbers == [2, 1, 2, 1]

    statistics: LanceStats = dataset.stats
    counts: DatasetStats = statistics.dataset_stats(max_rows_per_group=1024)
    small: list[int] = [counts["num_deleted_rows"], counts["num_fragments"], counts["num_small_files"]]
    sizes: lance.DataStatistics = statistics.data_stats()
    fields: list[lance.FieldStatistics] = sizes.fields
    size: int = fields[0].id + fields[0].bytes_on_disk
    assert small == [0, 1, 1] and size > 0

    files: pa.RecordBatchReader = dataset.all_files()
    tracked: pa.RecordBatchReader = dataset.tracked_files(min_version=2, progress=counted)
    assert files.read_all().num_rows and tracked.read_all().num_rows
    explained: lance.CleanupExplanation = dataset.explain_cleanup_old_versions(retain_versions=1, include_files=True)
    candidates: list[lance.CleanupCandidateFile] = explained.candidate_files
    candidate: tuple[str, str, bool, int] = (
        candidates[0].path,
        candidates[0].kind,
        candidates[0].unverified,
        candidates[0].size_bytes,
    )
    limited: tuple[bool, int] = explained.candidate_files_truncated, explained.candidate_file_limit
    branches: list[lance.CleanupReferencedBranch] = explained.referenced_branches
    texts: list[str] = explained.warnings
    branch: lance.CleanupReferencedBranch = lance.CleanupReferencedBranch("dev", 1)
    named: tuple[str, int, bool] = branch.name, branch.referenced_version, branch.cleanup_candidate
    assert candidate and limited == (False, 1000) and not branches and not texts and named == ("dev", 1, False)
    assert explained.read_version == dataset.version
    expected: lance.CleanupStats = explained.stats
    removed: lance.CleanupStats = dataset.cleanup_old_versions(
        older_than=dt.timedelta(0), error_if_tagged_old_versions=False, delete_rate_limit=1000, delete_concurrency=2
    )
    totals: list[int] = [removed.bytes_removed, removed.old_versions, removed.data_files_removed]
    totals += [removed.transaction_files_removed, removed.index_files_removed, removed.deletion_files_removed]
    assert all(number >= 0 for number in totals) and removed.failed_deletes == 0
    assert expected.old_versions == removed.old_versions


def indexed(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.dataset(shutil.copytree(INDEXED, folder / "indexed"))
    has: bool = dataset.has_index
    listed: list[IndexInformation] = dataset.list_indices()
    entry: IndexInformation = listed[0]
    texts: list[str] = [entry["name"], entry["type"], entry["uuid"], *entry["fields"]]
    covered: set[int] = entry["fragment_ids"]
    place: tuple[int, int | None] = entry["version"], entry["base_id"]
    index: IndexDescription = dataset.describe_indices()[0]
    texts += [index.name, index.index_type, index.type_url, *index.field_names, *index.details]
    numbers: list[int] = [index.num_rows_indexed, *index.fields]
    segment: IndexSegmentDescription = index.segments[0]
    sizes: list[int | None] = [index.total_size_bytes, segment.size_bytes, segment.base_id]
    created: dt.datetime | None = segment.created_at
    numbers += [segment.dataset_version_at_last_update, segment.index_version, *segment.covering_fields]
    assert has and covered == segment.fragment_ids and segment.uuid == entry["uuid"] and created and place[0] and sizes
    statistics: dict[str, Any] = dataset.stats.index_stats(index.name)
    assert statistics == dataset.index_statistics(index.name)
    with contextlib.suppress(errors.IndexNotFoundError):
        dataset.drop_index("nothing")
    dataset.drop_index(index.name)
    config = IndexConfig("btree", {"zone_size": 100})
    parameters: tuple[str, dict[str, Any]] = config.index_type, config.parameters
    told: list[lance.IndexProgress] = []
    dataset.create_scalar_index(
        "n", config, progress_callback=told.append, document_granularity=DocumentGranularity.ROW
    )
    counts: tuple[str, str, int | None, int | None, str, float | None] = (
        *(told[0].event, told[0].stage),
        *(told[0].completed, told[0].total),
        *(told[0].unit, told[0].fraction),
    )
    assert counts[0] and parameters[0]
    part: lance.Index = dataset.create_index_uncommitted("s", "BITMAP", name="parts", fragment_ids=[0])
    identity: IndexSegment = part.segment
    assert (identity.uuid, identity.fragment_ids, identity.index_version) == (
        part.uuid,
        frozenset({0}),
        part.index_version,
    )
    whole: lance.Index = dataset.merge_existing_index_segments([part])
    dataset = dataset.commit_existing_index_segments("parts", "s", [whole])
    dataset = dataset.commit_index_segments_together({"parts": [whole]})
    with contextlib.suppress(errors.InvalidInputError):
        part = dataset.extend_index_uncommitted("parts", [0], memory_limit=1 << 30)
    dataset.prewarm_index("parts")
    with contextlib.suppress(ValueError):
        dataset.merge_index_metadata(part.uuid, "BTREE")
    dataset.optimize.optimize_indices(
        num_indices_to_merge=1, index_names=["n_idx"], retrain=False, memory_limit=1 << 30
    )
    with contextlib.suppress(errors.InvalidIndexError):
        dataset.create_scalar_index("n", "BTREE", replace=False)
    with contextlib.suppress(errors.IndexedFieldNotFoundError):
        dataset.create_scalar_index("nothing", "BTREE")


def search_vectors(folder: Path) -> None:
    kind = pa.list_(pa.float32(), 2)
    dataset: lance.LanceDataset = lance.write_dataset(pa.table({"v": pa.array([[1, 2], [3, 4]], kind)}), folder / "v")
    same: lance.LanceDataset = dataset.create_index("v", "IVF_FLAT", metric="l2", num_partitions=1, max_iters=5)
    recall: float = same.measure_recall("v", k=1, nprobes=1)
    segment: str = same.list_indices()[0]["uuid"]
    chosen: lance.ScannerBuilder = lance.ScannerBuilder(same).nearest("v", [1.0, 2.0]).with_index_segments([segment])
    assert recall == 1.0 and chosen.to_scanner().count_rows() == 2
    found: pa.Table = dataset.to_table(nearest={"column": "v", "q": [1.0, 2.0], "k": 1}, prefilter=True)
    builder: lance.ScannerBuilder = lance.ScannerBuilder(dataset).nearest(
        "v",
        [1.0, 2.0],
        k=1,
        metric="l2",
        nprobes=1,
        minimum_nprobes=None,
        maximum_nprobes=None,
        refine_factor=None,
        use_index=True,
        ef=None,
        query_parallelism=None,
        approx_mode="normal",
        distance_range=(None, 5.0),
        search_effort=None,
        recall=None,
    )
    again: pa.Table = builder.to_scanner().to_table()
    assert found == again


def search_texts(folder: Path) -> None:
    texts = [f"to be or not to be that is question {number}" for number in range(20)]
    dataset: lance.LanceDataset = lance.write_dataset(pa.table({"t": texts}), folder / "texts")
    dataset.create_scalar_index("t", "MINHASHLSH")
    query: MinHashQuery = MinHashQuery(text="to be or not to be that is question 3", column="t")
    asked: tuple[str, str] = query.text, query.column
    found: pa.Table = dataset.to_table(nearest=query, limit=2, fast_search=True, prefilter=True)
    again: pa.Table = lance.ScannerBuilder(dataset).minhash_search(query).limit(2).to_scanner().to_table()
    tokens: list[lance.FtsToken] = lance.tokenize("the Cats", stem=True, max_token_length=None)
    first: tuple[str, int] = tokens[0].text, tokens[0].position
    assert found == again and first == ("cat", 0) and asked[1] == "t"


def search_both(folder: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(12), pa.float32()), 2)
    texts = pa.array(["apple pie", "pear tart", "plum"] * 2)
    dataset: lance.LanceDataset = lance.write_dataset(pa.table({"t": texts, "v": vectors}), folder / "both")
    form: Highlight = Highlight(before="[", after="]", length=40, snippets=2, escape=True, columns=["t"])
    said: tuple[object, ...] = form.before, form.after, form.length, form.snippets, form.escape, form.columns
    found: pa.Table = dataset.search(
        MatchQuery("apple", "t"),
        {"q": [1.0, 2.0], "metric": "l2"},
        ["t"],
        filter="t <> 'plum'",
        k=2,
        text_columns=None,
        vector_column="v",
        fusion="weighted",
        weights=(0.5, 1.0),
        rrf_k=60,
        candidates=4,
        highlight=form,
        explain_score=True,
        fast_search=False,
        with_row_id=True,
        with_row_address=True,
    )
    counts: dict[str, pa.Table] = dataset.facets(
        "apple pear", ["t"], filter="true", text_columns=["t"], most=3, fast_search=False
    )
    near: VectorSearchQuery = VectorSearchQuery(
        "v",
        [1.0, 2.0],
        k=2,
        metric="l2",
        nprobes=None,
        minimum_nprobes=None,
        maximum_nprobes=None,
        refine_factor=None,
        use_index=True,
        ef=None,
        query_parallelism=None,
        approx_mode="normal",
        search_effort=None,
    )
    apples: dict[str, object] = {"query": "apple", "columns": ["t"]}
    kept: pa.Table = dataset.to_table(full_text_query=apples, filter=near)
    both: dict[str, object] = {"search_filter": near, "expr_filter": "true"}
    again: pa.Table = (
        lance.ScannerBuilder(dataset).full_text_search("apple", ["t"]).filter(both).to_scanner().to_table()
    )
    assert found.num_rows == 2 and counts["t"].num_rows == 2 and said[0] == "[" and kept == again and repr(near)


def search_words(folder: Path) -> None:
    texts = [f"{word} tree number {number}" for number, word in enumerate(["apple", "pear", "plum"] * 4)]
    dataset: lance.LanceDataset = lance.write_dataset(pa.table({"t": texts, "u": texts}), folder / "words")
    dataset.create_scalar_index("t", "INVERTED", with_position=True)
    granularity: DocumentGranularity = DocumentGranularity.ROW
    operator: FullTextOperator = FullTextOperator.AND
    match = MatchQuery("apple tree", "t", boost=2.0, operator=operator, document_granularity=granularity)
    fuzzy = MatchQuery("appl", "t", fuzziness=1, max_expansions=10, prefix_length=1)
    phrase = PhraseQuery("apple tree", "t", slop=0, document_granularity=None)
    several = MultiMatchQuery("plum", ["t", "u"], boosts=[1.0, 2.0], operator=operator)
    joined = CombinedFieldsQuery("plum", ["t", "u"], boosts=None, operator=FullTextOperator.OR)
    demoted = BoostQuery(positive=match, negative=several, negative_boost=0.2)
    every: list[FullTextQuery] = [match, fuzzy, phrase, several, demoted, match & fuzzy, match | phrase]
    every.append(BooleanQuery([(Occur.MUST, match), (Occur.SHOULD, phrase), (Occur.MUST_NOT, several)]))
    kinds: set[FullTextQueryType] = {query.query_type() for query in [*every, joined]}
    said: tuple[object, ...] = (match.query, match.column, match.boost, match.fuzziness, match.max_expansions)
    said += (match.operator, match.prefix_length, match.document_granularity, phrase.query, phrase.column, phrase.slop)
    said += (phrase.document_granularity, several.query, several.columns, several.boosts, several.operator)
    said += (joined.query, joined.columns, joined.boosts, joined.operator, demoted.positive, demoted.negative)
    for query in every:
        scanner: lance.LanceScanner = dataset.scanner(full_text_query=query, limit=3, prefilter=True)
        found: pa.Table = scanner.to_table()
        assert found.num_rows == min(scanner.count_rows(), 3) and scanner.explain_plan(True) and scanner.head(1)
        assert scanner.dataset_schema == dataset.schema and scanner.analyze_plan() and repr(scanner)
    again: pa.Table = lance.ScannerBuilder(dataset).full_text_search("apple", columns=["t"]).to_scanner().to_table()
    part: list[tuple[Occur, FullTextQuery]] = (match & fuzzy).queries
    assert again.num_rows == 4 and len(kinds) == 6 and said[1] == "t" and demoted.negative_boost and len(part) == 2


def erase(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.write_dataset(people(), folder / "erased")
    dataset.tags.create("kept", 1)
    report: PurgeReport = dataset.purge("true", branches=["main"], delete_unverified=False)
    copies: tuple[RemainingCopy, ...] = report.remaining
    texts: list[str] = [copies[0].kind, copies[0].name, copies[0].detail, *report.indices_dropped, *report.branches]
    counts: list[int] = [report.rows_deleted, report.rows_erased, report.fragments_rewritten, report.failed_deletes]
    counts += [report.versions_removed, report.files_removed, report.bytes_removed]
    assert texts[:2] == ["tag", "kept"] and len(counts) == 7 and str(report)


def maintained(folder: Path) -> None:
    class Runner(MaintenanceRunner):
        def compact(self, dataset: object, options: Mapping[str, object]) -> None:
            raise NotImplementedError

        def refresh_indices(self, dataset: object, names: Sequence[str]) -> None:
            raise NotImplementedError

    dataset: lance.LanceDataset = lance.write_dataset(people(), folder / "kept in order")
    plan: CompactionPlan = Compaction.plan(dataset, {})
    Compaction.discard(dataset, [task.execute(dataset) for task in plan.tasks])
    report: MaintenanceReport = dataset.maintain(wait=dt.timedelta(0), progress=counted, runner=Runner())
    dry: MaintenanceReport = dataset.maintain(dry_run=True)
    steps: tuple[MaintenanceStep, ...] = report.steps
    texts: list[str | None] = [report.uri, report.branch, report.held_by, report.taken_over, report.to_json()]
    texts += [steps[0].name, steps[0].outcome, steps[0].reason, str(steps[0])]
    flags: list[bool] = [report.has_failed, report.has_changed, report.dry_run, steps[0].has_failed]
    counts: dict[str, int] = dict(steps[0].counts)
    facts: dict[str, Any] = report.to_dict()
    policy: MaintenancePolicy = MaintenancePolicy.of(dataset.config())
    flags += [not policy.compact_enabled, not policy.indices_enabled, not policy.cleanup_enabled]
    least: list[int] = [policy.compact_min_fragments, policy.indices_uncovered_rows, policy.cleanup_min_versions]
    shares: list[float | None] = [policy.compact_deleted_share, policy.indices_uncovered_share, policy.lease_seconds]
    kept: tuple[dt.timedelta | None, int | None] = policy.cleanup_older_than, policy.cleanup_retain_versions
    assert not any(flags) and texts[1] == "main" and not counts and facts["seconds"] == report.seconds
    assert dry.dry_run and policy == MaintenancePolicy() and report.version == report.read_version
    assert least == [16, 100_000, 1] and shares == [None, 0.05, 60.0] and kept == (None, None)


def counted(done: int, total: int | None) -> None:
    assert total is None or done <= total


# -- fragments and commits ---------------------------------------------------------------------------------------------


def fragments_of(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.write_dataset(people(), folder / "fragments", max_rows_per_file=20)
    dataset.delete("id = 0")
    fragment: LanceFragment = LanceFragment(dataset, 0)
    fragment = LanceFragment(dataset, None, fragment=fragment)
    number: int = fragment.fragment_id
    metadata: FragmentMetadata = fragment.metadata
    schemas: list[pa.Schema] = [fragment.schema, fragment.physical_schema]
    counts: list[int] = [fragment.physical_rows, fragment.num_deletions, fragment.count_rows("id > 3")]
    files: list[DataFile] = fragment.data_files()
    deletions: str | None = fragment.deletion_file()
    assert number == 0 and schemas and counts == [20, 1, 16] and files and deletions is not None
    scanner: lance.LanceScanner = fragment.scanner(["id"], "id > 1", row_range=(0, 10), batch_size=4)
    table: pa.Table = fragment.to_table(["id"], limit=2, with_row_id=True)
    batches: Iterator[pa.RecordBatch] = fragment.to_batches(batch_size=4, strict_batch_size=True)
    frame: pd.DataFrame = fragment.to_pandas(columns={"double": "id * 2"}, blob_mode="descriptions")
    table = fragment.head(2)
    table = fragment.take([0, 1], columns=["id"])
    session: FragmentSession = fragment.open_session(["id"], with_row_address=True)
    table = session.take([0, 2])
    itself: list[LanceFragment] = fragment.get_fragments()
    report: EncodingReport = dataset.explain_encodings()
    report = fragment.explain_encodings(["id"], deep=True)
    axes: Axes = report.plot()
    history: VersionHistory = dataset.history(limit=3)
    entry: VersionEntry = history[-1]
    assert entry.message is None and 1 <= len(history) <= 3 and history.plot(axes) is axes
    with dataset.view(port=0) as page:
        url: str = page.url
    assert url
    fragment.validate()
    assert scanner.count_rows() and table.num_rows == 2 and next(batches).num_rows == 4 and len(frame) == 19
    assert len(itself) == 1 and len(report) == 1
    records(metadata)
    change_fragment(dataset, fragment)


def records(metadata: FragmentMetadata) -> None:
    number: int = metadata.id
    counts: list[int] = [metadata.physical_rows, metadata.num_deletions, metadata.num_rows]
    files: list[DataFile] = metadata.files
    text: str = json.dumps(metadata.to_json())
    again: FragmentMetadata = FragmentMetadata.from_json(text)
    ids: RowIdMeta | None = metadata.row_id_meta
    lineage: list[RowDatasetVersionMeta | None] = [
        metadata.created_at_version_meta,
        metadata.last_updated_at_version_meta,
    ]
    overlays: list[object] = list(metadata.overlays)
    assert again == metadata and number == 0 and all(counts) and ids is None and not any(lineage) and not overlays
    data: DataFile = files[0]
    columns: tuple[list[int], list[int], list[int]] = data.fields, data.column_indices, data.field_ids()
    version: tuple[int, int] = data.file_major_version, data.file_minor_version
    size: int | None = data.file_size_bytes
    base: int | None = data.base_id
    assert data.path and columns[0] == columns[2] and version == (2, 2) and size and base is None
    deletion: DeletionFile | None = metadata.deletion_file
    assert deletion is not None
    deletion = DeletionFile.from_json(deletion.json())
    path: str = deletion.path(number, "/data")
    values: Mapping[str, int | str | None] = deletion.asdict()
    parts: tuple[int, int, str, int, int | None] = (
        deletion.read_version,
        deletion.id,
        deletion.file_type,
        deletion.num_deleted_rows,
        deletion.base_id,
    )
    assert path.startswith("/data") and values["file_type"] == parts[2]
    row_ids: RowIdMeta = RowIdMeta.from_json('{"Inline":[1,2]}')
    row_ids = RowIdMeta.from_dict(row_ids.asdict())
    versions: RowDatasetVersionMeta = RowDatasetVersionMeta.from_json('{"inline":[1,2]}')
    texts: list[str] = [row_ids.json(), versions.json()]
    assert texts[0] == '{"Inline":[1,2]}' and versions.asdict() == {"inline": [1, 2]}


def change_fragment(dataset: lance.LanceDataset, fragment: LanceFragment) -> None:
    left: FragmentMetadata | None = fragment.delete("id = 5")
    left = fragment.delete_rows([1, 2])
    merged: tuple[FragmentMetadata, LanceSchema] = fragment.merge(pa.table({"id": [3], "x": [1]}), "id")
    merged = fragment.merge_columns({"y": "id + 1"}, ["id"], batch_size=8)
    assert left is not None and merged[1].field("y") is not None
    values: pa.Table = pa.table({"id": pa.array([3], pa.int64()), "name": ["x"]})
    rewritten: tuple[FragmentMetadata, list[int]] = fragment.update_columns(values, "id")
    offsets: tuple[FragmentMetadata, list[int], bytes] = fragment.update_columns(values, "id", with_offsets=True)
    operation = lance.LanceOperation.Update(
        updated_fragments=[offsets[0]],
        fields_modified=offsets[1],
        update_mode="rewrite_columns",
        updated_fragment_offsets={fragment.fragment_id: offsets[2]},
    )
    committed: lance.LanceDataset = lance.LanceDataset.commit(dataset, operation, dataset.version)
    assert rewritten[1] == offsets[1] and committed.count_rows("name = 'x'") == 1


def commit(folder: Path) -> None:
    path: Path = folder / "committed"
    written: list[FragmentMetadata] = write_fragments(people(), path)
    overwrite: lance.LanceOperation.Overwrite = lance.LanceOperation.Overwrite(people().schema, written)
    dataset: lance.LanceDataset = lance.LanceDataset.commit(path, overwrite, commit_message="made", max_retries=3)
    transaction: lance.Transaction = write_fragments(people(), dataset, return_transaction=True)
    transaction.transaction_properties = {LANCE_COMMIT_MESSAGE_KEY: "appended"}
    both: BulkCommitResult = lance.LanceDataset.commit_batch(
        dataset, [transaction, write_fragments(people(), dataset, mode="append", return_transaction=True)]
    )
    dataset = both["dataset"]
    merged: lance.Transaction = both["merged"]
    assert isinstance(merged.operation, lance.LanceOperation.Append) and dataset.count_rows() == 3 * ROWS
    created: FragmentMetadata = LanceFragment.create(path, people(), fragment_id=7, mode="append")
    dropped: list[FragmentMetadata] = lance.write_fragments(people(), path)
    remove_uncommitted(dropped, path)
    dataset = lance.LanceDataset.commit(path, lance.LanceOperation.Append([created]), read_version=dataset.version)
    name: str = dataset.get_fragments()[0].data_files()[0].path
    described: DataFile = DataFile.create(dataset, name)
    from_file: FragmentMetadata = LanceFragment.create_from_file(name, dataset, 9)
    assert described.fields == from_file.files[0].fields
    conflict(dataset)
    operations(written, described, dataset)


def conflict(dataset: lance.LanceDataset) -> None:
    problem = errors.IndexProblem("key_idx", "BTree", None, "is wrong about 1 rows", 1, "ds.drop_index('key_idx')")
    damaged = errors.DamagedIndexError(str(problem), [problem])
    found: list[tuple[str, str, str | None, str, int | None, str]] = [
        (each.index, each.kind, each.segment, each.what, each.num_rows, each.remedy) for each in damaged.problems
    ]
    assert found
    error = CommitConflictError("an example", retryable=True)
    kinds: tuple[lance.LanceError, OSError, bool] = error, error, error.retryable
    assert kinds[2]
    restored: lance.LanceDataset = lance.LanceDataset.commit(dataset, lance.LanceOperation.Restore(1), detached=True)
    assert restored.count_rows() == ROWS


def operations(fragments: list[FragmentMetadata], new_file: DataFile, dataset: lance.LanceDataset) -> None:
    """Make all operations, including those that are only records of other writers' changes."""
    schema: LanceSchema = dataset.lance_schema
    index: lance.Index = lance.Index("0" * 32, "i", [0], 1, {0}, 0, files=[lance.IndexFile("a.lance", 10)])
    known: tuple[str, str, list[int], int, set[int] | None, int] = (
        index.uuid,
        index.name,
        index.fields,
        index.dataset_version,
        index.fragment_ids,
        index.index_version,
    )
    of_index: tuple[dt.datetime | None, int | None, tuple[str, bytes] | None, list[int]] = (
        index.created_at,
        index.base_id,
        index.index_details,
        index.covering_fields,
    )
    index_files: list[lance.IndexFile] | None = index.files
    assert index_files is not None
    index_file: tuple[str, int] = index_files[0].path, index_files[0].size_bytes
    assert known[1] == "i" and of_index[1] is None and index_file == ("a.lance", 10)

    delete = lance.LanceOperation.Delete(fragments, [1], "id = 1")
    deleted: tuple[list[FragmentMetadata], list[int], str] = (
        delete.updated_fragments,
        delete.deleted_fragment_ids,
        delete.predicate,
    )
    update = lance.LanceOperation.Update([1], fragments, fragments, [0], [0], "rewrite_rows", {0: b""})
    ids: list[list[int]] = [
        update.removed_fragment_ids,
        update.fields_modified,
        update.fields_for_preserving_frag_bitmap,
    ]
    updated: tuple[list[FragmentMetadata], list[FragmentMetadata]] = update.updated_fragments, update.new_fragments
    offsets: dict[int, bytes] | None = update.updated_fragment_offsets
    mode: str = update.update_mode
    assert deleted[2] == "id = 1" and ids[0] == [1] and updated[0] and offsets is not None and mode == "rewrite_rows"

    merge = lance.LanceOperation.Merge(fragments, schema, preserves_nullability=True)
    project = lance.LanceOperation.Project(schema)
    schemas: list[LanceSchema | pa.Schema] = [merge.schema, project.schema]
    keeps: list[bool] = [merge.preserves_nullability, project.preserves_nullability]
    group = lance.LanceOperation.RewriteGroup(fragments, fragments)
    rewritten = lance.LanceOperation.RewrittenIndex("a", "b", "type", b"", 1)
    rewrite = lance.LanceOperation.Rewrite([group], [rewritten])
    groups: list[lance.LanceOperation.RewriteGroup] = rewrite.groups
    rewritten_indices: list[lance.LanceOperation.RewrittenIndex] = rewrite.rewritten_indices
    swapped: tuple[list[FragmentMetadata], list[FragmentMetadata]] = groups[0].old_fragments, groups[0].new_fragments
    described: tuple[str, str, str, bytes, int] = (
        rewritten_indices[0].old_id,
        rewritten_indices[0].new_id,
        rewritten_indices[0].new_details_type_url,
        rewritten_indices[0].new_details_value,
        rewritten_indices[0].new_index_version,
    )
    assert all(schemas) and keeps == [True, False] and swapped[0] and described[0] == "a"

    replacement = lance.LanceOperation.DataReplacementGroup(0, new_file)
    replaced: lance.LanceOperation.DataReplacement = lance.LanceOperation.DataReplacement([replacement])
    in_place: tuple[int, DataFile] = replaced.replacements[0].fragment_id, replaced.replacements[0].new_file
    overlay = lance.LanceOperation.DataOverlayFile(new_file, [0, 1])
    overlays = lance.LanceOperation.DataOverlay([lance.LanceOperation.DataOverlayGroup(0, [overlay])])
    over: lance.LanceOperation.DataOverlayFile = overlays.groups[0].overlays[0]
    at: tuple[int, DataFile, int | None] = overlays.groups[0].fragment_id, over.data_file, over.committed_version
    assert in_place[0] == at[0] == 0 and over.offsets == [0, 1]

    values = lance.LanceOperation.UpdateMap({"a": "b", "c": None}, replace=False)
    config = lance.LanceOperation.UpdateConfig(values, values, values, {0: values})
    maps: list[lance.LanceOperation.UpdateMap | None] = [
        config.config_updates,
        config.table_metadata_updates,
        config.schema_metadata_updates,
    ]
    of_fields: dict[int, lance.LanceOperation.UpdateMap] | None = config.field_metadata_updates
    pairs: tuple[dict[str, str | None], bool] = values.updates, values.replace
    assert all(maps) and of_fields is not None and pairs[1] is False
    create = lance.LanceOperation.CreateIndex([index], [])
    indices: list[list[lance.Index]] = [create.new_indices, create.removed_indices]
    clone = lance.LanceOperation.Clone(True, None, 1, "/data", None)
    cloned: tuple[bool, str | None, int, str, str | None] = (
        clone.is_shallow,
        clone.ref_name,
        clone.ref_version,
        clone.ref_path,
        clone.branch_name,
    )
    other: str = lance.LanceOperation.Other("change").name
    kinds: list[lance.LanceOperation.BaseOperation] = [delete, update, merge, project, rewrite, replaced, overlays]
    kinds += [config, create, clone]
    assert indices[0] and cloned[0] and other == "change" and len(kinds) == 10
    overwrite = lance.LanceOperation.Overwrite(schema, fragments, initial_bases=[lance.DatasetBasePath("/base")])
    first: tuple[LanceSchema | pa.Schema, list[lance.DatasetBasePath] | None] = (
        overwrite.new_schema,
        overwrite.initial_bases,
    )
    appended: list[FragmentMetadata] = lance.LanceOperation.Append(overwrite.fragments).fragments
    number: int = lance.LanceOperation.Restore(1).version
    assert first[1] and appended and number == 1


# -- files, blobs ------------------------------------------------------------------------------------------------------


def single_file(folder: Path) -> None:
    path: Path = folder / "single.lance"
    with LanceFileWriter(
        path, people().schema, version="2.1", data_cache_bytes=1 << 20, max_page_bytes=1 << 20
    ) as writer:
        number: int = writer.add_global_buffer(b"abc")
        writer.add_schema_metadata("a", "b")
        writer.write_batch(people())
        writer.write_batch(people().to_batches()[0])
        rows: int | None = writer.close()
    aborted: LanceFileWriter = LanceFileWriter(str(folder / "aborted.lance"))
    aborted.abort()
    assert number == 1 and rows == 2 * ROWS
    reader: LanceFileReader = LanceFileReader(path, columns=["name", "id"])
    count: int = reader.num_rows()
    results: ReaderResults = reader.read_all(batch_size=16)
    results = reader.read_range(2, 10)
    results = reader.take_rows([1, 5])
    results = reader.take_rows(np.array([1, 5]))
    table: pa.Table = results.to_table()
    batches: pa.RecordBatchReader = results.to_batches()
    buffer: bytes = reader.read_global_buffer(1)
    assert count == 2 * ROWS and table.num_rows == batches.read_all().num_rows == 2 and buffer == b"abc"
    metadata: LanceFileMetadata = reader.metadata()
    numbers: list[int] = [metadata.num_rows, metadata.major_version, metadata.minor_version, metadata.num_data_bytes]
    numbers += [metadata.num_column_metadata_bytes, metadata.num_global_buffer_bytes]
    schema: pa.Schema = metadata.schema
    buffers: list[LanceBufferDescriptor] = metadata.global_buffers
    columns: list[LanceColumnMetadata] = metadata.columns
    of_column: list[LanceBufferDescriptor] = columns[0].column_buffers
    pages: list[LancePageMetadata] = columns[0].pages
    page: tuple[list[LanceBufferDescriptor], str] = pages[0].buffers, pages[0].encoding
    place: tuple[int, int] = buffers[0].position, buffers[0].size
    assert all(numbers) and schema.names and not of_column and page[0] and place[1]
    statistics: LanceFileStatistics = reader.file_statistics()
    sizes: tuple[int, int] = statistics.columns[0].num_pages, statistics.columns[0].size_bytes
    assert sizes[0] == 1 and resolve_version("stable") == stable_version() == file.stable_version()
    explain(reader)


def explain(reader: LanceFileReader) -> None:
    report: EncodingReport = reader.explain_encodings(deep=True)
    table: pa.Table = report.to_arrow()
    frame: pd.DataFrame = report.to_pandas()
    page: PageEncoding = report[0]
    some: list[PageEncoding] = list(report)
    part: EncodingReport = report.column("id")
    columns: list[ColumnEncoding] = list(report.columns)
    bytes_of: tuple[int, int | None] = report.stored_bytes, report.plain_bytes
    texts: list[str] = [page.column, page.type, page.layout, page.encoding, page.levels, page.reason, page.file]
    numbers: list[int] = [page.column_index, page.page, page.first_row, page.rows, page.values, page.stored_bytes]
    maybe: list[int | None] = [page.dictionary_entries, page.chunks, page.value_bytes, page.level_bytes]
    maybe += [page.plain_bytes, page.nulls, page.fragment_id]
    bits: tuple[int, int] | None = page.bit_widths
    ratio: float = page.bytes_per_value
    buffers: tuple[StoredBuffer, ...] = page.buffers
    buffer: tuple[str, int] = buffers[0].name, buffers[0].size
    other: list[tuple[str, int]] = [(each.name, each.size) for each in page.alternatives]
    assert table.num_rows == len(frame) == len(some) and len(part) == 1 and bytes_of[0] and texts and numbers and maybe
    assert bits is None or bits[0] <= bits[1]
    assert ratio > 0 and buffer[1] and other is not None
    column: ColumnEncoding = columns[0]
    named: tuple[str, str, tuple[tuple[str, int], ...]] = column.column, column.type, column.encodings
    of_column: tuple[int, int, int, int, int | None] = (
        column.pages,
        column.rows,
        column.values,
        column.stored_bytes,
        column.plain_bytes,
    )
    assert named[2] and of_column[0]


def blobs(folder: Path) -> None:
    schema: pa.Schema = pa.schema(
        [pa.field("id", pa.int64()), pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})]
    )
    data: pa.Table = pa.table({"id": pa.array([0, 1], pa.int64()), "blob": pa.array([b"abcdef", None])}).cast(schema)
    dataset: lance.LanceDataset = lance.write_dataset(data, folder / "blobs", data_storage_version="2.1")
    found: list[BlobFile | None] = dataset.take_blobs("blob", indices=[0, 1], buffer_size=DEFAULT_BLOB_BUFFER_SIZE)
    values: list[tuple[int, bytes | None]] = dataset.read_blobs("blob", addresses=pa.array([0, 1]), preserve_order=True)
    parts: list[tuple[int, int, bytes | None]] = dataset.read_blob_ranges("blob", [(0, 1, 2)], selector="indices")
    blob: BlobFile | None = found[0]
    assert blob is not None and found[1] is None and values[1][1] is None and parts[0][2] == b"bc"
    size: int = blob.size()
    able: list[bool] = [blob.readable(), blob.seekable(), blob.closed]
    position: int = blob.seek(2) + blob.tell()
    read: list[bytes] = [blob.read(1), blob.read1(1), blob.read_range(0, 2), *blob.read_ranges([(0, 1)])]
    target = bytearray(2)
    filled: int = blob.readinto(target)
    blob.seek(0)
    filled += blob.readinto1(target)
    rest: bytes = blob.readall()
    blob.close()
    assert size == 6 and able == [True, True, False] and position == 4 and read[0] == b"c" and filled == 4
    assert rest == b"cdef" and isinstance(blob, lance.BlobFile)


def vector_indices(folder: Path) -> None:
    rng = np.random.default_rng(1)
    table: pa.Table = vec_to_table(rng.standard_normal((600, 8)).astype(np.float32))
    dataset: lance.LanceDataset = lance.write_dataset(table, folder / "vectors")
    dataset.create_index("vector", "IVF_PQ", name="v", num_partitions=2, num_sub_vectors=4, num_bits=4)
    centroids: pa.FixedSizeListArray = dataset.centroids(index_name="v")
    model: IvfModel = dataset.get_ivf_model("v")
    reader: VectorIndexReader = VectorIndexReader(dataset, "v")
    part: pa.Table = reader.read_partition(0, with_vector=False)
    counts: tuple[int, int] = reader.num_partitions(), model.num_partitions
    assert len(centroids) == 2 and counts == (2, 2) and part.num_rows
    pairs: pa.RecordBatchReader = find_duplicate_pairs(dataset, "vector", 0.0)
    segment: str = dataset.list_indices()[0]["uuid"]
    fewer: pa.RecordBatchReader = find_duplicate_pairs_in_partition(dataset, "vector", segment, 0, 0.0)
    assert pairs.read_all().num_rows == fewer.read_all().num_rows == 0
    validate_vector_index(dataset, "vector", refine_factor=100, sample_size=2, pass_threshold=0.0)


def steps_of_indices(folder: Path) -> None:
    vectors = np.random.default_rng(2).standard_normal((300, 8)).astype(np.float32)
    dataset: lance.LanceDataset = lance.write_dataset(vec_to_table(vectors), folder / "steps-of-indices")
    cpu = torch.device("cpu")
    centroids, kmeans, codewords, models = one_pass_train_ivf_pq_on_accelerator(dataset, "vector", 2, "l2", cpu, 4)
    alone: np.ndarray[Any, Any] = train_ivf_centroids_on_accelerator(dataset, "vector", 2, "l2", cpu)[0]
    residuals: str = compute_partitions(dataset, "vector", kmeans, num_sub_vectors=4)
    again: np.ndarray[Any, Any] = train_pq_codebook_on_accelerator(residuals, "l2", cpu, 4)[0]
    assert centroids.shape == alone.shape and codewords.shape == again.shape
    place, files = compute_pq_codes(lance.dataset(residuals), models)
    other, _ = one_pass_assign_ivf_pq_on_accelerator(dataset, "vector", "l2", cpu, kmeans, models)
    assert files and lance.dataset(place).schema == lance.dataset(other).schema
    for each in (residuals, place, other):
        shutil.rmtree(each)


def near_duplicates(folder: Path) -> None:
    codes: pa.Array = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(512, dtype=np.uint8) % 200), 8)
    dataset: lance.LanceDataset = lance.write_dataset(pa.table({"b": codes}), folder / "codes")
    dataset.create_index("b", "IVF_FLAT", name="b", metric="hamming", num_partitions=1)
    sizes: list[dict[str, int]] = get_ivf_partition_info(dataset, "b")
    found: list[pa.RecordBatchReader] = [
        hamming_clustering_for_range(dataset, "b", 0, 0, 64, 1),
        hamming_clustering_for_sample(dataset, "b", 64, 1),
        hamming_clustering_for_ivf_partition(dataset, "b", 0, 1),
    ]
    assert all(each.schema.names for each in found) and sizes[0]["size"] == 64


def models_by_steps(folder: Path) -> None:
    rng = np.random.default_rng(2)
    table: pa.Table = vec_to_table(rng.standard_normal((4200, 8)).astype(np.float32))
    dataset: lance.LanceDataset = lance.write_dataset(table, folder / "steps")
    builder: IndicesBuilder = IndicesBuilder(dataset, "vector")
    ivf: IvfModel = builder.train_ivf(2, distance_type="l2", max_iters=3)
    pq: PqModel = builder.train_pq(ivf, 4, max_iters=3, num_bits=4, sample_rate=16)
    both: dict[str, pa.FixedSizeListArray] = builder.prepare_global_ivf_pq(
        2, 4, max_iters=3, num_bits=4, sample_rate=16
    )
    ivf.save(folder / "ivf.lance")
    pq.save(folder / "pq.lance")
    ivf, pq = IvfModel.load(folder / "ivf.lance"), PqModel.load(folder / "pq.lance")
    assert (pq.dimension, pq.num_subvectors, pq.num_bits, ivf.distance_type) == (8, 4, 4, "l2") and both
    assert len(ivf.centroids) == 2 and len(pq.codebook)
    other: tuple[IvfModel, PqModel] = IvfModel(ivf.centroids, "l2"), PqModel(4, pq.codebook, num_bits=4)
    assigned: str = builder.assign_ivf_partitions(ivf, torch.device("cpu"), output_uri=str(folder / "partitions"))
    assert lance.dataset(assigned).count_rows() == 4200
    large: PqModel = builder.train_pq(ivf, 4, max_iters=3, sample_rate=16)
    builder.transform_vectors(ivf, large, str(folder / "steps" / "data" / "unsorted.lance"))
    files: list[str] = builder.shuffle_transformed_vectors(["unsorted.lance"], str(folder / "steps" / "data"), ivf)
    builder.load_shuffled_vectors(files, str(folder / "steps" / "data"), ivf, large, "v")
    kinds: tuple[IndexFileVersion, SupportedDistributedIndices] = (
        next(iter(IndexFileVersion)),
        next(iter(SupportedDistributedIndices)),
    )
    clusters: KMeans = KMeans(2, metric_type="l2", max_iters=3)
    data: pa.FixedSizeListArray = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(800, dtype=np.float32)), 8)
    clusters.fit(data)
    nearest: pa.UInt32Array = clusters.predict(data)
    assert clusters.centroids is not None and len(nearest) == 100 and other and all(kinds)
    graph: HNSW = HNSW.build(iter([data]), max_level=3, m=8, ef_construction=20)
    graph.to_lance_file(folder / "graph.lance")
    vectors: pa.FixedSizeListArray = graph.vectors()
    assert len(vectors) == 100


def blobs_of_version_2(folder: Path) -> None:
    field: pa.Field = lance.blob_field("b", nullable=True, inline_size_threshold=4)
    given: list[lance.Blob] = [lance.Blob.from_bytes(b"abc"), lance.Blob.empty(), lance.Blob(data=b"defghi")]
    array: lance.BlobArray = lance.blob_array([*given, None])
    same: lance.BlobArray = lance.BlobArray.from_pylist([*given, None])
    outside: lance.Blob = lance.Blob.from_uri("file:///nothing", position=1, size=2)
    parts: tuple[bytes | None, str | None, int | None, int | None] = (
        *(outside.data, outside.uri),
        *(outside.position, outside.size),
    )
    assert same.equals(array) and parts == (None, "file:///nothing", 1, 2) and isinstance(array.type, BlobType)
    schema: pa.Schema = pa.schema([field])
    dataset: lance.LanceDataset = lance.write_dataset(pa.Table.from_arrays([array], schema=schema), folder / "b2")
    column: lance.BlobColumn = lance.BlobColumn(pa.array([b"abc", None], pa.large_binary()))
    files: Iterator[IO[bytes] | None] = iter(column)
    first = next(files)
    assert first is not None and first.read() == b"abc" and next(files) is None and isinstance(files, BlobIterator)
    assert dataset.count_rows() == 4
    session: file.LanceFileSession = file.LanceFileSession(folder / "b2" / "data")
    pack: lance.PackedBlobWriter = session.open_packed_blob_writer("new.lance", 1)
    pack.write_blob(b"x")
    pack.write_blobs(pa.array([b"y", b"z"], pa.binary()))
    packed: list[lance.BlobDescriptor] = pack.finish()
    again: lance.PackedBlobWriter = session.open_packed_blob_writer("other.lance", 1)
    again.write_blob(b"x")
    described: pa.StructArray = again.finish_array("b")
    single: lance.DedicatedBlobWriter = session.open_dedicated_blob_writer("new.lance", 2)
    single.write(b"large")
    alone: lance.BlobDescriptor = single.finish()
    values: tuple[int, int, int, int] = alone.kind, alone.blob_id, alone.offset, alone.size
    builder: lance.BlobDescriptorArrayBuilder = lance.BlobDescriptorArrayBuilder("b")
    builder.append(packed[0])
    builder.extend(packed[1:])
    builder.append_dedicated(2, 5)
    builder.append_inline(b"tiny")
    builder.append_null()
    builder.append_managed("objects/shared", 0, 1)
    builder.extend_packed(1, [0], [1])
    made: pa.StructArray = builder.finish()
    names: tuple[str, str] = again.field.name, builder.field.name
    assert len(made) == 8 and len(described) == 1 and names == ("b", "b") and values[1] == 2


def files_of_a_session(folder: Path) -> None:
    session: file.LanceFileSession = file.LanceFileSession(folder / "session")
    writer: LanceFileWriter = session.open_writer("a/b.lance", schema=pa.schema([("x", pa.int32())]))
    writer.write_batch(pa.table({"x": pa.array([1, 2], pa.int32())}))
    writer.close()
    reader: LanceFileReader = session.open_reader("a/b.lance", columns=["x"])
    names: list[str] = session.list()
    listed: file.ListResult = session.list_with_delimiter()
    parts: tuple[list[str], list[str]] = listed.common_prefixes, listed.objects
    session.download_file("a/b.lance", folder / "copy.lance")
    session.upload_file(folder / "copy.lance", "c.lance")
    start: bytes = session.read_range("c.lance", 0, 4)
    session.delete_file("c.lance")
    has: bool = session.contains("c.lance")
    assert reader.num_rows() == 2 and names == ["a/b.lance"] and parts == (["a"], []) and start and not has
    own: file.LanceFileSession = lance.write_dataset(pa.table({"x": [1]}), folder / "own").new_file_session()
    assert own.list()


class Watched(NoopFragmentWriteProgress):
    """Hooks that count rows."""

    rows: int = 0

    def complete(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Add the rows of a fragment."""
        super().complete(fragment)
        self.rows += fragment.num_rows


def hooks_of_writes(folder: Path) -> None:
    watched: Watched = Watched()
    lance.write_dataset(people(), folder / "watched", progress=watched)
    written: list[FragmentMetadata] = write_fragments(people(), folder / "watched", progress=watched)
    LanceFragment.create(folder / "watched", people(), progress=watched)
    files: FragmentWriteProgress = FileSystemFragmentWriteProgress(folder / "progress", {"worker": "1"})
    files.begin(written[0])
    files.complete(written[0])
    ids: RowIdSequence = RowIdSequence([3, 1])
    meta: RowIdMeta = ids.to_inline_metadata()
    read: list[int] = list(RowIdSequence.from_inline_metadata(meta))
    assert read == ids.to_pyarrow().to_pylist() and len(ids) == 2
    assert watched.rows == 3 * ROWS and FileSystemFragmentWriteProgress.PROGRESS_EXT == ".in_progress"


def numbers_and_images(folder: Path) -> None:
    numbers: arrow.BFloat16Array = arrow.bfloat16_array([1.5, None, 2])
    number: arrow.BFloat16 = arrow.BFloat16.from_bytes(b"\xc0?")
    assert (
        number == arrow.BFloat16(1.5) == numbers[0].as_py()
        and number.as_float() == 1.5
        and arrow.BFloat16Scalar.__name__
    )
    narrow: pa.Array = arrow.cast(arrow.cast(numbers, pa.float32()), arrow.BFloat16Type())
    again: arrow.BFloat16Array = arrow.BFloat16Array.from_numpy(arrow.bfloat16_array([1.5, 2]).to_numpy())
    lance.write_dataset(pa.table({"n": narrow}), folder / "numbers").to_table()
    column: arrow.PandasBFloat16Array = arrow.PandasBFloat16Array.from_numpy(again.to_numpy())
    assert column.dtype.construct_array_type() is arrow.PandasBFloat16Array and column.nbytes and len(column) == 2
    assert not column.isna().any() and column.take([1]).copy().to_numpy().size == 1 and column[0] == number
    frame: object = pa.table({"n": narrow}).to_pandas()
    tensor: pa.Array = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((1, 2, 3), np.uint8))
    pixels: arrow.ImageArray = arrow.ImageArray.from_array(tensor)
    assert isinstance(pixels, arrow.FixedShapeImageTensorArray) and frame is not None and number < arrow.BFloat16(2)
    encoded: arrow.EncodedImageArray = pixels.to_encoded()
    (folder / "image.png").write_bytes(encoded[0].as_py())
    uris: arrow.ImageURIArray = arrow.ImageURIArray.from_uris([folder / "image.png"])
    decoded: arrow.FixedShapeImageTensorArray = uris.read_uris().to_tensor()
    shape: tuple[int, ...] = decoded.to_numpy().shape
    kinds: list[pa.ExtensionType] = [arrow.EncodedImageType(), arrow.ImageURIType(pa.large_string())]
    kinds.append(arrow.FixedShapeImageTensorType(pa.uint8(), [2, 3]))
    scalars: list[type] = [arrow.ImageScalar, arrow.EncodedImageScalar, arrow.ImageURIScalar]
    scalars.append(arrow.FixedShapeImageTensorScalar)
    assert shape == (1, 2, 3) and len(kinds) + 1 == len(scalars)


def small_modules() -> None:
    bits: Bitmap = Bitmap([3, 1])
    bits.add(2)
    bits.discard(3)
    other: Bitmap = bits.copy()
    sets: list[Bitmap] = [bits.union(other), bits.intersection(other), bits.difference(other)]
    sets.append(bits.symmetric_difference(other))
    bits.update([7])
    facts: list[bool] = [bits.issubset(other), bits.issuperset(other), 7 in bits, bits == other]
    bits.clear()
    shape: dict[str, Any] = lance.schema_to_json(pa.schema([("x", pa.int8())]))
    schema: pa.Schema = lance.json_to_schema(shape)
    machine: dict[str, str | list[str]] = lance.simd_info()
    reads: list[int] = [lance.bytes_read_counter(), lance.iops_counter()]
    assert min(reads) > 0
    moment: dt.datetime = sanitize_ts("2026-01-02")
    micros: int = td_to_micros(dt.timedelta(seconds=1))
    assert facts == [False, True, True, False] and schema.names == ["x"] and machine and moment and micros == 1_000_000
    assert len(sets[0]) == 2 and not len(bits) and repr(bits) == "Bitmap({})" and list(other) == [1, 2]


# -- sampling, helpers, errors -----------------------------------------------------------------------------------------


class Reversed(FragmentSampler):
    """A user's sampler: the last fragment first."""

    def iter_fragments(self, ds: lance.LanceDataset, *args: object, **kwargs: object) -> Iterator[LanceFragment]:
        yield from reversed(ds.get_fragments())


def sample(folder: Path) -> None:
    dataset: lance.LanceDataset = lance.dataset(folder / "people")
    fragments: ShardedFragmentSampler = ShardedFragmentSampler(0, 2, randomize=True, seed=1)
    rows: ShardedBatchSampler = ShardedBatchSampler(rank=1, world_size=2)
    for epoch in range(2):
        fragments.set_epoch(epoch)
        rows.set_epoch(epoch)
    samplers: list[Sampler] = [FullScanSampler(), fragments, rows, Reversed()]
    for sampler in samplers:
        batches: Iterator[pa.RecordBatch] = sampler(dataset, batch_size=8, columns=["id"], with_row_id=True)
        assert next(batches).num_columns == 2
    chosen: Iterator[LanceFragment] = fragments.iter_fragments(dataset)
    everything: Iterator[LanceFragment] = FullScanSampler().iter_fragments(dataset)
    assert len(list(chosen)) < len(list(everything))
    fixed: ShardedFixedBatchSampler = ShardedFixedBatchSampler(0, 2, batch_size=8, total_num_rows=ROWS)
    numbers: list[list[int]] = list(fixed)
    assert len(numbers) == len(fixed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        iterator: ShardedBatchIterator = ShardedBatchIterator(dataset, 0, 2, columns=["id"], granularity="batch")
    batch: pa.RecordBatch = next(iter(iterator))
    random_rows: Iterator[pa.RecordBatch] = maybe_sample(dataset, 5, "id", batch_size=2, filt="id > 3")
    kept: list[str] = reservoir_sampling(["a", "b", "c"], 2)
    assert batch.num_rows and sum(each.num_rows for each in random_rows) == 5 and len(kept) == 2


def from_torch(dataset: lance.LanceDataset) -> list[object]:
    """Use functions that ask ``torch.distributed`` for the rank; not run."""
    fragments: ShardedFragmentSampler = ShardedFragmentSampler.from_torch(randomize=True)
    rows: ShardedBatchSampler = ShardedBatchSampler.from_torch(seed=2)
    rows = rows.for_worker(0, 2)
    fixed: ShardedFixedBatchSampler = ShardedFixedBatchSampler.from_torch(batch_size=8, total_num_rows=100)
    batches: ShardedBatchIterator = ShardedBatchIterator.from_torch(dataset, batch_size=8, granularity="fragment")
    return [fragments, rows, fixed, batches]


def helpers(folder: Path) -> None:
    nanoseconds: int = parse_duration("1h 30m")
    logger: logging.Logger = LOGGER
    handler: logging.Handler = logging.NullHandler()
    set_logger(folder / "sample.log", "lance_dataset.sample", logging.WARNING, "%(message)s", handler)
    lance.set_logger(log_handler=handler, name=f"{logger.name}.sample")
    truth: bool | None = strict_bool("true")
    assert truth
    assert nanoseconds == 5400 * 10**9


def told(event: TraceEvent) -> None:
    """Take an event."""
    target: str = event.target
    args: dict[str, str] = event.args
    quoted: dict[str, str] = event.quoted
    assert target and args and quoted


def observe(folder: Path) -> None:
    """Watch what happens, and describe values of Hugging Face."""
    with contextlib.suppress(lance.errors.InvalidInputError):  # the process has a callback already
        capture_trace_events(told)
    trace_to_chrome(file=str(folder / "trace.json"))
    ds = lance.write_dataset(people(), folder / "observed.lance")
    told(TraceEvent("lance::dataset_events", {"uri": ds.uri}))
    level: str = get_python_log_level(get_log_level())
    assert level and ENV_NAME_PYLANCE_LOGGING_LEVEL and isinstance(logs_events("lance::file_audit"), bool)
    registered: bool = instrument_lance_metrics()
    home: str = language_model_home()
    assert registered and home and LANGUAGE_MODEL_HOME and import_requests()
    for download in (download_jieba, download_lindera, download_main):
        assert callable(download)
    with contextlib.suppress(lance.errors.UnsupportedError):
        check_lindera()
    assert HuggingFaceConverter({}).to_pytorch("a", pa.array([1])) is None


def raised(folder: Path) -> None:
    """Check the built-in base class of every error, by which programs written for the reference catch it."""
    value_errors: list[type[ValueError]] = [
        errors.InvalidInputError,
        errors.OutOfRangeError,
        errors.WrongTypeError,
        errors.DatasetNotFoundError,
        errors.VersionNotFoundError,
        errors.MissingFileError,
        errors.ReferenceExistsError,
        errors.CorruptFileError,
        errors.UnsupportedError,
        errors.SchemaError,
        errors.FieldNotFoundError,
        errors.FilterError,
        errors.StorageError,
        errors.UnsafePathError,
        errors.MemoryLimitError,
    ]
    os_errors: list[type[OSError]] = [errors.AlreadyExistsError, errors.RowIndexError, errors.CommitConflictError]
    denied: type[PermissionError] = errors.StoragePermissionError
    kinds: list[type[lance.LanceError]] = [errors.AlreadyExistsError, errors.RowIndexError, errors.SchemaError]
    assert len(value_errors) == 15 and os_errors and denied and kinds
    try:
        lance.dataset(folder / "people").to_table(filter="id >")
    except errors.FilterError as error:
        text: str | None = error.text
        position: int | None = error.position
        assert text is not None and position is not None
    hint: str = errors.nearest_name_hint("nmae", ["id", "name"])
    assert "name" in hint
    with contextlib.suppress(errors.UnsupportedError):
        lance.FFILanceTableProvider(lance.dataset(folder / "people"), with_row_id=True, with_row_addr=False)


class Photo(pydantic.BaseModel):
    name: str
    width: int = pydantic.Field(json_schema_extra={"unit": "pixel"})


def models_of_rows(folder: Path) -> None:
    schema: pa.Schema = pydantic_to_schema(Photo)
    field = Photo.model_fields["width"]
    unit: Any = get_extras(field, "unit")
    optional: bool = is_nullable(field)
    vector: type[FixedSizeListMixin] = Vector(2, pa.float16())
    vectors: type[FixedSizeListMixin] = MultiVector(2)
    assert (schema.names, unit, optional) == (["name", "width"], "pixel", False)
    sizes: list[int] = [vector.dim(), vectors.dim()]
    kinds: list[pa.DataType] = [vector.value_arrow_type(), vectors.value_arrow_type()]
    flags: list[bool] = [vector.nullable(), vectors.nullable(), vector.is_multi_vector(), vectors.is_multi_vector()]
    assert sizes == [2, 2] and kinds == [pa.float16(), pa.float32()] and flags == [True, True, False, True]
    rows = [Photo(name="a", width=640)]
    dataset: lance.LanceDataset = lance.LanceDataset.from_pydantic_model(Photo, rows, folder / "photos")
    assert dataset.count_rows() == lance.write_dataset(rows, folder / "photos_2").count_rows() == 1


def write_to_shards(folder: Path) -> None:
    """Write to shards of a MemWAL, read them, and merge them."""
    key = {"lance-schema:unenforced-primary-key": "true"}
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False, metadata=key), pa.field("v", pa.list_(pa.float32(), 4))]
    )
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12, dtype=np.float32)), 4)
    rows = pa.table({"id": pa.array([1, 2, 3]), "v": vectors}, schema=schema)
    dataset = lance.write_dataset(rows, folder / "shards")
    dataset.initialize_mem_wal(bucket_column="id", num_buckets=4, max_memtable_rows=10)
    details: dict[str, Any] | None = dataset.mem_wal_index_details()
    assert details is not None
    field = lance.ShardingField("bucket", [0], "bucket", None, "int32", {"num_buckets": "4"})
    spec = lance.ShardingSpec(1, [field])
    named: list[str | None] = [field.field_id, field.transform, field.expression, field.result_type]
    sources: list[int] = spec.fields[0].source_ids
    parameters: dict[str, str] = field.parameters
    identity: int = spec.spec_id
    assert named and sources and parameters and identity == 1
    values: pa.RecordBatch = lance.evaluate_sharding_spec(rows.to_batches()[0], spec, dataset.lance_schema)
    assert values.num_rows == 3
    shard = "11111111-2222-4333-8444-555555555555"
    with dataset.mem_wal_writer(shard, durable_write=True) as writer:
        writer.put(rows)
        writer.delete(pa.table({"id": [1]}))
        scanner: lance.LsmScanner = writer.lsm_scanner([])
        count: int = scanner.project(["id"]).filter("id > 0").limit(5, 0).count_rows()
        table: pa.Table = scanner.with_row_address().with_memtable_gen().to_table()
        batch: pa.RecordBatch = scanner.to_batch()
        batches: list[pa.RecordBatch] = scanner.to_batches()
        reader: pa.RecordBatchReader = scanner.to_reader()
        assert (
            count == 2 and table.num_rows == 2 and batch.num_rows == 2 and batches and reader.read_all().num_rows == 2
        )
        counts: dict[str, int] = writer.stats()
        sizes: dict[str, int] = writer.memtable_stats()
        name: str = writer.shard_id
        writer.flush()
        assert counts and sizes and name == shard
    abandoned: lance.ShardWriter = dataset.mem_wal_writer(shard)
    abandoned.abort()
    abandoned.close()
    mine = lance.ShardSnapshot(shard).with_spec_id(1).with_current_generation(2)
    snapshots: list[lance.ShardSnapshot] = dataset.mem_wal_snapshots()
    tables: dict[int, str] = snapshots[0].sstables
    owner: str = mine.with_sstable(1, tables[1]).shard_id
    assert owner == shard and lance.LsmScanner.from_snapshots(dataset, [mine]).count_rows() == 2
    plan: lance.ExecutionPlan = lance.LsmPointLookupPlanner(dataset, snapshots).plan_lookup(pa.array([2]), ["id"])
    text: str = plan.explain()
    found: pa.Table = plan.to_table()
    parts: list[pa.RecordBatch] = plan.to_batches()
    stream: pa.RecordBatchReader = plan.to_reader()
    kinds: list[pa.Schema] = [plan.schema, plan.dataset_schema]
    assert text and found.num_rows == 1 and parts and stream.read_all().num_rows == 1 and kinds
    search = lance.LsmVectorSearchPlanner(dataset, snapshots, "v", distance_type="l2")
    nearest: pa.Table = search.plan_search(pa.array([0, 1, 2, 3], pa.float32()), k=1).to_table()
    assert nearest["id"].to_pylist() == [2]
    written = pa.schema([schema.field("id"), pa.field("text", pa.string())])
    texts = lance.write_dataset(pa.table({"id": [1], "text": ["a word"]}, schema=written), folder / "searched_shards")
    words = lance.LsmTextSearchPlanner(texts, [], "text", filter="id > 0")
    hits: pa.Table = words.plan_search("word", k=1, columns=["id"]).to_table()
    same: pa.Table = words.plan_search(lance.query.PhraseQuery("a word", "text")).to_table()
    searched: lance.LsmScanner = lance.LsmScanner.from_snapshots(dataset, []).full_text_search("word", ["v"])
    assert hits.num_rows == same.num_rows == 1 and searched
    status: list[mem_wal.ShardStatus] = dataset.mem_wal_status()
    numbers: list[int] = [
        *(status[0].version, status[0].writer_epoch, status[0].generation, status[0].merged_generation),
        *(status[0].sstables, status[0].sstable_rows, status[0].log_entries, status[0].log_rows),
        *(status[0].log_bytes, status[0].log_position),
    ]
    sealed: bool = status[0].is_sealed
    assert status[0].shard_id == shard and numbers and not sealed
    merged: dict[str, int] = dataset.merge_mem_wal(shard)
    removed: dict[str, int] = dataset.collect_mem_wal(shard, older_than=dt.timedelta(0))
    progress = lance.CompactedSsTable(shard, 5)
    dataset.merge_insert("id").when_matched_update_all().mark_sstables_as_compacted([progress]).execute(rows)
    assert merged["num_sstables"] == 1 and removed["num_sstables"] == 0


def main(folder: Path) -> None:
    """Run everything; the datasets are made below `folder`."""
    open_and_write(folder)
    identity(folder)
    read(folder)
    change(folder)
    transform_columns(folder)
    settings(folder)
    references(folder)
    history(folder)
    maintain(folder)
    indexed(folder)
    search_texts(folder)
    search_words(folder)
    search_both(folder)
    search_vectors(folder)
    erase(folder)
    maintained(folder)
    fragments_of(folder)
    commit(folder)
    single_file(folder)
    blobs(folder)
    blobs_of_version_2(folder)
    files_of_a_session(folder)
    hooks_of_writes(folder)
    numbers_and_images(folder)
    small_modules()
    vector_indices(folder)
    steps_of_indices(folder)
    near_duplicates(folder)
    models_by_steps(folder)
    models_of_rows(folder)
    write_to_shards(folder)
    sample(folder)
    helpers(folder)
    observe(folder)
    raised(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
