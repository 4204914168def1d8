"""Who a key belongs to, by `allowed_signers` and `revoked_keys`: a value made of bytes, asked with times."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from gitledger.dataclass import dataclass
from gitledger.records.envelope import SIGNATURE_NAMESPACE
from gitledger.trust.allowed_signers import AllowedSigner, parse_allowed_signers
from gitledger.trust.keys import PublicKey
from gitledger.trust.patterns import literal_names
from gitledger.trust.revoked import RevokedKeys, parse_revoked_keys

__all__ = ["Signers"]

_NONE_REVOKED = RevokedKeys()


@dataclass(frozen=True, slots=True, kw_only=True)
class Signers:
    """The signers that a tree names. Empty is legal here, and admits nobody.

    `ignored` says which lines grant nothing and why. A revoked key has no principals at any time.
    """

    entries: tuple[AllowedSigner, ...] = ()
    revoked: RevokedKeys = _NONE_REVOKED
    ignored: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls,
        allowed_signers: bytes,
        revoked: bytes = b"",
        *,
        allowed_source: str = ".gitledger/allowed_signers",
        revoked_source: str = ".gitledger/revoked_keys",
    ) -> Signers:
        """Return the signers of two files' bytes; the sources name them in errors. Raises `ConfigError`."""
        allowed = parse_allowed_signers(allowed_signers, source=allowed_source)
        return cls(
            entries=allowed.entries,
            revoked=parse_revoked_keys(revoked, source=revoked_source),
            ignored=allowed.ignored,
        )

    def principals(self, key: PublicKey, at: datetime, *, among: Iterable[str] = ()) -> frozenset[str]:
        """Return the principals that `key` has at `at` for records.

        A pattern in the file (`*@example.org`) stands in the result as it is spelled. Names that only a pattern
        grants are in it if they are `among` those that the caller asks about (those that policy lists).
        """
        names: set[str] = set()
        for entry in self._admitting(key, at):
            names |= entry.names(key)
            names |= {name for name in among if entry.speaks_for(key, name)}
        return frozenset(names)

    def speaks_for(self, key: PublicKey, name: str, at: datetime) -> bool:
        """Tell whether `key` may speak for `name` at `at`, as `ssh-keygen -Y verify -I name` would."""
        return any(entry.speaks_for(key, name) for entry in self._admitting(key, at))

    def is_revoked(self, key: PublicKey) -> bool:
        """Tell whether `key` or its certificate's authority is revoked, whatever the date."""
        return self.revoked.holds(key)

    def is_valid_now(self, key: PublicKey, now: datetime) -> bool:
        """Tell whether `key` speaks for anybody at `now`."""
        return bool(self.principals(key, now))

    def all_principals(self) -> frozenset[str]:
        """Return every principal and pattern that the file names."""
        return frozenset().union(*(literal_names(entry.principals) for entry in self.entries))

    def _admitting(self, key: PublicKey, at: datetime) -> list[AllowedSigner]:
        if self.is_revoked(key):
            return []
        return [entry for entry in self.entries if entry.admits(key, at, SIGNATURE_NAMESPACE)]
