"""What in a capability report gives the rest of it the lie (DESIGN section 9).

Such a report can't be made: not by us, and not by whoever signs one. The first fault found is told. What keeps a
report from being a pass stands in `capability_proof.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitledger.records.capability_match import observe
from gitledger.records.capability_proof import pass_faults
from gitledger.records.capability_recipes import BUILT_IN
from gitledger.records.capability_status import REASONS, ReasonCode, Status

if TYPE_CHECKING:
    from gitledger.records.capability import CapabilityReport

__all__ = ["contradictions"]


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
        yield from pass_faults(report)
    elif status is Status.SKIPPED and report.forward.executed:
        yield "forward.executed", "true, beside skipped"


def _identity_faults(report: CapabilityReport) -> Iterator[tuple[str, str]]:
    lane, recipe = report.lane, report.recipe
    if lane.declared and lane.id is None:
        yield "lane.declared", "what a lane declares, under no lane"
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
