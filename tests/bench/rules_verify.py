"""The peer's rules of verifying, each played on both tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rules_carry import aged
from rules_stage import Json, Situation, Stage, at, config

from gitledger.records.bodies import Check

__all__ = ["SITUATIONS"]

AREA = "verify"
STAMP = "%Y-%m-%dT%H:%M:%SZ"
SCOPES = {name: {"paths": [f"src/{name}.py", f"tests/{name}"]} for name in ("a", "b")}
MARK = "import pytest\n\n\n@pytest.mark.gpu_proof\n"


def judged(
    rule: str,
    *,
    ours: Callable[[Stage], object] = lambda stage: None,
    peer: Callable[[Stage], object] = lambda stage: None,
    options: Sequence[str] = (),
    policy: str = "{}",
    peer_policy: Json | None = None,
    peer_options: Sequence[str] = (),
    why: str = "",
) -> Situation:
    """Return the situation: something happened, and the commit (the merged receipt) is verified."""

    def play_ours(stage: Stage) -> bool:
        ours(stage)
        return stage.verify(*options)

    def play_peer(stage: Stage) -> bool:
        peer(stage)
        return stage.peer_verify("merged", peer_options, **(peer_policy or {}))

    return Situation(area=AREA, rule=rule, ours=play_ours, peer=play_peer, policy=policy, why=why)


def both(change: Callable[[Stage], object]) -> dict[str, Any]:
    return {"ours": change, "peer": change}


def session(**fields: str) -> Callable[[Stage], None]:
    return lambda stage: stage.peer_rewrite("merged", lambda receipt: receipt["session"].update(fields))


def moved(days: float) -> tuple[Callable[[Stage], None], Callable[[Stage], None]]:
    """Return how each tool's evidence comes to be from another time than it is."""
    when = datetime.now(UTC) + timedelta(days=days)

    def ours(stage: Stage) -> None:
        for shard in ("a", "b"):
            stage.rewrite(shard, lambda it: at(it, when))

    return ours, session(started_at=when.strftime(STAMP), ended_at=when.strftime(STAMP))


def record_both(stage: Stage, *options: str) -> None:
    for shard in ("a", "b"):
        stage.record(shard, *options)


def peer_again(stage: Stage, *options: str) -> None:
    for shard in ("a", "b"):
        stage.peer_record(shard, *options)
    stage.peer_merge("a", "b")


def with_test(body: str) -> dict[str, Any]:
    """Return how both tools record a test of shard b with that body."""

    def ours(stage: Stage) -> None:
        stage.commit(tests__b__test_b_py=MARK + body)
        record_both(stage)

    def peer(stage: Stage) -> None:
        stage.commit(tests__b__test_b_py=MARK + body)
        peer_again(stage)

    return {"ours": ours, "peer": peer}


def ours_unsigned(stage: Stage) -> None:
    stage.commit(src__a_py="VALUE = 8\n")
    record_both(stage, "--unsigned")


def peer_unsigned(stage: Stage) -> None:
    stage.peer_rewrite("merged", lambda receipt: receipt.update(signature=None), sign=False)


def stranger(stage: Stage) -> None:
    """Let the repository know somebody else only."""
    other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDxlSPGGQqXJGJPNGGVxYDbT0ygrmpp/7SHUSUzGYKaF"
    stage.world.write(".gitledger/allowed_signers", f'bench@example.org namespaces="gitledger" {other}\n')
    stage.world.commit("another signer")
    record_both(stage)


def ours_dirty(stage: Stage) -> None:
    stage.commit(src__a_py="VALUE = 3\n", src__b_py="VALUE = 3\n")
    stage.world.write("new.py", "VALUE = 7\n")
    record_both(stage)
    (stage.world.path / "new.py").unlink()


def peer_dirty(stage: Stage) -> None:
    stage.commit(src__a_py="VALUE = 3\n", src__b_py="VALUE = 3\n")
    stage.world.write("new.py", "VALUE = 7\n")
    peer_again(stage)
    (stage.world.path / "new.py").unlink()


def carry(stage: Stage) -> None:
    stage.commit(src__b_py="VALUE = 9\n")
    stage.record("b")


def peer_carry(stage: Stage) -> None:
    stage.commit(src__b_py="VALUE = 9\n")
    stage.peer_record("b", out="b2")
    stage.peer_merge("b2", carry="merged", out="next")
    (stage.receipts / "next.json").replace(stage.receipts / "merged.json")


def ours_failed_check(stage: Stage) -> None:
    check = Check(name="gemm", passed=False, detail="differs")
    stage.rewrite("b", results=lambda tests: [replace(test, checks=(check,)) for test in tests])


def peer_failed_check(stage: Stage) -> None:
    check = {"name": "gemm", "outcome": "failed", "metadata": {}}
    stage.peer_rewrite("merged", lambda receipt: receipt["tests"][1].update(checks=[check]))


def flaky(stage: Stage) -> None:
    body = "def test_b():\n    import os\n    assert 'FAIL' not in os.environ\n"
    stage.commit(tests__b__test_b_py=MARK + body)


def ours_later_failure(stage: Stage) -> None:
    flaky(stage)
    record_both(stage)
    stage.merge()
    stage.record("b", FAIL="1")


def peer_later_failure(stage: Stage) -> None:
    flaky(stage)
    peer_again(stage)
    words = ["pytest", "-q", "tests/b", "--gpu-proof-enable", "--gpu-proof-shard=b"]
    out = [f"--gpu-proof-out={stage.receipts / 'later.json'}", "--gpu-proof-github-user=bench"]
    stage.run("peer", [*words, *out, f"--gpu-proof-key={stage.tools.key}"], FAIL="1")


def two_tests(stage: Stage) -> None:
    stage.commit(
        tests__b__test_b_py=MARK
        + "def test_b():\n    pass\n\n\n@pytest.mark.gpu_proof\ndef test_c():\n    assert 0\n"
    )


def ours_selected(stage: Stage) -> None:
    two_tests(stage)
    stage.record("a")
    stage.record("b", command=["pytest", "-q", "tests/b", "-k", "not test_c"])


def peer_selected(stage: Stage) -> None:
    two_tests(stage)
    stage.peer_record("a")
    stage.peer_record("b", "-k", "not test_c")
    stage.peer_merge("a", "b")


def narrowed_ours(stage: Stage) -> None:
    stage.world.git("branch", "trusted")
    stage.world.write(".gitledger/config.yaml", config("{}", a="tests/a"))
    stage.world.commit("narrow")
    record_both(stage)


def narrowed_peer(stage: Stage) -> None:
    stage.peer_record("a", "--gpu-proof-shard-fingerprint-paths=tests/a")
    stage.peer_merge("a", "b")


def listed(stage: Stage) -> None:
    stage.commit(required_txt="x\n")
    stage.world.git("mv", "required_txt", "required.txt")
    stage.world.write("required.txt", "tests/a/test_a.py::test_a\ntests/b/test_b.py::test_more\n")
    stage.world.commit("list")


def ours_listed(stage: Stage) -> None:
    listed(stage)
    record_both(stage)


def peer_listed(stage: Stage) -> None:
    listed(stage)
    peer_again(stage)


def without_b(stage: Stage) -> None:
    stage.commit(src__a_py="VALUE = 5\n", src__b_py="VALUE = 6\n")
    stage.record("a")


def ours_no_policy(stage: Stage) -> None:
    stranger(stage)


old, old_peer = moved(-31)
early, early_peer = moved(-1)
late, late_peer = moved(1)


def ours_old(stage: Stage) -> None:
    aged(stage.world, 60)
    record_both(stage)
    old(stage)


def peer_old(stage: Stage) -> None:
    aged(stage.world, 60)
    peer_again(stage)
    old_peer(stage)


RUNNER = {"allowed_key_fingerprints": ["SHA256:" + "A" * 43]}
SITUATIONS = [
    judged("all shards recorded, clean, green, signed by a listed signer"),
    judged(
        "the receipt was edited after it was signed",
        ours=lambda stage: stage.tamper("b"),
        peer=lambda stage: stage.peer_rewrite(
            "merged", lambda it: it["tests"][0].update(duration_s=9.0), sign=False
        ),
    ),
    judged("the receipt is unsigned", ours=ours_unsigned, peer=peer_unsigned),
    judged("its signer is not on the list", ours=stranger, peer_policy={"allowed_signers": ["somebody"]}),
    judged(
        "its signer is nobody that the repository names, and no policy is given",
        ours=ours_no_policy,
        peer_policy={"bare": True},
        why="`signer_mode: restricted` is the default: whoever has an account anywhere is not thereby a witness",
    ),
    judged("a test failed", **with_test("def test_b():\n    assert 0\n")),
    judged("a test was skipped", **with_test("def test_b():\n    pytest.skip('no GPU')\n")),
    judged(
        "a teardown failed",
        **with_test(
            "def test_b(broken):\n    pass\n\n\n@pytest.fixture\ndef broken():\n    yield\n    raise ValueError\n"
        ),
    ),
    judged("a comparison check failed", ours=ours_failed_check, peer=peer_failed_check),
    judged("it was recorded beside an untracked file that nothing ignores", ours=ours_dirty, peer=peer_dirty),
    judged("the sources changed in a later commit", **both(lambda stage: stage.commit(src__a_py="VALUE = 9\n"))),
    judged(
        "the work tree of whoever verifies has an uncommitted edit",
        **both(lambda stage: stage.world.write("src/a.py", "VALUE = 9\n")),
        why="we judge a commit, from its objects; what lies in the work tree can't change what ran on the commit",
    ),
    judged(
        "a later commit changed nothing",
        **both(lambda stage: stage.commit()),
        why="that is a carry for us, which policy has to allow (`allow_carried`, or `carry: {from: same-manifest}`)",
    ),
    judged("a shard is carried, and policy says nothing of it", ours=carry, peer=peer_carry),
    judged(
        "a shard is carried, and policy allows it",
        policy="{allow_carried: true}",
        ours=carry,
        peer=peer_carry,
        peer_policy={"allow_carried": True},
    ),
    judged("it is older than `max_age_days`", ours=ours_old, peer=peer_old),
    judged("it lies in the future", ours=late, peer=late_peer),
    judged("it began before its commit existed", ours=early, peer=early_peer),
    judged(
        "a shard that policy needs is missing",
        ours=without_b,
        peer=lambda stage: stage.peer_merge("a"),
        peer_policy={"required_shard_fingerprints": SCOPES},
    ),
    judged(
        "a shard is missing, and no map of shards stands in policy",
        ours=without_b,
        peer=lambda stage: stage.peer_merge("a"),
        why="the declared shards are what has to be covered; there is no second list to keep",
    ),
    judged(
        "a shard's scope was narrowed against what is trusted",
        ours=narrowed_ours,
        options=["--policy-from", "trusted"],
        peer=narrowed_peer,
        peer_policy={"required_shard_fingerprints": SCOPES},
    ),
    judged(
        "it says `ci-gpu`, and policy lists no runner's key",
        ours=lambda stage: (stage.commit(src__a_py="VALUE = 5\n"), record_both(stage, "--mode", "ci-gpu")),
        peer=lambda stage: peer_again(stage, "--gpu-proof-mode=ci-gpu"),
    ),
    judged(
        "it says `ci-gpu`, and its key is not the listed runner's",
        policy=f"{{ci_key_fingerprints: ['{RUNNER['allowed_key_fingerprints'][0]}']}}",
        ours=lambda stage: (stage.commit(src__a_py="VALUE = 5\n"), record_both(stage, "--mode", "ci-gpu")),
        peer=lambda stage: peer_again(stage, "--gpu-proof-mode=ci-gpu"),
        peer_policy=RUNNER,
    ),
    judged(
        "policy needs mode `ci-gpu`, and it says `local`",
        policy=f"{{require_mode: ci-gpu, ci_key_fingerprints: ['{RUNNER['allowed_key_fingerprints'][0]}']}}",
        peer_policy={"require_mode": "ci-gpu"},
    ),
    judged("policy needs a GPU, and none was seen", policy="{require_gpu: true}", peer_options=["--require-gpu"]),
    judged(
        "the tests that ran are not the list that policy names",
        policy="{required_tests: required.txt}",
        ours=ours_listed,
        peer=peer_listed,
        peer_policy={"required_test_manifest": "required.txt"},
    ),
    judged(
        "only the tests that pass were selected (`-k`)",
        ours=ours_selected,
        peer=peer_selected,
        why="a command other than the declared one proves something else than what was declared",
    ),
    judged(
        "a shard failed on the commit after the merged receipt was made",
        ours=ours_later_failure,
        peer=peer_later_failure,
        why="`verify` judges what the ledger holds now: an older snapshot hides no later failure",
    ),
]
