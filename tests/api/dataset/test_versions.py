"""Tests of opening, versions, transactions and default scan options, compared with the reference."""

from __future__ import annotations

import datetime as dt
import importlib
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pandas as pd
import pyarrow as pa
import pytest
from support.reference.outcomes import Call, check_call

import lance_dataset


def t(*args: Any, **options: Any) -> Call:
    return lambda lib, ds: ds.to_table(*args, **options)


def order(lib: Any, *args: Any) -> Any:
    return (importlib.import_module("lance.dataset") if lib.__name__ == "lance" else lib).ColumnOrdering(*args)


CALLS: dict[str, Call] = {
    "schema": lambda lib, ds: ds.schema,
    "version": lambda lib, ds: (ds.version, ds.latest_version),
    "versions": lambda lib, ds: [{**info, "timestamp": None} for info in ds.versions()],
    "get_version": lambda lib, ds: {**ds.get_version(), "timestamp": None},
    "version_refs": lambda lib, ds: ds.version_refs(),
    "maxfield": lambda lib, ds: ds.max_field_id,
    "dsv": lambda lib, ds: ds.data_storage_version,
    "stable": lambda lib, ds: ds.has_stable_row_ids,
    "meta": lambda lib, ds: (ds.metadata, ds.schema_metadata, ds.config()),
    "uri": lambda lib, ds: ds.uri,
    "init_so": lambda lib, ds: ds.initial_storage_options,
    "validate": lambda lib, ds: ds.validate(),
    "partexpr": lambda lib, ds: ds.partition_expression,
    "repl": lambda lib, ds: ds.replace_schema(pa.schema([])),
    "co": lambda lib, ds: ds.checkout_version(2).to_table(["id"]),
    "co_bad": lambda lib, ds: ds.checkout_version(99),
    "co_0": lambda lib, ds: ds.checkout_version(0),
    "co_neg": lambda lib, ds: ds.checkout_version(-1),
    "co_str": lambda lib, ds: ds.checkout_version("nope"),
    "co_ver": lambda lib, ds: ds.checkout_version(1).version,
    "co_float": lambda lib, ds: ds.checkout_version(1.0),
    "open_bad": lambda lib, ds: lib.dataset("/nonexistent/x"),
    "open_v99": lambda lib, ds: lib.dataset(ds.uri, version=99),
    "open_v1": lambda lib, ds: lib.dataset(ds.uri, version=1).count_rows(),
    "open_none": lambda lib, ds: lib.dataset(),
    "open_scheme": lambda lib, ds: lib.dataset("foo://bar"),
    "open_asof_early": lambda lib, ds: lib.dataset(ds.uri, asof="2001-01-01"),
    "open_asof_late": lambda lib, ds: lib.dataset(ds.uri, asof="2101-01-01").version,
    "open_asof_ver": lambda lib, ds: lib.dataset(ds.uri, version=2, asof="2101-01-01").version,
    "open_tag": lambda lib, ds: lib.dataset(ds.uri, version="tag"),
    "open_int": lambda lib, ds: lib.dataset(5),
    "open_asof_date": lambda lib, ds: lib.dataset(ds.uri, asof=dt.date(2101, 1, 1)).version,
    "asof_aware": lambda lib, ds: lib.dataset(ds.uri, asof=dt.datetime(2101, 1, 1, tzinfo=dt.timezone.utc)).version,
    "asof_bad": lambda lib, ds: lib.dataset(ds.uri, asof="gibberish"),
    "dso": lambda lib, ds: lib.dataset(ds.uri, default_scan_options={"columns": ["id"], "limit": 3}).to_table(),
    "dso_over": lambda lib, ds: lib.dataset(
        ds.uri, default_scan_options={"columns": ["id"], "limit": 3, "with_row_id": True}
    ).to_table(limit=5),
    "dso_schema": lambda lib, ds: lib.dataset(ds.uri, default_scan_options={"with_row_id": True}).schema,
    "dso_schema2": lambda lib, ds: (
        lib.dataset(ds.uri, default_scan_options={"with_row_id": True, "with_row_address": True}).schema
    ),
    "dso_take": lambda lib, ds: lib.dataset(ds.uri, default_scan_options={"with_row_id": True}).take([1], ["id"]),
    "dso_bad": lambda lib, ds: lib.dataset(ds.uri, default_scan_options={"foo": 1}).to_table(),
    "dso_count": lambda lib, ds: lib.dataset(ds.uri, default_scan_options={"filter": "n>3"}).count_rows(),
    "dso_frag": lambda lib, ds: (
        lib.dataset(ds.uri, default_scan_options={"columns": ["id"], "with_row_id": True}).get_fragment(1).to_table()
    ),
    "dso_filter": lambda lib, ds: lib.dataset(ds.uri, default_scan_options={"filter": "n>3"}).to_table(["id"]),
    "dso_false": lambda lib, ds: lib.dataset(ds.uri, default_scan_options={"with_row_id": True}).to_table(
        ["id"], with_row_id=False
    ),
    "dso_len": lambda lib, ds: len(lib.dataset(ds.uri, default_scan_options={"limit": 3})),
    "dso_cocols": lambda lib, ds: (
        lib.dataset(ds.uri, default_scan_options={"with_row_id": True}).checkout_version(1).to_table(["id"])
    ),
    "trans": lambda lib, ds: [type(ds.read_transaction(v).operation).__name__ for v in range(1, 7)],
    "trans_bad": lambda lib, ds: ds.read_transaction(99),
    "trans_rv": lambda lib, ds: [ds.read_transaction(v).read_version for v in range(1, 7)],
}

#: Known differences: this package accepts more, checks more strictly, or the reference fails.
DIFFERENT = [
    "asof_aware",
    "co_neg",
    "open_asof_date",
    "open_asof_late",
    "open_asof_ver",
]


@pytest.mark.parametrize("name", CALLS)
def test_like_the_reference(both: tuple[Any, Any], name: str) -> None:
    """Results match the reference, or the exception is one that handlers written for the reference catch."""
    check_call(CALLS[name], both, different=name in DIFFERENT)


def test_timestamps(both: tuple[Any, Any]) -> None:
    """Timestamps are naive local times to the microsecond; the reference rounds them."""
    for ours, theirs in zip(both[0].versions(), both[1].versions(), strict=True):
        assert abs(ours["timestamp"] - theirs["timestamp"]) <= dt.timedelta(microseconds=1)


def test_asof_of_pandas(both: tuple[Any, Any]) -> None:
    """Timestamps of pandas work like datetimes, also with a time zone, which the reference refuses."""
    for lib, ds in zip((lance_dataset, lance), both, strict=True):
        times = [info["timestamp"] for info in ds.versions()]
        for version, moment in enumerate(times[1:], 1):
            naive = pd.Timestamp(moment)
            assert lib.dataset(ds.uri, asof=naive).version == lib.dataset(ds.uri, asof=moment).version == version
            assert lib.dataset(ds.uri, asof=naive + pd.Timedelta(1, "us")).version == version + 1
        with pytest.raises(ValueError, match="NaT"):
            lib.dataset(ds.uri, asof=pd.NaT)
    uri = both[0].uri
    for version, moment in enumerate([info["timestamp"] for info in both[0].versions()][1:], 1):
        for zone in ("UTC", "Asia/Tokyo", None):
            aware = pd.Timestamp(moment.astimezone()).tz_convert(zone or moment.astimezone().tzinfo)
            assert lance_dataset.dataset(uri, asof=aware).version == version


@pytest.mark.parametrize("writer", [lance_dataset, lance], ids=["ours", "reference"])
def test_errors_that_handlers_for_the_reference_catch(writer: ModuleType, tmp_path: Path) -> None:
    made = writer.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    with pytest.raises(ValueError):
        writer.dataset("foo://bar")
    shutil.rmtree(tmp_path / "t" / "data")
    with pytest.raises((ValueError, OSError)) as caught:
        made.to_table()
    builtin = {each for each in caught.type.__mro__ if each.__module__ == "builtins"}
    assert builtin <= set(lance_dataset.errors.MissingFileError.__mro__)


def test_errors_of_more_than_one_kind() -> None:
    errors = lance_dataset.errors
    for error, kinds in (
        (errors.MissingFileError("what"), (errors.LanceError, FileNotFoundError, ValueError)),
        (errors.UnsupportedError("what"), (errors.LanceError, NotImplementedError, ValueError, OSError)),
    ):
        assert str(error) == "what"
        assert all(isinstance(error, kind) for kind in kinds)
