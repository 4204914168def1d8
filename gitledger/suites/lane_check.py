"""The lane check as a pytest plugin: `pytest -m integration --ledger-lane L`.

It adds one test, marked `integration`, that runs `git ledger doctor` for the lane in a process of its own; the
model comes from the environment, and without one the test skips. pytest itself returns 0 where everything skipped,
so the exit status is set here: 77 where the check skipped, 99 where it came to no answer. What it came to
travels in its report, since under xdist it runs in a worker, and the session that exits is another. Nothing is
signed: the test process holds no key (`git ledger record --capability FILE` signs).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gitledger.errors import EXIT_INCONCLUSIVE, EXIT_SKIPPED, DecodeError

# Every pytest run of an environment imports this module: what only a check needs is imported by it.
if TYPE_CHECKING:
    from gitledger.records.capability import CapabilityReport

__all__ = ["LaneItem"]

MARK = "integration"
VARIABLES = ("GITLEDGER_DOCTOR_MODEL", "MESHNET_DOCTOR_MODEL")
_CAME_TO = "ledger-lane"
"""The property of the check's report that says what it came to."""
_WORST_FIRST = ("failed", "inconclusive", "skipped", "passed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--ledger-lane` and `--ledger-lane-report`."""
    group = parser.getgroup("gitledger")
    group.addoption(
        "--ledger-lane", metavar="LANE", help="Check this hardware lane: git ledger doctor, as a test."
    )
    group.addoption("--ledger-lane-report", metavar="FILE", help="Keep the lane's capability reports in FILE.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark that the check carries."""
    config.addinivalue_line("markers", f"{MARK}: needs hardware or services that a default run does not have")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the check to whatever was collected, before `-m` chooses."""
    lane = config.getoption("--ledger-lane")
    if lane:
        item: LaneItem = LaneItem.from_parent(session, name=f"ledger-lane[{lane}]", lane=lane)
        item.add_marker(MARK)
        items.append(item)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what the check came to, and what failed; on a class, since this hook is told of no configuration."""
    said = dict(report.user_properties).get(_CAME_TO)
    if said in _WORST_FIRST:
        _Seen.nodeid, _Seen.came_to = report.nodeid, str(said)
    if report.failed:
        _Seen.failed.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Iterator[None]:  # noqa: ARG001
    """Tell skipped and inconclusive from passed: 0 is kept for a check that ran and passed."""
    yield
    is_worker = hasattr(session.config, "workerinput")
    if is_worker or not session.config.getoption("--ledger-lane"):
        return
    others = _Seen.failed - {_Seen.nodeid}
    if _Seen.came_to == "inconclusive" and not others and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.exitstatus = EXIT_INCONCLUSIVE
    elif _Seen.came_to != "passed" and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = EXIT_SKIPPED


class _Seen:
    """What this process, which has one session, was told: by the check's report, and by those of what failed.

    A check of which there is no report (not chosen, or never reached) is one that skipped.
    """

    nodeid = ""
    came_to = "skipped"
    failed: set[str] = set()  # noqa: RUF012


class LaneCheckError(Exception):
    """What the lane check has against the lane, as lines for a person."""


class LaneItem(pytest.Item):
    """One lane, checked; what its reports came to is a property of its own report."""

    def __init__(self, *, lane: str, **more: Any) -> None:
        super().__init__(**more)
        self.lane = lane

    def runtest(self) -> None:
        """Run doctor, and hold its reports to what a lane check asserts."""
        model = next((value for name in VARIABLES if (value := self._environ(name))), "")
        if not model:
            pytest.skip(f"{VARIABLES[0]} names no model; there is no default")
        reports, said, status = self._doctor(model)
        came_to = min((report.status.value for report in reports), key=_WORST_FIRST.index)
        if status and came_to == "passed":  # all that ran passed, and doctor says no: something did not run
            came_to = "inconclusive" if status == EXIT_INCONCLUSIVE else "failed"
        self.user_properties.append((_CAME_TO, came_to))
        if came_to == "skipped":
            pytest.skip(said)
        if came_to != "passed":
            raise LaneCheckError(said)
        for report in reports:
            _assert_proof(report, lane=self.lane, model=model)

    def _environ(self, name: str) -> str:
        return os.environ.get(name, "").strip()

    def _doctor(self, model: str) -> tuple[tuple[CapabilityReport, ...], str, int]:
        """Return doctor's reports, what it said and exits with; raises `LaneCheckError` where it made none."""
        from gitledger.records.capability import decode_reports

        kept = self.config.getoption("--ledger-lane-report")
        with tempfile.TemporaryDirectory(prefix="gitledger-lane-") as folder:
            file = Path(kept).resolve() if kept else Path(folder) / "capability.json"
            argv = ["doctor", "--lane", self.lane, "--model", model, "--report", str(file)]
            done = subprocess.run(
                [sys.executable, "-m", "gitledger", "-C", str(self.config.invocation_params.dir), *argv],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            said = done.stderr.strip()[-4000:]
            if done.returncode in (2, 3, 70):
                # pytest's summary shows the first line alone: the reason has to stand there.
                why = next(
                    (line for line in said.splitlines() if line.startswith("error: ")), "it did not say why"
                )
                raise LaneCheckError(f"doctor could not run (exit {done.returncode}): {why}\n{said}")
            try:
                return decode_reports(file.read_bytes()), said, done.returncode
            except (OSError, DecodeError) as error:
                raise LaneCheckError(f"doctor left no report (exit {done.returncode}): {error}\n{said}") from error

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return doctor's own words, without a traceback of ours."""
        if isinstance(excinfo.value, LaneCheckError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where the test is said to be."""
        return self.path, None, self.name


def _assert_proof(report: CapabilityReport, *, lane: str, model: str) -> None:
    """Raise `LaneCheckError` unless the report is a pass of that model on that lane that comes back as it is."""
    faults = {
        "another model": report.model.requested != model,
        "another lane": report.lane.id != lane,
        "no executed forward": not report.forward.executed,
        "a forward without duration": not (report.timing.duration_ms or 0) > 0,
        "a report that does not come back": type(report).from_json(report.to_json()) != report,
    }
    found = [fault for fault, holds in faults.items() if holds]
    if found:
        raise LaneCheckError(f"the report of {report.recipe.id} shows {', '.join(found)}")
