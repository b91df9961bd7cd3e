"""Rows of the tables of a catalog in a folder: queries and changes."""

# ruff: noqa: D102 - the interface of catalogs documents its methods

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from lance_dataset.api.catalogs.directory.base import FolderPart, sent_rows
from lance_dataset.api.catalogs.directory.queries import file_of, query_scanner
from lance_dataset.api.catalogs.operation import operation
from lance_dataset.api.catalogs.packages import errors, models
from lance_dataset.api.dataset.dataset import write_dataset

__all__ = ["Rows"]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Rows(FolderPart):
    """Rows of the tables of a catalog in a folder."""

    @operation
    def count_table_rows(self, request: Any) -> Any:
        shown = self._open(request, request.version)
        return models.CountTableRowsResponse(count=shown.count_rows(filter=request.predicate or None))

    @operation
    def query_table(self, request: Any) -> Any:
        rows = query_scanner(self._open(request, request.version), request).to_table()
        return models.QueryTableResponse(data=file_of(rows))

    @operation
    def explain_table_query_plan(self, request: Any) -> str:
        query = request.query
        shown = self._open(request, query.version)
        return str(query_scanner(shown, query).explain_plan(bool(request.verbose)))

    @operation
    def analyze_table_query_plan(self, request: Any) -> str:
        return str(query_scanner(self._open(request, request.version), request).analyze_plan())

    @operation
    def insert_into_table(self, request: Any, request_data: bytes) -> Any:
        mode = (request.mode or "append").lower()
        if mode not in ("append", "overwrite"):
            raise errors.InvalidInputError(
                f"Invalid input: Unsupported write mode '{request.mode}'. Supported modes are: 'append', 'overwrite'"
            )
        rows = sent_rows(request_data, "insert_into_table")
        place = self._place(request)
        if not request.branch and self._folder.is_only_declared(place.folder):
            made = write_dataset(rows, **self._folder.location(place.folder))
        else:
            made = write_dataset(rows, self._open(request), mode="overwrite" if mode == "overwrite" else "append")
        return models.InsertIntoTableResponse(num_inserted_rows=rows.num_rows, version=made.version)

    @operation
    def merge_insert_into_table(self, request: Any, request_data: bytes) -> Any:
        if not request.on:
            raise errors.InvalidInputError("Invalid input: 'on' field is required for merge_insert_into_table")
        rows = sent_rows(request_data, "merge_insert_into_table")
        shown = self._open(request)
        merge = shown.merge_insert(list(request.on))
        if request.when_matched_update_all:
            merge = merge.when_matched_update_all(request.when_matched_update_all_filt)
        if request.when_not_matched_insert_all:
            merge = merge.when_not_matched_insert_all()
        if request.when_not_matched_by_source_delete:
            merge = merge.when_not_matched_by_source_delete(request.when_not_matched_by_source_delete_filt)
        if request.use_index is not None:
            merge = merge.use_index(request.use_index)
        if request.timeout:
            merge = merge.retry_timeout(_duration(request.timeout))
        result = merge.execute(rows)
        return models.MergeInsertIntoTableResponse(
            num_updated_rows=result["num_updated_rows"],
            num_inserted_rows=result["num_inserted_rows"],
            num_deleted_rows=result["num_deleted_rows"],
            version=shown.version,
        )

    @operation
    def update_table(self, request: Any) -> Any:
        wrong = [each for each in request.updates if len(each) != 2]
        if wrong or not request.updates:
            raise errors.InvalidInputError("Invalid input: updates must be pairs of a column and an expression")
        shown = self._open(request)
        result = shown.update(dict(request.updates), request.predicate or None)
        return models.UpdateTableResponse(updated_rows=result["num_rows_updated"], version=shown.version)

    @operation
    def delete_from_table(self, request: Any) -> Any:
        if not request.predicate:
            raise errors.InvalidInputError("Invalid input: a predicate is required for delete_from_table")
        shown = self._open(request)
        shown.delete(request.predicate)
        return models.DeleteFromTableResponse(version=shown.version)


def _duration(text: str) -> dt.timedelta:
    """Read a duration such as ``30s`` or ``500ms``."""
    found = re.fullmatch(r"(\d{1,9})(ms|s|m|h)?", text.strip())
    if found is None:
        raise errors.InvalidInputError(f"Invalid input: timeout {text!r} is not a duration such as '30s'")
    return dt.timedelta(seconds=int(found[1]) * _UNITS[found[2] or "s"])
