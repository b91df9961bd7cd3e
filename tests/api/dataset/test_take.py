"""Tests of random access, compared with the reference.

The reference drops the schema metadata on some paths; this package keeps it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.reference.outcomes import Call, check_call


def taken(*args: Any, **options: Any) -> Call:
    """Return the rows without schema metadata."""

    def call(lib: Any, ds: Any) -> Any:
        return ds.take(*args, **options).replace_schema_metadata(None)

    return call


CALLS: dict[str, Call] = {
    "list": taken([0, 1, 5]),
    "unsorted": taken([50, 3, 3, 20, 0]),
    "empty": taken([]),
    "empty_c": taken([], ["id"]),
    "oob": taken([53]),
    "oob2": taken([1, 1000]),
    "neg": taken([-1]),
    "huge": taken([2**63]),
    "last": taken([52]),
    "str": taken(["a"]),
    "float": taken([1.0]),
    "none": taken([None]),
    "scalar": taken(3),
    "tuple": taken((1, 2)),
    "range": taken(range(3, 30, 5)),
    "bool": taken([True, False]),
    "2d": taken(np.zeros((2, 2), np.int64)),
    "gen": lambda lib, ds: ds.take(i for i in [1, 2]),
    "set": lambda lib, ds: ds.take({1, 2}),
    "series": lambda lib, ds: ds.take(pd.Series([1, 2])),
    "pa64": taken(pa.array([4, 2])),
    "pa8": taken(pa.array([4, 2], pa.uint8())),
    "pau64": taken(pa.array([4, 40], pa.uint64())),
    "pachunk": taken(pa.chunked_array([[4], [2]])),
    "panull": taken(pa.array([1, None])),
    "pafloat": taken(pa.array([1.0])),
    "paempty": taken(pa.array([], pa.int64())),
    "panulltype": taken(pa.array([])),
    **{
        f"np{d}": taken(np.array([30, 2, 2], d))
        for d in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i4")
    },
    "npfloat": taken(np.array([1.0])),
    "npempty": taken(np.array([])),
    "npint": taken([np.int64(3), np.uint8(4)]),
    "c_list": taken([3, 1], ["s", "id"]),
    "c_dict": taken([3, 1], {"a": "id*2", "b": "s"}),
    "c_nested": taken([3, 1], ["st.x"]),
    "c_nested2": taken([3, 1], ["st.deep.z", "id", "st.x"]),
    "c_nested3": taken([3, 1], ["id", "st.deep"]),
    "c_sys": taken([3, 40], ["_rowid", "id", "_rowaddr"]),
    "c_off": taken([3, 40], ["_rowoffset", "id"]),
    "c_ver": taken([3, 40], ["_row_created_at_version", "_row_last_updated_at_version"]),
    "c_empty": taken([3, 1], []),
    "c_unknown": taken([3], ["zz"]),
    "c_dup": taken([3], ["id", "id"]),
    "c_str": taken([3], "id"),
    "c_dict_sys": taken([3, 40], {"r": "_rowid"}),
    "c_whole_and_nested": taken([3], ["st", "st.x"]),
    "c_dict_nested": taken([3], {"q": "st.x"}),
    "c_case": taken([3], ["ID"]),
    "c_tuple": taken([3], ("id",)),
    "c_rowid_only": taken([3, 3], ["_rowid"]),
    "c_dict_off": taken([3, 40], {"o": "_rowoffset + 1"}),
    "c_listitem": taken([3], ["li.item"]),
    "all": taken(list(range(53))),
    "rev": taken(list(range(53))[::-1]),
}

#: Known differences: this package accepts more, checks more strictly, or the reference fails.
DIFFERENT = [
    "bool",
    "c_dict_off",
    "c_dup",
    "c_listitem",
    "c_off",
]


@pytest.mark.parametrize("name", CALLS)
def test_like_the_reference(both: tuple[Any, Any], name: str) -> None:
    """Results match the reference, or the exception is one that handlers written for the reference catch."""
    check_call(CALLS[name], both, different=name in DIFFERENT)
