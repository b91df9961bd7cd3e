"""Check of the recall of a vector index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError

if TYPE_CHECKING:
    from lance_dataset.api.dataset.dataset import LanceDataset

__all__ = ["validate_vector_index"]

_SAMPLE = 100


def validate_vector_index(
    dataset: LanceDataset,
    column: str,
    refine_factor: int = 5,
    sample_size: int | None = None,
    pass_threshold: float = 1.0,
) -> None:
    """Search for vectors of the table, and raise an error if too few of them are found.

    Parameters
    ----------
    dataset
        The dataset.
    column
        Name of the column.
    refine_factor
        See `nearest`.
    sample_size
        Number of vectors to search for; None for 100, or all if there are fewer.
    pass_threshold
        Part of them that must be the nearest vector to themselves.

    Raises
    ------
    KeyError
        The column does not exist.
    ValueError
        Too few of them are, or there are no vectors.
    """
    if column not in dataset.schema.names:
        raise KeyError(f'Field "{column}" does not exist in schema')
    rows = dataset.count_rows()
    wanted = min(_SAMPLE if sample_size is None else checked_integer("sample_size", sample_size), rows)
    numbers = np.sort(np.random.default_rng().choice(rows, wanted, replace=False)).tolist() if wanted else []
    values = dataset.take(numbers, columns=[column])[column].to_pylist()
    vectors = [each for each in values if each is not None and np.isfinite(each).all()]
    if not vectors:
        raise InvalidInputError("there are no vectors to search for")
    passed = 0
    for vector in vectors:
        query = {"column": column, "q": vector, "k": 1, "nprobes": 1, "refine_factor": refine_factor}
        found = dataset.to_table(columns=[column], nearest=query)[column].to_pylist()
        passed += found == [vector]
    if passed / len(vectors) < pass_threshold:
        raise InvalidInputError(f"Vector index failed sanity check, only {passed / len(vectors):.1%} passed")
