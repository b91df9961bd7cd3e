"""A dataset to damage, with everything that a dataset can have, and what must be left of it after a repair."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_dataset

__all__ = ["Damage", "DatasetToDamage", "damage_at_random", "files_below"]

_ROWS = 300


@dataclass
class DatasetToDamage:
    """A dataset that can be put back into its first state.

    It stays at one place, as its branches name the place of the files that they share with the main one.

    Attributes
    ----------
    path
        The dataset.
    rows
        Rows of the newest version of each branch by fragment: values of the column ``id``.
    data_files
        Fragment of each data file, by its path below the dataset.
    """

    path: Path
    rows: dict[str | None, dict[int, list[int]]] = field(default_factory=dict)
    data_files: dict[str, int] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path) -> DatasetToDamage:
        """Write the dataset and a copy of it."""
        path = folder / "whole"
        dataset = lance_dataset.write_dataset(_table(0), path, max_rows_per_file=100)
        dataset.tags.create("first", 1)
        dataset.create_scalar_index("id", "BTREE")
        dataset.create_scalar_index("name", "INVERTED")
        dataset.delete("id in (3, 7)")
        dataset.add_columns({"double": "id * 2"})
        side = dataset.create_branch("side")
        side.delete("id = 5")
        side.insert(_table(5000))
        side.create_branch("side/inner").delete("id = 11")
        dataset.insert(_table(1000))
        dataset.create_index("vector", "IVF_PQ", num_partitions=2, num_sub_vectors=2)
        dataset.delete("id = 1001")
        dataset.tags.create("late", dataset.version)
        shutil.copytree(path, folder / "copy")
        made = cls(path)
        for branch in (None, "side", "side/inner"):
            made.rows[branch] = made.rows_of(branch)
            for fragment in made.open(branch).get_fragments():
                for file in fragment.metadata.files:
                    made.data_files[made.place(branch, file)] = fragment.fragment_id
        return made

    def restore(self) -> Path:
        """Put the dataset back into its first state."""
        shutil.rmtree(self.path)
        shutil.copytree(self.path.parent / "copy", self.path)
        return self.path

    def open(self, branch: str | None = None) -> lance_dataset.LanceDataset:
        """Open the newest version of a branch, with a new session."""
        dataset = lance_dataset.dataset(self.path)
        return dataset if branch is None else dataset.checkout_version((branch, None))

    def place(self, branch: str | None, file: lance_dataset.fragment.DataFile) -> str:
        """Return the path of a data file below the dataset."""
        if file.base_id is not None:
            base = self.open(branch).base_paths()[file.base_id].path
            return f"{Path(base).relative_to(self.path)}/data/{file.path}".removeprefix("./")
        return f"data/{file.path}" if branch is None else f"tree/{branch}/data/{file.path}"

    def rows_of(self, branch: str | None) -> dict[int, list[int]]:
        """Return the rows of the newest version of a branch by fragment."""
        found = self.open(branch).to_table(columns=["id"], with_row_address=True)
        rows: dict[int, list[int]] = {}
        fragments = (found["_rowaddr"].to_numpy() >> np.uint64(32)).tolist()
        for value, fragment in zip(found["id"].to_pylist(), fragments, strict=True):
            rows.setdefault(fragment, []).append(value)
        return rows


@dataclass(frozen=True)
class Damage:
    """Damage of a file."""

    name: str
    kind: str


def damage_at_random(path: Path, choice: random.Random) -> Damage:
    """Remove, empty, cut or clear a file of a dataset, or add an old one that nothing refers to."""
    files = {file: (path / file).read_bytes() for file in files_below(path)}
    if choice.random() < 0.05:
        name = f"data/{choice.getrandbits(80):040b}"[:30] + "0123456789abcdef.lance"
        (path / name).write_bytes(b"orphan")
        return Damage(name, "add")
    groups: dict[str, list[str]] = {}
    for name in files:
        groups.setdefault("_indices" if "_indices" in name else str(Path(name).parent), []).append(name)
    name = choice.choice(groups[choice.choice(sorted(groups))])
    kinds = ["remove", "empty", "cut"] + (["clear"] if "_indices" not in name else [])
    if name.endswith(".manifest") or "_refs" in name:
        kinds.remove("remove")  # what is gone without a trace does not damage what stays
    kind = choice.choice(kinds)
    content = files[name]
    if kind == "remove":
        (path / name).unlink()
    else:
        changed = {"empty": b"", "cut": content[: len(content) // 2], "clear": bytes(len(content))}
        (path / name).write_bytes(changed[kind])
    return Damage(name, kind)


def files_below(path: Path) -> list[str]:
    """Return the paths of all files below a folder."""
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def _table(start: int) -> pa.Table:
    ids = list(range(start, start + _ROWS))
    vectors = np.random.default_rng(start).random(_ROWS * 4, np.float32)
    return pa.table(
        {
            "id": ids,
            "name": [f"word{each % 17} name{each}" for each in ids],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 4),
            **({} if start == 0 else {"double": [2 * each for each in ids]}),
        }
    )
