"""What plan and verify cost among many files and shards, and what one signature costs."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench_tools import PEER_USER, Tools
from figure import Figure, at_least, in_ms, of_costs
from measure import Cost, in_turns, run, timed
from seed_ours import open_world, record_one, record_the_rest
from worlds import CHANGED, FILES, SHARDS, TESTS, World, big, shard_paths, suite

from gitledger.records.envelope import PAYLOAD_TYPE, decode_line, pae
from gitledger.records.ids import CommitId
from gitledger.trust.signers import Signers
from gitledger.trust.verified import Verified, check_sshsig, open_record

__all__ = ["plan", "signature", "verify"]

Words = Sequence[str | Path]
WORDS = {"own": "", "shared": ", where shards share paths"}


def plan(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(c) Plan one commit after all shards were recorded, some of their inputs edited."""
    for branch, bound in (("own", 7.0), ("shared", 30.0)):
        world, receipt = _recorded(tools, branch)
        world.switch(f"{branch}-next")
        ours = [tools.bin("ours") / "git-ledger", "plan", "--json"]
        peers = [tools.bin("peer") / "gpu-proof", "plan", "--receipt", receipt, "--repo", ".", "--json"]
        for command, tool in ((ours, "ours"), (peers, "peer")):
            _check_plan(tools, world, [str(word) for word in command], tool)
        found = _both(tools, world, rounds, ours, (peers, "peer"), first=True)
        for name, what, goal in (
            ("ours", "", at_least(bound)),
            ("first", ", the first one in a clone, of which nothing is kept", None),
        ):
            yield of_costs(
                "c",
                f"`plan` over {FILES:,} files and {SHARDS} shards{WORDS[branch]}{what}: how many times faster",
                found["peer"],
                found[name],
                goal,
                ours=in_ms(found[name]),
                other=in_ms(found["peer"]),
            )


def verify(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(d) Verify the commit that all shards were recorded on."""
    policy = tools.folder / "policy.json"
    policy.write_text(json.dumps({"signer_mode": "restricted", "allowed_signers": [PEER_USER]}))
    for branch, bound in (("own", 5.0), ("shared", 15.0)):
        world, receipt = _recorded(tools, branch)
        world.switch(branch)
        ours = [tools.bin("ours") / "git-ledger", "verify"]
        peers = [
            tools.bin("peer") / "gpu-proof",
            "verify",
            "--receipt",
            receipt,
            "--repo",
            ".",
            "--policy",
            policy,
        ]
        found = _both(tools, world, rounds, ours, (peers, "forge"))
        yield of_costs(
            "d",
            f"`verify` over {FILES:,} files, {SHARDS} shards, {SHARDS * TESTS:,} tests{WORDS[branch]}: "
            "how many times faster",
            found["peer"],
            found["ours"],
            at_least(bound),
            ours=in_ms(found["ours"]),
            other=in_ms(found["peer"]),
        )


def signature(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(i) One record verified in process, against one run of ssh-keygen: the same work, and decoding on top."""
    world = suite(tools, tests=TESTS, files=1)
    world.git("update-ref", "-d", "refs/notes/gitledger/records")
    record_one(tools, world, "unit")
    head = CommitId(world.git("rev-parse", "HEAD"))
    [line] = open_world(world).ledger.lines(head)
    envelope = decode_line(line)
    message, sig, signers = (tools.folder / name for name in ("message", "message.sig", "signers"))
    message.write_bytes(pae(PAYLOAD_TYPE, envelope.payload))
    text = json.loads(line)["signatures"][0]["sig"]
    sig.write_text(f"-----BEGIN SSH SIGNATURE-----\n{text}\n-----END SSH SIGNATURE-----\n")
    signers.write_text((world.path / ".gitledger" / "allowed_signers").read_text())
    words = ["ssh-keygen", "-q", "-Y", "verify", "-f", str(signers), "-I", "bench@example.org"]
    script = ["sh", "-c", 'exec "$@" < "$0"', str(message), *words, "-n", "gitledger", "-s", str(sig)]
    count = 25  # about as long as one run of ssh-keygen: the least of long spells is never an undisturbed one

    named = Signers.parse(signers.read_bytes())
    now = datetime.now(UTC)

    def checked() -> None:
        for _ in range(count):
            key, _ = check_sshsig(base64.b64decode(text), pae(PAYLOAD_TYPE, envelope.payload))
            assert named.speaks_for(key, "bench@example.org", now)

    def opened() -> None:
        for _ in range(count):
            assert isinstance(open_record(line, commit=head), Verified)

    found = in_turns(
        {
            "checked": lambda: timed(checked) / count,
            "opened": lambda: timed(opened) / count,
            "other": lambda: run(script, cwd=world.path, env=world.env),
        },
        4 * rounds,
    )
    for name, what, goal in (
        ("checked", "one record's signature and signer verified in process", at_least(40)),
        ("opened", "one record's signature verified, and its envelope, JSON and statement decoded strictly", None),
    ):
        yield of_costs(
            "i",
            f"{what}, against one `ssh-keygen -Y verify`, which does the former: how many times faster",
            found["other"],
            found[name],
            goal,
            ours=in_ms(found[name]),
            other=f"{in_ms(found['other'])} (ssh-keygen)",
        )


def _both(
    tools: Tools, world: World, rounds: int, ours: Words, peers: tuple[Words, str], *, first: bool = False
) -> dict[str, Cost]:
    """Return the costs of our command and of the peer's, in its environment; of ours too where nothing was kept."""
    words, tool = peers
    tasks = {
        "ours": lambda: run(ours, cwd=world.path, env=tools.env("ours")),
        "peer": lambda: run(words, cwd=world.path, env=tools.env(tool)),
    }
    if first:
        tasks["first"] = lambda: _as_the_first(tools, world, ours)
    return in_turns(tasks, rounds)


def _as_the_first(tools: Tools, world: World, ours: Words) -> Cost:
    """Return the cost of our command in a clone that has kept nothing of an earlier one."""
    for kept in (world.path / ".git" / "gitledger").glob("*-[0-9]*"):
        kept.unlink()
    return run(ours, cwd=world.path, env=tools.env("ours"))


def _recorded(tools: Tools, branch: str) -> tuple[World, Path]:
    """Return the big repository at `branch`, all shards recorded there by both, and the peer's receipt."""
    world = big(tools)
    receipt = tools.folder / f"{branch}.json"
    marker = world.path.with_name(f"recorded-{branch}")
    held = world.path / ".git" / "recorded" / branch
    world.switch(branch)
    if not held.exists() or not receipt.exists():
        record_the_rest(tools, world)
        marker.write_text(json.dumps(_layout(branch)))
        seed = Path(__file__).with_name("seed_peer.py")
        command = [tools.bin("peer") / "python", seed, world.path, receipt, tools.key, marker]
        run(command, cwd=world.path, env=tools.env("peer"))
    return world, receipt


def _layout(branch: str) -> dict[str, dict[str, list[str]]]:
    return {
        f"s{shard:03}": {
            "paths": shard_paths(branch, shard),
            "node_ids": [
                f"tests/t{shard:03}/test_t{shard:03}.py::test_{shard:03}_{case:03}" for case in range(TESTS)
            ],
        }
        for shard in range(SHARDS)
    }


def _check_plan(tools: Tools, world: World, command: list[str], tool: str) -> None:
    """Both must come to the same plan, or their times can't be compared."""
    done = subprocess.run(command, cwd=world.path, env=tools.env(tool), capture_output=True, text=True)
    verdicts = [shard["verdict"] for shard in json.loads(done.stdout)["shards"]]
    counts = {verdict: verdicts.count(verdict) for verdict in verdicts}
    if counts != {"carryable": SHARDS - CHANGED, "stale": CHANGED}:
        raise SystemExit(
            f"{' '.join(command)}: expected {CHANGED} stale of {SHARDS}, found {counts}\n{done.stderr}"
        )
