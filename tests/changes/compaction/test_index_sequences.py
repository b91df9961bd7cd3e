"""Tests of random changes of indexed tables, compacted by either library: the reference still finds the right rows."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset

WORDS = ["ape", "bear", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay"]
DIMENSION = 8
#: Column and kind of each index. All are created on one table.
INDICES = {
    "number": "BTREE",
    "word": "BITMAP",
    "labels": "LABEL_LIST",
    "text": "NGRAM",
    "zone": "ZONEMAP",
    "bloom": "BLOOMFILTER",
    "body": "INVERTED",
}
FILTERS = [
    "number = {n}",
    "number >= {n} AND number < {n} + 20",
    "number IS NULL",
    "number != {n}",
    "word = '{w}'",
    "word IN ('{w}', 'cat')",
    "word IS NULL",
    "NOT word = '{w}'",
    "array_has_any(labels, ['{w}', 'dog'])",
    "array_has_all(labels, ['{w}'])",
    "contains(text, '{w}')",
    "zone < {n}",
    "zone IS NULL",
    "bloom = {n}",
    "number > {n} AND word = '{w}' AND zone > 3",
]


def rows(generator: random.Random, count: int, first: int) -> pa.Table:
    def maybe(value: object) -> object:
        return None if generator.random() < 0.1 else value

    def words(most: int) -> list[str | None]:
        return [generator.choice(WORDS) for _ in range(generator.randrange(most))]

    numbers = range(first, first + count)
    vectors = np.random.default_rng(first).standard_normal((count, DIMENSION)).astype(np.float32)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "number": pa.array([maybe(generator.randrange(100)) for _ in numbers], pa.int64()),
            "word": pa.array([maybe(generator.choice(WORDS)) for _ in numbers], pa.string()),
            "labels": pa.array([maybe(words(4)) for _ in numbers], pa.list_(pa.string())),
            "text": pa.array([maybe(" ".join(words(5))) for _ in numbers], pa.string()),
            "zone": pa.array([maybe(generator.randrange(50)) for _ in numbers], pa.int32()),
            "bloom": pa.array([maybe(generator.randrange(100)) for _ in numbers], pa.int64()),
            "body": pa.array([maybe(" ".join(words(6))) for _ in numbers], pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIMENSION),
        }
    )


class Indexed:
    """A table with indices of all kinds, and random changes of it."""

    def __init__(self, path: Path, seed: int, *, stable: bool, version: str) -> None:
        self.path, self.random, self.stable = str(path), random.Random(seed), stable
        self.next = 0
        lance.write_dataset(
            self.new_rows(60),
            self.path,
            max_rows_per_file=15,
            enable_stable_row_ids=stable,
            data_storage_version=version,
        )
        dataset = lance.dataset(self.path)
        for column, kind in INDICES.items():
            dataset.create_scalar_index(column, kind)
        dataset.create_index("vector", "IVF_FLAT", metric="l2", num_partitions=2)

    def new_rows(self, count: int) -> pa.Table:
        self.next += count
        return rows(self.random, count, self.next - count)

    def append(self) -> str:
        lance.write_dataset(self.new_rows(self.random.randrange(1, 25)), self.path, mode="append")
        return "append"

    def delete(self) -> str:
        where = f"id % {self.random.randrange(3, 12)} = {self.random.randrange(3)}"
        lance_dataset.dataset(self.path).delete(where)
        return f"delete {where}"

    def update(self) -> str:
        column = self.random.choice(["number", "zone"])
        where = f"id % {self.random.randrange(5, 20)} = 1"
        lance_dataset.dataset(self.path).update({column: str(self.random.randrange(50))}, where)
        return f"update {column} {where}"

    def optimize(self) -> str:
        lance.dataset(self.path).optimize.optimize_indices(num_indices_to_merge=self.random.choice([0, 1, 5]))
        return "optimize"

    def compact_ours(self) -> str:
        target = self.random.choice([20, 40, 1000])
        lance_dataset.dataset(self.path).optimize.compact_files(target_rows_per_fragment=target)
        return f"compact to {target}"

    def compact_theirs(self) -> str:
        lance.dataset(self.path).optimize.compact_files(target_rows_per_fragment=self.random.choice([20, 1000]))
        return "compact theirs"

    def step(self) -> str:
        kinds = [self.append, self.delete, self.update, self.optimize, self.compact_ours, self.compact_theirs]
        return self.random.choices(kinds, [3, 3, 2, 2, 5, 1])[0]()

    def check(self) -> None:
        """Check that searches with indices find the same rows as searches without."""
        dataset = lance.dataset(self.path)
        for pattern in FILTERS:
            where = pattern.format(n=self.random.randrange(100), w=self.random.choice(WORDS))
            found, right = (
                dataset.scanner(columns=["id"], filter=where, use_scalar_index=use).to_table()["id"].to_pylist()
                for use in (True, False)
            )
            assert sorted(found) == sorted(right), where
        words = " ".join(self.random.sample(WORDS, 2))
        found = dataset.scanner(columns=["id"], full_text_query=words).to_table()["id"].to_pylist()
        if self.stable:  # after updates and optimize_indices the reference finds rows twice
            found = list(set(found))
        whole = dataset.to_table(columns=["id", "body"]).to_pylist()
        assert sorted(found) == sorted(
            row["id"] for row in whole if set((row["body"] or "").split()) & set(words.split())
        )
        query = np.random.default_rng(len(whole)).standard_normal(DIMENSION).astype(np.float32)
        near = {"column": "vector", "q": query, "k": 10, "nprobes": 2}
        found, right = (
            dataset.scanner(columns=["id"], nearest={**near, "use_index": use}).to_table()["id"].to_pylist()
            for use in (True, False)
        )
        if self.stable:  # deleted rows take places among the nearest in the reference, and are dropped afterwards
            right = [each for each in right if each in found or len(found) == len(right)]
        assert sorted(found) == sorted(right)
        ours = lance_dataset.dataset(self.path).to_table(columns=["id", "number"])
        assert ours.equals(dataset.to_table(columns=["id", "number"]))


@pytest.mark.parametrize("version", ["2.0", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_answers_stay_right(tmp_path: Path, seed: int, stable: bool, version: str) -> None:
    table = Indexed(tmp_path / "t", seed, stable=stable, version=version)
    done = []
    for _ in range(8):
        done.append(table.step())
        try:
            table.check()
        except BaseException as error:
            error.add_note(f"after {done}")
            raise
