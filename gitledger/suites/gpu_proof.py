"""Receipts of pytest-gpu-proof, schema 3, read as something that anybody may have written.

After the package's own `receipt.py` and `verify.py`, release 0.4.1. Its signature is not checked: it is by a bare
key over re-encoded JSON, and says nothing that history needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from gitledger.dataclass import dataclass
from gitledger.records.bodies import Check, TestResult
from gitledger.records.decode import Reader, fail, load_json
from gitledger.records.ids import CommitId, NodeId, object_id
from gitledger.records.limits import MAX_TESTS
from gitledger.records.outcomes import TestOutcome

__all__ = ["MAX_FILE_BYTES", "GpuProof", "read_gpu_proof"]

MAX_FILE_BYTES = 64 << 20
"""One receipt file."""
_OUTCOMES = {
    "passed": TestOutcome.PASSED,
    "failed": TestOutcome.FAILED,
    "error": TestOutcome.ERROR,
    "skipped": TestOutcome.SKIPPED,
}
_MAX_SHARDS = 10_000
_MAX_CHECKS = 10_000
_MAX_SECONDS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProof:
    """What one receipt says; `signed_by` is the account that it names, None for an unsigned one."""

    commit: CommitId
    dirty: bool
    mode: str
    passed: bool
    started_at: datetime
    ended_at: datetime
    shards: tuple[str, ...]
    results: tuple[TestResult, ...]
    signed_by: str | None
    version: str | None


def read_gpu_proof(data: bytes) -> GpuProof:
    """Return what a receipt file says; raises `DecodeError` naming the field's path."""
    reader = Reader(load_json(data, limit=MAX_FILE_BYTES))
    if reader.text("schema_version") != "3":
        fail("$.schema_version", "expected 3; older receipts are not taken over")
    repo, session = reader.child("repo"), reader.child("session")
    results = tuple(_result(item) for item in reader.children("tests", limit=MAX_TESTS))
    if not results:
        fail("$.tests", "no tests")
    if len({result.node_id for result in results}) != len(results):
        fail("$.tests", "a node id stands twice")
    outcome = session.text("outcome")
    bad = any(result.outcome.is_bad for result in results)
    if outcome not in ("passed", "failed") or (outcome == "passed" and bad):
        fail("$.session.outcome", "not what the tests say")
    signer = reader.opt_child("signer") if reader.has("signature") else None
    return GpuProof(
        commit=CommitId(repo.parsed("commit_sha", object_id)),
        dirty=repo.boolean("dirty"),
        mode=reader.text("mode"),
        passed=outcome == "passed",
        started_at=session.time("started_at"),
        ended_at=session.time("ended_at"),
        shards=tuple(_names(reader)),
        results=results,
        signed_by=signer.text("github_user") if signer else None,
        version=reader.child("environment").opt_text("plugin_version"),
    )


def _names(reader: Reader) -> Iterable[str]:
    if reader.has("shards"):
        for shard in reader.children("shards", limit=_MAX_SHARDS):
            yield shard.text("name")


def _result(reader: Reader) -> TestResult:
    outcome = _OUTCOMES.get(reader.text("outcome"))
    if outcome is None:
        fail(f"{reader.path}.outcome", "unknown")
    seconds = reader.number("duration_s") if reader.has("duration_s") else 0.0
    if not 0 <= seconds < _MAX_SECONDS:
        fail(f"{reader.path}.duration_s", "no duration")
    phase = reader.opt_text("phase")
    return TestResult(
        node_id=NodeId(reader.text("node_id")),
        outcome=outcome,
        phase=phase if phase in ("setup", "call", "teardown") else None,
        duration_ns=round(seconds * 1_000_000) * 1000,
        checks=tuple(_check(item) for item in reader.children("checks", limit=_MAX_CHECKS))
        if reader.has("checks")
        else (),
    )


def _check(reader: Reader) -> Check:
    return Check(name=reader.text("name"), passed=reader.text("outcome") == "passed", detail="")
