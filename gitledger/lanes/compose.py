"""From what a probe wrote and how its process ended to the report of it. The end of the process comes first.

A probe that claims a pass and then crashes has crashed; one that claims what no report can say (`records`) is
taken at its worst. Nothing that a probe writes makes more of it than a report that stands on its own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from gitledger import __version__
from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.lanes.journal import ProbeEnd, ProbeJournal
from gitledger.lanes.model import FoundModel, ModelError
from gitledger.lanes.supervise import ProbeRun
from gitledger.lanes.task import LaneTask
from gitledger.machine.child import ChildExit
from gitledger.machine.environment import libc_version
from gitledger.machine.redact import redact_text, secret_values
from gitledger.records.capability import CapabilityReport
from gitledger.records.capability_match import observe
from gitledger.records.capability_place import (
    DeviceClaim,
    LaneClaim,
    OsClaim,
    RuntimeClaim,
    ToolClaim,
    TorchClaim,
)
from gitledger.records.capability_status import Execution, ReasonCode, Result
from gitledger.records.capability_work import (
    MAX_STAGES,
    ForwardClaim,
    LayersClaim,
    ModelClaim,
    QuantizationClaim,
    ReasonClaim,
    TimingClaim,
)
from gitledger.records.decode import Reader
from gitledger.records.receipt import RepoClaim

__all__ = ["Place", "not_run", "report_of", "system_facts"]

MAX_MESSAGE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What every report of one `doctor` says alike. `driver` is asked only where a GPU was used, by its kind."""

    repo: RepoClaim
    os: OsClaim
    libc: str | None
    overrides: dict[str, str]
    environ: Mapping[str, str]
    home: Path
    driver: Callable[[str], str | None]

    @classmethod
    def here(
        cls,
        *,
        repo: RepoClaim,
        overrides: dict[str, str],
        environ: Mapping[str, str],
        home: Path,
        driver: Callable[[str], str | None],
    ) -> Place:
        """Return the place that this machine is."""
        return cls(
            repo=repo,
            os=system_facts(),
            libc=libc_version(environ),
            overrides=overrides,
            environ=environ,
            home=home,
            driver=driver,
        )


def system_facts(release: Path = Path("/etc/os-release")) -> OsClaim:
    """Return the system as uname(1) tells it, and the distribution as os-release(5) does."""
    names = os.uname()
    return OsClaim(
        name=names.sysname.lower(), version=_distribution(release), kernel=names.release, machine=names.machine
    )


def _distribution(release: Path) -> str | None:
    try:
        lines = release.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    pairs = dict(line.split("=", 1) for line in lines if "=" in line)
    words = [pairs.get(key, "").strip().strip("\"'") for key in ("ID", "VERSION_ID")]
    return " ".join(word for word in words if word)[:100] or None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Why it did not pass; `code` None: a pass is claimed."""

    code: ReasonCode | None
    message: str
    stage: str


def not_run(task: LaneTask, place: Place, error: ModelError, now: datetime) -> CapabilityReport:
    """Return the report of a recipe for which no process was started: there was no model to give to it."""
    model = ModelClaim(requested=task.model, resolved=None, files=(), digest=None)
    outcome = _Outcome(error.code, _clean(error.message, place), "model")
    return _report(task, place, model, ProbeJournal(), outcome, span=(now, now))


def report_of(task: LaneTask, place: Place, model: FoundModel, run: ProbeRun) -> CapabilityReport:
    """Return the report of a run, whatever came of it."""
    ended, journal = run.ended, run.journal
    outcome = _outcome(run, place)
    if outcome.code is None and model.has_changed():
        outcome = _Outcome(ReasonCode.ARTIFACT_MISMATCH, "a file of the model changed while it ran", "check")
    span = (ended.started_at, max(ended.started_at, ended.ended_at))
    try:
        return _report(task, place, model.claim, journal, outcome, span=span, log=run.log_excerpt)
    except DecodeError as error:
        text = f"what the probe claims is no report: {error.message}"
        worst = _Outcome(ReasonCode.INTERNAL_ERROR, _clean(text, place), journal.stage)
        return _report(task, place, model.claim, ProbeJournal(), worst, span=span, log=run.log_excerpt)


def _outcome(run: ProbeRun, place: Place) -> _Outcome:
    """Return how it ended: first how the process did, then what it wrote."""
    ended, journal, end = run.ended, run.journal, run.journal.end
    forced = _forced(ended)
    if forced is not None:
        return _Outcome(forced[0], forced[1], journal.stage)
    if end is None:
        text = f"its process ended without a result: {journal.fault or 'it broke off'}"
        return _Outcome(ReasonCode.CRASHED, text, journal.stage)
    if end.code is None:
        return _Outcome(None, "", end.stage)
    try:
        return _Outcome(ReasonCode(end.code), _clean(end.message, place), end.stage)
    except ValueError:
        return _Outcome(ReasonCode.INTERNAL_ERROR, f"the probe gave {end.code!a} as a reason", end.stage)


def _forced(ended: ChildExit) -> tuple[ReasonCode, str] | None:
    """Return the reason that lies in the end of the process itself; None where it ended by itself, with 0."""
    seconds = f"{ended.duration_ns / 1e9:.0f} s"
    if ended.interrupted:
        return ReasonCode.INTERRUPTED, f"interrupted after {seconds}"
    if ended.timed_out or ended.stalled:
        return ReasonCode.TIMEOUT, f"ended after {seconds}{' without progress' if ended.stalled else ''}"
    if ended.oom:
        return ReasonCode.OUT_OF_MEMORY, "the kernel's out-of-memory killer ended it"
    if ended.signal is not None:
        return ReasonCode.CRASHED, f"ended by {_signal_name(ended.signal)}"
    if ended.status:
        return ReasonCode.CRASHED, f"its process ended with status {ended.status}"
    return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _report(
    task: LaneTask,
    place: Place,
    model: ModelClaim,
    journal: ProbeJournal,
    outcome: _Outcome,
    *,
    span: tuple[datetime, datetime],
    log: str = "",
) -> CapabilityReport:
    """Return the report; raises `DecodeError` where what the probe wrote makes none."""
    torch, device = _torch(journal), _device(task, journal)
    runtime = RuntimeClaim(python=journal.python, libc=place.libc)
    driver = place.driver(device.kind) if device.kind not in (None, "cpu") else None
    observed = observe(task.declared, (device, torch, driver, place.os, runtime))
    execution, result = (Execution.COMPLETE, Result.PASS) if outcome.code is None else outcome.code.pair
    is_skipped = execution is Execution.SKIPPED
    return CapabilityReport(
        execution=execution,
        result=result,
        reason=None
        if outcome.code is None
        else ReasonClaim(code=outcome.code, message=outcome.message, stage=outcome.stage),
        lane=LaneClaim(id=task.lane, declared=dict(task.declared), observed=observed),
        device=device,
        torch=torch,
        driver=driver,
        os=place.os,
        runtime=runtime,
        overrides=place.overrides,
        recipe=task.recipe,
        model=model,
        layers=_layers(task, journal),
        quantization=QuantizationClaim(
            requested=task.quantization, resolved=journal.resolved, compute_dtype=journal.compute_dtype
        ),
        timing=_timing(journal.end, span),
        forward=ForwardClaim.none() if is_skipped else _forward(journal.end),
        repo=place.repo,
        tool=ToolClaim(name="git-ledger", version=__version__),
        log_excerpt="" if outcome.code is None else log,
    )


def _torch(journal: ProbeJournal) -> TorchClaim:
    if journal.torch is None:
        return TorchClaim(version=None, git=None, cuda=None, hip=None)
    return TorchClaim.decode(Reader({"torch": journal.torch}, "probe"))


def _device(task: LaneTask, journal: ProbeJournal) -> DeviceClaim:
    """Return the device; `used` is where the output lay, once there is one, else where it was to be."""
    seen: dict[str, Any] = dict.fromkeys(("kind", "name", "arch", "index", "count", "total_memory_bytes", "used"))
    if isinstance(journal.device, dict):
        seen |= journal.device
    return DeviceClaim.decode(Reader({"device": {**seen, "requested": task.device}}, "probe"))


def _layers(task: LaneTask, journal: ProbeJournal) -> LayersClaim:
    """Return the layers as they were resolved, else as they were asked for."""
    start, end = task.layers or (0, None)
    total = None
    if isinstance(journal.layers, dict):
        found = LayersClaim.decode(Reader({"layers": {**journal.layers, "end_inclusive": True}}, "probe"))
        start, end, total = found.start, found.end, found.total
    return LayersClaim(start=start, end=end, total=total)


def _timing(end: ProbeEnd | None, span: tuple[datetime, datetime]) -> TimingClaim:
    stages, duration = {}, None
    if end is not None:
        named = end.stages if isinstance(end.stages, dict) else {}
        reader = Reader(named, "probe.stages")
        stages = {name: max(0.0, reader.number(name)) for name in list(named)[:MAX_STAGES]}
        duration = None if end.duration_ms is None else Reader({"ms": end.duration_ms}, "probe").number("ms")
    return TimingClaim(started_at=span[0], finished_at=span[1], duration_ms=duration, stages=stages)


def _forward(end: ProbeEnd | None) -> ForwardClaim:
    """Return what the probe says of its forward, reference included; none where it says nothing."""
    if end is None or not isinstance(end.forward, dict):
        return ForwardClaim.none()
    reference = end.forward.get("reference")
    if isinstance(reference, dict):
        reference = {**reference, "device": "cpu", "dtype": "float32", "metric": "relative-l2"}
    return ForwardClaim.decode(Reader({"forward": {**end.forward, "reference": reference}}, "probe"))


def _clean(text: str, place: Place) -> str:
    """Return a message without secrets or the user's home, on one line, bounded."""
    plain = redact_text(" ".join(text.split()), secret_values(place.environ))
    home = os.fspath(place.home)
    return (plain.replace(home, "~") if len(home) > 1 else plain)[:MAX_MESSAGE]
