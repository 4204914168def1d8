"""Log, show and status: what the ledger holds, for people and for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from gitledger.dataclass import dataclass, replace
from gitledger.errors import ConfigError, DecodeError, UsageError
from gitledger.records.bodies import TestResult, check_body, decode_tests
from gitledger.records.capability_record import CapabilityRecord
from gitledger.records.decode import format_time
from gitledger.records.fragments import Fragment, decode_fragment
from gitledger.records.ids import CommitId, TreeId
from gitledger.records.imported import ImportedReceipt
from gitledger.records.merged import MergedReceipt
from gitledger.records.receipt import ShardReceipt
from gitledger.records.revocation import Revocation
from gitledger.records.statement import CAPABILITY, IMPORTED, MERGED_RECEIPT, REVOCATION, SHARD_RECEIPT, Statement
from gitledger.records.tree import CommitInfo
from gitledger.store.view import LedgerView
from gitledger.trust.signers import Signers
from gitledger.trust.verified import Rejected, Unsigned, Verified, open_record
from gitledger.verdict.alone import Terms, against_each
from gitledger.verdict.evidence import sort_records
from gitledger.workflows.session import Session
from gitledger.workflows.target import no_commit
from gitledger.workflows.trusted import load_trusted

__all__ = [
    "LEAST_DIGITS",
    "CommitEntry",
    "RecordEntry",
    "each_record",
    "find_record",
    "fragment_of",
    "log",
    "show_commit",
    "tests_of",
]

MAX_COMMITS = 10_000
"""How many commits of a range `log` looks at."""
LEAST_DIGITS = 8
"""So many digits of a record's id name it, where they name but one."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Claim = ShardReceipt | MergedReceipt | Revocation | ImportedReceipt | CapabilityRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEntry:
    """One line of a note as it reads here. `claim` is None where it can't be read; `fault` then says why.

    `signer` is the principal that the key has at HEAD's allowed_signers, None for none: reading is not judging.
    `against` are words for what HEAD's policy has against the record by itself, () for nothing; what is not known
    to have nothing against it has something, so that nothing is shown as green by mistake.
    """

    line: bytes
    id: str | None
    claim: Claim | None
    key: str | None
    signer: str | None
    fault: str
    against: tuple[str, ...] = ("not-judged",)

    def encode(self) -> dict[str, Any]:
        """Return the JSON object of `log --json` and `show --json`."""
        document: dict[str, Any] = {
            "fault": self.fault or None,
            "key": self.key,
            "record": self.id,
            "signer": self.signer,
        }
        match self.claim:
            case ShardReceipt() as receipt:
                document |= {
                    "counts": receipt.counts.encode(),
                    "dirty": receipt.repo.dirty,
                    "ended_at": format_time(receipt.session.ended_at),
                    "kind": "shard",
                    "name": receipt.key.name,
                    "outcome": receipt.outcome.value,
                    "reasons": list(receipt.reasons),
                    "variant": receipt.key.variant,
                }
            case MergedReceipt() as merged:
                document |= {
                    "counts": merged.counts.encode(),
                    "ended_at": format_time(merged.ended_at),
                    "kind": "merged",
                    "merged_at": format_time(merged.merged_at),
                    "outcome": merged.outcome.value,
                    "shards": [shard.encode() for shard in merged.shards],
                }
            case Revocation() as revocation:
                document |= {"kind": "revocation", "reason": revocation.reason, "revokes": revocation.record}
            case ImportedReceipt() as imported:
                document |= {
                    "counts": imported.counts.encode(),
                    "dirty": imported.dirty,
                    "ended_at": format_time(imported.ended_at),
                    "kind": "imported",
                    "origin": imported.origin.encode(),
                    "outcome": imported.outcome.value,
                    "shards": list(imported.shards),
                }
            case CapabilityRecord(report=report):
                document |= {
                    "ended_at": format_time(report.timing.finished_at),
                    "kind": "capability",
                    "lane": report.lane.id,
                    "layers": report.layers.encode(),
                    "model": report.model.requested,
                    "reason": report.reason.code.value if report.reason else None,
                    "recipe": report.recipe.id,
                    "status": report.status.value,
                }
            case None:
                document |= {"kind": "unknown"}
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEntry:
    """A commit with its records, oldest run first."""

    commit: CommitInfo
    records: tuple[RecordEntry, ...]

    def encode(self) -> dict[str, Any]:
        """Return the JSON object of `log --json`."""
        return {
            "commit": self.commit.id,
            "committed_at": format_time(self.commit.committed_at),
            "records": [record.encode() for record in self.records],
            "summary": self.commit.summary,
            "tree": self.commit.tree,
        }


def log(session: Session, revisions: str, *, limit: int) -> list[CommitEntry]:
    """Return the commits of a range that carry evidence, newest first, at most `limit`.

    Raises `UsageError` `unknown-commit` for a range that git does not know.
    """
    if revisions.startswith("-"):
        raise UsageError("unknown-commit", f"{revisions!a} is no range of commits", "git ledger log main~10..main")
    done = session.repo.git.run(
        "rev-list", f"--max-count={MAX_COMMITS}", revisions, "--", statuses=frozenset({0, 128})
    )
    if done.status:
        if session.repo.head() is None:
            raise no_commit(session.repo)
        raise UsageError("unknown-commit", f"{revisions!a} is no range of commits here", "git ledger log HEAD")
    view = session.ledger.view()
    annotated = view.commits()
    terms = _terms(session)
    found: list[CommitEntry] = []
    for word in done.text.split():
        commit = CommitId(word)
        if commit in annotated and len(found) < limit:
            found.append(_judged(session, view, commit, terms))
    return found


def show_commit(session: Session, commit: CommitId) -> CommitEntry:
    """Return a commit with all that hangs on it."""
    return _judged(session, session.ledger.view(), commit, _terms(session))


def each_record(session: Session) -> Iterator[tuple[CommitId, RecordEntry]]:
    """Yield every record with the commit that it stands on, whatever policy has against it: nothing is judged."""
    view, terms = session.ledger.view(), _terms(session)
    for commit in sorted(view.commits()):
        for _, record in _read_all(view, commit, terms):
            yield commit, record


def find_record(session: Session, prefix: str) -> tuple[CommitInfo, RecordEntry] | None:
    """Return the one record whose id begins with `prefix` (8 digits or more), not judged, or None.

    A line that is no record where it stands (a pasted copy) is shown only where there is no other. Raises
    `UsageError` `ambiguous-record` where there are several.
    """
    if len(prefix) < LEAST_DIGITS or not set(prefix) <= set("0123456789abcdef"):
        return None
    found = [
        (commit, record)
        for commit, record in each_record(session)
        if record.id is not None and record.id.startswith(prefix)
    ]
    found = [item for item in found if item[1].key is not None or item[1].claim is not None] or found
    if len({(record.id, record.key) for _, record in found}) > 1:
        raise UsageError("ambiguous-record", f"several records begin with {prefix}", "give more digits")
    return (session.repo.commit(found[0][0]), found[0][1]) if found else None


def tests_of(session: Session, entry: RecordEntry) -> tuple[TestResult, ...]:
    """Return the test results that a shard receipt names; raises `DecodeError` where they are not here."""
    if not isinstance(entry.claim, ShardReceipt | ImportedReceipt) or "tests" not in entry.claim.bodies:
        return ()
    ref = entry.claim.bodies["tests"]
    blob = session.ledger.body(ref.oid)
    if blob is None:
        raise DecodeError("body-missing", f"the test results {ref.oid[:12]} are not here", "git ledger sync")
    check_body(ref, blob)
    return decode_tests(blob)


def fragment_of(session: Session, entry: RecordEntry) -> Fragment | None:
    """Return the coverage that a shard receipt names, None for none; raises `DecodeError` where it is not here."""
    if not isinstance(entry.claim, ShardReceipt) or "coverage" not in entry.claim.bodies:
        return None
    ref = entry.claim.bodies["coverage"]
    blob = session.ledger.body(ref.oid)
    if blob is None:
        raise DecodeError("body-missing", f"the coverage {ref.oid[:12]} is not here", "git ledger sync")
    check_body(ref, blob)
    return decode_fragment(blob)


def _terms(session: Session) -> Terms | None:
    """Return by whose word records are seen: that of HEAD, None where it has no configuration that can be read."""
    head = session.repo.head()
    if head is None:
        return None
    try:
        trusted = load_trusted(session.repo, head, None)
    except ConfigError:
        return None
    return Terms(config=trusted.config, signers=trusted.signers, now=session.now())


_Read = tuple[Verified | Unsigned | None, RecordEntry]


def _read_all(view: LedgerView, commit: CommitId, terms: Terms | None) -> list[_Read]:
    signers = Signers() if terms is None else terms.signers
    return [_read(line, commit, signers) for line in view.lines(commit)]


def _judged(session: Session, view: LedgerView, commit: CommitId, terms: Terms | None) -> CommitEntry:
    info = session.repo.objects.read_commit(commit)
    is_here = info is not None
    if info is None:
        info = CommitInfo(
            id=commit,
            tree=TreeId(""),
            parents=(),
            committed_at=EPOCH,
            authored_at=EPOCH,
            summary="(not in this clone)",
        )
    read = _read_all(view, commit, terms)
    if terms is None:
        records = [replace(entry, against=("no-config",)) for _, entry in read]
    elif not is_here:
        records = [replace(entry, against=("commit-not-here",)) for _, entry in read]
    else:
        pile = sort_records(
            (opened for opened, _ in read if opened is not None), repository=terms.config.repository
        )
        found = against_each(pile.placed(commit, info.tree), terms, info.committed_at)
        records = [replace(entry, against=_of(entry, found, terms)) for _, entry in read]
    return CommitEntry(commit=info, records=tuple(sorted(records, key=_when)))


def _of(entry: RecordEntry, found: Mapping[Any, tuple[str, ...]], terms: Terms) -> tuple[str, ...]:
    """Return what is against a record; what is in no pile is of another place or kind."""
    is_foreign = entry.claim is not None and entry.claim.repository != terms.config.repository
    return found.get((entry.id, entry.key), ("foreign",) if is_foreign else ("no-evidence",))


def _when(entry: RecordEntry) -> tuple[str, str]:
    match entry.claim:
        case ShardReceipt() as receipt:
            return format_time(receipt.session.ended_at), entry.id or ""
        case MergedReceipt() as merged:
            return format_time(merged.merged_at), entry.id or ""
        case Revocation() as revocation:
            return format_time(revocation.revoked_at), entry.id or ""
        case ImportedReceipt() as imported:
            return format_time(imported.ended_at), entry.id or ""
        case CapabilityRecord(report=report):
            return format_time(report.timing.finished_at), entry.id or ""
        case None:
            return "~", entry.id or ""


def _read(line: bytes, commit: CommitId, signers: Signers) -> _Read:
    opened = open_record(line, commit=commit)
    if isinstance(opened, Rejected):
        fault = f"{opened.reason}: {opened.detail}"
        return None, RecordEntry(line=line, id=opened.record, claim=None, key=None, signer=None, fault=fault)
    key, signer = None, None
    try:
        claim = _claim(opened)
        fault = ""
    except DecodeError as error:
        claim, fault = None, error.message
    if isinstance(opened, Verified):
        key = opened.key.fingerprint
        signer = min(_names(opened, claim, signers), default=None)
    return opened, RecordEntry(line=line, id=opened.id, claim=claim, key=key, signer=signer, fault=fault)


def _names(opened: Verified, claim: Claim | None, signers: Signers) -> Iterator[str]:
    match claim:
        case ShardReceipt():
            yield from signers.principals(opened.key, claim.session.ended_at)
        case MergedReceipt():
            yield from signers.principals(opened.key, claim.merged_at)
        case Revocation():
            yield from signers.principals(opened.key, claim.revoked_at)
        case ImportedReceipt():
            yield from signers.principals(opened.key, claim.imported_at)
        case CapabilityRecord():
            yield from signers.principals(opened.key, claim.report.timing.finished_at)


_DECODERS: dict[str, Callable[[Statement], Claim]] = {
    SHARD_RECEIPT: ShardReceipt.decode,
    MERGED_RECEIPT: MergedReceipt.decode,
    REVOCATION: Revocation.decode,
    IMPORTED: ImportedReceipt.decode,
    CAPABILITY: CapabilityRecord.decode,
}


def _claim(opened: Verified | Unsigned) -> Claim | None:
    decode = _DECODERS.get(opened.statement.predicate_type)
    return None if decode is None else decode(opened.statement)
