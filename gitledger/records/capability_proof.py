"""What keeps a capability report from being a pass: each is a rule of its own (DESIGN section 9).

The rules hold what a report says in one place against what it says in another, and against what a built-in recipe
can make at all. Whoever invents a report has to invent all of it, and to sign it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitledger.records.capability_recipes import MAX_TOLERANCE, SEED, TAKES
from gitledger.records.capability_work import ForwardClaim, TimingClaim
from gitledger.records.ids import Digest

if TYPE_CHECKING:
    from gitledger.records.capability import CapabilityReport

__all__ = ["STAGES", "pass_faults"]

STAGES = ("import", "load", "reference", "prepare", "forward")
"""What every pass went through, one after the other; `forward` is the end of `prepare`."""

_SLACK_MS = 1.0  # times are whole microseconds, durations are not
_BESIDE_MS = 1000.0
"""How much longer than the forward itself its stage may take, beside as long again: waits of a busy machine."""
_ZERO = Digest("0" * 64)
_OF_NOTHING = Digest("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
_ARCHES = {"cuda": re.compile(r"sm_[0-9]+[a-z]?"), "hip": re.compile(r"gfx[0-9a-f]+")}
_FLOAT = re.compile(r"b?float[0-9]+(?:_\w+)?")
_PIN = re.compile(r"@sha256:([0-9a-f]{64})\Z")
_OUTPUTS = {
    "float32": ("float32", "float64"),
    "bfloat16": ("bfloat16", "float32"),
    "float16": ("float16", "float32"),
    "int8": ("float32",),
}
"""The types of an output by the type that is computed in: a model may widen what it hands out, never narrow it."""


def pass_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    """Yield each field, with a text, that keeps a report that says so from being a pass."""
    forward = report.forward
    if not forward.executed:
        yield "forward.executed", "a pass without an executed forward"
    if forward.finite is not True:
        yield "forward.finite", "a pass whose output is not finite"
    if not forward.output_shape or 0 in forward.output_shape:
        yield "forward.output_shape", "a pass without output"
    yield from _duration_faults(report.timing)
    yield from _device_faults(report)
    yield from _reference_faults(forward)
    yield from _unsaid(report)
    yield from _digest_faults(report)
    pin = _PIN.search(report.model.requested or "")
    if pin is not None and report.model.digest != pin[1]:
        yield "model.digest", f"{str(report.model.digest)[:8]}…, not the {pin[1][:8]}… that was asked for"
    asked, resolved = report.quantization.requested, report.quantization.resolved
    if asked not in ("auto", resolved):
        yield "quantization.resolved", f"{resolved}, where {asked} was asked for"
    yield from _recipe_faults(report)
    yield from _output_faults(report)


def _unsaid(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    """Yield what a pass must say, and this one does not."""
    said: dict[str, object] = {
        "forward.output_dtype": report.forward.output_dtype,
        "forward.output_digest": report.forward.output_digest,
        "device.kind": report.device.kind,
        "torch.version": report.torch.version,
        "runtime.python": report.runtime.python,
        "model.resolved": report.model.resolved,
        "model.digest": report.model.digest,
        "layers.end": report.layers.end,
        "layers.total": report.layers.total,
        "quantization.resolved": report.quantization.resolved,
        "quantization.compute_dtype": report.quantization.compute_dtype,
    }
    for path, value in said.items():
        if value is None:
            yield path, "a pass that does not say it"


# --- time --------------------------------------------------------------------------------------------------------


def _duration_faults(timing: TimingClaim) -> Iterator[tuple[str, str]]:
    duration, span = timing.duration_ms, timing.span_ms
    if duration is None or duration <= 0:
        yield "timing.duration_ms", "a forward takes time; expected more than 0"
        return
    if duration > span + _SLACK_MS:
        yield "timing.duration_ms", f"{duration} ms of a run that took {span}"
    lacking = [name for name in STAGES if not timing.stages.get(name, 0.0) > 0]
    if lacking:
        yield "timing.stages", f"no {lacking[0]}: a pass goes through {', '.join(STAGES)}"
        return
    forward, prepare = timing.stages["forward"], timing.stages["prepare"]
    if duration > forward + _SLACK_MS:
        yield "timing.duration_ms", f"{duration} ms of a forward stage that took {forward}"
    if forward > 2 * duration + _BESIDE_MS:
        yield "timing.stages.forward", f"{forward} ms, of which {duration} are told of"
    if forward > prepare + _SLACK_MS:
        yield "timing.stages.forward", f"{forward} ms, and prepare, which it is the end of, took {prepare}"
    total = sum(timing.stages[name] for name in STAGES if name != "forward")
    if total > span + _SLACK_MS:
        yield "timing.stages", f"{total} ms one after the other, in a run that took {span}"


# --- place -------------------------------------------------------------------------------------------------------


def _device_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    device, torch, forward = report.device, report.torch, report.forward
    on_cpu = device.used == "cpu"
    if forward.output_device is None or forward.output_device != device.used:
        yield "forward.output_device", f"{forward.output_device}, where device.used is {device.used}"
    if (device.kind == "cpu") is not on_cpu:
        yield "device.used", f"{device.used}, on a device that is called {device.kind}"
    if not on_cpu and not (device.used or "").startswith("cuda"):
        yield "device.used", "expected cpu, or a cuda device"
    if (device.requested == "cpu" and not on_cpu) or (device.requested == "gpu" and on_cpu):
        yield "device.used", f"{device.used}, where {device.requested} was asked for"
    if device.kind == "hip" and torch.hip is None:
        yield "torch.hip", "none, on a device that is called hip"
    if device.kind == "cuda" and (torch.cuda is None or torch.hip is not None):
        yield "torch.cuda", "not a CUDA build, on a device that is called cuda"
    if not on_cpu and (torch.version or "").endswith("+cpu"):
        yield "torch.version", f"{torch.version} computes on no {device.kind}"
    yield from _processor_faults(report) if on_cpu else _gpu_faults(report)


def _processor_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    """Yield facts of a GPU under a CPU's claim."""
    device, machine = report.device, report.os.machine
    if device.arch != machine:
        yield "device.arch", f"{device.arch}, on the processor of a machine that is called {machine}"
    if report.driver is not None:
        yield "driver", f"{report.driver}, for a run on the processor"
    if device.index is not None:
        yield "device.index", f"{device.index}, of a processor"


def _gpu_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    """Yield facts of a CPU under a GPU's claim, and what a GPU that worked has to tell."""
    device = report.device
    kind = device.kind or ""
    if device.arch == report.os.machine:
        yield "device.arch", f"{device.arch}: that is the machine's processor, and no {kind} device"
    pattern = _ARCHES.get(kind)
    if pattern is not None and not pattern.fullmatch(device.arch or ""):
        yield "device.arch", f"{device.arch} is no architecture of {kind}"
    if report.driver is None:
        yield "driver", f"none, beside a pass on {kind}"
    if device.index is None or device.used != f"cuda:{device.index}":
        yield "device.index", f"{device.index}, where device.used is {device.used}"
    if device.count is None or (device.index or 0) >= device.count:
        yield "device.count", f"{device.count}, with a device of index {device.index}"
    if not device.name or not device.total_memory_bytes:
        yield "device.name", f"a {kind} device without name or memory"


# --- output ------------------------------------------------------------------------------------------------------


def _reference_faults(forward: ForwardClaim) -> Iterator[tuple[str, str]]:
    reference = forward.reference
    if reference is None:
        yield "forward.reference", "a pass that was held against nothing"
        return
    if reference.error is None or reference.error > reference.tolerance:
        yield "forward.reference.error", f"{reference.error}, above the tolerance {reference.tolerance}"
    elif reference.tolerance >= MAX_TOLERANCE:
        yield "forward.reference.tolerance", f"{reference.tolerance}: zeros would pass; expected less than 1"
    is_equal = forward.output_digest == reference.output_digest
    if is_equal and forward.output_dtype != "float32":
        yield "forward.output_digest", f"the reference's, which is float32, of an output in {forward.output_dtype}"
    elif is_equal and reference.error != 0:
        yield "forward.reference.error", f"{reference.error}, between outputs of one digest"
    elif not is_equal and reference.error == 0 and forward.output_dtype == "float32":
        yield "forward.reference.error", "0.0, between outputs of two digests"


def _digest_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    """Yield digests that are none: zeros, or that of no bytes, where there were some."""
    forward, files = report.forward, report.model.files
    named = {"forward.output_digest": forward.output_digest, "recipe.digest": report.recipe.digest}
    if forward.reference is not None:
        named["forward.reference.inputs_digest"] = forward.reference.inputs_digest
        named["forward.reference.output_digest"] = forward.reference.output_digest
    for path, value in named.items():
        if value in (_ZERO, _OF_NOTHING):
            yield path, f"{value[:8]}…: the digest of nothing"
    for number, file in enumerate(files):
        if file.sha256 == _ZERO or (file.sha256 == _OF_NOTHING) is not (file.size == 0):
            yield f"model.files[{number}].sha256", f"{file.sha256[:8]}…: not the digest of {file.size} bytes"
    if files and not any(file.size for file in files):
        yield "model.files", "a model without a byte"


def _recipe_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    """Yield where a pass by a built-in recipe is none that this recipe can make."""
    recipe, reference = report.recipe.id, report.forward.reference
    takes = TAKES.get(recipe)
    resolved, compute = report.quantization.resolved, report.quantization.compute_dtype
    if takes is None or reference is None or resolved is None:
        return
    if resolved not in takes:
        yield "quantization.resolved", f"{resolved}, which {recipe} does not take"
        return
    expected, tolerance = takes[resolved]
    if compute != expected:
        yield (
            "quantization.compute_dtype",
            f"{compute}, where {recipe} computes {resolved} in {expected}",
        )
    if reference.tolerance != tolerance:
        yield (
            "forward.reference.tolerance",
            f"{reference.tolerance}, where {recipe} is held to {tolerance}",
        )
    if reference.seed != SEED:
        yield "forward.reference.seed", f"{reference.seed}, where {SEED} is always drawn from"


def _output_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    """Yield outputs of a type that what was computed in does not give."""
    made, compute = report.forward.output_dtype or "", report.quantization.compute_dtype or ""
    if not _FLOAT.fullmatch(made):
        yield "forward.output_dtype", f"{made}: only floating outputs are held against a reference"
    elif report.recipe.id in TAKES and made not in _OUTPUTS.get(compute, ()):
        yield "forward.output_dtype", f"{made}, where {report.recipe.id} computes in {compute}"
