"""Why nothing stands for a shard, in the one word and the detail that help most (DESIGN section 6)."""

from __future__ import annotations

from gitledger.dataclass import replace
from gitledger.records.decode import format_time
from gitledger.verdict.evidence import Held
from gitledger.verdict.field import Candidate, Field, covers, is_beaten, newest_first
from gitledger.verdict.select import Choice, extra_agrees, red_reason
from gitledger.verdict.situation import Situation

__all__ = ["why_stale"]


def why_stale(field: Field, situation: Situation) -> Choice:
    """Return the stale choice with the reason that helps most, for a shard for which nothing stands.

    The reason is that of the nearest receipt with the target's inputs, else of the nearest receipt at all.
    """
    shard = field.shard
    stale = Choice(
        shard=shard, verdict="stale", reason="never-recorded", attempts=tuple(newest_first(field.fresh))
    )
    if shard.fault:
        return replace(stale, reason="malformed", detail=shard.fault)
    nearest = next((item for item in field.candidates if item.matches), None)
    if nearest is not None:
        return _beside_a_stranger(_why_not_matching(stale, nearest, field, situation), field)
    if field.reds:
        return _beside_a_stranger(_because_of(stale, newest_first(field.reds)[0]), field)
    stranger = _covering_stranger(field)
    if stranger is not None:
        return _told(replace(stale, reason="untrusted"), _of_stranger(*stranger))
    if field.candidates:
        return _why_changed(stale, field.candidates[0], field, situation)
    if field.untrusted:
        held, why = field.untrusted[0]
        return replace(stale, reason="untrusted", detail=f"{why}: record {held.id[:12]}")
    if situation.history_cut:
        return _told(replace(stale, reason="history-cut"), _elsewhere(field, situation))
    return _told(stale, _elsewhere(field, situation))


Words = tuple[str, str, str]
"""A detail in full, what a row has room for, and what shards of the same fate have in common."""
NOTHING: Words = ("", "", "")


def _told(stale: Choice, words: Words) -> Choice:
    """Return the choice with one more reason behind those that it has."""
    detail, remark, gist = words
    if not detail:
        return stale
    return replace(
        stale,
        detail=_joined(stale.detail, detail),
        remark=_joined(stale.remark or stale.detail, remark),
        gist=_joined(stale.gist or stale.detail, gist),
    )


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _covering_stranger(field: Field) -> tuple[Held, str] | None:
    """Return the newest receipt of the target's very inputs whose signature doesn't count, with the reason.

    It explains more than an older trusted receipt of other inputs: what is missing is a signature, not a run.
    """
    covering = [pair for pair in field.untrusted if covers(pair[0], field.shard)]
    return max(covering, key=lambda pair: (pair[0].ended_at, pair[0].id), default=None)


def _of_stranger(held: Held, why: str) -> Words:
    who, day, record = held.key or "nobody", format_time(held.ended_at)[:10], held.id[:12]
    return (
        f"record {record} of {day} covers these inputs, but its signature does not count ({why}): {who}",
        f"{record}: {why}",
        f"a run of these inputs that {who} signed does not count ({why})",
    )


def _beside_a_stranger(stale: Choice, field: Field) -> Choice:
    """Return the choice; it also tells of a newer run of the same inputs whose signature doesn't count."""
    stranger = _covering_stranger(field)
    if stranger is None or stale.about is None or stranger[0].ended_at <= stale.about.held.ended_at:
        return stale
    return _told(stale, _of_stranger(*stranger))


def _because_of(stale: Choice, red: Candidate) -> Choice:
    detail = ", ".join(red.held.receipt.reasons)
    return replace(stale, reason=red_reason(red), detail=detail, about=red)


def _why_changed(stale: Choice, nearest: Candidate, field: Field, situation: Situation) -> Choice:
    """Return what has changed since the nearest receipt."""
    hint = _elsewhere(field, situation)
    if not nearest.same_definition:
        return _told(replace(stale, reason="definition-changed", about=nearest), hint)
    if nearest.commit == situation.commit:
        detail = "its manifest is not that of the commit it was recorded on"
        return replace(stale, reason="malformed", detail=detail, about=nearest)
    changed = situation.facts.changed(nearest.commit, field.shard.key)
    return _told(replace(stale, reason="inputs-changed", about=nearest, changed_paths=changed), hint)


def _elsewhere(field: Field, situation: Situation) -> Words:
    """Return where a green receipt of the same inputs lies that `carry.from` does not reach, or nothing."""
    where = next((item for item in field.beyond if item.matches and item.held.is_green), None)
    if where is None:
        return NOTHING
    beyond = f"outside carry.from: {situation.config.carry.from_}; `carry: {{from: same-manifest}}` would find"
    commit = where.commit[:12]
    return (
        f"{commit} has a receipt with the same inputs, {beyond} it",
        f"same inputs at {commit}",
        f"receipts with the same inputs lie {beyond} them",
    )


def _why_not_matching(stale: Choice, nearest: Candidate, field: Field, situation: Situation) -> Choice:
    """Return why the nearest receipt with the very inputs of the target doesn't stand."""
    shard = field.shard
    if nearest.stands_against:
        return _because_of(stale, nearest)
    stale = replace(stale, about=nearest)
    bars = nearest.bars if nearest.fresh else nearest.carry_bars
    if bars:
        return replace(stale, reason=bars[0].reason, detail=bars[0].detail)
    beating = [red for red in newest_first((*field.reds, *field.doubtful_reds)) if is_beaten(nearest, [red])]
    if beating:
        return _because_of(stale, beating[0])
    if shard.redefined:
        return replace(stale, reason="carry-forbidden", detail="redefined against the policy's ref")
    if not situation.may_carry:
        detail = "--no-carry" if situation.carry is False else "policy.allow_carried is false"
        return replace(stale, reason="carry-forbidden", detail=detail)
    if shard.has_extra and shard.extra_now is None:
        return replace(stale, reason="extra-unavailable")
    if not extra_agrees(nearest, shard, situation.snapshots):
        return replace(stale, reason="inputs-changed", changed_paths=_extra_changes(nearest, field))
    return replace(stale, reason="malformed", detail="its results can't be believed")


def _extra_changes(item: Candidate, field: Field) -> tuple[str, ...]:
    now, then = set(field.shard.extra_now or ()), set(item.held.receipt.manifest.extra)
    return tuple(sorted({claim.path for claim in now ^ then}))
