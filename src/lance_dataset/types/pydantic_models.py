"""Pydantic models as schemas: the Arrow types of their fields, annotations of vectors, values as Arrow takes them."""

from __future__ import annotations

import datetime as dt
import enum
import types
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeGuard, Union, get_args, get_origin

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, UnsupportedError

try:
    import pydantic
    from pydantic.fields import FieldInfo
    from pydantic_core import CoreSchema, core_schema
except ImportError as error:
    raise UnsupportedError("models need the package pydantic, version 2: pip install 'pydantic>=2'") from error

__all__ = [
    "FixedSizeListMixin",
    "MultiVector",
    "Vector",
    "get_extras",
    "is_model",
    "is_nullable",
    "plain_rows",
    "pydantic_to_schema",
]

_SCALARS: dict[type, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.utf8(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    dt.date: pa.date32(),
    dt.datetime: pa.timestamp("us"),
}
_FLOAT32 = pa.float32()
_UNIONS = (Union, types.UnionType)


class FixedSizeListMixin(ABC):
    """Annotation of a vector, or of a list of vectors."""

    @staticmethod
    @abstractmethod
    def dim() -> int:
        """Return the number of values of a vector."""

    @staticmethod
    @abstractmethod
    def value_arrow_type() -> pa.DataType:
        """Return the type of a value."""

    @staticmethod
    def nullable() -> bool:
        """Return True if None is a value of the column."""
        return True

    @staticmethod
    def is_multi_vector() -> bool:
        """Return True for lists of vectors."""
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the values as a list: other processes have no such class."""
        return list, (list(self),)  # type: ignore[call-overload]


def Vector(dim: int, value_type: pa.DataType = _FLOAT32, nullable: bool = True) -> type[FixedSizeListMixin]:
    """Return the annotation of a vector, for a field of a model.

    Parameters
    ----------
    dim
        Number of values, at least 1.
    value_type
        Arrow type of a value: floating point or integer.
    nullable
        True if the column may be null. For models whose objects may have None, annotate ``Optional[Vector(dim)]``.

    Raises
    ------
    InvalidInputError
        `dim` is less than 1.
    TypeError
        `dim` is not an integer, or `value_type` is not the type of a number.
    """
    _check_vector("Vector", dim, value_type)

    class FixedSizeList(list[Any], FixedSizeListMixin):
        """Values of a vector."""

        def __repr__(self) -> str:
            return f"FixedSizeList(dim={dim})"

        @staticmethod
        def dim() -> int:
            return dim

        @staticmethod
        def value_arrow_type() -> pa.DataType:
            return value_type

        @staticmethod
        def nullable() -> bool:
            return nullable

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
            return core_schema.no_info_after_validator_function(cls, _vector_schema(dim, value_type))

    return FixedSizeList


def MultiVector(dim: int, value_type: pa.DataType = _FLOAT32, nullable: bool = True) -> type[FixedSizeListMixin]:
    """Return the annotation of a list of vectors of one length, for a field of a model.

    Parameters
    ----------
    dim
        Number of values of each vector, at least 1.
    value_type
        Arrow type of a value: floating point or integer.
    nullable
        True if the column may be null.

    Raises
    ------
    InvalidInputError
        `dim` is less than 1.
    TypeError
        `dim` is not an integer, or `value_type` is not the type of a number.
    """
    _check_vector("MultiVector", dim, value_type)

    class MultiVectorList(list[Any], FixedSizeListMixin):
        """Vectors of a row."""

        def __repr__(self) -> str:
            return f"MultiVector(dim={dim})"

        @staticmethod
        def dim() -> int:
            return dim

        @staticmethod
        def value_arrow_type() -> pa.DataType:
            return value_type

        @staticmethod
        def nullable() -> bool:
            return nullable

        @staticmethod
        def is_multi_vector() -> bool:
            return True

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
            vectors = _listed(core_schema.list_schema(_vector_schema(dim, value_type)))
            return core_schema.no_info_after_validator_function(cls, vectors)

    return MultiVectorList


def _check_vector(name: str, dim: Any, value_type: Any) -> None:
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise TypeError(f"dim of {name} must be an integer, not {type(dim).__name__}")
    if dim < 1:
        raise InvalidInputError(f"dim of {name} must be at least 1, not {dim}")
    if not isinstance(value_type, pa.DataType) or not (
        pa.types.is_floating(value_type) or pa.types.is_integer(value_type)
    ):
        raise TypeError(f"value_type of {name} must be an Arrow type of numbers, not {value_type}")


def _vector_schema(dim: int, value_type: pa.DataType) -> CoreSchema:
    values = core_schema.int_schema() if pa.types.is_integer(value_type) else core_schema.float_schema()
    return _listed(core_schema.list_schema(values, min_length=dim, max_length=dim))


def _listed(schema: CoreSchema) -> CoreSchema:
    """Accept arrays of NumPy and tensors where a list is expected."""
    return core_schema.no_info_before_validator_function(
        lambda value: value.tolist() if hasattr(value, "tolist") else value, schema
    )


def is_model(kind: Any) -> bool:
    """Return True for a class that derives from ``pydantic.BaseModel``."""
    return isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def get_extras(field: FieldInfo, key: str) -> Any:
    """Return a value of ``json_schema_extra`` of a field of a model; None if there is none."""
    extra = field.json_schema_extra
    return extra.get(key) if isinstance(extra, Mapping) else None


def is_nullable(field: FieldInfo) -> bool:
    """Return True if a field of a model may be None: it is Optional, a union with None, or a nullable vector.

    A default value alone does not make a field nullable.
    """
    kind = _without_extras(field.annotation)
    return _is_optional(kind) or (_is_vector(kind) and kind.nullable())


def pydantic_to_schema(model: type[pydantic.BaseModel]) -> pa.Schema:
    """Return the Arrow schema of a model of pydantic.

    Fields may be int, float, str, bool, bytes, ``date``, ``datetime``, enumerations, other models (structs), lists and
    tuples of one type, `Vector`, `MultiVector`, and each of these as Optional. Enumerations of text become
    dictionaries, those of other values of one type that type, and any others text. The time zone of a ``datetime`` is
    given by ``Field(json_schema_extra={"tz": ...})``. Fields with ``exclude=True`` are left out.

    Raises
    ------
    TypeError
        The argument is not a model, or a field has another type. The message names the field.
    UnsupportedError
        A model contains itself, or is a RootModel.
    """
    kind: Any = model if is_model(model) else type(model)
    if not is_model(kind):
        raise TypeError(f"expected a class that derives from pydantic.BaseModel, not {model}")
    return pa.schema(_fields(kind, ()))


def _fields(model: type[pydantic.BaseModel], outer: tuple[type, ...]) -> list[pa.Field]:
    if model in outer:
        raise UnsupportedError(f"model {model.__name__} contains itself, which Arrow has no type for")
    if issubclass(model, pydantic.RootModel):
        raise UnsupportedError(
            f"model {model.__name__} is a RootModel, whose values have no name; put its type in a field of a model"
        )
    if not model.__pydantic_complete__:
        model.model_rebuild()  # what it refers to may be defined by now
    fields = []
    for name, field in model.model_fields.items():
        if field.exclude is True:
            continue
        zone = get_extras(field, "tz")
        kind = _arrow_type(field.annotation, zone, f"{model.__name__}.{name}", (*outer, model))
        fields.append(pa.field(name, kind, is_nullable(field)))
    return fields


def _arrow_type(kind: Any, zone: str | None, where: str, outer: tuple[type, ...]) -> pa.DataType:
    kind = _not_none(_without_extras(kind))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (list, tuple) and arguments:
        return pa.list_(_arrow_type(arguments[0], zone, where, outer))
    if isinstance(kind, type) and origin is None:
        if kind is dt.datetime:
            return pa.timestamp("us", zone)
        if kind in _SCALARS:
            return _SCALARS[kind]
        if issubclass(kind, pydantic.BaseModel):
            return pa.struct(_fields(kind, outer))
        if issubclass(kind, enum.Enum):
            return _enumeration_type(kind)
    if _is_vector(kind):
        vector = pa.list_(kind.value_arrow_type(), kind.dim())
        return pa.list_(vector) if kind.is_multi_vector() else vector
    raise TypeError(
        f"Converting Pydantic type to Arrow Type: unsupported type {kind} of {where}; use int, float, str, bool, "
        "bytes, date, datetime, an enumeration, a model, Vector, MultiVector, or a list with the type of its items"
    )


def _without_extras(kind: Any) -> Any:
    return _without_extras(get_args(kind)[0]) if get_origin(kind) is Annotated else kind


def _is_optional(kind: Any) -> bool:
    return get_origin(kind) in _UNIONS and type(None) in get_args(kind)


def _not_none(kind: Any) -> Any:
    """Return the type of the values of an Optional that are not None; other types as they are."""
    if not _is_optional(kind):
        return kind
    others = [each for each in get_args(kind) if each is not type(None)]
    return _without_extras(others[0]) if len(others) == 1 else kind


def _is_vector(kind: Any) -> TypeGuard[type[FixedSizeListMixin]]:
    return isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, FixedSizeListMixin)


def _enumeration_type(kind: type[enum.Enum]) -> pa.DataType:
    found = {_scalar_base(member.value) for member in kind}
    if found == {str}:
        return pa.dictionary(pa.int32(), pa.utf8())
    return _SCALARS.get(found.pop(), pa.utf8()) if len(found) == 1 else pa.utf8()


def _scalar_base(value: Any) -> type:
    """Return the first class of a value, of its own or inherited, that has an Arrow type."""
    return next((base for base in type(value).__mro__ if base in _SCALARS), object)


def plain_rows(objects: Iterable[Any], schema: pa.Schema) -> list[dict[str, Any]]:
    """Return the values of objects of one model by name, with those of enumerations instead of the members.

    Parameters
    ----------
    objects
        Objects of the model that `schema` was made from.
    schema
        What `pydantic_to_schema` returns for it.
    """
    kept = [field for field in schema if _holds_members(field.type)]
    rows = []
    for each in objects:
        row = each.model_dump(by_alias=False)  # even if the model asks for aliases: columns have the names of fields
        for field in kept:
            row[field.name] = _plain(row[field.name], field.type)
        rows.append(row)
    return rows


def _holds_members(kind: pa.DataType) -> bool:
    """Return False for types whose values never come from an enumeration."""
    if pa.types.is_fixed_size_list(kind):
        return False
    return not pa.types.is_list(kind) or _holds_members(kind.value_type)


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value] if _holds_members(kind.value_type) else value
    if not isinstance(value, enum.Enum):
        return value
    return str(value.value) if pa.types.is_string(kind) else value.value
