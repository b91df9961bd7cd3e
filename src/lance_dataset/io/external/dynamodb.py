"""Manifest entries in a DynamoDB table, with the layout of the reference."""

# ruff: noqa: D102 - the methods are documented in lance_dataset.io.external.base

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache
from typing import Any

from lance_dataset.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InvalidInputError,
    MissingFileError,
    StorageError,
)
from lance_dataset.io.external.base import LARGEST_VERSION, ExternalManifests, ManifestEntry, required_package
from lance_dataset.io.secrets import keep_secret, scrubbed
from lance_dataset.late_dataclass import dataclass

__all__ = ["DynamoAccess", "DynamoManifests", "dynamo_manifests"]

_HASH, _RANGE = "base_uri", "version"
_KEY_SCHEMA = {(_HASH, "HASH", "S"), (_RANGE, "RANGE", "N")}
_COMMITTER = "lancedb"
_BATCH = 25
_BATCH_ATTEMPTS = 10
_ATTEMPTS = 6
_REGION_WITH_ENDPOINT = "us-east-1"


@dataclass(frozen=True)
class DynamoAccess:
    """Endpoint, region and credentials of DynamoDB; None for the settings of the machine, as boto3 finds them."""

    endpoint: str | None = field(default=None, repr=False)
    region: str | None = None
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> DynamoAccess:
        """Build it from the storage options of an S3 store, whose keys are in lower case."""

        def option(*names: str) -> str | None:
            return next((options[name] for name in names if options.get(name)), None)

        endpoint = option("dynamodb_endpoint") or os.environ.get("DYNAMODB_ENDPOINT") or None
        region = option("aws_region", "region", "aws_default_region", "default_region")
        region = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or None
        return cls(
            endpoint,
            region or (_REGION_WITH_ENDPOINT if endpoint else None),
            option("aws_access_key_id", "access_key_id"),
            option("aws_secret_access_key", "secret_access_key"),
            option("aws_session_token", "session_token", "aws_token", "token"),
        )


@lru_cache(maxsize=64)
def dynamo_manifests(table: str, access: DynamoAccess) -> DynamoManifests:
    """Return the entries in a table; the same object for the same arguments, as making a client is slow."""
    return DynamoManifests(table, access)


class DynamoManifests(ExternalManifests):
    """Manifest entries in a DynamoDB table with the keys ``base_uri`` (text, HASH) and ``version`` (number, RANGE).

    Parameters
    ----------
    table
        Name of the table.
    access
        Endpoint, region and credentials.
    """

    def __init__(self, table: str, access: DynamoAccess) -> None:
        self._table = table
        self._access = access
        keep_secret((access.secret_access_key, access.session_token))
        self._lock = threading.Lock()
        self._client: Any = None
        self._process = 0

    def __repr__(self) -> str:
        return f"DynamoManifests({self._table!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return dynamo_manifests, (self._table, self._access)

    def key(self, uri: str, root: str) -> str:
        key = root.strip("/")
        if not key:
            raise InvalidInputError(
                f"{uri}: a dataset in the root of a bucket has no key in DynamoDB; put it in a folder"
            )
        return key

    def get(self, key: str, version: int) -> ManifestEntry | None:
        found = self._call("get_item", Key=_key(key, version), ConsistentRead=True).get("Item")
        return None if found is None else self._entry(key, found)

    def get_latest(self, key: str) -> ManifestEntry | None:
        answer = self._call(
            "query",
            KeyConditionExpression=f"{_HASH} = :key AND {_RANGE} <= :largest",
            ExpressionAttributeValues={":key": {"S": key}, ":largest": {"N": str(LARGEST_VERSION)}},
            ScanIndexForward=False,
            Limit=1,
            ConsistentRead=True,
        )
        return self._entry(key, answer["Items"][0]) if answer["Items"] else None

    def put_if_absent(self, key: str, entry: ManifestEntry) -> None:
        with _when_refused(AlreadyExistsError(f"{self!r} has an entry for version {entry.version} of {key}")):
            self._put(key, entry, f"attribute_not_exists({_HASH}) AND attribute_not_exists({_RANGE})")

    def put_if_exists(self, key: str, entry: ManifestEntry) -> None:
        with _when_refused(MissingFileError(f"{self!r} has no entry for version {entry.version} of {key}")):
            self._put(key, entry, f"attribute_exists({_HASH}) AND attribute_exists({_RANGE})")

    def delete(self, key: str, versions: Iterable[int] | None = None) -> None:
        keys = [_key(key, version) for version in versions] if versions is not None else list(self._keys(key))
        for start in range(0, len(keys), _BATCH):
            self._delete([{"DeleteRequest": {"Key": each}} for each in keys[start : start + _BATCH]])

    def _put(self, key: str, entry: ManifestEntry, condition: str) -> None:
        item = {**_key(key, entry.version), "path": {"S": f"{key}/{entry.path}"}, "committer": {"S": _COMMITTER}}
        if entry.size is not None:
            item["size"] = {"N": str(entry.size)}
        self._call("put_item", Item=item, ConditionExpression=condition)

    def _keys(self, key: str) -> Iterator[dict[str, Any]]:
        start: dict[str, Any] = {}
        while True:
            answer = self._call(
                "query",
                KeyConditionExpression=f"{_HASH} = :key",
                ExpressionAttributeValues={":key": {"S": key}},
                ExpressionAttributeNames={"#version": _RANGE},
                ProjectionExpression=f"{_HASH}, #version",
                ConsistentRead=True,
                **start,
            )
            yield from answer["Items"]
            if not answer.get("LastEvaluatedKey"):
                return
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _delete(self, requests: list[dict[str, Any]]) -> None:
        """Remove up to 25 entries; DynamoDB may postpone some of them if it is busy."""
        for attempt in range(_BATCH_ATTEMPTS):
            answer = self._call("batch_write_item", table_argument=False, RequestItems={self._table: requests})
            requests = answer.get("UnprocessedItems", {}).get(self._table, [])
            if not requests:
                return
            time.sleep(min(2.0, 0.05 * 2**attempt))
        raise StorageError(f"{self!r} is too busy to remove {len(requests)} entries; try again later")

    def _entry(self, key: str, item: Mapping[str, Any]) -> ManifestEntry:
        try:
            version, path = int(item[_RANGE]["N"]), item["path"]["S"]
            size = int(item["size"]["N"]) if "size" in item else None
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptFileError(f"{self!r} has an entry of {key} without a proper version, path or size") from error
        if not path.startswith(f"{key}/"):
            raise CorruptFileError(f"{self!r} has an entry of {key} whose path {path!r} lies outside of it")
        return ManifestEntry(version, path[len(key) + 1 :], size)

    def _call(self, method: str, *, table_argument: bool = True, **arguments: Any) -> Any:
        if table_argument:
            arguments["TableName"] = self._table
        client = self._connected()
        with self._failures():
            return getattr(client, method)(**arguments)

    def _connected(self) -> Any:
        with self._lock:
            # a connection must not be shared with the process that this one was forked from
            if self._client is None or self._process != os.getpid():
                client = self._connect()
                self._check_keys(client)
                self._client, self._process = client, os.getpid()
            return self._client

    def _connect(self) -> Any:
        boto3 = required_package("boto3", "dynamodb", "a manifest store in DynamoDB")
        config = required_package("botocore.config", "dynamodb", "a manifest store in DynamoDB").Config
        access = self._access
        with self._failures():
            session = boto3.session.Session(
                aws_access_key_id=access.access_key_id,
                aws_secret_access_key=access.secret_access_key,
                aws_session_token=access.session_token,
                region_name=access.region,
            )
            retries = {"mode": "standard", "total_max_attempts": _ATTEMPTS}
            return session.client("dynamodb", endpoint_url=access.endpoint, config=config(retries=retries))

    def _check_keys(self, client: Any) -> None:
        with self._failures():
            table = client.describe_table(TableName=self._table)["Table"]
        types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
        keys = {(each["AttributeName"], each["KeyType"], types[each["AttributeName"]]) for each in table["KeySchema"]}
        if keys != _KEY_SCHEMA:
            found = ", ".join(f"{name} ({kind}, {role})" for name, role, kind in sorted(keys))
            raise InvalidInputError(
                f"the DynamoDB table {self._table!r} has the keys {found}; a manifest store needs exactly "
                "base_uri (S, HASH) and version (N, RANGE)"
            )

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Translate errors of the client; raise `_Refused` if a condition is not met."""
        exceptions = required_package("botocore.exceptions", "dynamodb", "a manifest store in DynamoDB")
        try:
            yield
        except exceptions.ClientError as error:
            scrubbed(error)
            code = error.response.get("Error", {}).get("Code", "")
            if code == "ConditionalCheckFailedException":
                raise _Refused from error
            if code == "ResourceNotFoundException":
                raise InvalidInputError(
                    f"there is no DynamoDB table {self._table!r}; create it with the keys base_uri (S, HASH) and "
                    "version (N, RANGE)"
                ) from error
            raise StorageError(f"the DynamoDB table {self._table!r} refused: {error}") from error
        except exceptions.BotoCoreError as error:
            raise StorageError(f"the DynamoDB table {self._table!r} cannot be reached: {scrubbed(error)}") from error


class _Refused(Exception):
    """Error of a change whose condition is not met."""


@contextmanager
def _when_refused(error: Exception) -> Iterator[None]:
    try:
        yield
    except _Refused:
        raise error from None


def _key(key: str, version: int) -> dict[str, Any]:
    return {_HASH: {"S": key}, _RANGE: {"N": str(version)}}
