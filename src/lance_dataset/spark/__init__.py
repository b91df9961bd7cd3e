"""Lance datasets in PySpark, without a jar.

Spark finds the format ``lance`` by itself: ``spark.read.format("lance")``, ``df.write.format("lance")``. Importing this
package adds the save modes ``error`` and ``ignore``, and functions: `table` reads only what a query needs, and
`take_rows` fetches rows by number.
"""

from __future__ import annotations

try:
    from pyspark.sql.datasource import Filter as _Filter
except ImportError as error:
    raise ImportError(
        "lance_dataset.spark needs PySpark 4.1 or newer, which is not installed; "
        'install it with: pip install "lance-dataset[spark]" (a Java runtime, 17 or newer, is needed too)'
    ) from error
del _Filter

from lance_dataset.spark.changes.backfill import add_columns, add_columns_from  # noqa: E402
from lance_dataset.spark.changes.maintenance import compact, create_index, create_indices  # noqa: E402
from lance_dataset.spark.changes.merge import delete, merge_into, update  # noqa: E402
from lance_dataset.spark.changes.policy import maintain  # noqa: E402
from lance_dataset.spark.changes.statistics import column_statistics  # noqa: E402
from lance_dataset.spark.changes.upkeep import cleanup, refresh_indices, validate  # noqa: E402
from lance_dataset.spark.loaded import add_shortcuts  # noqa: E402
from lance_dataset.spark.save_modes import translate_save_modes  # noqa: E402 - after the check that PySpark is installed
from lance_dataset.spark.search.duplicates import drop_near_duplicates, near_duplicates  # noqa: E402
from lance_dataset.spark.search.functions import register_nearest, register_search  # noqa: E402
from lance_dataset.spark.search.joins import nearest_join, search_join  # noqa: E402
from lance_dataset.spark.source import LanceDataSource  # noqa: E402
from lance_dataset.spark.statements.run import lance_sql  # noqa: E402
from lance_dataset.spark.streaming.upserts import upsert_into  # noqa: E402
from lance_dataset.spark.table import LanceTable, table  # noqa: E402
from lance_dataset.spark.take import take_rows  # noqa: E402

__all__ = [
    "LanceDataSource",
    "LanceTable",
    "add_columns",
    "add_columns_from",
    "cleanup",
    "column_statistics",
    "compact",
    "create_index",
    "create_indices",
    "delete",
    "drop_near_duplicates",
    "lance_sql",
    "maintain",
    "merge_into",
    "near_duplicates",
    "nearest_join",
    "refresh_indices",
    "register_nearest",
    "register_search",
    "search_join",
    "table",
    "take_rows",
    "update",
    "upsert_into",
    "validate",
]

translate_save_modes()
add_shortcuts()
