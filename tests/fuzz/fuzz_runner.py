"""Runner of numbered fuzz cases in a child of limited memory and time, so that a crash or a forged length is a result.

A fuzzer writes a corpus, one folder per entry, and has a function that runs one case: ``case(entry, chance, scratch)``,
where `entry` is a folder of the corpus, `chance` all its randomness, and `scratch` an empty folder. The case fails if
that raises anything.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import lance_dataset.dataset  # noqa: F401 - modules that are imported later would take from the memory of a case

__all__ = ["Case", "main", "run", "run_child"]

Case: TypeAlias = Callable[[Path, random.Random, Path], None]

#: Limit beyond the memory that the process already has; the corpus files are a few KiB.
MEMORY = 1 << 30
SECONDS = 10
#: Parts of a message that differ between failures of one kind.
_PLACES = re.compile(r"/\S*/|\d+")


def run_child(case: Case, corpus: Path, seed: int, first: int, last: int) -> None:
    """Run the cases ``[first, last)``, and print the number of each before it runs."""
    faulthandler.enable()
    threading.stack_size(1 << 20)  # a reservation of 8 MiB per possible thread would soon reach the limit below
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    entries = sorted(corpus.iterdir())
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(first, last):
            entry = entries[number % len(entries)]
            os.write(1, f"case {number} {entry.name}\n".encode())
            folder = Path(scratch, str(number))
            folder.mkdir()
            signal.alarm(SECONDS)
            try:
                case(entry, random.Random(f"{seed}/{number}"), folder)
            except BaseException as error:
                _report(f"{number} [{entry.name}]", error)
                if isinstance(error, KeyboardInterrupt):
                    raise
            finally:
                signal.alarm(0)
            shutil.rmtree(folder)


def _report(case: str, error: BaseException) -> None:
    trace = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-5:]]
    os.write(1, f"failed {case} {error!r} at {' '.join(trace)}\n".encode(errors="replace"))


def run(script: str, corpus: Path, seed: int, first: int, last: int) -> list[str]:
    """Run cases in children, a new one after each crash, and return the failures.

    Parameters
    ----------
    script
        The program, whose `main` is the one below.
    """
    failures: list[str] = []
    number = first
    while number < last:
        command = [sys.executable, script, "--child", str(corpus), "--seed", str(seed)]
        command += ["--first", str(number), "--cases", str(last - number)]
        # address space that allocators reserve for each thread is not used, but counts
        environment = {**os.environ, "MALLOC_ARENA_MAX": "2"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace", env=environment)
        lines = done.stdout.splitlines()
        failures += [line for line in lines if line.startswith("failed")]
        if not done.returncode:
            break
        started = [line for line in lines if line.startswith("case")]
        failures.append(f"crashed ({done.returncode}) {started[-1] if started else '-'}\n{done.stderr[-3000:]}")
        if not started:
            break
        number = int(started[-1].split()[1]) + 1
    return failures


def main(script: str, doc: str, write_corpus: Callable[..., None], case: Case, versions: tuple[str, ...] = ()) -> int:
    """Run the command line.

    Parameters
    ----------
    script, doc
        ``__file__`` and ``__doc__`` of the program.
    write_corpus
        Called with a folder, and with one of `versions` if there are any, the first of which is the default.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--only", type=int, help="one case, by its number")
    parser.add_argument("--child", type=Path, help="run cases here, on this corpus")
    if versions:
        parser.add_argument("--version", choices=versions, default=versions[0])
    given = parser.parse_args()
    if given.only is not None:
        given.first, given.cases = given.only, 1
    if given.child:
        run_child(case, given.child, given.seed, given.first, given.first + given.cases)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder), *([given.version] if versions else []))
        failures = run(script, Path(folder), given.seed, given.first, given.first + given.cases)
    kinds: dict[str, list[str]] = {}
    for failure in failures:
        kinds.setdefault(_PLACES.sub("", failure.splitlines()[0].partition("] ")[2])[:120], []).append(failure)
    for examples in sorted(kinds.values(), key=len, reverse=True):
        print(f"{len(examples)} times:", *examples[:3], sep="\n    ")
    print(f"{given.cases} cases, {len(failures)} failures")
    return 1 if failures else 0
