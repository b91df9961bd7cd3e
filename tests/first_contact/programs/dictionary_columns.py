"""Categories, decimals, times, binaries."""

import sys
from decimal import Decimal

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
data = pa.table(
    {
        "c": pa.array(["x", "y", "x", None]).dictionary_encode(),
        "d": pa.array([Decimal("1.25"), Decimal("-3.50"), None, Decimal("0.00")], pa.decimal128(10, 2)),
        "t": pa.array([1, 2, None, 4], pa.time64("us")),
        "u": pa.array([0, 10**9, 2 * 10**9, None], pa.timestamp("ms", tz="UTC")),
        "b": pa.array([b"\0\1", b"", None, b"zz"]),
        "l": pa.array([True, None, False, True]),
    }
)
dataset = lance.write_dataset(data, path)
print(dataset.schema)
print(dataset.to_table().equals(data), dataset.take([2, 0]).to_pylist())
print(dataset.to_table(filter="d > 0").num_rows, dataset.to_table(filter="l")["l"].to_pylist())
