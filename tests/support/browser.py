"""A headless Chromium, told what to do through its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Browser", "Page", "browser_program", "open_browser"]

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE = 20.0


def browser_program() -> str | None:
    """Return the program of a browser that can be driven."""
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


class Browser:
    """A running browser: sends commands and collects events."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._number = 0
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") != number:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return answer["result"]

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._from, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._buffer += part
        first, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(first)

    def open(self, url: str, width: int = 1200, height: int = 800) -> Page:
        """Open a page; its requests and the errors of its programs are collected from the start."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        page.call("Page.navigate", url=url)
        return page


class Page:
    """A page of the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def run(self, program: str) -> Any:
        """Return the value of an expression, awaited."""
        found = self.call("Runtime.evaluate", expression=program, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", str(found)))
        return found["result"].get("value")

    def wait(self, condition: str) -> Any:
        """Return the value of an expression as soon as it is true."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            found = self.run(f"((found) => (found instanceof Node ? true : found))({condition})")
            if found:
                return found
            time.sleep(0.03)
        raise AssertionError(f"never true: {condition}\n{self.run('document.body.innerText')[:2000]}")

    def press(self, key: str, modifiers: int = 0) -> None:
        text = {"text": key} if len(key) == 1 and not modifiers else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def addresses(self) -> list[str]:
        """Return the addresses that were asked for."""
        events = self._of("Network.requestWillBeSent")
        return [event["request"]["url"] for event in events]

    def problems(self) -> list[str]:
        """Return the errors of programs, and what the browser refused."""
        thrown = [str(event["exceptionDetails"]) for event in self._of("Runtime.exceptionThrown")]
        logged = [event["entry"] for event in self._of("Log.entryAdded")]
        return thrown + [f"{each['text']} {each.get('url')}" for each in logged if each["level"] == "error"]

    def _of(self, method: str) -> list[dict[str, Any]]:
        self.run("0")  # events that are on their way
        found = [each for each in self._browser.events if each.get("sessionId") == self._session]
        return [each["params"] for each in found if each.get("method") == method]


@contextmanager
def open_browser(folder: Path) -> Iterator[Browser]:
    """Start a browser whose profile is in a folder, and end it afterwards."""
    program = browser_program()
    assert program is not None, "no browser: apt-get install chromium"
    read_commands, write_commands = os.pipe()
    read_answers, write_answers = os.pipe()
    arguments = [
        *(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
        *("--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"),
    ]
    # The browser expects the ends of the pipes as its files 3 and 4.
    shell = f'exec "$@" 3<&{read_commands} 4>&{write_answers}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *arguments],
        pass_fds=(read_commands, write_answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_commands)
    os.close(write_answers)
    try:
        yield Browser(write_commands, read_answers)
    finally:
        os.close(write_commands)
        os.close(read_answers)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
