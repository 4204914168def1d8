"""What policy has against single records, wherever they would be needed: for lists of what was recorded.

That nothing is against a record is no verdict: whether its inputs are those of a commit, what failed since and
what other shards say, `verify` alone asks. But what is named here would not count as green there either.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError
from gitledger.records.ids import KeyFingerprint, RecordId
from gitledger.trust.signers import Signers
from gitledger.verdict.acceptance import Acceptance, Signatories, signatories
from gitledger.verdict.bars import find_bars
from gitledger.verdict.evidence import Evidence, Held, HeldMerged, HeldReport
from gitledger.verdict.revoked import revoked_records

__all__ = ["Terms", "against_each"]

Identity = tuple[RecordId, KeyFingerprint | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """By whose word records are seen: a configuration, its signers, a moment."""

    config: Config
    signers: Signers
    now: datetime


def against_each(pile: Evidence, terms: Terms, committed_at: datetime) -> dict[Identity, tuple[str, ...]]:
    """Return for each receipt, merge and report of one commit the words for what bars it; () where nothing does.

    `pile` is placed. Age is no bar here: a list of history is one of old records, and their dates stand in it.
    No forge is asked whose keys are: what only that could tell is `forge-not-asked`.
    """
    try:
        keys = signatories(terms.config.policy, terms.signers, terms.now, [pile])
    except ConfigError as error:  # nobody may sign
        return dict.fromkeys(((held.id, held.key) for held in _all(pile)), (error.code,))
    revoked = revoked_records([pile], keys.is_revoker)
    found: dict[Identity, tuple[str, ...]] = {}
    each: list[tuple[Held | HeldMerged | HeldReport, list[str]]] = [
        *((held, _of_shard(held, keys, terms, committed_at)) for held in pile.shards),
        *((held, _of_merge(held, keys, terms)) for held in pile.merged),
        *_of_reports(pile, keys, terms, committed_at),
    ]
    for held, words in each:
        named = (
            [held.id, *(one.record for one in held.receipt.shards)] if isinstance(held, HeldMerged) else [held.id]
        )
        told = tuple(dict.fromkeys([*words, *(["revoked"] if revoked.intersection(named) else [])]))
        identity = (held.id, held.key)
        if identity not in found or not told:  # a record counts if any of its lines does
            found[identity] = told
    return found


def _all(pile: Evidence) -> Iterator[Held | HeldMerged | HeldReport]:
    yield from pile.shards
    yield from pile.merged
    yield from pile.reports


def _signature(keys: Signatories, found: Acceptance) -> list[str]:
    if found.accepted:
        return ["revoked"] if found.withdrawn else []
    names = keys.policy.allowed_signers or ()
    may_be_of_forge = keys.policy.signer_mode == "open" or any(":" in name for name in names)
    return ["forge-not-asked" if found.reason == "unknown-signer" and may_be_of_forge else found.reason]


def _of_shard(held: Held, keys: Signatories, terms: Terms, committed_at: datetime) -> list[str]:
    bars = find_bars(held, terms, carried=False, committed_at=committed_at)
    words = [bar.detail.partition(":")[0] if bar.reason == "policy" else bar.reason for bar in bars]
    return [
        *_signature(keys, keys.judge(held.opened, held.ended_at)),
        *(word for word in words if word != "too-old"),
    ]


def _of_merge(held: HeldMerged, keys: Signatories, terms: Terms) -> list[str]:
    words = _signature(keys, keys.judge(held.opened, held.receipt.merged_at))
    if held.receipt.merged_at > terms.now:
        words.append("future")
    if held.receipt.repo.dirty and not terms.config.policy.allow_dirty:
        words.append("dirty")
    return words


def _of_reports(
    pile: Evidence, keys: Signatories, terms: Terms, committed_at: datetime
) -> Iterator[tuple[HeldReport, list[str]]]:
    if not pile.reports:
        return
    from gitledger.records.capability_status import Status
    from gitledger.verdict.lane_cells import mismatches
    from gitledger.verdict.lane_signers import signatories_by_lane
    from gitledger.verdict.release import report_bar

    try:
        by_lane = signatories_by_lane(terms.config, terms.signers, terms.now, [pile])
    except ConfigError as error:
        yield from ((held, [error.code]) for held in pile.reports)
        return
    for held in pile.reports:
        its = by_lane.get(held.report.lane.id or "", keys)
        signed = its.judge(held.opened, held.report.timing.finished_at)
        if signed.accepted:
            signed = report_bar(held, signed, terms.config.policy, terms.now, committed_at)
        lane = terms.config.lanes.get(held.report.lane.id or "")
        differs = lane is not None and held.report.status is Status.PASSED and mismatches(lane, held.report)
        yield held, [*_signature(its, signed), *(["mismatched"] if differs else [])]
