"""Worlds to report on, and a real headless Chromium without a network, spoken to over a pipe."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import runpy
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WORLD = runpy.run_path(str(Path(__file__).with_name("world.py")), run_name="world")
DEADLINE_S = 30


class Browser:
    """One Chromium process. It reaches nothing: every name resolves to nowhere, and no proxy is asked."""

    def __init__(self, program: str, folder: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        for end in (ours[1], theirs[0]):
            fcntl.fcntl(end, fcntl.F_SETFD, fcntl.FD_CLOEXEC)

        def hand_over() -> None:  # commands come in at 3, answers leave at 4
            read, write = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (ours[0], theirs[1]))
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--proxy-server=http://127.0.0.1:9",
                "--remote-debugging-pipe",
                f"--user-data-dir={folder / 'profile'}",
                "about:blank",
            ],
            env={"HOME": str(folder), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=hand_over,
            close_fds=False,
            start_new_session=True,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._to, self._from = ours[1], theirs[0]
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol and return its result; events are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next(time.monotonic() + DEADLINE_S)
            if found.get("id") == self._number:
                assert "error" not in found, (method, found["error"])
                return found["result"]
            self.events.append(found)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise AssertionError("the browser does not answer")
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise AssertionError("the browser is gone")
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def close(self) -> None:
        """End the browser, whatever it does."""
        with contextlib.suppress(OSError):
            os.close(self._to)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, 9)
            self.process.wait(10)
        os.close(self._from)


KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "Home": 36, "End": 35, "ArrowLeft": 37, "ArrowUp": 38}
KEYS |= {"ArrowRight": 39, "ArrowDown": 40, "PageDown": 34}


class Page:
    """One tab."""

    def __init__(self, browser: Browser, *, width: int = 1440, height: int = 900, dark: bool = False) -> None:
        self.browser = browser
        self.target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        self.prefer(dark=dark)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.send(method, self.session, **params)

    def prefer(self, *, dark: bool) -> None:
        scheme = "dark" if dark else "light"
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path: Path, anchor: str = "") -> float:
        """Open a file from disk; return how many seconds it took until it was drawn."""
        self.browser.events.clear()
        started = time.monotonic()
        self.send("Page.navigate", url=f"file://{path}" + (f"#{anchor}" if anchor else ""))
        self.wait("document.documentElement?.dataset.ready === 'yes' && document.readyState === 'complete'")
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return time.monotonic() - started

    def js(self, expression: str) -> Any:
        """Return what an expression of JavaScript comes to."""
        found = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true, within the deadline."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.js(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.02)

    def press(self, key: str, *, ctrl: bool = False) -> None:
        """Press a key, as a person would."""
        shared = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key], "modifiers": 2 if ctrl else 0}
        text = {"text": "\r"} if key == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **shared, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **shared)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def pdf(self) -> bytes:
        return base64.b64decode(self.send("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the page was opened."""
        return [event["params"]["request"]["url"] for event in self._told("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """Return errors and warnings of the console, exceptions, and what the page's policy refused."""
        found = [str(event["params"]) for event in self._told("Runtime.exceptionThrown")]
        found += [str(event["params"]) for event in self._told("Runtime.consoleAPICalled")]
        return found + [event["params"]["entry"]["text"] for event in self._told("Log.entryAdded")]

    def _told(self, method: str) -> list[dict[str, Any]]:
        self.js("1")  # whatever was on its way has come
        return [event for event in self.browser.events if event.get("method") == method]

    def close(self) -> None:
        self.browser.send("Target.closeTarget", targetId=self.target)


def find_chromium() -> str | None:
    given = os.environ.get("GITLEDGER_TEST_CHROMIUM")
    return given or next(filter(None, map(shutil.which, CHROMIUM)), None)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A Chromium; it is an error that there is none where tests ask for one."""
    program = find_chromium()
    if program is None:
        raise AssertionError("no Chromium: apt-get install chromium, or name one by GITLEDGER_TEST_CHROMIUM")
    found = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Return a maker of tabs, closed in the end."""
    pages = []

    def make(**options: Any) -> Page:
        pages.append(Page(browser, **options))
        return pages[-1]

    yield make
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def make_world() -> Callable[..., Any]:
    """Return the maker of worlds: `make_world(folder, shards=3, commits=12)`."""
    return WORLD["make_world"]


@pytest.fixture(scope="session")
def ledger_in() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Return a way to run `git ledger` in a world."""
    import sys

    program = str(Path(sys.executable).with_name("git-ledger"))

    def run(world: Any, *args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([program, *args], cwd=world.path, env=world.env, capture_output=True, check=False)

    return run
