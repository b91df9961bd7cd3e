"""Tests of events of datasets: callbacks, files for Chrome, the log that ``LANCE_LOG*`` asks for, and OpenTelemetry."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance.log
import pyarrow as pa
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import lance_dataset
from lance_dataset import events, log
from lance_dataset.api import metrics, tracing
from lance_dataset.errors import InvalidInputError
from lance_dataset.events import TraceEvent

PROGRAM = """
import pyarrow as pa
import {package} as lance
from {package} import tracing
found = []
if {captured}:
    tracing.capture_trace_events(found.append)
    tracing.trace_to_chrome(file="trace.json")
table = pa.table({{"a": range(10)}})
lance.write_dataset(table, "t.lance")
ds = lance.write_dataset(table, "t.lance", mode="append")
ds.delete("a = 7")
ds.optimize.compact_files()
ds.cleanup_old_versions()
try:
    lance.dataset("none.lance")
except ValueError:
    pass
import json
"""
TOLD = """
import time
for _ in range(500):
    if found and found[-1].args.get("uri", "").endswith("none.lance"):
        break
    time.sleep(0.01)
print(json.dumps([[e.target, e.args] for e in found]))
"""


def _run(folder: Path, source: str, **variables: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LANCE_LOG")}
    environment = {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    return subprocess.run(
        [sys.executable, "-c", source], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Any], Path]]:
    """Events of the same program with both packages, and the folders where it ran."""
    found = {}
    for package in ("lance", "lance_dataset"):
        folder = tmp_path_factory.mktemp(package)
        # The reference writes the file only without a callback, so it runs with the callback alone.
        source = PROGRAM.format(package=package, captured=True)
        if package == "lance":
            source = source.replace('    tracing.trace_to_chrome(file="trace.json")\n', "")
        found[package] = json.loads(_run(folder, source + TOLD).stdout.splitlines()[-1]), folder
    return found


def _changes(told: list[Any]) -> list[tuple[str, ...]]:
    """Return the events of changes, without versions opened and commits of compactions, which the reference omits."""
    names = ("event", "mode", "operation", "read_version", "committed_version", "detached", "type")
    return [
        (target, *(args[name] for name in names if name in args))
        for target, args in told
        if target in ("lance::dataset_events", "lance::file_audit")
        and args.get("event") != "loading"
        and args.get("operation") not in ("ReserveFragments", "Rewrite")
        and args.get("type") not in ("manifest", "deletion")
    ]


def test_events_are_those_of_the_reference(traced: dict[str, tuple[list[Any], Path]]) -> None:
    """The same program has the same events of datasets and data files, in the same order."""
    ours, theirs = (_changes(traced[package][0]) for package in ("lance_dataset", "lance"))
    assert ours == theirs
    for _, args in traced["lance_dataset"][0]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", args["timestamp"])
        assert args["client_version"] == lance_dataset.__version__
    last = traced["lance_dataset"][0][-1][1]
    assert (last["event"], last["status"]) == ("loading", "error")


def test_chrome_file(traced: dict[str, tuple[list[Any], Path]]) -> None:
    """The file is complete when the process ends, and has each event with its time and thread."""
    told, folder = traced["lance_dataset"]
    entries = json.loads((folder / "trace.json").read_text())
    assert entries[0]["ph"] == "M"
    written = [entry for entry in entries if entry["ph"] == "i"]
    assert [entry["cat"] for entry in written] == [target for target, _ in told]
    assert [entry["ts"] for entry in written] == sorted(entry["ts"] for entry in written)
    assert written[0]["args"]["event"] == '"writing"'


@pytest.fixture
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process without callbacks and files of other tests."""
    monkeypatch.setattr(events, "_listeners", ())
    monkeypatch.setattr(tracing, "_callback", None)
    monkeypatch.setattr(tracing, "_chrome", None)
    yield
    if tracing._chrome is not None:
        tracing._chrome.end()
    if tracing._callback is not None:
        tracing._callback.end()


@pytest.mark.usefixtures("_alone")
def test_one_callback(caplog: pytest.LogCaptureFixture) -> None:
    """A second callback is refused; errors of the first are logged, and it gets the events that follow."""
    found: list[TraceEvent] = []

    def failing(event: TraceEvent) -> None:
        found.append(event)
        raise RuntimeError("mine")

    with pytest.raises(TypeError, match="must be callable"):
        tracing.capture_trace_events("no")  # type: ignore[arg-type]
    tracing.capture_trace_events(failing)
    with pytest.raises(InvalidInputError, match="Callback already set"):
        tracing.capture_trace_events(print)
    for number in range(3):
        events.emit("io_events", type="x", number=number, flag=True)
    assert tracing._callback is not None
    tracing._callback.end()
    assert [event.args["number"] for event in found] == ["0", "1", "2"]
    assert found[0].target == "lance::io_events"
    assert str(found[0]) == 'target="lance::io_events" type="x" number=0 flag=true '
    assert caplog.text.count("error in the callback") == 3


@pytest.mark.usefixtures("_alone")
def test_chrome_file_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second file ends the first, the default name has the time, and levels choose the events."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LANCE_LOG", raising=False)
    tracing.trace_to_chrome(file="a.json")
    events.emit("io_events", type="x")
    tracing.trace_to_chrome()
    assert len(json.loads(Path("a.json").read_text())) == 2
    monkeypatch.setenv("LANCE_LOG", "warn,lance::events::io_events=info")
    events.emit("file_audit", type="y")
    events.emit("io_events", type="z")
    assert tracing._chrome is not None
    tracing._chrome.end()
    (other,) = tmp_path.glob("trace-*.json")
    assert [entry["name"] for entry in json.loads(other.read_text())] == ["thread_name", "z"]


@pytest.mark.usefixtures("_alone")
def test_a_full_disk_ends_the_chrome_file_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Commits do not fail because of the file that tells of them."""

    class Full(io.BytesIO):
        name = "x.json"

        def write(self, data: Any) -> int:
            if self.tell() > 300:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(data)

    tracing._chrome = tracing._ChromeFile(Full())
    tracing._chrome.start()
    dataset = lance_dataset.write_dataset(pa.table({"a": [1]}), tmp_path / "x")
    dataset.insert(pa.table({"a": [2]}))
    assert dataset.version == lance_dataset.dataset(tmp_path / "x").version == 2
    assert caplog.text.count("x.json ends early") == 1
    with pytest.raises(OSError, match="No space"):
        tracing.trace_to_chrome(file="/dev/full")
    assert tracing._chrome is None


@pytest.mark.usefixtures("_alone")
def test_forked_children_leave_the_chrome_file_alone(tmp_path: Path) -> None:
    code = """
import os, sys
from lance_dataset import events, tracing
tracing.trace_to_chrome(file=sys.argv[1])
events.emit("io_events", type="x")
child = os.fork()
events.emit("io_events", type="child" if child == 0 else "parent")
if child:
    os.waitpid(child, 0)
"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "a.json"], check=True)
    entries = json.loads((tmp_path / "a.json").read_text())
    assert [entry["name"] for entry in entries] == ["thread_name", "x", "parent"]


# -- the log -----------------------------------------------------------------------------------------------------


LINE = r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z (INFO |WARN |ERROR) lance::[a-z_:]+\] .*"
SHORT = """
import logging, lance_dataset as lance
from lance_dataset.events import emit
emit("dataset_events", event="loading", version=1)
emit("file_audit", mode="create")
logging.getLogger("lance_dataset.table").warning("careful %d", 3)
"""


@pytest.mark.parametrize(("precision", "digits"), [("s", 0), ("ms", 3), ("us", 6), ("ns", 9), ("bogus", 0)])
def test_log_lines(precision: str, digits: int) -> None:
    """A line has time, level and module as in the reference, and the time the digits asked for."""
    formatter = log._Formatter(log._DIGITS.get(precision, 0), colored=False)
    line = formatter.format(logging.LogRecord("lance_dataset.a.b", logging.WARNING, "f", 1, "x %s", ("y",), None))
    matched = re.fullmatch(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z WARN  lance::a::b\] x y", line)
    assert matched is not None
    assert len(matched[1] or ".") - 1 == digits


def test_log_file(tmp_path: Path) -> None:
    """The folder of the file is made, and lines are added; a wrong precision is told."""
    for _ in range(2):
        ended = _run(tmp_path, SHORT, LANCE_LOG="info", LANCE_LOG_FILE="a/b/c.log", LANCE_LOG_TS_PRECISION="bogus")
        assert ended.stderr == "Invalid timestamp precision (valid values: ns, us, ms, s): bogus, using default\n"
    lines = (tmp_path / "a/b/c.log").read_text().splitlines()
    assert len(lines) == 6
    assert all(re.fullmatch(LINE, line) for line in lines)
    assert lines[0].endswith('target="lance::dataset_events" event="loading" version=1 ')
    assert lines[2].endswith("Z WARN  lance::table] careful 3"), lines


def test_log_file_that_cannot_be_opened(tmp_path: Path) -> None:
    """Then lines go to the standard error; without a level only warnings do."""
    (tmp_path / "file").touch()
    lines = _run(tmp_path, SHORT, LANCE_LOG_FILE="file/x").stderr.splitlines()
    assert "Failed to create parent directories for log file 'file/x'" in lines[0]
    assert [line.rpartition("] ")[2] for line in lines[1:]] == ["careful 3"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("info", (True, True, True)),
        ("warn", (False, False, True)),
        ("off", (False, False, False)),
        ("lance=info", (True, True, True)),
        ("lance::events=info", (True, True, False)),
        ("info,lance::events=off", (False, False, True)),
        ("lance=warn,lance::events::file_audit=info", (False, True, True)),
        ("DEBUG", (True, True, True)),
        ("lance::table", (False, False, True)),
    ],
)
def test_levels(text: str, expected: tuple[bool, ...]) -> None:
    """The longest beginning of a module's name decides."""
    chosen = log._Filter(log._directives(text))
    records = [("events.dataset_events", logging.INFO), ("events.file_audit", logging.INFO), ("table", logging.WARNING)]
    found = [
        chosen.filter(logging.LogRecord(f"lance_dataset.{name}", level, "f", 1, "", (), None))
        for name, level in records
    ]
    assert tuple(found) == expected


@pytest.mark.parametrize(
    "text", ["", "trace", "debug", "warn", "ERROR", "off", "lance=debug", "a=debug,info", "info,a=debug", "a,b"]
)
def test_level_for_python(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_LOG", text)
    if text:  # the reference fails for an empty text
        assert log.get_log_level() == lance.log.get_log_level()
    assert log.get_python_log_level(text) == lance.log.get_python_log_level(text)
    assert log.ENV_NAME_PYLANCE_LOGGING_LEVEL == lance.log.ENV_NAME_PYLANCE_LOGGING_LEVEL


def test_unknown_levels_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    log._directives("lance=loud")
    assert "'loud' is not a level" in capsys.readouterr().err


# -- OpenTelemetry -----------------------------------------------------------------------------------------------


def test_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests and bytes grow with what the process reads and writes; instruments are made once."""
    monkeypatch.setattr(metrics, "_instrumented", False)
    reader = InMemoryMetricReader()
    assert metrics.instrument_lance_metrics(MeterProvider([reader]))
    assert metrics.instrument_lance_metrics(MeterProvider())
    before = _read(reader)
    lance_dataset.write_dataset(pa.table({"a": range(1000)}), tmp_path / "t.lance").to_table()
    after = _read(reader)
    assert len(after) == 4
    assert all(after[key] > before.get(key, 0) for key in after)


def _read(reader: InMemoryMetricReader) -> dict[tuple[str, Any], float]:
    data = reader.get_metrics_data()
    found = [] if data is None else [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
    return {
        (metric.name, (point.attributes or {})["operation"]): point.value  # type: ignore[union-attr]
        for metric in found
        if metric.name.startswith("lance_object_store")
        for point in metric.data.data_points
    }


def test_metrics_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)
    with pytest.raises(ImportError, match=r"lance-dataset\[otel\]"):
        metrics.instrument_lance_metrics()
