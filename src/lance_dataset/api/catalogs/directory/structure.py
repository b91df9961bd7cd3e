"""Columns, indices and settings of the tables of a catalog in a folder."""

# ruff: noqa: D102 - the interface of catalogs documents its methods

from __future__ import annotations

from typing import Any

import numpy as np

from lance_dataset.api.catalogs.directory.base import FolderPart
from lance_dataset.api.catalogs.directory.schema_form import described_type
from lance_dataset.api.catalogs.operation import operation
from lance_dataset.api.catalogs.packages import errors, models
from lance_dataset.records.index_description import IndexDescription

__all__ = ["Structure"]

_VECTOR_KINDS = ("IVF", "VECTOR")
#: Parameters of requests for indices, and those of the calls that build them.
_VECTOR_PARAMETERS = {
    "num_partitions": "num_partitions",
    "num_sub_vectors": "num_sub_vectors",
    "num_bits": "num_bits",
    "sample_rate": "sample_rate",
    "max_iterations": "max_iters",
    "target_partition_size": "target_partition_size",
    "m": "m",
    "ef_construction": "ef_construction",
}
_TEXT_PARAMETERS = (
    "with_position",
    "base_tokenizer",
    "language",
    "max_token_length",
    "lower_case",
    "stem",
    "remove_stop_words",
    "ascii_folding",
)
#: Fragments with fewer rows count as small.
_SMALL_ROWS = 100_000


class Structure(FolderPart):
    """Columns, indices and settings of the tables of a catalog in a folder."""

    # -- columns ---------------------------------------------------------------------------------------------------

    @operation
    def alter_table_add_columns(self, request: Any) -> Any:
        shown = self._open(request)
        for column in request.new_columns:
            if column.virtual_column is not None or column.computed is not None or column.expression is None:
                raise errors.UnsupportedOperationError(
                    f"Not supported: the new column {column.name!r} needs an SQL expression; virtual and computed "
                    "columns are not supported"
                )
        shown.add_columns({column.name: column.expression for column in request.new_columns})
        return models.AlterTableAddColumnsResponse(version=shown.version)

    @operation
    def alter_table_alter_columns(self, request: Any) -> Any:
        shown = self._open(request)
        shown.alter_columns(*[_alteration(each) for each in request.alterations])
        return models.AlterTableAlterColumnsResponse(version=shown.version)

    @operation
    def alter_table_drop_columns(self, request: Any) -> Any:
        shown = self._open(request)
        shown.drop_columns(list(request.columns))
        return models.AlterTableDropColumnsResponse(version=shown.version)

    @operation
    def alter_table_backfill_columns(self, request: Any) -> Any:
        raise _unsupported("alter_table_backfill_columns", "add the column again with alter_table_add_columns")

    @operation
    def create_materialized_view(self, request: Any) -> Any:
        raise _unsupported("create_materialized_view", "create a table with the rows of a query")

    @operation
    def refresh_materialized_view(self, request: Any) -> Any:
        raise _unsupported("refresh_materialized_view", "overwrite a table with the rows of a query")

    @operation
    def update_table_schema_metadata(self, request: Any) -> Any:
        shown = self._open(request)
        made = shown.update_schema_metadata(dict(request.metadata or {}))
        return models.UpdateTableSchemaMetadataResponse(metadata=made, transaction_id=self._last_transaction(shown))

    @operation
    def update_field_metadata(self, request: Any) -> Any:
        shown = self._open(request)
        fields: dict[str, dict[str, str]] = {}
        for each in request.updates:
            shown.update_field_metadata({each.path: dict(each.metadata)}, replace=bool(each.replace))
            field = shown.lance_schema.field(each.path)
            fields[each.path] = {} if field is None else dict(field.metadata)
        return models.UpdateFieldMetadataResponse(version=shown.version, fields=fields)

    # -- indices ---------------------------------------------------------------------------------------------------

    @operation
    def create_table_index(self, request: Any) -> Any:
        return models.CreateTableIndexResponse(transaction_id=self._build_index(request))

    @operation
    def create_table_scalar_index(self, request: Any) -> Any:
        if request.index_type.upper().startswith(_VECTOR_KINDS):
            raise errors.InvalidInputError(f"Invalid input: {request.index_type} is not the type of a scalar index")
        return models.CreateTableScalarIndexResponse(transaction_id=self._build_index(request))

    def _build_index(self, request: Any) -> str | None:
        shown = self._open(request)
        name = request.name or f"{request.column}_idx"
        if any(index.name == name for index in shown.describe_indices()):
            raise errors.TableIndexAlreadyExistsError(f"Table index already exists: {name}")
        kind = request.index_type.upper()
        if kind.startswith(_VECTOR_KINDS):
            options = {name: getattr(request, field) for field, name in _VECTOR_PARAMETERS.items()}
            given = {name: value for name, value in options.items() if value is not None}
            shown.create_index(
                request.column,
                None if kind == "VECTOR" else kind,
                request.name,
                request.distance_type or "L2",
                **given,
            )
        else:
            texts = {name: getattr(request, name) for name in _TEXT_PARAMETERS}
            given = {name: value for name, value in texts.items() if value is not None}
            shown.create_scalar_index(request.column, kind, request.name, **given)
        return self._last_transaction(shown)

    @operation
    def list_table_indices(self, request: Any) -> Any:
        shown = self._open(request, request.version)
        rows = shown.count_rows()
        return models.ListTableIndicesResponse(indexes=[_index(each, rows) for each in shown.describe_indices()])

    @operation
    def describe_table_index_stats(self, request: Any) -> Any:
        statistics = self._open(request, request.version).index_statistics(request.index_name)
        details: Any = next(iter(statistics.get("indices", ())), {})
        return models.DescribeTableIndexStatsResponse(
            index_type=statistics.get("index_type"),
            distance_type=details.get("metric_type") if isinstance(details, dict) else None,
            num_indexed_rows=statistics.get("num_indexed_rows"),
            num_unindexed_rows=statistics.get("num_unindexed_rows"),
            num_indices=statistics.get("num_indices"),
        )

    @operation
    def drop_table_index(self, request: Any) -> Any:
        shown = self._open(request)
        shown.drop_index(request.index_name)
        return models.DropTableIndexResponse(transaction_id=self._last_transaction(shown))

    # -- statistics ------------------------------------------------------------------------------------------------

    @operation
    def get_table_stats(self, request: Any) -> Any:
        shown = self._open(request)
        lengths = np.sort([fragment.count_rows() for fragment in shown.get_fragments()])
        size = sum(each.bytes_on_disk or 0 for each in shown.stats.data_stats().fields)
        return models.GetTableStatsResponse(
            total_bytes=size,
            num_rows=int(lengths.sum()),
            num_indices=len(shown.describe_indices()),
            fragment_stats=models.FragmentStats(
                num_fragments=len(lengths),
                num_small_fragments=int((lengths < _SMALL_ROWS).sum()),
                lengths=_summary(lengths),
            ),
        )


def _unsupported(call: str, advice: str) -> Exception:
    return errors.UnsupportedOperationError(f"Not supported: {call} needs a service that runs jobs; {advice}")


def _alteration(entry: Any) -> dict[str, object]:
    if entry.virtual_column is not None:
        raise errors.UnsupportedOperationError(f"Not supported: {entry.path!r} cannot become a virtual column")
    made: dict[str, object] = {"path": entry.path}
    if entry.rename is not None:
        made["name"] = entry.rename
    if entry.nullable is not None:
        made["nullable"] = entry.nullable
    if entry.data_type is not None:
        made["data_type"] = described_type(entry.data_type)
    return made


def _index(index: IndexDescription, rows: int) -> Any:
    first = index.segments[0] if index.segments else None
    return models.IndexContent(
        index_name=index.name,
        index_uuid="" if first is None else first.uuid,
        columns=index.field_names,
        status="SUCCEEDED",
        index_type=index.index_type,
        type_url=index.type_url or None,
        num_indexed_rows=index.num_rows_indexed,
        num_unindexed_rows=max(0, rows - index.num_rows_indexed),
        size_bytes=index.total_size_bytes,
        num_segments=len(index.segments),
        created_at=None if first is None else first.created_at,
        index_version=None if first is None else first.index_version,
    )


def _summary(lengths: np.ndarray) -> Any:
    """Describe the lengths of fragments, which are sorted. A percentile is the length at that share, rounded down."""

    def at(share: float) -> int:
        return int(lengths[int((len(lengths) - 1) * share)]) if len(lengths) else 0

    return models.FragmentSummary(
        min=at(0),
        max=at(1),
        mean=int(lengths.mean()) if len(lengths) else 0,
        p25=at(0.25),
        p50=at(0.5),
        p75=at(0.75),
        p99=at(0.99),
    )
