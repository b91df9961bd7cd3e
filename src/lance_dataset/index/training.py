"""Kinds of scalar indices that can be built: columns that fit, parameters, format versions, and the training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from lance_dataset.errors import InvalidIndexError, InvalidInputError, UnsupportedError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.scalar import bitmap_training, btree_training
from lance_dataset.index.scalar.btree import DEFAULT_PAGE_ROWS, open_lookup, page_rows

__all__ = ["TRAINERS", "Trainer", "Training", "trainer_of_kind", "trainer_of_plugin"]


@dataclass(frozen=True)
class Training:
    """One segment that is to be written.

    Attributes
    ----------
    entries
        Values and rows in storage order, see `lance_dataset.index.scalar.sorting.entry_schema`.
    kind
        Type of the values.
    target
        Folder of the files.
    parameters
        Parameters of the kind of index, complete and checked.
    memory_limit
        Maximum number of bytes to work with, approximately.
    """

    entries: Iterable[pa.RecordBatch]
    kind: pa.DataType
    target: NewIndexFolder
    parameters: Mapping[str, Any]
    memory_limit: int


@dataclass(frozen=True)
class Trainer:
    """Training of the indices of one kind.

    Attributes
    ----------
    name
        Name for messages.
    type_url
        Type of the details in the manifest.
    fits
        Returns True for types of columns that can have such an index.
    wanted
        Description of these types.
    write
        Writes the files of a segment; returns the value of the details.
    parameters
        Default value of each parameter.
    version, stable_version
        Format version of tables without and with stable row ids.
    uses_addresses
        True if entries have the addresses of rows even if the table has stable row ids.
    read_parameters
        Returns the parameters of an existing index; None if the kind has none.
    """

    name: str
    type_url: str
    fits: Callable[[pa.DataType], bool]
    wanted: str
    write: Callable[[Training], bytes]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0
    stable_version: int = 0
    uses_addresses: bool = False
    read_parameters: Callable[[IndexFolder], Mapping[str, Any]] | None = None

    def check_column(self, column: str, kind: pa.DataType) -> None:
        """Raise an error unless a column can have such an index.

        Raises
        ------
        TypeError
            The type of the column does not fit.
        """
        if not self.fits(kind):
            others = [each.name for each in TRAINERS.values() if each.fits(kind)]
            hint = f"; it can have {_listed(others)}" if others else ""
            raise TypeError(f"{self.name} index column {column} must be {self.wanted}, not {kind}{hint}")

    def checked(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters, checked. Those of other kinds of indices are ignored, as in the reference.

        Raises
        ------
        InvalidIndexError
            A parameter has the wrong type or is out of range.
        """
        found = dict(self.parameters)
        for name in found.keys() & parameters.keys():
            value = parameters[name]
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 32:
                raise InvalidIndexError(f"{name} of a {self.name} index must be a positive number, not {value!r}")
            found[name] = value
        return found

    def parameters_of(self, folder: IndexFolder) -> dict[str, Any]:
        """Return the parameters that an existing index was built with."""
        return {**self.parameters, **({} if self.read_parameters is None else self.read_parameters(folder))}


def _is_ordered(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_temporal,
    )
    return any(test(kind) for test in tests) and not pa.types.is_interval(kind)


def _is_list(kind: pa.DataType) -> bool:
    return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _is_ordered(kind.value_type)


def _btree_parameters(folder: IndexFolder) -> Mapping[str, Any]:
    return {"zone_size": page_rows(open_lookup(folder))}


def _write_btree(work: Training) -> bytes:
    btree_training.train(work.entries, work.kind, work.target, work.parameters["zone_size"], work.memory_limit)
    return b""


def _write_bitmap(work: Training) -> bytes:
    bitmap_training.train(work.entries, work.kind, work.target, work.memory_limit)
    return b""


def _write_label_list(work: Training) -> bytes:
    bitmap_training.train_label_list(work.entries, work.kind, work.target, work.memory_limit)
    return b""


_ORDERED: Final = "int, float, bool, str, large_str, binary, large_binary, decimal, fixed-size-binary, or temporal"

#: Kinds of scalar indices, by the names that `IndexConfig` knows.
TRAINERS: Final[Mapping[str, Trainer]] = {
    "btree": Trainer(
        "BTREE",
        "/lance.table.BTreeIndexDetails",
        _is_ordered,
        _ORDERED,
        _write_btree,
        {"zone_size": DEFAULT_PAGE_ROWS},
        stable_version=1,
        uses_addresses=True,
        read_parameters=_btree_parameters,
    ),
    "bitmap": Trainer("BITMAP", "/lance.table.BitmapIndexDetails", _is_ordered, _ORDERED, _write_bitmap),
    "labellist": Trainer(
        "LABEL_LIST",
        "/lance.table.LabelListIndexDetails",
        _is_list,
        "a list or large list",
        _write_label_list,
        version=1,
        stable_version=1,
    ),
}

#: Kinds of the reference that this release reads and keeps up to date, but does not build.
_NOT_BUILT: Final = frozenset(
    {"ngram", "zonemap", "bloomfilter", "inverted", "fts", "rtree", "minhashlsh", "json", "fm"}
)


def trainer_of_kind(name: str) -> Trainer:
    """Return the trainer of a kind by the name that `create_scalar_index` takes, in any case.

    Raises
    ------
    UnsupportedError
        The kind is unknown, or this release does not build it.
    """
    for trainer in TRAINERS.values():
        if trainer.name == name.upper():
            return trainer
    known = _listed([f'"{trainer.name}"' for trainer in TRAINERS.values()])
    reason = "Received" if name.lower() not in _NOT_BUILT else "This release does not build"
    raise UnsupportedError(f"Only {known} are supported for scalar columns. {reason} {name}")


def trainer_of_plugin(name: str) -> Trainer:
    """Return the trainer of a kind by the name that `IndexConfig` has, in any case.

    Raises
    ------
    InvalidInputError
        The kind is unknown.
    UnsupportedError
        This release does not build it.
    """
    trainer = TRAINERS.get(name.lower())
    if trainer is not None:
        return trainer
    if name.lower() in _NOT_BUILT:
        raise UnsupportedError(f"this release does not build indices of the kind {name}")
    raise InvalidInputError(f"No scalar index plugin found for name {name!r}; known are {_listed(sorted(TRAINERS))}")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
