"""Versions of a dataset with what made them, as a sequence that prints as a table and can be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, overload

from lance_dataset.arguments import check_count
from lance_dataset.errors import LanceError, MissingFileError
from lance_dataset.plots import axes_of_size, check_axes
from lance_dataset.read.location import TableLocation
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.history import transaction_of
from lance_dataset.records.operations import LANCE_COMMIT_MESSAGE_KEY
from lance_dataset.records.results import Tag
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.versions import list_versions, read_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["VersionEntry", "VersionHistory", "read_history"]

_NAMES = ("version", "time", "operation", "rows", "tags", "message")
_COLORS = {
    "Append": "#2f6f9f",
    "Overwrite": "#8a4fa3",
    "Delete": "#b3403a",
    "Update": "#c9822b",
    "Merge": "#5d8f3c",
    "CreateIndex": "#3f8f8b",
    "Rewrite": "#6b7785",
}
_OTHER = "#1d2733"


@dataclass(frozen=True)
class VersionEntry:
    """A version and what made it.

    Attributes
    ----------
    version
        Number of the version.
    timestamp
        Time of the commit, with its zone.
    operation
        Name of the operation, such as ``Append``; None if its transaction is not known.
    message
        Message of the commit, or None.
    rows
        Number of rows; None if the manifest does not say.
    fragments
        Number of fragments.
    tags
        Tags of the version.
    """

    version: int
    timestamp: datetime
    operation: str | None
    message: str | None
    rows: int | None
    fragments: int
    tags: tuple[str, ...]


class VersionHistory(Sequence[VersionEntry]):
    """Versions, oldest first. Prints as a table; `plot` draws the number of rows over the versions."""

    def __init__(self, entries: Sequence[VersionEntry]) -> None:
        self._entries = tuple(entries)

    def __len__(self) -> int:
        """Return the number of versions."""
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> VersionEntry: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[VersionEntry]: ...

    def __getitem__(self, index: int | slice) -> VersionEntry | Sequence[VersionEntry]:
        """Return a version by its place, or several as a tuple."""
        return self._entries[index]

    def __repr__(self) -> str:
        if not self:
            return "<VersionHistory: no versions>"
        return f"<VersionHistory: {len(self):,} versions, {self[0].version} to {self[-1].version}>"

    def __str__(self) -> str:
        rows = [_NAMES, *map(_cells, self)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_NAMES))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _NAMES)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(entry))}</tr>" for entry in self)
        return f"<table><tr>{head}</tr>{body}</table>"

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the number of rows over the versions, with a color for each operation, and tags.

        Parameters
        ----------
        axes
            Axes of matplotlib to draw in; None for those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        UnsupportedError
            The extra ``plot`` is not installed.
        """
        given = check_axes(axes)
        from matplotlib.ticker import MaxNLocator

        drawn = axes_of_size(given, 8, 3)
        known = [entry for entry in self if entry.rows is not None]
        versions, rows = [entry.version for entry in known], [entry.rows or 0 for entry in known]
        drawn.step(versions, rows, where="post", color="#c3ccd5", linewidth=1.2, zorder=1)
        for name in dict.fromkeys(entry.operation for entry in known):
            made = [entry for entry in known if entry.operation == name]
            drawn.scatter(
                [entry.version for entry in made],
                [entry.rows or 0 for entry in made],
                s=28,
                color=_COLORS.get(name or "", _OTHER),
                label=name or "unknown",
                zorder=2,
            )
        for entry in known:
            if entry.tags:
                tags = ", ".join(entry.tags)
                place = (entry.version, entry.rows or 0)
                drawn.annotate(tags, place, xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8)
        drawn.set_xlabel("version")
        drawn.set_ylabel("rows")
        drawn.set_ylim(bottom=0)
        drawn.margins(y=0.15)
        drawn.xaxis.set_major_locator(MaxNLocator(integer=True))
        if known:
            drawn.legend(fontsize=8)
        return drawn


def read_history(snapshot: Snapshot, tags: Mapping[str, Tag], limit: int | None) -> VersionHistory:
    """Read the newest versions of the branch of a snapshot; None for all."""
    if limit is not None:
        check_count("limit", limit)
    by_version: dict[int, list[str]] = {}
    for tag, marked in tags.items():
        if marked["branch"] == snapshot.manifest.branch:
            by_version.setdefault(marked["version"], []).append(tag)
    names = list_versions(snapshot.store, snapshot.root)
    chosen = names if limit is None else names[max(len(names) - limit, 0) :]
    found: list[VersionEntry] = []
    for name in chosen:
        with suppress(MissingFileError):  # removed by a cleanup since the listing
            manifest = read_named(snapshot.store, snapshot.root, name)
            found.append(_entry(snapshot.location, manifest, by_version.get(name.version, [])))
    return VersionHistory(found)


def _entry(location: TableLocation, manifest: Manifest, tags: Sequence[str]) -> VersionEntry:
    made = None
    with suppress(LanceError):  # a transaction that cannot be read any more
        made = transaction_of(location, manifest)
    return VersionEntry(
        version=manifest.version,
        timestamp=manifest.timestamp,
        operation=None if made is None else type(made.operation).__name__,
        message=None if made is None else (made.transaction_properties or {}).get(LANCE_COMMIT_MESSAGE_KEY),
        rows=manifest.num_rows,
        fragments=len(manifest.fragment_list.columns.ids),
        tags=tuple(sorted(tags)),
    )


def _cells(entry: VersionEntry) -> tuple[str, ...]:
    moment = entry.timestamp.astimezone().strftime("%Y-%m-%d %H:%M:%S%z")
    rows = "?" if entry.rows is None else f"{entry.rows:,}"
    return (
        *(str(entry.version), moment, entry.operation or "?", rows, ", ".join(entry.tags)),
        "".join(each if each.isprintable() else repr(each)[1:-1] for each in entry.message or ""),
    )
