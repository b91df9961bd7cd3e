"""Checks of the arguments of calls that build indices."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.records.index_config import DocumentGranularity, IndexConfig

__all__ = ["checked_id", "checked_kind", "checked_limit", "checked_name", "keyword_parameters", "one_column"]


def one_column(column: object) -> str:
    """Return the name of a column, given as such or as a list of one.

    Raises
    ------
    TypeError
        It is something else.
    UnsupportedError
        There are several names, or none.
    """
    if isinstance(column, str):
        return column
    if not isinstance(column, list | tuple) or not all(isinstance(each, str) for each in column):
        raise TypeError(f"column must be the name of a column, or a list of one name, not {column!r}")
    if len(column) != 1:
        raise UnsupportedError("Scalar indices currently only support a single column")
    return str(column[0])


def checked_kind(index_type: object) -> str | IndexConfig:
    """Return the kind of an index; raise TypeError unless it is text or an IndexConfig."""
    if isinstance(index_type, str | IndexConfig):
        return index_type
    raise TypeError(f"index_type must be str or IndexConfig, not {type(index_type).__name__}")


def checked_name(name: object) -> str | None:
    """Return the name of an index; raise TypeError unless it is text or None."""
    if name is None or isinstance(name, str):
        return name
    raise TypeError(f"the name of an index must be text, not {type(name).__name__}")


def checked_limit(memory_limit: object) -> int | None:
    """Return a number of bytes, or None.

    Raises
    ------
    TypeError, OutOfRangeError
        It is not an integer, or it is negative.
    """
    return None if memory_limit is None else checked_integer("memory_limit", memory_limit, bits=63)


def keyword_parameters(
    kind: str | IndexConfig, given: Mapping[str, Any], memory_limit: object
) -> tuple[Mapping[str, Any] | None, int | None]:
    """Return the parameters of an index that are given as keywords, and a memory limit in bytes.

    Only full-text indices have such parameters, as in the reference, and their limit is given in MiB.

    Raises
    ------
    TypeError, InvalidInputError
        A parameter of a full-text index is unknown, or has the wrong type or value.
    """
    limit = checked_limit(memory_limit)
    if isinstance(kind, IndexConfig) or kind.upper() not in ("INVERTED", "FTS"):
        return None, limit
    from lance_dataset.index.text.training.trainer import parameters_of_keywords

    if limit == 0:
        raise InvalidInputError("memory_limit of a full-text index must be at least 1 MiB, not 0")
    given = dict(given)
    granularity = given.pop("document_granularity", DocumentGranularity.ROW)
    if not isinstance(granularity, DocumentGranularity):
        raise TypeError(f"document_granularity must be a DocumentGranularity, not {granularity!r}")
    by_element = granularity is DocumentGranularity.LIST_ELEMENT
    return parameters_of_keywords(given, by_element=by_element), None if limit is None else min(limit, 1 << 40) << 20


def checked_id(text: object) -> str:
    """Return the id of a segment; raise InvalidInputError unless it is a UUID."""
    try:
        return str(uuid.UUID(str(text)))
    except ValueError:
        raise InvalidInputError(f"the id of a segment must be a UUID, not {text!r}") from None
