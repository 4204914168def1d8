"""The capability report: what one recipe could really execute on one lane (DESIGN section 9).

A report that contradicts itself can't be made, neither by us nor by whoever signed one: above all, a pass needs an
executed forward with finite output on the device that was asked for, close enough to the reference. Discovery
never decides. JSON of a report is closed: see `closed.py`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.capability_match import Place
from gitledger.records.capability_place import (
    DeviceClaim,
    LaneClaim,
    OsClaim,
    RuntimeClaim,
    ToolClaim,
    TorchClaim,
    decode_repo,
    encode_repo,
)
from gitledger.records.capability_rules import contradictions
from gitledger.records.capability_status import Execution, Result, Status, status_of
from gitledger.records.capability_work import (
    ForwardClaim,
    LayersClaim,
    ModelClaim,
    QuantizationClaim,
    ReasonClaim,
    RecipeClaim,
    TimingClaim,
)
from gitledger.records.closed import closed
from gitledger.records.decode import fail, load_json
from gitledger.records.receipt import RepoClaim

__all__ = [
    "MAX_EXCERPT_BYTES",
    "MAX_REPORT_BYTES",
    "SCHEMA",
    "CapabilityReport",
    "decode_reports",
    "encode_reports",
    "layers_text",
]

SCHEMA = "gitledger-capability/1"
"""The name and major version of a report's JSON."""
MAX_REPORT_BYTES = 512 << 10
"""One report as JSON."""
MAX_REPORTS = 10_000
"""Reports of one file."""
MAX_EXCERPT_BYTES = 8 << 10
"""The excerpt of a recipe's log, in UTF-8."""
MAX_OVERRIDES = 50
_KEYS = (
    "content_digest",
    "device",
    "driver",
    "execution",
    "forward",
    "lane",
    "layers",
    "log_excerpt",
    "model",
    "os",
    "overrides",
    "quantization",
    "reason",
    "recipe",
    "repo",
    "result",
    "runtime",
    "schema",
    "status",
    "timing",
    "tool",
    "torch",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityReport:
    """One run of one recipe. `status` follows from `execution` and `result`; `reason` is None for a pass only.

    `overrides` are allow-listed variables that change how a device is seen or used.
    """

    execution: Execution
    result: Result
    reason: ReasonClaim | None
    lane: LaneClaim
    device: DeviceClaim
    torch: TorchClaim
    driver: str | None
    os: OsClaim
    runtime: RuntimeClaim
    overrides: dict[str, str]
    recipe: RecipeClaim
    model: ModelClaim
    layers: LayersClaim
    quantization: QuantizationClaim
    timing: TimingClaim
    forward: ForwardClaim
    repo: RepoClaim
    tool: ToolClaim
    log_excerpt: str = ""

    def __post_init__(self) -> None:
        for path, text in contradictions(self):
            fail(f"$.{path}", text)

    @property
    def status(self) -> Status:
        """What the run came to."""
        return status_of(self.execution, self.result)

    @property
    def place(self) -> Place:
        """All that a lane can be told by."""
        return self.device, self.torch, self.driver, self.os, self.runtime

    @property
    def is_whole_model(self) -> bool:
        """Tell whether every layer was executed."""
        return self.layers.start == 0 and self.layers.end is not None and self.layers.end + 1 == self.layers.total

    def fields(self) -> dict[str, Any]:
        """Return the JSON object, the digest of its content included."""
        document = {
            "device": self.device.encode(),
            "driver": self.driver,
            "execution": self.execution.value,
            "forward": self.forward.encode(),
            "lane": self.lane.encode(),
            "layers": self.layers.encode(),
            "log_excerpt": self.log_excerpt,
            "model": self.model.encode(),
            "os": self.os.encode(),
            "overrides": dict(self.overrides),
            "quantization": self.quantization.encode(),
            "reason": self.reason.encode() if self.reason else None,
            "recipe": self.recipe.encode(),
            "repo": encode_repo(self.repo),
            "result": self.result.value,
            "runtime": self.runtime.encode(),
            "schema": SCHEMA,
            "status": self.status.value,
            "timing": self.timing.encode(),
            "tool": self.tool.encode(),
            "torch": self.torch.encode(),
        }
        return {**document, "content_digest": hashlib.sha256(_canonical(document)).hexdigest()}

    def to_json(self) -> str:
        """Return canonical JSON: sorted keys, no white space, ASCII. `from_json` reads it back, byte for byte."""
        return _canonical(self.fields()).decode("ascii")

    @classmethod
    def from_json(cls, text: str | bytes) -> CapabilityReport:
        """Return the report that JSON spells, white space aside as `to_json` writes it.

        Raises `DecodeError` naming the field's path: for an unknown, missing or doubled key, a wrong type, NaN,
        another schema, an illegal pair of execution and result, a contradiction, or an edited field.
        """
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return cls.decode(load_json(data, limit=MAX_REPORT_BYTES))

    @classmethod
    def decode(cls, value: object, path: str = "$") -> CapabilityReport:
        """Return the report that parsed JSON spells; raises as `from_json` does."""
        reader = closed(value, path, _KEYS)
        if reader.text("schema") != SCHEMA:
            fail(f"{path}.schema", f"expected {SCHEMA}")
        execution, result = reader.choice("execution", Execution), reader.choice("result", Result)
        try:
            status = status_of(execution, result)
        except ValueError as error:
            fail(f"{path}.result", str(error))
        if reader.text("status") != status:
            fail(f"{path}.status", f"{execution} and {result} are {status}, and nothing else")
        report = cls(
            execution=execution,
            result=result,
            reason=ReasonClaim.decode(reader) if reader.has("reason") else None,
            lane=LaneClaim.decode(reader),
            device=DeviceClaim.decode(reader),
            torch=TorchClaim.decode(reader),
            driver=reader.opt_text("driver"),
            os=OsClaim.decode(reader),
            runtime=RuntimeClaim.decode(reader),
            overrides=reader.text_map("overrides", limit=MAX_OVERRIDES),
            recipe=RecipeClaim.decode(reader),
            model=ModelClaim.decode(reader),
            layers=LayersClaim.decode(reader),
            quantization=QuantizationClaim.decode(reader),
            timing=TimingClaim.decode(reader),
            forward=ForwardClaim.decode(reader),
            repo=decode_repo(reader),
            tool=ToolClaim.decode(reader),
            log_excerpt=reader.text("log_excerpt", limit=MAX_EXCERPT_BYTES),
        )
        if reader.text("content_digest") != report.fields()["content_digest"]:
            fail(f"{path}.content_digest", "not the digest of this report: a field was edited")
        return report


def _canonical(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False).encode("ascii")


def layers_text(report: CapabilityReport) -> str:
    """Return the layers in words: `whole`, or `layers 0-15`, both included."""
    layers = report.layers
    if report.is_whole_model or (layers.start == 0 and layers.end is None):
        return "whole"
    return f"layers {layers.start}-{'' if layers.end is None else layers.end}"


def encode_reports(reports: tuple[CapabilityReport, ...] | list[CapabilityReport]) -> str:
    """Return what `doctor --report` writes: one report as an object, several (or none) as `{"reports": [...]}`."""
    if len(reports) == 1:
        return reports[0].to_json() + "\n"
    return '{"reports":[' + ",".join(report.to_json() for report in reports) + "]}\n"


def decode_reports(data: bytes) -> tuple[CapabilityReport, ...]:
    """Return the reports of a file that `doctor --report` wrote; raises `DecodeError`, for no report too."""
    value = load_json(data, limit=MAX_REPORT_BYTES * 64)
    if not isinstance(value, dict) or "reports" not in value:
        return (CapabilityReport.decode(value),)
    reader = closed(value, "$", ("reports",))
    found = tuple(
        CapabilityReport.decode(item, f"$.reports[{i}]")
        for i, item in enumerate(reader.items("reports", limit=MAX_REPORTS))
    )
    if not found:
        raise DecodeError("malformed", "$.reports: no report, and nothing is no evidence", "git ledger doctor")
    return found
