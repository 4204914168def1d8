"""Values that the tests of records start from: one of each claim, small but with every field set."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gitledger.errors import DecodeError
from gitledger.records.bodies import BodyRef, Check, TestResult, encode_tests
from gitledger.records.envelope import Envelope, Signature
from gitledger.records.environment import Environment, Gpu, Platform
from gitledger.records.ids import (
    CommitId,
    KeyFingerprint,
    NodeId,
    RecordId,
    ShardKey,
    TreeId,
    digest,
)
from gitledger.records.merged import CarriedClaim, CoverageClaim, MergedReceipt, MergedShard
from gitledger.records.outcomes import Counts, Outcome, TestOutcome
from gitledger.records.receipt import (
    CollectionClaim,
    ExtraClaim,
    ManifestClaim,
    RepoClaim,
    SessionClaim,
    ShardClaim,
    ShardReceipt,
    Split,
)
from gitledger.records.revocation import Revocation
from gitledger.records.statement import SignerClaim, Statement, Subject

Path = tuple[str | int, ...]


def sha256_of(word: str) -> str:
    """Return a digest that stands for `word`."""
    return digest(hashlib.sha256(word.encode()).hexdigest())


def object_of(word: str) -> str:
    """Return a git object id that stands for `word`."""
    return hashlib.sha1(word.encode()).hexdigest()


FINGERPRINT = KeyFingerprint("SHA256:" + base64.b64encode(hashlib.sha256(b"key").digest()).decode().rstrip("="))
SIGNER = SignerClaim(
    user="alice@example.org", key_fingerprint=FINGERPRINT, algorithm="ssh-ed25519", backend="file"
)
STARTED = datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)
ENDED = datetime(2026, 1, 31, 12, 5, 7, tzinfo=UTC)


def hundred_results() -> tuple[TestResult, ...]:
    """Return 100 results as a parametrised GPU suite has them, with durations to the microsecond."""
    kinds = ("fp16", "bf16", "fp32")
    return tuple(
        TestResult(
            node_id=NodeId(
                f"tests/models/test_layer_{i // 20}.py::TestAttention::test_forward[{kinds[i % 3]}-{i}]"
            ),
            outcome=TestOutcome.PASSED,
            duration_ns=int.from_bytes(hashlib.sha256(b"%d" % i).digest()[:2]) * (i + 1) * 1000,
        )
        for i in range(100)
    )


def shard_receipt() -> ShardReceipt:
    """Return a green receipt of 100 tests with every optional field set."""
    ref = BodyRef.of(encode_tests(hundred_results()))
    return ShardReceipt(
        repository="0123456789abcdef",
        shard=ShardClaim(
            key=ShardKey("l1-1-of-2", "a100"),
            attempt=2,
            split=Split(index=1, total=2),
            definition_digest=sha256_of("definition"),
        ),
        outcome=Outcome.PASSED,
        reasons=(),
        counts=Counts(collected=100, passed=97, skipped=1, xfailed=1, xpassed=1, deselected=4),
        collection=CollectionClaim(
            full_digest=sha256_of("full"), full_count=104, selected_digest=sha256_of("selected")
        ),
        manifest=ManifestClaim(
            digest=sha256_of("manifest"),
            paths=("src/model", "tests/l1"),
            extra_paths=("build/kernels.so",),
            excluded_paths=("tests/l1/README.md",),
            extra=(ExtraClaim(path="build/kernels.so", mode=0o100755, sha256=sha256_of("kernels")),),
            outside=("data/tiny.bin",),
        ),
        repo=RepoClaim(
            commit=CommitId(object_of("commit")),
            tree=TreeId(object_of("tree")),
            branch="main",
            remote="https://git.example.org/team/model.git",
            dirty=True,
            dirty_paths=("src/model/attention.py", "weird\udcff\n\u202ename"),
            created=("build/",),
        ),
        session=SessionClaim(
            started_at=STARTED,
            ended_at=ENDED,
            argv=("python", "-m", "pytest", "-q", "tests/l1"),
            exit_status=0,
            signal=None,
            mode="ci-gpu",
            workers=4,
            finished=True,
            witnessed=True,
        ),
        environment=Environment(
            python="3.12.4",
            platform=Platform(system="Linux", machine="x86_64", libc="glibc 2.36"),
            pytest="8.3.2",
            gitledger="0.1.0",
            coverage="7.6.1",
            gpu=Gpu(
                vendor="nvidia",
                names=("NVIDIA A100-SXM4-80GB",),
                uuids=("GPU-5f2a1c9e-88d1-4c1e-9c52-0d6a1d3c7b10",),
                memory_bytes=(85_899_345_920,),
                driver="550.54.15",
                runtime="CUDA 12.4",
                source="nvidia-smi",
            ),
        ),
        signer=SIGNER,
        bodies={"tests": ref, "coverage": ref, "inputs": ref, "log": ref},
    )


def merged_receipt() -> MergedReceipt:
    """Return a merged receipt of one fresh and one carried shard."""
    receipt = shard_receipt()
    fresh = MergedShard(
        key=ShardKey("l1", "a100"),
        record=RecordId(sha256_of("fresh")),
        commit=receipt.repo.commit,
        outcome=Outcome.PASSED,
        dirty=False,
        counts=Counts(collected=3, passed=2, skipped=1),
        started_at=STARTED,
        ended_at=ENDED,
        signer="alice",
        key_fingerprint=FINGERPRINT,
        carried=None,
    )
    carried = replace(
        fresh,
        key=ShardKey("unit"),
        record=RecordId(sha256_of("carried")),
        commit=CommitId(object_of("older")),
        dirty=True,
        counts=Counts(collected=5, passed=5, deselected=1),
        carried=CarriedClaim(
            original_commit=CommitId(object_of("older")),
            original_dirty=True,
            original_ended_at=ENDED,
            original_signer="alice",
            distance=2,
        ),
    )
    return MergedReceipt(
        repository=receipt.repository,
        shards=(fresh, carried),
        outcome=Outcome.PASSED,
        counts=Counts(collected=8, passed=7, skipped=1, deselected=1),
        started_at=STARTED,
        ended_at=ENDED,
        merged_at=datetime(2026, 1, 31, 13, tzinfo=UTC),
        repo=receipt.repo,
        environment=receipt.environment,
        coverage=CoverageClaim(covered=813, total=1000, threshold="81.25", precision=2, passed=True),
        inputs_verified=True,
        signer=SIGNER,
    )


def revocation() -> Revocation:
    """Return a revocation of the fresh shard's record."""
    return Revocation(
        repository="0123456789abcdef",
        record=RecordId(sha256_of("fresh")),
        reason="the runner's clock was wrong",
        revoked_at=ENDED,
        subject=Subject(commit=CommitId(object_of("commit")), tree=TreeId(object_of("tree"))),
        signer=SIGNER,
    )


@dataclass(frozen=True)
class Claim:
    """A kind of record: its value, and the decoder of its statement."""

    name: str
    value: Any
    decode: Callable[[Statement], Any]

    def document(self) -> Any:
        """Return a fresh copy of the payload as parsed JSON."""
        return json.loads(self.value.encode())

    def read(self, document: Any) -> Any:
        """Return what a payload of this JSON decodes to."""
        raw = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.decode(Statement.decode(raw))


CLAIMS = (
    Claim("shard", shard_receipt(), ShardReceipt.decode),
    Claim("merged", merged_receipt(), MergedReceipt.decode),
    Claim("revocation", revocation(), Revocation.decode),
)


@pytest.fixture(params=CLAIMS, ids=lambda claim: claim.name)
def claim(request: pytest.FixtureRequest) -> Claim:
    """Each kind of record in turn."""
    return request.param


@pytest.fixture(scope="session")
def claims() -> tuple[Claim, ...]:
    """All kinds of records."""
    return CLAIMS


@pytest.fixture(scope="session")
def receipt() -> ShardReceipt:
    """A green shard receipt."""
    return shard_receipt()


@pytest.fixture(scope="session")
def merged() -> MergedReceipt:
    """A green merged receipt."""
    return merged_receipt()


@pytest.fixture(scope="session")
def signed_line(receipt: ShardReceipt) -> bytes:
    """The line of a receipt; the signature has an Ed25519 one's size, but no key made it."""
    blob = b"SSHSIG" + b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(6))[:173]
    return Envelope(payload=receipt.encode(), signature=Signature(keyid=FINGERPRINT, blob=blob)).encode()


@pytest.fixture(scope="session")
def results() -> tuple[TestResult, ...]:
    """A hundred green results and one of each other kind, with ids that tools stumble over (U07)."""
    odd = (
        TestResult(node_id=NodeId("t.py::test[a\x00b]"), outcome=TestOutcome.FAILED, phase="call", attempts=3),
        TestResult(node_id=NodeId("t.py::test[line\nbreak]"), outcome=TestOutcome.ERROR, phase="teardown"),
        TestResult(node_id=NodeId("t.py::test[\udcff\ud800]"), outcome=TestOutcome.SKIPPED, phase="setup"),
        TestResult(node_id=NodeId("t.py::test[\u202e|]"), outcome=TestOutcome.XFAILED),
        TestResult(node_id=NodeId("t.py::test[e\u0301]"), outcome=TestOutcome.XPASSED),
        TestResult(node_id=NodeId("t.py::test[\u00e9]"), outcome=TestOutcome.PASSED),
        TestResult(node_id=NodeId("t.py::" + "x" * 10_240), outcome=TestOutcome.PASSED),
        TestResult(
            node_id=NodeId("t.py::test_close"),
            outcome=TestOutcome.FAILED,
            phase="call",
            checks=(
                Check(name="logits", passed=False, detail="max \u0394 0.3 > 0.1"),
                Check(name="x", passed=True),
            ),
        ),
    )
    return hundred_results() + odd


@pytest.fixture(scope="session")
def refused() -> Callable[..., DecodeError]:
    """Return the `DecodeError` that a call ends in: `refused(f, *args)`; anything else fails the test."""

    def call(function: Callable[..., Any], *args: Any, **options: Any) -> DecodeError:
        with pytest.raises(DecodeError) as caught:
            function(*args, **options)
        assert "\n" not in caught.value.message
        return caught.value

    return call


@pytest.fixture(scope="session")
def result_of() -> Callable[..., Any]:
    """Return what a call returns, or the `DecodeError` that it raises; anything else fails the test."""

    def call(function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except DecodeError as error:
            return error

    return call


def _places(node: Any, path: Path = ()) -> Iterator[Path]:
    steps = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, child in steps:
        yield (*path, step)
        yield from _places(child, (*path, step))


def _spell(path: Path) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _with_value(document: Any, path: Path, value: Any) -> Any:
    changed = copy.deepcopy(document)
    node = changed
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    return changed


def _without(document: Any, path: Path) -> Any:
    changed = copy.deepcopy(document)
    node = changed
    for step in path[:-1]:
        node = node[step]
    del node[path[-1]]
    return changed


class Surgery:
    """Ways to change one place of a JSON document; the original stays as it was."""

    places = staticmethod(_places)
    spell = staticmethod(_spell)
    put = staticmethod(_with_value)
    drop = staticmethod(_without)


@pytest.fixture(scope="session")
def surgery() -> Surgery:
    """Change one place of a JSON document."""
    return Surgery()
