"""Cases T01, T02, T05 over a real repository: rotation, security keys, and every byte that may be changed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

NOW = datetime.now(UTC)
LAST_WEEK = NOW - timedelta(days=7)


def dated(when: datetime) -> dict[str, str]:
    return {name: when.isoformat() for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")}


# --- T01: retired and revoked keys -----------------------------------------------------------------------------


@pytest.fixture
def rotated(stage):
    """Alice recorded a week ago and Bob merged; Alice's key was retired two days ago."""
    stage.repo.env.update(dated(LAST_WEEK))
    public = {name: stage.project.public(name) for name in ("alice", "bob")}
    both = "".join(f"{name}@example.org {{}} {line}\n" for name, line in public.items())
    retired = both.format(f'valid-before="{(NOW - timedelta(days=2)):%Y%m%d}Z"', "")
    stage.trust({".gitledger/allowed_signers": both.format("", "")})
    stage.record(at=LAST_WEEK + timedelta(hours=1))

    def retire() -> None:
        stage.repo.git("checkout", "-q", "trusted")
        stage.repo.commit({".gitledger/allowed_signers": retired})
        stage.repo.git("checkout", "-q", "main")

    return stage, retire


def test_t01_a_retired_keys_receipt_stands_where_a_valid_keys_merged_receipt_names_it(rotated):
    stage, retire = rotated
    stage.merge("bob", at=LAST_WEEK + timedelta(hours=2))
    retire()
    assert stage.verdict() == (True, "")


def test_t01_a_retired_keys_receipt_falls_where_nobody_else_named_it(rotated):
    stage, retire = rotated
    stage.merge("alice", at=LAST_WEEK + timedelta(hours=2))
    retire()
    passed, said = stage.verdict()
    assert not passed
    assert "key-expired" in said


def test_t01_a_retired_keys_newer_receipt_falls_whoever_named_the_older_one(rotated):
    stage, retire = rotated
    stage.merge("bob", at=LAST_WEEK + timedelta(hours=2))
    retire()
    stage.repo.env.update(dated(NOW))
    stage.repo.commit({"src/alpha.py": "def alpha():\n    return 2\n"})
    stage.record()
    passed, said = stage.verdict()
    assert not passed
    assert "unknown-signer" in said


def test_t01_the_voucher_falls_with_its_own_revocation(rotated):
    stage, retire = rotated
    merged = stage.merge("bob", at=LAST_WEEK + timedelta(hours=2)).record
    stage.project.ledger("revoke", merged, "--reason", "x", "--key", str(stage.project.key("bob")))
    retire()
    passed, said = stage.verdict()
    assert not passed
    assert "revoked" in said


@pytest.mark.parametrize("form", ["line", "fingerprint", "krl"])
def test_t01_a_revoked_key_takes_all_its_receipts_along_vouched_for_or_not(rotated, form):
    stage, _ = rotated
    stage.merge("bob", at=LAST_WEEK + timedelta(hours=2))
    text: str | bytes = stage.project.public("alice") + "\n"
    if form == "fingerprint":
        text = f"{stage.signer('alice').fingerprint}\n"
    if form == "krl":
        path = stage.project.keys / "krl"
        command = ["ssh-keygen", "-q", "-k", "-f", str(path), str(stage.project.keys / "alice.pub")]
        subprocess.run(command, check=True)
        text = path.read_bytes()
    stage.repo.git("checkout", "-q", "trusted")
    stage.repo.commit({".gitledger/revoked_keys": text})
    stage.repo.git("checkout", "-q", "main")
    passed, said = stage.verdict()
    assert not passed
    assert "key-revoked" in said


# --- T02: security keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "allow", "passes"), [(0, False, False), (0, True, True), (1, False, True), (5, False, True)]
)
def test_t02_a_touch_is_demanded_unless_policy_says_otherwise(stage, make_security_key, flags, allow, passes):
    key = make_security_key(flags=flags)
    stage.repo.commit({".gitledger/allowed_signers": f"alice@example.org {key.key.line}\n"})
    stage.policy(f"{{allow_no_touch: {str(allow).lower()}}}")
    stage.record(key)
    passed, said = stage.verdict()
    assert passed is passes
    assert ("no-touch" in said) is not passes


# --- T05: any byte changed -------------------------------------------------------------------------------------

SAMPLES = 60
CHANGES = (1, 0x20, 0x80)


def test_t05_any_byte_of_the_note_changed_is_refused_or_ignored_and_never_a_traceback(stage):
    stage.record()
    whole = stage.lines()[0].encode() + b"\n"
    dice = random.Random(4)
    places = {0, 1, len(whole) - 1, len(whole) - 2, whole.index(b"payloadType"), whole.index(b"keyid")}
    flips = {(place, change) for place in places for change in CHANGES}
    flips |= {(place, dice.choice(CHANGES)) for place in dice.sample(range(len(whole)), SAMPLES)}
    for place, change in sorted(flips):
        flipped = bytearray(whole)
        flipped[place] ^= change
        stage.hang_raw(bytes(flipped))
        passed, said = stage.verdict()
        assert not passed or bytes(flipped).rstrip() == whole.rstrip(), (place, change, said)


def test_t05_any_byte_of_a_body_changed_is_found(stage):
    stage.record()
    oid = stage.document()["predicate"]["bodies"]["tests"]["oid"]
    blob = subprocess.run(
        ["git", "cat-file", "blob", oid], cwd=stage.path, env=dict(stage.repo.env), capture_output=True, check=True
    ).stdout
    for place in range(0, len(blob), max(1, len(blob) // 12)):
        flipped = bytearray(blob)
        flipped[place] ^= 1
        other = stage.repo.git("hash-object", "-w", "--stdin", input=bytes(flipped))
        tree = stage.raw_tree(("100644", oid, other))
        stage.repo.git("update-ref", "refs/notes/gitledger/bodies", stage.repo.git("commit-tree", "-m", "x", tree))
        passed, said = stage.verdict()
        assert not passed
        assert "body-missing" in said


def test_t05_the_command_says_so_in_one_verdict(stage):
    stage.record()
    line = stage.lines()[0].encode()
    for place in (3, len(line) // 2, len(line) - 40):
        flipped = bytearray(line)
        flipped[place] ^= 1
        stage.hang_raw(bytes(flipped) + b"\n")
        done = stage.project.ledger("verify", "--policy-from", "trusted", "--json", expect=1)
        assert len(json.loads(done.out)["ignored"]) == 1


def test_t05_a_damaged_object_of_the_ledger_is_an_error_and_no_verdict(stage):
    """Not what somebody wrote, but what the disk lost: the store says so, with git's own remedy."""
    stage.record()
    blob = stage.repo.git("notes", "--ref=gitledger/records", "list", "HEAD")
    path = stage.path / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"damaged")
    done = stage.project.ledger("verify", "--policy-from", "trusted", expect=3)
    assert "git fsck" in done.err


# --- who judges runs nothing of what it judges -----------------------------------------------------------------


@pytest.mark.parametrize("safe", [["-P"], []])
def test_modules_in_the_repository_are_not_those_of_who_judges(stage, safe, tmp_path):
    """`python -m` looks in the folder that one stands in first: there lies what is to be judged."""
    planted = f"open({str(tmp_path / 'ran')!r}, 'w').close()\nraise SystemExit(0)\n"
    names = ("click", "yaml", "pygit2", "cryptography", "msgpack", "json", "dataclasses", "sitecustomize")
    stage.repo.commit({f"{name}.py": planted for name in names})
    command = [sys.executable, *safe, "-m", "gitledger", "verify", "--policy-from", "trusted"]
    done = subprocess.run(command, cwd=stage.path, env=dict(stage.repo.env), capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    assert not (tmp_path / "ran").exists()


def test_the_hook_falls_back_on_an_interpreter_that_imports_nothing_from_the_repository(stage, tmp_path):
    stage.project.ledger("init")
    stage.repo.commit({"click.py": f"open({str(tmp_path / 'ran')!r}, 'w').close()\nraise SystemExit(0)\n"})
    env = dict(stage.repo.env) | {"PATH": "/usr/bin:/bin"}
    assert subprocess.run(["sh", "-c", "command -v git-ledger"], env=env, check=False).returncode != 0
    head = stage.head()
    hook = stage.path / ".git/hooks/pre-push"
    done = subprocess.run(
        [str(hook), "origin", "url"],
        input=f"refs/heads/main {head} refs/heads/main {'0' * 40}\n".encode(),
        cwd=stage.path,
        env=env,
        capture_output=True,
        check=False,
    )
    assert not (tmp_path / "ran").exists()
    assert b"git ledger" in done.stderr or b"policy" in done.stderr, done
