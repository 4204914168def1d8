"""Laws of judgement, over invented histories (DESIGN sections 4, 6 and 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitledger.records.envelope import decode_line
from gitledger.verdict.acceptance import signatories
from gitledger.verdict.memory import Memory
from gitledger.verdict.plan import describe_choice
from gitledger.verdict.tests_policy import TestLists
from gitledger.verdict.union import form_union
from gitledger.verdict.verify import ignored_records, judge

LAW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])

PLACES = st.sampled_from(["head", "head", "parent", "grandparent", "branch"])
SHARDS = st.sampled_from(["l1", "l1", "l2"])
WEAKNESS = st.sampled_from([{}, {}, {}, {"dirty": True}, {"witnessed": False}, {"mode": "ci"}])


@dataclass(frozen=True)
class Event:
    """Something that somebody put into the ledger. `about` counts back through the records put before."""

    kind: str
    place: str
    key: str | None
    about: int = 0
    receipt: Any = None


@st.composite
def receipts(draw: st.DrawFn, keys: st.SearchStrategy[str | None]) -> Event:
    started = draw(st.integers(0, 30))
    outcome = draw(st.sampled_from(["passed", "passed", "passed", "failed", "error", "incomplete"]))
    receipt = {
        "shard": draw(SHARDS),
        "outcome": outcome,
        "started": started,
        "ended": started + draw(st.integers(0, 10)),
        "environment": draw(st.sampled_from([{}, {}, {}, {"python": "3.13.0"}, {"python": None}])),
    } | draw(WEAKNESS)
    if outcome == "incomplete" and draw(st.booleans()):
        receipt["reasons"] = ("other-command",)
    return Event("receipt", draw(PLACES), draw(keys), receipt=receipt)


def others(kinds: tuple[str, ...], keys: st.SearchStrategy[str | None]) -> st.SearchStrategy[Event]:
    return st.builds(
        Event, kind=st.sampled_from(kinds), place=PLACES, key=keys, about=st.integers(1, 5), receipt=st.none()
    )


TRUSTED = st.sampled_from(["alice", "alice", "bob", "retired"])
ANYBODY = st.sampled_from(["alice", "alice", "bob", "retired", "mallory", None])
HISTORY = st.lists(
    st.one_of(receipts(ANYBODY), receipts(TRUSTED), others(("merged", "revoke"), ANYBODY)), max_size=7
)
POLICY = st.fixed_dictionaries(
    {"allow_carried": st.just(True), "max_age_days": st.sampled_from([30, 2])},
    optional={
        "allow_dirty": st.just(True),
        "allow_unwitnessed": st.just(True),
        "max_attempts": st.integers(1, 2),
        "require_merged": st.just(True),
        "revokers": st.just(("bob",)),
    },
)


@st.composite
def settings_of_a_world(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "policy": draw(POLICY),
        "carry_from": draw(st.sampled_from(["policy-ref", "ancestors", "same-manifest"])),
        "branch": {
            "inputs": draw(st.sampled_from(["same", "others"])),
            "tree": draw(st.sampled_from(["head", "branch"])),
        },
        "parent": draw(st.sampled_from(["same", "same", "others"])),
        "from_ref": draw(st.booleans()),
    }


WORLDS = settings_of_a_world()


def build(new_world: Any, given_: dict[str, Any], history: list[Event]) -> Any:
    world = new_world()
    world.allowed["retired"] = 'valid-before="20260614121500Z"'  # T0 + 15 minutes
    world.policy, world.carry_from = given_["policy"], given_["carry_from"]
    world.commit("branch", distance=None, **given_["branch"])
    world.commits["parent"].inputs = given_["parent"]
    world.commits["parent"].from_ref = given_["from_ref"]
    world.declare("l2")
    for event in history:
        apply(world, event)
    return world


def apply(world: Any, event: Event) -> None:
    known = list(world.receipts)
    if event.kind == "receipt":
        receipt = dict(event.receipt)
        world.record(receipt.pop("shard"), on=event.place, key=event.key, **receipt)
    elif event.kind == "garbage":
        world.garbage(on=event.place, key=event.key)
    elif known:
        record = known[-min(event.about, len(known))]
        if event.kind == "merged":
            world.merged(record, on=event.place, key=event.key)
        else:
            commit = world.receipts[record].repo.commit
            place = next(name for name, one in world.commits.items() if one.id == commit)
            world.revoke(record, on=place, key=event.key)


def outcome(world: Any) -> list[tuple[Any, ...]]:
    """Return what stands for each shard, without the words."""
    return [
        (str(choice.shard.key), choice.verdict, choice.result and choice.result.held.id)
        for choice in world.union().choices
    ]


STRANGERS = st.lists(
    st.one_of(
        receipts(st.sampled_from(["mallory", None])),
        others(("merged", "revoke", "garbage"), st.sampled_from(["mallory"])),
    ),
    min_size=1,
    max_size=4,
)


@LAW
@given(WORLDS, HISTORY, STRANGERS)
def test_law_nothing_that_strangers_sign_changes_what_stands(new_world, given_, history, strangers):
    world = build(new_world, given_, history)
    before = outcome(world), world.judge().passed
    for event in strangers:
        apply(world, event)
    assert (outcome(world), world.judge().passed) == before


@LAW
@given(WORLDS, HISTORY, st.data())
def test_law_wrapping_somebodys_signature_changes_nothing(new_world, wrap, given_, history, data):
    world = build(new_world, given_, history)
    before = outcome(world), world.judge().passed
    for name, lines in world.lines.items():
        for place, line in enumerate(list(lines)):
            owner = _owner(world, line)
            if owner and data.draw(st.booleans()):
                copy = wrap(line, owner=owner, authority="mallory", principal="alice")
                world.lines[name].insert(data.draw(st.integers(0, place)), copy)
    assert (outcome(world), world.judge().passed) == before


def _owner(world: Any, line: bytes) -> str | None:
    from gitledger.trust.verified import Verified, open_record

    opened = open_record(line)
    return opened.statement.signer.user if isinstance(opened, Verified) else None


@LAW
@given(WORLDS, HISTORY, st.randoms(use_true_random=False))
def test_law_the_order_of_evidence_is_no_matter(new_world, given_, history, random):
    world = build(new_world, given_, history)
    before = [_words(choice) for choice in world.union().choices], _found(world)
    for lines in world.lines.values():
        random.shuffle(lines)
    names = list(world.commits)
    random.shuffle(names)
    world.commits = {name: world.commits[name] for name in names}
    assert ([_words(choice) for choice in world.union().choices], _found(world)) == before


def _words(choice: Any) -> tuple[Any, ...]:
    result, about = choice.result, choice.about
    attempts = tuple(item.held.id for item in choice.attempts)
    return (
        choice.verdict,
        choice.reason,
        result and (result.held.id, result.commit),
        about and about.held.id,
        attempts,
    )


def _found(world: Any) -> list[tuple[Any, ...]]:
    return sorted((one.code, one.subject, one.blocks) for one in world.judge().findings)


@LAW
@given(WORLDS, HISTORY, st.lists(receipts(TRUSTED), min_size=2, max_size=4), st.data())
def test_law_a_revocation_never_turns_red_into_green(new_world, given_, history, trusted, data):
    world = build(new_world, given_, [*history, *trusted])
    world.record("l1", started=40)
    red = world.record("l1", outcome="failed", started=50)
    green = {shard for shard, verdict, _ in outcome(world) if verdict != "stale"}
    passed = world.judge().passed
    for name, lines in world.lines.items():
        for line in list(lines):
            owner = _owner(world, line)
            if owner and data.draw(st.booleans()):
                key = data.draw(st.sampled_from([owner, owner, owner, "bob", "mallory"]))
                world.revoke(decode_line(line).id, on=name, key=key)
    world.revoke(red)
    assert {shard for shard, verdict, _ in outcome(world) if verdict != "stale"} <= green
    assert passed or not world.judge().passed


@LAW
@given(
    WORLDS,
    HISTORY,
    st.sampled_from(["head", "parent", "grandparent"]),
    st.sampled_from(["failed", "error", "incomplete"]),
)
def test_law_a_trusted_clean_failure_of_the_same_inputs_that_ends_last_is_never_green(
    new_world, given_, history, place, ending
):
    world = build(new_world, given_ | {"parent": "same"}, history)
    world.record("l1", on=place, outcome=ending, started=60, ended=61)
    assert outcome(world)[0][1] == "stale"
    assert not world.judge().passed
    if not world.union().faults:
        world.merge(at=70)
        assert not world.judge().passed


@LAW
@given(
    WORLDS,
    st.lists(
        st.one_of(receipts(st.sampled_from(["mallory", None])), others(("merged", "garbage"), st.just("mallory"))),
        max_size=5,
    ),
)
def test_law_a_verdict_over_nothing_that_counts_is_never_a_pass(new_world, given_, history):
    world = build(new_world, given_, history)
    assert not world.judge().passed
    world.shards.clear()
    assert not world.judge().passed


@LAW
@given(WORLDS, HISTORY)
def test_law_the_choice_is_deterministic_and_reading_twice_changes_nothing(new_world, given_, history):
    world = build(new_world, given_, history)
    first = [_words(choice) for choice in world.union().choices]
    assert [_words(choice) for choice in world.union().choices] == first
    for lines in world.lines.values():
        lines.extend(list(lines))
    assert [_words(choice) for choice in world.union().choices] == first


@LAW
@given(WORLDS, HISTORY)
def test_law_merging_changes_no_choice_and_what_was_merged_agrees(new_world, given_, history):
    world = build(new_world, given_, history)
    union = world.union()
    if union.faults:
        return
    before, passed = outcome(world), world.judge().passed
    world.merge(at=70)
    assert outcome(world) == before
    assert passed <= world.judge().passed
    revoked = world.situation().revoked & {record for _, _, record in before}
    assert revoked or "snapshot-outdated" not in {one.code for one in world.judge().findings}


@LAW
@given(WORLDS, HISTORY)
def test_law_plan_says_what_merge_and_verify_do(new_world, given_, history):
    world = build(new_world, given_, history)
    union, verdict = world.union(), world.judge()
    standing = [choice.result is not None for choice in union.choices]
    missing = {finding.subject for finding in union.faults if finding.rule == "6"}
    assert missing == {
        str(choice.shard.key) for choice, stands in zip(union.choices, standing, strict=True) if not stands
    }
    greens = all(choice.verdict in ("fresh", "carryable") for choice in union.choices)
    if greens and not union.faults:
        receipt = world.merge(at=70)
        assert receipt
        assert not {"not-green", "incomplete"} & {finding.code for finding in verdict.findings}
    else:
        assert not verdict.passed
    for choice in union.choices:
        green = choice.result is not None and choice.result.held.is_green
        assert green == (choice.verdict in ("fresh", "carryable"))


@LAW
@given(WORLDS, HISTORY)
def test_law_whatever_stands_green_was_really_earned(new_world, given_, history):
    """The rules of section 6 said the slow way, over the raw evidence."""
    world = build(new_world, given_, history)
    situation = world.situation()
    for choice in form_union(situation).choices:
        if choice.verdict == "stale":
            continue
        held, station = choice.result.held, _station(situation, choice.result.commit)
        assert held.is_green
        assert held.opened.statement.signer.user in ("alice", "bob", "retired")
        assert held.id not in situation.revoked
        assert held.ended_at <= situation.now
        assert held.receipt.manifest.digest == choice.shard.digest_with(())
        if choice.verdict == "carryable":
            assert not held.receipt.repo.dirty
            assert held.receipt.session.witnessed
            assert station.distance is not None or world.carry_from == "same-manifest"
            assert station.from_ref or world.carry_from != "policy-ref"
        for other in situation.stations:
            for red in other.evidence.shards:
                if other.distance is not None and _counts_against(red, held, situation):
                    assert held.started_at > red.ended_at


def _station(situation: Any, commit: Any) -> Any:
    return next(station for station in situation.stations if station.commit == commit)


def _counts_against(red: Any, green: Any, situation: Any) -> bool:
    same = (red.receipt.key, red.receipt.manifest.digest) == (green.receipt.key, green.receipt.manifest.digest)
    clean = not red.receipt.repo.dirty and red.receipt.session.witnessed and not red.is_green
    return (
        same
        and clean
        and "other-command" not in red.receipt.reasons
        and situation.signatories.judge(red.opened, red.ended_at).accepted
    )


# A report judges one commit after another with one memory

AWAY = {
    "head": {"head": 0, "parent": 1, "fork": 1, "grandparent": 2, "root": 3},
    "parent": {"parent": 0, "grandparent": 1, "root": 2},
    "fork": {"fork": 0, "grandparent": 1, "root": 2},
    "grandparent": {"grandparent": 0, "root": 1},
    "root": {"root": 0},
    "branch": {"branch": 0, "root": 2},
}
"""How far each commit's ancestors are, itself included: `head` merges `parent` and `fork`, `branch` is not merged."""
ANYWHERE = st.sampled_from([*AWAY, "parent", "grandparent", "root"])
EVENTS = st.lists(
    st.one_of(receipts(ANYBODY), receipts(TRUSTED), others(("merged", "revoke"), ANYBODY)), max_size=9
)
INPUTS = st.fixed_dictionaries({name: st.sampled_from(["same", "same", "others"]) for name in AWAY})
TREES = st.fixed_dictionaries({name: st.sampled_from([name, name, "head"]) for name in AWAY})
VISITS = st.lists(st.sampled_from(list(AWAY)), min_size=4, max_size=9)


def seen_from(base: Any, world: Any, target: str, shards: Mapping[str, Any], memory: Memory, *, cut: bool) -> Any:
    """Return the situation of one commit, of evidence and shards that all of them share."""
    away = {world.commits[name].id: distance for name, distance in AWAY[target].items()}
    stations = tuple(replace(one, distance=away.get(one.commit)) for one in base.stations)
    commit = world.commits[target]
    return replace(
        base,
        commit=commit.id,
        tree=commit.tree_id,
        stations=stations,
        shards=shards[commit.inputs],
        history_cut=cut,
        signatories=signatories(
            base.config.policy,
            base.signatories.signers,
            base.now,
            [one.evidence for one in stations],
            settled=memory.settled,
        ),
        memory=memory,
    )


def all_said(situation: Any) -> tuple[Any, ...]:
    """Return everything that a judgement says, and the receipts that it looked at."""
    union = form_union(situation)
    verdict = judge(union, situation, TestLists(), ())
    return (
        verdict.passed,
        [finding.encode() for finding in verdict.findings],
        [describe_choice(choice) for choice in union.choices],
        [
            ([item.held.id for item in one.candidates], [item.held.id for item in one.beyond], one.untrusted)
            for one in union.fields
        ],
        ignored_records(union, situation),
    )


@settings(LAW, max_examples=60)
@given(WORLDS, st.lists(HISTORY, max_size=3), INPUTS, TREES, VISITS, st.data())
def test_law_what_commits_share_changes_no_judgement(new_world, given_, history, inputs, trees, visits, data):
    world = build(new_world, given_, [])
    for name, distance in AWAY["head"].items():
        world.commit(name, distance=distance, from_ref=name != "head" and given_["from_ref"])
    for name, commit in world.commits.items():
        commit.inputs, commit.tree = inputs[name], trees[name]
    for event in chain.from_iterable(history):
        apply(world, replace(event, place=data.draw(ANYWHERE)))
    base = world.situation()
    shards = {
        kind: tuple(
            world._target(one, next(c for c in world.commits.values() if c.inputs == kind))
            for one in world.shards.values()
        )
        for kind in set(inputs.values())
    }
    memory = Memory()
    for target in visits:
        cut = data.draw(st.booleans())
        alone = seen_from(base, world, target, shards, Memory(), cut=cut)
        together = seen_from(base, world, target, shards, memory, cut=cut)
        assert all_said(together) == all_said(alone), target
