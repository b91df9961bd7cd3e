"""Manifest entries in a table of any SQL database that SQLAlchemy supports."""

# ruff: noqa: D102 - the methods are documented in lance_dataset.io.external.base

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from lance_dataset.errors import AlreadyExistsError, InvalidInputError, MissingFileError, StorageError
from lance_dataset.io.external.base import LARGEST_VERSION, ExternalManifests, ManifestEntry, required_package
from lance_dataset.io.secrets import keep_secret, redacted, scrubbed

__all__ = ["DEFAULT_TABLE", "SqlManifests", "sql_manifests"]

DEFAULT_TABLE = "lance_manifests"
#: Seconds to wait while another process writes to an SQLite file.
_BUSY_SECONDS = 60.0
_DELETED_AT_ONCE = 500


def sql_manifests(url: str, table: str = DEFAULT_TABLE) -> SqlManifests:
    """Return the entries in a table of a database; the same object for the same place.

    Parameters
    ----------
    url
        A URL of SQLAlchemy, ``sqlite:////shared/manifests.db`` or ``postgresql+psycopg://user@host/database``.
    table
        Name of the table, created on first use.

    Raises
    ------
    InvalidInputError
        The URL is malformed, or names a database in memory, which other processes do not see.
    UnsupportedError
        SQLAlchemy or the driver of the database is not installed.
    """
    sqlalchemy = required_package("sqlalchemy", "sql-manifests", "a manifest store in an SQL database")
    try:
        parsed = sqlalchemy.make_url(url)
    except sqlalchemy.exc.ArgumentError:  # some releases of SQLAlchemy quote the URL
        raise InvalidInputError(
            "manifest_store_url is not a URL of SQLAlchemy such as 'sqlite:////shared/manifests.db'"
        ) from None
    if parsed.get_backend_name() == "sqlite":
        database = parsed.database or ":memory:"
        if database == ":memory:" or database.startswith("file:"):
            raise InvalidInputError(
                "manifest_store_url must name a file, as in 'sqlite:////shared/manifests.db': other processes "
                "do not see a database in memory"
            )
        parsed = parsed.set(database=os.path.abspath(database))
    return _cached(parsed.render_as_string(hide_password=False), table)


@lru_cache(maxsize=64)
def _cached(url: str, table: str) -> SqlManifests:
    return SqlManifests(url, table)


class SqlManifests(ExternalManifests):
    """Manifest entries in a table of an SQL database, one row each; every call is a separate transaction.

    The primary key consists of the version and the SHA-256 of the dataset's location, which always has the same length
    and alphabet.

    Parameters
    ----------
    url
        URL of the database.
    table
        Name of the table.
    """

    def __init__(self, url: str, table: str) -> None:
        sqlalchemy = required_package("sqlalchemy", "sql-manifests", "a manifest store in an SQL database")
        self._sql = sqlalchemy
        self._url = sqlalchemy.make_url(url)
        keep_secret((self._url.password, *_texts(self._url.query)))
        self._lock = threading.Lock()
        self._is_checked = False
        is_sqlite = self._url.get_backend_name() == "sqlite"
        try:
            # no pool: connections must not survive a fork, and commits are rare
            self._engine = sqlalchemy.create_engine(
                self._url,
                poolclass=sqlalchemy.pool.NullPool,
                connect_args={"timeout": _BUSY_SECONDS} if is_sqlite else {},
            )
        except (sqlalchemy.exc.ArgumentError, ImportError) as error:
            raise InvalidInputError(f"{self!r}: the database cannot be used: {scrubbed(error)}") from error
        self._rows = sqlalchemy.Table(
            table,
            sqlalchemy.MetaData(),
            sqlalchemy.Column("dataset", sqlalchemy.String(64), primary_key=True),
            sqlalchemy.Column("version", sqlalchemy.BigInteger, primary_key=True, autoincrement=False),
            sqlalchemy.Column("location", sqlalchemy.Text, nullable=False),
            sqlalchemy.Column("path", sqlalchemy.String(255), nullable=False),
            sqlalchemy.Column("size", sqlalchemy.BigInteger, nullable=True),
        )

    def __repr__(self) -> str:
        return f"SqlManifests({self._url.set(query={}).render_as_string(hide_password=True)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return sql_manifests, (self._url.render_as_string(hide_password=False), self._rows.name)

    def key(self, uri: str, root: str) -> str:
        return uri

    def get(self, key: str, version: int) -> ManifestEntry | None:
        return None if version > LARGEST_VERSION else self._first(self._of(key, version))

    def get_latest(self, key: str) -> ManifestEntry | None:
        return self._first(self._of(key))

    def put_if_absent(self, key: str, entry: ManifestEntry) -> None:
        values = {"dataset": _digest(key), "version": entry.version, "location": key}
        try:
            with self._transaction() as connection:
                insert = self._rows.insert().values(**values, path=entry.path, size=entry.size)
                connection.execute(insert)
        except self._sql.exc.IntegrityError as error:
            raise AlreadyExistsError(f"{self!r} has an entry for version {entry.version} of {key}") from error

    def put_if_exists(self, key: str, entry: ManifestEntry) -> None:
        update = self._rows.update().where(self._of(key, entry.version)).values(path=entry.path, size=entry.size)
        with self._transaction() as connection:
            # MySQL counts only rows that changed, so look for a row that already has the values
            found = connection.execute(update).rowcount or self._selected(connection, self._of(key, entry.version))
        if not found:
            raise MissingFileError(f"{self!r} has no entry for version {entry.version} of {key}")

    def delete(self, key: str, versions: Iterable[int] | None = None) -> None:
        if versions is None:
            with self._transaction() as connection:
                connection.execute(self._rows.delete().where(self._of(key)))
            return
        gone = [version for version in versions if version <= LARGEST_VERSION]
        for start in range(0, len(gone), _DELETED_AT_ONCE):
            some = self._rows.c.version.in_(gone[start : start + _DELETED_AT_ONCE])
            with self._transaction() as connection:
                connection.execute(self._rows.delete().where(self._of(key)).where(some))

    def _of(self, key: str, version: int | None = None) -> Any:
        condition = self._rows.c.dataset == _digest(key)
        return condition if version is None else condition & (self._rows.c.version == version)

    def _first(self, condition: Any) -> ManifestEntry | None:
        with self._transaction() as connection:
            row = self._selected(connection, condition)
        return None if row is None else ManifestEntry(row.version, row.path, row.size)

    def _selected(self, connection: Any, condition: Any) -> Any:
        rows = self._rows.c
        query = self._sql.select(rows.version, rows.path, rows.size).where(condition)
        return connection.execute(query.order_by(rows.version.desc()).limit(1)).first()

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with self._failures():
            self._check_table()
            with self._engine.begin() as connection:
                yield connection

    @contextmanager
    def _failures(self) -> Iterator[None]:
        errors = self._sql.exc
        try:
            yield
        except errors.IntegrityError:
            raise
        except errors.SQLAlchemyError as error:
            cause = getattr(error, "orig", None)
            if isinstance(cause, BaseException):
                scrubbed(cause)
            raise StorageError(f"{self!r} failed: {redacted(str(cause or scrubbed(error)))}") from error

    def _check_table(self) -> None:
        with self._lock:
            if self._is_checked:
                return
            if not self._sql.inspect(self._engine).has_table(self._rows.name):
                try:
                    self._rows.create(self._engine)
                except self._sql.exc.SQLAlchemyError:
                    if not self._sql.inspect(self._engine).has_table(self._rows.name):  # nor did another process
                        raise
            inspector = self._sql.inspect(self._engine)
            keys = inspector.get_pk_constraint(self._rows.name)["constrained_columns"]
            columns = {column["name"] for column in inspector.get_columns(self._rows.name)}
            if set(keys) != {"dataset", "version"} or not columns.issuperset(self._rows.c.keys()):
                raise InvalidInputError(
                    f"{self!r}: the table {self._rows.name!r} is used for something else, its columns are "
                    f"{', '.join(sorted(columns))}; choose another with the storage option manifest_store_table"
                )
            self._is_checked = True


def _texts(query: Mapping[str, str | tuple[str, ...]]) -> Iterator[str]:
    """Yield the values of a query of a URL, which may have a password."""
    for value in query.values():
        yield from (value,) if isinstance(value, str) else value


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
