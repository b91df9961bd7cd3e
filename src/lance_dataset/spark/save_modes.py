"""Writes that Spark refuses for data sources written in Python: translated, or refused where they are asked for.

Spark passes only the modes ``append`` and ``overwrite`` to such a source. For ``error`` and ``ignore`` it raises
UNSUPPORTED_DATA_SOURCE_SAVE_MODE before it calls the source. So ``DataFrameWriter.save`` is wrapped: for the format
lance only, these two modes become an append with the option ``if_exists``. The source applies the option when it plans
and when it commits. Clients of Spark Connect can set the option themselves. ``partitionBy`` and ``saveAsTable`` would
fail late, with messages that do not say why; they are refused at once.

Spark looks for data sources written in Python in the session that is active in the thread. A new thread of Python has
none until a frame is created there from local data, so a save would fail with DATA_SOURCE_NOT_FOUND. The session of the
frame is made the active one.
"""

from __future__ import annotations

import functools
from typing import Any

from pyspark.sql.readwriter import DataFrameWriter

from lance_dataset.errors import UnsupportedError
from lance_dataset.spark.option_parsing import NO_CATALOG_TABLES

__all__ = ["activate", "translate_save_modes"]

_MODES = {"error": "error", "errorifexists": "error", "default": "error", "ignore": "ignore"}
_JAVA_MODES = {"ErrorIfExists": "error", "Ignore": "ignore"}
_MARK = "_translates_lance_save_modes"


def translate_save_modes() -> None:
    """Wrap ``save`` and ``saveAsTable`` of ``DataFrameWriter``, once per process."""
    save, save_as_table = DataFrameWriter.save, DataFrameWriter.saveAsTable
    if getattr(save, _MARK, False):
        return

    @functools.wraps(save)
    def saved(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        if _is_lance(self, format):
            _refuse_partitions(self, partitionBy)
            activate(self._spark)
            if_exists = _MODES.get(mode.lower()) if mode else _JAVA_MODES.get(self._jwrite.curmode().name())
            if if_exists is not None:
                mode = "append"
                options["if_exists"] = if_exists
        save(self, path, format, mode, partitionBy, **options)

    @functools.wraps(save_as_table)
    def saved_as_table(self: Any, name: str, format: str | None = None, *arguments: Any, **options: Any) -> None:
        if _is_lance(self, format):
            raise UnsupportedError(f"saveAsTable does not work with the format lance: {NO_CATALOG_TABLES}")
        save_as_table(self, name, format, *arguments, **options)

    setattr(saved, _MARK, True)
    DataFrameWriter.save = saved
    DataFrameWriter.saveAsTable = saved_as_table


def activate(spark: Any) -> None:
    """Make a session the active one of this thread; Spark Connect has no such thing."""
    machine = getattr(spark, "_jvm", None)
    if machine is not None:
        machine.SparkSession.setActiveSession(spark._jsparkSession)


def _is_lance(writer: Any, format: str | None) -> bool:
    return str(format or writer._jwrite.source()).lower() == "lance"


def _refuse_partitions(writer: Any, names: Any) -> None:
    """Raise if columns for directories are given: a dataset finds rows by statistics and indices instead."""
    found = writer._jwrite.partitioningColumns()
    if names or found.isDefined():
        raise UnsupportedError(
            "partitionBy is not supported by the format lance: its tables have no partition directories. Leave it out; "
            "sort the rows by these columns, or create an index on them, to read few files"
        )
