"""Peak memory of one activity of one contender, measured in a separate process.

compare.py runs this file as ``python memory.py CONTENDER DATASET ROWS ACTIVITY PATH``. It prints one JSON object with
the number of bytes by which the peak exceeded the memory after importing the library:

``peak``
    all resident memory, pages of mapped files included;
``anonymous``
    without pages of files (which the system can drop at any time); sampled, Linux only, else null.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading
from pathlib import Path

from contenders import CONTENDERS, Contender
from data import DATASETS, Dataset
from operations import batches_and_touch
from touch import touch

__all__ = ["AnonymousPeak", "peak_memory", "reset_peak"]

ACTIVITIES = {
    "write": "write a stream",
    "scan": "scan, touch",
    "batches": "scan in batches, touch",
}
_STATUS = Path("/proc/self/status")
_SAMPLE_SECONDS = 0.002


def _status(key: str) -> int:
    """Return a memory figure of this process in bytes."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1]) * 1024


def reset_peak() -> None:
    """Start measuring the peak of memory from what is in use, where the system can do that."""
    if _STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Return the peak of memory in bytes."""
    # On Linux, ru_maxrss starts from the memory of the parent at fork, so the kernel's per-process peak is used.
    if _STATUS.exists():
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class AnonymousPeak(threading.Thread):
    """Samples anonymous resident memory until stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._stopped = threading.Event()
        self.base = self.highest = _status("RssAnon")

    def run(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            self.highest = max(self.highest, _status("RssAnon"))

    def stop(self) -> int:
        self._stopped.set()
        self.join()
        return max(self.highest, _status("RssAnon")) - self.base


def _perform(activity: str, contender: Contender, dataset: Dataset, rows: int, path: Path) -> object:
    if activity == "write":
        contender.write(dataset.reader(rows), path)
        return None
    handle = contender.open(path)
    if activity == "batches":
        return batches_and_touch(handle)
    table = handle.scan()
    touch(table)
    return table


def main(name: str, dataset_name: str, rows: str, activity: str, path: str) -> None:
    contender, dataset = CONTENDERS[name], DATASETS[dataset_name]
    contender.import_library()
    next(iter(dataset.batches(min(dataset.batch_rows, int(rows)))))  # the generator's own memory must not count
    reset_peak()
    base = peak_memory()
    sampler = AnonymousPeak() if _STATUS.exists() else None
    if sampler is not None:
        sampler.start()
    result = _perform(activity, contender, dataset, int(rows), Path(path))
    anonymous = None if sampler is None else sampler.stop()
    print(json.dumps({"peak": peak_memory() - base, "anonymous": anonymous}))
    del result


def measure(contender: Contender, dataset: Dataset, rows: int, activity: str, path: Path) -> dict[str, int | None]:
    """Run this file in a separate process and return its result."""
    command = [sys.executable, __file__, contender.name, dataset.name, str(rows), activity, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"measuring the memory of {contender.name} ({activity}) failed, see above")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main(*sys.argv[1:])
