"""What the workflow tests share: a forge on loopback, real agents, and records made by hand."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gitledger.errors import LedgerError
from gitledger.machine.interrupts import Interrupts
from gitledger.trust.keys import PublicKey
from gitledger.trust.private_keys import load_private_key
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import FileSigner
from gitledger.trust.sshsig import SshSig, signed_data
from gitledger.trust.wire import put_string, put_uint32
from gitledger.workflows.asked import Asked, request_of
from gitledger.workflows.judge import verify
from gitledger.workflows.merge import merge
from gitledger.workflows.record import record
from gitledger.workflows.run import RunRequest, run
from gitledger.workflows.session import Session, open_session
from gitledger.workflows.trusted import read_config


class LoopbackForge:
    """A forge on loopback: `keys` maps a user to the lines that it publishes, or to a function of the request."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                user = self.path.removeprefix("/").removesuffix(".keys")
                outer.asked.append(user)
                page = outer.keys.get(user)
                if callable(page):
                    page(self)
                elif page is None:
                    self.send_error(404)
                else:
                    body = page.encode()
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def template(self) -> str:
        """The URL template for `forges:` in a configuration."""
        return f"http://127.0.0.1:{self.http.server_port}/{{user}}.keys"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def forge() -> Iterator[LoopbackForge]:
    """A real HTTP server on loopback that publishes users' keys."""
    made = LoopbackForge()
    yield made
    made.close()


# --- a stage for attacks: honest evidence, and everything that an attacker can do to it -------------------------

STAGE_CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src, "*.cfg"], command: "true", results: exit-status}
policy: %s
"""
STAGE_FILES = {"src/alpha.py": "def alpha():\n    return 1\n", "it.cfg": "x\n", "README.md": "x\n"}
RECORDS = "refs/notes/gitledger/records"
BODIES = "refs/notes/gitledger/bodies"


@dataclass
class Stage:
    """A repository whose policy stands at the branch `trusted`, with Alice as the only signer.

    `verify` judges HEAD by it, in process; `document` is the payload of Alice's honest receipt of HEAD, to be
    changed, signed by anyone and hung anywhere.
    """

    project: Any

    @property
    def repo(self) -> Any:
        return self.project.repo

    @property
    def path(self) -> Path:
        return self.project.path

    def session(self, *, now: datetime | None = None) -> Session:
        at = now or datetime.now(UTC)
        env = dict(self.repo.env)
        return open_session(self.path, environ=env, home=Path(env["HOME"]), now=lambda: at)

    def signer(self, name: str) -> FileSigner:
        path = self.project.key(name)
        return FileSigner(load_private_key(path.read_bytes(), where=name))

    def head(self) -> str:
        return self.repo.git("rev-parse", "HEAD")

    def record(self, by: Any = "alice", *, at: datetime | None = None, **changes: Any) -> str:
        """Run and record the shard honestly; return the record's id."""
        session = self.session(now=at)
        config = read_config(session.repo, session.repo.head())
        request = replace(request_of(config, Asked(shard="it")), user="alice@example.org", **changes)
        signer = self.signer(by) if isinstance(by, str) else by
        done = record(session, request, signer)
        assert done.stored
        return done.record

    def record_of(self, shard: str) -> str:
        session = self.session()
        config = read_config(session.repo, session.repo.head())
        return record(session, request_of(config, Asked(shard=shard)), self.signer("alice")).record

    def merge(self, by: str = "alice", *, at: datetime | None = None, **options: Any) -> Any:
        session = self.session(now=at)
        return merge(session, session.repo.head(), self.signer(by), user=by, policy_from="trusted", **options)

    def lines(self, commit: str = "HEAD") -> list[str]:
        return self.repo.git("notes", f"--ref={RECORDS}", "show", commit).splitlines()

    def document(self, line: str | None = None) -> dict[str, Any]:
        """Return the payload of a line, by default of the only record of HEAD."""
        [line] = [line] if line else self.lines()
        return json.loads(base64.b64decode(json.loads(line)["payload"]))

    def clear(self) -> None:
        """Take all records away (the bodies stay): what is hung up next stands alone."""
        self.repo.git("update-ref", "-d", RECORDS)

    def seal(self, document: dict[str, Any] | bytes, by: Any = "alice") -> str:
        """Return the line of a payload, signed by `by`; its claim of a signer becomes true unless given as bytes."""
        signer = self.signer(by) if isinstance(by, str) else by
        if isinstance(document, bytes):
            payload = document
        else:
            document["predicate"]["signer"] = claim_of(signer, user=str(by)).encode()
            payload = spell(document)
        return sign_payload(payload, signer).encode().decode()

    def hang(self, *lines: str | bytes, on: str = "HEAD") -> None:
        """Make lines the whole note of an object, by plain git."""
        text = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\n"
        self.hang_raw(text, on=on)

    def hang_raw(self, text: bytes, *, on: str = "HEAD") -> None:
        blob = self.repo.git("hash-object", "-w", "--stdin", input=text)
        self.repo.git("notes", f"--ref={RECORDS}", "add", "-f", "-C", blob, on)

    def forge(self, by: Any = "alice", *, on: str = "HEAD", **changes: Any) -> str:
        """Hang up a changed receipt alone: `forge(session__mode="ci")` changes `predicate.session.mode`."""
        document = self.document() if self.has_records() else self.honest()
        for place, value in changes.items():
            *folders, name = place.split("__")
            inner = document["predicate"]
            for folder in folders:
                inner = inner[folder]
            inner[name] = value
        line = self.seal(document, by)
        self.hang(line, on=on)
        return line

    def has_records(self) -> bool:
        return bool(self.repo.git("rev-parse", "-q", "--verify", RECORDS, check=False))

    def honest(self) -> dict[str, Any]:
        """Record once, keep the payload, and take the record away."""
        self.record()
        document = self.document()
        self.clear()
        return document

    def trust(self, files: dict[str, str | bytes] | None = None) -> None:
        """Commit files and let the trusted branch say the same: what maintainers decided."""
        self.repo.commit(files or {})
        self.repo.git("branch", "-f", "trusted")

    def policy(self, text: str) -> None:
        self.trust({".gitledger/config.yaml": STAGE_CONFIG % text})

    def raw_tree(self, *entries: tuple[str, str, str]) -> str:
        """Store a tree as no git would write it: (mode, name, id) in the order given."""
        raw = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(oid) for mode, name, oid in entries)
        return self.repo.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", input=raw)

    def verify(self, **options: Any) -> Any:
        session = self.session(now=options.pop("now", None))
        target = session.repo.resolve(options.pop("commit", "HEAD"))
        return verify(session, target, **({"policy_from": "trusted"} | options))

    def verdict(self, **options: Any) -> tuple[bool, str]:
        """Return whether it passed, and every word that was said against it or about what was ignored."""
        try:
            found = self.verify(**options)
        except LedgerError as error:
            return False, f"error {error.code}: {error.message}"
        said = [f"{item.code} {item.subject}: {item.found}" for item in found.verdict.findings]
        said += [f"ignored {item.reason}" for item in found.ignored]
        return found.verdict.passed, "\n".join(said)


def spell(document: Any) -> bytes:
    """Return a payload as the ledger spells it."""
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode("ascii")


@pytest.fixture
def stage(make_project) -> Stage:
    """One shard, Alice as the only signer, policy at `trusted`, and nothing recorded."""
    made = Stage(make_project(STAGE_CONFIG % "{allow_carried: true}", STAGE_FILES))
    made.repo.git("branch", "trusted")
    return made


@dataclass
class SoftwareSecurityKey:
    """A security key (FIDO) in software: an Ed25519 key that signs the structure of PROTOCOL.u2f with any flags."""

    private: Any
    key: PublicKey
    flags: int
    backend: str = "ssh-keygen"
    algorithm: str = "sk-ssh-ed25519@openssh.com"

    @property
    def fingerprint(self) -> Any:
        return self.key.fingerprint

    def sign(self, message: bytes) -> bytes:
        tail = bytes([self.flags]) + put_uint32(7)
        signed = hashlib.sha256(b"ssh:").digest() + tail + hashlib.sha256(signed_data(message)).digest()
        signature = put_string(self.algorithm) + put_string(self.private.sign(signed)) + tail
        blob = SshSig(public_key=self.key.blob, namespace="gitledger", hash_name="sha512", signature=signature)
        return blob.encode()


@pytest.fixture
def make_security_key():
    """Return a maker of security keys in software: `make_security_key(flags=1)`."""

    def make(*, flags: int) -> SoftwareSecurityKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        private = Ed25519PrivateKey.generate()
        name = SoftwareSecurityKey.algorithm
        raw = private.public_key().public_bytes_raw()
        blob = put_string(name) + put_string(raw) + put_string(b"ssh:")
        return SoftwareSecurityKey(private=private, key=PublicKey(blob=blob, algorithm=name), flags=flags)

    return make


# --- runs of several shards -------------------------------------------------------------------------------------


class Listener:
    """A watcher that keeps what it was told."""

    def __init__(self) -> None:
        self.waited: list[str] = []
        self.heard: list[str] = []
        self.begun: list[str] = []

    def started(self, attempt: Any) -> None:
        self.begun.append(str(attempt.job.key))

    def ended(self, attempt: Any, seconds: float, ended: Any) -> None: ...

    def waits(self, job: Any, why: str) -> None:
        self.waited.append(why)

    def news(self, text: str) -> None:
        self.heard.append(text)

    def given_up(self, job: Any, fault: Any) -> None: ...

    def tick(self, running: Any, waiting: Any) -> None: ...


@dataclass
class Driven:
    """A project whose shards are run in this process, by Alice; their commands see `$OUT`, a folder beside it."""

    project: Any
    out: Path
    env: dict[str, str]
    watch: Listener

    def __getattr__(self, name: str) -> Any:
        return getattr(self.project, name)

    def run(self, **options: Any) -> Any:
        session = open_session(
            self.path, environ=self.env, home=Path(self.env["HOME"]), now=lambda: datetime.now(UTC)
        )
        key = FileSigner(load_private_key(self.key("alice").read_bytes(), where="alice"))
        with Interrupts() as interrupts:
            return run(session, RunRequest(**options), key, watch=self.watch, interrupts=interrupts)

    def ran(self) -> list[str]:
        """Return what shards wrote into `$OUT/ran`, sorted."""
        file = self.out / "ran"
        return sorted(file.read_text().split()) if file.exists() else []


@pytest.fixture
def driven(make_project, hermetic_env, tmp_path):
    """Return a maker of projects to run shards of: `driven(configuration, VARIABLE=value)`."""

    def make(config: str, files: dict[str, str] | None = None, **variables: str) -> Driven:
        out = tmp_path / "out"
        out.mkdir()
        hermetic_env["OUT"] = str(out)
        made = make_project(config, {"src/a.py": "1\n", **(files or {})})
        return Driven(made, out, {**made.repo.env, **variables}, Listener())

    return make


class StandInSmi:
    """Two GPUs by a stand-in for `nvidia-smi`, since no machine of ours has one: a script that prints two files."""

    FIRST, SECOND = "GPU-11111111-aaaa-bbbb-cccc-000000000001", "GPU-22222222-aaaa-bbbb-cccc-000000000002"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        script = folder / "nvidia-smi"
        cases = "--query-gpu=index*) cat state;; --query-gpu=uuid*) cat facts;; --query-compute*) cat apps;; *) exit 2;;"
        script.write_text(f'#!/bin/sh\ncd {folder}; case "$1" in {cases} esac\n')
        script.chmod(0o755)
        cards = ((0, self.FIRST), (1, self.SECOND))
        (folder / "facts").write_text("".join(f"{uuid}, 81559, 550.54, NVIDIA H100\n" for _, uuid in cards))
        self.used(3)
        self.idle()

    def used(self, mib: int) -> None:
        rows = f"0, {self.FIRST}, {mib}, 81559\n1, {self.SECOND}, {mib}, 81559\n"
        (self.folder / "state").write_text(rows)

    def busy(self, uuid: str) -> None:
        (self.folder / "apps").write_text(f"{uuid}, 4711\n")

    def idle(self) -> None:
        (self.folder / "apps").write_text("")


@pytest.fixture
def smi(tmp_path) -> StandInSmi:
    """A stand-in for `nvidia-smi` that tells of two GPUs, used or not as the test says."""
    return StandInSmi(tmp_path / "smi")
