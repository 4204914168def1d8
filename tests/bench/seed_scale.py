"""A ledger that is years old: a signed receipt and its results on every commit of a long history.

Made once, by `git fast-import`, in some minutes. Every commit changes what the shard stands on but the newest, which
takes its neighbour's result over.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace

from bench_tools import Tools
from seed_ours import open_world, record_one, signer_of
from worlds import World

from gitledger.records.bodies import BodyRef, TestResult, decode_tests, encode_tests
from gitledger.records.ids import BlobId, CommitId, Digest, TreeId
from gitledger.records.receipt import ShardReceipt
from gitledger.store.encoding import blob_id
from gitledger.store.ledger import BODIES_REF, RECORDS_REF
from gitledger.trust.sign import sign_payload
from gitledger.trust.signer import Signer
from gitledger.trust.verified import Verified, open_record

__all__ = ["RESULTS", "old_ledger"]

RESULTS = 10
"""Test results of one commit."""
_LAYOUT = 2
"""Raised when what is made here changes, so that an older copy is made anew."""
_CONFIG = """\
version: 1
repository: bench
shards:
  unit: {paths: [src, tests], command: pytest -q tests}
policy: {allow_carried: true}
"""
_WHO = "Bench <bench@example.org> 1790000000 +0000"
_TEST = "import pytest\n\n\n@pytest.mark.parametrize('n', range(%d))\ndef test_n(n):\n    assert n >= 0\n"


def old_ledger(tools: Tools, commits: int) -> World:
    """Return a repository of that many commits, each with a receipt of `RESULTS` tests by its signer."""
    world = World(tools.folder / "worlds" / f"old-{commits}", tools.env("ours"))
    stamp = world.path.with_suffix(".made")
    wanted = f"{_LAYOUT} {tools.public_line}"
    if stamp.exists() and stamp.read_text() == wanted:
        return world
    shutil.rmtree(world.path, ignore_errors=True)
    shutil.rmtree(f"{world.path}.git", ignore_errors=True)  # the remote that was made of an older one
    world.path.mkdir(parents=True)
    world.git("init", "-q", "-b", "main")
    # Measuring moves refs back, and a log of that would tell fsck that something was dropped.
    world.git("config", "core.logAllRefUpdates", "false")
    _first_commit(tools, world)
    _import(world, _history(commits))
    world.git("reset", "-q", "--hard")
    record_one(tools, world, "unit")
    _import(world, _notes(tools, world))
    world.git("reflog", "expire", "--expire=now", "--all")
    # As `git gc` packs what lay loose: the deltas of fast-import are what no repository has that people record in.
    world.git("repack", "-adfq")
    stamp.write_text(wanted)
    return world


def _first_commit(tools: Tools, world: World) -> None:
    world.write(".gitledger/config.yaml", _CONFIG)
    world.write(".gitledger/allowed_signers", f'bench@example.org namespaces="gitledger" {tools.public_line}\n')
    world.write("pyproject.toml", "[tool.pytest.ini_options]\n")
    world.write(".gitignore", "__pycache__/\n.pytest_cache/\n")
    world.write("tests/test_n.py", _TEST % RESULTS)
    world.write("src/n.txt", "0\n")
    world.commit("start")


def _history(commits: int) -> Iterator[bytes]:
    """Yield the commits after the first one; the newest but one is where the receipt is that counts."""
    for number in range(1, commits):
        path = "src/n.txt" if number < commits - 1 else "README.md"
        yield b"commit refs/heads/main\ncommitter %s\ndata 1\nn\n" % _WHO.encode()
        if number == 1:
            yield b"from refs/heads/main^0\n"
        text = b"%d\n" % number
        yield b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text)


def _notes(tools: Tools, world: World) -> Iterator[bytes]:
    """Yield the ledger, all of it in one commit of each ref, with the fan-out that we write."""
    session = open_world(world)
    head = CommitId(world.git("rev-parse", "HEAD"))
    view = session.ledger.view()
    opened = open_record(view.lines(head)[0], commit=head)
    assert isinstance(opened, Verified), opened
    receipt = ShardReceipt.decode(opened.statement)
    content = view.body(receipt.bodies["tests"].oid)
    assert content is not None
    results, signer = tuple(decode_tests(content)), signer_of(tools)
    rows = [line.split() for line in world.git("log", "--format=%H %T").splitlines()]
    bodies: list[tuple[BlobId, bytes]] = []
    yield _ref(RECORDS_REF)
    for number, (commit, tree) in enumerate(rows[1:]):
        line, body = _like(receipt, results, signer, number, (CommitId(commit), TreeId(tree)))
        bodies.append((blob_id(body, "sha1"), body))
        yield _note(commit, line + b"\n")
    yield _ref(BODIES_REF)
    for name, ref in receipt.bodies.items():
        if name != "tests":
            bodies.append((ref.oid, view.body(ref.oid) or b""))
    for oid, body in bodies:
        yield _note(oid, body)


def _like(
    receipt: ShardReceipt,
    results: tuple[TestResult, ...],
    signer: Signer,
    number: int,
    where: tuple[CommitId, TreeId],
) -> tuple[bytes, bytes]:
    """Return the receipt of another commit, the neighbour's (0) with the newest one's inputs, and its results."""
    commit, tree = where
    timed = [replace(result, duration_ns=1_000 * (number + at)) for at, result in enumerate(results)]
    body = encode_tests(timed)
    digest = Digest(hashlib.sha256(b"%d" % number).hexdigest())
    claim = replace(
        receipt,
        repo=replace(receipt.repo, commit=commit, tree=tree),
        manifest=receipt.manifest if number == 0 else replace(receipt.manifest, digest=digest),
        bodies={**receipt.bodies, "tests": BodyRef.of(body)},
    )
    return sign_payload(claim.encode(), signer).encode(), body


def _ref(name: str) -> bytes:
    # What the one recorded receipt left is not kept: the newest commit is to take its neighbour's over.
    return b"reset %s\n\ncommit %s\ncommitter %s\ndata 1\nn\n" % (name.encode(), name.encode(), _WHO.encode())


def _note(oid: str, content: bytes) -> bytes:
    path = f"{oid[:2]}/{oid[2:4]}/{oid[4:]}".encode()
    return b"M 100644 inline %s\ndata %d\n%s\n" % (path, len(content), content)


def _import(world: World, stream: Iterator[bytes]) -> None:
    with subprocess.Popen(
        ["git", "fast-import", "--quiet", "--force"], cwd=world.path, env=dict(world.env), stdin=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        child.stdin.writelines(stream)
    if child.returncode:
        raise SystemExit(f"git fast-import -> {child.returncode}")
