"""Gate: the one command for CI. Sync, plan, merge where there is a key, verify, publish (DESIGN section 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import EXIT_NO, EXIT_NOT_STORED, EXIT_YES, LedgerError, StoreError, UsageError
from gitledger.records.ids import CommitId
from gitledger.store.remote import choose_remote, remote_names
from gitledger.trust.signer import Signer
from gitledger.verdict.finding import Verdict
from gitledger.verdict.plan import summarise
from gitledger.verdict.verify import agreeing_snapshot
from gitledger.workflows.gate_needs import judge_needs
from gitledger.workflows.gate_runner import Runner, read_runner
from gitledger.workflows.gate_target import Target, find_target
from gitledger.workflows.judge import Verified, plan, policy_of, verify
from gitledger.workflows.merge import Merged, merge
from gitledger.workflows.publish import Synced, sync_with
from gitledger.workflows.receive import Received, receive
from gitledger.workflows.session import Session
from gitledger.workflows.target import target_of

__all__ = ["GateRequest", "Gated", "gate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    """What a gate is told: `commit` overrides the runner's word, `sources` are bundles or forks to take from."""

    commit: str | None = None
    policy_from: str | None = None
    remote: str | None = None
    sources: tuple[str, ...] = ()
    needs: str | None = None
    accept_shards: bool = False
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """What a gate came to. `merged` is None where nothing was to be merged, `merge_error` why it could not be.

    `published` is what went to the remote, None where nothing had to; `publish_error` why it could not.
    """

    runner: Runner
    what: str
    remote: str | None
    policy: Target
    received: tuple[Received, ...]
    merged: Merged | None
    merge_error: LedgerError | None
    found: Verified
    verdict: Verdict
    published: Synced | None
    publish_error: LedgerError | None

    @property
    def exit_status(self) -> int:
        """What the gate exits with: 1 for failed; else what kept its merged receipt from being made or seen."""
        if not self.verdict.passed:
            return EXIT_NO
        if self.merge_error is not None:
            return self.merge_error.exit_status
        signed = self.merged is not None and self.merged.record is not None
        return EXIT_NOT_STORED if signed and self.publish_error is not None else EXIT_YES

    def encode(self) -> dict[str, Any]:
        """Return the document of `gate --json`: that of `verify --json`, and what was done around it."""
        merged = self.merged
        return {
            **self.found.encode(),
            "findings": [finding.encode() for finding in self.verdict.findings],
            "judged": self.what,
            "merge": None if merged is None else {"outcome": merged.outcome, "record": merged.record},
            "plan": summarise(self.found.union),
            "policy": {**policy_of(self.found.case), "from": self.policy.source},
            "published": None if self.published is None else self.published.encode(),
            "received": [item.encode() for item in self.received],
            "remote": self.remote,
            "verdict": "passed" if self.verdict.passed else "failed",
        }


def gate(session: Session, request: GateRequest, signer: Callable[[], Signer | None]) -> Gated:
    """Return the verdict on what the runner is about, by the policy of the branch that it is to land on.

    `signer` is asked only where a merged receipt has to be made; None merges nothing. Raises where it can't be
    judged: `UsageError` (`head-unknown`, `head-missing`, `no-target`, `no-remote`), what `verify` raises, and
    `StoreError` where the remote can't be asked, since a failure that is recorded there would be hidden.
    """
    runner = read_runner(session.environ, session.repo, is_told=request.commit is not None)
    target, what = _judged(session, runner, request.commit)
    remote = _remote(session, request)
    if remote is not None:
        sync_with(session, remote, fetch_only=True)
    policy = _policy(session, request.policy_from, remote, runner)
    received = tuple(receive(session, source, policy_from=policy.commit) for source in request.sources)
    merged, merge_error = _merge(session, target, policy, request, signer)
    found = verify(session, target, policy_from=policy.commit, accept_shards=request.accept_shards)
    published, publish_error = _publish(session, remote, merged, received)
    return Gated(
        runner=runner,
        what=what,
        remote=remote,
        policy=policy,
        received=received,
        merged=merged,
        merge_error=merge_error,
        found=found,
        verdict=_verdict(found, request.needs),
        published=published,
        publish_error=publish_error,
    )


def _judged(session: Session, runner: Runner, asked: str | None) -> tuple[CommitId, str]:
    """Return the commit to judge, and in words which that is."""
    if asked is not None:
        return target_of(session, asked), f"{asked}, as asked for"
    if runner.judged is None:
        return target_of(session, "HEAD"), runner.what
    if session.repo.objects.read_commit(runner.judged) is None:
        raise UsageError(
            "head-missing",
            f"{runner.judged[:12]}, {runner.what}, is not in this clone",
            "check it out with its whole history (actions/checkout: ref and fetch-depth: 0; GitLab: GIT_DEPTH 0)",
        )
    return runner.judged, runner.what


def _remote(session: Session, request: GateRequest) -> str | None:
    """Return the remote to speak to; without any, policy must have been named."""
    if request.remote is None and request.policy_from is not None and not remote_names(session.repo):
        return None
    return choose_remote(session.repo, request.remote)


def _policy(session: Session, named: str | None, remote: str | None, runner: Runner) -> Target:
    if named is not None or remote is None:
        return Target(named or "", session.repo.resolve(named or ""))
    return find_target(session.repo, remote, runner.target)


def _merge(
    session: Session, target: CommitId, policy: Target, request: GateRequest, signer: Callable[[], Signer | None]
) -> tuple[Merged | None, LedgerError | None]:
    """Return the merge of what stands, unless a merged receipt that counts says just that already.

    That a receipt can't be signed or stored is told beside the verdict, which `verify` gives without any.
    """
    found = plan(session, target, policy_from=policy.commit)
    if agreeing_snapshot(found.union, found.case.situation) is not None:
        return None, None
    try:
        key = signer()
        if key is None:
            return None, None
        made = merge(
            session,
            target,
            key,
            user=request.user,
            policy_from=policy.commit,
            accept_shards=request.accept_shards,
        )
    except LedgerError as error:
        return None, error
    return made, None


def _publish(
    session: Session, remote: str | None, merged: Merged | None, received: tuple[Received, ...]
) -> tuple[Synced | None, LedgerError | None]:
    is_new = (merged is not None and merged.record is not None) or any(item.taken for item in received)
    if remote is None or not is_new:
        return None, None
    try:
        return sync_with(session, remote), None
    except StoreError as error:
        return None, error


def _verdict(found: Verified, needs: str | None) -> Verdict:
    if needs is None:
        return found.verdict
    jobs = tuple(judge_needs(needs, nothing_stale=not summarise(found.union)["stale"]))
    return Verdict.over(found.verdict.judged, (*found.verdict.findings, *jobs))
