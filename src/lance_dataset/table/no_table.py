"""Description of what lies at a place where a table was expected, for error messages."""

from __future__ import annotations

from itertools import islice

from lance_dataset.errors import DatasetNotFoundError, LanceError, nearest_name_hint
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.uris import has_scheme
from lance_dataset.table.naming import VERSIONS_FOLDER

__all__ = ["no_table"]

_KINDS = {
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".csv", ".tsv"), "CSV"),
    **dict.fromkeys((".json", ".ndjson", ".jsonl"), "JSON"),
    **dict.fromkeys((".arrow", ".feather", ".arrows", ".ipc"), "Arrow"),
}
#: Files of these kinds can be imported.
_IMPORT = "write it into a dataset first: `lance-dataset import {path} NEW.lance`, or write_dataset(..., 'NEW.lance')"
_NAMES = 1000


def no_table(store: ObjectStore, root: str) -> DatasetNotFoundError:
    """Make the error for a place without a table. It says what else is there, as far as that helps."""
    text = f"Dataset at path {store.uri(root)} was not found"
    try:
        found = _found(store, root)
    except (LanceError, OSError):
        found = ""
    return DatasetNotFoundError(f"{text}{found}")


def _found(store: ObjectStore, root: str) -> str:
    name = root.rpartition("/")[2]
    if store.exists(root):
        kind = _kind(name)
        if kind is not None:
            return f": it is a {kind} file; " + _IMPORT.format(path=name)
        if name.endswith(".lance"):
            return ": it is a single Lance file; read it with lance_dataset.file.LanceFileReader"
        return ": it is a file, and a dataset is a folder"
    names = sorted(islice(store.list_names(root), _NAMES))
    kinds = sorted({kind for each in names if (kind := _kind(each)) is not None})
    tables = [each for each in names if each.endswith(".lance")]
    outer = _outer_table(store, root)
    if outer:
        return f": it is a folder of the dataset {store.uri(outer)}"
    if kinds:
        return f": it is a folder of {' and '.join(kinds)} files; " + _IMPORT.format(path=name)
    if tables:
        return f": it is a folder with {', '.join(tables[:5])}; add the name of one of them to the path"
    if names:
        return ": it is a folder without a dataset"
    return _similar(store, root)


def _kind(name: str) -> str | None:
    plain = name.lower().removesuffix(".gz")
    return next((kind for suffix, kind in _KINDS.items() if plain.endswith(suffix)), None)


def _outer_table(store: ObjectStore, root: str) -> str:
    """Return the nearest folder above that is a table, empty if there is none."""
    folder = root
    for _ in range(3):
        folder = folder.rpartition("/")[0]
        if folder and any(True for _ in store.list_names(f"{folder}/{VERSIONS_FOLDER}")):
            return folder
    return ""


def _similar(store: ObjectStore, root: str) -> str:
    """Suggest a name beside the given one, on local disks."""
    folder, _, name = root.rpartition("/")
    if has_scheme(store.uri(root)):
        return ""
    names = [each for each in islice(store.list_names(folder), _NAMES) if each != name]
    hint = nearest_name_hint(name, names)
    return hint if "did you mean" in hint else ""
