"""Choice of an external manifest store, by the scheme of a location or by storage options."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from lance_dataset.errors import InvalidInputError
from lance_dataset.io.external.base import ExternalManifests
from lance_dataset.io.external.dynamodb import DynamoAccess, dynamo_manifests
from lance_dataset.io.external.sql import DEFAULT_TABLE, sql_manifests
from lance_dataset.io.secrets import redacted

__all__ = ["without_manifests"]

_DYNAMO_PREFIX = "s3+ddb://"
_URL, _TABLE = "manifest_store_url", "manifest_store_table"


def without_manifests(uri: str, storage_options: Mapping[str, str]) -> tuple[str, ExternalManifests | None]:
    """Return the location of the objects, and the external manifest store, None if there is none.

    Parameters
    ----------
    uri
        Location of the table; ``s3+ddb://bucket/path?ddbTableName=NAME`` is ``s3://bucket/path`` with a DynamoDB table.
    storage_options
        ``manifest_store_url`` (a URL of SQLAlchemy) chooses an SQL database, ``manifest_store_table`` its table.

    Raises
    ------
    InvalidInputError
        The DynamoDB table is not named, or the options contradict each other.
    """
    options = {key.lower(): str(value) for key, value in storage_options.items()}
    url, table = options.get(_URL), options.get(_TABLE)
    if uri[: len(_DYNAMO_PREFIX)].lower() == _DYNAMO_PREFIX:
        if url is not None or table is not None:
            raise InvalidInputError(
                f"{redacted(uri)!r} keeps its manifests in DynamoDB, so {_URL} and {_TABLE} must be left out"
            )
        location, name = _dynamo_parts(uri)
        return location, dynamo_manifests(name, DynamoAccess.from_options(options))
    if url is None and table is not None:
        raise InvalidInputError(f"storage option {_TABLE!r} names a table of the database {_URL!r}, which is missing")
    return uri, None if url is None else sql_manifests(url, table or DEFAULT_TABLE)


def _dynamo_parts(uri: str) -> tuple[str, str]:
    location, _, query = uri[len(_DYNAMO_PREFIX) :].partition("?")
    parameters = parse_qsl(query, keep_blank_values=True)
    if len(parameters) != 1 or parameters[0][0] != "ddbTableName" or not parameters[0][1]:
        raise InvalidInputError(
            f"{redacted(uri)!r}: a location with the scheme s3+ddb expects exactly one query 'ddbTableName', as in "
            "'s3+ddb://bucket/path?ddbTableName=NAME'"
        )
    return f"s3://{location}", parameters[0][1]
