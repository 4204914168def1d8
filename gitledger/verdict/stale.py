"""Why nothing stands for a shard, in the one word and the detail that help most (DESIGN section 6)."""

from __future__ import annotations

from dataclasses import replace

from gitledger.verdict.field import Candidate, Field, is_beaten, newest_first
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
        return _why_not_matching(stale, nearest, field, situation)
    if field.reds:
        return _because_of(stale, newest_first(field.reds)[0])
    if field.candidates:
        return _why_changed(stale, field.candidates[0], field, situation)
    if field.untrusted:
        held, why = field.untrusted[0]
        return replace(stale, reason="untrusted", detail=f"{why}: record {held.id[:12]}")
    if situation.history_cut:
        return replace(stale, reason="history-cut", detail=_elsewhere(field, situation))
    return replace(stale, detail=_elsewhere(field, situation))


def _because_of(stale: Choice, red: Candidate) -> Choice:
    detail = ", ".join(red.held.receipt.reasons)
    return replace(stale, reason=red_reason(red), detail=detail, about=red)


def _why_changed(stale: Choice, nearest: Candidate, field: Field, situation: Situation) -> Choice:
    """Return what has changed since the nearest receipt."""
    hint = _elsewhere(field, situation)
    if not nearest.same_definition:
        return replace(stale, reason="definition-changed", detail=hint, about=nearest)
    if nearest.commit == situation.commit:
        detail = "its manifest is not that of the commit it was recorded on"
        return replace(stale, reason="malformed", detail=detail, about=nearest)
    changed = situation.facts.changed(nearest.commit, field.shard.key)
    return replace(stale, reason="inputs-changed", detail=hint, about=nearest, changed_paths=changed)


def _elsewhere(field: Field, situation: Situation) -> str:
    """Return where a green receipt of the same inputs lies that `carry.from` does not reach, or nothing."""
    where = next((item for item in field.beyond if item.matches and item.held.is_green), None)
    if where is None:
        return ""
    return (
        f"{where.commit[:12]} has a receipt with the same inputs, outside carry.from: "
        f"{situation.config.carry.from_}; `carry: {{from: same-manifest}}` would find it"
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
