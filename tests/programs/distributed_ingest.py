"""The steps of a distributed job as Ray or Spark run them: tasks write, one driver commits; then a column by tasks."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
import pyarrow.compute as pc

uri = sys.argv[1] + "/ingest.lance"
schema = pa.schema([("part", pa.int32()), ("n", pa.int64()), ("s", pa.string())])


def task(part: int) -> bytes:
    table = pa.table(
        {"part": [part] * 20, "n": range(part * 20, part * 20 + 20), "s": [f"row {i}" for i in range(20)]},
        schema=schema,
    )
    written = lance.fragment.write_fragments(table, uri, schema=schema, max_rows_per_file=8)
    return pickle.dumps(written)


with ThreadPoolExecutor(2) as pool:
    fragments = [each for sent in pool.map(task, range(4)) for each in pickle.loads(sent)]
print("written", len(fragments), [each.physical_rows for each in fragments[:3]])
dataset = lance.LanceDataset.commit(uri, lance.LanceOperation.Overwrite(schema, fragments), commit_message="first load")
print("committed", dataset.version, dataset.count_rows(), dataset.to_table(["n"])["n"].to_pylist() == list(range(80)))

transactions = [
    lance.fragment.write_fragments(
        pa.table({"part": [9], "n": [900 + i], "s": ["late"]}, schema=schema),
        uri,
        mode="append",
        return_transaction=True,
    )
    for i in range(3)
]
result = lance.LanceDataset.commit_batch(dataset, transactions)
dataset = result["dataset"]
print("batch", dataset.version, dataset.count_rows("part = 9"), type(result["merged"].operation).__name__)


def add_length(number: int):
    fragment = lance.dataset(uri).get_fragment(number)
    return fragment.merge_columns(
        lambda batch: pa.record_batch([pc.utf8_length(batch["s"])], ["length"]), columns=["s"]
    )


with ThreadPoolExecutor(2) as pool:
    merged = list(pool.map(add_length, [each.fragment_id for each in dataset.get_fragments()]))
operation = lance.LanceOperation.Merge([each for each, _ in merged], merged[0][1])
dataset = lance.LanceDataset.commit(uri, operation, read_version=dataset.version)
print("merged", dataset.schema.names, sum(dataset.to_table(["length"])["length"].to_pylist()))

removed, updated, whole = [], [], "n % 2 = 0 OR part = 3"
for fragment in dataset.get_fragments():
    left = fragment.delete(whole)
    if left is None:
        removed.append(fragment.fragment_id)
    elif left.num_deletions != fragment.num_deletions:
        updated.append(left)
operation = lance.LanceOperation.Delete(updated, removed, whole)
dataset = lance.LanceDataset.commit(uri, operation, read_version=dataset.version)
print("deleted", dataset.count_rows(), len(removed), len(updated))
for fragment in dataset.get_fragments()[:2]:
    print(fragment.fragment_id, fragment.count_rows(), fragment.physical_rows, fragment.head(2)["n"].to_pylist())
    print(fragment.to_table(["n"], filter="n > 4", limit=2).to_pydict(), fragment.take([0, 1], ["n"])["n"].to_pylist())
try:
    lance.LanceDataset.commit(uri, lance.LanceOperation.Append(fragments))
    print("accepted")
except Exception as error:
    print("refused", "read_version" in str(error))
print([type(each.operation).__name__ for each in dataset.get_transactions(10) if each])
