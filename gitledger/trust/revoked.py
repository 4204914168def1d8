"""`revoked_keys`: keys that are refused whatever the date, as a plain list or an OpenSSH KRL."""

from __future__ import annotations

import re

from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError, DecodeError
from gitledger.records.ids import KeyFingerprint, key_fingerprint
from gitledger.trust.allowed_signers import numbered_lines
from gitledger.trust.certificates import decode_key
from gitledger.trust.keys import PublicKey, decode_key_text
from gitledger.trust.krl import Krl, is_krl, parse_krl

__all__ = ["RevokedKeys", "parse_revoked_keys"]

_EDIT = "write one public key or SHA256: fingerprint a line, or a KRL made by `ssh-keygen -k`"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedKeys:
    """What a file revokes. A certificate falls with its key, and with its authority's key."""

    fingerprints: frozenset[KeyFingerprint] = frozenset()
    krl: Krl | None = None

    def holds(self, key: PublicKey) -> bool:
        """Tell whether `key`, or the authority of its certificate, is revoked."""
        if key.fingerprint in self.fingerprints or (self.krl and self.krl.revokes_key(key.blob)):
            return True
        if key.certificate is None:
            return False
        if self.krl and self.krl.revokes_certificate(key.certificate):
            return True
        return self.holds(key.certificate.authority)


def parse_revoked_keys(data: bytes, *, source: str = ".gitledger/revoked_keys") -> RevokedKeys:
    """Return what a file revokes; raises `ConfigError` `bad-revoked-keys` naming `source` and the line.

    An unreadable line is an error, never skipped: it may be the one that revokes. Keys that may not sign anyhow
    (DSA, short RSA) are no errors.
    """
    if is_krl(data):
        try:
            return RevokedKeys(krl=parse_krl(data))
        except DecodeError as error:
            raise ConfigError(
                "bad-revoked-keys", f"{source}: {error.message}", "ssh-keygen -Q -l -f FILE"
            ) from error
    found = [_line(line, where) for where, line in numbered_lines(data, source, "bad-revoked-keys")]
    return RevokedKeys(fingerprints=frozenset(fingerprint for fingerprint in found if fingerprint))


def _line(line: str, where: str) -> KeyFingerprint | None:
    words = re.split(r"[ \t]+", line, maxsplit=2)
    try:
        if words[0].startswith("SHA256:"):
            return key_fingerprint(words[0])
        return decode_key(decode_key_text(words[0], words[1] if len(words) > 1 else "")).fingerprint
    except (DecodeError, ValueError) as error:
        if isinstance(error, DecodeError) and error.code == "weak-key":
            return None
        raise ConfigError("bad-revoked-keys", f"{where}: {error}", _EDIT) from error
