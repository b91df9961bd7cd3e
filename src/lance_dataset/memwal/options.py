"""Options of writers of shards, and their forms as text in the details of a MemWAL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError, nearest_name_hint

__all__ = ["WriterOptions", "recorded_options"]

_HNSW = {"num_edges": 20, "ef_construction": 150, "max_level": 7}


@dataclass(frozen=True)
class WriterOptions:
    """Options of a writer.

    Attributes
    ----------
    durable_write
        True if a put returns when its rows are in the log, False if they may wait.
    max_wal_buffer_size, max_wal_flush_interval_ms
        Bytes of rows and milliseconds that rows wait for the log at most.
    max_memtable_size, max_memtable_rows, max_memtable_batches
        A memtable that has as many bytes, rows or batches is flushed.
    max_unflushed_memtable_bytes
        Writers wait while unflushed memtables have more bytes.
    manifest_scan_batch_size
        Accepted, without effect.
    backpressure_log_interval_ms, stats_log_interval_ms
        Milliseconds between messages about waiting and about statistics; 0 for none.
    """

    durable_write: bool = True
    max_wal_buffer_size: int = 10 << 20
    max_wal_flush_interval_ms: int = 100
    max_memtable_size: int = 256 << 20
    max_memtable_rows: int = 100_000
    max_memtable_batches: int = 8_000
    max_unflushed_memtable_bytes: int = 1 << 30
    manifest_scan_batch_size: int = 2
    backpressure_log_interval_ms: int = 30_000
    stats_log_interval_ms: int = 60_000
    hnsw: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> WriterOptions:
        """Check options that a user gives; None stands for the default.

        Raises
        ------
        TypeError
            A value has the wrong type.
        InvalidInputError, OutOfRangeError
            A value is out of range.
        """
        chosen: dict[str, Any] = {}
        for name, value in given.items():
            if value is None:
                continue
            if name == "durable_write":
                if not isinstance(value, bool):
                    raise TypeError(f"durable_write must be True or False, not {value!r}")
                chosen[name] = value
            elif name == "hnsw_params":
                chosen["hnsw"] = _checked_hnsw(value)
            else:
                chosen[name] = _checked_count(name, value)
        return replace(cls(), **chosen)


def _checked_count(name: str, value: object) -> int:
    number = checked_integer(name, value)
    least = 0 if name.endswith("_interval_ms") else 1
    if number < least:
        raise InvalidInputError(f"{name} must be at least {least}, not {number}")
    return number


def _checked_hnsw(value: object) -> dict[str, dict[str, int]]:
    if not isinstance(value, Mapping):
        raise TypeError(f"hnsw_params must map names of indices to parameters, not {value!r}")
    found: dict[str, dict[str, int]] = {}
    for index, parameters in value.items():
        if not isinstance(index, str) or not isinstance(parameters, Mapping):
            raise TypeError(f"hnsw_params must map names of indices to parameters, not {value!r}")
        for name in parameters:
            if name not in _HNSW:
                raise InvalidInputError(f"unknown HNSW parameter {name!r}{nearest_name_hint(str(name), list(_HNSW))}")
        found[index] = {name: _checked_count(name, parameters.get(name, usual)) for name, usual in _HNSW.items()}
    return found


def recorded_options(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that a MemWAL records as defaults of writers: all if the user gave any, else none.

    Errors are those of `WriterOptions.of`.
    """
    if all(value is None for value in given.values()):
        return {}
    options = WriterOptions.of(given)
    texts = {"enable_memtable": "true", "max_wal_persist_retries": "3", "wal_persist_retry_base_delay_ms": "50"}
    for each in fields(options):
        value = getattr(options, each.name)
        if each.name != "hnsw":
            texts[each.name] = str(value).lower()
    for index, parameters in options.hnsw.items():
        texts.update({f"hnsw.{index}.{name}": str(number) for name, number in parameters.items()})
    return texts
