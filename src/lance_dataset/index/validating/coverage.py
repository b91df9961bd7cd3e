"""Check of what a manifest says of the indices, apart from their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lance_dataset.index.segments import Segment

__all__ = ["contradictions"]


def contradictions(segments: Sequence[Segment]) -> Iterator[tuple[Segment, str]]:
    """Yield what is wrong with the segments of one index, each with a segment that it is about.

    Parameters
    ----------
    segments
        All segments, at least one.
    """
    first = segments[0]
    manifest = first.reader.manifest
    highest = max(manifest.max_fragment_id or 0, int(manifest.fragment_list.columns.ids.max(initial=0)))
    owners: dict[int, str] = {}
    for each in segments:
        if each.kind != first.kind or each.metadata.fields != first.metadata.fields:
            yield (
                each,
                f"is a {each.kind} index of field {_listed(each.metadata.fields)}, but another segment of it is a "
                f"{first.kind} index of field {_listed(first.metadata.fields)}",
            )
        unknown = sorted(each.recorded - frozenset(range(highest + 1)))
        if unknown:
            yield each, f"covers fragment {_listed(unknown)}, but no fragment had a higher id than {highest} so far"
        shared = sorted(each.fragment_ids & owners.keys())
        if shared:
            yield each, f"covers fragment {_listed(shared)}, and so does segment {owners[shared[0]]}"
        owners.update(dict.fromkeys(each.fragment_ids, each.metadata.uuid))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
