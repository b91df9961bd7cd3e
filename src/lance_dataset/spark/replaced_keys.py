"""Values of key columns that an overwrite replaces: found in the data by tasks, a condition for the commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError, nearest_name_hint
from lance_dataset.spark.pushdown import literal, quoted

__all__ = ["Keys", "check_count", "check_keys", "condition_of", "distinct_keys"]

#: Values of the key columns, in their order.
Keys = frozenset[tuple[Any, ...]]

_MOST_KEYS = 10_000


def check_keys(names: Sequence[str], schema: pa.Schema, given: Sequence[str]) -> None:
    """Check that the columns of the option ``replace_by`` can be keys.

    Parameters
    ----------
    names
        Columns of the option.
    schema
        Schema of the dataset.
    given
        Columns of the data.

    Raises
    ------
    FieldNotFoundError
        The dataset or the data has no column of that name.
    UnsupportedError
        A column has a type whose values cannot be compared exactly.
    """
    for name in names:
        if name not in given or name not in schema.names:
            hint = nearest_name_hint(name, given)
            raise FieldNotFoundError(f"The option 'replace_by' names a column {name!r} that is not in the data{hint}")
        arrow = schema.field(name).type
        fits = pa.types.is_integer(arrow) or pa.types.is_string(arrow) or pa.types.is_large_string(arrow)
        if not (fits or pa.types.is_date32(arrow) or pa.types.is_boolean(arrow) or pa.types.is_decimal128(arrow)):
            raise UnsupportedError(
                f"The option 'replace_by' names the column {name!r} of type {arrow}; it takes integers, texts, dates, "
                "decimals and truth values. Use replace_where with a condition instead"
            )


def distinct_keys(batch: pa.RecordBatch, names: Sequence[str]) -> Keys:
    """Return the values of the key columns that occur in a batch."""
    found = pa.table({name: batch.column(name) for name in names}).group_by(list(names)).aggregate([])
    return frozenset(zip(*(found[name].to_pylist() for name in names), strict=True))


def check_count(keys: AbstractSet[tuple[Any, ...]]) -> None:
    """Raise if there are more keys than a condition can name."""
    if len(keys) > _MOST_KEYS:
        raise InvalidInputError(
            f"The columns of the option 'replace_by' have more than {_MOST_KEYS:,} values in the data; replace rows by "
            "columns with fewer values, or merge the rows with merge_into"
        )


def condition_of(keys: Iterable[tuple[Any, ...]], names: Sequence[str], schema: pa.Schema) -> str:
    """Return a condition in Lance's SQL that is true for the rows with one of the keys."""
    # The column with the most values comes last, so that there are few groups, each with a list of its values.
    given = list(keys)
    order = sorted(range(len(names)), key=lambda column: len({key[column] for key in given}))
    ordered = [tuple(key[column] for column in order) for key in given]
    columns = [(quoted(names[column]), schema.field(names[column]).type) for column in order]
    if len(columns) == 1:
        return _among(*columns[0], [key[0] for key in ordered])
    grouped: dict[tuple[Any, ...], list[Any]] = {}
    for *first, last in sorted(ordered, key=repr):
        grouped.setdefault(tuple(first), []).append(last)
    return " OR ".join(
        "("
        + " AND ".join(
            [
                *(_among(*column, [value]) for column, value in zip(columns, first, strict=False)),
                _among(*columns[-1], values),
            ]
        )
        + ")"
        for first, values in grouped.items()
    )


def _among(column: str, arrow: pa.DataType, values: Sequence[Any]) -> str:
    texts = []
    for value in values:
        if value is not None:
            text = literal(value, arrow)
            if text is None:
                raise UnsupportedError(f"The value {value!r} of {column} has no literal; use the option replace_where")
            texts.append(text)
    found = f"{column} IN ({', '.join(sorted(texts))})" if texts else ""
    nulls = f"{column} IS NULL" if len(texts) < len(values) else ""
    return f"({found} OR {nulls})" if found and nulls else found or nulls
