"""Row lineage that is stored as a hidden column of one of a fragment's data files."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.reader import open_fragment_column, open_metadata
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.paths import FileLocator
from lance_dataset.types.schema import Field

__all__ = ["HIDDEN_FIELDS", "read_hidden_column"]

#: Field ids of the hidden columns, by the names of the sequences of a `Fragment`.
HIDDEN_FIELDS = {"row_ids": -3, "created_at_versions": -4, "last_updated_at_versions": -5}


def read_hidden_column(locator: FileLocator, fragment: Fragment, name: str) -> NDArray[np.uint64]:
    """Read the values of a hidden column, one per physical row.

    Parameters
    ----------
    locator
        Finds the files.
    fragment
        The fragment.
    name
        Name of the sequence: ``row_ids``, ``created_at_versions`` or ``last_updated_at_versions``.

    Raises
    ------
    CorruptFileError
        Not exactly one file has the column, or it has nulls.
    """
    where, field_id = f"fragment {fragment.id}: {name}", HIDDEN_FIELDS[name]
    held = [(file, index) for file in fragment.files for found, index in file.columns if found == field_id]
    if len(held) != 1:
        raise CorruptFileError(f"{where}: expected it as a column of one data file, found it in {len(held)}")
    file, index = held[0]
    if index < 0 or file.is_legacy:
        raise CorruptFileError(f"{where}: data file {file.path!r} has no column for it")
    store, path = locator.data_file(file)
    source = store.open_input(path)
    try:
        opened = open_metadata(source, file.fields, legacy=False)
        field = Field(name, field_id, "uint64", nullable=False)
        column = open_fragment_column(field, {field_id: (opened, index)}, fragment.physical_rows)
        values = column.read(0, fragment.physical_rows)
    finally:
        source.close()
    if values.null_count:
        raise CorruptFileError(f"{where}: the column in data file {file.path!r} has nulls")
    return np.array(values.to_numpy(), dtype=np.uint64)
