"""A small world to be judged: real keys and signatures, real codecs, invented commits. No git, no file, no clock.

`world.record(...)` signs a receipt and puts it on a commit, `world.situation()` opens and sorts whatever was put
there, exactly as the workflows do, and `world.judge()` gives the verdict. Times are minutes after `world.T0`, a
day before `world.NOW`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import pytest

from gitledger.config.schema import CarryConfig, Config, MergeConfig, PolicyConfig
from gitledger.records.bodies import BodyRef, Check, TestResult, collection_digest, encode_tests
from gitledger.records.envelope import SIGNATURE_NAMESPACE, Envelope, decode_line
from gitledger.records.environment import Environment, Gpu, Platform
from gitledger.records.fragments import encode_fragment
from gitledger.records.ids import BlobId, CommitId, Digest, KeyFingerprint, NodeId, RecordId, ShardKey, TreeId
from gitledger.records.merged import CarriedClaim, MergedReceipt, MergedShard
from gitledger.records.outcomes import Counts, Outcome, TestOutcome, worst
from gitledger.records.receipt import (
    CollectionClaim,
    ExtraClaim,
    ManifestClaim,
    RepoClaim,
    SessionClaim,
    ShardClaim,
    ShardReceipt,
    Split,
)
from gitledger.records.revocation import Revocation
from gitledger.records.statement import Subject, encode_statement
from gitledger.trust.certificates import parse_key_line
from gitledger.trust.keys import SK_ED25519, PublicKey, decode_plain_key
from gitledger.trust.private_keys import load_private_key
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import FileSigner
from gitledger.trust.signers import Signers
from gitledger.trust.sshsig import SshSig, signed_data
from gitledger.trust.verified import open_record
from gitledger.trust.wire import put_string
from gitledger.verdict.acceptance import signatories
from gitledger.verdict.evidence import sort_records
from gitledger.verdict.finding import Finding, Verdict
from gitledger.verdict.merge import merge_union
from gitledger.verdict.select import Choice
from gitledger.verdict.situation import CoverageRule, Facts, Situation, Station, TargetShard
from gitledger.verdict.tests_policy import TestLists
from gitledger.verdict.union import Union, form_union
from gitledger.verdict.verify import ignored_records, judge

NOW = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)
T0 = NOW - timedelta(days=1)
REPOSITORY = "repository-1"


@lru_cache(maxsize=32)
def key_of(name: str) -> FileSigner | SecurityKey:
    """Return the one key of a name, the same in every run: Ed25519, or a security key for `sk-touched` and `sk-not`.

    The two are one key, touched and not.
    """
    if name.startswith("sk-"):
        return SecurityKey("sk", touched=name == "sk-touched")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())
    text = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return FileSigner(load_private_key(text, where=name))


@dataclass(frozen=True)
class SecurityKey:
    """An `sk-ssh-ed25519` key in software (PROTOCOL.u2f): says itself whether anybody touched it."""

    name: str
    touched: bool

    @property
    def key(self) -> PublicKey:
        raw = self._material().public_key().public_bytes_raw()
        return decode_plain_key(put_string(SK_ED25519) + put_string(raw) + put_string("ssh:"))

    @property
    def fingerprint(self) -> KeyFingerprint:
        return self.key.fingerprint

    algorithm = SK_ED25519
    backend = "ssh-keygen"

    def sign(self, message: bytes) -> bytes:
        tail = bytes([self.touched]) + (7).to_bytes(4, "big")
        digest = hashlib.sha256(signed_data(message)).digest()
        signature = self._material().sign(hashlib.sha256(b"ssh:").digest() + tail + digest)
        return SshSig(
            public_key=self.key.blob,
            namespace=SIGNATURE_NAMESPACE,
            hash_name="sha512",
            signature=put_string(SK_ED25519) + put_string(signature) + tail,
        ).encode()

    def _material(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(self.name.encode()).digest())


def sha256(*parts: object) -> Digest:
    return Digest(hashlib.sha256(repr(parts).encode()).hexdigest())


def minutes(number: float) -> datetime:
    return T0 + timedelta(minutes=number)


@dataclass
class Commit:
    """One invented commit. `inputs` is what every shard's scope holds there: other inputs, other manifest."""

    name: str
    distance: int | None
    inputs: str
    tree: str
    committed_at: datetime
    from_ref: bool

    @property
    def id(self) -> CommitId:
        return CommitId(hashlib.sha1(self.name.encode(), usedforsecurity=False).hexdigest())

    @property
    def tree_id(self) -> TreeId:
        return TreeId(hashlib.sha1(b"tree " + self.tree.encode(), usedforsecurity=False).hexdigest())


@dataclass
class Declared:
    """One declared shard as the target has it."""

    key: ShardKey
    definition: str = "as declared"
    has_extra: bool = False
    extra_now: tuple[ExtraClaim, ...] | None = ()
    split: Split | None = None
    fault: str = ""
    redefined: bool = False
    measured: bool = True


@dataclass
class World:
    """Commits in a line (`head`, `parent`, `grandparent`) and one beside it (`branch`), with their evidence."""

    NOW = NOW
    T0 = T0
    policy: dict[str, Any] = field(default_factory=dict)
    carry_from: str = "ancestors"
    carry_environment: tuple[str, ...] = ("python", "platform")
    merge_environment: str = "per-variant"
    allowed: dict[str, str] = field(default_factory=lambda: {"alice": "", "bob": ""})
    allowed_text: str | None = None
    """The allowed_signers file itself, instead of `allowed`."""
    revoked_keys: tuple[str, ...] = ()
    forges: dict[str, tuple[str, ...]] = field(default_factory=dict)
    now: datetime = NOW
    history_cut: bool = False
    carry: bool | None = None
    coverage: CoverageRule = CoverageRule()  # noqa: RUF009
    sources: dict[str, str] = field(default_factory=dict)
    """The files of the target's tree and their content, as far as coverage asks for them."""
    commits: dict[str, Commit] = field(default_factory=dict)
    shards: dict[str, Declared] = field(default_factory=dict)
    lines: dict[str, list[bytes]] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)
    receipts: dict[RecordId, ShardReceipt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for distance, name in enumerate(("head", "parent", "grandparent")):
            self.commit(name, distance=distance, from_ref=distance > 0)
        self.commit("branch", distance=None)
        self.declare("l1")

    # What there is

    def commit(self, name: str, *, distance: int | None, **changes: Any) -> Commit:
        given = {"inputs": "same", "tree": name, "committed_at": T0 - timedelta(days=60), "from_ref": False}
        self.commits[name] = made = Commit(name=name, distance=distance, **(given | changes))
        self.lines.setdefault(name, [])
        return made

    def declare(self, *names: str, **changes: Any) -> None:
        for name in names:
            self.shards[name] = Declared(ShardKey.parse(name), **changes)

    def declare_split(self, name: str, total: int) -> list[str]:
        parts = [f"{name}-{index}-of-{total}" for index in range(1, total + 1)]
        for index, part in enumerate(parts, start=1):
            self.declare(part, split=Split(index=index, total=total))
        return parts

    def extra(self, text: str, path: str = "generated/l1.cuh") -> ExtraClaim:
        return ExtraClaim(path=path, mode=0o100644, sha256=sha256(text))

    # Making records

    def receipt(
        self, shard: str = "l1", *, on: str = "head", outcome: str = "passed", **given: Any
    ) -> ShardReceipt:
        """Return an unsigned receipt; `tests` map node ids to outcomes, times are minutes after `T0`."""
        commit, key = self.commits[on], ShardKey.parse(shard)
        declared = self.shards.get(shard, Declared(key))
        tests = given.pop("tests", None) or default_tests(shard, outcome)
        results = tuple(
            TestResult(node_id=NodeId(name), outcome=TestOutcome(end), checks=given.get("checks", ()))
            for name, end in tests.items()
        )
        given.pop("checks", None)
        blob = encode_tests(results)
        ref = BodyRef.of(blob)
        self.bodies[ref.oid] = blob
        bodies = {"tests": ref}
        fragment = given.pop("fragment", None)
        if fragment is not None:
            measured = fragment if isinstance(fragment, bytes) else encode_fragment(fragment)
            bodies["coverage"] = BodyRef.of(measured)
            self.bodies[bodies["coverage"].oid] = measured
        full = given.pop("full", None) or list(tests)
        selected = given.pop("selected", None) or list(tests)
        extra = given.pop("extra", declared.extra_now or ()) if declared.has_extra else ()
        started = given.pop("started", 0)
        receipt = ShardReceipt(
            repository=given.pop("repository", REPOSITORY),
            shard=ShardClaim(
                key=key,
                attempt=given.pop("attempt", 1),
                split=given.pop("split", declared.split),
                definition_digest=sha256("definition", given.pop("definition", declared.definition)),
            ),
            outcome=Outcome(outcome),
            reasons=given.pop("reasons", DEFAULT_REASONS[outcome]),
            counts=Counts.of(
                (item.outcome for item in results),
                collected=given.pop("collected", len(selected)),
                deselected=0,
            ),
            collection=CollectionClaim(
                full_digest=collection_digest(full),
                full_count=len(full),
                selected_digest=collection_digest(selected),
            ),
            manifest=ManifestClaim(
                digest=manifest_digest(key, given.pop("inputs", commit.inputs), extra),
                paths=("src",),
                extra=extra,
                outside=given.pop("outside", ()),
            ),
            repo=RepoClaim(
                commit=commit.id,
                tree=given.pop("tree", commit.tree_id),
                branch="main",
                remote=None,
                dirty=given.pop("dirty", False),
            ),
            session=SessionClaim(
                started_at=minutes(started),
                ended_at=minutes(given.pop("ended", started + 1)),
                argv=("pytest",),
                exit_status=0 if outcome == "passed" else 1,
                signal=None,
                mode=given.pop("mode", "local"),
                workers=None,
                finished=outcome != "incomplete",
                witnessed=given.pop("witnessed", True),
            ),
            environment=environment(**given.pop("environment", {})),
            signer=None,
            bodies=bodies,
            version=given.pop("version", 1),
        )
        assert not given, f"unknown: {given}"
        return receipt

    def sign(self, record: Any, key: str | None, *, user: str | None = None) -> bytes:
        """Return the line of a receipt, merged receipt or revocation, signed by a named key, or by nobody."""
        if key is None:
            return Envelope(payload=record.encode(), signature=None).encode()
        signer = key_of(key)
        payload = replace(record, signer=claim_of(signer, user=user or key)).encode()
        return sign_payload(payload, signer).encode()

    def put(self, line: bytes, on: str = "head") -> RecordId:
        """Let a line stand on a commit, whatever it says."""
        self.lines[on].append(line)
        return decode_line(line).id

    def record(
        self,
        shard: str = "l1",
        *,
        on: str = "head",
        key: str | None = "alice",
        user: str | None = None,
        **given: Any,
    ) -> RecordId:
        """Sign a receipt and put it where it belongs; return its id."""
        receipt = self.receipt(shard, on=on, **given)
        record = self.put(self.sign(receipt, key, user=user), on)
        self.receipts[record] = receipt
        return record

    def revoke(
        self, record: RecordId, *, on: str = "head", key: str | None = "alice", at: float = 100
    ) -> RecordId:
        commit = self.commits[on]
        revocation = Revocation(
            repository=REPOSITORY,
            record=record,
            reason="it was wrong",
            revoked_at=minutes(at),
            subject=Subject(commit=commit.id, tree=commit.tree_id),
            signer=None,
        )
        return self.put(self.sign(revocation, key), on)

    def merged(
        self, *records: RecordId, on: str = "head", key: str | None = "bob", at: float = 50, **changes: Any
    ) -> RecordId:
        """Put a merged receipt that names records, whatever a real merge would say of them."""
        commit = self.commits[on]
        entries = tuple(self._entry(record, commit) for record in records)
        receipt = MergedReceipt(
            repository=REPOSITORY,
            shards=changes.pop("shards", entries),
            outcome=worst(entry.outcome for entry in entries),
            counts=sum((entry.counts for entry in entries), Counts()),
            started_at=min(entry.started_at for entry in entries),
            ended_at=max(entry.ended_at for entry in entries),
            merged_at=minutes(at),
            repo=RepoClaim(
                commit=commit.id,
                tree=commit.tree_id,
                branch=None,
                remote=None,
                dirty=any(entry.dirty for entry in entries),
            ),
            environment=environment(),
            coverage=None,
            inputs_verified=False,
            signer=None,
        )
        return self.put(self.sign(replace(receipt, **changes), key), on)

    def _entry(self, record: RecordId, commit: Commit) -> MergedShard:
        receipt = self.receipts[record]
        carried = None
        if receipt.repo.commit != commit.id:
            carried = CarriedClaim(
                original_commit=receipt.repo.commit,
                original_dirty=False,
                original_ended_at=receipt.session.ended_at,
                original_signer="alice",
                distance=1,
            )
        return MergedShard(
            key=receipt.key,
            record=record,
            commit=receipt.repo.commit,
            outcome=receipt.outcome,
            dirty=receipt.repo.dirty,
            counts=receipt.counts,
            started_at=receipt.session.started_at,
            ended_at=receipt.session.ended_at,
            signer="alice",
            key_fingerprint=None,
            carried=carried,
        )

    def garbage(
        self,
        *,
        on: str = "head",
        key: str | None = "alice",
        type_: str = "urn:gitledger:receipt:shard:v9",
        **more: Any,
    ) -> RecordId:
        """Put a well-signed record that this version can't read."""
        commit = self.commits[more.pop("about", on)]
        signer = claim_of(key_of(key), user=key).encode() if key else None
        predicate = {"repository": REPOSITORY, "signer": signer} | more
        subject = Subject(commit=commit.id, tree=commit.tree_id)
        payload = encode_statement(subject=subject, predicate_type=type_, predicate=predicate)
        envelope = sign_payload(payload, key_of(key)) if key else Envelope(payload=payload, signature=None)
        return self.put(envelope.encode(), on)

    # Judging

    def config(self) -> Config:
        return Config(
            version=1,
            repository=REPOSITORY,
            policy=PolicyConfig(**({"allow_carried": True} | self.policy)),
            carry=CarryConfig(from_=self.carry_from, environment=self.carry_environment),  # type: ignore[arg-type]
            merge=MergeConfig(environment=self.merge_environment),  # type: ignore[arg-type]
        )

    def signers(self) -> Signers:
        if self.allowed_text is not None:
            return Signers.parse(self.allowed_text.encode())
        allowed = [f"{name} {options} {key_of(name).key.line}" for name, options in self.allowed.items()]
        revoked = [key_of(name).key.line for name in self.revoked_keys]
        return Signers.parse("\n".join(allowed).encode(), "\n".join(revoked).encode())

    def stations(self) -> tuple[Station, ...]:
        return tuple(self._station(commit) for commit in self.commits.values())

    def _station(self, commit: Commit) -> Station:
        opened = [open_record(line, commit=commit.id) for line in self.lines[commit.name]]
        return Station(
            commit=commit.id,
            tree=commit.tree_id,
            committed_at=commit.committed_at,
            distance=commit.distance,
            evidence=sort_records(opened, repository=REPOSITORY),
            from_ref=commit.from_ref,
        )

    def situation(self) -> Situation:
        head, stations, config = self.commits["head"], self.stations(), self.config()
        by_id = {commit.id: commit for commit in self.commits.values()}
        return Situation(
            commit=head.id,
            tree=head.tree_id,
            committed_at=head.committed_at,
            now=self.now,
            config=config,
            shards=tuple(self._target(declared, head) for declared in self.shards.values()),
            stations=stations,
            signatories=signatories(
                config.policy,
                self.signers(),
                self.now,
                [station.evidence for station in stations],
                forges={user: Ring(names) for user, names in self.forges.items()},
            ),
            facts=Facts(
                body=lambda ref: self.bodies.get(ref.oid),
                changed=lambda commit, key: (f"src/{key.name}.py",),
                digest_at=lambda commit, key, extra: manifest_digest(key, by_id[commit].inputs, extra),
                blob_at=lambda path: blob_of(self.sources[path]) if path in self.sources else None,
            ),
            coverage=self.coverage,
            history_cut=self.history_cut,
            carry=self.carry,
        )

    @staticmethod
    def _target(declared: Declared, head: Commit) -> TargetShard:
        return TargetShard(
            key=declared.key,
            definition=sha256("definition", declared.definition),
            digest_with=lambda extra: manifest_digest(declared.key, head.inputs, extra),
            has_extra=declared.has_extra,
            extra_now=declared.extra_now,
            split=declared.split,
            fault=declared.fault,
            redefined=declared.redefined,
            measured=declared.measured,
        )

    def union(self) -> Union:
        return form_union(self.situation())

    def choice(self, shard: str = "l1") -> Choice:
        """Return what stands for one shard."""
        return next(choice for choice in self.union().choices if str(choice.shard.key) == shard)

    def stands(self, shard: str = "l1") -> tuple[str, str]:
        """Return verdict and reason of one shard."""
        choice = self.choice(shard)
        return choice.verdict, choice.reason

    def standing(self, shard: str = "l1") -> RecordId | None:
        """Return the id of the record that stands for one shard."""
        result = self.choice(shard).result
        return result.held.id if result else None

    def judge(self, *pins: Finding, lists: TestLists | None = None) -> Verdict:
        situation = self.situation()
        return judge(form_union(situation), situation, lists or TestLists(), pins)

    def codes(self, *, blocking: bool = True, lists: TestLists | None = None) -> set[str]:
        """Return the codes of the verdict's findings, of those that block or of the others."""
        return {finding.code for finding in self.judge(lists=lists).findings if finding.blocks is blocking}

    def ignored(self) -> set[tuple[str | None, str]]:
        situation = self.situation()
        return {(item.record, item.reason) for item in ignored_records(form_union(situation), situation)}

    def merge(self, *, key: str = "bob", at: float = 60, on: str = "head") -> RecordId:
        """Merge as the workflow does, and put the merged receipt on the target."""
        situation, head = self.situation(), self.commits[on]
        receipt = merge_union(
            form_union(situation),
            situation,
            repo=RepoClaim(commit=head.id, tree=head.tree_id, branch=None, remote=None, dirty=False),
            signer=None,
            merged_at=minutes(at),
        )
        return self.put(self.sign(receipt, key), on)


@dataclass(frozen=True)
class Ring:
    """The published keys of a forge's user."""

    names: tuple[str, ...]

    def holds(self, key: Any) -> bool:
        return key.certificate is None and any(key_of(name).key.blob == key.blob for name in self.names)


DEFAULT_REASONS = {
    "passed": (),
    "failed": ("test-failed",),
    "error": ("test-error",),
    "incomplete": ("not-finished",),
}


def default_tests(shard: str, outcome: str) -> Mapping[str, str]:
    first, second = f"tests/{shard}.py::test_a", f"tests/{shard}.py::test_b"
    bad = {"failed": "failed", "error": "error"}.get(outcome)
    return {first: "passed"} if outcome == "incomplete" else {first: "passed", second: bad or "passed"}


def manifest_digest(key: ShardKey, inputs: str, extra: Iterable[ExtraClaim]) -> Digest:
    return sha256(
        "manifest", str(key), inputs, tuple(sorted((item.path, item.mode, item.sha256) for item in extra))
    )


def blob_of(text: str) -> BlobId:
    """Return the git blob of a source."""
    return BodyRef.of(text.encode()).oid


@pytest.fixture(scope="session")
def blob():
    """Return the maker of git blobs of sources."""
    return blob_of


def environment(**changes: Any) -> Environment:
    given: dict[str, Any] = {
        "python": "3.12.4",
        "platform": Platform(system="Linux", machine="x86_64", libc="glibc 2.36"),
        "pytest": "8.3.0",
        "gitledger": "0.1.0",
        "coverage": None,
        "gpu": None,
    }
    return Environment(**(given | changes))


@pytest.fixture
def world() -> World:
    """A world with one shard, `l1`, two allowed keys, and no evidence."""
    return World()


@pytest.fixture(scope="session")
def new_world() -> type[World]:
    """Return a maker of worlds, for tests that need more than one."""
    return World


@pytest.fixture(scope="session")
def signer_of():
    """Return a maker of the one key of a name."""
    return key_of


@pytest.fixture(scope="session")
def wrap():
    """Return a maker of the same record with its key inside a certificate.

    The signature does not cover the wrapping, so anybody can do this to anybody's record.
    """
    return wrap_in_certificate


def wrap_in_certificate(line: bytes, *, owner: str, authority: str, principal: str) -> bytes:
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key
    from cryptography.hazmat.primitives.serialization.ssh import SSHCertificateBuilder, SSHCertificateType

    certificate = (
        SSHCertificateBuilder()
        .public_key(load_ssh_public_key(key_of(owner).key.line.encode()))  # type: ignore[arg-type]
        .serial(1)
        .type(SSHCertificateType.USER)
        .key_id(b"id")
        .valid_principals([principal.encode()])
        .valid_after(0)
        .valid_before(2**62)
        .sign(key_of(authority)._private._material)
    )
    key = parse_key_line(certificate.public_bytes().decode())
    envelope = decode_line(line)
    assert key.certificate
    assert envelope.signature
    blob = replace(SshSig.decode(envelope.signature.blob), public_key=key.certificate.blob).encode()
    return replace(envelope, signature=replace(envelope.signature, blob=blob)).encode()


@pytest.fixture(scope="session")
def gpu():
    """Return a maker of GPU facts by model names."""
    return lambda *names: Gpu(vendor="nvidia", names=names)


@pytest.fixture(scope="session")
def failing_check() -> Check:
    return Check(name="rtol", passed=False)
