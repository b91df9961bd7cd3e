"""Metadata of a dataset, field by field, as text for debugging."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import islice

from lance_dataset.api.debug_records import fragment_record, manifest_record, schema_record, transaction_record
from lance_dataset.api.debug_text import debug_text
from lance_dataset.api.fragment.fragment import LanceFragment
from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.arguments import check_count, check_switch
from lance_dataset.errors import InvalidInputError
from lance_dataset.read.shown import Shown
from lance_dataset.records.diagnosis import Diagnosis
from lance_dataset.records.fragment import FragmentMetadata
from lance_dataset.records.repair import RepairReport

__all__ = ["diagnose", "format_fragment", "format_manifest", "format_schema", "list_transactions", "repair"]


def diagnose(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    progress: ProgressOption = None,
) -> Diagnosis:
    """Check a whole dataset with all its branches, also one that cannot be opened. Nothing is changed.

    Parameters
    ----------
    uri
        Path or URI.
    storage_options
        Options of the store.
    progress
        See `LanceDataset.doctor`.

    Returns
    -------
    Diagnosis
        Has ``findings``, each with what is wrong and what mends it; ``str`` makes a text of it.

    Raises
    ------
    DatasetNotFoundError
        There is no dataset, not even a damaged one.
    """
    from lance_dataset.changes.doctor.diagnosing import diagnose as check
    from lance_dataset.memwal.examining.shards import examine_shards
    from lance_dataset.read.location import TableLocation

    with reported_progress(progress, lambda: None, "doctor", "unit") as told:
        return check(TableLocation.resolve(uri, storage_options), told, examine_shards)


def repair(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    execute: bool = False,
    drop_lost_rows: bool = False,
    restore_deleted_rows: bool = False,
    on_plan: Callable[[RepairReport], object] | None = None,
    progress: ProgressOption = None,
) -> RepairReport:
    """Repair a dataset with all its branches, also one that cannot be opened. By default, it is only planned.

    What can be made from what is there is made: lost versions by their transactions, indices, transaction files, hints,
    files of branches. Other damaged files are moved to a folder below ``_quarantine``, with a journal. Nothing is
    deleted.

    Parameters
    ----------
    uri
        Path or URI.
    storage_options
        Options of the store.
    on_plan
        Function that is called with the plan before it is done. If it raises, nothing is done.
    execute, drop_lost_rows, restore_deleted_rows, progress
        See `LanceDataset.doctor`.

    Returns
    -------
    RepairReport
        Has ``steps``; ``str`` makes a text of it, ``to_json`` JSON.

    Raises
    ------
    DatasetNotFoundError
        There is no dataset, not even a damaged one.
    TypeError
        An argument has the wrong type.
    """
    from lance_dataset.changes.doctor.repairing import Consent
    from lance_dataset.changes.doctor.repairing import repair as mend
    from lance_dataset.memwal.examining.shards import examine_shards
    from lance_dataset.read.location import TableLocation

    check_switch("execute", execute)
    check_switch("drop_lost_rows", drop_lost_rows)
    check_switch("restore_deleted_rows", restore_deleted_rows)
    consent = Consent(drop_lost_rows, restore_deleted_rows)
    with reported_progress(progress, lambda: None, "repair", "unit") as told:
        location = TableLocation.resolve(uri, storage_options)
        return mend(location, execute=execute, consent=consent, on_plan=on_plan, progress=told, look=examine_shards)


def format_schema(dataset: Shown) -> str:
    """Format the schema of a dataset: fields with their ids, types and metadata."""
    return debug_text(schema_record(dataset.snapshot.manifest.schema))


def format_manifest(dataset: Shown) -> str:
    """Format the whole manifest of a version."""
    return debug_text(manifest_record(dataset.snapshot.manifest))


def format_fragment(fragment: FragmentMetadata | LanceFragment, dataset: Shown) -> str:
    """Format a fragment, with the fields that each of its data files holds.

    Parameters
    ----------
    fragment
        Metadata of the fragment, or a handle on it.
    dataset
        The dataset that it belongs to.
    """
    found = getattr(fragment, "metadata", fragment)
    if not hasattr(found, "to_fragment"):
        raise InvalidInputError(
            f"fragment must be a FragmentMetadata or a LanceFragment, not {type(fragment).__name__}"
        )
    return debug_text(fragment_record(found.to_fragment(), dataset.snapshot.manifest.schema))


def list_transactions(dataset: Shown, /, max_transactions: int = 10) -> list[str]:
    """Format the newest transactions of a dataset, newest first; ``None`` if the transaction of a version is unknown.

    Parameters
    ----------
    dataset
        The dataset.
    max_transactions
        Maximum number of transactions to list.
    """
    from lance_dataset.records.history import stored_transactions_until

    check_count("max_transactions", max_transactions)
    found = islice(stored_transactions_until(dataset.snapshot), max_transactions)
    return [debug_text(None if each is None else transaction_record(each)) for each in found]
