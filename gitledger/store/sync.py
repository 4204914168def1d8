"""Sync with one remote: fetch, unite, publish, and fold in what others left beside the notes.

A push that loses its race lands at the next try in a ref of its own, the remote's inbox, where no two writers meet
(DESIGN section 2); any later sync folds it into the notes and deletes it by its expected id.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from gitledger.dataclass import dataclass, replace
from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, CommitId
from gitledger.store.claims import bodies_of
from gitledger.store.inbox import PARTS, By, inbox_commit, is_inbox, own_inbox
from gitledger.store.late_libgit import loading
from gitledger.store.ledger import Ledger, Retry
from gitledger.store.leftovers import sweep_objects
from gitledger.store.notes_tree import NotesTrees
from gitledger.store.objects import RefUpdate
from gitledger.store.refs import BODIES_REF, INBOX_PREFIX, RECORDS_REF, Tips, roots_of, tracking_prefix, tree_of
from gitledger.store.remote import Answer, Remote, not_published, was_broken_off
from gitledger.store.repository import Repository
from gitledger.store.seen_at import last_sight, note_sight, pushes_apart

__all__ = ["NETWORK_RETRY", "NETWORK_TIMEOUT_S", "PublishResult", "Sync", "fetch", "publish"]

NETWORK_TIMEOUT_S = 300.0
"""How long one sync may take, in seconds."""
NETWORK_RETRY = Retry(budget_s=10.0, first_s=0.05, longest_s=2.0)
"""How often a lost race is tried again: some ten times."""

_FINAL = frozenset({0, 128})
_FEW = 1_000
"""How many notes and bodies make an inbox commit of their own; of more, all that is here is as soon sent."""
Via = Literal["notes", "inbox", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishResult:
    """What a publication came to: how much the remote lacked, and where it went.

    `via` is `nothing` where the remote had it all. `folded` counts inbox refs that were folded into the notes and
    may go; `attempts` the pushes that it took.
    """

    remote: str
    via: Via
    lines: int
    bodies: int
    folded: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """One clone and one remote; `by` gives author and message of the notes commits that uniting makes, if any."""

    repository: Repository
    ledger: Ledger
    remote: str
    by: By
    retry: Retry = NETWORK_RETRY
    token: Callable[[], str] = lambda: os.urandom(16).hex()
    timeout_s: float = NETWORK_TIMEOUT_S
    interactive: bool = False
    """Whether git and ssh may ask on the terminal."""
    push_first: bool = False
    """Whether to push at once what the remote lacked when last seen, and to look only where that is refused.

    One connection instead of two; what others have published since is not taken up then. Not of a remote that was
    another place when it was last seen: there the look comes first.
    """

    def connect(self) -> Remote:
        """Return the remote, with the time for all of this sync running."""
        git = replace(self.repository.git, interactive=self.interactive)
        return Remote(git, self.remote, time.monotonic() + self.timeout_s)

    def unite(self, tips: Tips) -> Tips:
        """Fold tips into the local refs, and return those that could not be."""
        return self.ledger.unite_into_local(tips, by=self.by)


def fetch(sync: Sync) -> None:
    """Bring the tracking refs up to the remote's ledger; refs/notes are not touched.

    Except where the remote went back behind what it once had: that is kept in the local refs, since the ledger
    only grows. A full clone stays unshallow. Raises `StoreError` `fetch-failed`.
    """
    objects = sync.repository.objects
    before = sync.ledger.tracking_tips(sync.remote)
    _fetch(sync, sync.connect(), "fetch-failed")
    _drop_garbage(sync)
    after = sync.ledger.tracking_tips(sync.remote)
    kept = Tips(
        records=_not_within(sync.repository, before.records, after.records),
        bodies=_not_within(sync.repository, before.bodies, after.bodies),
        inbox=frozenset(tip for tip in before.inbox - after.inbox if is_inbox(objects, tip)),
    )
    if kept != Tips():
        sync.unite(kept)


def publish(sync: Sync) -> PublishResult:
    """Unite with the remote and publish what it lacks: afterwards both hold the union.

    A lost race is tried again, first beside the notes and then on them, with pauses that grow, a bounded number of
    times. Raises `StoreError` `publish-failed`: at once where authentication or the network fails or a hook says
    no, and when all tries are lost. Nothing is lost locally then; the next call publishes the backlog.
    """
    remote = sync.connect()
    sweep_objects(sync.repository.common_dir)
    try:
        return _publish(sync, remote)
    except StoreError as error:
        if error.code == "git-timeout":
            raise not_published(sync.remote, error.message) from error
        raise


def _publish(sync: Sync, remote: Remote) -> PublishResult:
    said = "no try was made"
    sight = last_sight(sync.repository, sync.remote)
    is_elsewhere = sight is not None and sight.is_elsewhere
    # What a fetch tells says nothing of another place to push to.
    anew = is_elsewhere and pushes_apart(sync.repository, sync.remote)
    for tries in sync.retry.attempts():
        beside = tries == 1
        if tries == 0 and sync.push_first and not is_elsewhere:
            _unite_tracking(sync)
            folded: Mapping[str, CommitId] = {}  # their refs are another connection's, of a sync that has the time
        elif not beside:
            folded = _gather(sync, remote)
        gap = _Gap.measure(sync, anew=anew)
        if gap.is_closed:
            _clear(sync, remote, folded)
            return gap.result(sync, "nothing", len(folded), tries)
        if beside and not gap.is_ours:
            return gap.result(sync, "nothing", 0, tries)
        refs = _inbox_commit(sync, gap) if beside else gap.refs
        with loading(sync.repository.objects):
            answer, done = remote.push(refs)
        if answer is Answer.DONE:
            _track(sync, refs, gap.tracked)
            note_sight(sync.repository, sync.remote, fetched=False)
            if beside:
                return gap.result(sync, "inbox", 0, tries + 1)
            _clear(sync, remote, folded)
            return gap.result(sync, "notes", len(folded), tries + 1)
        said = f"{done.reason} (try {tries + 1})"
        is_final = answer is Answer.FAILED and not was_broken_off(done)
        if is_final or (answer is Answer.REFUSED and not beside):
            break
    raise not_published(sync.remote, said)


# --- before the push -------------------------------------------------------------------------------------------


def _gather(sync: Sync, remote: Remote) -> Mapping[str, CommitId]:
    """Unite everything known of the remote into the local refs, and return the inbox refs that were folded.

    What was fetched before comes first: should the remote have gone back meanwhile, it would be gone.
    """
    objects, prefix = sync.repository.objects, tracking_prefix(sync.remote)
    folded = _unite_tracking(sync)
    known = objects.list_refs(prefix)
    _fetch(sync, remote, "publish-failed")
    return folded if objects.list_refs(prefix) == known else _unite_tracking(sync)


def _unite_tracking(sync: Sync) -> Mapping[str, CommitId]:
    objects = sync.repository.objects
    prefix = tracking_prefix(sync.remote) + "inbox/"
    _drop_garbage(sync)
    theirs = objects.list_refs(prefix)
    own = own_inbox(objects)
    notes = sync.ledger.tracking_tips(sync.remote)
    inbox = frozenset([*theirs.values(), *own.values()])
    left = sync.unite(Tips(records=notes.records, bodies=notes.bodies, inbox=inbox)).inbox
    sync.ledger.forget_inbox({name: tip for name, tip in own.items() if tip not in left})
    return {INBOX_PREFIX + name.removeprefix(prefix): tip for name, tip in theirs.items() if tip not in left}


def _fetch(sync: Sync, remote: Remote, code: str) -> None:
    """Fetch; a tracking ref that another process holds locked is waited for, and a broken connection made anew."""
    for _ in sync.retry.attempts():
        done = remote.fetch()
        if done.status in _FINAL and not was_broken_off(done):
            break
    if done.status:
        if code == "publish-failed":
            raise not_published(sync.remote, done.reason)
        raise done.failure(code, f"check that {sync.remote} can be reached: git ls-remote {sync.remote}")
    note_sight(sync.repository, sync.remote, fetched=True)


def _drop_garbage(sync: Sync) -> None:
    """Forget fetched inbox refs that hold no ledger: whoever put them at the remote blocks nobody here."""
    for name, tip in sync.repository.objects.list_refs(tracking_prefix(sync.remote) + "inbox/").items():
        if not is_inbox(sync.repository.objects, tip):
            _move(sync, RefUpdate(name, tip, None))


def _not_within(
    repository: Repository, before: frozenset[CommitId], after: frozenset[CommitId]
) -> frozenset[CommitId]:
    """Return the tips of `before` that no tip of `after` descends from."""
    known = {tip for new in after for tip in repository.distances(new, before)}
    return before - known


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """What this clone has and the remote lacks, as far as its tracking refs (`tracked`) tell."""

    refs: Mapping[str, CommitId]
    tracked: Mapping[str, CommitId | None]
    lines: Mapping[CommitId, tuple[bytes, ...]]
    bodies: Sequence[BlobId]

    @property
    def is_closed(self) -> bool:
        """Whether the remote's notes hold everything already."""
        return not self.refs

    @property
    def is_ours(self) -> bool:
        """Whether something in it isn't at the remote at all, not even in an inbox."""
        return bool(self.lines or self.bodies)

    @classmethod
    def measure(cls, sync: Sync, *, anew: bool) -> _Gap:
        """Return the gap as it is now; bodies are read last, since they are in place before their records.

        `anew`: all is to be pushed, since the tracking refs tell of another place.
        """
        objects, prefix = sync.repository.objects, tracking_prefix(sync.remote)
        own = {ref: objects.read_ref(ref) for ref in (RECORDS_REF, BODIES_REF)}
        tracked = {ref: objects.read_ref(prefix + ref.rpartition("/")[2]) for ref in own}
        trees = {tip: tree_of(objects, tip) for tip in (*own.values(), *tracked.values()) if tip is not None}
        refs = {
            ref: tip
            for ref, tip in own.items()
            if tip and (anew or trees[tip] != trees.get(tracked[ref] or CommitId("")))
        }
        lines = sync.ledger.local_only(sync.remote)
        return cls(refs=refs, tracked=tracked, lines=lines, bodies=_bodies_beyond(sync))

    def result(self, sync: Sync, via: Via, folded: int, attempts: int) -> PublishResult:
        """Return what came of it."""
        lines = sum(map(len, self.lines.values()))
        return PublishResult(
            remote=sync.remote, via=via, lines=lines, bodies=len(self.bodies), folded=folded, attempts=attempts
        )


def _bodies_beyond(sync: Sync) -> list[BlobId]:
    objects = sync.repository.objects
    own = roots_of(objects, sync.ledger.local_tips()).bodies
    theirs = roots_of(objects, sync.ledger.tracking_tips(sync.remote)).bodies
    trees = NotesTrees(objects)
    beyond = (BlobId(oid) for oid, blobs in trees.beyond(own, theirs, bodies_of).items() if oid in blobs)
    return [oid for oid in beyond if not any(trees.find(root, oid) for root in theirs)]


def _inbox_commit(sync: Sync, gap: _Gap) -> Mapping[str, CommitId]:
    """Return a new inbox ref and its commit, without history: what the remote lacks, and where that is much, all.

    A server looks through all that is reachable from what it is sent without history: the less that is, the sooner
    it answers.
    """
    ref = INBOX_PREFIX + sync.token()
    if len(gap.lines) + len(gap.bodies) <= _FEW:
        with contextlib.suppress(StoreError):  # such as a note over its limits, which is published as it is
            return {ref: sync.ledger.apart(gap.lines, gap.bodies, by=sync.by)}
    objects = sync.repository.objects
    tips = {part: objects.read_ref(ref) for part, ref in PARTS.items()}
    trees = {part: tree_of(objects, tip) for part, tip in tips.items() if tip is not None}
    return {ref: inbox_commit(objects, trees, sync.by)}


# --- after the push --------------------------------------------------------------------------------------------


def _track(sync: Sync, pushed: Mapping[str, CommitId], before: Mapping[str, CommitId | None]) -> None:
    """Let the tracking refs say what the remote has now, unless somebody fetched meanwhile, who knows better."""
    for name, commit in pushed.items():
        _move(sync, RefUpdate(_tracking_name(sync, name), before.get(name), commit))


def _clear(sync: Sync, remote: Remote, folded: Mapping[str, CommitId]) -> None:
    """Delete inbox refs that the remote's notes hold by now, there and here; failing that, the next sync will."""
    if folded:
        with contextlib.suppress(StoreError):
            remote.delete(folded)
    for name, tip in folded.items():
        _move(sync, RefUpdate(_tracking_name(sync, name), tip, None))


def _tracking_name(sync: Sync, ref: str) -> str:
    below = "inbox/" + ref.removeprefix(INBOX_PREFIX) if ref.startswith(INBOX_PREFIX) else ref.rpartition("/")[2]
    return tracking_prefix(sync.remote) + below


def _move(sync: Sync, update: RefUpdate) -> None:
    """Move a tracking ref; a lock or a lost race leaves it to the next fetch, and is no failure to publish."""
    with contextlib.suppress(StoreError):
        sync.repository.objects.update_refs([update])
