"""Data classes whose methods are made when they are first used are those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import ClassVar

import pytest

from lance_dataset.late_dataclass import dataclass


def _classes(decorator):
    """Return classes of many kinds, made by a decorator."""

    @decorator(frozen=True)
    class Base:
        """A base."""

        first: int = dataclasses.field(default=-1, compare=False, repr=False, kw_only=True)
        shared: ClassVar[int] = 7

    @decorator(frozen=True)
    class Child(Base):
        """Another one."""

        name: str
        many: tuple[int, ...] = ()
        items: list[int] = dataclasses.field(default_factory=list, compare=False)

    @decorator
    class Plain:
        """One that can be changed."""

        number: int
        text: str = "x"
        length: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.length = len(self.text)

    @decorator(frozen=True, eq=False)
    class Identity:
        """Equal to itself."""

        number: int

    @decorator(frozen=True, repr=False)
    class Own:
        """One with methods of its own."""

        number: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __repr__(self) -> str:
            return "own"

    @decorator(frozen=True)
    class Hashed:
        """One with a hash of its own."""

        number: int

        def __hash__(self) -> int:
            return 5

    class Loose(Child):
        """A subclass without fields."""

    return Base, Child, Plain, Identity, Own, Hashed, Loose


_MADE = [
    (0, (), {"first": 3}),
    (1, ("a", (1, 2)), {}),
    (1, ("a",), {"items": [1], "first": 2}),
    (2, (1,), {"text": "abc"}),
    (3, (1,), {}),
    (4, (1,), {}),
    (5, (1,), {}),
    (6, ("b",), {}),
]


def _outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


def _facts(decorator):
    classes = _classes(decorator)
    for number, values, named in _MADE:
        kind = classes[number]
        one, other = kind(*values, **named), kind(*values, **named)
        yield one == other, one != other, one == kind, kind.__hash__ is None
        if kind is not classes[3]:
            yield repr(one)
        if kind.__hash__ is not None and kind is not classes[3]:
            yield hash(one) == hash(other), hash(one)
        yield dataclasses.asdict(one), [field.name for field in dataclasses.fields(kind)], kind.__match_args__
        yield dataclasses.replace(one) == one
        yield vars(copy.copy(one)), str(inspect.signature(kind)), kind.__init__.__qualname__, kind.__doc__
        yield _outcome(lambda: setattr(one, "number", 4)), _outcome(lambda: setattr(one, "extra", 4))  # noqa: B023
        yield _outcome(lambda: delattr(one, "name")), _outcome(lambda: repr(kind()))  # noqa: B023
        yield kind.__dataclass_params__.frozen, kind.__dataclass_params__.eq, sorted(vars(one))


def test_they_are_those_of_the_standard_library() -> None:
    assert list(_facts(dataclass)) == list(_facts(dataclasses.dataclass))


@pytest.mark.parametrize("frozen", [False, True])
def test_they_mix_with_those_of_the_standard_library(frozen: bool) -> None:
    for outer, inner in ((dataclass, dataclasses.dataclass), (dataclasses.dataclass, dataclass)):

        @inner(frozen=frozen)
        class Base:
            """A base."""

            first: int

        @outer(frozen=frozen)
        class Child(Base):
            """A child."""

            second: int = 2

        assert (Child(1).first, Child(1).second) == (1, 2)
        assert Child(1) == Child(1)
        with pytest.raises(TypeError, match="frozen"):
            outer(frozen=not frozen)(type("Wrong", (Base,), {"__annotations__": {}, "__doc__": "Wrong."}))


@dataclass(frozen=True)
class Pickled:
    """One that goes to another process."""

    number: int
    text: str = ""


def test_they_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(1, "a"))) == Pickled(1, "a")
