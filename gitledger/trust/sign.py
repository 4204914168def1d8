"""Signing a payload into the envelope that the ledger stores."""

from __future__ import annotations

from gitledger.errors import DecodeError, TrustError
from gitledger.records.envelope import PAYLOAD_TYPE, Envelope, Signature, pae
from gitledger.records.statement import SignerClaim
from gitledger.trust.signer import Signer
from gitledger.trust.verified import check_sshsig

__all__ = ["claim_of", "sign_payload"]


def claim_of(signer: Signer, *, user: str) -> SignerClaim:
    """Return what a payload must say of its signer; `user` is the person's own word for themselves."""
    return SignerClaim(
        user=user,
        key_fingerprint=signer.fingerprint,
        algorithm=signer.algorithm,
        backend=signer.backend,
    )


def sign_payload(payload: bytes, signer: Signer) -> Envelope:
    """Return the signed envelope of `payload`.

    The fresh signature is verified before it is returned: a broken agent or a faulty device must not write
    records that nobody accepts. Raises `TrustError` `signing-failed` then, and whatever `signer` raises.
    """
    message = pae(PAYLOAD_TYPE, payload)
    blob = signer.sign(message)
    try:
        key, _ = check_sshsig(blob, message)
    except DecodeError as error:
        raise TrustError(
            "signing-failed", f"the fresh signature can't be verified: {error.message}", "try another key (--key)"
        ) from error
    if key.blob != signer.key.blob:
        raise TrustError("signing-failed", "the signature was made by another key than asked for", "ssh-add -l")
    return Envelope(payload=payload, signature=Signature(keyid=key.fingerprint, blob=blob))
