"""What one append costs in a ledger that is empty, and in one that is years old; and what it costs to say hello."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator

from bench_tools import Tools
from figure import Figure, at_most, in_ms, of_costs
from measure import Cost, in_turns, run, timed
from seed_ours import open_world
from worlds import World

from gitledger.records.ids import CommitId
from gitledger.store.ledger import BODIES_REF, RECORDS_REF

__all__ = ["append", "start_up"]

ANNOTATED = 20_000
LINE = b'{"payload":"' + b"A" * 3_600 + b'"}'


def append(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(f) One record and its body appended in process, beside 20,000 annotated commits and to an empty ledger."""
    full, empty = _ledger(tools, ANNOTATED), _ledger(tools, 0)
    found = in_turns({"full": lambda: _append(full), "empty": lambda: _append(empty)}, 8 * rounds)
    yield of_costs(
        "f",
        f"one append in process beside {ANNOTATED:,} annotated commits, over one to an empty ledger",
        found["full"],
        found["empty"],
        at_most(2),
        ours=in_ms(found["full"]),
        other=f"{in_ms(found['empty'])} (empty)",
    )


def start_up(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(g) `git-ledger --help` beside `gpu-proof --help`."""
    folder = tools.folder / "home"
    found = in_turns(
        {
            "ours": lambda: run([tools.bin("ours") / "git-ledger", "--help"], cwd=folder, env=tools.env("ours")),
            "peer": lambda: run([tools.bin("peer") / "gpu-proof", "--help"], cwd=folder, env=tools.env("peer")),
        },
        8 * rounds,
    )
    yield of_costs(
        "g",
        "`git-ledger --help`, over `gpu-proof --help`",
        found["ours"],
        found["peer"],
        at_most(3),
        ours=in_ms(found["ours"]),
        other=in_ms(found["peer"]),
    )


def _commit(number: int) -> CommitId:
    return CommitId(hashlib.sha1(b"%d" % number, usedforsecurity=False).hexdigest())


def _ledger(tools: Tools, annotated: int) -> World:
    """Return a repository whose ledger has notes of that many commits, packed as git packs them."""
    world = World(tools.folder / "worlds" / f"ledger-{annotated}", tools.env("ours"))
    if world.path.exists() and (not annotated or world.git("for-each-ref", "refs/base/bodies")):
        return world
    shutil.rmtree(world.path, ignore_errors=True)
    world.path.mkdir(parents=True)
    world.git("init", "-q", "-b", "main")
    session = open_world(world)
    identity = session.repo.identity(session.environ)
    records = {_commit(number): [LINE[:-2] + b'%d"}' % number] for number in range(annotated)}
    bodies = [b"\1%d" % number for number in range(annotated)]
    if annotated:
        session.ledger.append(records, bodies, identity=identity, message="bench")
        world.git("update-ref", "refs/base/records", RECORDS_REF)
        world.git("update-ref", "refs/base/bodies", BODIES_REF)
        world.git("repack", "-adq")
    return world


def _append(world: World) -> Cost:
    """Return the cost of an append to the ledger as it was made, whatever was appended before."""
    bases = world.git("for-each-ref", "--format=%(refname)", "refs/base").split()
    for base, ref in zip(("refs/base/records", "refs/base/bodies"), (RECORDS_REF, BODIES_REF), strict=True):
        world.git("update-ref", ref, base) if base in bases else world.git("update-ref", "-d", ref)
    session = open_world(world)
    identity = session.repo.identity(session.environ)
    new = _commit(ANNOTATED + 1)
    return timed(
        lambda: session.ledger.append({new: [LINE]}, [b"\1body" * 300], identity=identity, message="bench")
    )
