"""Frames that ``spark.read.format("lance").load`` returns where this package is imported: they read less.

Spark asks a data source written in Python for all rows of all columns, whatever the query needs, and copies each row
twice. ``load`` is wrapped so that it returns the frame of a table (see `frames`). Some methods of that frame, not of
others made of it, ask the dataset for less: ``count()`` is answered from metadata, and ``limit``, ``take``, ``head``,
``first`` and ``show`` read as many rows as they need. Other queries narrow their scans (see `narrowing`). Rows and
types stay the same. Frames of Spark Connect, those with a schema given by the user, and those with Spark's own pushdown
stay as they are.
"""

from __future__ import annotations

import functools
from typing import Any

from pyspark.sql.readwriter import DataFrameReader

from lance_dataset.errors import LanceError
from lance_dataset.spark.options import ReadOptions
from lance_dataset.spark.save_modes import activate
from lance_dataset.spark.snapshot import pin
from lance_dataset.spark.table import LanceTable

__all__ = ["add_shortcuts"]

_MARK = "_adds_lance_shortcuts"
_SHOWN = 20


def add_shortcuts() -> None:
    """Wrap ``DataFrameReader.load``, once per process."""
    load = DataFrameReader.load
    if getattr(load, _MARK, False):
        return

    @functools.wraps(load)
    def loaded(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> Any:
        if str(format or self._jreader.source()).lower() != "lance":
            return load(self, path, format, schema, **options)
        activate(self._spark)
        if schema is not None:
            return load(self, path, format, schema, **options)
        if self._jreader.userSpecifiedSchema().isDefined():
            return load(self, path, format, schema, **options)
        known = _table(self, path, options)
        if known is None:
            return load(self, path, format, schema, **options)
        try:
            frame = known.df()
        except (LanceError, TypeError, ImportError, OSError):
            return load(self, path, format, schema, **options)  # it says what is wrong, as an error of Spark
        _shorten(frame, known)
        return frame

    setattr(loaded, _MARK, True)
    DataFrameReader.load = loaded


def _table(reader: Any, path: Any, options: dict[str, Any]) -> LanceTable | None:
    """Return the table to load, or None if Spark has to load it, or to say what is wrong."""
    given = _options_of(reader) | {name: str(value) for name, value in options.items()}
    if path is not None:
        given["path"] = str(path)
    try:
        parsed = ReadOptions.parse(given)
        if parsed.pushdown:
            return None
        snapshot, _ = pin(
            parsed.uri, parsed.version, parsed.storage_options, branch=parsed.branch, timestamp=parsed.timestamp
        )
    except (LanceError, ImportError, OSError):
        return None
    moments = ("path", "version", "tag", "timestamp")
    kept = {name: value for name, value in given.items() if name.lower() not in moments}
    return LanceTable(reader._spark, snapshot, {**kept, "version": str(snapshot.version)})


def _options_of(reader: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    entries = reader._jreader.extraOptions().iterator()
    while entries.hasNext():
        entry = entries.next()
        found[str(entry._1()).lower()] = str(entry._2())
    return found


def _shorten(frame: Any, table: LanceTable) -> None:
    few = table.parsed().limit
    unlimited = frame.limit

    def limit(num: int) -> Any:
        wanted = min(num, few) if few else num
        return table.limit(wanted).df() if wanted > 0 else unlimited(num)

    def show(n: int = _SHOWN, truncate: bool | int = True, vertical: bool = False) -> None:
        # One more row tells that there are more.
        shown = limit(n + 1) if n > 0 else frame
        type(shown).show(shown, n, truncate, vertical)

    frame.count = table.count
    frame.limit = limit
    frame.show = show
