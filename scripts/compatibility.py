"""Write docs/compatibility.md: files of other releases that this package reads, and of ours that those releases read.

    compatibility.py [--releases 0.4.21 1.0.0] [--versions legacy 2.0] [--environments FOLDER/{}]

Every release runs in its own environment, which is installed if it is missing. Outcomes are stored by release and file
version in build/compatibility, so that some can be run again separately. With none of them (`--releases` without a
value), only the page is written again. The page shows all outcomes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from compatibility.page import render
from compatibility.releases import ENVIRONMENTS, RELEASES, VERSIONS, Release, environment
from compatibility.runs import run

PROJECT = Path(__file__).parents[1]
PAGE = PROJECT / "docs" / "compatibility.md"
RESULTS = PROJECT / "build" / "compatibility"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run old releases of pylance against this package; write the page.")
    names = [release.name for release in RELEASES]
    parser.add_argument("--releases", nargs="*", default=names, choices=names, metavar="RELEASE", help="default: all")
    parser.add_argument("--versions", nargs="*", default=VERSIONS, choices=VERSIONS, metavar="VERSION")
    parser.add_argument(
        "--environments",
        default=ENVIRONMENTS,
        help="folder of the environment of a release, with {} for the release (default: .venv-pylance-{})",
    )
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel processes (default: 2)")
    return parser.parse_args(arguments)


def results_of(release: Release, version: str) -> Path:
    return RESULTS / f"{release.name}-{version}.json"


def try_and_keep(release: Release, version: str, python: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        results = run(release, version, python, Path(folder, "run"))
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, ensure_ascii=False, indent=1)
    results_of(release, version).write_text(text + "\n", encoding="utf-8")
    return f"{release.name} {version}"


def main() -> None:
    options = parse()
    chosen = [release for release in RELEASES if release.name in options.releases]
    pythons = {release: environment(release, options.environments) for release in chosen}
    pairs = [(release, version) for release in chosen for version in release.versions if version in options.versions]
    with ProcessPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(try_and_keep, *pair, pythons[pair[0]]) for pair in pairs]:
            print("ran", done.result(), file=sys.stderr)
    wanted = [(release, version) for release in RELEASES for version in release.versions]
    missing = [f"{release.name} {version}" for release, version in wanted if not results_of(release, version).exists()]
    if missing:
        raise SystemExit(f"{PAGE.name} is unchanged, because some have not run yet: {', '.join(missing)}")
    kept = {(release.name, version): results_of(release, version).read_text("utf-8") for release, version in wanted}
    page = render({pair: json.loads(text) for pair, text in kept.items()})
    PAGE.write_text(page, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(PROJECT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
