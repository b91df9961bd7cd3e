"""The save modes ``error`` and ``ignore``, which Spark refuses for every data source written in Python.

Spark passes only ``append`` and ``overwrite`` to such a source. For other modes it raises
UNSUPPORTED_DATA_SOURCE_SAVE_MODE before it calls the source. So ``DataFrameWriter.save`` is wrapped: for the format
lance only, these two modes become an append with the option ``if_exists``. The source applies the option when it plans
and when it commits. Clients of Spark Connect can set the option themselves.
"""

from __future__ import annotations

import functools
from typing import Any

from pyspark.sql.readwriter import DataFrameWriter

__all__ = ["translate_save_modes"]

_MODES = {"error": "error", "errorifexists": "error", "default": "error", "ignore": "ignore"}
_JAVA_MODES = {"ErrorIfExists": "error", "Ignore": "ignore"}
_MARK = "_translates_lance_save_modes"


def translate_save_modes() -> None:
    """Wrap ``DataFrameWriter.save``, once per process."""
    original = DataFrameWriter.save
    if getattr(original, _MARK, False):
        return

    @functools.wraps(original)
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        if (format or self._jwrite.source()).lower() == "lance":
            if_exists = _MODES.get(mode.lower()) if mode else _JAVA_MODES.get(self._jwrite.curmode().name())
            if if_exists is not None:
                mode = "append"
                options["if_exists"] = if_exists
        original(self, path, format, mode, partitionBy, **options)

    setattr(save, _MARK, True)
    DataFrameWriter.save = save
