"""Commit every pair of `cases` with the reference; a separate program, because it reads settings of the process.

Usage: reference_verdicts.py FOLDER. It prints a list of [ours, theirs, verdict or error].
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

os.environ["LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES"] = "1"

import lance
import pyarrow as pa

from lance_dataset._proto import table_pb2, transaction_pb2
from lance_dataset.io.local import LocalStore
from lance_dataset.table.flags import Feature
from lance_dataset.table.manifest import Manifest, encode_manifest
from lance_dataset.table.naming import Naming, manifest_name
from lance_dataset.table.operations import Operation, Unknown
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import read_latest
from support.conflicts.cases import ARROW, INDEX, cases
from support.conflicts.verdicts import UNSAID

STORE = LocalStore(fsync=False)


def make_base(root: Path) -> Manifest:
    """Make a table with an index on ``b`` that has no files."""
    rows = {"id": range(40), "a": range(40), "b": [str(number) for number in range(40)]}
    lance.write_dataset(pa.table(rows, schema=ARROW), str(root), max_rows_per_file=10)
    base = read_latest(STORE, str(root))
    assert base is not None
    section = table_pb2.IndexSection(indices=[INDEX.to_proto()]).SerializeToString()
    flags = base.writer_flags | Feature.TABLE_CONFIG
    base = replace(base, index_section=section, config={"k": "0"}, writer_flags=int(flags))
    Path(base.path).write_bytes(encode_manifest(base))
    return base


def commit_by_hand(root: Path, base: Manifest, operation: Operation) -> None:
    """Write version 2 with this transaction; the table stays unchanged, as only transactions are compared."""
    if isinstance(operation, Unknown):
        encoded = transaction_pb2.Transaction(read_version=1, uuid=Transaction(1, operation).uuid).SerializeToString()
    else:
        encoded = Transaction(1, operation).encode()
    made = replace(base, version=2, transaction_file="", inline_transaction=encoded)
    (root / "_versions" / manifest_name(2, Naming.V2)).write_bytes(encode_manifest(made))


def public_operations(folder: Path, base: Manifest, all_cases: Mapping[str, Operation]) -> dict[str, object]:
    """Return the operations as the reference reads them, as far as it can represent them."""
    found = {}
    for number, (name, operation) in enumerate(all_cases.items()):
        if name.startswith(UNSAID):
            continue
        root = folder / f"read{number}"
        shutil.copytree(folder / "base", root)
        commit_by_hand(root, base, operation)
        public = lance.dataset(str(root)).read_transaction(2).operation
        if type(public) is not lance.LanceOperation.BaseOperation:
            found[name] = public
    return found


def verdict(root: Path, operation: object) -> str:
    """Try to commit an operation that was computed against version 1, and remove what it made."""
    try:
        lance.LanceDataset.commit(str(root), operation, read_version=1, max_retries=3)
    except OSError as error:
        text = str(error)
        if "Retryable commit conflict" in text:
            return "R"
        return "X" if "Incompatible transaction" in text else text
    (root / "_versions" / manifest_name(3, Naming.V2)).unlink()
    return "."


def main(folder: Path) -> None:
    base = make_base(folder / "base")
    all_cases = cases(base)
    public = public_operations(folder, base, all_cases)
    found = []
    for number, (theirs, operation) in enumerate(all_cases.items()):
        root = folder / f"pairs{number}"
        shutil.copytree(folder / "base", root)
        commit_by_hand(root, base, operation)
        found += [(ours, theirs, verdict(root, ours_operation)) for ours, ours_operation in public.items()]
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
