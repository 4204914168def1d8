"""The peer's rules of merging, each played on both tools."""

from __future__ import annotations

from dataclasses import replace

from rules_stage import Json, Situation, Stage
from seed_ours import signer_of

__all__ = ["SITUATIONS"]

AREA = "merge"
FAILING = "def test_b():\n    raise AssertionError\n"


def other_environment(key: str, ours: str) -> tuple[object, object]:
    """Return how each tool plays a shard that ran under another version of something."""

    def peer(stage: Stage) -> bool:
        stage.peer_rewrite("b", lambda receipt: receipt["environment"].update({key: "0.0.1"}))
        return stage.peer_merge("a", "b")

    def play(stage: Stage) -> bool:
        stage.rewrite("b", lambda it: replace(it, environment=replace(it.environment, **{ours: "0.0.1"})))
        return stage.merge()

    return play, peer


def differing(what: str, key: str, ours: str) -> Situation:
    play, peer = other_environment(key, ours)
    return Situation(area=AREA, rule=f"the inputs ran under different versions of {what}", ours=play, peer=peer)


def peer_two_commits(stage: Stage) -> bool:
    stage.commit(src__a_py="VALUE = 3\n")
    stage.peer_record("b", out="b2")
    return stage.peer_merge("a", "b2")


def ours_two_commits(stage: Stage) -> bool:
    stage.commit(src__a_py="VALUE = 3\n")
    stage.record("b")
    return stage.merge()


def peer_modes(stage: Stage) -> bool:
    stage.peer_record("b", "--gpu-proof-mode=ci-gpu")
    return stage.peer_merge("a", "b")


def ours_modes(stage: Stage) -> bool:
    """Let the key be a runner's: else the one that says `ci-gpu` wouldn't count at all."""
    config = ".gitledger/config.yaml"
    runner = f"policy: {{ci_key_fingerprints: ['{signer_of(stage.tools).fingerprint}']}}"
    text = (stage.world.path / config).read_text()
    assert text.count("policy: {}") == 1
    stage.world.write(config, text.replace("policy: {}", runner))
    stage.commit()
    stage.record("a")
    stage.record("b", "--mode", "ci-gpu")
    return stage.merge()


def peer_same_ids(stage: Stage) -> bool:
    stage.peer_rewrite("b", _twin)
    return stage.peer_merge("a", "b")


def _twin(receipt: Json) -> None:
    node = "tests/a/test_a.py::test_a"
    receipt["tests"][0]["node_id"] = node
    receipt["session"]["node_ids"] = receipt["shards"][0]["node_ids"] = [node]


def ours_same_ids(stage: Stage) -> bool:
    def twin(results):
        return [replace(result, node_id="tests/a/test_a.py::test_a") for result in results]

    stage.rewrite("b", results=twin)
    return stage.merge()


def peer_same_name(stage: Stage) -> bool:
    stage.peer_record("a", out="again")
    return stage.peer_merge("a", "again", "b")


def ours_same_name(stage: Stage) -> bool:
    stage.record("a")
    return stage.merge()


def peer_failed(stage: Stage) -> bool:
    stage.commit(tests__b__test_b_py="import pytest\n\n\n@pytest.mark.gpu_proof\n" + FAILING)
    stage.peer_record("a")
    stage.peer_record("b")
    return stage.peer_merge("a", "b")


def ours_failed(stage: Stage) -> bool:
    stage.commit(tests__b__test_b_py=FAILING)
    stage.record("a")
    stage.record("b")
    return stage.merge()


def peer_forged(stage: Stage) -> bool:
    stage.peer_rewrite("b", lambda receipt: receipt["tests"][0].update({"duration_s": 9.0}), sign=False)
    return stage.peer_merge("a", "b")


def ours_forged(stage: Stage) -> bool:
    stage.tamper("b")
    return stage.merge()


def peer_forged_asked(stage: Stage) -> bool:
    stage.peer_rewrite("b", lambda receipt: receipt["tests"][0].update({"duration_s": 9.0}), sign=False)
    return stage.peer_merge("a", "b", options=["--verify-inputs"])


def ours_forged_asked(stage: Stage) -> bool:
    stage.tamper("b")
    return stage.merge("--verify-inputs")


def peer_unsigned(stage: Stage, *options: str) -> bool:
    stage.peer_record("b", "--gpu-proof-signing-backend=none")
    return stage.peer_merge("a", "b", options=options)


def ours_unsigned(stage: Stage, *options: str) -> bool:
    stage.commit(src__b_py="VALUE = 9\n")
    stage.record("a")
    stage.record("b", "--unsigned")
    return stage.merge(*options)


CHECKED = "a merged receipt is no better than its inputs, so their signatures and signers are always checked"
SITUATIONS = [
    Situation(
        area=AREA,
        rule="two shards of one clean commit, both passed",
        ours=lambda stage: stage.merge(),
        peer=lambda stage: stage.peer_merge("a", "b"),
    ),
    Situation(area=AREA, rule="the inputs are of different commits", ours=ours_two_commits, peer=peer_two_commits),
    Situation(area=AREA, rule="the inputs differ in mode", ours=ours_modes, peer=peer_modes),
    differing("Python", "python_version", "python"),
    differing("pytest", "pytest_version", "pytest"),
    differing("the recorder", "plugin_version", "gitledger"),
    Situation(area=AREA, rule="two shards hold one node id", ours=ours_same_ids, peer=peer_same_ids),
    Situation(
        area=AREA,
        rule="a shard was run twice on the commit, both times passed",
        ours=ours_same_name,
        peer=peer_same_name,
        why="runs of a shard are attempts: all are kept, the newest counts, `max_attempts` bounds them",
    ),
    Situation(
        area=AREA,
        rule="one input failed (did `merge` exit with 0?)",
        ours=ours_failed,
        peer=peer_failed,
        why="both write a receipt that says `failed`; our exit status says so too, so a script stops there",
    ),
    Situation(
        area=AREA,
        rule="a declared shard is missing from the inputs",
        policy="{max_age_days: 29}",
        ours=lambda stage: _without_b(stage),
        peer=lambda stage: stage.peer_merge("a"),
        why="shards are declared in the repository, so what is missing is known before anything is signed",
    ),
    Situation(
        area=AREA,
        rule="an input was edited after it was signed",
        ours=ours_forged,
        peer=peer_forged,
        why=CHECKED,
    ),
    Situation(
        area=AREA,
        rule="the same with `--verify-inputs`",
        ours=ours_forged_asked,
        peer=peer_forged_asked,
    ),
    Situation(area=AREA, rule="an input is unsigned", ours=ours_unsigned, peer=peer_unsigned, why=CHECKED),
    Situation(
        area=AREA,
        rule="an input is unsigned, with `--verify-inputs`",
        ours=lambda stage: ours_unsigned(stage, "--verify-inputs"),
        peer=lambda stage: peer_unsigned(stage, "--verify-inputs"),
    ),
]


def _without_b(stage: Stage) -> bool:
    stage.commit(src__a_py="VALUE = 5\n", src__b_py="VALUE = 6\n")
    stage.record("a")
    return stage.merge()
