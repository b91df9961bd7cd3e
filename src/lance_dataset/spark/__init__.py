"""Lance datasets in PySpark, without a jar.

After ``spark.dataSource.register(LanceDataSource)`` the format ``lance`` can be read and written:
``spark.read.format("lance")``, ``df.write.format("lance")``. `take_rows` fetches rows by number.
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

from lance_dataset.spark.save_modes import translate_save_modes  # noqa: E402 - after the check that PySpark is installed
from lance_dataset.spark.source import LanceDataSource  # noqa: E402
from lance_dataset.spark.take import take_rows  # noqa: E402

__all__ = ["LanceDataSource", "take_rows"]

translate_save_modes()
