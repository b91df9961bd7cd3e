"""Kinds of scalar indices that can be built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.index.scalar import (
    bitmap_training,
    bloom_filter_training,
    btree_training,
    fm_training,
    json_training,
    minhash_training,
    ngram_training,
    rtree_training,
    zone_map_training,
)
from lance_dataset.index.text.training import trainer as inverted_training
from lance_dataset.index.trainer import Trainer

__all__ = ["TRAINERS", "check_column", "trainer_of_kind", "trainer_of_plugin"]

#: Kinds of scalar indices, by the names that `IndexConfig` knows, which are also keys of `KINDS`.
TRAINERS: Final[Mapping[str, Trainer]] = {
    "btree": btree_training.TRAINER,
    "bitmap": bitmap_training.TRAINER,
    "labellist": bitmap_training.LABEL_LIST_TRAINER,
    "zonemap": zone_map_training.TRAINER,
    "bloomfilter": bloom_filter_training.TRAINER,
    "rtree": rtree_training.TRAINER,
    "ngram": ngram_training.TRAINER,
    "minhashlsh": minhash_training.TRAINER,
    "fm": fm_training.TRAINER,
    "inverted": inverted_training.TRAINER,
    "json": json_training.json_trainer(lambda name: trainer_of_plugin(name)),
}

#: Kinds that only an `IndexConfig` can name.
_PLUGINS_ONLY: Final = frozenset({"fm", "json"})


def check_column(trainer: Trainer, column: str, field: pa.Field) -> None:
    """Raise an error unless a column can have an index.

    Raises
    ------
    TypeError, InvalidInputError
        The type of the column does not fit.
    """
    kind = field.type
    if not trainer.fits_column(field):
        others = [each.name for each in TRAINERS.values() if each.fits(kind)]
        hint = f"; it can have {_listed(others)}" if others else ""
        raise trainer.misfit(f"{trainer.name} index column {column} must be {trainer.wanted}, not {kind}{hint}")


def trainer_of_kind(name: str) -> Trainer:
    """Return the trainer of a kind by the name that `create_scalar_index` takes, in any case.

    Raises
    ------
    UnsupportedError
        The kind is unknown.
    """
    named = {trainer.name: trainer for kind, trainer in TRAINERS.items() if kind not in _PLUGINS_ONLY}
    named["FTS"] = inverted_training.TRAINER
    trainer = named.get(name.upper())
    if trainer is not None:
        return trainer
    known = _listed([f'"{each}"' for each in named])
    raise UnsupportedError(f"Only {known} are supported for scalar columns. Received {name}")


def trainer_of_plugin(name: str) -> Trainer:
    """Return the trainer of a kind by the name that `IndexConfig` has, in any case.

    Raises
    ------
    InvalidInputError
        The kind is unknown.
    """
    trainer = TRAINERS.get(name.lower())
    if trainer is not None:
        return trainer
    raise InvalidInputError(f"No scalar index plugin found for name {name!r}; known are {_listed(sorted(TRAINERS))}")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
