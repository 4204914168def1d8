"""From a run to the receipt that claims it, and the bodies that it names."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Sequence

from gitledger import __version__
from gitledger.dataclass import dataclass, replace
from gitledger.errors import DecodeError
from gitledger.machine.environment import environment_facts
from gitledger.machine.redact import redact_argv, redact_url, secret_values
from gitledger.records.bodies import BodyRef, TestResult, encode_inputs, encode_log, encode_tests
from gitledger.records.ids import CommitId, ShardKey
from gitledger.records.outcomes import Outcome
from gitledger.records.receipt import (
    CollectionClaim,
    ManifestClaim,
    RepoClaim,
    SessionClaim,
    ShardClaim,
    ShardReceipt,
)
from gitledger.records.statement import Statement
from gitledger.store.facts import CommitFacts
from gitledger.store.worktree import WorkTreeState
from gitledger.trust.sign import claim_of
from gitledger.trust.signer import Signer
from gitledger.wording import counted
from gitledger.workflows.observed import outside_of
from gitledger.workflows.request import Before, RecordRequest
from gitledger.workflows.scene import Executed
from gitledger.workflows.session import Session

__all__ = ["Draft", "draft", "earlier_attempts"]

MAX_LISTED_PATHS = 20
_HEAD = b'{"payload":"'
MAX_WORD = 1_000
"""Characters of one word of the recorded command line."""
MAX_WORDS = 500
"""Words of the recorded command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A receipt that can be written before it is known how the run left the work tree; until then it is dirty."""

    before: Before
    receipt: ShardReceipt
    bodies: tuple[bytes, ...]

    def completed(self, after: WorkTreeState, *, came: Collection[str] = ()) -> ShardReceipt:
        """Return the receipt; `after` is the work tree as the run left it.

        Dirt: tracked changes at start or end, untracked files at start (DESIGN section 5), and ignored files that
        pytest takes for its configuration. `came` are untracked files that came before the start, when it had
        been looked for them already.
        """
        before = self.before
        at_start = {*before.state.untracked, *came}
        dirt = sorted({*before.state.changed, *at_start, *before.shadows, *after.changed})
        created = sorted(set(after.untracked) - at_start)
        return replace(
            self.receipt,
            repo=replace(
                self.receipt.repo,
                dirty=bool(dirt),
                dirty_paths=tuple(dirt[:MAX_LISTED_PATHS]),
                created=tuple(created[:MAX_LISTED_PATHS]),
            ),
        )


def draft(session: Session, request: RecordRequest, signer: Signer | None, before: Before, run: Executed) -> Draft:
    """Return what can be said of a run already; git may still be looking at what it left.

    The recorder's own reasons only ever take green away.
    """
    result = run.result
    bodies = {"tests": encode_tests([_in_microseconds(item) for item in result.results])}
    if run.coverage is not None:
        bodies["coverage"] = run.coverage
    if run.inputs is not None:
        bodies["inputs"] = encode_inputs(run.inputs)
    if run.log_text:
        bodies["log"] = encode_log(run.log_text)
    form = session.repo.object_format
    is_passed = result.outcome is Outcome.PASSED
    receipt = ShardReceipt(
        repository=request.repository,
        shard=ShardClaim(
            key=request.key,
            attempt=1 + earlier_attempts(session, before.head, request.key),
            split=request.definition.split,
            definition_digest=request.definition.digest,
        ),
        outcome=Outcome.INCOMPLETE if is_passed and run.reasons else result.outcome,
        reasons=tuple(dict.fromkeys([*result.reasons, *run.reasons])),
        counts=result.counts,
        collection=CollectionClaim(
            full_digest=result.full_digest,
            full_count=result.full_count,
            selected_digest=result.selected_digest,
        ),
        manifest=_manifest(session, request, before, run),
        repo=_repo(session, before),
        session=_session(session, request, run),
        environment=environment_facts(
            env=session.environ,
            python=result.tools.python,
            pytest=result.tools.pytest,
            coverage=result.tools.coverage,
            gitledger=__version__,
            gpu_uuid=request.gpu_uuid,
        ),
        signer=None if signer is None else claim_of(signer, user=request.user),
        bodies={name: BodyRef.of(blob, object_format=form) for name, blob in bodies.items()},
    )
    return Draft(before=before, receipt=receipt, bodies=tuple(bodies.values()))


def _in_microseconds(result: TestResult) -> TestResult:
    """Return the result with its duration in whole microseconds; what lies below is noise, a tenth of a body."""
    return replace(result, duration_ns=result.duration_ns // 1000 * 1000)


def _manifest(session: Session, request: RecordRequest, before: Before, run: Executed) -> ManifestClaim:
    """Return the inputs as declared, and what the run read beside them: the first of it, the body has it all."""
    definition = request.definition
    outside: tuple[str, ...] | None = None
    if run.inputs is not None:
        facts = CommitFacts(session.repo.objects, session.repo.commit(before.head).tree)
        outside = outside_of(before.manifest, facts, run.inputs.paths)[:MAX_LISTED_PATHS]
    return ManifestClaim(
        digest=before.manifest.digest,
        paths=definition.paths,
        extra_paths=definition.extra_paths,
        excluded_paths=definition.excluded_paths,
        extra=before.manifest.extra or (),
        outside=outside,
    )


def _repo(session: Session, before: Before) -> RepoClaim:
    """Return where it ran, dirty until the work tree has been looked at again."""
    repo = session.repo
    remote = repo.config("remote.origin.url")
    return RepoClaim(
        commit=before.head,
        tree=repo.commit(before.head).tree,
        branch=repo.branch(),
        remote=redact_url(remote) if remote else None,
        dirty=True,
    )


def _session(session: Session, request: RecordRequest, run: Executed) -> SessionClaim:
    ended = run.ended
    return SessionClaim(
        started_at=run.started_at,
        ended_at=max(run.started_at, run.ended_at),
        argv=_bounded(redact_argv(run.argv, secret_values(session.environ))),
        exit_status=ended.status if ended else None,
        signal=ended.signal if ended else None,
        mode=request.mode,
        workers=run.result.workers,
        finished=run.result.finished,
        witnessed=ended is not None,
    )


def _bounded(argv: Sequence[str]) -> tuple[str, ...]:
    """Return an argument vector within what a receipt may hold, with a word that says what was left out."""
    words = [
        word if len(word) <= MAX_WORD else f"{word[:MAX_WORD]}… ({counted(len(word), 'character')})"
        for word in argv
    ]
    more = len(words) - MAX_WORDS
    return tuple([*words[:MAX_WORDS], f"… ({counted(more, 'more word')})"] if more > 0 else words)


def earlier_attempts(session: Session, commit: CommitId, key: ShardKey) -> int:
    """Return how many receipts of the shard the commit has, as far as this clone knows.

    Only lines that spell the shard's name are decoded: a commit of a thousand shards has as many receipts. Their
    signatures are not checked: anybody who can write a line can sign it with some key, and a number too large
    makes nothing green.
    """
    name = f'"name":"{key.name}"'.encode("ascii")
    payloads = (_glanced(line) for line in session.ledger.lines(commit))
    return sum(_is_receipt_of(payload, commit, key) for payload in payloads if name in payload)


def _is_receipt_of(payload: bytes, commit: CommitId, key: ShardKey) -> bool:
    try:
        statement = Statement.decode(payload)
        shard = statement.predicate.opt_child("shard")
        return (
            shard is not None
            and statement.subject.commit == commit
            and (shard.opt_text("name"), shard.opt_text("variant")) == (key.name, key.variant)
        )
    except DecodeError:
        return False


def _glanced(line: bytes) -> bytes:
    """Return the payload of a line as we spell lines, else nothing."""
    begin, end = len(_HEAD), line.find(b'"', len(_HEAD))
    try:
        return base64.b64decode(line[begin:end]) if line.startswith(_HEAD) and end > 0 else b""
    except binascii.Error:
        return b""
