#!/usr/bin/env bash
# Succeeds when a browser is there that the tests of the viewer can drive; installs Chromium when root on a Debian-like
# system; otherwise says what to do and fails.
set -euo pipefail

browser_is_there() {
    command -v chromium || command -v chromium-browser || command -v google-chrome || command -v google-chrome-stable
}

if browser_is_there >/dev/null; then
    exit 0
fi

echo "The tests of the viewer need Chromium or Google Chrome." >&2
echo "  Debian:  apt-get install chromium" >&2
echo "  Fedora:  dnf install chromium" >&2
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    exit 1
fi
echo "Running as root with apt-get at hand: installing chromium." >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update >&2
apt-get install --yes --no-install-recommends chromium >&2
browser_is_there >/dev/null
