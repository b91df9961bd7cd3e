"""Tests of dictionaries of legacy tables in manifests of old releases."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from support.releases.old_manifests import TWO, decoded, message, stored, with_dictionary
from support.tables.bare_tables import fragment

from lance_dataset.errors import (
    CorruptFileError,
    SchemaError,
)
from lance_dataset.table.apply import next_manifest
from lance_dataset.table.manifest import Manifest, decode_manifest, encode_manifest
from lance_dataset.table.operations import (
    Append,
    Delete,
    Overwrite,
    Restore,
)

# -- dictionaries ----------------------------------------------------------------------------------------------------


WITH_EMPTY = b"pq" + struct.pack("<qqqq", 0, 1, 1, 2)


def values_of(manifest: Manifest) -> pa.Array | None:
    return manifest.schema.fields[0].dictionary_values


def test_dictionary_values() -> None:
    manifest = decode_manifest(with_dictionary(TWO, 2, 2), "m")
    assert values_of(manifest) == pa.array(["p", "q"])
    numbers = decode_manifest(with_dictionary(struct.pack("<hh", 7, -8), 0, 2, "dict:int16:int8:false"), "m")
    assert values_of(numbers) == pa.array([7, -8], pa.int16())


def test_empty_dictionary_values() -> None:
    """Empty dictionary values are null, except in tables of release 0.4, whose manifests lack later fields."""
    assert values_of(decode_manifest(with_dictionary(WITH_EMPTY, 2, 3), "m")) == pa.array(["p", None, "q"])
    made = message(stored((0, 0)), signed=False)
    made.fields[0].logical_type = "dict:string:int32:false"
    made.fields[0].dictionary.offset, made.fields[0].dictionary.length = 2, 3
    assert values_of(decoded(made, WITH_EMPTY)) == pa.array(["p", "", "q"])
    made.transaction_file = "0-x.txn"
    assert values_of(decoded(made, WITH_EMPTY)) == pa.array(["p", None, "q"])


@pytest.mark.parametrize(
    "operation", [Append((fragment(minor=0),)), Delete((), (5,)), Restore(1)], ids=lambda operation: operation.name
)
def test_dictionaries_survive(operation: Append | Delete | Restore) -> None:
    for head in (TWO, b"padding " + TWO):
        data = with_dictionary(head, 2, 2) if head is TWO else None
        if data is None:
            shifted = b"padding " + b"pq" + struct.pack("<qqq", 8, 9, 10)
            data = with_dictionary(shifted, 10, 2)
        manifest = decode_manifest(data, "m")
        after = next_manifest(manifest, operation, restored=manifest)
        assert after.legacy_head == TWO
        again = decode_manifest(encode_manifest(after), "m")
        assert values_of(again) == values_of(after) == pa.array(["p", "q"])
        assert again.schema == after.schema


def test_dictionaries_of_0_4_become_those_of_others() -> None:
    """The commit returns dictionaries of 0.4 as the next version reads them."""
    made = message(stored((0, 0)), signed=False)
    made.fields[0].logical_type = "dict:string:int32:false"
    made.fields[0].dictionary.offset, made.fields[0].dictionary.length = 2, 3
    after = next_manifest(decoded(made, WITH_EMPTY), Append((fragment(minor=0),)))
    assert values_of(after) == values_of(decode_manifest(encode_manifest(after), "m")) == pa.array(["p", None, "q"])


def test_dictionaries_leave_with_the_format() -> None:
    manifest = decode_manifest(with_dictionary(TWO, 2, 2), "m")
    after = next_manifest(manifest, Overwrite(manifest.schema, (fragment(),)))
    assert after.storage_version == "2.2"
    assert (after.legacy_head, values_of(after), after.schema.fields[0].dictionary) == (b"", None, None)


def test_dictionaries_that_are_not_known() -> None:
    made = message(stored((0, 2)))
    made.fields[0].logical_type = "dict:string:int32:false"
    manifest = decoded(made)
    assert values_of(manifest) is None
    with pytest.raises(SchemaError, match="dictionary"):
        next_manifest(manifest, Append((fragment(minor=0),)))


@pytest.mark.parametrize(
    ("offset", "length"), [(-1, 2), (2, -1), (10**6, 2), (2, 10**6), (3, 2), (2**62, 2**62), (0, 2)]
)
def test_hostile_dictionaries(offset: int, length: int) -> None:
    with pytest.raises(CorruptFileError, match="dictionary"):
        decode_manifest(with_dictionary(TWO, offset, length), "m")
