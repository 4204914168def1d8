"""Reports to start from: one that passed on a GPU, one on the CPU, and one for each reason not to pass."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from gitledger.config.schema import Config, LaneConfig, LaneRun, PolicyConfig
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
from gitledger.records.capability_recipes import BUILT_IN
from gitledger.records.capability_record import CapabilityRecord
from gitledger.records.capability_status import Execution, ReasonCode, Result
from gitledger.records.capability_work import (
    FileClaim,
    ForwardClaim,
    LayersClaim,
    ModelClaim,
    QuantizationClaim,
    ReasonClaim,
    RecipeClaim,
    ReferenceClaim,
    TimingClaim,
    model_digest,
)
from gitledger.records.envelope import Envelope
from gitledger.records.ids import CommitId, Digest, RecordId, TreeId
from gitledger.records.receipt import RepoClaim
from gitledger.records.revocation import Revocation
from gitledger.records.statement import CAPABILITY, Subject, encode_statement
from gitledger.trust.private_keys import load_private_key
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import FileSigner
from gitledger.trust.signers import Signers
from gitledger.trust.verified import open_record
from gitledger.verdict.evidence import Evidence, sort_records
from gitledger.verdict.lane_signers import signatories_by_lane
from gitledger.verdict.release import LaneSituation, Release, judge_lanes

STARTED = datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)
GPU_MATCH = {"device.arch": "gfx1151", "torch.hip": "6.4", "os.name": "linux"}


def sha256_of(word: str) -> Digest:
    return Digest(hashlib.sha256(word.encode()).hexdigest())


def object_of(word: str) -> str:
    return hashlib.sha1(word.encode()).hexdigest()


def passed_report(**changes: Any) -> CapabilityReport:
    """Return a pass on a ROCm lane: layers 0 to 15 of m7b in bfloat16, every optional field set."""
    device = DeviceClaim(
        kind="hip",
        name="AMD Radeon 8060S",
        arch="gfx1151",
        index=0,
        count=1,
        total_memory_bytes=68_719_476_736,
        requested="gpu",
        used="cuda:0",
    )
    torch = TorchClaim(version="2.9.1+rocm6.4", git="5811a8d", cuda=None, hip="6.4.43482-0f2d60242")
    os = OsClaim(name="linux", version="ubuntu 24.04", kernel="6.14.0-27-generic", machine="x86_64")
    runtime = RuntimeClaim(python="3.12.4", libc="glibc 2.39")
    files = (
        FileClaim(name="config.json", sha256=sha256_of("config"), size=612),
        FileClaim(name="model.safetensors", sha256=sha256_of("weights"), size=90_868_376),
    )
    report: dict[str, Any] = {
        "execution": Execution.COMPLETE,
        "result": Result.PASS,
        "reason": None,
        "lane": LaneClaim(
            id="gfx1151",
            declared=GPU_MATCH,
            observed=observe(GPU_MATCH, (device, torch, "6.12.12", os, runtime)),
        ),
        "device": device,
        "torch": torch,
        "driver": "6.12.12",
        "os": os,
        "runtime": runtime,
        "overrides": {"ROCR_VISIBLE_DEVICES": "0"},
        "recipe": RecipeClaim(
            id="torch-eager",
            version="1",
            digest=BUILT_IN.get("torch-eager", {}).get("1", sha256_of("torch-eager")),
        ),
        "model": ModelClaim(requested="m7b", resolved="m7b", files=files, digest=model_digest(files)),
        "layers": LayersClaim(start=0, end=15, total=32),
        "quantization": QuantizationClaim(requested="bfloat16", resolved="bfloat16", compute_dtype="bfloat16"),
        "timing": TimingClaim(
            started_at=STARTED,
            finished_at=STARTED + timedelta(seconds=4),
            duration_ms=71.625,
            stages={
                "import": 1200.5,
                "load": 900.25,
                "reference": 800.0,
                "prepare": 160.5,
                "forward": 71.75,
            },
        ),
        "forward": ForwardClaim(
            executed=True,
            output_shape=(1, 16, 384),
            output_dtype="bfloat16",
            output_device="cuda:0",
            finite=True,
            output_digest=sha256_of("output"),
            reference=ReferenceClaim(
                seed=20_260_131,
                inputs_digest=sha256_of("inputs"),
                output_digest=sha256_of("reference"),
                error=0.0042,
                tolerance=0.05,
            ),
        ),
        "repo": RepoClaim(
            commit=CommitId(object_of("head")),
            tree=TreeId(object_of("tree")),
            branch="main",
            remote="https://git.example.org/team/mesh.git",
            dirty=False,
        ),
        "tool": ToolClaim(name="git-ledger", version="0.1.0"),
        "log_excerpt": "loading 16 layers\n",
    }
    return CapabilityReport(**(report | changes))


def cpu_report(**changes: Any) -> CapabilityReport:
    """Return a pass on a CPU lane: the whole of minilm in float32."""
    base = passed_report()
    device = DeviceClaim(
        kind="cpu",
        name="AMD EPYC 9R14",
        arch="x86_64",
        index=None,
        count=1,
        total_memory_bytes=25_769_803_776,
        requested="cpu",
        used="cpu",
    )
    torch = TorchClaim(version="2.13.0+cpu", git="7bcf7da", cuda=None, hip=None)
    match = {"device.kind": "cpu"}
    assert base.forward.reference is not None
    closer = replace(base.forward.reference, error=4.2e-05, tolerance=1e-4)
    given: dict[str, Any] = {
        "lane": LaneClaim(id="cpu", declared=match, observed={"device.kind": "cpu"}),
        "device": device,
        "torch": torch,
        "driver": None,
        "overrides": {},
        "model": replace(base.model, requested="minilm", resolved="minilm"),
        "layers": LayersClaim(start=0, end=5, total=6),
        "quantization": QuantizationClaim(requested="auto", resolved="float32", compute_dtype="float32"),
        "forward": replace(base.forward, output_device="cpu", output_dtype="float32", reference=closer),
    }
    return replace(base, **(given | changes))


def reasoned_report(code: ReasonCode, base: CapabilityReport | None = None, **changes: Any) -> CapabilityReport:
    """Return a report that did not pass, for that reason, with what such a run can still tell."""
    start = base or passed_report()
    execution, result = code.pair
    given: dict[str, Any] = {
        "execution": execution,
        "result": result,
        "reason": ReasonClaim(code=code, message=f"it was {code}", stage="load"),
        "forward": ForwardClaim.none(),
        "timing": replace(start.timing, duration_ms=None),
    }
    if code is ReasonCode.MODEL_NOT_CONFIGURED:
        given["model"] = ModelClaim(requested=None, resolved=None, files=(), digest=None)
    if code is ReasonCode.LAYERS_OUT_OF_RANGE:
        given["layers"] = LayersClaim(start=0, end=32, total=32)
    return replace(start, **(given | changes))


@pytest.fixture
def passed() -> CapabilityReport:
    """A pass on a ROCm lane."""
    return passed_report()


@pytest.fixture
def on_cpu() -> CapabilityReport:
    """A pass on a CPU lane."""
    return cpu_report()


@pytest.fixture(scope="session")
def reasoned() -> Callable[..., CapabilityReport]:
    """Return a maker of reports that did not pass, by reason."""
    return reasoned_report


@pytest.fixture(scope="session")
def make_cpu() -> Callable[..., CapabilityReport]:
    """Return a maker of passes on a CPU lane."""
    return cpu_report


@pytest.fixture(scope="session")
def make_passed() -> Callable[..., CapabilityReport]:
    """Return a maker of passes on a ROCm lane."""
    return passed_report


@pytest.fixture(scope="session")
def redigested() -> Callable[[Any], str]:
    """Return a maker of JSON whose content digest is right, whatever it says: a liar can do sums."""

    def make(document: Any) -> str:
        content = {key: value for key, value in document.items() if key != "content_digest"}
        text = json.dumps(content, separators=(",", ":"), sort_keys=True)
        return json.dumps({**content, "content_digest": hashlib.sha256(text.encode()).hexdigest()})

    return make


# A world to be judged: real keys and signatures, invented commits. No git, no file, no clock.

NOW = STARTED + timedelta(hours=2)
REPOSITORY = "demo"


@lru_cache(maxsize=8)
def key_of(name: str) -> FileSigner:
    """Return the one key of a name, the same in every run."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())
    text = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return FileSigner(load_private_key(text, where=name))


@dataclass
class LaneWorld:
    """Lanes, keys, and what stands on the judged commit (`head`) and on an older one (`old`)."""

    lanes: dict[str, LaneConfig] = field(
        default_factory=lambda: {
            "gfx1151": LaneConfig(
                name="gfx1151",
                match=GPU_MATCH,
                signers=("lab-runner",),
                runs=(LaneRun(model="m7b", layers=(0, 15), quantization="bfloat16"),),
            )
        }
    )
    allowed: tuple[str, ...] = ("alice", "lab-runner")
    policy: dict[str, Any] = field(default_factory=lambda: {"allowed_signers": ("alice",)})
    now: datetime = NOW
    lines: dict[str, list[bytes]] = field(default_factory=lambda: {"head": [], "old": []})

    def subject(self, on: str) -> Subject:
        return Subject(commit=CommitId(object_of(on)), tree=TreeId(object_of("tree" if on == "head" else on)))

    def put(
        self,
        report: CapabilityReport,
        *,
        key: str | None = "lab-runner",
        on: str = "head",
        at: str = "",
        tree: str = "",
    ) -> RecordId:
        """Sign a report and let it stand on its commit, or, where `at` says so, on another; return its id.

        `tree`: it claims another tree than the commit's.
        """
        subject = self.subject(on)
        where = replace(report.repo, commit=subject.commit, tree=TreeId(tree) if tree else subject.tree)
        report = replace(report, repo=where)
        signer = claim_of(key_of(key), user=key) if key else None
        payload = CapabilityRecord(repository=REPOSITORY, report=report, signer=signer).encode()
        return self._add(payload, key, at or on)

    def put_predicate(self, predicate: dict[str, Any], *, key: str = "lab-runner", on: str = "head") -> RecordId:
        """Sign whatever a liar wants to be believed."""
        signer = claim_of(key_of(key), user=key).encode()
        full = {"record_version": 1, "repository": REPOSITORY, "signer": signer} | predicate
        payload = encode_statement(subject=self.subject(on), predicate_type=CAPABILITY, predicate=full)
        return self._add(payload, key, on)

    def revoke(self, record: RecordId, *, key: str = "lab-runner") -> RecordId:
        revocation = Revocation(
            repository=REPOSITORY,
            record=record,
            reason="it was wrong",
            revoked_at=NOW,
            subject=self.subject("head"),
            signer=claim_of(key_of(key), user=key),
        )
        return self._add(revocation.encode(), key, "head")

    def _add(self, payload: bytes, key: str | None, on: str) -> RecordId:
        envelope = sign_payload(payload, key_of(key)) if key else Envelope(payload=payload, signature=None)
        self.lines[on].append(envelope.encode())
        return envelope.id

    def evidence(self, on: str) -> Evidence:
        subject = self.subject(on)
        opened = [open_record(line, commit=subject.commit) for line in self.lines[on]]
        return sort_records(opened, repository=REPOSITORY).placed(subject.commit, subject.tree)

    @property
    def committed_at(self) -> datetime:
        return STARTED - timedelta(minutes=1)

    def public(self) -> dict[str, str]:
        """Return the key of each allowed name, as allowed_signers spells it."""
        return {name: key_of(name).key.line for name in self.allowed}

    def judge(self) -> Release:
        allowed = "\n".join(f"{name} {key}" for name, key in self.public().items())
        signers, policy = Signers.parse(allowed.encode()), PolicyConfig(**self.policy)
        piles = [self.evidence("head"), self.evidence("old")]
        config = Config(version=1, repository=REPOSITORY, policy=policy, lanes=self.lanes)
        return judge_lanes(
            LaneSituation(
                commit=self.subject("head").commit,
                committed_at=self.committed_at,
                now=self.now,
                lanes=self.lanes,
                policy=policy,
                signatories=signatories_by_lane(config, signers, self.now, piles),
                here=piles[0],
                elsewhere=piles[1:],
            )
        )

    def cell(self) -> tuple[str, str]:
        """Return status and detail of the first cell."""
        first = self.judge().cells[0]
        return first.status.value, first.detail

    def ignored(self) -> dict[str | None, str]:
        return {item.record: item.reason for item in self.judge().ignored}


@pytest.fixture
def world() -> LaneWorld:
    """One required lane with one run and one recipe, and no report yet."""
    return LaneWorld()


# Repositories with lanes, and the real command.

LANES = """\
version: 1
repository: demo
lanes:
  cpu:
    match: {device.kind: cpu, os.name: linux}
    runs:
      - {model: tiny, layers: [0, 1]}
"""


@pytest.fixture
def make_lab(make_project, tmp_path: Path):
    """Return a maker of projects with lanes; models are looked up in `models` beside the repository."""

    def make(config: str = LANES, files: dict[str, str] | None = None) -> Any:
        lab = make_project(config, files or {"README": "lab\n"})
        models = tmp_path / "models"
        models.mkdir(exist_ok=True)
        lab.repo.env["GITLEDGER_DOWNLOAD_DIR"] = str(models)
        return lab

    return make


@pytest.fixture
def lab(make_lab, tmp_path: Path):
    """A project with one CPU lane, and a model of which nothing but the file names is real."""
    made = make_lab()
    tiny = tmp_path / "models" / "tiny"
    tiny.mkdir()
    (tiny / "config.json").write_text('{"model_type": "bert"}')
    (tiny / "model.safetensors").write_bytes(b"no tensors")
    return made


@pytest.fixture
def torch_that(tmp_path: Path):
    """Return a maker of a broken torch: a package of that name, found first, that does as it is told when imported."""

    def make(code: str) -> dict[str, str]:
        folder = tmp_path / "broken"
        (folder / "torch").mkdir(parents=True, exist_ok=True)
        (folder / "torch" / "__init__.py").write_text(f"import os, signal, sys, time\n{code}\n")
        return {"PYTHONPATH": str(folder)}

    return make
