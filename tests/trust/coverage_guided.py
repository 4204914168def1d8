"""A coverage-guided fuzzer for the decoders that read what others wrote; run by hand, for as long as one likes.

    python tests/trust/coverage_guided.py SECONDS [TARGET…]

An input is kept for further mutation when it reaches a pair of lines that none before it reached. Anything but the
decoder's own error ends the run with the input printed. The last line of each target gives the figures.
"""

from __future__ import annotations

import base64
import random
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    SSHCertificateBuilder,
    SSHCertificateType,
)

from gitledger.errors import LedgerError
from gitledger.records.envelope import Envelope
from gitledger.records.statement import SHARD_RECEIPT, Statement, Subject, encode_statement
from gitledger.trust.allowed_signers import parse_allowed_signers
from gitledger.trust.certificates import decode_key, parse_key_line
from gitledger.trust.krl import parse_krl
from gitledger.trust.private_keys import load_private_key, peek_private_key
from gitledger.trust.revoked import parse_revoked_keys
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import FileSigner
from gitledger.trust.sshsig import SshSig, dearmor
from gitledger.trust.verified import Rejected, Verified, check_sshsig, open_record
from gitledger.trust.wire import put_byte, put_string, put_uint32, put_uint64

NOW = datetime(2026, 6, 15, tzinfo=UTC)
MESSAGE = b"message"


class Coverage:
    """Which pairs of consecutive lines of gitledger a call went through."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int, int]] = set()
        self.now: set[tuple[str, int, int]] = set()

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if "gitledger" not in name:
            return None
        last = frame.f_lineno

        def local(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal last
            if event == "line":
                self.now.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return local

        return local

    def run(self, target: Callable[[bytes], None], data: bytes) -> bool:
        """Call the target and tell whether it went somewhere new."""
        self.now.clear()
        sys.settrace(self.trace)
        try:
            target(data)
        finally:
            sys.settrace(None)
        is_new = not self.now <= self.seen
        self.seen |= self.now
        return is_new


def mutate(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    raw = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(raw) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(raw):
            raw[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(raw):
            raw[at] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        elif kind == 2:
            del raw[at : at + rng.choice([1, 2, 4, 32])]
        elif kind == 3:
            raw[at:at] = rng.randbytes(rng.choice([1, 2, 4]))
        elif kind == 4:
            raw[at:at] = raw[max(0, at - 40) : at]
        elif kind == 5:
            other = rng.choice(others)
            cut = rng.randrange(len(other) + 1)
            raw[at:] = other[cut:]
        else:
            raw[at : at + 4] = put_uint32(rng.choice([0, 1, 4, 32, 33, 64, 255, 1 << 16, (1 << 32) - 1]))
    return bytes(raw[: 1 << 16])


def seeds() -> dict[str, list[bytes]]:
    authority = ed25519.Ed25519PrivateKey.generate()
    privates = [authority, ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)]
    files = [key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()) for key in privates]
    files.append(authority.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    signers = [FileSigner(load_private_key(file, where="seed")) for file in files]
    certificate = (
        SSHCertificateBuilder()
        .public_key(privates[1].public_key())
        .serial(3)
        .type(SSHCertificateType.USER)
        .key_id(b"id")
        .valid_principals([b"alice"])
        .valid_after(0)
        .valid_before(1 << 40)
        .add_extension(b"permit-pty", b"")
        .sign(authority)
        .public_bytes()
        .decode()
    )
    certified = parse_key_line(certificate).certificate
    assert certified is not None
    lines, blobs = [], []
    for signer in signers:
        payload = encode_statement(
            subject=Subject(commit="1" * 40, tree="2" * 40),  # type: ignore[arg-type]
            predicate_type=SHARD_RECEIPT,
            predicate={"signer": claim_of(signer, user="a").encode(), "x": [1, 2.5, None, True, "é"]},
        )
        lines.append(sign_payload(payload, signer).encode())
        blobs.append(signer.sign(MESSAGE))
    unsigned = encode_statement(
        subject=Subject(commit="1" * 40, tree="2" * 40),  # type: ignore[arg-type]
        predicate_type=SHARD_RECEIPT,
        predicate={"signer": None},
    )
    lines.append(Envelope(payload=unsigned, signature=None).encode())
    keys = [signer.key.blob for signer in signers] + [certified.blob]
    allowed = "\n".join(
        [
            "# comment",
            f"alice,*@x {signers[0].key.line} comment",
            f'"a b" cert-authority,namespaces="git*,!x",valid-after="20260101Z" {signers[1].key.line}',
            f'!bob,* valid-before="202601011200Z",valid-after="20200101010101Z" {signers[2].key.line}\r',
        ]
    )
    serials = put_byte(0x20) + put_string(put_uint64(1) + put_uint64(9))
    serials += put_byte(0x21) + put_string(put_uint64(20) + put_uint64(30))
    serials += put_byte(0x22) + put_string(put_uint64(40) + put_string(b"\x81\x01"))
    serials += put_byte(0x23) + put_string(put_string("id") + put_string("other"))
    extension = put_string("x") + b"\0" + put_string(b"")
    krl = b"SSHKRL\n\x00" + put_uint32(1) + put_uint64(1) * 3 + put_string(b"") + put_string("comment")
    krl += put_byte(1) + put_string(put_string(keys[0]) + put_string(b"") + serials)
    krl += put_byte(2) + put_string(put_string(keys[1])) + put_byte(3) + put_string(put_string(b"s" * 20))
    krl += put_byte(5) + put_string(put_string(b"s" * 32)) + put_byte(255) + put_string(extension)
    revoked = f"# gone\n{signers[0].key.line}\n{signers[1].fingerprint}\r\n".encode()
    return {
        "open_record": lines,
        "statement": [base64.b64decode(line.split(b'"')[3]) for line in lines],
        "sshsig": blobs,
        "key": keys,
        "krl": [krl],
        "allowed_signers": [allowed.encode()],
        "revoked_keys": [revoked, krl],
        "private_key": files,
    }


def _open_record(data: bytes, originals: frozenset[bytes]) -> None:
    opened = open_record(data)
    if isinstance(opened, Verified) and data not in originals:
        raise AssertionError("a changed line was verified")
    if isinstance(opened, Rejected) and not opened.detail:
        raise AssertionError("a rejection without words")


def _sshsig(data: bytes) -> None:
    parsed = SshSig.decode(data, hashes=("sha256", "sha512"))
    if parsed.encode() != data:
        raise AssertionError("a second spelling")
    check_sshsig(data, MESSAGE)


def _allowed_signers(data: bytes) -> None:
    for entry in parse_allowed_signers(data).entries:
        entry.admits(entry.key, NOW, "gitledger")
        entry.speaks_for(entry.key, "alice")


def _private_key(data: bytes) -> None:
    peek_private_key(data)
    load_private_key(data, where="fuzz")


def targets(corpus: dict[str, list[bytes]]) -> Iterator[tuple[str, Callable[[bytes], Any]]]:
    originals = frozenset(corpus["open_record"])
    yield "open_record", lambda data: _open_record(data, originals)
    yield "statement", Statement.decode
    yield "sshsig", _sshsig
    yield "key", decode_key
    yield "krl", parse_krl
    yield "allowed_signers", _allowed_signers
    yield "revoked_keys", parse_revoked_keys
    yield "private_key", _private_key
    yield "armour", lambda data: dearmor(data.decode("latin-1"))


def fuzz(name: str, target: Callable[[bytes], Any], corpus: list[bytes], seconds: float) -> None:
    rng = random.Random(time.time_ns())
    coverage = Coverage()
    runs = refused = slowest = 0
    kept = list(corpus)

    def once(data: bytes) -> None:
        nonlocal refused
        try:
            target(data)
        except LedgerError:
            refused += 1

    for data in corpus:
        coverage.run(once, data)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        data = mutate(rng.choice(kept[-20:] if rng.random() < 0.5 else kept), kept, rng)
        began = time.perf_counter_ns()
        try:
            is_new = coverage.run(once, data)
        except BaseException:
            print(f"{name}: {data!r}")
            raise
        slowest = max(slowest, time.perf_counter_ns() - began)
        runs += 1
        if is_new:
            kept.append(data)
    pairs = len(coverage.seen)
    print(
        f"{name}: {runs} inputs, {refused} refused, {len(kept)} kept, {pairs} line pairs, "
        f"slowest {slowest / 1e6:.0f} ms",
        flush=True,
    )


def main(seconds: float, only: list[str]) -> None:
    corpus = seeds() | {"armour": [b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"]}
    chosen = [(name, target) for name, target in targets(corpus) if not only or name in only]
    for name, target in chosen:
        fuzz(name, target, corpus[name], seconds / len(chosen))


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
