"""Unpickling on Spark workers, which may lack the package."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.types import StructType

import lance_dataset as lance
from lance_dataset.spark import LanceDataSource

_WORKER = """
import pickle, sys

class Without:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "lance_dataset":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

if sys.argv[1] == "without":
    sys.meta_path.insert(0, Without)
found = pickle.load(sys.stdin.buffer)
print(type(found).__name__)
"""


def test_a_worker_without_the_package_says_so(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"a": [1]}), tmp_path / "a.lance")
    source = LanceDataSource({"path": str(tmp_path / "a.lance")})
    schema = StructType.fromJson(
        {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]}
    )
    for shipped in (source.reader(schema), source.writer(schema, overwrite=False)):
        payload = cloudpickle.dumps(shipped)
        assert type(pickle.loads(payload)) is type(shipped)
        with_package, without = (
            subprocess.run([sys.executable, "-c", _WORKER, each], input=payload, capture_output=True, check=False)
            for each in ("with", "without")
        )
        assert with_package.stdout.decode().strip() == type(shipped).__name__
        message = without.stderr.decode().splitlines()[-1]
        assert "has no package lance_dataset" in message
        assert "install lance-dataset there" in message
