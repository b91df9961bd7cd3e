"""Lance datasets in PySpark, without a jar.

``spark.dataSource.register(LanceDataSource)``, or `register` which also switches filter pushdown on, makes
``spark.read.format("lance")`` and ``df.write.format("lance")`` work. `take_rows` fetches rows by number.
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

from .save_modes import translate_save_modes
from .source import LanceDataSource, register
from .take import take_rows

__all__ = ["LanceDataSource", "register", "take_rows"]

translate_save_modes()
