"""How a recipe's run ended: the legal pairs, the status that follows, and the closed list of reasons.

Execution and result are two questions, as in OCP's Test & Validation output specification, version 2: `skipped`
exists so that "nothing was tested" can't look like a pass. `complete` means conclusive, not that the process
ended well: a crash or a time-out is an answer, and the answer is no (DESIGN section 9).
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["REASONS", "Execution", "ReasonCode", "Result", "Status", "status_of"]


class Execution(StrEnum):
    """Whether the run came to an answer, could not, or was not meant to."""

    COMPLETE = "complete"
    ERROR = "error"
    SKIPPED = "skipped"


class Result(StrEnum):
    """The answer; `not_applicable` where there is none."""

    PASS = "pass"  # noqa: S105 - a result, not a password
    FAIL = "fail"
    NOT_APPLICABLE = "not_applicable"


class Status(StrEnum):
    """What follows from execution and result; never chosen by itself."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    SKIPPED = "skipped"

    @property
    def is_conclusive(self) -> bool:
        """Tell whether it says something about the lane."""
        return self in (Status.PASSED, Status.FAILED)


_LEGAL = {
    (Execution.COMPLETE, Result.PASS): Status.PASSED,
    (Execution.COMPLETE, Result.FAIL): Status.FAILED,
    (Execution.ERROR, Result.NOT_APPLICABLE): Status.INCONCLUSIVE,
    (Execution.SKIPPED, Result.NOT_APPLICABLE): Status.SKIPPED,
}


def status_of(execution: Execution, result: Result) -> Status:
    """Return the status that the pair stands for; `ValueError` for each of the five that are not legal."""
    try:
        return _LEGAL[execution, result]
    except KeyError:
        raise ValueError(f"execution {execution} can't come with result {result}") from None


class ReasonCode(StrEnum):
    """Why a run did not pass. The list is closed; `REASONS` says which status each may stand beside."""

    FORWARD_FAILED = "forward-failed"
    LOAD_FAILED = "load-failed"
    OUT_OF_MEMORY = "out-of-memory"
    OUTPUT_INVALID = "output-invalid"
    OUTPUT_MISMATCH = "output-mismatch"
    DEVICE_MISMATCH = "device-mismatch"
    ARCH_UNSUPPORTED = "arch-unsupported"
    QUANTIZATION_UNSUPPORTED = "quantization-unsupported"
    LAYERS_OUT_OF_RANGE = "layers-out-of-range"
    ARTIFACT_MISMATCH = "artifact-mismatch"
    MODEL_MISMATCH = "model-mismatch"
    TIMEOUT = "timeout"
    CRASHED = "crashed"

    DEVICE_BUSY = "device-busy"
    ARTIFACT_UNAVAILABLE = "artifact-unavailable"
    DEPENDENCY_MISSING = "dependency-missing"
    PERMISSION_DENIED = "permission-denied"
    INTERRUPTED = "interrupted"
    INTERNAL_ERROR = "internal-error"

    MODEL_NOT_CONFIGURED = "model-not-configured"
    DEVICE_ABSENT = "device-absent"
    RECIPE_NOT_APPLICABLE = "recipe-not-applicable"
    DISABLED_BY_POLICY = "disabled-by-policy"

    @property
    def status(self) -> Status:
        """The one status that this reason stands for."""
        return next(status for status, codes in REASONS.items() if self in codes)

    @property
    def pair(self) -> tuple[Execution, Result]:
        """Execution and result of a run that ended for this reason."""
        return next(pair for pair, status in _LEGAL.items() if status is self.status)


REASONS: dict[Status, frozenset[ReasonCode]] = {
    Status.PASSED: frozenset(),
    Status.FAILED: frozenset(list(ReasonCode)[:13]),
    Status.INCONCLUSIVE: frozenset(list(ReasonCode)[13:19]),
    Status.SKIPPED: frozenset(list(ReasonCode)[19:]),
}
