"""Fixtures: a Spark session with two cores of this machine and a session time zone other than UTC."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

SESSION_ZONE = "America/New_York"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    from pyspark.sql import SparkSession

    import lance_dataset.spark  # noqa: F401 - for the save modes; the format is found without it

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("lance-dataset tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", SESSION_ZONE)
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture
def spark(session):
    session.conf.set(PUSHDOWN, "false")
    return session


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "table.lance")


@pytest.fixture
def data_files(uri):
    """Return a function that lists the data files of the dataset."""
    return lambda: sorted(path.name for path in Path(uri, "data").glob("*"))
