"""Commands for tags and branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import DatasetArgument, DryRunOption, JsonOption, open_dataset, reference

if TYPE_CHECKING:
    from lance_dataset import LanceDataset

__all__ = ["branches", "tags"]

_REFERENCE_HELP = "Version: a number, a tag, BRANCH:NUMBER, or BRANCH: for its newest. [default: the newest]"

TagArgument = Annotated[str, typer.Argument(metavar="TAG", help="Name of the tag.")]
BranchArgument = Annotated[str, typer.Argument(metavar="BRANCH", help="Name of the branch.")]
ReferenceOption = Annotated[str | None, typer.Option("--version", metavar="VERSION", help=_REFERENCE_HELP)]

tags = typer.Typer(help="List, create, move and delete tags, which are names of versions.", no_args_is_help=True)
branches = typer.Typer(help="List, create and delete branches.", no_args_is_help=True)


# -- tags ----------------------------------------------------------------------------------------------------------


@tags.command("list")
@guarded
def list_tags(uri: DatasetArgument, as_json: JsonOption = False) -> None:
    """List all tags, those of the newest versions first.

    Example: lance-dataset tags list flights.lance
    """
    found = open_dataset(uri).tags.list_ordered()
    from lance_dataset.cli import output

    if as_json:
        output.print_json([{"name": name, **tag} for name, tag in found])
        return
    rows = [(name, tag["branch"] or "main", tag["version"], _time(tag["updated_at"])) for name, tag in found]
    output.print_rows(["tag", "branch", "version", "changed"], rows, [False, False, True, False])


@tags.command("create")
@guarded
def create_tag(
    uri: DatasetArgument,
    tag: TagArgument,
    version: ReferenceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create a tag.

    Example: lance-dataset tags create flights.lance checked --version 3
    """
    dataset = open_dataset(uri)
    if dry_run:
        dataset.tags.check_name(tag)
        _check_free("tag", tag, dataset.tags.list(), "; move it with `tags update`")
    else:
        dataset.tags.create(tag, reference(version))
    _tell_tag(dataset, tag, version, dry_run, as_json)


@tags.command("update")
@guarded
def update_tag(
    uri: DatasetArgument,
    tag: TagArgument,
    version: ReferenceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Move a tag to another version.

    Example: lance-dataset tags update flights.lance checked --version 5
    """
    dataset = open_dataset(uri)
    if dry_run:
        dataset.tags.get_version(tag)
    else:
        dataset.tags.update(tag, reference(version))
    _tell_tag(dataset, tag, version, dry_run, as_json)


def _tell_tag(dataset: LanceDataset, tag: str, version: str | None, dry_run: bool, as_json: bool) -> None:
    """Report the version that a tag refers to, or would refer to."""
    from lance_dataset.cli import output

    chosen = reference(version)
    meant = dataset if chosen is None else dataset.checkout_version(chosen)
    place = _place(meant)
    text = f"tag {tag} {'would be' if dry_run else 'is'} version {place['version']} of {place['branch']}"
    output.tell({"dry_run": dry_run, "tag": tag, **place}, text, as_json)


@tags.command("delete")
@guarded
def delete_tag(
    uri: DatasetArgument, tag: TagArgument, dry_run: DryRunOption = False, as_json: JsonOption = False
) -> None:
    """Delete a tag. Its version stays until a cleanup.

    Example: lance-dataset tags delete flights.lance checked
    """
    from lance_dataset.cli import output

    dataset = open_dataset(uri)
    version = dataset.tags.get_version(tag)
    if not dry_run:
        dataset.tags.delete(tag)
    text = f"tag {tag} of version {version} {'would be' if dry_run else 'is'} removed"
    output.tell({"dry_run": dry_run, "tag": tag, "version": version}, text, as_json)


# -- branches ------------------------------------------------------------------------------------------------------


@branches.command("list")
@guarded
def list_branches(uri: DatasetArgument, as_json: JsonOption = False) -> None:
    """List all branches except main, the most recently created first.

    Example: lance-dataset branches list flights.lance
    """
    found = open_dataset(uri).branches.list_ordered()
    from lance_dataset.cli import output

    if as_json:
        output.print_json([{"name": name, **branch} for name, branch in found])
        return
    rows = [(name, branch["parent_branch"] or "main", branch["parent_version"]) for name, branch in found]
    output.print_rows(["branch", "began from", "version"], rows, [False, False, True])


@branches.command("create")
@guarded
def create_branch(
    uri: DatasetArgument,
    branch: BranchArgument,
    version: ReferenceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create a branch that starts at a version. No data is copied.

    Example: lance-dataset branches create flights.lance trial --version checked
    """
    from lance_dataset.cli import output

    dataset = open_dataset(uri)
    chosen = reference(version)
    source = _place(dataset if chosen is None else dataset.checkout_version(chosen))
    facts: dict[str, Any] = {"branch": branch, "parent_branch": source["branch"], "parent_version": source["version"]}
    if dry_run:
        dataset.branches.check_name(branch)
        _check_free("branch", branch, dataset.branches.list())
    else:
        facts["uri"] = dataset.create_branch(branch, chosen).uri
    text = f"branch {branch} {'would start' if dry_run else 'starts'} at version {source['version']} of "
    text += source["branch"] if dry_run else f"{source['branch']}: {facts['uri']}"
    output.tell({"dry_run": dry_run, **facts}, text, as_json)


@branches.command("delete")
@guarded
def delete_branch(
    uri: DatasetArgument, branch: BranchArgument, dry_run: DryRunOption = False, as_json: JsonOption = False
) -> None:
    """Delete a branch with its versions and its own files.

    Example: lance-dataset branches delete flights.lance trial
    """
    from lance_dataset.cli import output

    dataset = open_dataset(uri)
    facts: dict[str, Any] = {"branch": branch}
    if dry_run:
        opened = dataset.checkout_version((branch, None))
        sizes = opened.all_files().read_all()["size_bytes"].to_pylist()
        facts |= {"versions": len(opened.version_refs()), "files": len(sizes), "bytes": sum(sizes)}
        facts["held_by"] = _holders(dataset, branch)
    else:
        dataset.branches.delete(branch)
    if not dry_run:
        text = f"branch {branch} is removed"
    elif facts["held_by"]:
        text = f"branch {branch} cannot be removed: {', '.join(facts['held_by'])} need it"
    else:
        files = f"{facts['files']:,} files of {facts['bytes']:,} bytes"
        text = f"branch {branch} would be removed: {facts['versions']:,} versions, {files}"
    output.tell({"dry_run": dry_run, **facts}, text, as_json)


def _check_free(kind: str, name: str, known: Mapping[str, Any], hint: str = "") -> None:
    """Raise if the name of a tag or branch is taken; without --dry-run, the call that creates it does so."""
    from lance_dataset.errors import ReferenceExistsError

    if name in known:
        raise ReferenceExistsError(f"there is a {kind} {name!r} already{hint}")


def _holders(dataset: LanceDataset, branch: str) -> list[str]:
    """Return the tags on a branch, and the branches created from it, which prevent its deletion."""
    tagged = [f"tag {name}" for name, tag in dataset.tags.list().items() if tag["branch"] == branch]
    began = [f"branch {name}" for name, each in dataset.branches.list().items() if each["parent_branch"] == branch]
    return tagged + began


def _place(dataset: LanceDataset) -> dict[str, Any]:
    """Return the branch and the number of the open version."""
    return {"branch": dataset.branch or "main", "version": dataset.version}


def _time(moment: Any) -> str:
    return "" if moment is None else moment.isoformat(sep=" ", timespec="seconds")
