"""What users hold of a scan: `LanceScanner`, and `ScannerBuilder` that makes one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lance_dataset.arguments import check_count
from lance_dataset.blob import blob_file_columns
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError, nearest_name_hint
from lance_dataset.file.blob_fields import described_schema, is_described
from lance_dataset.file.extensions import with_extensions
from lance_dataset.query.expr import compile_filter
from lance_dataset.query.projection import full_schema, located_projection, project, with_blob_values
from lance_dataset.query.scan import DEFAULT_BATCH_SIZE, Ordering, ScanRequest, count, scan_batches, scan_table
from lance_dataset.query.table_reader import TableReader
from lance_dataset.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from lance_dataset.dataset import LanceDataset
    from lance_dataset.fragment import LanceFragment

__all__ = ["ColumnOrdering", "LanceScanner", "ScannerBuilder"]

Columns: TypeAlias = "Sequence[str] | Mapping[str, str] | None"

#: Options that only steer how a scan runs, not what it returns.
_HINTS = frozenset(
    {
        "batch_readahead",
        "fragment_readahead",
        "io_buffer_size",
        "late_materialization",
        "prefilter",
        "scan_in_order",
        "use_scalar_index",
        "use_stats",
        "disable_scoring_autoprojection",
    }
)
_UNSUPPORTED = {
    "nearest": "vector search",
    "full_text_query": "full-text search",
    "index_segments": "vector search",
    "minhash_search": "similarity search",
    "fast_search": "search restricted to indexed rows",
    "scan_stats_callback": "scan statistics",
    "row_addr_allowlist": "row address filters",
    "row_addr_blocklist": "row address filters",
    "substrait_aggregate": "Substrait aggregates",
}


@dataclass
class ColumnOrdering:
    """A sort key of a scan.

    Parameters
    ----------
    column_name
        Column to sort by.
    ascending
        Smallest first.
    nulls_first
        Nulls before all values instead of after them.
    """

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


class LanceScanner(pads.Scanner):
    """A scan ready to run, any number of times. Made by `LanceDataset.scanner` or `ScannerBuilder`."""

    def __init__(self, reader: TableReader, request: ScanRequest) -> None:
        self._reader = reader
        self._request = request

    # -- results -------------------------------------------------------------------------------------------------

    def to_table(self) -> pa.Table:
        """Run and collect.

        Returns
        -------
        pyarrow.Table
        """
        return self._for_user(scan_table(self._reader, self._request))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Run as a stream of record batches; memory is bounded by a window of rows."""
        for batch in scan_batches(self._reader, self._request):
            yield self._for_user(batch)

    def to_reader(self) -> pa.RecordBatchReader:
        """Run as a `pyarrow.RecordBatchReader`."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_pandas(self, *, blob_mode: str = "lazy", **kwargs: Any) -> pd.DataFrame:
        """Run and convert; other keywords go to `pyarrow.Table.to_pandas`.

        Parameters
        ----------
        blob_mode
            What blob columns, if there are any, hold: ``lazy`` for `BlobFile`, ``bytes``, or ``descriptions``.
        """
        if blob_mode not in _BLOB_MODES:
            raise InvalidInputError(f"blob_mode must be one of: {', '.join(map(repr, _BLOB_MODES))}")
        blobs = any(is_described(node) for output in self._request.projection.columns for node in output.below)
        if blobs and blob_mode == "bytes":
            projection = with_blob_values(self._request.projection)
            return LanceScanner(self._reader, replace(self._request, projection=projection)).to_pandas(**kwargs)
        if blobs and blob_mode == "lazy":
            return self._lazy_pandas(kwargs)
        return self.to_table().to_pandas(**kwargs)

    def _lazy_pandas(self, options: Mapping[str, Any]) -> pd.DataFrame:
        if self._request.include_deleted:
            raise UnsupportedError("deleted rows have no address to find their blobs by; pass another blob_mode")
        outputs = self._request.projection.columns
        located = located_projection(self._request.projection)
        table = scan_table(self._reader, replace(self._request, projection=located))
        addresses = table.column(len(outputs)).to_numpy()
        table = self._for_user(table.select(range(len(outputs))))
        frame = table.to_pandas(**options)
        for number, files in blob_file_columns(self._reader, outputs, table, addresses).items():
            frame[outputs[number].arrow.name] = files
        return frame

    def count_rows(self) -> int:
        """Number of rows the scan returns."""
        return count(self._reader, self._request)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows."""
        check_count("num_rows", num_rows)
        limit = num_rows if self._request.limit is None else min(num_rows, self._request.limit)
        return LanceScanner(self._reader, replace(self._request, limit=limit)).to_table()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    # -- description ---------------------------------------------------------------------------------------------

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the output."""
        return self._request.projection.user_schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the dataset."""
        return self._reader.manifest.schema.arrow

    @property
    def schema(self) -> pa.Schema:
        """Schema of the output."""
        return self.projected_schema

    def explain_plan(self, verbose: bool = False) -> str:
        """The steps of the scan, outermost first, one per line."""
        return explain(self._reader, self._request)

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Not available in this release."""
        raise UnsupportedError("analyze_plan is not supported by this release; explain_plan shows the plan")

    def take(self, indices: object) -> pa.Table:
        """Not possible on a scanner; use `LanceDataset.take`."""
        raise UnsupportedError("take is not supported on a scanner; use LanceDataset.take")

    def scan_batches(self) -> Iterator[Any]:
        """Not available; use `to_batches`."""
        raise UnsupportedError("scan_batches is not supported; use to_batches")

    @staticmethod
    def from_dataset(*args: object, **kwargs: object) -> LanceScanner:
        """Not available; use `LanceDataset.scanner`."""
        raise UnsupportedError("use LanceDataset.scanner to make a scanner")

    @staticmethod
    def from_fragment(*args: object, **kwargs: object) -> LanceScanner:
        """Not available; use `LanceFragment.scanner`."""
        raise UnsupportedError("use LanceFragment.scanner to make a scanner")

    @staticmethod
    def from_batches(*args: object, **kwargs: object) -> LanceScanner:
        """Not available; write the batches into a dataset first."""
        raise UnsupportedError("a Lance scanner reads datasets; write the batches into one first")

    def _for_user(self, data: Any) -> Any:
        if self._request.projection.has_extensions:
            return with_extensions(data, self.projected_schema)
        return data


def explain(reader: TableReader, request: ScanRequest) -> str:
    """Text of a scan plan."""
    lines = []
    if request.limit is not None or request.offset:
        lines.append(f"Limit: skip={request.offset}, fetch={request.limit}")
    if request.order_by:
        keys = ", ".join(f"{key.column} {'ASC' if key.ascending else 'DESC'}" for key in request.order_by)
        lines.append(f"Sort: {keys}")
    lines.append(f"Project: {', '.join(request.projection.schema.names) or '(no columns)'}")
    if request.filter is not None:
        lines.append(f"Filter: {request.filter}")
    fragments = len(reader.fragments) if request.fragments is None else len(request.fragments)
    lines.append(f"Scan: version={reader.manifest.version}, fragments={fragments}, batch_size={request.batch_size}")
    return "\n".join("  " * depth + line for depth, line in enumerate(lines))


class ScannerBuilder:
    """Collects the options of a scan; every method returns the builder itself.

    Parameters
    ----------
    ds
        The dataset.
    defaults
        Options to start from; the default scan options of the dataset if None.
    """

    def __init__(self, ds: LanceDataset, defaults: Mapping[str, Any] | None = None) -> None:
        self._dataset = ds
        self._options: dict[str, Any] = {}
        self.apply_defaults(ds._default_scan_options if defaults is None else defaults)

    def apply_defaults(self, default_opts: Mapping[str, Any] | None) -> ScannerBuilder:
        """Take over options given as a mapping of `LanceDataset.scanner` keywords."""
        for name, value in (default_opts or {}).items():
            self._set(name, value)
        return self

    def _set(self, name: str, value: Any) -> ScannerBuilder:
        if name in _UNSUPPORTED and value is not None and value is not False:
            raise UnsupportedError(f"{name}: {_UNSUPPORTED[name]} is not supported by this release")
        if name not in _KNOWN and name not in _HINTS and name not in _UNSUPPORTED:
            raise InvalidInputError(f"Unknown option {name!r}{nearest_name_hint(name, sorted(_KNOWN))}")
        if value is not None:
            _check(name, value)
            self._options[name] = value
        return self

    def columns(self, cols: Columns = None) -> ScannerBuilder:
        """Names, or output name -> SQL expression; None for all columns."""
        self._options["columns"] = cols
        return self

    def filter(self, filter: str | pc.Expression | None) -> ScannerBuilder:
        """SQL text or a pyarrow expression."""
        return self._set("filter", filter)

    def limit(self, n: int | None = None) -> ScannerBuilder:
        """Most rows to return."""
        return self._set("limit", n)

    def offset(self, n: int | None = None) -> ScannerBuilder:
        """Rows to skip."""
        return self._set("offset", n)

    def batch_size(self, batch_size: int) -> ScannerBuilder:
        """Most rows of a batch."""
        return self._set("batch_size", batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> ScannerBuilder:
        """Approximate size of a batch."""
        return self._set("batch_size_bytes", batch_size_bytes)

    def strict_batch_size(self, strict_batch_size: bool = False) -> ScannerBuilder:
        """Whether every batch but the last has exactly the batch size."""
        return self._set("strict_batch_size", strict_batch_size)

    def order_by(self, orderings: Sequence[ColumnOrdering | str] | None) -> ScannerBuilder:
        """Sort keys."""
        return self._set("order_by", orderings)

    def with_row_id(self, with_row_id: bool = True) -> ScannerBuilder:
        """Append `_rowid`."""
        return self._set("with_row_id", with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> ScannerBuilder:
        """Append `_rowaddr`."""
        return self._set("with_row_address", with_row_address)

    def with_fragments(self, fragments: Sequence[LanceFragment] | None) -> ScannerBuilder:
        """Restrict the scan to fragments, in the order given."""
        return self._set("fragments", fragments)

    def include_deleted_rows(self, flag: bool) -> ScannerBuilder:
        """Return deleted rows too, their `_rowid` null."""
        return self._set("include_deleted_rows", flag)

    def nearest(self, column: str, q: object, k: int | None = None, **options: object) -> ScannerBuilder:
        """Vector search; not in this release."""
        return self._set("nearest", {"column": column, "q": q, "k": k, **options})

    def row_addr_prefilter(self, allowlist: bytes | None = None, blocklist: bytes | None = None) -> ScannerBuilder:
        """Row address filters; not in this release."""
        return self._set("row_addr_allowlist", allowlist)._set("row_addr_blocklist", blocklist)

    def fast_search(self, flag: bool) -> ScannerBuilder:
        """Search indexed rows only; not in this release."""
        return self._set("fast_search", flag)

    def full_text_search(self, query: object, columns: object = None) -> ScannerBuilder:
        """Full-text search; not in this release."""
        return self._set("full_text_query", query)

    def minhash_search(self, query: object) -> ScannerBuilder:
        """Similarity search; not in this release."""
        return self._set("minhash_search", query)

    def scan_stats_callback(self, callback: object) -> ScannerBuilder:
        """Statistics of a scan; not in this release."""
        return self._set("scan_stats_callback", callback)

    def substrait_aggregate(self, aggregate: bytes) -> ScannerBuilder:
        """Substrait aggregates; not in this release."""
        return self._set("substrait_aggregate", aggregate)

    def with_index_segments(self, index_segments: object) -> ScannerBuilder:
        """Restrict a search to index segments; not in this release."""
        return self._set("index_segments", index_segments)

    def row_range(self, start: int, stop: int) -> ScannerBuilder:
        """Restrict the scan to physical row offsets ``[start, stop)`` of each fragment."""
        return self._set("row_range", (start, stop))

    def blob_handling(self, blob_handling: str | None) -> ScannerBuilder:
        """How blob columns are returned: ``blobs_descriptions`` (or ``all_descriptions``), or ``all_binary``."""
        return self._set("blob_handling", blob_handling)

    # What follows steers how a scan runs, not what it returns; it is accepted for compatibility.

    def batch_readahead(self, nbatches: int | None = None) -> ScannerBuilder:
        """Batches to read ahead."""
        return self._set("batch_readahead", nbatches)

    def disable_scoring_autoprojection(self, disable: bool = True) -> ScannerBuilder:
        """Do not append scores of a search."""
        return self._set("disable_scoring_autoprojection", disable)

    def fragment_readahead(self, nfragments: int | None = None) -> ScannerBuilder:
        """Fragments to read ahead."""
        return self._set("fragment_readahead", nfragments)

    def io_buffer_size(self, io_buffer_size: int) -> ScannerBuilder:
        """Bytes to read ahead."""
        return self._set("io_buffer_size", io_buffer_size)

    def late_materialization(self, late_materialization: bool | list[str]) -> ScannerBuilder:
        """Which columns to read after filtering."""
        return self._set("late_materialization", late_materialization)

    def prefilter(self, prefilter: bool) -> ScannerBuilder:
        """Filter before a search."""
        return self._set("prefilter", prefilter)

    def scan_in_order(self, scan_in_order: bool = True) -> ScannerBuilder:
        """Return rows in storage order, as is always done."""
        return self._set("scan_in_order", scan_in_order)

    def use_scalar_index(self, use_scalar_index: bool = True) -> ScannerBuilder:
        """Let filters use indices."""
        return self._set("use_scalar_index", use_scalar_index)

    def use_stats(self, use_stats: bool = True) -> ScannerBuilder:
        """Let filters skip what the statistics of legacy files exclude, as they do unless told otherwise."""
        return self._set("use_stats", use_stats)

    def to_scanner(self) -> LanceScanner:
        """The scanner.

        Raises
        ------
        FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError
            An option does not fit the dataset.
        """
        reader = self._dataset._reader
        return LanceScanner(reader, resolve_request(reader, self._dataset._manifest.schema, self._options))


_KNOWN = frozenset(
    {
        "blob_handling",
        "columns",
        "filter",
        "limit",
        "offset",
        "batch_size",
        "batch_size_bytes",
        "strict_batch_size",
        "order_by",
        "with_row_id",
        "with_row_address",
        "fragments",
        "include_deleted_rows",
        "row_range",
    }
)


_BLOB_HANDLINGS = ("all_binary", "all_descriptions", "blobs_descriptions")
_BLOB_MODES = ("lazy", "bytes", "descriptions")


def _check(name: str, value: Any) -> None:
    """Refuse values that no dataset could take."""
    if name in ("limit", "offset", "batch_size_bytes"):
        check_count(name, value)
    elif name == "row_range":
        for end, given in zip(("start", "stop"), value, strict=True):
            check_count(f"row_range {end}", given)
    elif name == "batch_size":
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"batch_size must be an integer, not {type(value).__name__}")
        if not 1 <= value < 1 << 32:
            raise InvalidInputError(f"batch_size must be between 1 and 4294967295, got {value}")
    elif name == "blob_handling" and value not in _BLOB_HANDLINGS:
        raise InvalidInputError(f"Invalid blob_handling: {value}. Expected one of: {', '.join(_BLOB_HANDLINGS)}")


def resolve_request(reader: TableReader, schema: Schema, options: Mapping[str, Any]) -> ScanRequest:
    """Check scan options against a schema."""
    schema = described_schema(schema)  # filters look at descriptions, whatever is returned
    row_id = bool(options.get("with_row_id"))
    include_deleted = bool(options.get("include_deleted_rows"))
    projection = project(
        schema,
        options.get("columns"),
        with_row_id=row_id,
        with_row_address=bool(options.get("with_row_address")),
    )
    if options.get("blob_handling") == "all_binary":
        projection = with_blob_values(projection)
    if include_deleted and "_rowid" not in projection.schema.names:
        raise InvalidInputError("include_deleted_rows needs the row id: pass with_row_id=True")
    return ScanRequest(
        schema=schema,
        projection=projection,
        filter=compile_filter(options.get("filter"), full_schema(schema)),
        limit=None if options.get("limit") is None else int(options["limit"]),
        offset=int(options.get("offset", 0)),
        batch_size=_batch_size(reader, options),
        strict_batch_size=bool(options.get("strict_batch_size")),
        fragments=_fragment_positions(reader, options.get("fragments")),
        row_range=options.get("row_range"),
        order_by=tuple(_ordering(schema, key) for key in options.get("order_by", ())),
        include_deleted=include_deleted,
        use_statistics=bool(options.get("use_stats", True)),
    )


def _batch_size(reader: TableReader, options: Mapping[str, Any]) -> int:
    rows = int(options.get("batch_size", DEFAULT_BATCH_SIZE))
    target = options.get("batch_size_bytes")
    if target is not None and reader.fragments:
        rows = max(1, min(rows, int(target / reader.fragments[0].bytes_per_row)))
    return rows


def _fragment_positions(reader: TableReader, fragments: Sequence[LanceFragment] | None) -> tuple[int, ...] | None:
    if fragments is None:
        return None
    positions = []
    for fragment in fragments:
        fragment_id = getattr(fragment, "fragment_id", getattr(fragment, "id", None))
        if fragment_id is None:
            raise TypeError(f"fragments must be a list of LanceFragment, not of {type(fragment).__name__}")
        position = reader.manifest.fragment_list.position(fragment_id)
        if position is None:
            raise InvalidInputError(f"fragment {fragment_id} is not part of version {reader.manifest.version}")
        positions.append(position)
    return tuple(positions)


def _ordering(schema: Schema, key: ColumnOrdering | str) -> Ordering:
    column = key if isinstance(key, str) else getattr(key, "column_name", None)
    if column is None:
        raise TypeError(f"order_by takes names and ColumnOrdering, not {type(key).__name__}")
    if column not in schema.names:
        raise FieldNotFoundError(f"No field named {column} to sort by{nearest_name_hint(column, schema.names)}")
    kind = schema.top_level(column).to_arrow().type
    if pa.types.is_nested(kind):
        raise UnsupportedError(f"column {column!r} of type {kind} has no order to sort by")
    if isinstance(key, str):
        return Ordering(column)
    return Ordering(column, key.ascending, key.nulls_first)
