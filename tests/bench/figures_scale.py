"""What a ledger of 100,000 annotated commits and a million test results costs, each beside plain git.

Making it takes some minutes, once. It is packed as `git gc` packs notes that lay loose: as chains of up to some
twenty deltas, where `git fast-import` leaves chains of fifty, each note a delta of the one before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pygit2
from bench_tools import Tools
from figure import Figure, Goal, at_most, in_ms, in_s, of_costs
from measure import Cost, in_turns, run, timed
from seed_ours import open_world
from seed_scale import RESULTS, old_ledger
from worlds import World

from gitledger.records.ids import CommitId
from gitledger.store.late_libgit import LateLibgit
from gitledger.store.ledger import BODIES_REF, RECORDS_REF

__all__ = ["judging", "storing"]

COMMITS = 100_000
LOOKED_UP = 500
LINE = b'{"payload":"' + b"A" * 3_600 + b'"}'
WHAT = f"beside {COMMITS:,} annotated commits"


def storing(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(k) Append, look-up and sync of one record."""
    world = old_ledger(tools, COMMITS)
    remote = _remote(world)
    head = world.git("rev-parse", "HEAD")
    # As it was made: a run that was broken off has left what it appended.
    base = {ref: world.git("rev-list", "--max-parents=0", ref) for ref in (RECORDS_REF, BODIES_REF)}

    def back() -> None:
        for ref, tip in base.items():
            world.git("update-ref", ref, tip)
            remote.git("update-ref", ref, tip)
            world.git("update-ref", f"refs/gitledger/remotes/origin/{ref.rpartition('/')[2]}", tip)

    note = world.path.with_name("line")
    note.write_bytes(LINE + b"\n")
    notes = ["notes", f"--ref={RECORDS_REF}"]

    def appended() -> Cost:
        back()
        session = open_world(world)
        identity = session.repo.identity(session.environ)
        session.ledger.view().lines(CommitId(head))  # whoever appends has the ledger open
        records = {CommitId(head): [LINE]}
        return timed(lambda: session.ledger.append(records, [b"\1body" * 300], identity=identity, message="m"))

    def by_git(*options: str) -> Cost:
        back()
        return run(["git", *options, *notes, "append", "-F", note, "HEAD"], cwd=world.path, env=world.env)

    waiting = ("-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync")
    found = in_turns({"ours": appended, "git": by_git, "waiting": lambda: by_git(*waiting)}, 4 * rounds)
    yield _row("k", f"one record and its body appended in process {WHAT}, over a whole `git notes append`",
               found, at_most(2), in_ms)  # fmt: skip

    waited = {"ours": found["ours"], "git": found["waiting"]}
    yield _row("k", "the same, over a `git notes append` that waits for the disk as we do (`core.fsync=all`)",
               waited, None, in_ms)  # fmt: skip

    ids = random.Random(1).sample(sorted(open_world(world).ledger.commits()), LOOKED_UP)

    def looked_up(read: str) -> Cost:
        session = open_world(world)
        view = session.ledger.view()
        if isinstance(session.repo.objects, LateLibgit):
            session.repo.objects.load()  # as for whoever reads more than a thousand objects
        look: Callable[[CommitId], object] = getattr(view, read)
        return timed(lambda: [look(commit) for commit in ids]) / LOOKED_UP

    def by_libgit2() -> Cost:
        """Look them up as pygit2 does, its own check of what it reads included."""
        pygit2.settings.enable_strict_hash_verification(True)
        try:
            repo = pygit2.Repository(str(world.path))
            repo.lookup_note(ids[0], RECORDS_REF)
            return timed(lambda: [repo.lookup_note(commit, RECORDS_REF).message for commit in ids]) / LOOKED_UP
        finally:
            pygit2.settings.enable_strict_hash_verification(False)

    blobs = [next(iter(open_world(world).ledger.view().notes(commit))) for commit in ids]
    asked = ["sh", "-c", f"printf '%s\\n' {' '.join(blobs)} | git cat-file --batch"]
    found = in_turns(
        {
            "found": lambda: looked_up("notes"),
            "ours": lambda: looked_up("lines"),
            "libgit2": by_libgit2,
            "git": lambda: run(asked, cwd=world.path, env=world.env) / LOOKED_UP,
        },
        rounds,
    )
    yield _row("k", f"one note found in an open view {WHAT}, over reading it by `git cat-file --batch`",
               {"ours": found["found"], "git": found["git"]}, None, in_ms)  # fmt: skip
    yield _row("k", f"one note found and read in an open view {WHAT}, over reading it by `git cat-file --batch`",
               found, None, in_ms)  # fmt: skip
    yield _row("k", f"one note found and read in an open view {WHAT} (the goal is under 0.2 ms), over libgit2's `git_note_read`",
               {"ours": found["ours"], "git": found["libgit2"]}, at_most(1), in_ms, "libgit2")  # fmt: skip

    def synced() -> Cost:
        appended()
        words = [tools.bin("ours") / "git-ledger", "sync", "origin"]
        return run(words, cwd=world.path, env=tools.env("ours"))

    def pushed() -> Cost:
        by_git()
        return run(["git", "push", "-q", "origin", RECORDS_REF], cwd=world.path, env=world.env)

    def pushed_both() -> Cost:
        appended()
        words = ["git", "push", "-q", "--atomic", "origin", RECORDS_REF, BODIES_REF]
        return run(words, cwd=world.path, env=world.env)

    found = in_turns({"ours": synced, "git": pushed, "both": pushed_both}, rounds)
    yield _row("k", f"`sync` of one record and its body {WHAT}, over `git push` of one note",
               found, None, in_ms)  # fmt: skip
    yield _row("k", f"`sync` of one record and its body {WHAT}, over `git push` of the same two refs",
               {"ours": found["ours"], "git": found["both"]}, None, in_ms)  # fmt: skip
    back()


def judging(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(l) Plan, verify and fsck; few turns, since each takes its time."""
    world = old_ledger(tools, COMMITS)
    ours = tools.bin("ours") / "git-ledger"

    def command(*words: str | Path) -> Callable[[], Cost]:
        return lambda: run(list(words), cwd=world.path, env=tools.env("ours"))

    counted = command("git", "rev-list", "--count", "HEAD")
    for kept in (world.path / ".git" / "gitledger").glob("marks-*"):
        kept.unlink()
    yield _row("l", f"the first `plan` in a clone {WHAT}, over `git rev-list --count`, once",
               {"ours": command(ours, "plan")(), "git": counted()}, None, in_s)  # fmt: skip
    for verb in ("plan", "verify"):
        found = in_turns({"ours": command(ours, verb), "git": counted}, min(rounds, 2))
        yield _row("l", f"`{verb}` {WHAT}, all of them seen before, over `git rev-list --count` (a second more is the goal)",
                   found, None, in_s)  # fmt: skip
    found = {"ours": command(ours, "fsck")(), "git": command("git", "fsck", "--strict")()}
    yield _row("l", f"`fsck` of {COMMITS:,} records and {COMMITS * RESULTS:,} test results, over `git fsck`, once",
               found, None, in_s)  # fmt: skip


def _row(
    letter: str,
    what: str,
    found: dict[str, Cost],
    goal: Goal | None,
    shown: Callable[[Cost], str],
    beside: str = "git",
) -> Figure:
    other = f"{shown(found['git'])} ({beside})"
    return of_costs(letter, what, found["ours"], found["git"], goal, ours=shown(found["ours"]), other=other)


def _remote(world: World) -> World:
    """Return a bare remote that has the whole ledger."""
    remote = World(world.path.with_name(f"{world.path.name}.git"), world.env)
    if not remote.path.exists():
        remote.path.mkdir()
        remote.git("init", "-q", "--bare")
        world.git("remote", "add", "origin", str(remote.path))
        world.git("push", "-q", "origin", "main", RECORDS_REF, BODIES_REF)
    return remote
