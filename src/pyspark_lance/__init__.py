"""The format ``lance`` for Spark, which looks for data sources in modules whose names start with ``pyspark_``.

Nothing has to be imported or registered: ``spark.read.format("lance")`` works in every session whose Python has this
package. Spark imports this module in a worker, when a session first asks for any data source written in Python. So it
must not fail: an error here would take other data sources away too.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DefaultSource"]

try:
    from lance_dataset.spark.source import LanceDataSource as DefaultSource
except ImportError as error:
    _REASON = str(error)

    from pyspark.sql.datasource import DataSource

    class DefaultSource(DataSource):  # type: ignore[no-redef]
        """Format lance where the package cannot be imported: it gives the reason."""

        def __init__(self, options: Any) -> None:
            raise ImportError(_REASON)

        @classmethod
        def name(cls) -> str:
            """Return the name of the format."""
            return "lance"
