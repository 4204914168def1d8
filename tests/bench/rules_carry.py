"""The peer's rules of carrying shards forward, each played on both tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rules_stage import Json, Situation, Stage, config
from worlds import World

from gitledger.records.outcomes import Outcome, TestOutcome

__all__ = ["SITUATIONS"]

AREA = "carry"
ALLOWED = "{allow_carried: true}"


def carried(
    rule: str,
    *,
    why: str = "",
    before_ours: Callable[[Stage], object] = lambda stage: None,
    before_peer: Callable[[Stage], object] = lambda stage: None,
    edit: Callable[[Stage], object] = lambda stage: stage.commit(src__b_py="VALUE = 9\n"),
    policy: str = ALLOWED,
) -> Situation:
    """Return the situation: b is edited and recorded anew, a is to be carried from the receipts before."""

    def ours(stage: Stage) -> bool:
        before_ours(stage)
        edit(stage)
        stage.record("b")
        return stage.merge("--carry")

    def peer(stage: Stage) -> bool:
        before_peer(stage)
        edit(stage)
        stage.peer_record("b", out="b2")
        return stage.peer_merge("b2", carry="merged", out="next")

    return Situation(area=AREA, rule=rule, ours=ours, peer=peer, policy=policy, why=why)


def shard_a(change: Callable[[Json], None]) -> Callable[[Json], None]:
    return lambda receipt: change(next(shard for shard in receipt["shards"] if shard["name"] == "a"))


def sideways(stage: Stage) -> None:
    """Go to a commit that has the same files and none of the history."""
    stage.world.git("checkout", "-q", "--orphan", "elsewhere")
    stage.world.git("commit", "-q", "-m", "elsewhere")
    stage.commit(src__b_py="VALUE = 9\n")


def peer_dirty(stage: Stage) -> None:
    stage.peer_rewrite("merged", lambda receipt: (receipt["repo"].update(dirty=True), None)[1])


def ours_dirty(stage: Stage) -> None:
    stage.rewrite("a", lambda it: replace(it, repo=replace(it.repo, dirty=True, dirty_paths=("src/a.py",))))


def peer_failed(stage: Stage) -> None:
    def fail(receipt: Json) -> None:
        receipt["session"]["outcome"] = "failed"
        for test in receipt["tests"]:
            if test["node_id"].startswith("tests/a/"):
                test["outcome"] = "failed"

    stage.peer_rewrite("merged", fail)


def ours_failed(stage: Stage) -> None:
    stage.rewrite(
        "a",
        lambda it: replace(it, outcome=Outcome.FAILED),
        results=lambda tests: [replace(test, outcome=TestOutcome.FAILED, phase="call") for test in tests],
    )


def peer_python(stage: Stage) -> None:
    stage.peer_rewrite("merged", lambda receipt: receipt["environment"].update(python_version="3.1.0"))
    stage.peer_rewrite("merged", shard_a(lambda shard: shard["environment"].update(python_version="3.1.0")))


def ours_python(stage: Stage) -> None:
    stage.rewrite("a", lambda it: replace(it, environment=replace(it.environment, python="3.1.0")))


def peer_forged(stage: Stage) -> None:
    stage.peer_rewrite("merged", lambda receipt: receipt["tests"][0].update(duration_s=9.0), sign=False)


def peer_unknown_id(stage: Stage) -> None:
    stage.peer_rewrite("merged", shard_a(lambda shard: shard["node_ids"].append("tests/a/test_a.py::test_more")))


def ours_unknown_id(stage: Stage) -> None:
    stage.rewrite("a", lambda it: replace(it, collection=replace(it.collection, selected_digest="0" * 64)))


def peer_duplicate(stage: Stage) -> None:
    def twin(receipt: Json) -> None:
        for test in receipt["tests"]:
            if test["node_id"] == "tests/a/test_a.py::test_a":
                test["node_id"] = "tests/b/test_b.py::test_b"

    def drop(receipt: Json) -> None:
        receipt["tests"] = receipt["tests"][:1]
        receipt["shards"] = [shard for shard in receipt["shards"] if shard["name"] == "a"]
        receipt["shards"][0]["node_ids"] = ["tests/b/test_b.py::test_b"]
        receipt["session"]["node_ids"] = ["tests/b/test_b.py::test_b"]
        twin(receipt)

    stage.peer_rewrite("merged", drop)


def ours_duplicate(stage: Stage) -> None:
    stage.rewrite(
        "a", results=lambda tests: [replace(test, node_id="tests/b/test_b.py::test_b") for test in tests]
    )


def conftest(stage: Stage) -> None:
    stage.commit(src__b_py="VALUE = 9\n", conftest_py="def pytest_runtest_call(item):\n    item.obj = print\n")


def redefined(stage: Stage) -> None:
    text = config(ALLOWED, commands="pytest -q -x tests/{0}")
    stage.world.write(".gitledger/config.yaml", text)
    stage.commit(src__b_py="VALUE = 9\n")


def aged(world: World, days: int) -> None:
    """Let the newest commit be old, so that a run on it can be."""
    date = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    env = {**world.env, "GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
    World(world.path, env).git("commit", "-q", "--amend", "--no-edit", "--allow-empty", "--date", date)


def peer_chain(stage: Stage) -> bool:
    """Carry a shard whose run is 40 days old, once more, from a receipt that was merged just now."""
    old = (datetime.now(UTC) - timedelta(days=40)).strftime("%Y-%m-%dT%H:%M:%SZ")
    origin = {"original_ended_at": old, "original_commit_sha": "1" * 40, "original_dirty": False}
    stage.peer_rewrite("merged", shard_a(lambda shard: shard.update(carried={**origin, "from": "x.json"})))
    stage.commit(src__b_py="VALUE = 9\n")
    stage.peer_record("b", out="b2")
    return stage.peer_merge("b2", carry="merged", out="next") and stage.peer_verify(
        "next", allow_carried=True, carried_max_age_days=14
    )


def ours_chain(stage: Stage) -> bool:
    """The same: a ran 40 days ago, was carried into a merged receipt, and is to be carried once more."""
    aged(stage.world, 41)
    stage.record("a")
    old = datetime.now(UTC) - timedelta(days=40)
    stage.rewrite("a", lambda it: replace(it, session=replace(it.session, started_at=old, ended_at=old)))
    stage.commit(src__b_py="VALUE = 8\n")
    stage.record("b")
    stage.merge("--carry")
    stage.commit(src__b_py="VALUE = 9\n")
    stage.record("b")
    return stage.merge("--carry") and stage.verify()


SITUATIONS = [
    carried("an unchanged shard of an ancestor"),
    carried(
        "its inputs changed", edit=lambda stage: stage.commit(src__a_py="VALUE = 9\n", src__b_py="VALUE = 9\n")
    ),
    carried("it was recorded on a commit that is no ancestor", edit=sideways),
    carried("it was recorded with uncommitted changes", before_ours=ours_dirty, before_peer=peer_dirty),
    carried("it holds a node id that ran freshly", before_ours=ours_duplicate, before_peer=peer_duplicate),
    carried("it claims a node id that its results lack", before_ours=ours_unknown_id, before_peer=peer_unknown_id),
    carried(
        "it failed",
        before_ours=ours_failed,
        before_peer=peer_failed,
        why="only a green result can stand for a run; the peer's `verify` refuses such a merge later",
    ),
    carried(
        "it ran under another Python than the fresh shards",
        before_ours=ours_python,
        before_peer=peer_python,
        why="`carry.environment`: what a shard proved, it proved there",
    ),
    carried(
        "the receipt that it comes from was edited after it was signed",
        before_ours=lambda stage: stage.tamper("a"),
        before_peer=peer_forged,
        why="an unsigned claim is no evidence, however old",
    ),
    carried(
        "a `conftest.py` above it was added",
        edit=conftest,
        why="pytest's configuration chain is an input of every shard: it decides what the tests do",
    ),
    carried(
        "its command was changed in the configuration",
        edit=redefined,
        why="the definition's digest travels in the receipt; the peer knows no definition, and its scope excludes it",
    ),
    Situation(
        area=AREA,
        rule="it ran 40 days ago and was carried before; at most 14 days are allowed",
        policy="{allow_carried: true, carried_max_age_days: 14}",
        ours=ours_chain,
        peer=peer_chain,
        why="a carry names the original run, never a chain, so age is counted from the run",
    ),
]
