"""What signs: one small contract, and the signer that holds a key file's key in memory."""

from __future__ import annotations

from typing import Protocol

from gitledger.records.envelope import SIGNATURE_NAMESPACE
from gitledger.records.ids import KeyFingerprint
from gitledger.trust.keys import PublicKey
from gitledger.trust.private_keys import PrivateKey
from gitledger.trust.sshsig import SshSig, signed_data

__all__ = ["FileSigner", "Signer"]


class Signer(Protocol):
    """Somebody who can sign records with one key.

    `algorithm` is the signature's (`ssh-ed25519`, `rsa-sha2-512`), `backend` says where the private half is:
    `file`, `agent` or `ssh-keygen`. Both go into `SignerClaim`.
    """

    @property
    def key(self) -> PublicKey:
        """Return the public half."""

    @property
    def fingerprint(self) -> KeyFingerprint:
        """Return the key's `SHA256:` fingerprint."""

    @property
    def algorithm(self) -> str:
        """Return the signature algorithm's name."""

    @property
    def backend(self) -> str:
        """Return the word for where the private half is held."""

    def sign(self, message: bytes) -> bytes:
        """Return an SSHSIG blob over `message` (namespace `gitledger`, sha512); raises `TrustError`."""


class FileSigner:
    """Signs in process with a key read from a file or handed over as text.

    With a certificate for the key, signatures carry the certificate, as those of `ssh-keygen -f …-cert.pub` do.
    """

    __slots__ = ("_certified", "_private")

    def __init__(self, private: PrivateKey, *, certified: PublicKey | None = None) -> None:
        self._private = private
        self._certified = certified if certified and certified.certificate else None

    @property
    def key(self) -> PublicKey:
        """Return the public half, with its certificate where there is one."""
        return self._certified or self._private.public

    @property
    def fingerprint(self) -> KeyFingerprint:
        """Return the key's `SHA256:` fingerprint."""
        return self._private.public.fingerprint

    @property
    def algorithm(self) -> str:
        """Return the signature algorithm's name."""
        return self._private.algorithm

    @property
    def backend(self) -> str:
        """Return `file`."""
        return "file"

    def sign(self, message: bytes) -> bytes:
        """Return an SSHSIG blob over `message`."""
        key = self.key
        return SshSig(
            public_key=key.certificate.blob if key.certificate else key.blob,
            namespace=SIGNATURE_NAMESPACE,
            hash_name="sha512",
            signature=self._private.sign(signed_data(message)),
        ).encode()
