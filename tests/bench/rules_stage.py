"""A small repository in which both tools have recorded the same two shards, and ways to bring it into a situation."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bench_tools import PEER_USER, Tools
from seed_ours import open_world, signer_of
from worlds import World

from gitledger.records.bodies import BodyRef, TestResult, collection_digest, decode_tests, encode_tests
from gitledger.records.ids import CommitId
from gitledger.records.outcomes import Counts
from gitledger.records.receipt import ShardReceipt
from gitledger.store.ledger import RECORDS_REF
from gitledger.trust.sign import sign_payload
from gitledger.trust.verified import Verified, open_record

__all__ = ["Situation", "Stage", "Stages", "at"]

Json = dict[str, Any]
FILES = {
    "src/a.py": "VALUE = 1\n",
    "src/b.py": "VALUE = 2\n",
    "tests/a/test_a.py": "import pytest\n\n\n@pytest.mark.gpu_proof\ndef test_a():\n    pass\n",
    "tests/b/test_b.py": "import pytest\n\n\n@pytest.mark.gpu_proof\ndef test_b():\n    pass\n",
    "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["gpu_proof: for the peer"]\n',
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
}
SHARDS = {name: [f"src/{name}.py", f"tests/{name}"] for name in ("a", "b")}
PEER_POLICY: Json = {"signer_mode": "restricted", "allowed_signers": [PEER_USER]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One rule in one situation. `ours` and `peer` play it and tell whether the tool took the evidence."""

    area: str
    rule: str
    ours: Callable[[Stage], bool]
    peer: Callable[[Stage], bool]
    policy: str = "{}"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """A copy of the repository, for one tool and one situation."""

    tools: Tools
    world: World
    reasons: list[str] = field(default_factory=list)
    """Why our last judgement said no: the codes of its findings that block, and of records that it ignored."""

    # --- both ---

    def commit(self, **files: str) -> str:
        """Commit files, given by their path with `__` for `/` and `_py` for `.py`."""
        for name, text in files.items():
            self.world.write(name.replace("__", "/").replace("_py", ".py"), text)
        return self.world.commit("change")

    def run(self, tool: str, words: Sequence[str | Path], **env: str) -> bool:
        """Run a program and tell whether it ended with 0; 1, and 2 where it could not judge, are a no."""
        command = [str(self.tools.bin("ours" if tool == "ours" else "peer") / words[0]), *map(str, words[1:])]
        base = self.tools.env("plain" if tool == "ours" else "forge") | env
        if tool == "ours":
            base["PATH"] = f"{self.tools.bin('plain')}:{base['PATH']}"
        done = subprocess.run(command, cwd=self.world.path, env=base, capture_output=True, text=True)
        with (self.world.path.parent / "rules.log").open("a") as log:
            log.write(f"$ {' '.join(command)} -> {done.returncode}\n{done.stdout}{done.stderr}\n")
        if "Traceback" in done.stderr and tool == "ours":
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
        if "--json" in words:
            self.reasons[:] = _reasons(json.loads(done.stdout))
        return done.returncode == 0

    # --- ours ---

    def record(self, shard: str, *options: str, command: Sequence[str] = (), **env: str) -> bool:
        words = ["git-ledger", "record", "--shard", shard, *options, *(["--", *command] if command else [])]
        return self.run("ours", words, **env)

    def merge(self, *options: str, **env: str) -> bool:
        return self.run("ours", ["git-ledger", "merge", "--json", *options], **env)

    def verify(self, *options: str) -> bool:
        return self.run("ours", ["git-ledger", "verify", "--json", *options])

    def rewrite(
        self,
        shard: str,
        change: Callable[[ShardReceipt], ShardReceipt] = lambda receipt: receipt,
        results: Callable[[Sequence[TestResult]], Sequence[TestResult]] | None = None,
    ) -> None:
        """Put another receipt, signed by the same key, in the place of a shard's: as if the run had been that."""
        session = open_world(self.world)
        view = session.ledger.view()
        records: dict[CommitId, list[bytes]] = {}
        bodies = []
        for commit in view.commits():
            records[commit] = []
            for line in view.lines(commit):
                receipt = _shard_receipt(line, commit)
                if receipt is None or receipt.key.name != shard:
                    records[commit].append(line)
                    continue
                body = view.body(receipt.bodies["tests"].oid)
                if results is not None and body is not None:
                    receipt, body = _with_results(receipt, results(decode_tests(body)))
                    bodies.append(body)
                payload = change(receipt).encode()
                records[commit].append(sign_payload(payload, signer_of(self.tools)).encode())
        self._replace(records, bodies)

    def tamper(self, shard: str) -> None:
        """Edit what a shard's receipt says without signing it anew."""
        records: dict[CommitId, list[bytes]] = {}
        view = open_world(self.world).ledger.view()
        for commit in view.commits():
            records[commit] = []
            for line in view.lines(commit):
                receipt = _shard_receipt(line, commit)
                document = json.loads(line)
                if receipt is not None and receipt.key.name == shard:
                    payload = base64.b64decode(document["payload"]).replace(b'"attempt":1', b'"attempt":7')
                    document["payload"] = base64.b64encode(payload).decode()
                records[commit].append(json.dumps(document, separators=(",", ":")).encode())
        self._replace(records, [])

    def _replace(self, records: Mapping[CommitId, Sequence[bytes]], bodies: Sequence[bytes]) -> None:
        self.world.git("update-ref", "-d", RECORDS_REF)
        session = open_world(self.world)
        identity = session.repo.identity(session.environ)
        session.ledger.append(records, bodies, identity=identity, message="rewritten")

    # --- the peer ---

    @property
    def receipts(self) -> Path:
        return self.world.path / ".git" / "peer"

    def peer_record(self, shard: str, *options: str, out: str = "") -> bool:
        narrow = ",".join(SHARDS[shard])
        words = ["pytest", "-q", f"tests/{shard}", "--gpu-proof-enable", f"--gpu-proof-shard={shard}"]
        given = [f"--gpu-proof-shard-fingerprint-paths={narrow}", f"--gpu-proof-github-user={PEER_USER}"]
        target = self.receipts / f"{out or shard}.json"
        key = [f"--gpu-proof-key={self.tools.key}", f"--gpu-proof-out={target}"]
        return self.run("peer", [*words, *given, *key, *options])

    def peer_merge(self, *names: str, carry: str = "", out: str = "merged", options: Sequence[str] = ()) -> bool:
        inputs = [self.receipts / f"{name}.json" for name in names]
        carried = ["--carry-from", self.receipts / f"{carry}.json"] if carry else []
        target = ["--out", self.receipts / f"{out}.json", "--github-user", PEER_USER, "--key", self.tools.key]
        return self.run("peer", ["gpu-proof", "merge", *inputs, *target, "--repo", ".", *carried, *options])

    def peer_verify(self, name: str = "merged", options: Sequence[str] = (), **policy: Any) -> bool:
        """Verify with a restricted policy, changed as given; `bare=True`: with no policy at all."""
        words = ["gpu-proof", "verify", "--receipt", self.receipts / f"{name}.json", "--repo", "."]
        if not policy.pop("bare", False):
            file = self.receipts / "policy.json"
            file.write_text(json.dumps({**PEER_POLICY, **policy}))
            words += ["--policy", file]
        return self.run("peer", [*words, *options])

    def peer_rewrite(self, name: str, change: Callable[[Json], None], *, sign: bool = True) -> None:
        """Edit a receipt and, unless told otherwise, sign it anew with the same key."""
        file = self.receipts / f"{name}.json"
        document = json.loads(file.read_text())
        change(document)
        file.write_text(json.dumps(document))
        seed = Path(__file__).with_name("peer_sign.py")
        if sign and not self.run("peer", ["python", seed, file, self.tools.key]):
            raise SystemExit(f"the peer can't sign {name}")


@dataclass(frozen=True, slots=True)
class Stages:
    """Makes stages; what both tools record first is recorded once for each policy, and copied."""

    tools: Tools

    def copy(self, policy: str, name: str) -> Stage:
        """Return a fresh stage: shards a and b recorded by both, and merged by the peer into `merged`."""
        base = self._folder("bases") / str(abs(hash(policy)))
        if not base.exists():
            self._make(base, policy)
        path = self._folder("stages") / name
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(base, path, symlinks=True)
        stage = self._stage(path)
        stage.world.git("status", "--porcelain")
        return stage

    def clear(self) -> None:
        shutil.rmtree(self.tools.folder / "rules", ignore_errors=True)

    def _folder(self, name: str) -> Path:
        folder = self.tools.folder / "rules" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _stage(self, path: Path) -> Stage:
        return Stage(self.tools, World(path, self.tools.env("plain")))

    def _make(self, path: Path, policy: str) -> None:
        path.mkdir()
        stage = self._stage(path)
        stage.world.git("init", "-q", "-b", "main")
        for name, text in FILES.items():
            stage.world.write(name, text)
        stage.world.write(".gitledger/config.yaml", config(policy))
        line = f'bench@example.org namespaces="gitledger" {self.tools.public_line}\n'
        stage.world.write(".gitledger/allowed_signers", line)
        stage.world.commit("start")
        stage.receipts.mkdir()
        for shard in SHARDS:
            if not (stage.record(shard) and stage.peer_record(shard)):
                raise SystemExit(f"shard {shard} can't be recorded: see rules.log")
        if not stage.peer_merge("a", "b"):
            raise SystemExit("the peer can't merge: see rules.log")


def config(policy: str, *, commands: str = "pytest -q tests/{0}", a: str = "src/a.py, tests/a") -> str:
    """Return the configuration of the two shards."""
    scopes = {"a": a, "b": "src/b.py, tests/b"}
    shards = "".join(
        f"  {name}: {{paths: [{scope}], command: {commands.format(name)}}}\n" for name, scope in scopes.items()
    )
    return f"version: 1\nrepository: rules\nshards:\n{shards}policy: {policy}\n"


def at(receipt: ShardReceipt, when: datetime) -> ShardReceipt:
    """Return the receipt of a run at another time."""
    return replace(receipt, session=replace(receipt.session, started_at=when, ended_at=when))


def _reasons(document: Json) -> list[str]:
    """Return the codes of one document of `merge --json` or `verify --json`."""
    codes = [finding["code"] for finding in document.get("findings", []) if finding["blocks"]]
    ignored = [record["reason"].partition(":")[0] for record in document.get("ignored", [])]
    failed = ["failed"] if document.get("outcome") == "failed" else []
    return list(dict.fromkeys([*ignored, *codes, *failed]))


def _shard_receipt(line: bytes, commit: CommitId) -> ShardReceipt | None:
    opened = open_record(line, commit=commit)
    if not isinstance(opened, Verified) or not opened.statement.predicate_type.endswith("receipt:shard:v1"):
        return None
    return ShardReceipt.decode(opened.statement)


def _with_results(receipt: ShardReceipt, results: Sequence[TestResult]) -> tuple[ShardReceipt, bytes]:
    body = encode_tests(results)
    ids = collection_digest([result.node_id for result in results])
    return replace(
        receipt,
        collection=replace(receipt.collection, full_count=len(results), full_digest=ids, selected_digest=ids),
        counts=Counts.of([result.outcome for result in results], collected=len(results)),
        bodies={**receipt.bodies, "tests": BodyRef.of(body)},
    ), body
