"""What a probe wrote, read as if it wished us ill: bounded, typed, and bound to its run by a nonce."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.decode import Reader, load_json

__all__ = ["ProbeEnd", "ProbeJournal", "read_journal"]

MAX_JOURNAL_BYTES = 1 << 20
MAX_EVENTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeEnd:
    """The last event: `code` None claims a pass. `stages` and `forward` are still as they were written."""

    code: str | None
    message: str
    stage: str
    stages: object
    forward: object
    duration_ms: object


@dataclass(slots=True, kw_only=True)
class ProbeJournal:
    """The events of one probe: the last stage it entered, what it observed, and how it says that it ended.

    `fault` says where the journal stops making sense; nothing after it is believed.
    """

    stage: str = "start"
    python: str | None = None
    torch: object = None
    device: object = None
    layers: object = None
    resolved: str | None = None
    compute_dtype: str | None = None
    recipes: list[object] = field(default_factory=list)
    end: ProbeEnd | None = None
    fault: str = ""


def read_journal(path: Path, nonce: str) -> ProbeJournal:
    """Return what a probe's journal says, as far as it makes sense; never raises for what stands there."""
    journal = ProbeJournal()
    try:
        with path.open("rb") as file:
            data = file.read(MAX_JOURNAL_BYTES + 1)
    except OSError as error:
        journal.fault = f"no journal: {error.strerror}"
        return journal
    if len(data) > MAX_JOURNAL_BYTES:
        journal.fault = "too large"
        return journal
    lines = data.split(b"\n")
    if lines.pop():
        journal.fault = "its last line was cut"
    for number, line in enumerate(lines[:MAX_EVENTS], 1):
        try:
            _take(journal, Reader(load_json(line, limit=MAX_JOURNAL_BYTES), f"line {number}"), nonce)
        except DecodeError as error:
            journal.fault = error.message
            journal.end = None
            break
    return journal


def _take(journal: ProbeJournal, event: Reader, nonce: str) -> None:
    if event.text("nonce") != nonce or journal.end is not None:
        raise DecodeError("malformed", f"{event.path}: not of this run, or after its end")
    match event.text("event"):
        case "stage":
            journal.stage = event.text("stage", limit=100)
        case "python":
            journal.python = event.text("python", limit=100)
        case "torch":
            journal.torch = event.raw("torch")
        case "device":
            journal.device = event.raw("device")
        case "layers":
            journal.layers = event.raw("layers")
        case "quantization":
            journal.resolved = event.text("resolved", limit=100)
            journal.compute_dtype = event.text("compute_dtype", limit=100)
        case "recipes":
            journal.python = event.text("python", limit=100)
            journal.recipes = event.items("recipes", limit=MAX_EVENTS)
        case "end":
            journal.end = ProbeEnd(
                code=event.opt_text("code", limit=100),
                message=event.text("message"),
                stage=event.text("stage", limit=100),
                stages=event.raw("stages"),
                forward=event.raw("forward"),
                duration_ms=event.raw("duration_ms"),
            )
        case other:
            raise DecodeError("malformed", f"{event.path}: no event {other!a}")
