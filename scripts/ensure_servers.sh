#!/usr/bin/env bash
# Succeeds when the servers that tests start, beyond those that come with Python packages, are there: PostgreSQL, and
# Azurite (a server for Azure's blobs) in .servers/. Installs PostgreSQL when root on a Debian-like system, and Azurite
# where node and npm are; otherwise says what to do and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

LOCK=scripts/servers/package-lock.json
FOLDER=.servers
NODE_MINIMUM=18

postgres_is_there() {
    compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || command -v initdb >/dev/null
}

node_is_there() {
    command -v npm >/dev/null && command -v node >/dev/null &&
        [ "$(node --version | sed 's/^v\([0-9]*\).*/\1/')" -ge "$NODE_MINIMUM" ]
}

azurite_is_there() {
    [ -f "$FOLDER/node_modules/azurite/package.json" ] && cmp --silent "$LOCK" "$FOLDER/installed.json"
}

missing=()
postgres_is_there || missing+=(postgresql)
azurite_is_there || node_is_there || missing+=(nodejs npm)

if [ "${#missing[@]}" -gt 0 ]; then
    echo "Tests need PostgreSQL, and node $NODE_MINIMUM or newer with npm for Azurite (missing: ${missing[*]})." >&2
    echo "  Debian, Ubuntu:  apt-get install ${missing[*]}" >&2
    echo "  Fedora:          dnf install postgresql-server nodejs npm" >&2
    echo "  macOS:           brew install postgresql node" >&2
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        exit 1
    fi
    echo "Running as root with apt-get at hand: installing ${missing[*]}." >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update >&2
    apt-get install --yes --no-install-recommends "${missing[@]}" >&2
    if ! postgres_is_there || ! { azurite_is_there || node_is_there; }; then
        echo "${missing[*]} are installed, yet the programs are not found or too old; check PATH." >&2
        exit 1
    fi
fi

if ! azurite_is_there; then
    rm -rf "$FOLDER"
    mkdir -p "$FOLDER"
    cp scripts/servers/package.json "$LOCK" "$FOLDER/"
    (cd "$FOLDER" && npm ci --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error) >&2
    cp "$LOCK" "$FOLDER/installed.json"
fi
