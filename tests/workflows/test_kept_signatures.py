"""A signature that was found good is not checked again by the next plan, and by whoever judges each time."""

from __future__ import annotations

import base64
import hashlib
import json
import os

import pytest

from gitledger.workflows import kept_signatures
from gitledger.workflows.kept_signatures import MOST_KEPT, KeptSignatures

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: test ! -e bad, results: exit-status}
"""
FILES = {"src/a.py": "0\n", ".gitignore": "bad\n"}
RECORDS = "gitledger/records"


@pytest.fixture
def project(make_project):
    made = make_project(CONFIG, FILES)
    made.record("lint")
    return made


@pytest.fixture
def kept(project):
    """Where the project's signatures are kept."""
    return project.path / ".git" / "gitledger" / f"signatures-{os.geteuid()}"


def spoil(project) -> bytes:
    """Put a record into the place of the one that is there: other claims under the same signature."""
    [line] = project.repo.git("notes", f"--ref={RECORDS}", "show", "HEAD").splitlines()
    envelope = json.loads(line)
    payload = base64.b64decode(envelope["payload"])
    forged = payload.replace(b'"branch":"main"', b'"branch":"mein"')
    assert forged != payload
    envelope["payload"] = base64.b64encode(forged).decode()
    text = json.dumps(envelope, separators=(",", ":"), sort_keys=True)
    blob = project.repo.git("hash-object", "-w", "--stdin", input=f"{text}\n".encode())
    project.repo.git("notes", f"--ref={RECORDS}", "add", "-f", "-C", blob, "HEAD")
    return text.encode()


def checked(monkeypatch) -> list[bytes]:
    """Return the list to which each checked signature is added."""
    from gitledger.trust import verified

    found: list[bytes] = []
    check = verified.check_signature
    monkeypatch.setattr(
        verified, "check_signature", lambda key, signed, blob: (found.append(blob), check(key, signed, blob))[1]
    )
    return found


def session(project, **options):
    from datetime import UTC, datetime

    from gitledger.workflows.session import open_session

    return open_session(
        project.path, environ=project.repo.env, home=project.path, now=lambda: datetime.now(UTC), **options
    )


def test_a_plan_checks_a_signature_once_and_verify_each_time(project, kept, monkeypatch):
    from gitledger.workflows.judge import plan, verify

    head = project.repo.git("rev-parse", "HEAD")
    found = checked(monkeypatch)
    for keeps, expected in ((True, 1), (True, 0), (False, 1)):
        del found[:]
        [choice] = plan(session(project, keeps=keeps), head).union.choices
        assert (len(found), choice.verdict) == (expected, "fresh"), keeps
    for _ in range(2):
        del found[:]
        assert verify(session(project), head).verdict.passed
        assert len(found) == 1
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_not_checked_is_checked_beside_kept_ones(project):
    assert project.plan() == {"lint": ("fresh", "recorded")}
    spoil(project)
    for _ in range(2):  # what was found bad is not kept
        assert project.plan()["lint"][0] == "stale"
    assert project.ledger("verify", expect=1)


def test_what_is_kept_decides_no_verdict(project, kept):
    """Who writes into `.git` can fool a plan, which is said in the page on it, and nobody else."""
    project.plan()
    line = spoil(project)
    forged = KeptSignatures(kept)
    assert not forged.has(line)
    forged.add(line)
    forged.keep()
    plan = project.ledger("plan", "--json").document["shards"][0]["verdict"]
    assert plan in ("fresh", "stale")
    for words in (["verify"], ["merge"]):
        done = project.ledger(*words, expect=None)
        assert done.status == 1, words
    assert project.ledger("verify", "--json", expect=1).document["shards"][0]["verdict"] == "stale"


def test_record_and_whoever_judges_keep_nothing(project, kept):
    assert not kept.exists()
    project.ledger("verify", expect=None)
    project.ledger("merge")
    assert not kept.exists()
    project.plan()
    assert kept.exists()


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other version"])
def test_a_damaged_file_is_as_good_as_none(project, kept, damage, monkeypatch):
    from gitledger.workflows.judge import plan

    project.plan()
    whole = kept.read_bytes()
    spoilt = {
        "cut": whole[:-1],
        "flipped": whole[:-1] + bytes([whole[-1] ^ 1]),
        "empty": b"",
        "other version": whole.replace(b" 1\n", b" 0\n", 1),
    }
    kept.write_bytes(spoilt[damage])
    found = checked(monkeypatch)
    plan(session(project, keeps=True), project.repo.git("rev-parse", "HEAD"))
    assert len(found) == 1
    assert kept.read_bytes() == whole


def test_no_more_is_kept_than_there_is_room_for_and_the_latest_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_signatures, "MOST_KEPT", 3)
    assert MOST_KEPT * hashlib.sha256().digest_size < 1 << 20
    for number in range(5):
        one = KeptSignatures(tmp_path / "kept")
        assert not one.has(b"%d" % number)
        one.add(b"%d" % number)
        one.keep()
    last = KeptSignatures(tmp_path / "kept")
    assert last.has(b"4")
    assert sum(last.has(b"%d" % number) for number in range(5)) == 3
