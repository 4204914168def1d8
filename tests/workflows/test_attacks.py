"""A table of attacks, each an attempt to get `verify --policy-from trusted` green without honest evidence.

Each function sets one attack up over a real repository, and names the words by which it must be refused: that a
verdict is red by accident proves nothing. What signatures alone can be made to say is tabled in the trust room's
tests; here the whole path is attacked: records, bodies, notes, trees, refs, policy, history, and time.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gitledger.records.bodies import BodyRef, TestResult, collection_digest, encode_tests
from gitledger.records.envelope import PAYLOAD_TYPE, Envelope, Signature, pae
from gitledger.records.ids import NodeId
from gitledger.records.outcomes import TestOutcome
from gitledger.trust.sshsig import SshSig, signed_data

ATTACKS: dict[str, tuple[Callable[[Any], None], tuple[str, ...]]] = {}
NOW = datetime.now(UTC)
LAST_WEEK = NOW - timedelta(days=7)


def attack(*words: str):
    """Register an attack, and the words that the verdict must say."""

    def register(make: Callable[[Any], None]) -> Callable[[Any], None]:
        ATTACKS[make.__name__] = (make, words)
        return make

    return register


def day(when: datetime) -> str:
    return when.strftime("%Y%m%dZ")


def stamp(when: datetime | None = None) -> str:
    return (when or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def signers(stage, **options: str) -> str:
    """Return allowed_signers lines: `signers(stage, alice='valid-before="…"')`."""
    return "".join(
        f"{name}@example.org {option} {stage.project.public(name)}\n" for name, option in options.items()
    )


# --- whose signature -------------------------------------------------------------------------------------------


@attack("unknown-signer")
def a_strangers_key(stage):
    stage.record("mallory")


@attack("unknown-signer")
def a_stranger_who_says_to_be_alice(stage):
    document = stage.honest()
    document["predicate"]["signer"] |= {
        "user": "alice@example.org",
        "key_fingerprint": stage.signer("mallory").fingerprint,
    }
    stage.hang(stage.seal(json.dumps(document, separators=(",", ":"), sort_keys=True).encode(), "mallory"))


@attack("key-mismatch")
def alices_payload_under_a_strangers_signature(stage):
    payload = json.dumps(stage.honest(), separators=(",", ":"), sort_keys=True).encode()
    stage.hang(stage.seal(payload, "mallory"))


@attack("wrong-namespace")
def a_signature_made_for_a_git_commit(stage):
    """Whoever gets somebody to sign a commit must not hold a receipt then."""
    document = stage.honest()
    signer = stage.signer("alice")
    payload = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
    raw = signer._private.sign(signed_data(pae(PAYLOAD_TYPE, payload), namespace="git"))
    blob = SshSig(public_key=signer.key.blob, namespace="git", hash_name="sha512", signature=raw).encode()
    envelope = Envelope(payload=payload, signature=Signature(keyid=signer.fingerprint, blob=blob))
    stage.hang(envelope.encode())


@attack("malformed: its signature is missing")
def a_stripped_signature(stage):
    document = stage.honest()
    line = json.loads(stage.seal(document))
    stage.hang(json.dumps(line | {"signatures": []}, separators=(",", ":"), sort_keys=True))


@attack("malformed")
def a_second_signature_beside_the_first(stage):
    document = stage.honest()
    one, two = (json.loads(stage.seal(document, name)) for name in ("mallory", "alice"))
    both = one | {"signatures": one["signatures"] + two["signatures"]}
    stage.hang(json.dumps(both, separators=(",", ":"), sort_keys=True))


@attack("unsigned")
def an_unsigned_receipt_where_policy_allows_them_in_vain(stage):
    """`allow_unsigned` never holds in restricted mode."""
    stage.policy("{allow_unsigned: true}")
    stage.record()
    document = stage.document()
    document["predicate"]["signer"] = None
    payload = base64.b64encode(json.dumps(document, separators=(",", ":"), sort_keys=True).encode()).decode()
    line = {"payload": payload, "payloadType": "application/vnd.in-toto+json", "signatures": []}
    stage.hang(json.dumps(line, separators=(",", ":"), sort_keys=True))


@attack("key-revoked")
def a_revoked_key(stage):
    stage.record()
    stage.repo.git("checkout", "-q", "trusted")
    stage.repo.commit({".gitledger/revoked_keys": stage.project.public("alice") + "\n"})
    stage.repo.git("checkout", "-q", "main")


@attack("key-revoked")
def a_key_in_a_revocation_list_that_the_change_empties(stage):
    public = stage.project.keys / "alice.pub"
    listed = stage.project.keys / "krl"
    stage.project.public("alice")
    subprocess.run(["ssh-keygen", "-q", "-k", "-f", str(listed), str(public)], check=True)
    stage.trust({".gitledger/revoked_keys": listed.read_bytes()})
    stage.repo.commit({".gitledger/revoked_keys": ""})
    stage.record()


@attack("key-expired")
def an_expired_key_that_dates_its_receipt_back(stage):
    stage.trust(
        {".gitledger/allowed_signers": signers(stage, alice=f'valid-before="{day(NOW - timedelta(days=1))}"')}
    )
    env = {name: f"{stamp(LAST_WEEK)}" for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")}
    stage.repo.env.update(env)
    stage.repo.commit({"src/alpha.py": "def alpha():\n    return 2\n"})
    stage.record(at=LAST_WEEK + timedelta(hours=1))


@attack("key-not-valid-then")
def a_key_that_was_not_valid_yet(stage):
    tomorrow = NOW - timedelta(days=1)
    stage.repo.env.update(GIT_AUTHOR_DATE=stamp(LAST_WEEK), GIT_COMMITTER_DATE=stamp(LAST_WEEK))
    stage.trust({".gitledger/allowed_signers": signers(stage, alice=f'valid-after="{day(tomorrow)}"')})
    stage.record(at=LAST_WEEK + timedelta(hours=1))


@attack("unknown-signer")
def a_retired_key_that_signs_a_newer_receipt(stage):
    """The key is gone from the file but for its past; what it signs today is nobody's."""
    retired = signers(stage, alice=f'valid-before="{day(NOW - timedelta(days=2))}"', bob="")
    stage.trust({".gitledger/allowed_signers": retired})
    stage.record()


@attack("key-expired")
def a_retired_key_that_vouches_for_itself(stage):
    a_retired_key_with_a_receipt(stage)
    stage.repo.git("branch", "-f", "trusted", "HEAD~1")
    stage.merge("alice", at=LAST_WEEK + timedelta(hours=2))
    stage.repo.git("branch", "-f", "trusted", "HEAD")


@attack("key-expired")
def a_stranger_who_vouches_for_a_retired_key(stage):
    a_retired_key_with_a_receipt(stage)
    vouch(stage, "mallory")


@attack("key-expired", "ignored future")
def a_voucher_of_tomorrow_for_a_retired_key(stage):
    a_retired_key_with_a_receipt(stage)
    vouch(stage, "bob", at=NOW + timedelta(days=1))


def a_retired_key_with_a_receipt(stage) -> None:
    """Alice's key is retired at `trusted`; her receipt of last week hangs on HEAD. Bob's key is valid."""
    stage.repo.env.update(GIT_AUTHOR_DATE=stamp(LAST_WEEK), GIT_COMMITTER_DATE=stamp(LAST_WEEK))
    stage.repo.commit({".gitledger/allowed_signers": signers(stage, alice="", bob="")})
    retired = signers(stage, alice=f'valid-before="{day(NOW - timedelta(days=2))}"', bob="")
    stage.trust({".gitledger/allowed_signers": retired})
    stage.record(at=LAST_WEEK + timedelta(hours=1))


def vouch(stage, name: str, *, at: datetime | None = None) -> None:
    """Hang a merged receipt by `name` that names the receipt of HEAD, whoever counts."""
    receipt, [line] = stage.document(), stage.lines()
    record = json.loads(
        subprocess.run(
            ["git", "ledger", "log", "--json"],
            cwd=stage.path,
            env=dict(stage.repo.env),
            capture_output=True,
            check=True,
        ).stdout
    )
    predicate = receipt["predicate"]
    shard = {
        "carried": None,
        "commit": predicate["repo"]["commit"],
        "counts": predicate["counts"],
        "dirty": False,
        "ended_at": predicate["session"]["ended_at"],
        "key_fingerprint": predicate["signer"]["key_fingerprint"],
        "name": "it",
        "outcome": "passed",
        "record": record[0]["records"][0]["record"],
        "signer": "alice@example.org",
        "started_at": predicate["session"]["started_at"],
        "variant": None,
    }
    merged = {
        "counts": predicate["counts"],
        "coverage": None,
        "environment": predicate["environment"],
        "inputs_verified": True,
        "merged_at": stamp(at or NOW),
        "outcome": "passed",
        "record_version": 1,
        "repo": predicate["repo"],
        "repository": "demo",
        "session": {name: predicate["session"][name] for name in ("ended_at", "started_at")},
        "shards": [shard],
    }
    document = receipt | {"predicate": merged, "predicateType": "urn:gitledger:receipt:merged:v1"}
    stage.hang(line, stage.seal(document, name))


def test_a_merger_with_a_valid_key_does_vouch_for_a_retired_one(stage):
    """What the attacks above imitate."""
    a_retired_key_with_a_receipt(stage)
    vouch(stage, "bob")
    assert stage.verdict() == (True, "")


@attack("key-not-allowed")
def a_principals_second_key_where_fingerprints_are_pinned(stage):
    stage.project.public("alice")
    pinned = stage.signer("alice").fingerprint
    both = signers(stage, alice="") + f"alice@example.org {stage.project.public('laptop')}\n"
    stage.repo.commit({".gitledger/allowed_signers": both})
    stage.policy(f'{{allowed_key_fingerprints: ["{pinned}"]}}')
    stage.record("laptop")


@attack("no-touch")
def a_security_key_that_nobody_touched(stage, make_security_key):
    key = make_security_key(flags=0)
    stage.trust({".gitledger/allowed_signers": f"alice@example.org {key.key.line}\n"})
    stage.record(key)


@attack("ci_key_fingerprints")
def a_laptop_that_claims_to_be_a_ci_runner(stage):
    stage.policy("{require_mode: ci}")
    stage.record(mode="ci")


@attack("unknown-signer")
def a_namesake_among_the_forges_users(stage, forge):
    """The forge's `alice@example.org` is not the principal of that name, and nobody asks it."""
    text = STAGE_WITH_FORGE % forge.template
    stage.trust({".gitledger/config.yaml": text})
    forge.keys["alice@example.org"] = stage.project.public("mallory")
    stage.record("mallory")


STAGE_WITH_FORGE = """\
version: 1
repository: demo
forges: {github: "%s"}
shards:
  it: {paths: [src], command: "true", results: exit-status}
policy: {allowed_signers: [alice@example.org, "github:bob"]}
"""


@attack("unknown-signer")
def a_forge_account_taken_over_by_a_change_of_forges(stage, forge):
    """The change points `github` at a server of its own; the trusted ref's forges are asked."""
    other = STAGE_WITH_FORGE % forge.template
    stage.trust({".gitledger/config.yaml": other})
    stage.repo.commit({".gitledger/config.yaml": other.replace("{user}.keys", "mine/{user}.keys")})
    forge.keys |= {"bob": stage.project.public("bob"), "mine/bob": stage.project.public("mallory")}
    stage.record("mallory")


@attack("error forge-unreachable", "redirects to another place")
def a_forge_that_sends_us_elsewhere(stage, forge, signers_elsewhere):
    stage.trust({".gitledger/config.yaml": STAGE_WITH_FORGE % forge.template})

    def elsewhere(handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", signers_elsewhere.template.replace("{user}", "bob"))
        handler.end_headers()

    signers_elsewhere.keys["bob"] = stage.project.public("mallory")
    forge.keys["bob"] = elsewhere
    stage.record("mallory")


@attack("error forge-unreachable", "answered more than")
def a_forge_that_floods_us(stage, forge):
    """Five gigabytes, with the key that would count at their head."""
    stage.trust({".gitledger/config.yaml": STAGE_WITH_FORGE % forge.template})
    wanted = stage.project.public("mallory").encode() + b"\n"

    def flood(handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(5 << 30))
        handler.end_headers()
        with suppress(OSError):
            handler.wfile.write(wanted)
            for _ in range(5 << 10):
                handler.wfile.write(b"\n" * (1 << 20))

    forge.keys["bob"] = flood
    stage.record("mallory")


@pytest.fixture
def signers_elsewhere(forge):
    """A second server, to which the first may send whoever asks."""
    other = type(forge)()
    yield other
    other.close()


@attack("unknown-signer", "not-green")
def a_strangers_newer_green_over_an_honest_failure(stage):
    """Signatures are checked before anything is ranked: the newer one displaces nothing."""
    stage.record()
    green = stage.document()
    failed = json.loads(json.dumps(green))
    failed["predicate"] |= {"outcome": "failed", "reasons": ["test-failed"]}
    failed["predicate"]["counts"] |= {"passed": 0, "failed": 1}
    failed["predicate"]["session"]["exit_status"] = 1
    later = stamp(datetime.now(UTC))
    green["predicate"]["session"] |= {"started_at": later, "ended_at": later}
    green["predicate"]["shard"]["attempt"] = 2
    stage.hang(stage.seal(failed), stage.seal(green, "mallory"))


# --- what is signed --------------------------------------------------------------------------------------------


@attack("malformed")
def base64_spelled_in_a_second_way(stage):
    line = json.loads(stage.seal(stage.honest()))
    stage.hang(json.dumps(line | {"payload": line["payload"] + "\n"}, separators=(",", ":"), sort_keys=True))


@attack("malformed")
def one_field_twice_around_the_payload(stage):
    line = stage.seal(stage.honest())
    stage.hang(line.replace('"payloadType"', '"payloadType":"x","payloadType"', 1))


@attack("undecodable")
def one_field_twice_inside_a_signed_payload(stage):
    text = json.dumps(stage.honest(), separators=(",", ":"), sort_keys=True)
    stage.hang(stage.seal(text.replace('"outcome":', '"outcome":"failed","outcome":').encode()))


@attack("line-too-long")
def a_line_that_is_too_long_to_be_a_record(stage):
    stage.hang(stage.seal(stage.honest()) + " " * (1 << 20))


@attack("note-too-large")
def a_note_so_large_that_a_failure_could_hide_in_it(stage):
    """It came from a remote; the note here is honest, and would pass alone."""
    stage.record()
    honest = stage.repo.git("rev-parse", "refs/notes/gitledger/records")
    stage.hang(*stage.lines(), b"x" * (65 << 20))
    stage.repo.git("update-ref", "refs/gitledger/remotes/origin/records", "refs/notes/gitledger/records")
    stage.repo.git("update-ref", "refs/notes/gitledger/records", honest)


@attack("passed, with failed tests")
def a_green_word_over_red_counts(stage):
    stage.forge(counts__failed=1, counts__collected=2, collection__full_count=2)


@attack("passed, with no tests")
def a_green_word_over_nothing(stage):
    stage.forge(counts__passed=0, counts__collected=0)


@attack("results-disagree")
def more_tests_than_there_are_results(stage):
    stage.forge(counts__passed=2, counts__collected=2, collection__full_count=2)


@attack("manifest is not that of the commit")
def inputs_of_another_commit(stage):
    document = stage.honest()
    digest = document["predicate"]["manifest"]["digest"]
    stage.repo.commit({"src/alpha.py": "def alpha():\n    return 2\n"})
    stage.forge(manifest__digest=digest)


@attack("definition-changed")
def a_receipt_of_another_command_under_the_shards_name(stage):
    stage.forge(shard__definition_digest="0" * 64)


@attack("other-command")
def a_run_of_one_test_instead_of_all(stage):
    stage.record(command=("echo", "fine"))


@attack("unwitnessed")
def a_report_that_nobody_saw_being_made(stage):
    stage.forge(session__witnessed=False, session__exit_status=None)


@attack("dirty")
def a_run_with_uncommitted_edits(stage):
    stage.repo.write("src/alpha.py", "def alpha():\n    return 3\n")
    stage.record()


@attack("dated in the future")
def a_receipt_of_tomorrow(stage):
    stage.record(at=NOW + timedelta(days=1))


@attack("older than 30 days")
def a_receipt_from_before_the_age_limit(stage):
    old = NOW - timedelta(days=40)
    stage.repo.env.update(GIT_AUTHOR_DATE=stamp(old), GIT_COMMITTER_DATE=stamp(old))
    stage.repo.commit({"src/alpha.py": "def alpha():\n    return 2\n"})
    stage.record(at=old + timedelta(hours=1))


@attack("started before its commit existed")
def a_receipt_that_is_older_than_its_commit(stage):
    stage.record(at=NOW - timedelta(hours=1))


# --- where it hangs --------------------------------------------------------------------------------------------


@attack("misplaced")
def a_stolen_note(stage):
    stage.record()
    [line] = stage.lines()
    stage.repo.commit({"src/alpha.py": "def alpha():\n    return 2\n"})
    stage.hang(line)


@attack("misplaced")
def a_note_that_git_copied_onto_an_amended_commit(stage):
    stage.repo.git("config", "notes.rewriteRef", "refs/notes/gitledger/records")
    stage.record()
    stage.repo.write("src/alpha.py", "def alpha():\n    return 3\n")
    stage.repo.git("commit", "-q", "-a", "--amend", "-m", "amended")


@attack("misplaced: its tree is not the commit's")
def a_receipt_that_names_this_commit_and_another_tree(stage):
    document = stage.honest()
    tree = stage.repo.git("rev-parse", "HEAD:src")
    document["subject"][0]["digest"]["gitTree"] = document["predicate"]["repo"]["tree"] = tree
    stage.hang(stage.seal(document))


@attack("other-repository")
def a_receipt_of_another_repository(stage):
    stage.forge(repository="elsewhere")


@attack("other-repository")
def a_change_of_the_repositorys_id(stage):
    text = stage.repo.git("show", "HEAD:.gitledger/config.yaml")
    stage.repo.commit({".gitledger/config.yaml": text.replace("demo", "elsewhere")})
    stage.record()


@attack("never-recorded")
def notes_on_the_tree_and_on_a_tag_instead_of_the_commit(stage):
    line = stage.seal(stage.honest())
    stage.repo.git("tag", "-a", "-m", "x", "v1")
    stage.hang(line, on="v1")
    stage.hang(line, on="HEAD^{tree}")
    stage.hang(line, on="HEAD:src/alpha.py")


@attack("never-recorded")
def an_envelope_in_an_inbox_that_is_none(stage):
    """The inbox's trees are read as notes trees: a blob in a tree's place, or a path that spells no id, is nothing."""
    blob = stage.repo.git("hash-object", "-w", "--stdin", input=stage.seal(stage.honest()).encode() + b"\n")
    head = stage.head()
    records = stage.raw_tree(("120000", head, blob), ("100644", f"{head}x", blob))
    tree = stage.raw_tree(("100644", "bodies", blob), ("40000", "records", records))
    commit = stage.repo.git("commit-tree", "-m", "x", tree)
    stage.repo.git("update-ref", "refs/gitledger/inbox/x", commit)
    stage.repo.git("update-ref", "refs/gitledger/remotes/origin/inbox/y", commit)


@attack("unknown-signer")
def a_strangers_record_in_a_remotes_inbox(stage):
    stage.record("mallory")
    tree = stage.raw_tree(("40000", "records", stage.repo.git("rev-parse", "refs/notes/gitledger/records^{tree}")))
    commit = stage.repo.git("commit-tree", "-m", "x", tree)
    stage.repo.git("update-ref", "refs/gitledger/remotes/origin/inbox/y", commit)
    stage.clear()


# --- bodies ----------------------------------------------------------------------------------------------------


def bodies(stage) -> str:
    return stage.document()["predicate"]["bodies"]["tests"]["oid"]


def set_body(stage, oid: str, blob: str | None) -> None:
    entries = (("100644", oid, blob),) if blob else ()
    commit = stage.repo.git("commit-tree", "-m", "x", stage.raw_tree(*entries))
    stage.repo.git("update-ref", "refs/notes/gitledger/bodies", commit)


@attack("body-missing")
def a_swapped_body(stage):
    stage.record()
    set_body(stage, bodies(stage), stage.repo.git("hash-object", "-w", "--stdin", input=b"all passed"))


@attack("body-missing")
def a_body_that_was_taken_away(stage):
    stage.record()
    set_body(stage, bodies(stage), None)


@attack("body-missing")
def a_bomb_at_the_place_of_a_body(stage):
    import zlib

    stage.record()
    bomb = b"\x01" + zlib.compress(b"\x00" * (300 << 20), 9)
    set_body(stage, bodies(stage), stage.repo.git("hash-object", "-w", "--stdin", input=bomb))


@attack("body-corrupt")
def a_bomb_that_is_named_as_the_body(stage):
    import hashlib
    import zlib

    document = stage.honest()
    bomb = b"\x01" + zlib.compress(b"\xc6\x00\x00\x00\x00" * (60 << 20), 9)
    oid = stage.repo.git("hash-object", "-w", "--stdin", input=bomb)
    named = {"oid": oid, "sha256": hashlib.sha256(bomb).hexdigest(), "size": len(bomb)}
    document["predicate"]["bodies"]["tests"] = named
    stage.hang(stage.seal(document))
    set_body(stage, oid, oid)


@attack("body-corrupt")
def a_body_whose_digest_is_another(stage):
    document = stage.honest()
    document["predicate"]["bodies"]["tests"]["sha256"] = "0" * 64
    stage.hang(stage.seal(document))


# --- policy ----------------------------------------------------------------------------------------------------


@attack("unknown-signer")
def a_signer_who_adds_themselves_in_the_change(stage):
    both = signers(stage, alice="", mallory="")
    stage.repo.commit({".gitledger/allowed_signers": both})
    stage.record("mallory")


@attack("unknown-signer")
def a_pattern_for_everybody_in_the_change(stage):
    stage.repo.commit({".gitledger/allowed_signers": f"* {stage.project.public('mallory')}\n"})
    stage.record("mallory")


@attack("dirty")
def policy_loosened_in_the_change(stage):
    stage.repo.commit({".gitledger/config.yaml": CONFIG % "{allow_dirty: true}"})
    stage.repo.write("src/alpha.py", "def alpha():\n    return 3\n")
    stage.record()


CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src, "*.cfg"], command: "true", results: exit-status}
policy: %s
"""


@attack("carry-forbidden")
def carrying_allowed_in_the_change(stage):
    stage.policy("{allow_carried: false}")
    stage.record()
    stage.repo.commit({".gitledger/config.yaml": CONFIG % "{allow_carried: true}"})


@attack("required")
def required_tests_cut_in_the_change(stage):
    stage.trust(
        {
            ".gitledger/config.yaml": CONFIG % "{required_tests: .gitledger/required}",
            ".gitledger/required": "it\nanother\n",
        }
    )
    stage.repo.commit({".gitledger/required": "it\n"})
    stage.record()


@attack("required", "passing in another doesn't count")
def a_required_test_in_a_shard_that_the_change_adds(stage):
    """The change takes the test away, and lets a shard of its own say that it passed."""
    config = CONFIG % "{required_tests: .gitledger/required}"
    stage.trust({".gitledger/config.yaml": config, ".gitledger/required": "it\nanother\n"})
    added = 'shards:\n  another: {paths: [src], command: "true", results: exit-status}'
    stage.repo.commit({".gitledger/config.yaml": config.replace("shards:", added)})
    stage.record()
    stage.record_of("another")


@attack("required")
def a_test_that_only_looks_like_a_required_one(stage):
    """Ids are compared to the letter: neither paths nor letters that look alike are made the same."""
    required = "src/test_it.py::test_one\n"
    config = CONFIG % "{required_tests: .gitledger/required}"
    stage.trust({".gitledger/config.yaml": config, ".gitledger/required": required})
    document = stage.honest()
    twins = ["./src/test_it.py::test_one", "src/../src/test_it.py::test_one", "src/test_it.py::test_\u043ene"]
    body = encode_tests([TestResult(node_id=NodeId(twin), outcome=TestOutcome.PASSED) for twin in twins])
    digest = collection_digest(twins)
    document["predicate"]["collection"] = {"full_count": 3, "full_digest": digest, "selected_digest": digest}
    document["predicate"]["counts"] |= {"passed": 3, "collected": 3}
    document["predicate"]["bodies"]["tests"] = BodyRef.of(body).encode()
    oid = stage.repo.git("hash-object", "-w", "--stdin", input=body)
    stage.hang(stage.seal(document))
    set_body(stage, oid, oid)


MEASURED = {
    "src/test_alpha.py": "from alpha import alpha\n\ndef test_alpha():\n    assert alpha() == 1\n",
    "src/alpha.py": "def alpha():\n    return 1\n\n\ndef beta(x):\n    x += 1\n    x += 2\n    return x\n",
    ".gitignore": "__pycache__/\n.pytest_cache/\n.coverage\n",
    ".coveragerc": "[run]\nsource = src\n[report]\nfail_under = 95\n",
}
MEASURED_CONFIG = CONFIG.replace('"true", results: exit-status', "pytest -q --cov --cov-report= src") % "{}"


@attack("coverage-under", "coverage-redefined")
def a_threshold_lowered_in_the_change(stage):
    stage.trust({".gitledger/config.yaml": MEASURED_CONFIG, **MEASURED})
    stage.repo.commit({".coveragerc": MEASURED[".coveragerc"].replace("95", "5")})
    stage.record()


@attack("coverage-redefined")
def coverage_that_leaves_out_more_in_the_change(stage):
    stage.trust({".gitledger/config.yaml": MEASURED_CONFIG, **MEASURED})
    less = MEASURED[".coveragerc"] + "exclude_also = def beta\n"
    stage.repo.commit({".coveragerc": less})
    stage.record()


@attack("coverage-redefined")
def a_threshold_taken_out_of_our_own_configuration_in_the_change(stage):
    files = {**MEASURED, ".coveragerc": "[run]\nsource = src\n"}
    stage.trust({".gitledger/config.yaml": MEASURED_CONFIG + "coverage: {fail_under: 95}\n", **files})
    stage.repo.commit({".gitledger/config.yaml": MEASURED_CONFIG})
    stage.record()


@attack("skip")
def skips_expected_in_the_change(stage):
    config = CONFIG.replace('"true", results: exit-status', "pytest -q src") % "{expected_skips: .gitledger/skips}"
    test = "import pytest\n\ndef test_one():\n    pass\n\n@pytest.mark.skip\ndef test_two():\n    pass\n"
    files = {"src/test_it.py": test, ".gitignore": "__pycache__/\n.pytest_cache/\n"}
    stage.trust({".gitledger/config.yaml": config, ".gitledger/skips": "", **files})
    stage.repo.commit({".gitledger/skips": "src/test_it.py::test_two\n"})
    stage.record()


@attack("shard-removed")
def a_shard_taken_out(stage):
    stage.repo.commit({".gitledger/config.yaml": (CONFIG % "{}").replace("  it:", "  that:")})
    stage.record_of("that")


@attack("shard-redefined")
def a_shard_cut_to_less(stage):
    stage.repo.commit({".gitledger/config.yaml": (CONFIG % "{}").replace('[src, "*.cfg"]', "[it.cfg]")})
    stage.record()


@attack("shard-removed")
def a_variant_taken_out(stage):
    two = (CONFIG % "{}").replace("results:", "variants: [a, b], results:")
    stage.trust({".gitledger/config.yaml": two})
    stage.repo.commit({".gitledger/config.yaml": two.replace("[a, b]", "[a]")})
    stage.record_of("it@a")


@attack("error file-malformed")
def a_configuration_behind_a_symlink(stage):
    (stage.path / ".gitledger/config.yaml").rename(stage.path / "loose.yaml")
    (stage.path / ".gitledger/config.yaml").symlink_to("../loose.yaml")
    stage.trust()


@attack("error file-malformed")
def signers_behind_a_symlink(stage):
    (stage.path / ".gitledger/allowed_signers").rename(stage.path / "loose")
    (stage.path / ".gitledger/allowed_signers").symlink_to("../loose")
    stage.trust()
    stage.record()


@attack("error bad-allowed-signers")
def a_file_of_signers_that_reads_one_way_here_and_another_there(stage):
    local = signers(stage, alice='valid-before="20990101"')
    stage.trust({".gitledger/allowed_signers": local})
    stage.record()


@attack("error config-")
def an_alias_bomb_in_the_configuration(stage):
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    stage.repo.commit({".gitledger/config.yaml": CONFIG % "{}" + bomb})


@attack("shard-redefined", "never-recorded")
def extra_paths_that_leave_the_repository(stage):
    stage.repo.commit(
        {".gitledger/config.yaml": (CONFIG % "{}").replace("command:", "extra_paths: [../secret], command:")}
    )


@attack("error ambiguous-ref")
def a_tag_that_is_named_as_the_trusted_branch(stage):
    """git prefers refs/tags/trusted to refs/heads/trusted, and anybody who may push may push tags."""
    both = signers(stage, alice="", mallory="")
    stage.repo.commit({".gitledger/allowed_signers": both})
    stage.repo.git("tag", "trusted")
    stage.record("mallory")


@attack("error ambiguous-ref")
def a_tag_that_is_named_as_a_remotes_branch(stage):
    stage.repo.git("update-ref", "refs/remotes/trusted/HEAD", "trusted")
    stage.repo.git("branch", "-D", "trusted")
    stage.repo.commit({".gitledger/allowed_signers": signers(stage, alice="", mallory="")})
    stage.repo.git("tag", "trusted")
    stage.record("mallory")


@attack("error ambiguous-ref", "refs/heads/trusted")
def a_file_among_gits_own_that_is_named_as_the_trusted_branch(stage):
    """git reads $GIT_DIR/trusted before refs/heads/trusted, and whatever runs in the clone can write it."""
    stage.repo.commit({".gitledger/allowed_signers": signers(stage, alice="", mallory="")})
    (stage.repo.path / ".git/trusted").write_text(stage.repo.git("rev-parse", "HEAD") + "\n")
    stage.record("mallory")


@attack("error ambiguous-ref")
def a_file_among_gits_own_in_place_of_a_branch_that_is_gone(stage):
    """Read through a symbolic ref, too."""
    stage.repo.commit({".gitledger/allowed_signers": signers(stage, alice="", mallory="")})
    stage.repo.git("branch", "-D", "trusted")
    (stage.repo.path / ".git/trusted").write_text("ref: refs/heads/main\n")
    stage.record("mallory")


# --- history and trees -----------------------------------------------------------------------------------------


@attack("inputs-changed")
def a_changed_input_behind_a_carried_receipt(stage):
    stage.record()
    stage.repo.commit({"src/alpha.py": "def alpha():\n    return 2\n"})


@attack("never-recorded")
def a_receipt_from_a_commit_that_is_no_ancestor(stage):
    stage.repo.git("checkout", "-q", "-b", "side")
    stage.repo.commit({"README.md": "side"})
    stage.record()
    stage.repo.git("checkout", "-q", "main")
    stage.repo.commit({"README.md": "main"})


@attack("never-recorded")
def a_graft_that_makes_it_an_ancestor(stage):
    a_receipt_from_a_commit_that_is_no_ancestor(stage)
    (stage.path / ".git/info/grafts").write_text(f"{stage.head()} {stage.repo.git('rev-parse', 'side')}\n")
    assert stage.repo.git("merge-base", "--is-ancestor", "side", "HEAD") == ""


@attack("never-recorded")
def a_replacement_that_makes_it_an_ancestor(stage):
    a_receipt_from_a_commit_that_is_no_ancestor(stage)
    stage.repo.git("replace", "--graft", "HEAD", "side")


@attack("unknown-signer")
def a_replacement_of_the_trusted_policy(stage):
    old = stage.repo.git("rev-parse", "trusted:.gitledger/allowed_signers")
    both = signers(stage, alice="", mallory="").encode()
    new = stage.repo.git("hash-object", "-w", "--stdin", input=both)
    stage.repo.git("replace", old, new)
    stage.record("mallory")


@attack("not-green")
def a_failure_hidden_behind_one_more_commit(stage):
    """Carrying looks past the newest commit, and finds the failure with the same inputs."""
    stage.record()
    stage.repo.commit({"README.md": "1"})
    document = stage.document(stage.lines("HEAD~1")[0])
    tree = {"commit": stage.head(), "tree": stage.repo.git("rev-parse", "HEAD^{tree}")}
    document["subject"][0]["digest"] = {"gitCommit": tree["commit"], "gitTree": tree["tree"]}
    document["predicate"]["repo"] |= tree
    document["predicate"] |= {"outcome": "failed", "reasons": ["test-failed"]}
    document["predicate"]["counts"] |= {"passed": 0, "failed": 1}
    document["predicate"]["session"] |= {"started_at": stamp(), "ended_at": stamp(), "exit_status": 1}
    stage.hang(stage.seal(document))
    stage.repo.commit({"README.md": "2"})


def crafted(stage, *top: tuple[str, str, str]) -> None:
    """Commit a tree that no git would write, on top of a commit with an honest receipt."""
    stage.record()
    kept = [
        (mode.lstrip("0"), name, oid)
        for mode, kind, oid, name in (
            line.replace("\t", " ").split(" ", 3) for line in stage.repo.git("ls-tree", "HEAD").splitlines()
        )
        if kind
    ]
    tree = stage.raw_tree(*sorted([*kept, *top], key=lambda entry: entry[1]))
    commit = stage.repo.git("commit-tree", "-p", "HEAD", "-m", "x", tree)
    stage.repo.git("update-ref", "refs/heads/main", commit)


@attack("error object-corrupt")
def a_file_beside_the_folder_that_it_hides(stage):
    """git checks `src/alpha.py` out of the root's entry of that name; the folder `src` still holds the honest one."""
    evil = stage.repo.git("hash-object", "-w", "--stdin", input=b"def alpha():\n    return 666\n")
    crafted(stage, ("100644", "src/alpha.py", evil))


@attack("error object-corrupt")
def an_input_that_stands_twice_in_its_tree(stage):
    """git checks the last one out; what looks a name up finds the first."""
    evil = stage.repo.git("hash-object", "-w", "--stdin", input=b"other\n")
    crafted(stage, ("100644", "it.cfg", evil))


# --- merged receipts -------------------------------------------------------------------------------------------


@attack("merged-missing")
def a_strangers_snapshot_where_one_is_required(stage):
    stage.policy("{require_merged: true}")
    stage.record()
    vouch(stage, "mallory")


@attack("never-recorded")
def a_snapshot_of_receipts_that_are_not_there(stage):
    stage.policy("{require_merged: true}")
    stage.record()
    vouch(stage, "alice")
    stage.hang(stage.lines()[0] if b"merged" in payload(stage.lines()[0]) else stage.lines()[1])


def payload(line: str) -> bytes:
    return base64.b64decode(json.loads(line)["payload"])


@attack("snapshot-outdated", "it differs in it")
def a_snapshot_that_hides_that_it_carries(stage):
    """Its signer is trusted and says that the carried receipt was made on this commit."""
    stage.policy("{require_merged: true, allow_carried: true}")
    stage.record()
    stage.repo.commit({"README.md": "1"})
    assert stage.merge().is_green
    document = stage.document()
    document["predicate"]["shards"][0]["carried"] = None
    stage.hang(stage.seal(document))


@attack("it names a revoked record", "revoked")
def a_snapshot_of_a_revoked_receipt(stage):
    stage.policy("{require_merged: true}")
    record = stage.record()
    assert stage.merge().is_green
    stage.project.ledger("revoke", record, "--reason", "wrong machine")


@attack("it was revoked")
def a_revoked_snapshot(stage):
    stage.policy("{require_merged: true}")
    stage.record()
    stage.project.ledger("revoke", stage.merge().record, "--reason", "wrong machine")


@attack("revoked")
def a_revoked_receipt_and_an_older_green_one(stage):
    stage.record()
    stage.project.ledger("revoke", stage.record(), "--reason", "wrong machine")


# --- the table -------------------------------------------------------------------------------------------------


def test_the_honest_receipt_passes(stage):
    """Or every attack would be refused for being set up wrongly."""
    stage.record()
    assert stage.verdict() == (True, "")


def test_the_honest_receipt_carries(stage):
    stage.record()
    stage.repo.commit({"README.md": "1"})
    assert stage.verdict() == (True, "")


def test_a_payload_that_is_spelled_and_hung_up_by_hand_passes(stage):
    """The attacks' own tools make evidence that counts where nothing is wrong with it."""
    stage.forge(session__workers=None)
    assert stage.verdict() == (True, "")


def test_there_are_enough_attacks():
    assert len(ATTACKS) >= 75


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_is_refused_for_its_own_reason(name, stage, request):
    make, words = ATTACKS[name]
    wanted = make.__code__.co_varnames[1 : make.__code__.co_argcount]
    make(stage, *(request.getfixturevalue(fixture) for fixture in wanted))
    passed, said = stage.verdict()
    assert not passed, said
    for word in words:
        assert word in said, said
