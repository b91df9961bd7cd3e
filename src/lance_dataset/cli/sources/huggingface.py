"""Parquet files of a data set of Hugging Face, whose names or folders say the split that they belong to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from lance_dataset.errors import InvalidInputError

__all__ = ["FEATURES", "SPLIT", "has_named_splits", "splits_of"]

#: Column of the splits.
SPLIT = "split"
#: Key of the schema under which Hugging Face keeps the kinds of columns.
FEATURES = b"huggingface"
_SHARD = re.compile(r"(?P<split>\w+(\.\w+)*)-\d{5}-of-\d{5}(-[0-9a-f]+)?\.parquet")
_CONVERTED = re.compile(r"\d{4,}\.parquet")


def has_named_splits(files: Sequence[Path]) -> bool:
    """Return whether all files are named as Hugging Face does: ``train-00000-of-00002.parquet``."""
    return bool(files) and all(_SHARD.fullmatch(file.name) for file in files)


def splits_of(files: Sequence[Path]) -> list[dict[str, pa.Scalar]]:
    """Return the column that each file belongs to, as a constant.

    The split is in the name, ``train-00000-of-00002.parquet``, or is the folder of ``train/0000.parquet``.

    Raises
    ------
    InvalidInputError
        A file is not named like this.
    """
    return [{SPLIT: pa.scalar(_split(file), pa.string())} for file in files]


def _split(file: Path) -> str:
    if found := _SHARD.fullmatch(file.name):
        return found["split"]
    if _CONVERTED.fullmatch(file.name) and file.parent.name:
        return file.parent.name.removeprefix("partial-")
    raise InvalidInputError(
        f"{file}: expected a name such as train-00000-of-00002.parquet, or train/0000.parquet; import other Parquet "
        "files with --format parquet"
    )
