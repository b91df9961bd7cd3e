"""Many small writes are compacted by tasks that another machine could run, then old versions are removed."""

import datetime as dt
import pickle
import sys

import lance
import pyarrow as pa
from lance.optimize import Compaction, CompactionTask

uri = sys.argv[1] + "/small.lance"
for i in range(12):
    rows = pa.table({"n": range(i * 10, i * 10 + 10), "t": [str(i)] * 10})
    dataset = lance.write_dataset(rows, uri, mode="append" if i else "create")
dataset.create_scalar_index("n", "BTREE")
dataset.delete("n % 10 < 3 OR t = '5'")
print(
    "before",
    dataset.version,
    len(dataset.get_fragments()),
    dataset.count_rows(),
    dataset.stats.dataset_stats()["num_deleted_rows"],
)

plan = Compaction.plan(dataset, {"target_rows_per_fragment": 50, "materialize_deletions_threshold": 0.05})
print("plan", plan.read_version, plan.num_tasks(), [len(task.fragments) for task in plan.tasks])
sent = [task.json() for task in plan.tasks]
results = [CompactionTask.from_json(text).execute(lance.dataset(uri)) for text in sent]
print("executed", [len(each.original_fragments) for each in results], lance.dataset(uri).version == dataset.version)
metrics = Compaction.commit(dataset, pickle.loads(pickle.dumps(results)))
print("committed", metrics.fragments_removed, metrics.fragments_added, metrics.files_removed, metrics.files_added)
print("after", dataset.version, len(dataset.get_fragments()), dataset.count_rows(), dataset.stats.dataset_stats())
print(dataset.to_table(["n"], "n IN (3, 55, 119, 20)").to_pydict(), dataset.count_rows("n >= 100"))
again = Compaction.plan(dataset, {"target_rows_per_fragment": 5})
print("nothing left", again.num_tasks())

dataset.tags.create("keep", 5)
for call in (
    lambda: dataset.cleanup_old_versions(older_than=dt.timedelta(0)),
    lambda: dataset.cleanup_old_versions(older_than=dt.timedelta(0), error_if_tagged_old_versions=False),
):
    try:
        stats = call()
        print("cleaned", stats.old_versions, stats.bytes_removed > 0)
    except OSError as error:
        print("refused", "tag" in str(error).lower())
print([each["version"] for each in dataset.versions()], lance.dataset(uri, version="keep").count_rows())
metrics = dataset.optimize.compact_files(target_rows_per_fragment=1000, num_threads=1)
print(
    "whole", metrics.fragments_removed, metrics.fragments_added, [each.count_rows() for each in dataset.get_fragments()]
)
dataset.optimize.optimize_indices()
print(dataset.count_rows("n = 119"), dataset.stats.index_stats("n_idx")["num_unindexed_rows"])
dataset.validate()
print(dataset.data_storage_version, sorted(dataset.to_table()["n"].to_pylist())[:5])
