"""Passages for a chat: the ranks of a vector search and of a text search are fused, with filters on both."""

import sys

import lance
import numpy as np
import pyarrow as pa

uri = sys.argv[1] + "/passages.lance"
TOPICS = ["tea from the hills", "trains over mountains", "music for dancing", "bread with seeds"]
random = np.random.default_rng(3)
topics = random.normal(0, 4, (4, 8))
count = 200
vectors = (topics[np.arange(count) % 4] + random.normal(0, 0.3, (count, 8))).astype(np.float32)
texts = [f"{TOPICS[i % 4]} part {i // 4}" + (" extra tea" if i % 10 == 1 else "") for i in range(count)]
table = pa.table(
    {
        "id": range(count),
        "text": texts,
        "lang": ["en" if i % 3 else "fr" for i in range(count)],
        "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8),
    }
)
dataset = lance.write_dataset(table, uri, max_rows_per_file=64)
dataset.create_scalar_index("text", "FTS")
dataset.create_scalar_index("lang", "BITMAP")
dataset.create_index("vec", "IVF_FLAT", num_partitions=4)


def by_vector(q: np.ndarray, where: str | None) -> list[int]:
    near = {"column": "vec", "q": q, "k": 10, "nprobes": 4}
    return dataset.to_table(["id", "_distance"], nearest=near, filter=where, prefilter=True)["id"].to_pylist()


def by_text(words: str, where: str | None) -> list[int]:
    hits = dataset.to_table(["id", "_score"], full_text_query=words, filter=where, prefilter=True, limit=40)
    ordered = sorted(hits.to_pylist(), key=lambda row: (-round(row["_score"], 5), row["id"]))
    return [row["id"] for row in ordered[:10]]


def fused(words: str, q: np.ndarray, where: str | None = None) -> list[int]:
    scores: dict[int, float] = {}
    for ranking in (by_vector(q, where), by_text(words, where)):
        for rank, number in enumerate(ranking):
            scores[number] = scores.get(number, 0.0) + 1 / (60 + rank)
    return sorted(scores, key=lambda number: (-scores[number], number))[:6]


print("vector", by_vector(topics[0].astype(np.float32), None))
print("text in French", sorted(by_text("trains mountains part 3", "lang = 'fr'"))[:3])
print("fused", fused("tea part 7", vectors[28]))
print("fused in English", fused("extra tea", vectors[1], "lang = 'en'"))
for where in (None, "lang = 'fr'", "id < 50 AND lang = 'en'", "id BETWEEN 20 AND 30"):
    print(where, len(by_vector(vectors[5], where)), dataset.count_rows(where))
chosen = dataset.to_table(["text"], filter=f"id IN ({', '.join(map(str, fused('bread seeds', vectors[3])))})")
print(sorted(chosen["text"].to_pylist()))
row_ids = dataset.to_table([], nearest={"column": "vec", "q": vectors[9], "k": 2}, with_row_id=True)["_rowid"]
print(dataset._take_rows(row_ids.to_pylist(), columns=["id"])["id"].to_pylist())
