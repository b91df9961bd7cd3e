"""Changes of all kinds made by the reference, and the tables they apply to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyroaring
from lance.fragment import DataFile, FragmentMetadata

Operation = lance.LanceOperation
Change = Callable[[lance.LanceDataset], object]


def table(start: int, stop: int) -> pa.Table:
    numbers = np.arange(start, stop)
    return pa.table(
        {
            "a": numbers,
            "b": numbers * 10,
            "s": pa.StructArray.from_arrays([pa.array(numbers), pa.array([f"n{i}" for i in numbers])], ["x", "y"]),
            "l": pa.array([[i, i + 1] for i in numbers]),
        }
    )


def commit(dataset: lance.LanceDataset, operation: Any) -> None:
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def fragments(dataset: lance.LanceDataset) -> list[FragmentMetadata]:
    return [fragment.metadata for fragment in dataset.get_fragments()]


def altered(fragment: FragmentMetadata, **changes: Any) -> FragmentMetadata:
    names = ("id", "files", "physical_rows", "deletion_file", "row_id_meta")
    names += ("created_at_version_meta", "last_updated_at_version_meta")
    return FragmentMetadata(**{name: getattr(fragment, name) for name in names} | changes)


def bitmap(*values: int) -> bytes:
    return pyroaring.BitMap(values).serialize()


def column_file(dataset: lance.LanceDataset, name: str, field: int, values: list[int]) -> DataFile:
    """Write a new data file with one column."""
    version = dataset.data_storage_version
    file = f"{name}-{len(list(Path(dataset.uri).glob('data/*')))}.lance"
    path = Path(dataset.uri, "data", file)
    path.parent.mkdir(exist_ok=True)
    with lance.file.LanceFileWriter(str(path), pa.schema([(name, pa.int64())]), version=version) as writer:
        writer.write_batch(pa.table({name: pa.array(values, pa.int64())}))
    major, minor = map(int, version.split("."))
    return DataFile(file, [field], [0], major, minor, path.stat().st_size)


def new_fragments(dataset: lance.LanceDataset, data: pa.Table, **options: Any) -> list[FragmentMetadata]:
    return lance.fragment.write_fragments(data, dataset.uri, mode="append", **options)


# -- changes -----------------------------------------------------------------------------------------------------------


def append(dataset: lance.LanceDataset) -> None:
    lance.write_dataset(table(100, 105), dataset, mode="append", max_rows_per_file=2)


def append_nothing(dataset: lance.LanceDataset) -> None:
    commit(dataset, Operation.Append([]))


def append_some_columns(dataset: lance.LanceDataset) -> None:
    lance.write_dataset(table(100, 105).select(["b"]), dataset, mode="append")


def append_with_reserved_ids(dataset: lance.LanceDataset) -> None:
    written = new_fragments(dataset, table(100, 104), max_rows_per_file=2)
    commit(dataset, Operation.Append([altered(each, id=90 + place) for place, each in enumerate(written)]))


def delete_rows(dataset: lance.LanceDataset) -> None:
    dataset.delete("a in (1, 5)")


def delete_fragments(dataset: lance.LanceDataset) -> None:
    dataset.delete("a < 5")


def delete_all(dataset: lance.LanceDataset) -> None:
    dataset.delete("true")


def delete_nothing(dataset: lance.LanceDataset) -> None:
    commit(dataset, Operation.Delete([], [77], "false"))


def overwrite(dataset: lance.LanceDataset) -> None:
    lance.write_dataset(table(0, 5).drop_columns(["s"]), dataset, mode="overwrite", max_rows_per_file=2)


def overwrite_with_nothing(dataset: lance.LanceDataset) -> None:
    commit(dataset, Operation.Overwrite(pa.schema({"z": pa.int8()}), []))


def update(dataset: lance.LanceDataset) -> None:
    dataset.update({"b": "b + 1"}, where="a in (1, 2, 5)")


def update_all(dataset: lance.LanceDataset) -> None:
    dataset.update({"b": "0"})


def update_twice(dataset: lance.LanceDataset) -> None:
    dataset.update({"b": "b + 1"}, where="a in (1, 2, 5)")
    dataset.update({"b": "b + 1"}, where="a in (2, 5, 6)")


def update_without_spilling(dataset: lance.LanceDataset) -> None:
    """Move rows whose lineage is in a hidden column to a fragment with its own lineage in the manifest."""
    dataset.update_config({"lance.row_lineage.spill": None})
    lance.dataset(dataset.uri).update({"b": "0"}, where="a in (1, 4, 6)")
    update_columns(lance.dataset(dataset.uri))


def merge_insert(dataset: lance.LanceDataset) -> None:
    insert = dataset.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
    insert.execute(table(5, 12))


def merge_insert_some_columns(dataset: lance.LanceDataset) -> None:
    dataset.merge_insert("a").when_matched_update_all().execute(pa.table({"a": [4, 1], "b": [1, 1]}))


def update_columns(dataset: lance.LanceDataset) -> None:
    fragment = dataset.get_fragments()[0]
    values = pa.table({"a": [0, 1], "b": [-1, -2]})
    changed, fields = fragment.update_columns(values, left_on="a", right_on="a")
    operation = Operation.Update(
        updated_fragments=[changed],
        fields_modified=fields,
        update_mode="rewrite_columns",
        updated_fragment_offsets={fragment.fragment_id: bitmap(0, 1)},
    )
    commit(dataset, operation)


def update_columns_without_offsets(dataset: lance.LanceDataset) -> None:
    changed, fields = dataset.get_fragments()[0].update_columns(pa.table({"a": [0], "b": [-1]}), "a", "a")
    commit(dataset, Operation.Update(updated_fragments=[changed], fields_modified=fields))


def update_of_gone_fragments(dataset: lance.LanceDataset) -> None:
    gone = altered(fragments(dataset)[0], id=99)
    commit(dataset, Operation.Update(removed_fragment_ids=[77], updated_fragments=[gone]))


def merge_columns(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"c": "a * 2"})


def merge_empty_column(dataset: lance.LanceDataset) -> None:
    dataset.add_columns(pa.schema([pa.field("d", pa.int32())]))


def cast(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"c": "a * 2"})
    dataset.alter_columns({"path": "c", "data_type": pa.int32()})


def merge_nothing(dataset: lance.LanceDataset) -> None:
    commit(dataset, Operation.Merge(fragments(dataset), dataset.lance_schema))


def project(dataset: lance.LanceDataset) -> None:
    dataset.drop_columns(["b"])


def project_nested(dataset: lance.LanceDataset) -> None:
    dataset.drop_columns(["s.x"])


def project_whole_files(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"c": "a * 2"})
    dataset.drop_columns(["c"])


def rename(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "b", "name": "bb"})


def make_required(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "b", "nullable": False})


def compact(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=1000)


def compact_by_two(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=6)


def restore(dataset: lance.LanceDataset) -> None:
    dataset.delete("a < 5")
    dataset.checkout_version(dataset.version - 1).restore()


def restore_first(dataset: lance.LanceDataset) -> None:
    dataset.checkout_version(1).restore()


def configure(dataset: lance.LanceDataset) -> None:
    dataset.update_config({"x": "1", "y": "2"})
    dataset.update_config({"z": "3", "y": None})
    dataset.delete_config_keys(["x"])


def configure_anew(dataset: lance.LanceDataset) -> None:
    dataset.update_config({"x": "1", "y": "2"})
    dataset.update_config({"z": "3"}, replace=True)


def all_metadata(dataset: lance.LanceDataset) -> None:
    dataset.update_metadata({"m": "1"})
    dataset.update_schema_metadata({"n": "2"})
    dataset.update_field_metadata({"s.x": {"o": "3"}, "a": {"o": "3"}})
    dataset.update_field_metadata({"s.x": {"p": "4", "o": None}}, replace=False)
    dataset.update_schema_metadata({"q": "2"}, replace=True)


def raw_metadata(dataset: lance.LanceDataset) -> None:
    change = Operation.UpdateMap({"a": "b", "c": None}, replace=True)
    commit(dataset, Operation.UpdateConfig(change, change, change, {0: change, 3: Operation.UpdateMap({"k": "v"})}))


def replace_part_of_a_file(dataset: lance.LanceDataset) -> None:
    fragment = dataset.get_fragments()[0]
    new = column_file(dataset, "b", 1, list(range(fragment.physical_rows)))
    commit(dataset, Operation.DataReplacement([Operation.DataReplacementGroup(fragment.fragment_id, new)]))


def replace_files(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"c": "a * 2"})
    field = dataset.lance_schema.field("c").id()
    dataset.create_scalar_index("c", "BTREE")
    group = Operation.DataReplacementGroup
    found = dataset.get_fragments()
    new = [group(each.fragment_id, column_file(dataset, "c", field, [7] * each.physical_rows)) for each in found[::2]]
    commit(dataset, Operation.DataReplacement(new))


def replace_nothing_there(dataset: lance.LanceDataset) -> None:
    dataset.add_columns(pa.schema([pa.field("d", pa.int64())]))
    field = dataset.lance_schema.field("d").id()
    fragment = dataset.get_fragments()[-1]
    new = column_file(dataset, "d", field, [7] * fragment.physical_rows)
    commit(dataset, Operation.DataReplacement([Operation.DataReplacementGroup(fragment.fragment_id, new)]))


def create_indices(dataset: lance.LanceDataset) -> None:
    dataset.create_scalar_index("s.x", "BTREE")
    dataset.create_scalar_index("b", "BITMAP", name="other")
    dataset.drop_index("other")


def index_segments(dataset: lance.LanceDataset) -> None:
    dataset.create_scalar_index("b", "BITMAP", name="parts")
    for start in (100, 200):
        lance.write_dataset(table(start, start + 3), dataset, mode="append")
        dataset = lance.dataset(dataset.uri)
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset.delete("a >= 100 and a < 200")
    dataset.delete("true")


CHANGES: list[Change] = [
    append,
    append_nothing,
    append_some_columns,
    append_with_reserved_ids,
    delete_rows,
    delete_fragments,
    delete_all,
    delete_nothing,
    overwrite,
    overwrite_with_nothing,
    update,
    update_all,
    update_twice,
    update_without_spilling,
    merge_insert,
    merge_insert_some_columns,
    update_columns,
    update_columns_without_offsets,
    update_of_gone_fragments,
    merge_columns,
    merge_empty_column,
    cast,
    merge_nothing,
    project,
    project_nested,
    project_whole_files,
    rename,
    make_required,
    compact,
    compact_by_two,
    restore,
    restore_first,
    configure,
    configure_anew,
    all_metadata,
    raw_metadata,
    replace_part_of_a_file,
    replace_files,
    replace_nothing_there,
    create_indices,
    index_segments,
]


# -- tables ------------------------------------------------------------------------------------------------------------


def plain(path: Path, **options: Any) -> None:
    lance.write_dataset(table(0, 9), path, max_rows_per_file=3, **options)


def indexed(path: Path, **options: Any) -> None:
    """Make a table with indices of row ids and of addresses; none covers the last fragment."""
    dataset = lance.write_dataset(table(0, 9), path, max_rows_per_file=3, **options)
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_scalar_index("b", "BITMAP")
    dataset.create_scalar_index("l", "LABEL_LIST")
    dataset.create_scalar_index("a", "ZONEMAP", name="zones")
    lance.write_dataset(table(9, 12), path, mode="append")


def with_deletions(path: Path, **options: Any) -> None:
    indexed(path, **options)
    lance.dataset(path).delete("a in (1, 3, 7, 11)")


def empty(path: Path, **options: Any) -> None:
    lance.write_dataset(table(0, 1).slice(0, 0), path, **options)


def of_all_versions(path: Path, **options: Any) -> None:
    for version in ("2.0", "2.2", "2.1"):
        dataset = lance.write_dataset(table(0, 3), path, mode="append", data_storage_version=version, **options)
    dataset.create_scalar_index("a", "BITMAP")


def cloned(path: Path, **options: Any) -> None:
    """Make a table whose files belong to another one."""
    source = path.with_name(f"{path.name} source")
    with_deletions(source, **options)
    lance.dataset(source).shallow_clone(path, reference=lance.dataset(source).version)


def legacy(path: Path, **options: Any) -> None:
    """Make a table of version 0.1, where files have no column indices."""
    lance.write_dataset(table(0, 9), path, max_rows_per_file=3, data_storage_version="0.1", **options)
    lance.dataset(path).create_scalar_index("a", "BTREE")
    lance.dataset(path).delete("a = 1")


def legacy_with_dictionary(path: Path, **options: Any) -> None:
    """Make a table of version 0.1 with a dictionary in the manifest."""
    names = pa.array(["p", "q", "p"] * 3).dictionary_encode()
    data = table(0, 9).append_column("names", names)
    lance.write_dataset(data, path, max_rows_per_file=3, data_storage_version="0.1", **options)


def spilled(path: Path, **options: Any) -> None:
    """Make a table whose moved row ids and versions are in hidden columns of data files."""
    plain(path, **options)
    dataset = lance.dataset(path)
    dataset.update_config({"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "1"})
    lance.dataset(path).update({"b": "b + 1"}, where="a in (1, 2, 4)")


#: With and without stable row ids.
TABLES: dict[Callable[..., None], list[bool]] = {
    empty: [True],
    indexed: [False, True],
    with_deletions: [False, True],
    of_all_versions: [True],
    cloned: [True],
    legacy: [False],
    legacy_with_dictionary: [True],
    spilled: [True],
}
