"""Versions of a dataset, the transactions that made them, and the changes between them."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import cast

from lance_dataset.api.delta import DatasetDelta, delta_range
from lance_dataset.arguments import check_count, version_number
from lance_dataset.errors import MissingFileError
from lance_dataset.read.shown import Shown
from lance_dataset.records.operations import Transaction
from lance_dataset.records.results import Version, VersionRef
from lance_dataset.table.versions import latest_version, list_versions, read_version_info

__all__ = ["History"]


class History(Shown):
    """History of a dataset."""

    @property
    def latest_version(self) -> int:
        """Number of the newest version in storage."""
        return latest_version(self.snapshot.store, self.snapshot.root).version

    def versions(self) -> list[Version]:
        """List all versions, oldest first; timestamps are naive local times."""
        place = self.snapshot.location
        found: list[Version] = []
        for name in list_versions(place.store, place.root):
            with suppress(MissingFileError):  # removed by a cleanup since the listing
                found.append(cast("Version", read_version_info(place.store, place.root, name)))
        return found

    def version_refs(self) -> list[VersionRef]:
        """List the numbers of all versions, oldest first, without opening them."""
        return [{"version": name.version} for name in list_versions(self.snapshot.store, self.snapshot.root)]

    def read_transaction(self, version: int) -> Transaction | None:
        """Read the transaction that made a version. Return None if it is not known.

        Raises
        ------
        VersionNotFoundError
            The version does not exist.
        """
        from lance_dataset.records.history import transaction_of

        return transaction_of(self.snapshot.location, self.snapshot.location.read_manifest(version_number(version)))

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """Return the transactions that made this version and those before it, newest first.

        Parameters
        ----------
        recent_transactions
            Maximum number of transactions.

        Returns
        -------
        list
            One item per version, None if its transaction is not known.
        """
        from lance_dataset.records.history import transactions_until

        check_count("recent_transactions", recent_transactions)
        return list(islice(transactions_until(self.snapshot), recent_transactions))

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """Compare two versions of this branch: transactions, and rows that were inserted, updated and deleted.

        Parameters
        ----------
        compared_against
            An older version to compare with the open one.
        begin_version, end_version
            Range of versions, instead of `compared_against`. Changes made by `begin_version` are not part of it, those
            made by `end_version` are. A `begin_version` of 0 means the time before the first version.

        Returns
        -------
        DatasetDelta
            Changes between the versions. Its methods read them on demand.

        Raises
        ------
        InvalidInputError
            Neither or both of `compared_against` and the pair of versions are given.
        TypeError, OutOfRangeError
            A version is not an integer, or it is negative.
        """
        versions = delta_range(self.snapshot.version, compared_against, begin_version, end_version)
        return DatasetDelta(self.snapshot, *versions)
