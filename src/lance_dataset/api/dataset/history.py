"""Transactions that made the versions of a dataset, and the changes between versions."""

from __future__ import annotations

from itertools import islice

from lance_dataset.api.delta import DatasetDelta, delta_range
from lance_dataset.arguments import check_count, version_number
from lance_dataset.read.shown import Shown
from lance_dataset.records.operations import Transaction

__all__ = ["History"]


class History(Shown):
    """History of a dataset."""

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
