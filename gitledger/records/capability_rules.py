"""What in a capability report gives the rest of it the lie (DESIGN section 9).

Such a report can't be made: not by us, and not by whoever signs one. The first fault found is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitledger.records.capability_match import observe
from gitledger.records.capability_recipes import BUILT_IN, MAX_TOLERANCE, SEED, TAKES
from gitledger.records.capability_status import REASONS, ReasonCode, Status
from gitledger.records.capability_work import ForwardClaim, TimingClaim

if TYPE_CHECKING:
    from gitledger.records.capability import CapabilityReport

__all__ = ["contradictions"]

_SPAN_SLACK_MS = 1.0  # times are whole microseconds, the duration is not


def contradictions(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    """Yield each field, with a text, that the rest of the report gives the lie."""
    try:
        status = report.status
    except ValueError as error:
        yield "result", str(error)
        return
    reason = report.reason
    if status is Status.PASSED and reason is not None:
        yield "reason", f"{reason.code}, beside a pass"
    elif status is not Status.PASSED and (reason is None or reason.code not in REASONS[status]):
        found = "none" if reason is None else reason.code
        yield "reason", f"expected a reason for {status}; found {found}"
    yield from _identity_faults(report)
    yield from _range_faults(report)
    if status is Status.PASSED:
        yield from _pass_faults(report)
    elif status is Status.SKIPPED and report.forward.executed:
        yield "forward.executed", "true, beside skipped"


def _identity_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    lane, recipe = report.lane, report.recipe
    if lane.observed != observe(lane.declared, report.place):
        yield "lane.observed", "not what this very report says of its device, torch and system"
    if BUILT_IN.get(recipe.id, {}).get(recipe.version, recipe.digest) != recipe.digest:
        yield "recipe.digest", f"not that of {recipe.id} version {recipe.version}: a changed recipe"
    is_unset = report.reason is not None and report.reason.code is ReasonCode.MODEL_NOT_CONFIGURED
    if (report.model.requested is None) is not is_unset:
        yield "model.requested", "a model is named, or the reason is model-not-configured"


def _range_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    layers, reason = report.layers, report.reason
    out_of_range = reason is not None and reason.code is ReasonCode.LAYERS_OUT_OF_RANGE
    last = layers.start if layers.end is None else layers.end
    if layers.total is not None and (last >= layers.total) is not out_of_range:
        yield "layers.end", f"layer {last} of {layers.total}, counted from 0"


def _pass_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    """Yield what keeps a report from being a pass. Each is a rule of its own."""
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
    asked, resolved = report.quantization.requested, report.quantization.resolved
    if asked not in ("auto", resolved):
        yield "quantization.resolved", f"{resolved}, where {asked} was asked for"
    yield from _recipe_faults(report)


def _unsaid(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    """Yield what a pass must say, and this one does not."""
    said: dict[str, object] = {
        "forward.output_dtype": report.forward.output_dtype,
        "forward.output_digest": report.forward.output_digest,
        "device.kind": report.device.kind,
        "torch.version": report.torch.version,
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


def _duration_faults(timing: TimingClaim) -> Iterator[tuple[str, str]]:
    if timing.duration_ms is None or timing.duration_ms <= 0:
        yield "timing.duration_ms", "a forward takes time; expected more than 0"
    elif timing.duration_ms > timing.span_ms + _SPAN_SLACK_MS:
        yield "timing.duration_ms", f"{timing.duration_ms} ms of a run that took {timing.span_ms}"


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


def _reference_faults(forward: ForwardClaim) -> Iterator[tuple[str, str]]:
    reference = forward.reference
    if reference is None:
        yield "forward.reference", "a pass that was held against nothing"
    elif reference.error is None or reference.error > reference.tolerance:
        yield "forward.reference.error", f"{reference.error}, above the tolerance {reference.tolerance}"
    elif reference.tolerance >= MAX_TOLERANCE:
        yield "forward.reference.tolerance", f"{reference.tolerance}: zeros would pass; expected less than 1"


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
