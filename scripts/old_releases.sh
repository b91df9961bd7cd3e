#!/usr/bin/env bash
# Makes an environment for each old release of the reference that the tests read our datasets with:
# .venv-pylance-VERSION in the project, if missing.
set -euo pipefail

cd "$(dirname "$0")/.."

for release in 0.20.0 1.0.0; do
    folder=.venv-pylance-$release
    if [ -e "$folder/.stamp" ]; then
        continue
    fi
    python=$(scripts/find_python.sh 10 12)
    echo "Installing pylance $release into $folder" >&2
    rm -rf "$folder"
    "$python" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet "pylance==$release"
    touch "$folder/.stamp"
done
