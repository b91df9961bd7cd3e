"""Pictures are found by their vectors: exact, by IVF_PQ with filters and refinement, after appends and deletes."""

import sys

import lance
import numpy as np
import pyarrow as pa

uri = sys.argv[1] + "/pictures.lance"
random = np.random.default_rng(7)
centers = random.normal(0, 10, (8, 16))
vectors = (centers[np.arange(1200) % 8] + random.normal(0, 0.5, (1200, 16))).astype(np.float32)


def rows(start: int, stop: int) -> pa.Table:
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors[start:stop].ravel()), 16)
    kinds = [("cat", "dog", "owl")[i % 3] for i in range(start, stop)]
    return pa.table(
        {"id": range(start, stop), "kind": kinds, "year": [2000 + i % 20 for i in range(start, stop)], "v": values}
    )


dataset = lance.write_dataset(rows(0, 1000), uri, max_rows_per_file=400)
query = vectors[17]


def found(**options) -> list[int]:
    nearest = {"column": "v", "q": query, "k": 5, **options.pop("nearest", {})}
    return dataset.to_table(["id", "_distance"], nearest=nearest, **options)["id"].to_pylist()


exact = found()
print("exact", exact, found(filter="kind = 'owl'", prefilter=True), found(nearest={"metric": "cosine"}))
print(
    "distances",
    [
        round(d, 3)
        for d in dataset.to_table(["_distance"], nearest={"column": "v", "q": query, "k": 3})["_distance"].to_pylist()
    ],
)

dataset.create_index("v", "IVF_PQ", num_partitions=8, num_sub_vectors=8, metric="l2")
print([(each["name"], each["type"], each["fields"]) for each in dataset.list_indices()])
stats = dataset.stats.index_stats("v_idx")
print(stats["index_type"], stats["num_indexed_rows"], stats["num_unindexed_rows"])
best = {"nprobes": 8, "refine_factor": 50}
print("refined", found(nearest=best) == exact, found(nearest={**best, "use_index": False}) == exact)
print("filtered", found(nearest=best, filter="kind = 'owl' AND year > 2005", prefilter=True))
print("ranges", len(found(nearest={**best, "k": 50, "distance_range": (0.0, 2.0)})) < 50)

dataset = lance.write_dataset(rows(1000, 1200), uri, mode="append")
query = vectors[1111]
print("appended", found(nearest=best)[0], dataset.stats.index_stats("v_idx")["num_unindexed_rows"])
print("indexed only", 1111 in found(nearest=best, fast_search=True))
dataset.optimize.optimize_indices()
print("optimized", found(nearest=best, fast_search=True)[0], dataset.stats.index_stats("v_idx")["num_unindexed_rows"])
dataset.delete("id = 1111")
print("deleted", 1111 in found(nearest=best), len(found(nearest=best)))
dataset.optimize.compact_files(target_rows_per_fragment=5000)
print("compacted", len(dataset.get_fragments()) < 4, len(found(nearest=best)), dataset.has_index)
batch = np.stack([vectors[3], vectors[4]])
several = dataset.to_table(["id"], nearest={"column": "v", "q": batch, "k": 1, **best})
print("batch", sorted(several["id"].to_pylist()))
for wrong in ({"q": vectors[0][:5]}, {"k": 0}, {"column": "kind"}, {"metric": "strange"}):
    try:
        found(nearest=wrong)
        print("accepted")
    except (TypeError, ValueError, OSError, RuntimeError):
        print("refused", sorted(wrong))
dataset.drop_index("v_idx")
print(dataset.list_indices(), found()[:1] == found(nearest={"metric": "l2"})[:1])
