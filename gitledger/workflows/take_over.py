"""Import: receipts of pytest-gpu-proof as history, and its settings as a configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError, UsageError
from gitledger.records.bodies import BodyRef, encode_tests
from gitledger.records.ids import CommitId, Digest, RecordId
from gitledger.records.imported import ImportedReceipt, Origin
from gitledger.records.outcomes import Counts, Outcome
from gitledger.records.statement import IMPORTED, Subject
from gitledger.suites.gpu_proof import MAX_FILE_BYTES, GpuProof, read_gpu_proof
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import Signer
from gitledger.trust.verified import Rejected, open_record
from gitledger.workflows.notes_author import notes_identity, notes_message
from gitledger.workflows.session import Session
from gitledger.workflows.target import no_commit
from gitledger.workflows.trusted import read_config

__all__ = ["TakenOver", "take_over"]

TOOL = "pytest-gpu-proof"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """One file that was taken over; `record` is None where its content was imported before."""

    file: str
    commit: CommitId
    record: RecordId | None
    receipt: GpuProof

    def encode(self) -> dict[str, Any]:
        """Return the JSON object of `import --json`."""
        return {
            "commit": self.commit,
            "file": self.file,
            "outcome": "passed" if self.receipt.passed else "failed",
            "record": self.record,
            "shards": list(self.receipt.shards),
            "tests": len(self.receipt.results),
        }


def take_over(session: Session, paths: Sequence[Path], signer: Signer, *, user: str) -> list[TakenOver]:
    """Return what became of each file, all stored on the commits that they name, or none.

    They are history: `log` and `show` show them, nothing carries them, no verdict looks at them. Raises
    `UsageError` `import-unreadable` and `unknown-commit`, and `StoreError` where they could not be stored.
    """
    head = session.repo.head()
    config = read_config(session.repo, head) if head else None
    if config is None:
        raise no_commit(session.repo)
    lines: dict[CommitId, list[bytes]] = {}
    bodies: list[bytes] = []
    done = []
    for path in paths:
        data = _read(path)
        found = _parsed(path, data)
        digest = Digest(hashlib.sha256(data).hexdigest())
        if _has(session, found.commit, digest):
            done.append(TakenOver(file=str(path), commit=found.commit, record=None, receipt=found))
            continue
        body = encode_tests(found.results)
        receipt = _receipt(
            session, found, config.repository, (digest, len(data)), body, claim_of(signer, user=user)
        )
        envelope = sign_payload(receipt.encode(), signer)
        lines.setdefault(found.commit, []).append(envelope.encode())
        bodies.append(body)
        done.append(TakenOver(file=str(path), commit=found.commit, record=envelope.id, receipt=found))
    if lines:
        count = sum(map(len, lines.values()))
        identity, message = notes_identity(session, config.notes), notes_message(config.notes, count)
        session.ledger.append(lines, bodies, identity=identity, message=message)
    return done


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError("import-unreadable", f"{path} can't be read: {error.strerror}", "give a file") from error
    return data


def _parsed(path: Path, data: bytes) -> GpuProof:
    try:
        return read_gpu_proof(data)
    except DecodeError as error:
        raise UsageError(
            "import-unreadable",
            f"{path} is no receipt of {TOOL} with schema 3: {error.message}",
            "give the JSON file that --gpu-proof-out named",
        ) from error


def _receipt(
    session: Session, found: GpuProof, repository: str, file: tuple[Digest, int], body: bytes, signer: Any
) -> ImportedReceipt:
    info = session.repo.commit(found.commit)
    return ImportedReceipt(
        repository=repository,
        origin=Origin(
            tool=TOOL,
            tool_version=found.version,
            schema="3",
            sha256=file[0],
            size=file[1],
            signed_by=None if found.signed_by is None else f"github:{found.signed_by}",
        ),
        shards=found.shards,
        outcome=Outcome.PASSED if found.passed else Outcome.FAILED,
        counts=Counts.of((item.outcome for item in found.results), collected=len(found.results)),
        dirty=found.dirty,
        mode=found.mode,
        started_at=found.started_at,
        ended_at=found.ended_at,
        imported_at=session.now(),
        subject=Subject(commit=info.id, tree=info.tree),
        signer=signer,
        bodies={"tests": BodyRef.of(body, object_format=session.repo.object_format)},
    )


def _has(session: Session, commit: CommitId, digest: Digest) -> bool:
    """Tell whether a file of that digest was imported on the commit."""
    for line in session.ledger.lines(commit):
        opened = open_record(line, commit=commit)
        if isinstance(opened, Rejected) or opened.statement.predicate_type != IMPORTED:
            continue
        try:
            if ImportedReceipt.decode(opened.statement).origin.sha256 == digest:
                return True
        except DecodeError:
            continue
    return False
