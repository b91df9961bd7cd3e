"""Damage whole datasets, and run public calls on them, under limits of memory and time::

    make soak MINUTES=60 SEED=1 PROCESSES=2

Anything but a result or a `LanceError`, too much memory or time, and any change outside of the dataset is a finding.
The first trial of each finding is written to ``findings.jsonl`` in the folder of the run; ``--trial`` repeats it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import pkgutil
import random
import shutil
import subprocess
import sys
import tarfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import datafusion  # noqa: F401
import pandas  # noqa: F401

import lance_dataset
from datasets.calls import CHANGES, READS
from datasets.mutations import mutate_dataset
from datasets.seeds import seeds
from datasets.trial import Finding, add_canary, prepare, run_calls

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "datasets"
_CALLS = 8


def load_all() -> None:
    """Import every module, so that no child has to."""
    for module in pkgutil.walk_packages(lance_dataset.__path__, "lance_dataset."):
        if not module.name.startswith(("lance_dataset.spark", "lance_dataset.cli.__main__")):
            importlib.import_module(module.name)


def trial(number: str, corpus: dict[str, Path], scratch: Path) -> tuple[dict[str, object], list[Finding], int, int]:
    """Run one trial; return its description, its findings, and its numbers of calls and of successful ones."""
    chance = random.Random(number)
    name = chance.choice(list(corpus))
    root, canary = prepare(scratch, corpus[name])
    done = mutate_dataset(root, chance, list(corpus.values()), canary)
    if chance.random() < 0.5:
        calls = chance.sample(list(READS), _CALLS)
    else:
        calls = [*chance.sample(list(READS), 2), *chance.sample(list(CHANGES), 4), *chance.sample(list(READS), 2)]
    options = chance.choice(({}, {"mmap": "false"}))
    outcome = run_calls(scratch, root, calls, options, number)
    what = {"trial": number, "seed": name, "mutations": done, "calls": calls, "options": options}
    return what, outcome.findings, outcome.calls, outcome.succeeded


def work(process: int, arguments: argparse.Namespace, corpus: dict[str, Path]) -> None:
    """Run trials until the time is over, and write what was found."""
    os.nice(19)
    folder = Path(arguments.folder)
    end = time.monotonic() + arguments.minutes * 60
    counts: Counter[str] = Counter()
    number = 0
    while time.monotonic() < end and number != arguments.trials:
        number += 1
        scratch = folder / f"scratch-{process}"
        key = f"{arguments.seed}-{process}-{number}"
        what, findings, calls, succeeded = trial(key, corpus, scratch)
        counts.update(inputs=1, calls=calls, succeeded=succeeded)
        for finding in findings:
            counts[f"{finding.kind} {finding.where}"] += 1
            if counts[f"{finding.kind} {finding.where}"] == 1:
                _keep(folder, scratch, what, finding)
        if number % 50 == 0:
            (folder / f"counts-{process}.json").write_text(json.dumps(counts, indent=1))
    (folder / f"counts-{process}.json").write_text(json.dumps(counts, indent=1))
    shutil.rmtree(folder / f"scratch-{process}", ignore_errors=True)


def _keep(folder: Path, scratch: Path, what: dict[str, object], finding: Finding) -> None:
    """Keep a finding: a description, as the dataset follows from the number of the trial."""
    entry = {**what, "kind": finding.kind, "where": finding.where, "text": finding.text}
    with open(folder / "findings.jsonl", "a") as out:
        out.write(json.dumps(entry) + "\n")


def pack(number: str, corpus: dict[str, Path], scratch: Path, target: Path) -> None:
    """Pack the damaged dataset of a trial, before any call, as an entry of the corpus of what failed."""
    chance = random.Random(number)
    root, canary = prepare(scratch, corpus[chance.choice(list(corpus))])
    mutate_dataset(root, chance, list(corpus.values()), canary)
    with tarfile.open(target, "w:gz") as archive:
        archive.add(root, "t.lance")


def replay(folder: Path) -> int:
    """Run all calls on every entry of the corpus; print what is found."""
    found = 0
    for entry in sorted(CORPUS.glob("*.tar.gz")):
        scratch = folder / "scratch-replay"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        with tarfile.open(entry) as archive:
            archive.extractall(scratch, filter="fully_trusted")
        add_canary(scratch)
        findings = run_calls(scratch, scratch / "t.lance", [*READS, *CHANGES], {}, entry.name).findings
        found += len(findings)
        print(entry.name, *(f"  {each.kind}: {each.where}\n  {each.text}" for each in findings), sep="\n")
    return bool(found)


def datasets(folder: Path, *, only_fixtures: bool) -> dict[str, Path]:
    """Return the datasets to damage; write them first if they are missing."""
    if not seeds(folder):
        options = ["--fixtures"] if only_fixtures else []
        command = [sys.executable, str(Path(__file__).with_name("seeds.py")), str(folder), *options]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return seeds(folder)


def main() -> int:
    """Run the fuzzer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--folder", default="build/soak", help="where datasets and findings are kept")
    parser.add_argument("--trials", type=int, help="most trials of a process")
    parser.add_argument("--fixtures", action="store_true", help="damage only datasets that are stored in the project")
    parser.add_argument("--replay", action="store_true", help="run all calls on the datasets that ever failed")
    parser.add_argument("--trial", help="run one trial again, by its number, and print its findings")
    parser.add_argument("--pack", help="with --trial: pack its damaged dataset into this file instead")
    arguments = parser.parse_args()
    load_all()
    folder = Path(arguments.folder)
    if arguments.replay:
        return replay(folder)
    corpus = datasets(folder / "seeds", only_fixtures=arguments.fixtures)
    if arguments.trial and arguments.pack:
        pack(arguments.trial, corpus, folder / "scratch-again", Path(arguments.pack))
        return 0
    if arguments.trial:
        what, findings, *_ = trial(arguments.trial, corpus, folder / "scratch-again")
        print(json.dumps(what, indent=1), *(f"{f.kind}: {f.where}\n{f.text}" for f in findings), sep="\n")
        return bool(findings)
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work, args=(p, arguments, corpus)) for p in range(arguments.processes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    total: Counter[str] = Counter()
    for each in range(arguments.processes):
        total.update(json.loads((folder / f"counts-{each}.json").read_text()))
    print(f"{total.pop('inputs')} datasets, {total.pop('calls')} calls, {total.pop('succeeded')} of them succeeded")
    for name, count in total.most_common():
        print(f"{count:6} {name}")
    return bool(total)


if __name__ == "__main__":
    raise SystemExit(main())
