"""What recording costs: on top of pytest, in a large repository, and in bytes; and what being installed costs."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from bench_tools import PEER_USER, Tools
from figure import Figure, at_most, in_ms, in_s, of_costs
from measure import Cost, in_turns, run
from seed_ours import open_world, record_one
from worlds import FILES, TESTS, World, big, suite

from gitledger.records.envelope import decode_line
from gitledger.records.receipt import ShardReceipt
from gitledger.records.statement import Statement
from gitledger.suites.inject import child_environment

__all__ = ["added", "bytes_stored", "installed", "overhead"]


def overhead(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(a) 10,000 trivial tests: record, the plugin alone, and the peer, each against its own plain pytest."""
    world = suite(tools, tests=10_000, files=100)
    found = in_turns(
        {
            "plain": lambda: _pytest(tools, "plain", world),
            "record": lambda: _record(tools, world, "unit"),
            "plugin": lambda: _with_plugin(tools, world),
            "peer's plain": lambda: _pytest(tools, "peer", world),
            "peer": lambda: _pytest(tools, "peer", world, *_peer_options(tools)),
        },
        rounds,
    )
    plain, peer_plain = found["plain"], found["peer's plain"]
    what = "recording 10,000 trivial tests"
    yield of_costs(
        "a",
        f"{what}, everything included, over plain pytest",
        found["record"],
        plain,
        at_most(1.10),
        ours=in_s(found["record"]),
        other=f"{in_s(plain)} (plain)",
    )
    yield of_costs(
        "a",
        "our plugin alone, over plain pytest",
        found["plugin"],
        plain,
        at_most(1.05),
        ours=in_s(found["plugin"]),
        other=f"{in_s(plain)} (plain)",
    )
    yield of_costs(
        "a",
        f"the peer: {what}, over plain pytest beside it",
        found["peer"],
        peer_plain,
        None,
        ours="–",
        other=f"{in_s(found['peer'])} / {in_s(peer_plain)} (plain)",
    )


def added(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(b) What recording one shard of 100 tests adds in a repository of 50,000 files."""
    world = big(tools)
    world.switch("recording")
    target = "tests/t000"
    narrow = ("--gpu-proof-shard=s000", f"--gpu-proof-shard-fingerprint-paths=src/p000,{target}")
    found = in_turns(
        {
            "plain": lambda: _pytest(tools, "plain", world, target=target),
            "record": lambda: _record(tools, world, "s000"),
            "peer's plain": lambda: _pytest(tools, "peer", world, target=target),
            "peer": lambda: _pytest(tools, "peer", world, *_peer_options(tools), *narrow, target=target),
        },
        rounds,
    )
    (world.path / "gpu-proof.json").unlink()
    ours, peers = found["record"] - found["plain"], found["peer"] - found["peer's plain"]
    yield of_costs(
        "b",
        f"what recording a shard of {TESTS} tests adds among {FILES:,} files",
        ours,
        peers,
        at_most(1 / 3),
        ours=in_ms(ours),
        other=in_ms(peers),
    )


def bytes_stored(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(e) Bytes of a result of 100 tests: our line and its bodies, the peer's receipt; and both compressed."""
    world = suite(tools, tests=TESTS, files=1)
    world.git("update-ref", "-d", "refs/notes/gitledger/records")
    record_one(tools, world, "unit")
    _pytest(tools, "peer", world, *_peer_options(tools), "--gpu-proof-shard=unit")
    view = open_world(world).ledger.view()
    [commit] = view.commits()
    [line] = view.lines(commit)
    receipt = ShardReceipt.decode(Statement.decode(decode_line(line).payload))
    bodies = [view.body(ref.oid) or b"" for ref in receipt.bodies.values()]
    ours = [line, *bodies]
    peer = (world.path / "gpu-proof.json").read_bytes()
    (world.path / "gpu-proof.json").unlink()
    raw, packed = sum(map(len, ours)), sum(len(zlib.compress(part)) for part in ours)
    what = f"bytes of a result of {TESTS} tests (record, results, log)"
    for rest, mine, theirs, goal in (
        (": as git stores them, beside the receipt as it is written", packed, len(peer), at_most(1 / 10)),
        (", both uncompressed", raw, len(peer), None),
        (", both as git would compress them", packed, len(zlib.compress(peer)), None),
    ):
        ratio = mine / theirs
        yield Figure("e", what + rest, f"{mine:,} B", f"{theirs:,} B", ratio, goal=goal)


def installed(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(h) A plain pytest run where git-ledger is installed, against one where it is not."""
    for tests, files, goal in ((10_000, 100, at_most(1.02)), (TESTS, 1, None)):
        world = suite(tools, tests=tests, files=files)
        found = _with_and_without(tools, world, rounds if goal else 4 * rounds)
        yield of_costs(
            "h",
            f"a plain pytest run of {tests:,} tests with git-ledger installed, over one without",
            found["with"],
            found["without"],
            goal,
            ours=in_ms(found["with"]),
            other=f"{in_ms(found['without'])} (without)",
        )


def _with_and_without(tools: Tools, world: World, rounds: int) -> dict[str, Cost]:
    return in_turns(
        {"without": lambda: _pytest(tools, "plain", world), "with": lambda: _pytest(tools, "ours", world)}, rounds
    )


def _pytest(tools: Tools, tool: str, world: World, *options: str, target: str = "tests") -> Cost:
    return run([tools.bin(tool) / "pytest", "-q", target, *options], cwd=world.path, env=tools.env(tool))


def _peer_options(tools: Tools) -> tuple[str, ...]:
    return ("--gpu-proof-enable", f"--gpu-proof-github-user={PEER_USER}", f"--gpu-proof-key={tools.key}")


def _record(tools: Tools, world: World, shard: str) -> Cost:
    command = [tools.bin("ours") / "git-ledger", "record", "--shard", shard]
    return run(command, cwd=world.path, env=tools.env("plain"))


def _with_plugin(tools: Tools, world: World) -> Cost:
    folder = Path(tempfile.mkdtemp(prefix="gitledger-bench-"))
    plugin = folder / "plugin"
    plugin.mkdir()
    env = child_environment(
        tools.env("plain"), journal=folder / "journal", nonce=secrets.token_hex(16), folder=plugin
    )
    try:
        return run([tools.bin("plain") / "pytest", "-q", "tests"], cwd=world.path, env=env)
    finally:
        assert (folder / "journal").stat().st_size > 10_000, "the plugin wrote no journal"
        shutil.rmtree(folder)
