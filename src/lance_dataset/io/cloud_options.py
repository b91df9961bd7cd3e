"""Options of cloud stores: names, aliases, environment variables, values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from lance_dataset.errors import InvalidInputError
from lance_dataset.io.option_values import flag_option, number_option
from lance_dataset.io.secrets import redacted
from lance_dataset.late_dataclass import dataclass

__all__ = [
    "AZURE",
    "GCS",
    "S3",
    "CloudOptions",
    "StoreKind",
    "cloud_environment",
    "is_credential",
    "is_shared_option",
    "read_options",
    "secret_values",
]

#: Options of the HTTP client, the same for every store. Flags are true or false.
_CLIENT_FLAGS = frozenset({"allow_http", "allow_invalid_certificates", "http1_only", "http2_only"})
_CLIENT_TEXTS = frozenset(
    {
        "connect_timeout",
        "default_content_type",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "timeout",
        "user_agent",
    }
)
_CLIENT = _CLIENT_FLAGS | _CLIENT_TEXTS
#: Options that this package handles itself, with their defaults.
_OWN = {"client_max_retries": 3, "client_retry_timeout": 180, "download_retry_count": 3, "block_size": 64 << 10}


@dataclass(frozen=True)
class StoreKind:
    """Options of one kind of store.

    Attributes
    ----------
    name
        Name for messages.
    prefixes
        Optional prefixes of a key, longest first; the last one is that of environment variables.
    keys
        Names of options without prefix.
    aliases
        Mapping from other spellings, without prefix, to names.
    credentials
        Names of the options that identify a user, or that give or prove a right.
    """

    name: str
    prefixes: tuple[str, ...]
    keys: frozenset[str]
    aliases: Mapping[str, str]
    credentials: frozenset[str]

    def canonical(self, key: str) -> str | None:
        """Return the name of an option given in any spelling, None if stores of this kind do not have it."""
        lowered = key.lower()
        stripped = next((lowered[len(each) :] for each in self.prefixes if lowered.startswith(each)), lowered)
        for name in (lowered, stripped):
            name = self.aliases.get(name, name)
            if name in self.keys or name in _CLIENT or name in _OWN:
                return name
        return None


S3 = StoreKind(
    "S3",
    ("aws_",),
    frozenset(
        {
            "access_key_id",
            "checksum_algorithm",
            "conditional_put",
            "default_region",
            "disable_tagging",
            "endpoint",
            "imdsv1_fallback",
            "metadata_endpoint",
            "region",
            "request_payer",
            "role_arn",
            "role_session_name",
            "s3_express",
            "secret_access_key",
            "server_side_encryption",
            "session_token",
            "skip_signature",
            "sse_bucket_key_enabled",
            "sse_customer_key_base64",
            "sse_kms_key_id",
            "unsigned_payload",
            "virtual_hosted_style_request",
            "web_identity_token_file",
        }
    ),
    {"endpoint_url": "endpoint", "token": "session_token"},
    frozenset(
        {
            "access_key_id",
            "role_arn",
            "role_session_name",
            "secret_access_key",
            "session_token",
            "sse_customer_key_base64",
            "web_identity_token_file",
        }
    ),
)
GCS = StoreKind(
    "Google Cloud Storage",
    ("google_",),
    frozenset(
        {
            "application_credentials",
            "base_url",
            "service_account",
            "service_account_key",
            "skip_signature",
        }
    ),
    {"service_account_path": "service_account"},
    frozenset({"application_credentials", "service_account", "service_account_key"}),
)
AZURE = StoreKind(
    "Azure",
    ("azure_storage_", "azure_"),
    frozenset(
        {
            "account_key",
            "account_name",
            "authority_host",
            "client_id",
            "client_secret",
            "disable_tagging",
            "endpoint",
            "fabric_cluster_identifier",
            "fabric_session_token",
            "fabric_token_service_url",
            "fabric_workload_host",
            "federated_token_file",
            "msi_endpoint",
            "msi_resource_id",
            "object_id",
            "sas_key",
            "skip_signature",
            "tenant_id",
            "token",
            "use_azure_cli",
            "use_emulator",
            "use_fabric_endpoint",
        }
    ),
    {
        "access_key": "account_key",
        "authority_id": "tenant_id",
        "azure_use_azure_cli": "use_azure_cli",
        "bearer_token": "token",
        "identity_endpoint": "msi_endpoint",
        "master_key": "account_key",
        "object_store_use_emulator": "use_emulator",
        "sas_token": "sas_key",
    },
    frozenset(
        {
            "account_key",
            "client_id",
            "client_secret",
            "fabric_session_token",
            "fabric_token_service_url",
            "federated_token_file",
            "msi_endpoint",
            "msi_resource_id",
            "object_id",
            "sas_key",
            "tenant_id",
            "token",
            "use_azure_cli",
        }
    ),
)
_KINDS = (S3, GCS, AZURE)
#: Credentials that are secret themselves; others are names, or places where a secret is found.
_SECRETS = frozenset(
    {
        "account_key",
        "client_secret",
        "fabric_session_token",
        "sas_key",
        "secret_access_key",
        "service_account_key",
        "session_token",
        "sse_customer_key_base64",
        "token",
    }
)


@dataclass(frozen=True)
class CloudOptions:
    """Options under the names that the client library uses.

    Attributes
    ----------
    config
        Options of the store that the user gave.
    client
        Options of the HTTP connections.
    max_retries
        Maximum number of retries of a failed request.
    retry_timeout
        Number of seconds after which a request is not retried.
    download_retries
        Maximum number of retries of a download that broke off.
    block_size
        Number of bytes. Ranges with smaller gaps are fetched together, and the first request for a file fetches this
        much of its end.
    express
        True if the store is S3 Express One Zone.
    """

    config: Mapping[str, str] = field(repr=False)
    client: Mapping[str, Any] = field(repr=False)
    max_retries: int
    retry_timeout: int
    download_retries: int
    block_size: int
    express: bool


def is_credential(kind: StoreKind, key: str) -> bool:
    """Return True if stores of a kind take an option as a credential."""
    return kind.canonical(key) in kind.credentials


def is_shared_option(kind: StoreKind, key: str, own: StoreKind | None) -> bool:
    """Return True if an option of a table may be used for a store of this kind in another place.

    Parameters
    ----------
    kind
        Kind of the other store.
    key
        The option. Credentials of any kind of store are not shared.
    own
        Kind of the store of the table, None unless that is a cloud store. Options that have a meaning there and for
        `kind`, such as ``endpoint``, are shared between stores of one kind only.
    """
    if any(is_credential(each, key) for each in _KINDS):
        return False
    if own is None or own is kind or kind.canonical(key) in _CLIENT | _OWN.keys():
        return True
    return own.canonical(key) is None


def secret_values(kind: StoreKind, options: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """Return the values of credentials in options and environment variables, which must not be shown."""
    pairs = [*options.items(), *environment.items()]
    return [str(value) for key, value in pairs if value is not None and kind.canonical(key) in _SECRETS]


def cloud_environment(kind: StoreKind) -> dict[str, str]:
    """Return the environment variables that are options of a kind of store."""
    prefix = kind.prefixes[-1].upper()
    plain = {key.upper() for key in _CLIENT | _OWN.keys()}
    return {name: value for name, value in os.environ.items() if name.startswith(prefix) or name in plain}


def read_options(
    kind: StoreKind, options: Mapping[str, str], environment: Mapping[str, str], where: str
) -> CloudOptions:
    """Return the options of a store: those that the user gave, completed from the environment.

    Parameters
    ----------
    kind
        Kind of the store.
    options
        Options of the user. Names may have any case and spelling; unknown ones are ignored.
    environment
        See `cloud_environment`.
    where
        URI of the store, for messages.

    Raises
    ------
    InvalidInputError
        A value is invalid, or two spellings of one option have different values.
    """
    given = _by_name(kind, options.items(), where)
    merged = {**_by_name(kind, sorted(environment.items()), where, lenient=True), **given}
    before = f"{where}: "
    # The client library reads the environment too, for its own options.
    config = {name: value for name, value in given.items() if name in kind.keys}
    client: dict[str, Any] = {name: value for name, value in merged.items() if name in _CLIENT_TEXTS}
    client |= {name: flag_option(name, merged[name], before) for name in _CLIENT_FLAGS & merged.keys()}
    endpoint = merged.get("endpoint", "")
    if endpoint.lower().startswith("http://") and not client.get("allow_http"):
        raise InvalidInputError(
            f"{where}: the endpoint {redacted(endpoint)!r} is not encrypted; use https, or allow it with the storage "
            "option allow_http='true'"
        )
    numbers = {name: number_option(name, merged.get(name, str(default)), before) for name, default in _OWN.items()}
    return CloudOptions(
        config,
        client,
        numbers["client_max_retries"],
        numbers["client_retry_timeout"],
        numbers["download_retry_count"],
        max(numbers["block_size"], 1 << 10),
        "s3_express" in merged and flag_option("s3_express", merged["s3_express"], before),
    )


def _by_name(kind: StoreKind, items: Iterable[tuple[str, str]], where: str, *, lenient: bool = False) -> dict[str, str]:
    """Return values by canonical name; if the environment has two spellings of an option, the first one wins."""
    found: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for key, value in items:
        name = kind.canonical(key)
        if name is None or value is None:
            continue
        text = str(value)
        if found.setdefault(name, text) != text and not lenient:
            raise InvalidInputError(f"{where}: the storage options {spelled[name]!r} and {key!r} contradict each other")
        spelled.setdefault(name, key)
    return found
