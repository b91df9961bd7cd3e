"""Single Lance files without a dataset."""

import sys

import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

path = sys.argv[1] + "/single.lance"
schema = pa.schema([("i", pa.int64()), ("s", pa.string())])
with LanceFileWriter(path, schema) as writer:
    for start in (0, 3):
        writer.write_batch(
            pa.table({"i": range(start, start + 3), "s": [str(i) * 2 for i in range(start, start + 3)]}, schema=schema)
        )
reader = LanceFileReader(path)
print(reader.num_rows(), reader.metadata().schema)
print(reader.read_all().to_table().to_pydict())
print(reader.read_range(2, 2).to_table().to_pydict())
print(reader.take_rows([1, 5]).to_table().to_pydict())
