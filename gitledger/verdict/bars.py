"""What bars a receipt from counting as green, one reason at a time (DESIGN sections 6 and 11)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Protocol

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass
from gitledger.records.ids import KeyFingerprint
from gitledger.verdict.acceptance import CLOCK_TOLERANCE
from gitledger.verdict.evidence import Held
from gitledger.wording import counted

__all__ = ["Bar", "displaces", "find_bars", "unlisted"]

_WEAKENING = frozenset({"dirty", "other-command", "unwitnessed"})


class Terms(Protocol):
    """What a receipt is held against: a trusted configuration at one moment (`verdict.situation.Situation`)."""

    @property
    def config(self) -> Config:
        """The configuration, of which policy is asked."""

    @property
    def now(self) -> datetime:
        """When it is asked."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Why a receipt can't be green. `reason` is of the closed list of section 6; `detail` says which and how."""

    reason: str
    detail: str


def find_bars(held: Held, terms: Terms, *, carried: bool, committed_at: datetime) -> tuple[Bar, ...]:
    """Return every reason that bars `held` from being green; the outcome itself is not looked at.

    Revocation is none: it is asked of what was chosen (`withdraw`), so that it can make room for nothing else.
    """
    return (
        *_own_bars(held, terms, carried=carried),
        *_time_bars(held, terms, carried=carried, committed_at=committed_at),
        *_mode_bars(held, terms),
        *_policy_bars(held, terms),
    )


def _own_bars(held: Held, terms: Terms, *, carried: bool) -> Iterator[Bar]:
    receipt, policy = held.receipt, terms.config.policy
    if "other-command" in receipt.reasons:
        yield Bar("other-command", "another command ran than the declared one")
    if not receipt.session.witnessed and (carried or not policy.allow_unwitnessed):
        yield Bar("unwitnessed", "recorded after the fact, the command was not run by the recorder")
    if receipt.repo.dirty and (carried or not policy.allow_dirty):
        yield Bar("dirty", _paths("recorded with uncommitted changes", receipt.repo.dirty_paths))


def _paths(text: str, paths: tuple[str, ...]) -> str:
    return f"{text}: {', '.join(ascii(path)[1:-1] for path in paths[:3])}" if paths else text


def _time_bars(held: Held, terms: Terms, *, carried: bool, committed_at: datetime) -> Iterator[Bar]:
    """Yield what is wrong with a receipt's times. A carried one must be *younger* than its limit."""
    policy, now = terms.config.policy, terms.now
    if held.ended_at > now:
        yield Bar("future", "dated in the future")
    if held.started_at < committed_at - CLOCK_TOLERANCE:
        yield Bar("malformed", "started before its commit existed")
    limit = policy.carried_age_limit_days if carried else policy.max_age_days
    age, allowed = now - held.ended_at, timedelta(days=limit)
    if age > allowed or (carried and age == allowed):
        yield Bar("too-old", f"older than {counted(limit, 'day')}")


def _mode_bars(held: Held, terms: Terms) -> Iterator[Bar]:
    """Yield where the mode is not what policy requires, or is claimed by a key that may not claim it.

    A mode is a word of its signer's: `ci` and `ci-gpu` count only by the keys that policy lists for them (none
    listed: by nobody's), and in open mode, where any forge user may sign, not at all.
    """
    policy, mode = terms.config.policy, held.receipt.session.mode
    if policy.require_mode is not None and mode != policy.require_mode:
        yield Bar("policy", f"require_mode: {policy.require_mode}, found {mode}")
    if mode == "local":
        return
    if policy.signer_mode == "open":
        yield Bar("policy", f"signer_mode: open, where mode {mode} can't count")
    elif held.key not in policy.ci_key_fingerprints:
        yield Bar("policy", f"ci_key_fingerprints: {unlisted(mode, held.key)}")


def unlisted(mode: str, key: KeyFingerprint | None) -> str:
    """Return why a receipt of a `ci` mode doesn't count by `key` (None: unsigned), and where to list it."""
    where = "policy.ci_key_fingerprints of .gitledger/config.yaml"
    return f"mode {mode} counts only by a runner's key that {where} lists, which {key or 'no signature'} is not"


def _policy_bars(held: Held, terms: Terms) -> Iterator[Bar]:
    receipt, policy = held.receipt, terms.config.policy
    if receipt.version < policy.min_record_version:
        yield Bar("policy", f"min_record_version: {receipt.version} is less than {policy.min_record_version}")
    if policy.require_gpu and (receipt.environment.gpu is None or not receipt.environment.gpu.names):
        yield Bar("policy", "require_gpu: no GPU was seen")
    if policy.require_observed_scope and receipt.manifest.outside is None:
        yield Bar("leaky", "require_observed_scope: what the run read was not observed")
    if policy.require_observed_scope and receipt.manifest.outside:
        yield Bar("leaky", _paths("inputs outside the declared scope", receipt.manifest.outside))


def displaces(held: Held, bars: tuple[Bar, ...]) -> bool:
    """Tell whether a non-green receipt stands against green ones of the same inputs.

    `bars` are those that hold on its own commit (not the stricter ones of carrying). One that policy bars (dirty,
    other-command, unwitnessed) displaces no other, unless it was clean and a test of it failed. A revoked failure
    still blocks, and so does one that is too old or oddly dated: only the three named bars weaken a failure.
    """
    if held.is_green:
        return False
    if not any(bar.reason in _WEAKENING for bar in bars):
        return True
    return not held.receipt.repo.dirty and held.has_bad_tests
