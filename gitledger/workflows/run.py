"""Run: what a plan calls stale, each recorded as it ends, and merged once all are covered (DESIGN section 10).

The state of a run is the ledger: what is recorded on this commit is not run again, whoever recorded it, and
whatever happened to the driver meanwhile.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Collection, Sequence

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass, replace
from gitledger.errors import LedgerError, UsageError
from gitledger.machine.admission import Admission, Need
from gitledger.machine.devices import find_devices
from gitledger.machine.interrupts import Interrupts
from gitledger.machine.memory import memory_now
from gitledger.machine.sole import sole_driver
from gitledger.manifest.chain import CHAIN_FILES
from gitledger.records.ids import ShardKey
from gitledger.report.text import uncommitted_lines
from gitledger.store.worktree import work_tree_state
from gitledger.trust.signer import Signer
from gitledger.verdict.select import Choice
from gitledger.verdict.union import Union
from gitledger.verdict.verify import agreeing_snapshot
from gitledger.wording import suggested
from gitledger.workflows.drive import Drive, Job, Watch
from gitledger.workflows.judge import Plan, plan
from gitledger.workflows.mend import to_mend_dirt, tracked_among
from gitledger.workflows.merge import merge
from gitledger.workflows.notes_author import notes_identity
from gitledger.workflows.run_attempts import attempts_left, without_used_up
from gitledger.workflows.run_result import RunResult
from gitledger.workflows.run_shard import ShardRuns, became_dirty
from gitledger.workflows.session import Session
from gitledger.workflows.settle import settle
from gitledger.workflows.target import head_of

__all__ = [
    "RunRequest",
    "chosen",
    "jobs_of",
    "merge_what_stands",
    "refuse_dirt",
    "run",
    "seconds_of",
]

WAIT_S = 120.0
"""How long memory and devices that somebody else holds are waited for, unless asked otherwise."""
MAX_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What is to be run, and how. `shards` empty: all that are declared. `echo` is given a shard's output.

    `everything`: also what is fresh. `retries`: further attempts at a shard that was not green. Times in seconds.
    """

    shards: tuple[str, ...] = ()
    everything: bool = False
    jobs: int = 1
    retries: int = 0
    stall_s: float | None = None
    timeout_s: float | None = None
    wait_s: float = WAIT_S
    mode: str = "local"
    pass_agent: bool = False
    user: str = ""
    policy_from: str | None = None
    carry: bool | None = None
    echo: Callable[[ShardKey, bytes], None] | None = None


def run(
    session: Session, request: RunRequest, signer: Signer | None, *, watch: Watch, interrupts: Interrupts
) -> RunResult:
    """Return what came of it; every receipt is stored, or the result says which is not.

    Raises `UsageError` `dirty-start`, `MachineError` `run-in-progress`, and what planning raises, before anything
    has run.
    """
    target = head_of(session)
    with sole_driver(session.repo.git_dir / "gitledger" / "run.lock") as held:
        for sentence in settle(session, signer, target, user=request.user, is_driver=True):
            watch.news(sentence)
        found = plan(session, target, policy_from=request.policy_from, carry=request.carry)
        limit = found.case.trusted.config.policy.max_attempts
        asked, wanted = chosen(found, request.shards, everything=request.everything)
        todo, used_up = without_used_up(wanted, found.union, limit)
        for fault in used_up.values():
            watch.news(f"{fault.message} [{fault.code}]")
        result = RunResult(commit=target, asked=asked, union=found.union, max_attempts=limit, faults=used_up)
        if not todo:  # the dirty tree that a run would refuse is no reason to say that all is well
            hints = [(str(item.key), item.paths) for item in found.uncommitted if item.key in asked]
            for line in uncommitted_lines(hints):
                watch.news(line)
        else:
            config = found.case.inputs.config
            notes_identity(session, config.notes)  # without one no receipt could be stored
            refuse_dirt(session, config, [choice.shard.key for choice in todo])
            runs = ShardRuns(
                session=session,
                config=config,
                left=attempts_left(found.union, limit),
                target=target,
                signer=signer,
                interrupts=interrupts,
                held=held,
                stall_s=request.stall_s,
                timeout_s=request.timeout_s,
                mode=request.mode,
                pass_agent=request.pass_agent,
                user=request.user,
                echo=request.echo,
            )
            drive = Drive(
                work=runs.record,
                watch=watch,
                admission=_admission(session, config, todo, request.wait_s),
                interrupts=interrupts,
                slots=request.jobs,
                retries=request.retries,
            )
            drive.run(jobs_of(config, found.union, todo))
            result = replace(
                result,
                results=drive.results,
                faults={**used_up, **drive.faults},
                stopped=drive.stopped,
                left=drive.left,
            )
            result = _hold_to_its_tree(session, config, result, watch)
        if interrupts.received or result.stopped is not None:
            stands = plan(session, target, policy_from=request.policy_from, carry=request.carry)
            interrupted = interrupts.received[0] if interrupts.received else None
            return replace(result, union=stands.union, interrupted=interrupted)
        if not todo and agreeing_snapshot(found.union, found.case.situation):
            return result
        return merge_what_stands(session, request, signer, result)


def chosen(
    found: Plan, names: Sequence[str], *, everything: bool
) -> tuple[tuple[ShardKey, ...], tuple[Choice, ...]]:
    """Return the shards that were asked for, and those of them that have to run.

    Raises `ConfigError` (`unknown-shard`), and `UsageError` `no-shards` where none is declared.
    """
    config = found.case.inputs.config
    asked = [key for name in names for key in config.keys_named(name)] if names else config.shard_keys()
    if not asked:
        raise UsageError(
            "no-shards", "no shard is declared: there is nothing to run", "git ledger help configuration"
        )
    wanted = set(asked)
    todo = tuple(
        choice
        for choice in found.union.choices
        if choice.shard.key in wanted and (everything or choice.verdict == "stale")
    )
    return tuple(dict.fromkeys(asked)), todo


def jobs_of(config: Config, union: Union, todo: Sequence[Choice]) -> list[Job]:
    """Return the shards to run with what they declare to need, and how long they took before."""
    known = seconds_of(union)
    return [
        Job(
            key=choice.shard.key,
            need=_need(config, choice.shard.key),
            estimate_s=known.get(choice.shard.key),
            report=_report(config, choice.shard.key),
        )
        for choice in todo
    ]


def seconds_of(union: Union) -> dict[ShardKey, float]:
    """Return how long each shard took by its nearest receipt of a run that was seen to its end."""
    found: dict[ShardKey, float] = {}
    for field in union.fields:
        for candidate in field.candidates:
            session = candidate.held.receipt.session
            if session.finished and session.witnessed:
                found[field.shard.key] = (session.ended_at - session.started_at).total_seconds()
                break
    return found


def _report(config: Config, key: ShardKey) -> str | None:
    """Return the file that a shard's results are read from, in one spelling."""
    file = config.shard(key).results.file
    return None if file is None else posixpath.normpath(file)


def _need(config: Config, key: ShardKey) -> Need:
    shard = config.shard(key)
    return Need(memory_bytes=shard.memory or 0, gpus=shard.gpus)


def _admission(session: Session, config: Config, todo: Collection[Choice], wait_s: float) -> Admission:
    wants_devices = any(_need(config, choice.shard.key).gpus for choice in todo)
    return Admission(
        env=session.environ,
        memory=memory_now,
        devices=find_devices(session.environ) if wants_devices else None,
        wait_s=wait_s,
        clock=time.monotonic,
    )


def refuse_dirt(session: Session, config: Config, keys: Collection[ShardKey]) -> None:
    """Refuse to begin on a tree that is not the commit's: a night of receipts would count for nothing."""
    paths = sorted({path for key in keys for path in config.shard(key).paths})
    state = work_tree_state(session.repo.git, scope_paths=paths, names=CHAIN_FILES)
    dirt = sorted({*state.changed, *state.untracked})
    if dirt:
        more = f" and {len(dirt) - MAX_NAMED} more" if len(dirt) > MAX_NAMED else ""
        raise UsageError(
            "dirty-start",
            f"the work tree differs from the commit in {', '.join(dirt[:MAX_NAMED])}{more}",
            f"{to_mend_dirt(session.repo, state.changed, state.untracked)}; or put it away: git stash -u",
        )


def _hold_to_its_tree(session: Session, config: Config, result: RunResult, watch: Watch) -> RunResult:
    """Return the result, stopped by `became-dirty` where a receipt of it is dirty and no later start has said so.

    What the last shard left behind is said as well: the next run would refuse to begin.
    """
    if result.stopped is not None:
        return result
    paths = sorted({path for key in result.results for path in config.shard(key).paths})
    state = work_tree_state(session.repo.git, scope_paths=paths, names=CHAIN_FILES)
    receipts = [item.receipt for items in result.results.values() for item in items]
    dirt = {*state.changed, *state.untracked, *(path for one in receipts for path in one.repo.dirty_paths)}
    if not dirt:
        return result
    of_receipts = sorted(dirt - {*state.changed, *state.untracked})
    edited = {*state.changed, *tracked_among(session.repo, of_receipts)}
    error = became_dirty(dirt, to_mend_dirt(session.repo, sorted(edited), sorted(dirt - edited)))
    if any(one.repo.dirty for one in receipts) and not config.policy.allow_dirty:
        return replace(result, stopped=error)
    watch.news(f"{error.message}: the next run won't begin [{error.code}]{suggested(error.hint)}")
    return result


def merge_what_stands(
    session: Session, request: RunRequest, signer: Signer | None, result: RunResult
) -> RunResult:
    """Return the result with the merge of what stands now, or why there is none; what was recorded stays."""
    try:
        merged = merge(
            session,
            result.commit,
            signer,
            user=request.user,
            policy_from=request.policy_from,
            carry=request.carry,
        )
    except LedgerError as error:
        found = plan(session, result.commit, policy_from=request.policy_from, carry=request.carry)
        return replace(result, union=found.union, merge_error=error)
    return replace(result, union=merged.union, merge=merged)
