"""Repositories with a past, to look at reports of: any number of shards and commits, really signed, quickly made.

    python tests/report/world.py FOLDER --shards 30 --commits 60

makes one, in which `git ledger export html -o report.html` works as anywhere. Nothing is executed: receipts are
composed and signed as runs of a small team would have left them, so that every state of a cell occurs. The same
arguments make the same world, its times aside, which count back from now.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import runpy
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gitledger.manifest.definition import Definition
from gitledger.manifest.replay import Answers, Replays
from gitledger.records.bodies import BodyRef, TestResult, collection_digest, encode_tests
from gitledger.records.capability_record import CapabilityRecord
from gitledger.records.environment import Environment, Gpu, Platform
from gitledger.records.fragments import FileCoverage, Fragment, bits_of, encode_fragment
from gitledger.records.ids import BlobId, CommitId, NodeId, ShardKey
from gitledger.records.outcomes import Counts, Outcome, TestOutcome
from gitledger.records.receipt import (
    CollectionClaim,
    ManifestClaim,
    RepoClaim,
    SessionClaim,
    ShardClaim,
    ShardReceipt,
)
from gitledger.records.revocation import Revocation
from gitledger.store.facts import CommitFacts, TreeCache
from gitledger.trust.private_keys import load_private_key
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import FileSigner
from gitledger.workflows.session import Session, open_session
from gitledger.workflows.trusted import read_config

AREAS = [
    "parser",
    "solver",
    "report",
    "kernels",
    "gemm",
    "attention",
    "conv",
    "loader",
    "storage",
    "scheduler",
    "router",
    "codec",
    "search",
    "auth",
]
KINDS = ["unit", "e2e", "stress", "io", "api", "grad", "fuzz", "shape", "mixed", "quant", "sparse", "batch"]
SIGNERS = ("alice@example.org", "bob@example.org", "ci@example.org")
STRANGER = "mallory@example.net"
SPACING = timedelta(minutes=47)
XSS = "</script><img src=x onerror=\"document.title='pwned'\"><svg/onload=alert(1)>"


@lru_cache
def signer(name: str) -> FileSigner:
    """Return the one key of a name, the same in every world."""
    private = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())
    text = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return FileSigner(load_private_key(text, where=name))


def public_line(name: str) -> str:
    """Return the public key of a name as `allowed_signers` spells it."""
    import base64

    key = signer(name).key
    return f"ssh-ed25519 {base64.b64encode(key.blob).decode()}"


def shard_names(count: int) -> list[str]:
    """Return so many shards: plain names first, then kinds of them, some for two machines."""
    found = list(AREAS[:count])
    for kind in KINDS:
        for area in AREAS:
            if len(found) < count:
                found.append(f"{area}-{kind}")
    return [*found, *(f"extra-{number}" for number in range(count - len(found)))]


@dataclass
class World:
    """A repository in the making. `lines` and `bodies` are what its ledger will hold."""

    folder: Path
    shards: int
    commits: int
    seed: int = 1
    hostile: bool = False
    lanes: bool = True
    touched: int = 2
    policy: str = ""
    allow_carried: bool = True
    more: str = ""
    """Further lines of the configuration."""
    merges: bool = False
    rng: random.Random = field(init=False)
    env: dict[str, str] = field(init=False)
    lines: dict[CommitId, list[bytes]] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    pace: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Alice",
            "GIT_AUTHOR_EMAIL": "alice@example.org",
            "GIT_COMMITTER_NAME": "Alice",
            "GIT_COMMITTER_EMAIL": "alice@example.org",
        }
        if "PYTHONPATH" in os.environ:  # another copy of this package is tried
            self.env["PYTHONPATH"] = os.environ["PYTHONPATH"]
        self.names = shard_names(self.shards)
        self.now = datetime.now(UTC).replace(microsecond=0)

    @property
    def path(self) -> Path:
        return self.folder / "repo"

    def git(self, *args: str, stdin: bytes | None = None) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.path, env=self.env, input=stdin, capture_output=True, check=True
        )
        return done.stdout.decode()

    def session(self) -> Session:
        return open_session(self.path, environ=self.env, home=self.folder / "home", now=lambda: self.now)

    def make(self) -> World:
        """Make history, evidence and notes."""
        self.path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("fast-import", "--quiet", "--force", stdin=b"".join(self._history()))
        self.git("reset", "-q", "--hard", "main")
        self._record_all()
        session = self.session()
        session.ledger.append(self.lines, self.bodies, identity=session.repo.identity(self.env), message="a past")
        self.git("repack", "-adq")
        return self

    # --- history ---

    def config(self) -> str:
        rows = []
        for place, name in enumerate(self.names):
            variants = ", variants: [a100, mi300]" if place % 13 == 4 else ""
            rows.append(
                f"  {name}: {{paths: [src/{name}, tests/{name}], command: pytest -q tests/{name}{variants}}}\n"
            )
        lanes = _LANES if self.lanes else ""
        return (
            "version: 1\nrepository: an-example\nshards:\n"
            + "".join(rows)
            + f"coverage: {{fail_under: 80}}\npolicy:\n  allow_carried: {str(self.allow_carried).lower()}\n"
            + f"  allowed_signers: [{', '.join(SIGNERS)}]\n  revokers: [alice@example.org]\n"
            + (f"  {self.policy}\n" if self.policy else "")
            + self.more
            + lanes
        )

    def _files(self) -> dict[str, str]:
        files = {
            ".gitledger/config.yaml": self.config(),
            ".gitledger/allowed_signers": "".join(
                f'{name} namespaces="gitledger" {public_line(name)}\n' for name in SIGNERS
            ),
            "pyproject.toml": "[tool.pytest.ini_options]\n",
        }
        for name in self.names:
            files[f"src/{name}/code.py"] = f"# {name} 0\n"
            files[f"tests/{name}/test_it.py"] = "def test_it():\n    pass\n"
        return files

    def _history(self) -> Iterator[bytes]:
        words = [
            "Speed up",
            "Mend",
            "Simplify",
            "Bound",
            "Split",
            "Cache",
            "Log",
            "Type",
            "Reject bad",
            "Document",
        ]
        who = ["Alice <alice@example.org>", "Bob <bob@example.org>", "Chen <chen@example.org>"]
        start = self.now - SPACING * (self.commits + 2)
        beside: dict[str, str] = {}
        for number in range(self.commits):
            if number == 0:
                files, summary = self._files(), "Start"
            else:
                chosen = self.rng.sample(self.names, min(self.touched, len(self.names)))
                files = {f"src/{name}/code.py": f"# {name} {number}\n" for name in chosen}
                summary = f"{self.rng.choice(words)} {' and '.join(chosen)}"
                if number % 9 == 4:
                    files, summary = {"README.md": f"{number}\n"}, "Reword the README"
            if self.hostile and number == self.commits - 1:
                summary = f"{XSS} \u202e|`x` @everyone"
            beside = files if self.merges and number % 4 == 2 else beside
            if self.merges and number and number % 4 == 0:
                files = {**beside, **files}
            when = int((start + SPACING * number).timestamp())
            stamp = f"{self.rng.choice(who)} {when} +0000"
            branch = "side" if self.merges and number % 4 == 2 else "main"
            yield f"commit refs/heads/{branch}\nmark :{number + 1}\nauthor {stamp}\ncommitter {stamp}\n".encode()
            yield _data(summary.encode())
            yield self._parents(number)
            for path, text in files.items():
                yield f"M 100644 inline {path}\n".encode() + _data(text.encode())

    def _parents(self, number: int) -> bytes:
        """Return whom a commit follows: of every four the third is made beside the fourth, and merged by the next."""
        if not self.merges or number == 0:
            return b""
        first = {2: number, 3: number - 1}.get(number % 4, number)
        merged = number - 1 if number % 4 == 0 else None
        return b"from :%d\n" % first + (b"merge :%d\n" % merged if merged else b"")

    # --- evidence ---

    def _record_all(self) -> None:
        session = self.session()
        cache = TreeCache(session.repo.objects)
        commits = [CommitId(word) for word in self.git("rev-list", "--reverse", "main").split()]
        config = read_config(session.repo, commits[0])
        seen: dict[ShardKey, str] = {}
        replays = Replays()
        definitions = {key: Definition.of(config, key) for key in config.shard_keys()}
        digests: dict[int, tuple[Any, str]] = {}
        for number, commit in enumerate(commits):
            info = session.repo.commit(commit)
            facts, told = CommitFacts(session.repo.objects, info.tree, cache), Answers()
            is_lazy = number % 11 == 7 and number < self.commits - 1
            for key in config.shard_keys():
                definition = definitions[key]
                manifest = replays.resolve(definition, facts, told)
                if id(manifest) not in digests:
                    digests[id(manifest)] = (manifest, manifest.digest_with(()))
                digest = digests[id(manifest)][1]
                mended = str(key) in self.broken and self.rng.random() < 0.3
                newest = number == self.commits - 1 and key.name == self.names[0]
                if seen.get(key) == digest and not mended and not newest:
                    continue
                if is_lazy and self.rng.random() < 0.5:
                    continue  # nobody ran it: a later commit has to
                seen[key] = digest
                self._runs_of(key, definition, digest, info, facts, mended=mended)
            if self.lanes and (number == self.commits - 1 or number % 5 == 0):
                self._lane_reports(info, is_newest=number == self.commits - 1)

    def _runs_of(
        self, key: ShardKey, definition: Definition, digest: Any, info: Any, facts: CommitFacts, *, mended: bool
    ) -> None:
        """Let a shard's run, or its runs, be recorded on a commit; what went wrong is mended some commits later."""
        chance, name = 1.0 if mended else self.rng.random(), str(key)
        self.broken.discard(name)
        if chance < 0.12:
            self.broken.add(name)
        pace = self.pace.get(name) or self.rng.uniform(4, 240)
        self.pace[name] = pace * self.rng.uniform(0.94, 1.08) * (1.6 if self.rng.random() < 0.03 else 1)
        who = self.rng.choice(SIGNERS)
        arguments = (key, definition, digest, info, facts)
        start = info.committed_at + timedelta(minutes=self.rng.uniform(1, 9))
        if chance < 0.06:
            self._receipt(*arguments, start=start, who=who, end="failed")
            if self.rng.random() < 0.6:
                self._receipt(*arguments, start=start + timedelta(minutes=12), who=who, end="passed")
        elif chance < 0.075:
            self._receipt(*arguments, start=start, who=who, end="incomplete")
        elif chance < 0.09:
            self._receipt(*arguments, start=start, who=who, end="error")
        elif chance < 0.11:
            self._receipt(*arguments, start=start, who=STRANGER, end="passed")
        elif chance < 0.12:
            record = self._receipt(*arguments, start=start, who=who, end="passed")
            self._revoke(record, info)
        else:
            self._receipt(*arguments, start=start, who=who, end="passed")

    def _receipt(
        self,
        key: ShardKey,
        definition: Definition,
        digest: Any,
        info: Any,
        facts: CommitFacts,
        *,
        start: datetime,
        who: str,
        end: str,
    ) -> str:
        results = list(self._results(key, end))
        body, ids = encode_tests(results), collection_digest([item.node_id for item in results])
        seconds = sum(item.duration_ns for item in results) / 1e9 + 1.5
        fragment = self._fragment(key, facts)
        if end == "incomplete":
            body = encode_tests(results[:-2])
        shown = results[:-2] if end == "incomplete" else results
        counts = Counts.of((item.outcome for item in shown), collected=len(results))
        claim = claim_of(signer(who), user=XSS if self.hostile and who == STRANGER else who)
        gpu = Gpu(vendor="nvidia", names=("A100",)) if key.variant == "a100" else None
        receipt = ShardReceipt(
            repository="an-example",
            shard=ShardClaim(key=key, attempt=1, split=None, definition_digest=definition.digest),
            outcome=Outcome(end),
            reasons=() if end == "passed" else (_WHY[end],),
            counts=counts,
            collection=CollectionClaim(full_digest=ids, full_count=len(results), selected_digest=ids),
            manifest=ManifestClaim(digest=digest, paths=definition.paths, outside=()),
            repo=RepoClaim(
                commit=info.id,
                tree=info.tree,
                branch=XSS if self.hostile else "main",
                remote="https://git.example.org/team/an-example.git",
                dirty=False,
            ),
            session=SessionClaim(
                started_at=start,
                ended_at=start + timedelta(seconds=round(seconds, 3)),
                argv=("pytest", "-q", f"tests/{key.name}"),
                exit_status={"passed": 0, "failed": 1, "error": 1, "incomplete": None}[end],
                signal=15 if end == "incomplete" else None,
                mode="local",
                workers=None,
                finished=end != "incomplete",
                witnessed=True,
            ),
            environment=Environment(
                python="3.12.7",
                platform=Platform(system="Linux", machine="x86_64", libc="glibc 2.36"),
                pytest="8.3.3",
                gitledger="0.1.0",
                coverage="7.6.4",
                gpu=gpu,
            ),
            signer=claim,
            bodies={"tests": BodyRef.of(body), "coverage": BodyRef.of(fragment)},
        )
        envelope = sign_payload(receipt.encode(), signer(who))
        self.lines.setdefault(info.id, []).append(envelope.encode())
        self.bodies += [body, fragment]
        return envelope.id

    def _results(self, key: ShardKey, end: str) -> Iterator[TestResult]:
        draw = random.Random(f"{self.seed} {key}")
        count, pace = draw.randint(4, 14), self.pace[str(key)]
        weights = [draw.random() ** 3 + 0.05 for _ in range(count)]
        bad = {"failed": TestOutcome.FAILED, "error": TestOutcome.ERROR}.get(end)
        for place, weight in enumerate(weights):
            is_last = place == count - 1
            name = f"tests/{key.name}/test_it.py::test_{KINDS[place % len(KINDS)]}[{place}]"
            if self.hostile and place == 0:
                name += XSS
            if self.hostile and place == 1:
                name += "\u202e|`x` @everyone\n\x1b[31m"
            yield TestResult(
                node_id=NodeId(name),
                outcome=bad if bad and is_last else TestOutcome.PASSED,
                phase="call" if bad and is_last else None,
                duration_ns=1000 * int(1e6 * pace * weight / sum(weights)),
                attempts=2 if place == 2 and self.rng.random() < 0.1 else 1,
            )

    def _fragment(self, key: ShardKey, facts: CommitFacts) -> bytes:
        path = f"src/{key.name}/code.py"
        entry = facts.entry(path)
        assert entry is not None
        draw = random.Random(f"{self.seed} {entry.oid}")
        total = random.Random(f"{self.seed} {path}").randint(40, 300)
        lines = [line for line in range(1, total + 1) if draw.random() < 0.87]
        covered = FileCoverage(
            path=path,
            blob=BlobId(entry.oid),
            statements=bits_of(range(1, total + 1)),
            executed=bits_of(lines),
        )
        return encode_fragment(Fragment(version="7.6.4", core="ctrace", branch=False, files=(covered,)))

    def _revoke(self, record: str, info: Any) -> None:
        from gitledger.records.statement import Subject

        who = "alice@example.org"
        revocation = Revocation(
            repository="an-example",
            record=record,
            reason=XSS if self.hostile else "the machine's clock was wrong",
            revoked_at=info.committed_at + timedelta(minutes=30),
            subject=Subject(commit=info.id, tree=info.tree),
            signer=claim_of(signer(who), user=who),
        )
        self.lines[info.id].append(sign_payload(revocation.encode(), signer(who)).encode())

    def _lane_reports(self, info: Any, *, is_newest: bool) -> None:
        """Leave reports of two lanes: one that passes, one that fails or is silent."""
        room = _lane_room()
        repo = RepoClaim(commit=info.id, tree=info.tree, branch="main", remote=None, dirty=False)
        base = room["passed_report"]()
        times = replace(
            base.timing,
            started_at=info.committed_at + timedelta(minutes=3),
            finished_at=info.committed_at + timedelta(minutes=3, seconds=9),
        )
        passed = replace(base, repo=repo, timing=times)
        failed = room["reasoned_report"](room["ReasonCode"].OUTPUT_MISMATCH, passed)
        compiled = replace(failed, recipe=replace(failed.recipe, id="torch-compile", digest=_compiled(room)))
        if self.hostile:
            compiled = replace(compiled, log_excerpt=XSS)
        for report in (passed, compiled) if is_newest else (passed,):
            who = "ci@example.org"
            claim = CapabilityRecord(
                report=report, repository="an-example", signer=claim_of(signer(who), user=who)
            )
            self.lines.setdefault(info.id, []).append(sign_payload(claim.encode(), signer(who)).encode())


def _compiled(room: dict[str, Any]) -> Any:
    return room["BUILT_IN"]["torch-compile"]["1"]


@lru_cache
def _lane_room() -> dict[str, Any]:
    """Return the reports that the lanes' own tests start from."""
    return runpy.run_path(str(Path(__file__).parents[1] / "lanes" / "conftest.py"))


def _data(text: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(text), text)


_WHY = {"failed": "test-failed", "error": "test-error", "incomplete": "not-finished"}
_LANES = """\
lanes:
  gfx1151:
    required: true
    match: {device.arch: gfx1151, torch.hip: "6.4", os.name: linux}
    runs:
      - {model: m7b, layers: [0, 15], quantization: bfloat16, recipes: [torch-eager, torch-compile]}
  h100:
    required: false
    match: {device.arch: sm_90}
    runs:
      - {model: m7b, layers: [0, 15], quantization: bfloat16, recipes: [torch-eager]}
      - {model: m7b, layers: [16, 31], quantization: bfloat16, recipes: [torch-eager]}
"""


def make_world(folder: Path, **options: Any) -> World:
    """Return a world made in an empty folder; options are those of `World`."""
    return World(folder, **options).make()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shards", type=int, default=30)
    parser.add_argument("--commits", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--touched", type=int, default=2, help="shards that a commit changes")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--no-lanes", dest="lanes", action="store_false")
    world = make_world(**vars(parser.parse_args(arguments)))
    print(world.path)


if __name__ == "__main__":
    main()
