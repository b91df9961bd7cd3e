"""Check of a whole dataset: versions, files, indices, references, and what wastes space. Nothing is changed."""

from __future__ import annotations

import time
from collections.abc import Iterator

from lance_dataset.errors import LanceError
from lance_dataset.read.location import TableLocation
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.validation import validate_fragment, validate_index_files
from lance_dataset.records.diagnosis import Diagnosis, Finding
from lance_dataset.table.cleanup.plan import CleanupPolicy, plan_cleanup, tagged_versions
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import coverage, is_system_index, parse_indices
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import named_path
from lance_dataset.table.references.catalog import list_branches
from lance_dataset.table.versions import list_versions, read_named

__all__ = ["diagnose"]

#: Fragments with fewer rows are small; more of them than this make scans slow.
_SMALL_ROWS, _MANY_SMALL = 10_000, 1_000
_OLD_SECONDS = 90 * 86_400
_NAMED = 50


def diagnose(location: TableLocation) -> Diagnosis:
    """Check the dataset at a location.

    Raises
    ------
    DatasetNotFoundError
        There is no dataset, not even a damaged one.
    """
    findings: list[Finding] = []
    opened = _openable(location, findings)
    if not opened and not findings:
        location.read_manifest()
    newest = opened[-1] if opened else None
    if newest is not None:
        snapshot = Snapshot.of(location, newest)
        for check in (_data, _indices, _fragments, _references, _orphans):
            found = check(snapshot)
            findings.extend(_without_failure(found))
    findings.sort(key=lambda finding: not finding.is_damage)
    return Diagnosis(location.uri, len(opened), None if newest is None else newest.version, tuple(findings))


def _without_failure(found: Iterator[Finding]) -> Iterator[Finding]:
    """Pass on findings; a check that cannot go on is a finding, too."""
    try:
        yield from found
    except (LanceError, OSError) as error:
        yield Finding(
            "files", f"a check could not be finished: {error}", "mend the damage named above, and check again"
        )


def _openable(location: TableLocation, findings: list[Finding]) -> list[Manifest]:
    """Return the manifests that can be read, ascending, and note the others."""
    opened: list[Manifest] = []
    damaged: list[tuple[int, str, str]] = []
    for name in list_versions(location.store, location.root):
        try:
            opened.append(read_named(location.store, location.root, name))
        except (LanceError, OSError) as error:
            damaged.append((name.version, named_path(location.root, name), str(error)))
    last = opened[-1].version if opened else 0
    for version, path, reason in damaged:
        kept = f"then version {last} is the newest" if version > last and last else "the other versions do not need it"
        remedy = f"move {location.store.uri(path)} away if no copy of it can be put back; {kept}"
        findings.append(Finding("version", f"version {version} cannot be opened: {reason}", remedy))
    return opened


def _data(snapshot: Snapshot) -> Iterator[Finding]:
    """Check the files of each fragment of a version."""
    found = 0
    for fragment in snapshot.manifest.fragment_list:
        try:
            validate_fragment(snapshot, fragment)
        except (LanceError, OSError) as error:
            found += 1
            if found > _NAMED:
                continue
            remedy = (
                "put a copy of the file back, or give the rows of the fragment up: LanceDataset.commit(ds, "
                f"LanceOperation.Delete([], [{fragment.id}], 'false'), read_version={snapshot.version})"
            )
            yield Finding("data", f"fragment {fragment.id} of version {snapshot.version}: {error}", remedy)
    if found > _NAMED:
        yield Finding("data", f"{found - _NAMED} more fragments are damaged", "mend these first, and check again")


def _indices(snapshot: Snapshot) -> Iterator[Finding]:
    """Check the files of indices, and the fragments that they cover."""
    manifest = snapshot.manifest
    locator = snapshot.location.locator(manifest)
    covered: dict[str, set[int]] = {}
    for message in parse_indices(manifest.index_section):
        index = IndexMetadata.from_proto(message, manifest.path)
        try:
            validate_index_files(index, locator, manifest.path)
        except (LanceError, OSError) as error:
            remedy = f"ds.drop_index({index.name!r}), and build it again"
            yield Finding("index", f"segment {index.uuid} of the index {index.name!r}: {error}", remedy)
        if not is_system_index(message):
            covered.setdefault(index.name, set()).update(coverage(message) or ())
    ids = set(manifest.fragment_list.ids.tolist())
    for name, fragments in covered.items():
        missing = len(ids - fragments)
        if missing:
            what = f"the index {name!r} does not cover {missing:,} of {len(ids):,} fragments, which are scanned"
            yield Finding("coverage", what, f"ds.optimize.optimize_indices(index_names=[{name!r}])", is_damage=False)


def _fragments(snapshot: Snapshot) -> Iterator[Finding]:
    """Find thousands of small fragments."""
    small = sum((fragment.physical_rows or 0) < _SMALL_ROWS for fragment in snapshot.manifest.fragment_list)
    if small > _MANY_SMALL:
        what = f"{small:,} fragments have fewer than {_SMALL_ROWS:,} rows, so scans and commits are slow"
        yield Finding("fragments", what, "ds.optimize.compact_files()", is_damage=False)


def _references(snapshot: Snapshot) -> Iterator[Finding]:
    """Check tags and branches, and find those that hold old versions."""
    store, root, manifest = snapshot.store, snapshot.root, snapshot.manifest
    names = {name.version: name for name in list_versions(store, root)}
    for version, tags in sorted(tagged_versions(store, root, manifest).items()):
        if version not in names:
            for tag in tags:
                remedy = f"ds.tags.delete({tag!r})"
                yield Finding("reference", f"the tag {tag!r} names version {version}, which does not exist", remedy)
            continue
        age = time.time() - store.modified(named_path(root, names[version]))
        if version != manifest.version and age > _OLD_SECONDS:
            what = f"{', '.join(map(repr, tags))} keep version {version} and its files since {age / 86_400:.0f} days"
            yield Finding("old tag", what, f"ds.tags.delete({tags[0]!r})", is_damage=False)
    for name, branch in sorted(list_branches(store, root).items()):
        try:
            found = list_versions(store, f"{root}/tree/{name}")
        except (LanceError, OSError) as error:
            yield Finding("reference", f"the branch {name!r} cannot be read: {error}", f"ds.branches.delete({name!r})")
            continue
        if not found:
            what = f"the branch {name!r}, which began with version {branch.parent_version}, has no versions"
            yield Finding("reference", what, f"ds.branches.delete({name!r})")


def _orphans(snapshot: Snapshot) -> Iterator[Finding]:
    """Find files that no version refers to."""
    policy = CleanupPolicy.of(None, 1 << 31, None, delete_unverified=True, error_if_tagged_old_versions=False)
    plan = plan_cleanup(snapshot.store, snapshot.root, snapshot.manifest, policy)
    files = [file for file in plan.removable(snapshot.root) if file.unverified]
    if files:
        size = sum(file.size for file in files)
        what = f"no version refers to {len(files):,} files with {size:,} bytes, such as {files[0].path}"
        remedy = "ds.cleanup_old_versions(), which removes them after seven days, as a running write may need them"
        yield Finding("orphans", what, remedy, is_damage=False)
