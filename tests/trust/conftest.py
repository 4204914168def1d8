"""What the trust tests share: keys of every kind, real OpenSSH programs, payloads, a software security key."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gitledger.records.envelope import SIGNATURE_NAMESPACE, Envelope
from gitledger.records.ids import CommitId, TreeId
from gitledger.records.statement import SHARD_RECEIPT, Subject, encode_statement
from gitledger.trust.certificates import parse_key_line
from gitledger.trust.keys import PublicKey
from gitledger.trust.private_keys import load_private_key
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import FileSigner, Signer
from gitledger.trust.sshsig import SshSig, armor, signed_data
from gitledger.trust.wire import put_mpint, put_string, put_uint32

COMMIT = CommitId("1" * 40)
TREE = TreeId("2" * 40)

KINDS = {
    "ed25519": ("-t", "ed25519"),
    "ecdsa256": ("-t", "ecdsa", "-b", "256"),
    "ecdsa384": ("-t", "ecdsa", "-b", "384"),
    "ecdsa521": ("-t", "ecdsa", "-b", "521"),
    "rsa": ("-t", "rsa", "-b", "2048"),
}


@dataclass
class OpenSsh:
    """The real programs, in an environment that knows nothing of this machine's user; calls are counted."""

    folder: Path
    env: dict[str, str]
    calls: dict[str, int] = field(default_factory=dict)

    def run(
        self, *args: str | Path, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        name = str(args[0])
        self.calls[name] = self.calls.get(name, 0) + 1
        return subprocess.run(
            [str(arg) for arg in args], input=stdin, env=self.env | (env or {}), capture_output=True, check=False
        )

    def make_key(self, kind: str = "ed25519", *, name: str | None = None, passphrase: str = "") -> Path:
        """Generate a key pair and return the private file's path."""
        path = self.folder / (name or kind)
        done = self.run("ssh-keygen", "-q", *KINDS[kind], "-N", passphrase, "-C", "", "-f", path)
        assert done.returncode == 0, done.stderr
        return path

    def certify(self, authority: Path, key: Path, *options: str) -> PublicKey:
        """Sign the public half of `key` by `authority`; return the key with its certificate."""
        done = self.run("ssh-keygen", "-q", "-s", authority, *options, f"{key}.pub")
        assert done.returncode == 0, done.stderr
        return parse_key_line(Path(f"{key}-cert.pub").read_text())

    def verify(
        self,
        blob: bytes,
        message: bytes,
        *,
        allowed: str | bytes,
        principal: str = "alice",
        options: Sequence[str] = (),
        namespace: str = SIGNATURE_NAMESPACE,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Ask `ssh-keygen -Y verify`."""
        signature, signers = self.folder / "asked.sig", self.folder / "asked.allowed"
        signature.write_text(armor(blob))
        signers.write_bytes(allowed.encode() if isinstance(allowed, str) else allowed)
        command = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", principal, "-n", namespace, "-s", signature]
        return self.run(*command, *options, stdin=message, env=env)


@pytest.fixture
def ssh(tmp_path: Path, hermetic_env: dict[str, str]) -> OpenSsh:
    """The real OpenSSH programs, with a folder of their own."""
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o700)
    return OpenSsh(folder=folder, env=hermetic_env)


@pytest.fixture(scope="session")
def key_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One key file of each kind, generated once."""
    folder = tmp_path_factory.mktemp("keyring")
    maker = OpenSsh(folder=folder, env={"PATH": os.environ["PATH"], "HOME": str(folder)})
    return {kind: maker.make_key(kind) for kind in KINDS}


def load(path: Path) -> FileSigner:
    return FileSigner(load_private_key(path.read_bytes(), where=path.name))


@pytest.fixture(scope="session")
def signers_by_kind(key_files: dict[str, Path]) -> dict[str, FileSigner]:
    """One in-process signer of each kind."""
    return {kind: load(path) for kind, path in key_files.items()}


@pytest.fixture(scope="session")
def load_signer() -> Callable[[Path], FileSigner]:
    """Return the in-process signer of a key file."""
    return load


def payload_of(
    signer: Signer | None = None, *, commit: CommitId = COMMIT, tree: TreeId = TREE, **fields: Any
) -> bytes:
    claim = claim_of(signer, user="alice").encode() if signer else None
    return encode_statement(
        subject=Subject(commit=commit, tree=tree),
        predicate_type=SHARD_RECEIPT,
        predicate={"signer": claim, "outcome": "passed", **fields},
    )


@pytest.fixture(scope="session")
def make_payload() -> Callable[..., bytes]:
    """Return the payload of a small receipt that names `signer`: `make_payload(signer, commit=…, field=…)`."""
    return payload_of


@pytest.fixture(scope="session")
def make_line() -> Callable[..., bytes]:
    """Return the signed line of a small receipt: `make_line(signer, …)`."""

    def make(signer: Signer | None, **fields: Any) -> bytes:
        payload = payload_of(signer, **fields)
        if signer is None:
            return Envelope(payload=payload, signature=None).encode()
        return sign_payload(payload, signer).encode()

    return make


@dataclass
class SoftwareSecurityKey:
    """A security key (FIDO) in software: signs the structure of PROTOCOL.u2f with any flags.

    A `Signer`, so that records can be made with it; the private half never leaves the object, as with hardware.
    """

    private: Any
    key: PublicKey
    flags: int = 0x01
    counter: int = 7
    application: bytes = b"ssh:"
    backend: str = "ssh-keygen"

    @classmethod
    def make(cls, kind: str = "ed25519", **options: Any) -> SoftwareSecurityKey:
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        application = options.get("application", b"ssh:")
        if kind == "ed25519":
            private: Any = ed25519.Ed25519PrivateKey.generate()
            name = "sk-ssh-ed25519@openssh.com"
            raw = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
            blob = put_string(name) + put_string(raw)
        else:
            private = ec.generate_private_key(ec.SECP256R1())
            name = "sk-ecdsa-sha2-nistp256@openssh.com"
            point = private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
            blob = put_string(name) + put_string("nistp256") + put_string(point)
        blob += put_string(application)
        return cls(private=private, key=PublicKey(blob=blob, algorithm=name), **options)

    @property
    def fingerprint(self) -> Any:
        return self.key.fingerprint

    @property
    def algorithm(self) -> str:
        return self.key.algorithm

    def sign_raw(self, data: bytes) -> bytes:
        """Return the wire signature over `data`, flags and counter included."""
        tail = bytes([self.flags]) + put_uint32(self.counter)
        signed = hashlib.sha256(self.application).digest() + tail + hashlib.sha256(data).digest()
        if self.algorithm.startswith("sk-ssh"):
            body = self.private.sign(signed)
        else:
            from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
            from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
            from cryptography.hazmat.primitives.hashes import SHA256

            r, s = decode_dss_signature(self.private.sign(signed, ECDSA(SHA256())))
            body = put_mpint(r) + put_mpint(s)
        return put_string(self.algorithm) + put_string(body) + tail

    def sign(self, message: bytes) -> bytes:
        return SshSig(
            public_key=self.key.blob,
            namespace=SIGNATURE_NAMESPACE,
            hash_name="sha512",
            signature=self.sign_raw(signed_data(message)),
        ).encode()


@pytest.fixture(scope="session")
def make_security_key() -> Callable[..., SoftwareSecurityKey]:
    """Return a software security key: `make_security_key("ed25519" | "ecdsa", flags=…)`."""
    return SoftwareSecurityKey.make


@pytest.fixture(scope="session")
def commit_id() -> CommitId:
    """The commit that `make_line` writes about."""
    return COMMIT
