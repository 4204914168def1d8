"""Our verifier against `ssh-keygen -Y verify`, over generated combinations.

Each case draws a key (plain, certificate, security key), an allowed_signers file, a revocation file, an instant, a
time zone, a namespace and a message, and asks both. They must agree, but for the differences in `DISAGREEMENTS`,
all of which are refusals of ours. `make test-trust-full` sets GITLEDGER_DIFFERENTIAL to run thousands.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gitledger.errors import ConfigError, DecodeError
from gitledger.trust.keys import PublicKey
from gitledger.trust.signer import FileSigner
from gitledger.trust.signers import Signers
from gitledger.trust.sshsig import SshSig, signed_data
from gitledger.trust.verified import check_sshsig

CASES = int(os.environ.get("GITLEDGER_DIFFERENTIAL", "400"))

DISAGREEMENTS = {
    "local-date": "a date without Z is another instant in every time zone; the file is refused with the remedy",
    "unreadable-line": "OpenSSH skips a line that it can't read; a typing mistake is an error here",
    "critical-option": "a certificate tied to a command or an address was not issued to sign records",
    "hash-sha256": "records are signed over sha512 only, so that a record has one spelling",
    "rsa-sha2-256": "RSA signs records with rsa-sha2-512 only",
}

REFUSED_FILES = {"local-date", "unreadable-line"}

NOON = datetime(2026, 6, 15, 12, 0, 0, tzinfo=UTC)
ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"]
NAMES = ["alice", "bob@example.org", "carol@ci.example.org", "Alice", "dave", "a,b"]
PATTERNS = [
    "alice",
    "alice",
    "*",
    "alice,bob@example.org",
    "*",
    "*@example.org",
    "*@*.example.org",
    "*,!alice",
    "!alice,*",
    "a?ice",
    "bob*,carol*",
    "*e*l*",
    '"alice,dave"',
    '"dave"',
    "!dave",
    "alice,alice",
    "*,!*@ci.*",
]


@dataclass
class Case:
    """What was drawn, and which of the written-down differences it may show."""

    key: PublicKey
    blob: bytes
    message: bytes
    allowed: bytes
    revoked: Path | None
    name: str
    at: datetime
    zone: str
    expected: set[str]

    def __str__(self) -> str:
        return f"{self.allowed!r} asked for {self.name} at {self.at}, revoked {self.revoked}: {self.expected}"


class Deck:
    """Everything that cases are drawn from, made once with the real programs."""

    def __init__(self, ssh, signers_by_kind, key_files, load_signer, make_security_key) -> None:
        self.random = random.Random(20260615)
        self.ssh = ssh
        self.signers = list(signers_by_kind.values())
        self.security_keys = [make_security_key("ed25519", flags=1), make_security_key("ecdsa", flags=5)]
        self.security_keys.append(make_security_key("ecdsa", application=b"ssh:ci", flags=0))
        self.authorities = {kind: key_files[kind] for kind in ("ed25519", "ecdsa384", "rsa")}
        self.authority_keys = {kind: signers_by_kind[kind].key for kind in self.authorities}
        self.certified = self._certify(load_signer)
        self.revocations = self._revoke()

    def _certify(self, load_signer) -> list[tuple[FileSigner, bool]]:
        """Signers with certificates of many shapes, and whether a critical option ties them."""
        shapes = [
            ("-n", "alice", "-z", "1"),
            ("-n", "alice,bob@example.org", "-z", "7", "-V", "20260101Z:20261231Z"),
            ("-n", "carol@ci.example.org", "-z", "12", "-V", "20260615120000Z:20260615120001Z"),
            ("-n", "dave", "-z", "300", "-V", "20250101Z:20260101Z"),
            ("-n", "alice", "-h"),
            ("-z", "9"),
            ("-n", "alice", "-O", "force-command=true"),
            ("-n", "alice", "-O", "no-pty", "-z", "8"),
        ]
        made = []
        for number, shape in enumerate(shapes):
            authority = list(self.authorities)[number % len(self.authorities)]
            path = self.ssh.make_key(["ed25519", "ecdsa256"][number % 2], name=f"user{number}")
            key = self.ssh.certify(self.authorities[authority], path, "-I", f"id-{number}", *shape)
            private = load_signer(path)._private
            made.append((FileSigner(private, certified=key), "force-command=true" in shape))
        return made

    def _revoke(self) -> list[Path]:
        """Revocation files: plain lists and KRLs by key, hash, serial, range and key id."""
        folder, run = self.ssh.folder, self.ssh.run
        victim, cert_victim = self.signers[0].key, self.certified[1][0].key
        plain = folder / "revoked.plain"
        plain.write_text(f"# gone\n\n{victim.line} old laptop\n{cert_victim.line}\r\n")
        ca_plain = folder / "revoked.ca"
        ca_plain.write_text(self.authority_keys["ecdsa384"].line + "\n")
        empty = folder / "revoked.empty"
        empty.write_text("# nobody\n")
        (folder / "victim.pub").write_text(victim.line + "\n")
        authority = f"{self.authorities['ed25519']}.pub"
        specs = {
            "serials": "serial: 1\nserial: 7-9\nserial: 300\n",
            "bitmap": "".join(f"serial: {n}\n" for n in range(1, 40, 3)),
            "ids": "id: id-0\nid: id-3\n",
            "sha1": f"sha1: {victim.line}\n",
            "sha256": f"sha256: {victim.line}\n",
            "hash": f"hash: {victim.fingerprint}\n",
            "key": f"key: {victim.line}\n",
        }
        files = [plain, ca_plain, empty]
        for name, text in specs.items():
            spec, krl = folder / f"{name}.spec", folder / f"{name}.krl"
            spec.write_text(text)
            done = run("ssh-keygen", "-q", "-k", "-f", krl, "-s", authority, spec)
            assert done.returncode == 0, done.stderr
            files.append(krl)
        return files

    def draw(self) -> Case:
        rng = self.random
        expected: set[str] = set()
        signer, line_key, is_authority = self._signer(expected)
        namespace = rng.choice(["gitledger"] * 9 + ["git", "gitledger2"])
        message = rng.randbytes(rng.choice([0, 1, 200]))
        blob = self._sign(signer, message, namespace, expected)
        at = rng.choice([NOON, NOON, NOON + timedelta(seconds=1), NOON - timedelta(seconds=1)])
        at += timedelta(days=rng.choice([0] * 6 + [-400, 400]))
        allowed = self._allowed(line_key, is_authority, expected)
        return Case(
            key=signer.key,
            blob=blob,
            message=message + (b"!" if rng.random() < 0.07 else b""),
            allowed=allowed,
            revoked=rng.choice([None] * 12 + self.revocations),
            name=rng.choice(["alice"] * 6 + NAMES),
            at=at,
            zone=rng.choice(ZONES),
            expected=expected,
        )

    def _signer(self, expected: set[str]):
        kind = self.random.random()
        if kind < 0.45:
            signer = self.random.choice(self.signers)
            return signer, signer.key.line, False
        if kind < 0.6:
            signer = self.random.choice(self.security_keys)
            return signer, signer.key.line, False
        signer, is_tied = self.random.choice(self.certified)
        if is_tied:
            expected.add("critical-option")
        authority = signer.key.certificate.authority
        if self.random.random() < 0.15:  # the certificate's own plain key on the line, or the authority unmarked
            return signer, self.random.choice([signer.key.line, authority.line]), self.random.random() < 0.5
        return signer, authority.line, True

    def _sign(self, signer, message: bytes, namespace: str, expected: set[str]) -> bytes:
        hash_name = "sha512"
        if self.random.random() < 0.05:
            hash_name = "sha256"
            expected.add("hash-sha256")
        data = signed_data(message, namespace=namespace, hash_name=hash_name)
        if not isinstance(signer, FileSigner):
            raw = signer.sign_raw(data)
        elif signer.algorithm == "rsa-sha2-512" and self.random.random() < 0.1:
            expected.add("rsa-sha2-256")
            raw = _rsa_sha256(signer, data)
        else:
            raw = signer._private.sign(data)
        if self.random.random() < 0.03:
            raw = raw[:-1] + bytes([raw[-1] ^ 1])
        key = signer.key
        public = key.certificate.blob if key.certificate else key.blob
        return SshSig(public_key=public, namespace=namespace, hash_name=hash_name, signature=raw).encode()

    def _allowed(self, line_key: str, is_authority: bool, expected: set[str]) -> bytes:
        rng = self.random
        lines = []
        for _ in range(rng.choice([0, 0, 1, 2])):
            lines.append(self._noise(expected))
        for _ in range(rng.choice([1, 1, 1, 2])):
            lines.append(self._line(line_key, is_authority, expected))
        rng.shuffle(lines)
        end = rng.choice(["\n", "\r\n"])
        return (end.join(lines) + rng.choice(["", end])).encode()

    def _line(self, key: str, is_authority: bool, expected: set[str]) -> str:
        rng = self.random
        options = ["cert-authority"] if is_authority else []
        if rng.random() < 0.3:
            lists = ["gitledger", "git", "git,gitledger", "git*", "*,!git", "!gitledger,*", "gitledger?", "x"]
            options.append(f'namespaces="{rng.choice(lists)}"')
        if rng.random() < 0.2:
            options.append(f'valid-after="{self._date(expected)}"')
        if rng.random() < 0.2:
            options.append(f'valid-before="{self._date(expected)}"')
        rng.shuffle(options)
        text = ",".join(o.upper() if rng.random() < 0.05 and "=" not in o else o for o in options)
        if "valid-after" in text and "valid-before" in text:
            after, before = (text.split(f'{name}="')[1].split('"')[0] for name in ("valid-after", "valid-before"))
            if _sortable(before) <= _sortable(after):
                expected.add("unreadable-line")
        words = [rng.choice(PATTERNS), *([text] if text else []), key]
        space = rng.choice([" ", " ", "  ", "\t"])
        comment = rng.choice(["", "", " laptop", ' "quoted # comment'])
        return rng.choice(["", "", " "]) + space.join(words) + comment

    def _date(self, expected: set[str]) -> str:
        rng = self.random
        form = rng.choice(["20260615120000Z", "202606151200Z", "20260615Z", "20260616Z", "20200101Z", "20300101Z"])
        form = rng.choice([form, form, "20260615115959Z", "20260615120001Z", form.replace("Z", "z")])
        if rng.random() < 0.05:
            expected.add("local-date")
            return form.rstrip("Zz")
        return form

    def _noise(self, expected: set[str]) -> str:
        rng = self.random
        other = rng.choice(self.signers).key.line
        kind = rng.choice(["blank", "comment", "other"] * 5 + ["bad", "bad"])
        if kind == "bad":
            expected.add("unreadable-line")
            bad = [
                "alice",
                f"alice {other[:30]}",
                f"alice bogus-option {other}",
                f"alice namespaces=git {other}",
                f'"alice {other}',
                f'alice namespaces="git {other}',
                f'alice namespaces="a",namespaces="b" {other}',
                f'alice valid-after="someday" {other}',
                f'alice valid-before="20261399Z" {other}',
                "alice ssh-ed25519 !!!!",
                f"alice cert-authority, {other}",
            ]
            return rng.choice(bad)
        return {"blank": rng.choice(["", "   "]), "comment": " # a comment", "other": f"zoe {other}"}[kind]


def _sortable(text: str) -> str:
    return text.rstrip("Zz").ljust(14, "0")


def _rsa_sha256(signer: FileSigner, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    from gitledger.trust.wire import put_string

    return put_string("rsa-sha2-256") + put_string(signer._private._material.sign(data, PKCS1v15(), SHA256()))


def ours(case: Case) -> bool | None:
    """Return our verdict; None where the file itself is refused."""
    try:
        revoked = case.revoked.read_bytes() if case.revoked else b""
        signers = Signers.parse(case.allowed, revoked)
    except ConfigError:
        return None
    try:
        key, _ = check_sshsig(case.blob, case.message)
    except DecodeError:
        return False
    return signers.speaks_for(key, case.name, case.at)


def theirs(case: Case, ssh) -> bool:
    options = [f"-Overify-time={case.at.strftime('%Y%m%d%H%M%SZ')}"]
    if case.revoked:
        options += ["-r", str(case.revoked)]
    done = ssh.verify(
        case.blob,
        case.message,
        allowed=case.allowed,
        principal=case.name,
        options=options,
        env={"TZ": case.zone},
    )
    assert (done.returncode == 0) == done.stdout.startswith(b"Good"), done
    return done.returncode == 0


@pytest.fixture
def deck(ssh, signers_by_kind, key_files, load_signer, make_security_key) -> Deck:
    return Deck(ssh, signers_by_kind, key_files, load_signer, make_security_key)


def test_t03_we_decide_as_ssh_keygen_decides(deck):
    asked_before = deck.ssh.calls["ssh-keygen"]
    outcomes: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    for number in range(CASES):
        case = deck.draw()
        mine, reference = ours(case), theirs(case, deck.ssh)
        assert (mine is None) == bool(case.expected & REFUSED_FILES), f"case {number}: ours {mine}; {case}"
        if mine is reference:
            outcomes["good" if reference else "refused"] += 1
            continue
        context = f"case {number}: ours {mine}, ssh-keygen {reference}; {case}"
        assert mine is not True, f"accepted what ssh-keygen refuses: {context}"
        may_be = case.expected & REFUSED_FILES if mine is None else case.expected - REFUSED_FILES
        assert may_be, f"no reason is written down for this: {context}"
        excused[min(may_be)] += 1
    assert deck.ssh.calls["ssh-keygen"] - asked_before == CASES  # the oracle was really asked, every time
    assert set(excused) <= set(DISAGREEMENTS)
    assert outcomes["good"] > CASES * 0.1, outcomes  # not everything is refused, in which case all agree
    assert outcomes["refused"] > CASES * 0.2, outcomes
    print(f"\n{CASES} cases: {dict(outcomes)}, written down: {dict(excused)}")
