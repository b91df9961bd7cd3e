"""One trial: a damaged dataset, some calls in a child process with limits of memory and time, and a judgement."""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance_dataset.dataset  # noqa: F401 - modules that are imported later would take from the memory of a trial
from lance_dataset.errors import LanceError

__all__ = ["Finding", "Outcome", "add_canary", "prepare", "run_calls"]

#: Address space that calls may add, peak of resident memory that counts as too much, and limits of time in seconds.
_SPACE = 3 << 30
_PEAK = 500 << 20
_HANG = 60
_SLOW = 15


@dataclass(frozen=True)
class Finding:
    """Something that must not happen.

    Attributes
    ----------
    kind
        ``error`` (of another class than `LanceError`), ``signal``, ``hang``, ``slow``, ``memory`` or ``outside``.
    where
        Call and last frames, by which findings are told apart.
    text
        Description.
    """

    kind: str
    where: str
    text: str


@dataclass
class Outcome:
    """Result of a trial: its findings, and the number of calls that ran and that succeeded."""

    findings: list[Finding] = field(default_factory=list)
    calls: int = 0
    succeeded: int = 0


def run_calls(folder: Path, root: Path, calls: list[str], options: dict[str, str], seed: str) -> Outcome:
    """Run calls in a child process, and judge what they did.

    Parameters
    ----------
    folder
        Folder of the trial, which holds the dataset and a folder ``canary``.
    root
        The dataset.
    calls
        Names in `calls.READS` and `calls.CHANGES`.
    options
        Storage options.
    seed
        Seed of the choices of the calls.
    """
    before = _snapshot(folder, root)
    log = folder.with_suffix(".log")
    log.write_text("")
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _child(root, calls, options, seed, log)
    status, peak = _wait(child)
    seconds = time.monotonic() - start
    entries = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    last = entries[-1]["begin"] if entries and "begin" in entries[-1] else "?"
    outcome = Outcome(calls=sum("begin" in entry for entry in entries))
    outcome.succeeded = sum("done" in entry for entry in entries)
    found = outcome.findings
    found += [Finding("error", entry["where"], entry["text"]) for entry in entries if "text" in entry]
    dump = "\n".join(line for line in log.read_text().splitlines() if not line.startswith("{"))
    if status is None:
        found.append(Finding("hang", f"{last} {_frames_of_dump(dump)}", dump[-4000:]))
    elif os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        found.append(Finding("signal", f"{name} {last} {_frames_of_dump(dump)}", dump[-4000:]))
    elif os.WEXITSTATUS(status):
        found.append(Finding("signal", f"exit {os.WEXITSTATUS(status)} {last}", dump[-4000:]))
    elif seconds > _SLOW:
        slowest = max((e for e in entries if "seconds" in e), key=lambda e: e["seconds"], default={"done": "?"})
        found.append(Finding("slow", str(slowest.get("done")), f"{seconds:.0f} s"))
    if peak > _PEAK:
        largest = max((entry for entry in entries if "peak" in entry), key=lambda e: e["peak"], default={})
        found.append(Finding("memory", str(largest.get("done", last)), f"{peak >> 20} MiB"))
    after = _snapshot(folder, root)
    if after != before:
        changed = sorted(set(before.items()) ^ set(after.items()))
        found.append(Finding("outside", "", str(changed[:5])))
    return outcome


# -- in the child ------------------------------------------------------------------------------------------------------


def _child(root: Path, calls: list[str], options: dict[str, str], seed: str, log: Path) -> None:
    """Run the calls, and log what happens. Never returns."""
    os.setsid()
    code = 70
    try:
        with open(log, "a", buffering=1) as out:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(out.fileno(), 2)
            faulthandler.enable(out)
            faulthandler.dump_traceback_later(_HANG - 5, file=out)
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + _SPACE, size + _SPACE))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 31, 1 << 31))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            _run(root, calls, options, random.Random(seed), out)
            code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _run(root: Path, calls: list[str], options: dict[str, str], chance: random.Random, out: Any) -> None:
    from datasets.calls import CHANGES, READS

    every = {**READS, **CHANGES}
    first = _peak()
    for name in calls:
        out.write(json.dumps({"begin": name}) + "\n")
        start = time.monotonic()
        entry: dict[str, Any] = {"failed": name}
        try:
            every[name](str(root), options, chance)
            entry = {"done": name}
        except LanceError as error:
            if not str(error):
                entry = {"text": f"{type(error).__name__} without a message", "where": f"{name} {_frames(error)}"}
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"[:500]
            entry = {"text": text, "where": f"{name} {type(error).__name__} {_frames(error)}"}
        out.write(json.dumps({**entry, "seconds": time.monotonic() - start, "peak": _peak() - first}) + "\n")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _frames(error: BaseException) -> str:
    """Return the last places in the package."""
    frames = [
        f"{Path(frame.filename).parent.name}/{Path(frame.filename).name}:{frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "lance_dataset" in frame.filename
    ]
    return " < ".join(reversed(frames[-3:]))


def _frames_of_dump(dump: str) -> str:
    lines = [line.strip() for line in dump.splitlines() if "lance_dataset" in line and " in " in line]
    return " < ".join(line.partition("lance_dataset/")[2] for line in lines[:3])


# -- in the parent -----------------------------------------------------------------------------------------------------


def _wait(child: int) -> tuple[int | None, int]:
    """Wait for a child; return its status, None if it hung, and its peak of resident memory above the one of now."""
    base = _peak()
    end = time.monotonic() + _HANG
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return status, usage.ru_maxrss * 1024 - base
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            _, _, usage = os.wait4(child, 0)
            return None, usage.ru_maxrss * 1024 - base
        time.sleep(0.002)


def _snapshot(folder: Path, root: Path) -> dict[str, str]:
    """Return a digest of everything in the folder of a trial but the dataset and its clones."""
    return dict(_digests(folder, root))


def _digests(folder: Path, root: Path) -> Iterator[tuple[str, str]]:
    for place, folders, files in os.walk(folder):
        if place == str(folder):
            folders[:] = [name for name in folders if name != root.name and not name.startswith(f"{root.name}-copy")]
        for name in [*folders, *files]:
            path = os.path.join(place, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path, hashlib.sha256(Path(path).read_bytes()).hexdigest()
            else:
                yield path, str(os.lstat(path).st_mode)


def prepare(folder: Path, seed: Path) -> tuple[Path, Path]:
    """Make the folder of a trial: a copy of a dataset, and a canary beside it. Return both paths."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    root = folder / "t.lance"
    shutil.copytree(seed, root, symlinks=True)
    return root, add_canary(folder)


def add_canary(folder: Path) -> Path:
    """Make a folder that looks like an old dataset, in which no call may change anything."""
    canary = folder / "canary"
    for place in (canary, canary / "data", canary / "_versions", canary / "_indices"):
        place.mkdir()
        (place / "secret").write_bytes(b"a file that does not belong to the dataset")
    (canary / "old.lance").write_bytes(b"x" * 100)
    old = time.time() - 30 * 24 * 3600
    for path in canary.rglob("*"):
        os.utime(path, (old, old))
    return canary
