"""Write from a generator, read in batches."""

import sys
from collections.abc import Iterator

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
schema = pa.schema([("i", pa.int64()), ("embedding", pa.list_(pa.float32(), 4))])


def produce() -> Iterator[pa.RecordBatch]:
    for start in range(0, 1000, 100):
        ids = pa.array(range(start, start + 100), pa.int64())
        vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(x) for x in range(400)], pa.float32()), 4)
        yield pa.record_batch([ids, vectors], schema=schema)


reader = pa.RecordBatchReader.from_batches(schema, produce())
dataset = lance.write_dataset(reader, path, max_rows_per_file=250)
print(dataset.count_rows(), len(dataset.get_fragments()), dataset.schema)
total = 0
for batch in dataset.to_batches(columns=["i"], batch_size=128, filter="i >= 500"):
    total += sum(batch["i"].to_pylist())
print(total)
print(dataset.to_table(limit=1)["embedding"].to_pylist())
