"""A ledger of many shards: one that was really recorded, and as many like it, each with its own inputs and tests."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench_tools import Tools
from worlds import World

from gitledger.config.schema import Config
from gitledger.manifest.definition import Definition
from gitledger.manifest.resolve import resolve
from gitledger.records.bodies import BodyRef, collection_digest, decode_tests, encode_tests
from gitledger.records.ids import CommitId, NodeId, ShardKey
from gitledger.records.receipt import ShardReceipt
from gitledger.store.facts import CommitFacts, TreeCache
from gitledger.trust.find_key import KeyChoice
from gitledger.trust.open_signer import open_signer
from gitledger.trust.sign import sign_payload
from gitledger.trust.signer import Signer
from gitledger.trust.verified import Verified, open_record
from gitledger.workflows.session import Session, open_session
from gitledger.workflows.trusted import read_config

__all__ = ["open_world", "record_one", "record_the_rest", "signer_of"]


def open_world(world: World) -> Session:
    """Return a session of the repository."""
    home = Path(world.env["HOME"])
    return open_session(world.path, environ=world.env, home=home, now=lambda: datetime.now(UTC))


def signer_of(tools: Tools) -> Signer:
    """Return the one who signs everything here."""
    choice = KeyChoice(origin="bench", path=tools.key)
    return open_signer(choice, environ=tools.env("ours"))


def record_one(tools: Tools, world: World, shard: str) -> None:
    """Record a shard at HEAD, as anybody would."""
    program = tools.bin("ours") / "git-ledger"
    command = [str(program), "record", "--shard", shard]
    done = subprocess.run(command, cwd=world.path, env=tools.env("plain"), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"record --shard {shard} -> {done.returncode}\n{done.stdout}\n{done.stderr}")


def record_the_rest(tools: Tools, world: World) -> None:
    """Record shard s000 at HEAD, and give every other shard a receipt that differs as much as it must."""
    for ref in ("refs/notes/gitledger/records", "refs/notes/gitledger/bodies"):
        world.git("update-ref", "-d", ref)
    record_one(tools, world, "s000")
    session = open_world(world)
    head = CommitId(world.git("rev-parse", "HEAD"))
    config = read_config(session.repo, head)
    signer = signer_of(tools)
    view = session.ledger.view()
    first = open_record(view.lines(head)[0], commit=head)
    assert isinstance(first, Verified), first
    receipt = ShardReceipt.decode(first.statement)
    results = view.body(receipt.bodies["tests"].oid)
    assert results is not None
    facts = CommitFacts(session.repo.objects, receipt.repo.tree, TreeCache(session.repo.objects))
    lines, bodies = [], []
    for key in config.shard_keys():
        if key.name != "s000":
            like, body = _like(receipt, results, config, key, facts)
            lines.append(sign_payload(like.encode(), signer).encode())
            bodies.append(body)
    identity = session.repo.identity(session.environ)
    session.ledger.append({head: lines}, bodies, identity=identity, message="bench")
    world.git("repack", "-adq")


def _like(
    receipt: ShardReceipt, results: bytes, config: Config, key: ShardKey, facts: CommitFacts
) -> tuple[ShardReceipt, bytes]:
    """Return the receipt that the shard's own run would have left, and its body of results."""
    definition = Definition.of(config, key)
    manifest = resolve(definition, facts, None)
    number = key.name[1:]
    tests = [
        replace(
            result, node_id=NodeId(result.node_id.replace("t000", f"t{number}").replace("_000_", f"_{number}_"))
        )
        for result in decode_tests(results)
    ]
    body = encode_tests(tests)
    ids = collection_digest([test.node_id for test in tests])
    return replace(
        receipt,
        shard=replace(receipt.shard, key=key, definition_digest=definition.digest),
        manifest=replace(receipt.manifest, digest=manifest.digest_with(()), paths=definition.paths),
        collection=replace(receipt.collection, full_digest=ids, selected_digest=ids),
        session=replace(
            receipt.session, argv=tuple(word.replace("t000", f"t{number}") for word in receipt.session.argv)
        ),
        bodies={**receipt.bodies, "tests": BodyRef.of(body)},
    ), body
