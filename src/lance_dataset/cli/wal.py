"""Commands on the MemWAL of a dataset: the state of its shards, flushes, and merges."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from lance_dataset.cli.guard import guarded
from lance_dataset.cli.options import DatasetArgument, JsonOption, open_dataset

__all__ = ["wal"]

wal = typer.Typer(name="wal", help="Show, flush and merge the shards of a MemWAL.", no_args_is_help=True)

ShardOption = Annotated[
    str | None, typer.Option("--shard", metavar="UUID", help="Only this shard. [default: all shards]")
]


@wal.command()
@guarded
def status(uri: DatasetArgument, as_json: JsonOption = False) -> None:
    """Show each shard: its claims, the SSTables that are not in the table, and the log that is not flushed.

    Example: lance-dataset wal status flights.lance
    """
    from lance_dataset.cli import output

    facts = [asdict(shard) for shard in open_dataset(uri).mem_wal_status()]
    if as_json:
        output.print_json({"uri": uri, "shards": facts})
        return
    if not facts:
        typer.echo("no shards")
        return
    for number, each in enumerate(facts):
        if number:
            typer.echo()
        output.print_pairs(
            {
                "shard": each["shard_id"],
                "claims": each["writer_epoch"],
                "SSTables": each["sstables"],
                "rows in SSTables": each["sstable_rows"],
                "log entries": each["log_entries"],
                "rows in the log": each["log_rows"],
                "bytes in the log": each["log_bytes"],
                "entries ever logged": each["log_position"],
                "merged up to generation": each["merged_generation"],
                "next generation": each["generation"],
            }
        )


@wal.command()
@guarded
def flush(uri: DatasetArgument, shard: ShardOption = None, as_json: JsonOption = False) -> None:
    """Flush the logs of shards to SSTables. Their writers are stopped, as this claims the shards.

    Without --shard, shards without rows in the log are left alone.

    Example: lance-dataset wal flush flights.lance
    """
    from lance_dataset.cli import output

    dataset = open_dataset(uri)
    waiting = {each.shard_id: each.log_rows for each in dataset.mem_wal_status()}
    chosen = [each for each, rows in waiting.items() if rows] if shard is None else [shard]
    for each in chosen:
        dataset.mem_wal_writer(each).close()
    rows = sum(waiting.get(each, 0) for each in chosen)
    text = f"flushed {rows:,} rows of {len(chosen)} shards"
    output.tell({"uri": uri, "shards": chosen, "num_rows": rows}, text, as_json)


@wal.command()
@guarded
def merge(
    uri: DatasetArgument,
    shard: ShardOption = None,
    collect_days: Annotated[
        float | None,
        typer.Option(
            "--collect-older-than-days", metavar="DAYS", min=0, help="Then remove files of shards that nobody needs."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Merge SSTables into the table. Writers may go on meanwhile.

    Example: lance-dataset wal merge flights.lance
    """
    from lance_dataset.cli import output

    dataset = open_dataset(uri)
    facts = dataset.merge_mem_wal(shard)
    if collect_days is not None:
        removed = dataset.collect_mem_wal(shard, older_than=timedelta(days=collect_days))
        facts = {**facts, **{f"removed_{name.removeprefix('num_')}": number for name, number in removed.items()}}
    text = (
        f"merged {facts['num_sstables']:,} SSTables: {facts['num_upserted_rows']:,} rows written, "
        f"{facts['num_deleted_keys']:,} keys deleted; {uri} has version {dataset.version}"
    )
    output.tell({"uri": uri, **facts, "version": dataset.version}, text, as_json)
