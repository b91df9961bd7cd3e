"""Tests of config, metadata and base paths: results and errors match the reference; each reads what the other wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.dataset import AutoCleanupConfig, DatasetBasePath
from lance_dataset.errors import CommitConflictError, FieldNotFoundError, InvalidInputError

DATA = pa.table(
    {"x": [1, 2], "s": pa.array([{"a": 1, "b": "q"}] * 2), "l": pa.array([[1], [2]]), "L": pa.array([[{"z": 1}], []])},
    schema=pa.schema(
        [
            pa.field("x", pa.int64(), metadata={"unit": "m"}),
            pa.field("s", pa.struct([("a", pa.int64()), ("b", pa.utf8())])),
            pa.field("l", pa.list_(pa.int64())),
            pa.field("L", pa.list_(pa.struct([("z", pa.int64())]))),
        ],
        metadata={"made": "here"},
    ),
)
MODULES = [lance, lance_dataset]
Step = Callable[[Any], Any]
STEPS: list[tuple[str, Step]] = [
    ("set", lambda ds: ds.update_config({"k": "v", "z": "1"})),
    ("remove", lambda ds: ds.update_config({"k": None, "unknown": None})),
    ("nothing", lambda ds: ds.update_config({})),
    ("replace", lambda ds: ds.update_config({"q": "1", "w": None}, replace=True)),
    ("delete", lambda ds: ds.delete_config_keys(["q", "unknown"])),
    ("replace by nothing", lambda ds: ds.update_config({}, replace=True)),
    ("metadata", lambda ds: ds.update_metadata({"k": "v", "w": "ü"})),
    ("metadata removed", lambda ds: ds.update_metadata({"k": None})),
    ("metadata replaced", lambda ds: ds.update_metadata({"a": "v"}, replace=True)),
    ("schema", lambda ds: ds.update_schema_metadata({"k": "v", "made": "there"})),
    ("schema removed", lambda ds: ds.update_schema_metadata({"k": None})),
    ("schema replaced", lambda ds: ds.update_schema_metadata({"k2": "v", "n": None}, replace=True)),
    ("field", lambda ds: ds.update_field_metadata({"x": {"k": "v"}, "s.a": {"q": "1"}})),
    ("field removed", lambda ds: ds.update_field_metadata({"x": {"unit": None}})),
    ("field replaced", lambda ds: ds.update_field_metadata({"x": {"z": "1", "y": None}}, replace=True)),
    ("item", lambda ds: ds.update_field_metadata({"l.item": {"z": "1"}, "L.item.z": {"deep": "1"}})),
    ("quoted", lambda ds: ds.update_field_metadata({"`s`.`b`": {"z": "1"}})),
    ("no field", lambda ds: ds.update_field_metadata({})),
    ("field unchanged", lambda ds: ds.update_field_metadata({"x": {}})),
    ("old schema call", lambda ds: ds.replace_schema_metadata({"o": "p"})),
    ("old field call", lambda ds: ds.replace_field_metadata("s.a", {"o": "p"})),
    ("enable", lambda ds: ds.optimize.enable_auto_cleanup({"interval": 100, "older_than_seconds": 90061})),
    ("disable", lambda ds: ds.optimize.disable_auto_cleanup()),
]


def state(dataset: Any) -> tuple[Any, ...]:
    fields = [(field.name, field.metadata) for field in dataset.schema]
    inner = [(dataset.schema.field("s").type.field(name).metadata) for name in ("a", "b")]
    item = dataset.schema.field("l").type.value_field.metadata
    deep = dataset.schema.field("L").type.value_type.field("z").metadata
    config, metadata = dataset.config(), dataset.metadata
    return config, metadata, dataset.schema_metadata, dataset.schema.metadata, fields, inner, item, deep


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_same_as_reference(tmp_path: Path) -> None:
    found: dict[Any, list[Any]] = {}
    for module in MODULES:
        path = str(tmp_path / module.__name__)
        dataset = module.write_dataset(DATA, path)
        for name, step in STEPS:
            before = dataset.version
            result = step(dataset)
            assert dataset.version == dataset.latest_version == before + 1, name
            readers = [state(dataset), *(state(reader.dataset(path)) for reader in MODULES)]
            assert readers[0] == readers[1] == readers[2], name
            found.setdefault(module, []).append((name, result, readers[0]))
    assert found[lance_dataset] == found[lance]


def test_transactions_are_the_same(tmp_path: Path) -> None:
    """The reference reads the operation that this package committed as equal to its own."""
    operations = []
    for module in MODULES:
        path = str(tmp_path / module.__name__)
        dataset = module.write_dataset(DATA, path)
        dataset.update_config({"a": "b", "c": None}, replace=True)
        dataset.update_config({"a": None, "c": "d"})
        dataset.update_metadata({"a": "b"})
        dataset.update_schema_metadata({"a": "b"}, replace=True)
        dataset.update_field_metadata({"s.b": {"a": "b", "c": None}, "x": {"q": "r"}})
        dataset.delete_config_keys(["y"])
        read = [lance.dataset(path).read_transaction(version).operation for version in range(2, 8)]
        operations.append([asdict(each) for each in read])
    assert operations[0] == operations[1]


@pytest.mark.parametrize(
    "step",
    [
        lambda ds: ds.update_config({"k": 1}),
        lambda ds: ds.update_config({1: "k"}),
        lambda ds: ds.update_config([("a", "b")]),
        lambda ds: ds.update_config(None),
        lambda ds: ds.delete_config_keys("abc"),
        lambda ds: ds.update_field_metadata({0: {"a": "b"}}),
        lambda ds: ds.update_field_metadata({"x": "a"}),
        lambda ds: ds.update_field_metadata({"x": {"a": 1}}),
        lambda ds: ds.add_bases(["/tmp/x"]),
    ],
)
def test_wrong_types(tmp_path: Path, step: Step) -> None:
    for module in MODULES:
        dataset = module.write_dataset(DATA, str(tmp_path / module.__name__))
        with pytest.raises(TypeError):
            step(dataset)
        assert dataset.latest_version == 1


@pytest.mark.parametrize("path", ["X", "nope", "s.nope", "x.y", "l.items", "", "s."])
def test_unknown_fields(tmp_path: Path, path: str) -> None:
    for module in MODULES:
        dataset = module.write_dataset(DATA, str(tmp_path / module.__name__))
        with pytest.raises(OSError):
            dataset.update_field_metadata({path: {"a": "b"}})
        assert dataset.latest_version == 1
    with pytest.raises(FieldNotFoundError, match=r"did you mean 's\.a'"):
        lance_dataset.dataset(str(tmp_path / "lance_dataset")).update_field_metadata({"s.A": {"a": "b"}})


def test_field_named_twice(tmp_path: Path) -> None:
    """Naming a field twice in one update raises an error; the reference drops one of the updates."""
    dataset = lance_dataset.write_dataset(DATA, str(tmp_path / "t"))
    name = dataset.schema.names[0]
    with pytest.raises(InvalidInputError, match="twice"):
        dataset.update_field_metadata({name: {"a": "b"}, f"`{name}`": {"c": "d"}})
    assert dataset.latest_version == 1


@pytest.mark.parametrize("name", ["replace_schema_metadata", "replace_field_metadata"])
def test_deprecated_calls_say_so(tmp_path: Path, name: str) -> None:
    dataset = lance_dataset.write_dataset(DATA, tmp_path / "a")
    arguments = ({"a": "b"},) if name == "replace_schema_metadata" else ("x", {"a": "b"})
    with pytest.warns(DeprecationWarning, match=name):
        getattr(dataset, name)(*arguments)


# -- concurrent changes ------------------------------------------------------------------------------------------------

CONCURRENT: list[tuple[str, Step, Step, bool]] = [
    ("other keys", lambda ds: ds.update_config({"a": "1"}), lambda ds: ds.update_config({"b": "1"}), True),
    ("same key", lambda ds: ds.update_config({"a": "1"}), lambda ds: ds.update_config({"a": "2"}), False),
    ("removed", lambda ds: ds.update_config({"a": None}), lambda ds: ds.update_config({"a": "2"}), False),
    ("both removed", lambda ds: ds.update_config({"a": None}), lambda ds: ds.update_config({"a": None}), True),
    ("same metadata", lambda ds: ds.update_metadata({"a": "1"}), lambda ds: ds.update_metadata({"a": "2"}), False),
    ("other metadata", lambda ds: ds.update_metadata({"a": "1"}), lambda ds: ds.update_metadata({"b": "2"}), True),
    ("config, metadata", lambda ds: ds.update_config({"a": "1"}), lambda ds: ds.update_metadata({"a": "2"}), True),
    (
        "schema",
        lambda ds: ds.update_schema_metadata({"a": "1"}),
        lambda ds: ds.update_schema_metadata({"b": "2"}),
        False,
    ),
    (
        "same field",
        lambda ds: ds.update_field_metadata({"x": {"a": "1"}}),
        lambda ds: ds.update_field_metadata({"x": {"b": "1"}}),
        False,
    ),
    (
        "other field",
        lambda ds: ds.update_field_metadata({"x": {"a": "1"}}),
        lambda ds: ds.update_field_metadata({"s.a": {"a": "1"}}),
        True,
    ),
]


@pytest.mark.parametrize(
    ("first", "second", "together"), [case[1:] for case in CONCURRENT], ids=[c[0] for c in CONCURRENT]
)
@pytest.mark.parametrize("winner", MODULES, ids=lambda module: module.__name__)
def test_concurrent_changes(tmp_path: Path, winner: Any, first: Step, second: Step, together: bool) -> None:
    path = str(tmp_path / "table")
    lance.write_dataset(DATA, path).update_config({"a": "0"})
    stale = {module: module.dataset(path) for module in MODULES}
    first(winner.dataset(path))
    if together:
        second(stale[lance_dataset])
        assert stale[lance_dataset].version == 4
        lance_dataset.write_dataset(DATA, path, mode="append")
        assert lance.dataset(path).count_rows() == 4
        return
    with pytest.raises(CommitConflictError) as ours:
        second(stale[lance_dataset])
    assert not ours.value.retryable
    with pytest.raises(OSError, match="ncompatible transaction"):
        second(stale[lance])
    assert lance.dataset(path).version == 3


# -- base paths --------------------------------------------------------------------------------------------------------


def bases(dataset: Any) -> list[tuple[Any, ...]]:
    found = dataset.base_paths()
    assert all(number == base.id for number, base in found.items())
    return sorted((base.id, base.name, base.path, base.is_dataset_root) for base in found.values())


def test_base_paths(tmp_path: Path) -> None:
    found = []
    for module, kind in ((lance, lance.DatasetBasePath), (lance_dataset, DatasetBasePath)):
        path = str(tmp_path / module.__name__)
        dataset = module.write_dataset(DATA, path)
        assert dataset.base_paths() == {}
        assert dataset.add_bases([kind("/data/one", name="one")], {"who": "me"}) is dataset
        dataset.add_bases([kind("/data/seven", "seven", True, 7)])
        dataset.add_bases([kind("s3://bucket/x"), kind("/data/four", name="four")])
        for taken in (kind("/data/other", name="one"), kind("/data/seven"), kind("/data/new", id=7)):
            with pytest.raises(ValueError, match=r"Conflict detected|already"):
                dataset.add_bases([taken])
        with pytest.raises(ValueError, match="Conflict detected"):
            dataset.add_bases([kind("/data/a", name="twice"), kind("/data/b", name="twice")])
        assert dataset.version == dataset.latest_version == 4
        assert bases(dataset) == bases(lance.dataset(path)) == bases(lance_dataset.dataset(path))
        assert lance.dataset(path).read_transaction(2).transaction_properties == {"who": "me"}
        found.append(bases(dataset))
    assert found[0] == found[1]


def test_base_path_values() -> None:
    base = DatasetBasePath("/a", id=None)
    assert (base.path, base.name, base.is_dataset_root, base.id) == ("/a", None, False, 0)
    assert base == DatasetBasePath("/a")
    with pytest.raises(AttributeError):
        base.path = "/b"  # type: ignore[misc]
    with pytest.raises(TypeError):
        DatasetBasePath(3)  # type: ignore[arg-type]


def test_concurrent_bases(tmp_path: Path) -> None:
    first = lance_dataset.write_dataset(DATA, tmp_path / "a")
    second = lance_dataset.dataset(tmp_path / "a")
    third = lance_dataset.dataset(tmp_path / "a")
    first.add_bases([DatasetBasePath("/data/one", name="one")])
    second.add_bases([DatasetBasePath("/data/two", name="two")])
    with pytest.raises(OSError):
        third.add_bases([DatasetBasePath("/data/three", name="one")])
    assert [base.name for base in lance.dataset(str(tmp_path / "a")).base_paths().values()].count("one") == 1
    assert len(second.base_paths()) == 2


# -- automatic cleanup -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"interval": 3},
        {"older_than_seconds": 1},
        {"interval": 0, "older_than_seconds": 0},
        {"interval": 3, "older_than_seconds": 90061},
        {"interval": 1, "older_than_seconds": 400 * 86400},
        AutoCleanupConfig(interval=5, older_than_seconds=59),
        None,
    ],
    ids=str,
)
def test_options_of_new_datasets(tmp_path: Path, options: Any) -> None:
    found = []
    for module in MODULES:
        path = str(tmp_path / module.__name__)
        found.append(module.write_dataset(DATA, path, auto_cleanup_options=options).config())
        assert lance.dataset(path).config() == lance_dataset.dataset(path).config() == found[-1]
        # The options apply to new datasets only.
        for mode in ("overwrite", "append"):
            again = module.write_dataset(DATA, path, mode=mode, auto_cleanup_options={"interval": 77})
            assert again.config() == found[-1]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"interval": -1}, InvalidInputError),
        ({"intervall": 1}, InvalidInputError),
        ({"interval": "1"}, TypeError),
        ({"older_than_seconds": 1.5}, TypeError),
        ("x", TypeError),
    ],
)
def test_wrong_options(tmp_path: Path, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        lance_dataset.write_dataset(DATA, tmp_path / "a", auto_cleanup_options=options)
    assert not list(tmp_path.iterdir())


def test_enabling_needs_both(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(DATA, tmp_path / "a")
    with pytest.raises(InvalidInputError, match="older_than_seconds"):
        dataset.optimize.enable_auto_cleanup({"interval": 3})  # type: ignore[typeddict-item]
    with pytest.raises(TypeError, match="retain"):
        dataset.optimize.enable_auto_cleanup(AutoCleanupConfig(interval=3, older_than_seconds=1), retain_versions=3)


def test_base_paths_that_differ_in_a_slash(tmp_path: Path) -> None:
    first = lance_dataset.write_dataset(DATA, f"{tmp_path}/t")
    second = lance_dataset.dataset(f"{tmp_path}/t")
    first.add_bases([lance_dataset.DatasetBasePath(f"{tmp_path}/q")])
    with pytest.raises(lance_dataset.errors.CommitConflictError):
        second.add_bases([lance_dataset.DatasetBasePath(f"{tmp_path}/q/")])
    with pytest.raises(ValueError, match="Conflict detected"):
        first.add_bases([lance_dataset.DatasetBasePath(f"{tmp_path}/q/")])
