#!/usr/bin/env bash
# Makes an environment for each old release of the reference that the tests read our datasets with:
# .venv-pylance-VERSION in the project, if missing.
set -euo pipefail

cd "$(dirname "$0")/.."

python=$(scripts/find_python.sh 10)
PYTHONPATH=scripts exec "$python" -m compatibility.releases 0.4.21 0.10.18 0.20.0 1.0.0
