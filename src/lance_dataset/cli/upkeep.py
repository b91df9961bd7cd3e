"""Commands that maintain the files of a dataset."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import DatasetArgument, DryRunOption, JsonOption, VersionOption, open_dataset

if TYPE_CHECKING:
    from lance_dataset import LanceDataset
    from lance_dataset.optimize import CompactionTask

__all__ = ["cleanup", "compact", "validate"]


class CompactionMode(str, Enum):
    """Method by which `compact` writes new files."""

    REENCODE = "reencode"
    TRY_COPY = "try_binary_copy"
    FORCE_COPY = "force_binary_copy"


@guarded
def compact(
    uri: DatasetArgument,
    target_rows: Annotated[
        int | None, typer.Option(metavar="ROWS", min=1, help="Merge fragments with fewer rows. [default: 1048576]")
    ] = None,
    deleted_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", min=0, help="Rewrite fragments with a larger share of deleted rows. [default: 0.1]"
        ),
    ] = None,
    mode: Annotated[
        CompactionMode | None, typer.Option(help="Encode rows again, or copy pages as they are. [default: reencode]")
    ] = None,
    data_storage_version: Annotated[
        str | None, typer.Option(metavar="2.x", help="File format version of new files. [default: that of the dataset]")
    ] = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Merge small fragments and rewrite those with many deleted rows, in one commit.

    Deleted rows stay in fragments that are not rewritten, and old versions keep them until a cleanup. Use purge to
    erase rows.

    Example: lance-dataset compact flights.lance --dry-run
    """
    from lance_dataset.cli import output

    dataset = open_dataset(uri)
    options = {
        "target_rows_per_fragment": target_rows,
        "materialize_deletions_threshold": deleted_share,
        "compaction_mode": None if mode is None else mode.value,
        "data_storage_version": data_storage_version,
    }
    if dry_run:
        _show_plan(uri, dataset, options, as_json)
        return
    metrics = asdict(dataset.optimize.compact_files(**options))  # type: ignore[arg-type]
    done = f"{metrics['fragments_removed']:,} fragments became {metrics['fragments_added']:,}"
    text = f"{done if metrics['fragments_removed'] else 'nothing to do'}; {uri} has version {dataset.version}"
    output.tell({"uri": uri, "dry_run": False, **metrics, "version": dataset.version}, text, as_json)


def _show_plan(uri: str, dataset: LanceDataset, options: dict[str, Any], as_json: bool) -> None:
    from lance_dataset.cli import output
    from lance_dataset.optimize import Compaction

    plan = Compaction.plan(dataset, options)  # type: ignore[arg-type]
    tasks = [_task_facts(task) for task in plan.tasks]
    if as_json:
        output.print_json({"uri": uri, "dry_run": True, "version": dataset.version, "tasks": tasks})
        return
    if not tasks:
        typer.echo("nothing to do")
        return
    output.print_rows(
        ["fragments", "ids", "rows", "deleted rows", "bytes"],
        ([len(task["fragments"]), _id_range(task["fragments"]), *list(task.values())[1:]] for task in tasks),
        [True, False, True, True, True],
    )
    count = sum(len(task["fragments"]) for task in tasks)
    typer.echo(f"{count:,} of {len(dataset.fragment_ids()):,} fragments would be rewritten in {len(tasks):,} groups")


def _task_facts(task: CompactionTask) -> dict[str, Any]:
    fragments = task.fragments
    sizes = [file.file_size_bytes or 0 for fragment in fragments for file in fragment.files]
    return {
        "fragments": [fragment.id for fragment in fragments],
        "rows": sum(fragment.num_rows for fragment in fragments),
        "deleted_rows": sum(fragment.num_deletions for fragment in fragments),
        "bytes": sum(sizes),
    }


def _id_range(ids: list[int]) -> str:
    return str(ids[0]) if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"


@guarded
def cleanup(
    uri: DatasetArgument,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Remove versions older than this, as in: 7d, 12h. [default: 14d]"),
    ] = None,
    retain: Annotated[
        int | None, typer.Option(metavar="COUNT", min=1, help="Number of newest versions to keep.")
    ] = None,
    delete_unverified: Annotated[
        bool,
        typer.Option(
            "--delete-unverified", help="Also remove recent files that no version uses. Only safe while nobody writes!"
        ),
    ] = False,
    keep_tagged: Annotated[
        bool, typer.Option("--keep-tagged", help="Keep old versions that have a tag, instead of failing.")
    ] = False,
    files: Annotated[bool, typer.Option("--files", help="With --dry-run, list the files.")] = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old versions, and the files that only they need.

    Example: lance-dataset cleanup flights.lance --older-than 7d --dry-run
    """
    from lance_dataset.cli import output

    if files and not dry_run:
        raise typer.BadParameter("can only be used with --dry-run", param_hint="--files")
    dataset = open_dataset(uri)
    conditions: dict[str, Any] = {
        "older_than": None if older_than is None else _duration(older_than),
        "retain_versions": retain,
        "delete_unverified": delete_unverified,
        "error_if_tagged_old_versions": not keep_tagged,
    }
    named: list[dict[str, Any]] = []
    if dry_run:
        plan = dataset.explain_cleanup_old_versions(**conditions, include_files=files, max_files=1 << 62)
        stats, named = asdict(plan.stats), [asdict(file) for file in plan.candidate_files]
    else:
        stats = asdict(dataset.cleanup_old_versions(**conditions))
    if as_json:
        output.print_json({"uri": uri, "dry_run": dry_run, **stats, **({"files": named} if files else {})})
        return
    for file in named:
        typer.echo(f"{file['kind']}  {file['size_bytes']:,}  {file['path']}")
    output.print_pairs({name.replace("_", " "): value for name, value in stats.items()})
    if dry_run:
        typer.echo("nothing was removed")


def _duration(text: str) -> timedelta:
    from lance_dataset.util import parse_duration

    try:
        return timedelta(microseconds=parse_duration(text) // 1000)
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is too long", param_hint="--older-than") from None


@guarded
def validate(
    uri: DatasetArgument,
    version: VersionOption = None,
    indices: Annotated[
        bool, typer.Option("--indices", help="Also compare all scalar indices with the values that they are of.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check that the files of a version exist and agree with its manifest. Without --indices, values are not read.

    Example: lance-dataset validate flights.lance --indices
    """
    import warnings

    dataset = open_dataset(uri, version)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        dataset.validate(indices=indices)
    from lance_dataset.cli import output

    unchecked = [str(each.message) for each in found]
    for text in unchecked:
        typer.echo(f"warning: {text}", err=True)
    facts: dict[str, Any] = {"uri": uri, "version": dataset.version, "fragments": len(dataset.fragment_ids())}
    text = f"{uri}, version {facts['version']}: {facts['fragments']:,} fragments are valid"
    if indices:
        facts |= {"indices": len(dataset.describe_indices()), "warnings": unchecked}
        text = text.replace(" are valid", f" and {facts['indices']:,} indices are valid")
    output.tell({**facts, "valid": True}, text, as_json)
