"""Verification: the only maker of `Verified`.

What `open_record` checks, in this order; the reason in brackets is the one that `Rejected` names:

1. The line is an envelope in its canonical spelling, with one signature or none [malformed].
2. Without a signature the payload says `signer: null`, with one it does not [malformed].
3. The signature is an SSHSIG blob [malformed] in the namespace `gitledger` [wrong-namespace] over sha512 by a key
   and algorithm that are accepted [weak-key]; a certificate is signed by the authority that it names
   [bad-signature].
4. The signature is good over the stored payload bytes [bad-signature]. From here on the key is known.
5. `keyid`, a hint that nobody signed, names that key [malformed].
6. The payload is a statement [undecodable].
7. Its `signer.key_fingerprint` is the verifying key [key-mismatch].
8. Its subject is the commit that the record stands on, where the caller names one [misplaced].

What the caller MUST still do: hold the subject's tree against the repository, decide whether the key belongs to
anyone (`signers`), whether an untouched security key will do (`touched`), and decode the predicate.
"""

from __future__ import annotations

from dataclasses import InitVar, field

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError, InternalError
from gitledger.records.envelope import SIGNATURE_NAMESPACE, Envelope, decode_line
from gitledger.records.ids import CommitId, RecordId
from gitledger.records.statement import Statement
from gitledger.trust.certificates import decode_key
from gitledger.trust.keys import ED25519, PublicKey, SignatureFacts, check_signature
from gitledger.trust.sshsig import SshSig, signed_data

__all__ = ["REASONS", "Opened", "Rejected", "Unsigned", "Verified", "check_sshsig", "open_record"]

REASONS = frozenset(
    {
        "malformed",
        "wrong-namespace",
        "weak-key",
        "bad-signature",
        "undecodable",
        "key-mismatch",
        "misplaced",
    }
)
"""Why a line is no record, a closed list."""

_SEAL = object()
"""Only this module holds it, so only a checked signature becomes `Verified`, or one of which the caller of
`open_record` says that it was checked before; a test or a caller that builds one by hand, or copies one with
`dataclasses.replace`, fails at once. It guards against mistakes, not against an attacker who runs code here:
against that one nothing would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A record whose signature is good; whom its key belongs to is another question.

    `touched` and `user_verified` (a PIN or a fingerprint) are None unless a security key (FIDO) signed.
    """

    line: bytes
    envelope: Envelope
    statement: Statement
    key: PublicKey
    touched: bool | None
    user_verified: bool | None = None
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise InternalError("not-verified", "a record was called verified without being verified")

    @property
    def id(self) -> RecordId:
        """The record's id."""
        return self.statement.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsigned:
    """A well-formed record that nobody signed, and that says so itself."""

    line: bytes
    envelope: Envelope
    statement: Statement

    @property
    def id(self) -> RecordId:
        """The record's id."""
        return self.statement.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A line that counts for nothing.

    `reason` is one of `REASONS`. `key` is set where the signature over the payload is good: with `undecodable` it
    is for the caller to let a trusted key's record block (DESIGN section 2, law 7).
    """

    line: bytes = field(repr=False)
    record: RecordId | None
    reason: str
    detail: str
    key: PublicKey | None = None


Opened = Verified | Unsigned | Rejected


def open_record(line: bytes, *, commit: CommitId | None = None, was_good: bool = False) -> Opened:
    """Return what one line of a note is, never raising for what it holds.

    With `commit`, a record about any other commit is rejected as misplaced: place proves nothing. `was_good`: the
    signature of this very line was found good before, and an Ed25519 one needs no second look. Whoever judges MUST
    NOT say so of what it has only read somewhere.
    """
    try:
        envelope = decode_line(line)
    except DecodeError as error:
        return Rejected(line=line, record=None, reason="malformed", detail=error.message)
    signature = envelope.signature
    opened = (
        _open_unsigned(line, envelope) if signature is None else _open_signed(line, envelope, was_good=was_good)
    )
    if isinstance(opened, Rejected) or commit is None or opened.statement.subject.commit == commit:
        return opened
    return Rejected(
        line=line,
        record=opened.id,
        reason="misplaced",
        detail=f"it is about commit {opened.statement.subject.commit}, not {commit}",
        key=opened.key if isinstance(opened, Verified) else None,
    )


def _open_unsigned(line: bytes, envelope: Envelope) -> Unsigned | Rejected:
    try:
        statement = Statement.decode(envelope.payload)
    except DecodeError as error:
        return Rejected(line=line, record=envelope.id, reason="malformed", detail=error.message)
    if statement.signer is not None:
        return Rejected(
            line=line,
            record=envelope.id,
            reason="malformed",
            detail="its signature is missing: the payload names a signer",
        )
    return Unsigned(line=line, envelope=envelope, statement=statement)


def _open_signed(line: bytes, envelope: Envelope, *, was_good: bool) -> Verified | Rejected:
    signature = envelope.signature
    assert signature is not None  # noqa: S101 - narrows the type; open_record has just asked
    try:
        key, facts = _signed_by(signature.blob, envelope.signed_bytes(), was_good=was_good)
    except DecodeError as error:
        reason = error.code if error.code in REASONS else "malformed"
        return Rejected(line=line, record=envelope.id, reason=reason, detail=error.message)

    def rejected(reason: str, detail: str) -> Rejected:
        return Rejected(line=line, record=envelope.id, reason=reason, detail=detail, key=key)

    if signature.keyid != key.fingerprint:
        return rejected("malformed", f"keyid names {signature.keyid}, but {key.fingerprint} signed")
    try:
        statement = Statement.decode(envelope.payload)
    except DecodeError as error:
        return rejected("undecodable", error.message)
    if statement.signer is None:
        return rejected("malformed", "it is signed, but its payload says that nobody signs")
    if statement.signer.key_fingerprint != key.fingerprint:
        return rejected("key-mismatch", f"it names {statement.signer.key_fingerprint}, {key.fingerprint} signed")
    return Verified(
        line=line,
        envelope=envelope,
        statement=statement,
        key=key,
        touched=facts.touched,
        user_verified=facts.user_verified,
        seal=_SEAL,
    )


def check_sshsig(
    blob: bytes, message: bytes, *, namespace: str = SIGNATURE_NAMESPACE
) -> tuple[PublicKey, SignatureFacts]:
    """Return the key whose SSHSIG `blob` over `message` is good, and what the signature says.

    Raises `DecodeError` with a code out of `REASONS`. That a key signed says nothing of whose key it is.
    """
    return _signed_by(blob, message, namespace=namespace)


def _signed_by(
    blob: bytes, message: bytes, *, namespace: str = SIGNATURE_NAMESPACE, was_good: bool = False
) -> tuple[PublicKey, SignatureFacts]:
    signature = SshSig.decode(blob)
    if signature.namespace != namespace:
        raise DecodeError(
            "wrong-namespace", f"signature: made for {signature.namespace[:60]!r}, not for {namespace!r}"
        )
    key = decode_key(signature.public_key)
    if was_good and key.algorithm == ED25519 and key.certificate is None:
        return key, SignatureFacts(algorithm=ED25519)
    signed = signed_data(message, namespace=namespace, hash_name=signature.hash_name)
    return key, check_signature(key, signed, signature.signature)
