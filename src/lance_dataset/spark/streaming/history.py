"""Versions of a dataset as streams read them; what a cleanup has removed is said in words of the stream."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lance_dataset.errors import InvalidInputError, MissingFileError, SchemaError, VersionNotFoundError
from lance_dataset.spark.options import ReadOptions
from lance_dataset.spark.reader import ROW_COLUMNS
from lance_dataset.spark.snapshot import Snapshot, pin

__all__ = ["History"]


@dataclass(frozen=True)
class History:
    """Versions of the dataset that a stream reads.

    Attributes
    ----------
    options
        Options of ``spark.readStream``.
    names
        Stored columns that the stream reads.
    """

    options: ReadOptions
    names: tuple[str, ...]

    def open(self, version: int) -> Any:
        """Open a version.

        Raises
        ------
        VersionNotFoundError
            A cleanup has removed it, or it does not exist.
        """
        options = self.options
        try:
            return Snapshot(options.uri, version, options.storage_options).open()
        except VersionNotFoundError as error:
            raise VersionNotFoundError(
                f"The stream needs version {version} of {options.uri}, which a cleanup has removed; start a new query "
                f"with the option starting_version, and keep versions longer than the query stands still ({error})"
            ) from None

    def newest(self) -> Any:
        """Open the newest version, and check that it has the columns of the stream.

        Raises
        ------
        SchemaError
            A column was dropped or renamed since the query started.
        """
        _, dataset = pin(self.options.uri, None, self.options.storage_options)
        stored = self.stored(dataset)
        missing = [name for name in self.names if name not in stored]
        if missing:
            raise SchemaError(
                f"Version {dataset.version} of {self.options.uri} has no column {missing[0]!r}; restart the query"
            )
        return dataset

    def identity(self, version: int) -> str:
        """Return the id of the transaction that made a version; an empty text if no transaction is known.

        Raises
        ------
        VersionNotFoundError
            There is no such version.
        """
        options = self.options
        dataset = Snapshot(options.uri, version, options.storage_options).open()
        try:
            transaction = dataset.read_transaction(version)
        except MissingFileError:
            return ""
        return str(transaction.uuid) if transaction is not None else ""

    def check_identity(self, version: int, identity: str) -> None:
        """Raise if a version that the stream has read is that of another dataset at the same place.

        If a cleanup has removed the version since, nothing can be compared.

        Raises
        ------
        InvalidInputError
            The dataset was dropped and created again.
        """
        try:
            found = self.identity(version)
        except VersionNotFoundError:
            _, newest = pin(self.options.uri, None, self.options.storage_options)
            if newest.version > version:
                return
            what = f"does not exist, as its newest version is {newest.version}"
        else:
            if not found or found == identity:
                return
            what = "is another one now"
        raise InvalidInputError(
            f"The dataset {self.options.uri} was dropped and created again: the stream has read version {version} of "
            f"it, which {what}; start a new query with a new checkpoint"
        )

    def stored(self, dataset: Any) -> list[str]:
        """Return the columns that a version has; those that were added later are null in its rows."""
        return [name for name in self.names if name in ROW_COLUMNS or name in dataset.schema.names]

    def first_since(self, text: str) -> int:
        """Return the first version at or after a moment in ISO format; the next one if there is none yet."""
        try:
            moment = dt.datetime.fromisoformat(text)
        except ValueError:
            raise InvalidInputError(
                f"The option 'starting_timestamp' is not a moment in ISO format: {text!r}"
            ) from None
        if moment.tzinfo is not None:
            moment = moment.astimezone().replace(tzinfo=None)
        newest = self.newest()
        return min(self._since(newest.versions(), moment), default=int(newest.version) + 1)

    @staticmethod
    def _since(versions: Sequence[Any], moment: dt.datetime) -> list[int]:
        return [int(entry["version"]) for entry in versions if entry["timestamp"] >= moment]
