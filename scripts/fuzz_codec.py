"""Call every kernel with hostile arguments; the only acceptable outcomes are an answer and an ordinary exception.

The calls are in ``tests/fuzz/codec_targets``. Random calls find little unless the memory is checked. So ``--sanitize``
first builds the kernels with the address and undefined-behaviour sanitizers of GCC, and runs itself on that build. A
failure prints the command that repeats it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "fuzz"))

from codec_targets import discover  # noqa: E402 - found through the path above
from codec_targets.chaos import Chaos  # noqa: E402

ALLOWED = (ValueError, TypeError, OverflowError, BufferError, MemoryError)


def chosen(targets: dict[str, Callable[[Chaos], object]], pattern: str) -> dict[str, Callable[[Chaos], object]]:
    """Return the target with exactly this name, or all whose name contains it."""
    if pattern in targets:
        return {pattern: targets[pattern]}
    table = {name: target for name, target in targets.items() if pattern in name}
    if not table:
        raise SystemExit(f"no target has {pattern!r} in its name")
    return table


def fuzz(table: dict[str, Callable[[Chaos], object]], seed: int, seconds: float, calls: int | None) -> None:
    """Run until the time is over or the calls are made; report the number of answered calls of each target."""
    names = list(table)
    made = dict.fromkeys(names, 0)
    answered = dict.fromkeys(names, 0)
    stop = time.monotonic() + seconds
    number = 0
    while (number < calls) if calls is not None else (time.monotonic() < stop):
        name = names[number % len(names)]
        made[name] += 1
        try:
            table[name](Chaos(seed + number))
            answered[name] += 1
        except ALLOWED:
            pass
        except BaseException:
            again = f"--only {name!r} --seed {seed + number} --calls 1"
            print(f"{name} failed; to repeat it: {Path(__file__).name} {again}", file=sys.stderr)
            raise
        number += 1
    for name in names:
        print(f"{name:40} {made[name]:8} calls, {answered[name]:8} answered")
    silent = [name for name in names if made[name] > 200 and not answered[name]]
    if silent:
        raise SystemExit(f"no call of {', '.join(silent)} was ever answered, so nothing was tested")


def copy_sources(target: Path) -> None:
    """Copy the package, generated C included; earlier build results stay if they are newer."""
    kept = {".so", ".c"}
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, target)
    for package in ("lancecodec", "lance_dataset"):
        copied = target / "src" / package
        for path in [path for path in copied.rglob("*") if path.is_file() and path.suffix not in kept]:
            path.unlink()
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / "src" / package, copied, ignore=ignored, dirs_exist_ok=True)


def build_sanitized(target: Path) -> None:
    """Compile the kernels with sanitizers, once per kernel rather than once per instruction set."""
    checks = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g"
    environment = {**os.environ, "CFLAGS": f"{checks} -DLC_ONE_VERSION", "LDFLAGS": "-fsanitize=address,undefined"}
    command = [sys.executable, "-u", "setup.py", "build_ext", "--inplace"]
    begin = time.monotonic()
    words: list[str] = []
    with subprocess.Popen(
        command, cwd=target, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as build:
        for line in build.stdout or []:
            words.append(line)
            if line.startswith(("Compiling", "Cythonizing", "building '")) or "[" in line[:2]:
                print(f"{time.monotonic() - begin:5.0f} s  {line.strip()}", flush=True)
    if build.returncode:
        raise SystemExit(f"the build with sanitizers failed:\n{''.join(words)[-5000:]}")


def sanitized(arguments: list[str]) -> int:
    """Build the kernels with sanitizers in build/sanitized, and run this script on that build."""
    compiler = os.environ.get("CC", "gcc").split()[0]
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    target = ROOT / "build" / "sanitized"
    (target / "src").mkdir(parents=True, exist_ok=True)
    copy_sources(target)
    build_sanitized(target)
    environment = {
        **os.environ,
        "LD_PRELOAD": library,
        "PYTHONPATH": f"{target}/src",
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    return subprocess.run([sys.executable, "-u", __file__, *arguments], env=environment, check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="first seed; call k uses seed + k")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--calls", type=int, help="number of calls, however long they take")
    parser.add_argument("--only", default="", metavar="PATTERN", help="target of this name, or all that contain it")
    parser.add_argument("--sanitize", action="store_true", help="run on a build with sanitizers")
    options = parser.parse_args()
    if options.sanitize:
        sys.exit(sanitized([argument for argument in sys.argv[1:] if argument != "--sanitize"]))
    targets, broken = discover()
    fuzz(chosen(targets, options.only), options.seed, options.seconds, options.calls)
    if broken:
        raise SystemExit("\n".join(f"no target of {name} ran: {error}" for name, error in broken.items()))


if __name__ == "__main__":
    main()
