"""Attempts to pass off evidence that no trusted key gave, at this room's level: each refused for its own reason.

`admit` is what a caller does with a line at the least: open it for the commit that it stands on, and ask whose key
signed. The honest record is admitted, so that nothing here is refused by accident.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gitledger.records.envelope import PAYLOAD_TYPE, Envelope, Signature, pae
from gitledger.records.ids import CommitId
from gitledger.trust.certificates import parse_key_line
from gitledger.trust.keys import PublicKey, fingerprint_of
from gitledger.trust.sign import sign_payload
from gitledger.trust.signer import FileSigner
from gitledger.trust.signers import Signers
from gitledger.trust.sshsig import SshSig, signed_data
from gitledger.trust.verified import Rejected, Unsigned, open_record
from gitledger.trust.wire import put_byte, put_mpint, put_string, put_uint32, put_uint64

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
HERE = CommitId("1" * 40)
ED25519_ORDER = 2**252 + 27742317777372353535851937790883648493


@dataclass
class World:
    """Alice, whom the file names, Mallory, whom it does not, and an authority that the file names."""

    alice: FileSigner
    mallory: FileSigner
    rsa: FileSigner
    authority: FileSigner
    make_payload: Callable[..., bytes]
    make_security_key: Callable[..., Any]
    certify: Callable[..., PublicKey]
    allowed: list[str] = field(default_factory=list)
    revoked: str = ""

    def admit(self, line: bytes) -> str:
        """Return `admitted`, or why not."""
        opened = open_record(line, commit=HERE)
        if isinstance(opened, Rejected):
            return opened.reason
        if isinstance(opened, Unsigned):
            return "unsigned"
        signers = Signers.parse("\n".join(self.allowed).encode(), self.revoked.encode())
        if signers.is_revoked(opened.key):
            return "revoked"
        if "alice" not in signers.principals(opened.key, NOW):
            return "not-alice"
        return "untouched" if opened.touched is False else "admitted"

    def honest(self, **fields: Any) -> Envelope:
        return sign_payload(self.make_payload(self.alice, **fields), self.alice)

    def document(self) -> dict[str, Any]:
        return json.loads(self.honest().encode())

    def sealed(self, payload: bytes, blob: bytes, keyid: Any = None) -> bytes:
        return Envelope(
            payload=payload, signature=Signature(keyid=keyid or self.alice.fingerprint, blob=blob)
        ).encode()

    def by_hand(self, signer: FileSigner | None = None, **changes: Any) -> bytes:
        """Return a record by Alice's key, or another's, with parts of its SSHSIG changed."""
        signer = signer or self.alice
        payload = self.make_payload(signer)
        message = changes.pop("message", pae(PAYLOAD_TYPE, payload))
        namespace = changes.get("namespace", "gitledger")
        hash_name = changes.get("hash_name", "sha512")
        data = signed_data(message, namespace=namespace, hash_name=hash_name)
        parts = {"public_key": signer.key.blob, "namespace": namespace, "hash_name": hash_name}
        parts["signature"] = signer._private.sign(data)
        return self.sealed(payload, SshSig(**(parts | changes)).encode(), signer.fingerprint)


def spell(document: Any, **options: Any) -> bytes:
    return json.dumps(document, **({"separators": (",", ":"), "sort_keys": True} | options)).encode()


ATTACKS: dict[str, tuple[str, Callable[[World], bytes]]] = {}


def attack(reason: str):
    def register(make: Callable[[World], bytes]) -> Callable[[World], bytes]:
        ATTACKS[make.__name__] = (reason, make)
        return make

    return register


# Keys that are not Alice's


@attack("not-alice")
def a_strangers_key(world):
    return sign_payload(world.make_payload(world.mallory), world.mallory).encode()


@attack("not-alice")
def a_strangers_key_whose_payload_says_alice(world):
    return sign_payload(world.make_payload(world.mallory, user="alice"), world.mallory).encode()


@attack("key-mismatch")
def alices_payload_signed_again_by_a_stranger(world):
    return sign_payload(world.make_payload(world.alice), world.mallory).encode()


@attack("malformed")
def a_strangers_signature_under_alices_keyid(world):
    envelope = sign_payload(world.make_payload(world.mallory), world.mallory)
    return world.sealed(envelope.payload, envelope.signature.blob)


@attack("bad-signature")
def alices_key_before_a_strangers_signature(world):
    payload = world.make_payload(world.alice)
    raw = world.mallory._private.sign(signed_data(pae(PAYLOAD_TYPE, payload)))
    blob = SshSig(
        public_key=world.alice.key.blob, namespace="gitledger", hash_name="sha512", signature=raw
    ).encode()
    return world.sealed(payload, blob)


@attack("not-alice")
def a_name_that_looks_like_alices(world):
    world.allowed.append(f"аlice {world.mallory.key.line}")  # a Cyrillic a
    return a_strangers_key(world)


@attack("not-alice")
def a_key_in_a_comment_of_the_file(world):
    world.allowed.append(f"# alice {world.mallory.key.line}")
    return a_strangers_key(world)


@attack("not-alice")
def a_key_listed_for_commits_alone(world):
    world.allowed.append(f'alice namespaces="git" {world.mallory.key.line}')
    return a_strangers_key(world)


@attack("not-alice")
def an_expired_key(world):
    world.allowed[0] = f'alice valid-before="20260615115959Z" {world.alice.key.line}'
    return world.honest().encode()


@attack("not-alice")
def a_key_whose_time_has_not_come(world):
    world.allowed[0] = f'alice valid-after="20260615120001Z" {world.alice.key.line}'
    return world.honest().encode()


@attack("revoked")
def a_revoked_key(world):
    world.revoked = f"{world.alice.key.line} stolen\n"
    return world.honest().encode()


@attack("malformed")
def a_revoked_rsa_key_spelled_with_another_fingerprint(world):
    """A needless zero before the modulus: the same key, but no revocation list knows its hash."""
    numbers = world.rsa._private._material.public_key().public_numbers()
    modulus = put_mpint(numbers.n)[4:]
    blob = put_string("ssh-rsa") + put_mpint(numbers.e) + put_string(b"\x00" + modulus)
    world.revoked = world.rsa.fingerprint
    payload = world.make_payload(world.rsa)
    made = SshSig.decode(world.rsa.sign(pae(PAYLOAD_TYPE, payload)))
    again = SshSig(public_key=blob, namespace="gitledger", hash_name="sha512", signature=made.signature)
    return world.sealed(payload, again.encode(), fingerprint_of(blob))


# Certificates


@attack("not-alice")
def a_certificate_by_the_attackers_own_authority(world):
    return certified(world, world.certify("mallory", "-n", "alice"))


@attack("not-alice")
def a_certificate_for_somebody_else(world):
    return certified(world, world.certify("authority", "-n", "mallory"))


@attack("not-alice")
def a_certificate_for_a_host(world):
    return certified(world, world.certify("authority", "-h", "-n", "alice"))


@attack("not-alice")
def a_certificate_for_everybody(world):
    return certified(world, world.certify("authority"))


@attack("not-alice")
def an_expired_certificate(world):
    return certified(world, world.certify("authority", "-n", "alice", "-V", "20250101Z:20250102Z"))


@attack("not-alice")
def a_certificate_tied_to_one_command(world):
    return certified(world, world.certify("authority", "-n", "alice", "-O", "force-command=true"))


@attack("revoked")
def a_certificate_of_a_revoked_authority(world):
    world.revoked = world.authority.key.line
    return certified(world, world.certify("authority", "-n", "alice"))


@attack("bad-signature")
def a_certificate_that_only_names_the_authority(world):
    """The authority's public key is public; its signature is what can't be had."""
    return certified(world, PublicKeyWithBlob(world.mallory.key, forged_certificate(world)))


@attack("bad-signature")
def a_certificate_with_its_principals_changed(world):
    made = world.certify("authority", "-n", "mallo")
    blob = made.certificate.blob.replace(b"\x00\x00\x00\x05mallo", b"\x00\x00\x00\x05alice")
    return certified(world, PublicKeyWithBlob(made, blob))


@attack("malformed")
def a_certificate_signed_by_a_certificate(world):
    made = world.certify("authority", "-n", "alice")
    authority = put_string(world.authority.key.blob)
    assert authority in made.certificate.blob
    chained = made.certificate.blob.replace(authority, put_string(made.certificate.blob))
    return certified(world, PublicKeyWithBlob(made, chained))


@attack("not-alice")
def the_authoritys_own_key(world):
    return sign_payload(world.make_payload(world.authority), world.authority).encode()


@dataclass
class PublicKeyWithBlob:
    """A key whose certificate is spelled by hand."""

    key: PublicKey
    blob: bytes

    @property
    def certificate(self) -> Any:
        return self


def certified(world: World, made: Any) -> bytes:
    payload = world.make_payload(world.mallory)
    raw = world.mallory._private.sign(signed_data(pae(PAYLOAD_TYPE, payload)))
    blob = SshSig(
        public_key=made.certificate.blob, namespace="gitledger", hash_name="sha512", signature=raw
    ).encode()
    return world.sealed(payload, blob, world.mallory.fingerprint)


def forged_certificate(world: World) -> bytes:
    key = world.mallory.key.blob[4 + len("ssh-ed25519") :]
    body = put_string("ssh-ed25519-cert-v01@openssh.com") + put_string(b"n" * 32) + key
    body += put_uint64(0) + put_uint32(1) + put_string("id") + put_string(put_string("alice"))
    body += put_uint64(0) + put_uint64(2**64 - 1) + put_string(b"") * 3 + put_string(world.authority.key.blob)
    return body + put_string(world.mallory._private.sign(body))


# Signatures


@attack("malformed")
def a_stripped_signature(world):
    return Envelope(payload=world.honest().payload, signature=None).encode()


@attack("unsigned")
def an_unsigned_record(world):
    return Envelope(payload=world.make_payload(None), signature=None).encode()


@attack("malformed")
def a_signature_over_a_payload_that_says_nobody_signs(world):
    return sign_payload(world.make_payload(None), world.alice).encode()


@attack("malformed")
def a_second_signature(world):
    document = world.document()
    mallorys = json.loads(a_strangers_key(world))["signatures"]
    return spell(document | {"signatures": document["signatures"] + mallorys})


@attack("wrong-namespace")
def a_signature_that_alice_made_for_a_commit(world):
    return world.by_hand(namespace="git")


@attack("malformed")
def a_namespace_with_a_blank_behind_it(world):
    return world.by_hand(namespace="gitledger ")


@attack("bad-signature")
def a_namespace_that_was_changed_afterwards(world):
    message = pae(PAYLOAD_TYPE, world.make_payload(world.alice))
    return world.by_hand(signature=world.alice._private.sign(signed_data(message, namespace="git")))


@attack("bad-signature")
def a_signature_over_the_bare_payload(world):
    return world.by_hand(message=world.make_payload(world.alice))


@attack("bad-signature")
def a_signature_over_another_payload_type(world):
    return world.by_hand(message=pae("text/plain", world.make_payload(world.alice)))


@attack("weak-key")
def a_weaker_message_hash(world):
    return world.by_hand(hash_name="sha256")


@attack("weak-key")
def an_rsa_signature_with_sha1(world):
    raw = world.rsa._private.sign(b"x")
    return world.by_hand(world.rsa, signature=raw.replace(put_string("rsa-sha2-512"), put_string("ssh-rsa")))


@attack("weak-key")
def a_short_rsa_key(world):
    return world.by_hand(public_key=put_string("ssh-rsa") + put_mpint(65537) + put_mpint((1 << 1023) | 1))


@attack("weak-key")
def a_dsa_key(world):
    return world.by_hand(public_key=put_string("ssh-dss") + put_mpint(5) * 4)


@attack("malformed")
def a_signature_of_another_algorithm_than_its_key(world):
    return world.by_hand(signature=put_string("ecdsa-sha2-nistp256") + put_string(b"\0" * 64))


@attack("bad-signature")
def the_same_ed25519_signature_in_a_second_spelling(world):
    """S + L instead of S: naive verifiers accept both, and a record would have two lines."""
    made = SshSig.decode(world.honest().signature.blob)
    head, scalar = made.signature[:-32], int.from_bytes(made.signature[-32:], "little")
    twin = head + (scalar + ED25519_ORDER).to_bytes(32, "little")
    blob = SshSig(public_key=made.public_key, namespace="gitledger", hash_name="sha512", signature=twin)
    return world.sealed(world.honest().payload, blob.encode())


@attack("malformed")
def words_in_the_reserved_field(world):
    blob = world.honest().signature.blob
    at = blob.index(put_string("gitledger")) + 13
    return world.sealed(world.honest().payload, blob[:at] + put_string(b"x") + blob[at + 4 :])


@attack("malformed")
def bytes_behind_the_signature(world):
    return world.sealed(world.honest().payload, world.honest().signature.blob + b"\0")


@attack("malformed")
def an_unknown_signature_version(world):
    blob = world.honest().signature.blob
    return world.sealed(world.honest().payload, blob[:6] + put_uint32(2) + blob[10:])


# Security keys


@attack("untouched")
def a_security_key_that_nobody_touched(world):
    held = world.make_security_key(flags=0)
    world.allowed.append(f"alice {held.key.line}")
    return sign_payload(world.make_payload(held), held).encode()


@attack("bad-signature")
def a_security_key_whose_touch_was_written_in_afterwards(world):
    held = world.make_security_key(flags=0)
    world.allowed.append(f"alice {held.key.line}")
    envelope = sign_payload(world.make_payload(held), held)
    blob = envelope.signature.blob[:-5] + put_byte(1) + envelope.signature.blob[-4:]
    return world.sealed(envelope.payload, blob, held.fingerprint)


# Places


@attack("misplaced")
def a_record_stolen_from_another_commit(world):
    return world.honest(commit=CommitId("9" * 40)).encode()


@attack("misplaced")
def a_record_copied_along_when_its_commit_was_amended(world):
    """As `notes.rewriteRef` does: the old commit stays in the signed bytes."""
    return world.honest(commit=CommitId("a" * 40)).encode()


# Spellings


@attack("malformed")
def base64_spelled_another_way(world):
    document = world.document()
    text = document["payload"]
    tails = [text[:-1] + letter for letter in "ABCDEFGH" if text[-1] != letter]
    return spell(document | {"payload": text + "\n" if not tails else text[:4] + "\n" + text[4:]})


@attack("malformed")
def base64_with_stray_bits(world):
    document = world.document()
    sig = document["signatures"][0]["sig"]
    assert sig.endswith("=")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    at = len(sig.rstrip("=")) - 1
    twin = sig[:at] + alphabet[alphabet.index(sig[at]) ^ 1] + sig[at + 1 :]
    assert base64.b64decode(twin) == base64.b64decode(sig)
    document["signatures"][0]["sig"] = twin
    return spell(document)


@attack("malformed")
def duplicate_keys_around_the_payload(world):
    line = world.honest().encode()
    return line[:-1] + b',"payload":"AAAA"}'


@attack("malformed")
def an_envelope_with_blanks(world):
    return spell(world.document(), separators=(", ", ": "))


@attack("malformed")
def an_envelope_in_another_order(world):
    document = world.document()
    return spell(dict(reversed(document.items())), sort_keys=False)


@attack("malformed")
def an_envelope_with_one_field_more(world):
    return spell(world.document() | {"verdict": "passed"})


@attack("malformed")
def another_payload_type(world):
    return spell(world.document() | {"payloadType": "text/plain"})


@attack("malformed")
def a_line_of_two_megabytes(world):
    return spell(world.document() | {"payload": "A" * (2 << 20)})


def signed_text(world: World, change: Callable[[str], str]) -> bytes:
    payload = world.make_payload(world.alice).decode()
    changed = change(payload)
    assert changed != payload
    return sign_payload(changed.encode(), world.alice).encode()


@attack("undecodable")
def a_signed_payload_with_duplicate_keys(world):
    return signed_text(world, lambda text: text.replace('"outcome":', '"outcome":"failed","outcome":', 1))


@attack("undecodable")
def a_signed_payload_of_an_unknown_major_version(world):
    return signed_text(world, lambda text: text.replace("shard:v1", "shard:v2"))


@attack("undecodable")
def a_signed_payload_with_nan(world):
    return signed_text(world, lambda text: text.replace('"passed"', "NaN"))


@attack("undecodable")
def a_signed_payload_about_two_commits(world):
    def twice(text: str) -> str:
        document = json.loads(text)
        return json.dumps(document | {"subject": document["subject"] * 2})

    return signed_text(world, twice)


@attack("undecodable")
def a_signed_payload_that_names_a_tree_alone(world):
    return signed_text(world, lambda text: text.replace("gitCommit", "gitTag"))


@attack("undecodable")
def a_signed_payload_nested_a_thousand_deep(world):
    return signed_text(world, lambda text: text.replace('"passed"', "[" * 1000 + "]" * 1000))


@attack("undecodable")
def a_signed_payload_with_a_number_of_a_million_digits(world):
    return signed_text(world, lambda text: text.replace('"passed"', "9" * 500_000))


@pytest.fixture
def world(ssh, signers_by_kind, load_signer, make_payload, make_security_key) -> World:
    mallory_path, authority_path = ssh.make_key(name="mallory"), ssh.make_key(name="authority")
    paths = {"mallory": mallory_path, "authority": authority_path}
    alice, authority = signers_by_kind["ed25519"], load_signer(authority_path)

    def certify(by: str, *options: str) -> PublicKey:
        ssh.certify(paths[by], mallory_path, "-I", "id", *options)
        return parse_key_line(Path(f"{mallory_path}-cert.pub").read_text())

    return World(
        alice=alice,
        mallory=load_signer(mallory_path),
        rsa=signers_by_kind["rsa"],
        authority=authority,
        make_payload=make_payload,
        make_security_key=make_security_key,
        certify=certify,
        allowed=[f"alice {alice.key.line}", f"alice cert-authority {authority.key.line}"],
    )


def test_the_honest_record_is_admitted(world):
    assert world.admit(world.honest().encode()) == "admitted"
    assert world.admit(world.by_hand()) == "admitted"
    assert world.admit(certified(world, world.certify("authority", "-n", "alice"))) == "admitted"


def test_there_are_enough_attacks():
    assert len(ATTACKS) >= 40


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_is_refused_for_its_own_reason(name, world):
    reason, make = ATTACKS[name]
    assert world.admit(make(world)) == reason
