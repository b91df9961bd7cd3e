"""Workers write fragments, one process commits them."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
schema = pa.schema([("worker", pa.int32()), ("x", pa.float64())])


def work(number: int) -> list[str]:
    data = pa.table({"worker": [number] * 5, "x": [number / 2] * 5}, schema=schema)
    return [json.dumps(each.to_json()) for each in lance.fragment.write_fragments(data, path)]


with ThreadPoolExecutor(3) as pool:
    written = [each for found in pool.map(work, range(3)) for each in found]
fragments = [lance.FragmentMetadata.from_json(each) for each in written]
dataset = lance.LanceDataset.commit(path, lance.LanceOperation.Overwrite(schema, fragments))
print(dataset.count_rows(), [each.fragment_id for each in dataset.get_fragments()])
more = lance.fragment.LanceFragment.create(path, pa.table({"worker": [9], "x": [9.0]}, schema=schema))
dataset = lance.LanceDataset.commit(path, lance.LanceOperation.Append([more]), read_version=dataset.version)
print(dataset.to_table().to_pydict()["worker"], dataset.version)
