"""What `run` takes beyond the time that its shards take: a hundred shards of one second, two at a time."""

from __future__ import annotations

from collections.abc import Iterator

from bench_tools import Tools
from figure import Figure, at_most
from measure import run
from worlds import World

__all__ = ["running"]

SHARDS, JOBS, SECONDS = 100, 2, 1


def running(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(n) `run --jobs 2` on 100 shards of one second, start, records and merge included, over the ideal of 50 s.

    Once: it takes a minute, and nothing else should run on the machine meanwhile.
    """
    world = _sleepers(tools)
    world.git("commit", "-q", "--allow-empty", "-m", "anew")
    for ref in ("records", "bodies"):
        world.git("update-ref", "-d", f"refs/notes/gitledger/{ref}")
    command = [tools.bin("ours") / "git-ledger", "run", "--jobs", str(JOBS)]
    cost = run(command, cwd=world.path, env=tools.env("plain"))
    ideal_s = SHARDS * SECONDS / JOBS
    what = f"`run --jobs {JOBS}` on {SHARDS} shards of {SECONDS} s, start and merge included, over the ideal"
    yield Figure(
        "n", what, f"{cost.wall_s:.1f} s", f"{ideal_s:.0f} s (ideal)", cost.wall_s / ideal_s, goal=at_most(1.15)
    )


def _sleepers(tools: Tools) -> World:
    world = World(tools.folder / "worlds" / f"sleepers-{SHARDS}", tools.env("plain"))
    if not (world.path / ".git").exists():
        world.path.mkdir(parents=True)
        world.git("init", "-q", "-b", "main")
    shards = "".join(
        f"  s{number:03}: {{paths: [src], command: sleep {SECONDS}, results: exit-status}}\n"
        for number in range(SHARDS)
    )
    world.write("src/a", "1\n")
    world.write(".gitledger/config.yaml", f"version: 1\nrepository: bench\nshards:\n{shards}")
    world.write(".gitledger/allowed_signers", f'bench@example.org namespaces="gitledger" {tools.public_line}\n')
    world.commit("start")
    return world
