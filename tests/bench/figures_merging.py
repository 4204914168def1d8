"""What it costs to unite a sharded suite: results and coverage, against the peer's merge and coverage's own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench_tools import PEER_USER, Tools
from figure import Figure, at_least, in_s, of_costs
from measure import Cost, in_turns, run
from seed_fragments import source, write_shard
from seed_ours import open_world, signer_of
from worlds import World, wide

from gitledger.manifest.definition import Definition
from gitledger.manifest.resolve import resolve
from gitledger.records.bodies import BodyRef, collection_digest, decode_tests, encode_tests
from gitledger.records.fragments import encode_fragment
from gitledger.records.ids import CommitId, NodeId
from gitledger.records.receipt import ShardReceipt
from gitledger.store.facts import CommitFacts, TreeCache
from gitledger.trust.sign import sign_payload
from gitledger.trust.verified import Verified, open_record
from gitledger.workflows.trusted import read_config

__all__ = ["merge"]

RECORDS = "refs/notes/gitledger/records"
SHARDS = 100
TESTS = 1000
SOURCES = 500


def merge(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(j) Unite 100 shards of 1,000 results and 100 fragments over 500 sources of 200 lines."""
    world = wide(
        tools, shards=SHARDS, sources={f"src/m{number:03}.py": source(number) for number in range(SOURCES)}
    )
    parts = tools.folder / "parts"
    _record_all(tools, world, parts)
    recorded = world.git("rev-parse", RECORDS)
    ours = [tools.bin("ours") / "git-ledger", "merge", "--json"]
    receipts = sorted(parts.glob("s*.json"))
    merged = ["--out", parts / "merged.json", "--github-user", PEER_USER, "--key", tools.key, "--repo", "."]
    peers = [tools.bin("peer") / "gpu-proof", "merge", *receipts, *merged]
    coverage = tools.bin("ours") / "coverage"
    combined = f"--data-file={parts / 'combined'}"
    combine = [coverage, "combine", "--keep", "-q", combined, *sorted(parts.glob("s*.coverage"))]
    report = [coverage, "report", combined, "--fail-under=50"]
    _check_totals(tools, world, ours, [peers, combine], [coverage, "json", combined, "-q", "-o", "-"])
    env = tools.env("ours")
    world.git("update-ref", RECORDS, recorded)

    def merged_once() -> Cost:
        cost = run(ours, cwd=world.path, env=env)
        world.git("update-ref", RECORDS, recorded)  # what one run wrote is no input of the next
        return cost

    found = in_turns(
        {
            "ours": merged_once,
            "peer": lambda: run(peers, cwd=world.path, env=tools.env("peer")),
            "combine": lambda: run(combine, cwd=world.path, env=env),
            "report": lambda: run(report, cwd=world.path, env=env),
        },
        rounds,
    )
    other = Cost(
        sum(found[name].wall_s for name in ("peer", "combine", "report")),
        sum(found[name].cpu_s for name in ("peer", "combine", "report")),
    )
    each = " + ".join(in_s(found[name]) for name in ("peer", "combine", "report"))
    yield of_costs(
        "j",
        f"`merge` of {SHARDS} shards, {SHARDS * TESTS:,} results and {SHARDS} fragments over {SOURCES} sources, "
        "against `gpu-proof merge`, `coverage combine` and `coverage report`: how many times faster",
        other,
        found["ours"],
        at_least(5),
        ours=in_s(found["ours"]),
        other=each,
    )


def _record_all(tools: Tools, world: World, parts: Path) -> None:
    """Record one shard for real, and give every shard a receipt like it, its own results and its own coverage."""
    parts.mkdir(exist_ok=True)
    for ref in (RECORDS, "refs/notes/gitledger/bodies"):
        world.git("update-ref", "-d", ref)
    command = [tools.bin("ours") / "git-ledger", "record", "--shard", "s000"]
    run(command, cwd=world.path, env=tools.env("plain"))
    session = open_world(world)
    head = CommitId(world.git("rev-parse", "HEAD"))
    config, signer, view = read_config(session.repo, head), signer_of(tools), session.ledger.view()
    first = open_record(view.lines(head)[0], commit=head)
    assert isinstance(first, Verified), first
    receipt = ShardReceipt.decode(first.statement)
    (result,) = decode_tests(view.body(receipt.bodies["tests"].oid) or b"")
    facts = CommitFacts(session.repo.objects, receipt.repo.tree, TreeCache(session.repo.objects))
    sources = [f"src/m{number:03}.py" for number in range(SOURCES)]
    lines, bodies, layout = [], [], {}
    for number, key in enumerate(config.shard_keys()):
        ids = [NodeId(f"tests/t{number:03}/test_it.py::test_{test:04}") for test in range(TESTS)]
        layout[key.name] = list(ids)
        fragment = write_shard(number, sources, world.path, parts / f"{key.name}.coverage")
        results = encode_tests([replace(result, node_id=node_id) for node_id in ids])
        body = encode_fragment(fragment)
        definition = Definition.of(config, key)
        digest = collection_digest(ids)
        like = replace(
            receipt,
            shard=replace(receipt.shard, key=key, definition_digest=definition.digest),
            counts=replace(receipt.counts, collected=TESTS, passed=TESTS),
            manifest=replace(
                receipt.manifest, digest=resolve(definition, facts, None).digest_with(()), paths=definition.paths
            ),
            collection=replace(receipt.collection, full_digest=digest, selected_digest=digest, full_count=TESTS),
            session=replace(receipt.session, argv=tuple(config.shards[key.name].command or ())),
            bodies={**receipt.bodies, "tests": BodyRef.of(results), "coverage": BodyRef.of(body)},
        )
        lines.append(sign_payload(like.encode(), signer).encode())
        bodies += [results, body]
    world.git("update-ref", "-d", RECORDS)
    session.ledger.append({head: lines}, bodies, identity=session.repo.identity(session.environ), message="bench")
    world.git("repack", "-adq")
    (parts / "layout").write_text(json.dumps(layout))
    seed = Path(__file__).with_name("seed_peer_parts.py")
    words = [tools.bin("peer") / "python", seed, world.path, parts, tools.key, parts / "layout"]
    run(words, cwd=world.path, env=tools.env("peer"))


def _check_totals(tools: Tools, world: World, ours: list, before: list[list], totals: list) -> None:
    """Both must come to the same number, or their times can't be compared."""
    done = subprocess.run(ours, cwd=world.path, env=tools.env("ours"), capture_output=True, text=True)
    document = json.loads(done.stdout)
    assert document["outcome"] == "passed", done.stdout[:3000]
    for words, tool in zip(before, ("peer", "ours"), strict=True):
        run(words, cwd=world.path, env=tools.env(tool))
    theirs = subprocess.run(totals, cwd=world.path, env=tools.env("ours"), capture_output=True, text=True)
    found = json.loads(theirs.stdout)["totals"]
    assert document["coverage"]["covered"] == found["covered_lines"], (document["coverage"], found)
    assert document["coverage"]["total"] == found["num_statements"]
