"""Tests of models of pydantic as schemas and rows, compared with the reference."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Generic, List, Literal, Optional, Tuple, TypeVar, Union  # noqa: UP035

import lance
import lance.pydantic
import numpy as np
import pyarrow as pa
import pydantic
import pytest

import lance_dataset
import lance_dataset.pydantic
from lance_dataset.errors import InvalidInputError, OutOfRangeError, UnsupportedError


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Mixed(enum.Enum):
    ONE = 1
    TEXT = "x"


class Ratio(enum.Enum):
    HALF = 0.5


class Name(str, enum.Enum):
    ANN = "ann"


class Empty(enum.Enum):
    pass


class Inner(pydantic.BaseModel):
    x: int
    y: Optional[str] = None  # noqa: UP045
    c: Color = Color.RED


class Recursive(pydantic.BaseModel):
    inner: Optional[Recursive] = None  # noqa: UP045


Item = TypeVar("Item")


class Generic_(pydantic.BaseModel, Generic[Item]):
    value: Item


#: Annotations that both packages know, made from either's `Vector` and `MultiVector`.
ANNOTATIONS: dict[str, Callable[[Any], Any]] = {
    **{kind.__name__: lambda _, kind=kind: kind for kind in (int, float, str, bool, bytes, dt.date, dt.datetime)},
    **{kind.__name__: lambda _, kind=kind: kind for kind in (Color, Number, Mixed, Ratio, Name, Empty, Inner)},
    "optional": lambda _: Optional[int],  # noqa: UP045
    "union": lambda _: Union[None, str],  # noqa: UP007
    "bar": lambda _: int | None,
    "list": lambda _: list[int],
    "List": lambda _: List[Optional[int]],  # noqa: UP006, UP045
    "lists": lambda _: list[list[str]],
    "optional list": lambda _: list[Inner] | None,
    "models": lambda _: list[Inner],
    "tuple": lambda _: Tuple[int, str],  # noqa: UP006
    "enums": lambda _: list[Color],
    "optional enum": lambda _: Color | None,
    "constrained": lambda _: pydantic.conint(gt=0),
    "annotated": lambda _: Annotated[int, pydantic.Field(gt=0)],
    "generic": lambda _: Generic_[int],
    "Vector": lambda module: module.Vector(4),
    "half": lambda module: module.Vector(4, pa.float16()),
    "not null": lambda module: module.Vector(4, nullable=False),
    "optional vector": lambda module: module.Vector(4) | None,
    "MultiVector": lambda module: module.MultiVector(3),
    "multi not null": lambda module: module.MultiVector(3, pa.float64(), False),
    "vectors": lambda module: list[module.Vector(3)],
}


def model_of(annotation: Any, **options: Any) -> type[pydantic.BaseModel]:
    return pydantic.create_model("Model", a=(annotation, pydantic.Field(**options)))


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_types(name: str) -> None:
    make = ANNOTATIONS[name]
    ours = lance_dataset.pydantic.pydantic_to_schema(model_of(make(lance_dataset.pydantic)))
    theirs = lance.pydantic.pydantic_to_schema(model_of(make(lance.pydantic)))
    assert ours.equals(theirs, check_metadata=True)


@pytest.mark.parametrize("kind", [dt.datetime, dt.datetime | None, list[dt.datetime]])
def test_time_zones(kind: Any) -> None:
    model = model_of(kind, json_schema_extra={"tz": "Asia/Tokyo"})
    assert lance_dataset.pydantic.pydantic_to_schema(model) == lance.pydantic.pydantic_to_schema(model)
    field = model.model_fields["a"]
    for module in (lance_dataset.pydantic, lance.pydantic):
        assert module.get_extras(field, "tz") == "Asia/Tokyo"
        assert module.get_extras(field, "other") is None
        assert module.is_nullable(field) == (kind == dt.datetime | None)


@pytest.mark.parametrize(
    "kind", [dt.time, decimal.Decimal, dict, dict[str, int], list, Any, int | str, Literal["a"], set[int], object]
)
def test_types_that_arrow_has_not(kind: Any) -> None:
    for module in (lance_dataset.pydantic, lance.pydantic):
        with pytest.raises(TypeError, match="Converting Pydantic type to Arrow Type: unsupported type"):
            module.pydantic_to_schema(model_of(kind))
    with pytest.raises(TypeError, match=r"of Model\.a; use int"):
        lance_dataset.pydantic.pydantic_to_schema(model_of(kind))


def test_other_arguments() -> None:
    pydantic_to_schema = lance_dataset.pydantic.pydantic_to_schema
    for bad in (int, 3, None, {"a": int}):
        with pytest.raises(TypeError, match=r"pydantic\.BaseModel"):
            pydantic_to_schema(bad)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="Recursive contains itself"):
        pydantic_to_schema(Recursive)
    assert pydantic_to_schema(Inner(x=1)) == pydantic_to_schema(Inner)  # type: ignore[arg-type]
    assert pydantic_to_schema(Optional_) == pa.schema([pa.field("a", pa.int64())])


def test_models_of_types_that_are_defined_later() -> None:
    model = lance_dataset.pydantic.pydantic_to_schema(Early)
    assert model == pa.schema([pa.field("late", pa.struct([pa.field("x", pa.int64(), False)]), False)])


class Early(pydantic.BaseModel):
    late: Late


class Late(pydantic.BaseModel):
    x: int


class Optional_(pydantic.BaseModel):
    a: Optional[Annotated[int, pydantic.Field(gt=0)]]  # noqa: UP045
    hidden: int = pydantic.Field(default=1, exclude=True)


@pytest.mark.parametrize("module", [lance_dataset.pydantic, lance.pydantic])
def test_values_of_vectors(module: Any) -> None:
    model = pydantic.create_model("Model", v=(module.Vector(2), None), m=(Optional[module.MultiVector(2)], None))  # noqa: UP045
    for good in ([1, 2.5], (1, 2), np.array([1.0, 2.0])):
        assert model(v=good).v == [float(value) for value in good]
    for bad in ([1], [1, 2, 3], None, "ab", [1, "x"], [1, None]):
        with pytest.raises(pydantic.ValidationError):
            model(v=bad)
    for good in ([[1, 2], [3, 4]], [], np.ones((3, 2))):
        assert model(m=good).m == [list(map(float, vector)) for vector in good]
    for bad in ([1, 2], [[1]], [[1, 2], None]):
        with pytest.raises(pydantic.ValidationError):
            model(m=bad)
    assert repr(model(v=[1, 2], m=[])) == "Model(v=FixedSizeList(dim=2), m=MultiVector(dim=2))"
    assert (model.model_fields["v"].annotation.dim(), module.Vector(2).value_arrow_type()) == (2, pa.float32())
    assert model.model_json_schema()["properties"]["v"]["minItems"] == 2


def test_wrong_vectors() -> None:
    for make in (lance_dataset.pydantic.Vector, lance_dataset.pydantic.MultiVector):
        for dim in (0, -1):
            with pytest.raises(InvalidInputError, match=r"dim of \w+ must be at least 1"):
                make(dim)
        for dim in ("a", 2.5, True):
            with pytest.raises(TypeError, match=r"dim of \w+ must be an integer"):
                make(dim)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="must be an Arrow type of numbers, not string"):
            make(2, pa.string())
    model = pydantic.create_model("Model", v=(lance_dataset.pydantic.Vector(2, pa.int8()), ...))
    with pytest.raises(pydantic.ValidationError):
        model(v=[1, 2.5])


class Row(pydantic.BaseModel):
    a: int
    s: Optional[str] = None  # noqa: UP045
    v: lance_dataset.pydantic.Vector(2) = None  # type: ignore[valid-type]
    alias: int = pydantic.Field(default=3, alias="other name")
    inner: Optional[Inner] = None  # noqa: UP045
    inners: list[Inner] = []
    when: Optional[dt.datetime] = pydantic.Field(default=None, json_schema_extra={"tz": "UTC"})  # noqa: UP045
    color: Optional[Color] = None  # noqa: UP045
    mixed: list[Mixed] = []
    number: Number = Number.TWO
    hidden: int = pydantic.Field(default=1, exclude=True)


ROWS = [
    Row(a=1),
    Row(
        a=2,
        s="text",
        v=[1, 2],
        inner=Inner(x=1, c=Color.BLUE),
        inners=[Inner(x=3, y="y"), Inner(x=4)],
        when=dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc),
        color=Color.BLUE,
        mixed=[Mixed.ONE, Mixed.TEXT],
        number=Number.ONE,
        **{"other name": 9},
    ),
]


@pytest.mark.parametrize(
    "write",
    [
        lambda path: lance_dataset.LanceDataset.from_pydantic_model(Row, ROWS, path),
        lambda path: lance_dataset.write_dataset(ROWS, path),
        lambda path: lance_dataset.write_dataset(iter(ROWS), path),
    ],
)
def test_rows(tmp_path: Path, write: Callable[[Path], lance_dataset.LanceDataset]) -> None:
    dataset = write(tmp_path / "t")
    table = dataset.to_table()
    assert table.schema == lance_dataset.pydantic.pydantic_to_schema(Row)
    first, second = table.to_pylist()
    plain = {"a": 1, "alias": 3, "inners": [], "mixed": [], "number": 2}
    assert first == plain | dict.fromkeys(("s", "v", "inner", "when", "color"))
    assert second == {
        "a": 2,
        "s": "text",
        "v": [1, 2],
        "alias": 9,
        "inner": {"x": 1, "y": None, "c": "b"},
        "inners": [{"x": 3, "y": "y", "c": "r"}, {"x": 4, "y": None, "c": "r"}],
        "when": ROWS[1].when,
        "color": "b",
        "mixed": ["1", "x"],
        "number": 1,
    }
    assert lance.dataset(tmp_path / "t").to_table() == table


class Plain(pydantic.BaseModel):
    a: int
    s: Optional[str] = None  # noqa: UP045


def test_rows_of_the_reference(tmp_path: Path) -> None:
    rows = [Plain(a=1), Plain(a=2, s="x")]
    for name, package in (("ours", lance_dataset), ("theirs", lance)):
        package.LanceDataset.from_pydantic_model(Plain, rows, tmp_path / name)
        package.LanceDataset.from_pydantic_model(Plain, rows, tmp_path / name, mode="append", max_rows_per_file=1)
        package.write_dataset(rows, tmp_path / name, mode="append")
        package.dataset(tmp_path / name).insert(rows)
        merge = package.dataset(tmp_path / name).merge_insert("a").when_not_matched_insert_all()
        merge.execute([Plain(a=3), Plain(a=1)])
    ours, theirs = lance.dataset(tmp_path / "ours"), lance.dataset(tmp_path / "theirs")
    assert ours.to_table() == theirs.to_table()
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    with pytest.raises(OSError, match="already exists"):
        lance_dataset.LanceDataset.from_pydantic_model(Plain, rows, tmp_path / "ours")


@pytest.mark.parametrize(
    ("model", "data", "error"),
    [
        (Plain, [], ValueError),
        (Plain, [{"a": 1}], TypeError),
        (Plain, [Plain(a=1), Inner(x=1)], TypeError),
        (Plain, (Plain(a=1),), TypeError),
        (Plain, Plain(a=1), TypeError),
        (int, [1], TypeError),
    ],
)
def test_wrong_calls(tmp_path: Path, model: Any, data: Any, error: type[Exception]) -> None:
    messages = []
    for package in (lance_dataset, lance):
        with pytest.raises(error) as caught:
            package.LanceDataset.from_pydantic_model(model, data, tmp_path / "t")
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert not (tmp_path / "t").exists()


class Day(enum.Enum):
    FIRST = dt.date(2020, 1, 1)


class Aliased(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(serialize_by_alias=True)

    number: int = pydantic.Field(alias="n")
    day: Day = pydantic.Field(alias="d")
    days: list[Day] = []


@pytest.mark.parametrize("kind", [list, iter])
def test_columns_have_the_names_of_fields(tmp_path: Path, kind: Any) -> None:
    rows = [Aliased(n=1, d=Day.FIRST, days=[Day.FIRST])]
    day = Day.FIRST.value
    written = lance_dataset.write_dataset(kind(rows), tmp_path / "t")
    assert written.to_table().to_pylist() == [{"number": 1, "day": day, "days": [day]}]


class Rooted(pydantic.RootModel[list[int]]):
    pass


def test_models_without_fields_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="Rooted is a RootModel"):
        lance_dataset.write_dataset([Rooted([1])], tmp_path / "t")


class Pointed(pydantic.BaseModel):
    v: lance_dataset.pydantic.Vector(2)  # type: ignore[valid-type]
    w: lance_dataset.pydantic.MultiVector(1)  # type: ignore[valid-type]


def test_models_of_vectors_go_to_other_processes() -> None:
    made = Pointed(v=[1, 2], w=[[1], [2]])
    assert pickle.loads(pickle.dumps(made)) == made
    assert pickle.loads(pickle.dumps(made)).model_dump() == made.model_dump()


def test_errors_of_values_say_it_once(tmp_path: Path) -> None:
    class Counted(pydantic.BaseModel):
        number: int

    with pytest.raises(OutOfRangeError, match=r"^column 'number' has an integer that does not fit"):
        lance_dataset.write_dataset([Counted(number=2**70)], tmp_path / "t")


def test_rows_of_two_models(tmp_path: Path) -> None:
    for data in ([Plain(a=1), Inner(x=1)], iter([Plain(a=1), Inner(x=1)])):
        with pytest.raises(TypeError, match="exactly"):
            lance_dataset.write_dataset(data, tmp_path / "t")


@pytest.mark.parametrize("name", ["Plain", "MyHTTPModel2Name", "Ab_Cd", "aB1C"])
def test_default_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    model = pydantic.create_model(name, a=(int, ...))
    ours = lance_dataset.LanceDataset.from_pydantic_model(model, [model(a=1)])
    theirs = lance.LanceDataset.from_pydantic_model(model, [model(a=1)], mode="append")
    assert Path(ours.uri).name == Path(theirs.uri).name
    assert theirs.version == 2


def test_without_pydantic() -> None:
    code = (
        "import sys; sys.modules['pydantic'] = None\n"
        "import lance_dataset\n"
        "try: lance_dataset.LanceDataset.from_pydantic_model(int, [1])\n"
        "except lance_dataset.errors.UnsupportedError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'pydantic>=2'" in done.stdout
