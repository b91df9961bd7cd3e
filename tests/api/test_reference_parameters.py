"""Every public name, member, parameter and default of the reference beside ours, found by inspection at run time.

The tables below name all that differs, each with its reason. What is equal must not be in them.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import lance

#: Names that do not belong to an interface: imports for type checkers, and constants of the language.
_LANGUAGE = {"TYPE_CHECKING", "annotations"}
_MADE_INSIDE = "instances are made by the package only, each from its own parts"
_ATTRIBUTE = "an attribute that instances have"
_COMPILED = "a compiled object that the reference wraps, which does not exist here"
_VALUE = "None stands for the default of the reference"
_RENAMED = "the name of this package"

#: Modules of the reference without a counterpart.
NO_MODULES = {
    "lance.conftest": "fixtures of the reference's own tests",
    "lance.dependencies": "lazy imports of the reference",
    "lance.lance": "the compiled module; what is public in it is also in a module of Python",
}

#: Names that do not exist here.
NO_NAMES = {
    "lance.blob.LanceBlobFile": _COMPILED,
    "lance.dataset.Bitmap": "re-exported; lance_dataset.bitmap has it",
    "lance.dataset.PySearchFilter": _COMPILED,
    "lance.dataset.model_to_dict": "lazy import of pydantic",
    "lance.fragment.Bitmap": "re-exported; lance_dataset.bitmap has it",
    "lance.namespace.PyDirectoryNamespace": _COMPILED,
    "lance.namespace.PyRestAdapter": _COMPILED,
    "lance.namespace.PyRestNamespace": _COMPILED,
    "lance.pydantic.CoreSchema": "a type of pydantic",
    "lance.query.PyFullTextQuery": _COMPILED,
    "lance.sampler.PrioritizedItem": "an item of the heap inside reservoir_sampling",
    "lance.sampler.T": "a type variable",
    "lance.torch.async_dataset.LOGGER": "a logger; that of this package is lance_dataset.log.LOGGER",
    "lance.torch.bench_utils.PytorchLanceDataset": "re-exported; lance_dataset.torch.data.LanceDataset is it",
    "lance.torch.data.CachedDataset": "a private class of the reference",
    "lance.torch.data.get_global_rank": "re-exported; lance_dataset.torch.dist has it",
    "lance.torch.data.get_global_world_size": "re-exported; lance_dataset.torch.dist has it",
    "lance.torch.distance.LOGGER": "a logger; that of this package is lance_dataset.log.LOGGER",
    "lance.torch.kmeans.LOGGER": "a logger; that of this package is lance_dataset.log.LOGGER",
    "lance.torch.kmeans.TensorDataset": "re-exported; lance_dataset.torch.data has it",
    "lance.types.model_to_dict": "lazy import of pydantic",
    "lance.vector.CUDA_REGEX": "a pattern for the names of accelerators",
}

#: Members and parameters that differ: ``owner.member(parameter)`` or ``owner.member``. A star stands for any name.
DIFFERENT: dict[str, str] = {
    "lance.DedicatedBlobWriter.blob_id": _ATTRIBUTE,
    "lance.DedicatedBlobWriter.path": _ATTRIBUTE,
    "lance.ExecutionPlan(_raw)": _MADE_INSIDE,
    "lance.LanceDataset(*)": "lance_dataset.dataset takes what is missing; options are given by name",
    "lance.LanceDataset.to_pandas(*)": "takes what to_table takes; options are given by name",
    "lance.LanceFragment.to_pandas(*)": "takes what to_table takes; options are given by name",
    "lance.LanceScanner(*)": _MADE_INSIDE,
    "lance.LsmScanner(_raw)": _MADE_INSIDE,
    "lance.MergeInsertBuilder(base _MergeInsertBuilder)": _COMPILED,
    "lance.PackedBlobWriter.blob_id": _ATTRIBUTE,
    "lance.PackedBlobWriter.path": _ATTRIBUTE,
    "lance.ShardWriter(_raw)": _MADE_INSIDE,
    "lance.arrow.EncodedImageType(storage_type)": _VALUE,
    "lance.arrow.FixedShapeImageTensorArray.to_encoded(storage_type)": _VALUE,
    "lance.arrow.ImageURIArray.read_uris(storage_type)": _VALUE,
    "lance.arrow.ImageURIType(storage_type)": _VALUE,
    "lance.arrow.PandasBFloat16Array.to_numpy(*)": "pandas names the parameters",
    "lance.bitmap.Bitmap.difference(*)": "it takes any number of sets",
    "lance.bitmap.Bitmap.intersection(*)": "it takes any number of sets",
    "lance.bitmap.Bitmap.union(*)": "it takes any number of sets",
    "lance.bitmap.Bitmap.update(*)": "it takes any number of sets",
    "lance.blob.BlobIterator(binary_iter)": _MADE_INSIDE,
    "lance.dataset.Branches(dataset)": _MADE_INSIDE,
    "lance.dataset.DatasetDelta(delta)": _MADE_INSIDE,
    "lance.dataset.FullTextQuery.inner": _COMPILED,
    "lance.dataset.LanceStats(dataset)": _MADE_INSIDE,
    "lance.dataset.SqlQuery(query)": _MADE_INSIDE,
    "lance.dataset.SqlQueryBuilder(builder)": _MADE_INSIDE,
    "lance.dataset.Tags(dataset)": _MADE_INSIDE,
    "lance.dataset.VectorSearchQuery.inner": _COMPILED,
    "lance.file.LanceFileReader(_inner_reader)": _COMPILED,
    "lance.file.LanceFileWriter(**kwargs)": _COMPILED,
    "lance.file.LanceFileWriter(_inner_writer)": _COMPILED,
    "lance.file.ReaderResults(reader)": _MADE_INSIDE,
    "lance.fragment.FragmentSession(session)": _MADE_INSIDE,
    "lance.fragment.RowIdMeta.from_dict(dict)": "the name of a type of Python",
    "lance.log.set_logger(*)": _RENAMED,
    "lance.optimize.CompactionPlan.read_version": _ATTRIBUTE,
    "lance.optimize.CompactionPlan.tasks": _ATTRIBUTE,
    "lance.optimize.CompactionTask.read_version": _ATTRIBUTE,
    "lance.query.BooleanQuery.inner": _COMPILED,
    "lance.query.BoostQuery.inner": _COMPILED,
    "lance.query.CombinedFieldsQuery.inner": _COMPILED,
    "lance.query.MatchQuery.inner": _COMPILED,
    "lance.query.MultiMatchQuery.inner": _COMPILED,
    "lance.query.PhraseQuery.inner": _COMPILED,
    "lance.set_logger(*)": _RENAMED,
    "lance.util.HNSW(hnsw)": _MADE_INSIDE,
}


def reference_modules() -> list[str]:
    found = pkgutil.walk_packages(lance.__path__, "lance.", onerror=lambda _: None)
    return ["lance", *sorted(m.name for m in found if not any(p.startswith("_") for p in m.name.split(".")))]


def public_objects(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a module of the reference defines or passes on, without modules and names of other packages."""
    for name, value in vars(module).items():
        if name.startswith("_") or name in _LANGUAGE or inspect.ismodule(value):
            continue
        home = getattr(value, "__module__", None) or ""
        own = home.partition(".")[0] == "lance" or (home == "builtins" and inspect.isclass(value))
        foreign = home.startswith(("typing", "pyarrow", "numpy", "__future__"))
        if own or (not callable(value) and not foreign):
            yield name, value


def pairs() -> Iterator[tuple[str, Any, Any]]:
    """Yield each public object of the reference once, with ours; None if it is missing."""
    seen: set[int] = set()
    for path in reference_modules():
        if path in NO_MODULES:
            continue
        theirs, ours = importlib.import_module(path), importlib.import_module(f"lance_dataset{path[5:]}")
        for name, value in public_objects(theirs):
            found = getattr(ours, name, None)
            if found is None or id(value) not in seen:
                seen.add(id(value))
                yield f"{path}.{name}", value, found


def signature(function: Any) -> list[inspect.Parameter] | None:
    try:
        found = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):  # a compiled callable without a signature
        return None
    return [each for each in found if each.name not in ("self", "cls", "_cls")]


def wrong_parameters(label: str, theirs: Any, ours: Any) -> Iterator[str]:
    asked, offered = signature(theirs), signature(ours)
    if asked is None:
        return
    if offered is None:
        yield f"{label}(signature)"
        return
    by_name = {each.name: each for each in offered}
    positions = [each.name for each in offered if each.kind is not each.KEYWORD_ONLY]
    for place, parameter in enumerate(asked):
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            if all(each.kind is not parameter.kind for each in offered):
                yield f"{label}({parameter})"
            continue
        mine = by_name.get(parameter.name)
        placed = parameter.kind is parameter.KEYWORD_ONLY or positions[place : place + 1] == [parameter.name]
        if mine is None or not (placed and same_call(parameter, mine) and same_default(parameter, mine)):
            yield f"{label}({parameter.name})"


def same_call(theirs: inspect.Parameter, ours: inspect.Parameter) -> bool:
    """Every way to give the parameter is accepted here, too; so may be its position."""
    return theirs.kind is ours.kind or ours.kind is ours.POSITIONAL_OR_KEYWORD


def same_default(asked: inspect.Parameter, offered: inspect.Parameter) -> bool:
    theirs, ours = asked.default, offered.default
    if theirs is inspect.Parameter.empty:
        return True  # what must be given there may be left out here
    if isinstance(theirs, enum.Enum) or callable(theirs):
        return type(ours).__name__ == type(theirs).__name__
    return type(theirs) is type(ours) and bool(theirs == ours)


def wrong_members(label: str, theirs: type, ours: Any, seen: set[type]) -> Iterator[str]:
    """Yield the differences of a class: bases, parameters, fields, members of enumerations, methods, constants."""
    if theirs in seen:
        return
    seen.add(theirs)
    if not inspect.isclass(ours):
        yield label
        return
    names = {each.__name__ for each in ours.__mro__}
    yield from (f"{label}(base {each.__name__})" for each in theirs.__mro__[1:] if each.__name__ not in names)
    yield from wrong_parameters(label, theirs, ours)
    if issubclass(theirs, enum.Enum):
        known = {key: each.value for key, each in ours.__members__.items()}  # type: ignore[attr-defined]
        yield from (f"{label}.{key}" for key, each in theirs.__members__.items() if known.get(key) != each.value)
    fields = {each.name for each in dataclasses.fields(ours)} if dataclasses.is_dataclass(ours) else set()
    if dataclasses.is_dataclass(theirs):
        wanted = {each.name for each in dataclasses.fields(theirs) if not each.name.startswith("_")}
        yield from (f"{label}.{name}" for name in sorted(wanted) if name not in fields and not hasattr(ours, name))
    for name in dir(theirs):
        if not name.startswith("_") and name not in fields:
            yield from wrong_member(f"{label}.{name}", name, theirs, ours, seen)


def wrong_member(label: str, name: str, theirs: type, ours: type, seen: set[type]) -> Iterator[str]:
    value = getattr(theirs, name)
    if not hasattr(ours, name):
        if name not in {each for kind in ours.__mro__ for each in vars(kind).get("__annotations__", {})}:
            yield label
    elif inspect.isclass(value):
        yield from wrong_members(label, value, getattr(ours, name), seen)
    elif callable(value) != callable(getattr(ours, name)):
        yield label
    elif callable(value):
        yield from wrong_parameters(label, value, getattr(ours, name))
    elif isinstance(value, int | str | float) and value != getattr(ours, name):
        yield label


def differences() -> Iterator[str]:
    seen: set[type] = set()
    for label, theirs, ours in pairs():
        if ours is None:
            continue
        if inspect.isclass(theirs):
            yield from wrong_members(label, theirs, ours, seen)
        elif callable(theirs):
            yield from wrong_parameters(label, theirs, ours)
        elif isinstance(theirs, int | str | float) and theirs != ours:
            yield label


def test_modules() -> None:
    for path in reference_modules():
        if path not in NO_MODULES:
            importlib.import_module(f"lance_dataset{path[5:]}")
    assert set(NO_MODULES) <= set(reference_modules())


def test_names() -> None:
    assert {label for label, _, ours in pairs() if ours is None} == set(NO_NAMES)


def test_members_parameters_and_defaults() -> None:
    """Nothing else differs, and all that the table names does."""
    found = set(differences())
    listed = {each for each in found if each in DIFFERENT or f"{each.partition('(')[0]}(*)" in DIFFERENT}
    assert found - listed == set(), "add what is missing, or list it with the reason"
    unused = [each for each in DIFFERENT if each not in found]
    assert [each for each in unused if not any(f.startswith(each[:-2]) for f in found)] == []
