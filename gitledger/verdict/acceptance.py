"""Whose signature counts: policy's signers against the keys that really signed (DESIGN section 4).

Rules, in the order in which they are asked:

1. An unsigned record counts only with `allow_unsigned`, and never in restricted mode.
2. A key in `revoked_keys` is refused whatever the date.
3. `allowed_key_fingerprints`, when set, restricts further.
4. A security key must have been touched, unless `allow_no_touch`.
5. The key must belong, at the record's own time, to a principal that policy allows: a bare name is a principal of
   `allowed_signers`, `github:alice` a forge's user, and neither stands for the other. With `signer_mode: open` it
   may instead belong to the forge user that the record itself names.
6. A key that no longer belongs to one *now* counts only where a merged receipt by another key, valid now, names
   the record: signers assert their own times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Protocol

from gitledger.config.schema import PolicyConfig
from gitledger.dataclass import dataclass, replace
from gitledger.errors import ConfigError
from gitledger.records.ids import KeyFingerprint, RecordId
from gitledger.trust.keys import PublicKey
from gitledger.trust.signers import Signers
from gitledger.trust.verified import Verified
from gitledger.verdict.evidence import Evidence, HeldMerged, Opened, Undecodable
from gitledger.verdict.revoked import revoked_records

__all__ = ["CLOCK_TOLERANCE", "Acceptance", "Keyring", "Signatories", "allowed_principals", "signatories"]

CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far before its commit existed a run may claim to have started (DESIGN section 11): clocks differ."""

Vouchers = Mapping[RecordId, frozenset[KeyFingerprint]]
Settled = dict[int, tuple[Opened, datetime, "Acceptance"]]
"""By the identity of an opened record, which stands beside it and so can't be another's."""


class Keyring(Protocol):
    """What a forge publishes for one user (`trust.forges.ForgeAnswer`)."""

    def holds(self, key: PublicKey) -> bool:
        """Tell whether `key` is one of that user's."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Whether a signature counts; `principal` is whose it is, `reason` a word where it does not count.

    `withdrawn`: it counts only through merged receipts that were revoked since. Such a failure stands; such a
    green is chosen as ever and then fails, so that revoking can't make room for another.
    """

    accepted: bool
    principal: str | None = None
    reason: str = ""
    withdrawn: bool = False


def allowed_principals(policy: PolicyConfig, signers: Signers) -> frozenset[str]:
    """Return the principals and forge users whose keys may sign.

    Absent from policy: every principal of the file. Nobody left: `ConfigError` `no-signers`, unless the mode is
    `open`, where records name their own forge users.
    """
    listed = policy.allowed_signers
    names = frozenset(signers.all_principals() if listed is None else listed)
    if not names and policy.signer_mode != "open":
        raise ConfigError(
            "no-signers",
            "no signer is allowed: .gitledger/allowed_signers names nobody, or policy.allowed_signers is empty",
            "git ledger init",
        )
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Signatories:
    """Policy's view of keys at one moment, `now`.

    `vouched` maps records to the keys of mergers that name them, `still_vouched` by merged receipts alone that
    nobody revoked. `forges` hold the published keys of users, by `FORGE:USER`. `settled` keeps what was found of
    records whoever vouches for them (see `memory`).
    """

    policy: PolicyConfig
    signers: Signers
    principals: frozenset[str]
    now: datetime
    vouched: Vouchers = field(default_factory=dict)
    still_vouched: Vouchers = field(default_factory=dict)
    forges: Mapping[str, Keyring] = field(default_factory=dict)
    settled: Settled = field(default_factory=dict, repr=False)

    def judge(self, opened: Opened, at: datetime) -> Acceptance:
        """Return whether the signature counts for a record that ended at `at`."""
        known = self.settled.get(id(opened))
        if known is not None and known[0] is opened and known[1] == at:
            return known[2]
        found, is_settled = self._judge(opened, at)
        if is_settled:
            self.settled[id(opened)] = (opened, at, found)
        return found

    def is_settled(self, opened: Opened, at: datetime) -> bool:
        """Tell whether `judge` would return the same whatever merged receipts say."""
        self.judge(opened, at)
        known = self.settled.get(id(opened))
        return known is not None and known[0] is opened and known[1] == at

    def _judge(self, opened: Opened, at: datetime) -> tuple[Acceptance, bool]:
        """Return the same, and whether it is so whatever merged receipts say."""
        if not isinstance(opened, Verified):
            allowed = self.policy.accepts_unsigned
            return Acceptance(allowed, None, "" if allowed else "unsigned"), True
        fault = self._key_fault(opened.key)
        if not fault and opened.touched is False and not self.policy.allow_no_touch:
            fault = "no-touch"
        if fault:
            return Acceptance(False, None, fault), True
        claimed = opened.statement.signer.user if opened.statement.signer else ""
        now = self._names(opened.key, self.now, claimed)
        then = self._names(opened.key, at, claimed)
        if not then:
            return Acceptance(False, None, "key-not-valid-then" if now else "unknown-signer"), True
        principal = min(then, key=_patterns_last)
        if now:
            return Acceptance(True, principal), True
        if not self._others(self.vouched, opened.envelope.id, opened.key):
            return Acceptance(False, principal, "key-expired"), False
        still = self._others(self.still_vouched, opened.envelope.id, opened.key)
        return Acceptance(True, principal, withdrawn=not still), False

    def trusts(self, item: Undecodable) -> bool:
        """Tell whether an unreadable record was signed by a key that counts now, or was vouched for."""
        if item.key is None or self._key_fault(item.key):
            return False
        return bool(self._others(self.vouched, item.id, item.key) or self._names(item.key, self.now, ""))

    def is_revoker(self, opened: Opened, at: datetime) -> bool:
        """Tell whether one of policy's revokers signed, valid at `at` or now.

        Either will do: a revocation can only take away, and must not lapse with the key that made it.
        """
        if not isinstance(opened, Verified) or self.signers.is_revoked(opened.key):
            return False
        key, revokers = opened.key, self.policy.revokers
        return any(self._bears(key, name, at) or self._bears(key, name, self.now) for name in revokers)

    @staticmethod
    def _others(vouched: Vouchers, record: RecordId, key: PublicKey) -> frozenset[KeyFingerprint]:
        return vouched.get(record, frozenset()) - {key.fingerprint}

    def _key_fault(self, key: PublicKey) -> str:
        if self.signers.is_revoked(key):
            return "key-revoked"
        listed = self.policy.allowed_key_fingerprints
        return "key-not-allowed" if listed and key.fingerprint not in listed else ""

    def _names(self, key: PublicKey, at: datetime, claimed: str) -> frozenset[str]:
        """Return the allowed names that `key` bears at `at`."""
        names = {claimed} if self.policy.signer_mode == "open" and self._is_of_forge(key, claimed) else set()
        if self.policy.allowed_signers is None:
            return frozenset(names | self.signers.principals(key, at))
        return frozenset(names | {name for name in self.principals if self._bears(key, name, at)})

    def _bears(self, key: PublicKey, name: str, at: datetime) -> bool:
        return self._is_of_forge(key, name) if ":" in name else self.signers.speaks_for(key, name, at)

    def _is_of_forge(self, key: PublicKey, name: str) -> bool:
        return name in self.forges and self.forges[name].holds(key)


def _patterns_last(name: str) -> tuple[bool, str]:
    """Order names such that a person is named before the pattern that lets them in."""
    return bool({"*", "?"} & set(name)), name


def vouchers(bare: Signatories, merged: Iterable[HeldMerged]) -> dict[RecordId, frozenset[KeyFingerprint]]:
    """Return which records are named by merged receipts that count by themselves, and by whose keys."""
    found: dict[RecordId, set[KeyFingerprint]] = {}
    for held in merged:
        if held.key is None or held.receipt.merged_at > bare.now:
            continue
        if bare.judge(held.opened, held.receipt.merged_at).accepted:
            for shard in held.receipt.shards:
                found.setdefault(shard.record, set()).add(held.key)
    return {record: frozenset(keys) for record, keys in found.items()}


def signatories(
    policy: PolicyConfig,
    signers: Signers,
    now: datetime,
    evidence: Iterable[Evidence],
    *,
    forges: Mapping[str, Keyring] | None = None,
    settled: Settled | None = None,
) -> Signatories:
    """Return policy's view of keys, vouching included; raises `ConfigError` where nobody may sign."""
    piles = list(evidence)
    bare = Signatories(
        policy=policy,
        signers=signers,
        principals=allowed_principals(policy, signers),
        now=now,
        forges=forges or {},
        settled={} if settled is None else settled,
    )
    merged = [held for pile in piles for held in pile.merged]
    revoked = revoked_records(piles, bare.is_revoker)
    return replace(
        bare,
        vouched=vouchers(bare, merged),
        still_vouched=vouchers(bare, [held for held in merged if held.id not in revoked]),
    )
