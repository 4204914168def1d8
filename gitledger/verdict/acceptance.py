"""Whose signature counts: policy's signers against the keys that really signed (DESIGN section 4).

Rules, in the order in which they are asked:

1. An unsigned record counts only with `allow_unsigned`, and never in restricted mode.
2. A key in `revoked_keys` is refused whatever the date.
3. `allowed_key_fingerprints`, when set, restricts further.
4. A security key must have been touched, unless `allow_no_touch`.
5. The key must belong, at the record's own time, to a principal that policy allows.
6. A key that no longer belongs to one *now* counts only where a merged receipt by another key, valid now, names
   the record: signers assert their own times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gitledger.config.schema import PolicyConfig
from gitledger.errors import ConfigError
from gitledger.records.ids import KeyFingerprint, RecordId
from gitledger.trust.signers import Signers
from gitledger.trust.verify import Verified
from gitledger.verdict.evidence import Evidence, HeldMerged, Opened

__all__ = ["CLOCK_TOLERANCE", "Acceptance", "Signatories", "allowed_principals", "signatories"]

CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far the clocks of two honest machines may differ."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Whether a signature counts; `principal` is whose it is, `reason` a word where it does not count."""

    accepted: bool
    principal: str | None = None
    reason: str = ""


def allowed_principals(policy: PolicyConfig, signers: Signers) -> frozenset[str]:
    """Return the principals whose keys may sign.

    Absent from policy: every principal of the file. Nobody left: `ConfigError` `no-signers`.
    """
    listed = policy.allowed_signers
    names = frozenset(signers.all_principals() if listed is None else listed)
    if not names:
        raise ConfigError(
            "no-signers",
            "no signer is allowed: .gitledger/allowed_signers names nobody, or policy.allowed_signers is empty",
            "git ledger init",
        )
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Signatories:
    """Policy's view of keys at one moment, `now`; `vouched` maps records to the keys of mergers that name them."""

    policy: PolicyConfig
    signers: Signers
    principals: frozenset[str]
    now: datetime
    vouched: Mapping[RecordId, frozenset[KeyFingerprint]] = field(default_factory=dict)

    def judge(self, opened: Opened, at: datetime) -> Acceptance:
        """Return whether the signature counts for a record that ended at `at`."""
        if not isinstance(opened, Verified):
            allowed = self.policy.accepts_unsigned
            return Acceptance(allowed, None, "" if allowed else "unsigned")
        fault = self._key_fault(opened)
        if fault:
            return Acceptance(False, None, fault)
        then = self.signers.principals(opened.key, at) & self.principals
        if not then:
            known = self.signers.principals(opened.key, self.now) & self.principals
            return Acceptance(False, None, "key-not-valid-then" if known else "unknown-signer")
        principal = min(then)
        if self.signers.principals(opened.key, self.now) & self.principals:
            return Acceptance(True, principal)
        others = self.vouched.get(opened.envelope.id, frozenset()) - {opened.key.fingerprint}
        return Acceptance(bool(others), principal, "" if others else "key-expired")

    def _key_fault(self, opened: Verified) -> str:
        if self.signers.is_revoked(opened.key):
            return "key-revoked"
        listed = self.policy.allowed_key_fingerprints
        if listed and opened.key.fingerprint not in listed:
            return "key-not-allowed"
        if opened.touched is False and not self.policy.allow_no_touch:
            return "no-touch"
        return ""


def vouchers(signatories: Signatories, merged: Iterable[HeldMerged]) -> dict[RecordId, frozenset[KeyFingerprint]]:
    """Return which records are named by merged receipts that count by themselves, and by whose keys."""
    found: dict[RecordId, set[KeyFingerprint]] = {}
    for held in merged:
        if held.key is None or held.receipt.merged_at > signatories.now + CLOCK_TOLERANCE:
            continue
        if signatories.judge(held.opened, held.receipt.merged_at).accepted:
            for shard in held.receipt.shards:
                found.setdefault(shard.record, set()).add(held.key)
    return {record: frozenset(keys) for record, keys in found.items()}


def signatories(
    policy: PolicyConfig, signers: Signers, now: datetime, evidence: Iterable[Evidence]
) -> Signatories:
    """Return policy's view of keys, vouching included; raises `ConfigError` where nobody may sign."""
    bare = Signatories(policy=policy, signers=signers, principals=allowed_principals(policy, signers), now=now)
    merged = [held for pile in evidence for held in pile.merged]
    return Signatories(
        policy=policy, signers=signers, principals=bare.principals, now=now, vouched=vouchers(bare, merged)
    )
