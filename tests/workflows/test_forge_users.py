"""Forge users in force, through the installed command, over a real loopback server (DESIGN section 4)."""

from __future__ import annotations

import json
import time

import pytest

CONFIG = """\
version: 1
repository: demo
forges: {{lab: "{template}"}}
shards:
  it: {{paths: [src], command: "true", results: exit-status}}
policy: {policy}
"""


@pytest.fixture
def make_lab(make_project, forge):
    """Return a maker of a project whose forge `lab` is the loopback server; Alice is in allowed_signers."""

    def make(policy: str = '{allowed_signers: ["lab:bob"]}'):
        return make_project(CONFIG.format(template=forge.template, policy=policy), {"src/x": "x"})

    return make


def findings(done) -> dict[str, str]:
    return {item["code"]: item["found"] for item in done.document["findings"]}


def test_a_forge_users_key_counts_where_policy_names_the_user(make_lab, forge):
    project = make_lab()
    forge.keys["bob"] = project.public("bob") + " bob@laptop\n"
    project.record("it", "--key", str(project.key("bob")))
    assert forge.asked == []  # recording asks nobody
    assert project.verify() == ("passed", set())
    assert forge.asked == ["bob"]
    merged = project.ledger("merge", "--key", str(project.key("bob")), "--json").document
    assert project.receipt(merged["record"])["shards"][0]["signer"] == "lab:bob"


def test_an_answer_is_kept_for_a_while_and_outside_of_the_repository(make_lab, forge, hermetic_env):
    project = make_lab()
    forge.keys["bob"] = project.public("bob")
    project.record("it", "--key", str(project.key("bob")))
    for _ in range(3):
        project.verify()
    assert forge.asked == ["bob"]
    assert project.repo.git("status", "--porcelain") == ""
    kept = list((project.path.parent / "home/.cache/gitledger/forges").iterdir())
    assert len(kept) == 1
    document = json.loads(kept[0].read_text())
    kept[0].chmod(0o666)
    kept[0].write_text(json.dumps(document | {"body": project.public("mallory")}))
    assert project.verify() == ("passed", set())  # what others may write is not believed
    assert forge.asked == ["bob", "bob"]


def test_nobody_is_asked_where_allowed_signers_explain_every_record(make_lab, forge):
    project = make_lab('{allowed_signers: [alice@example.org, "lab:bob"]}')
    project.record("it")
    assert project.verify() == ("passed", set())
    assert forge.asked == []


def test_a_principal_and_a_forge_user_of_one_name_are_two(make_lab, forge):
    """Mallory owns the account `alice@example.org`'s namesake; policy means the principal."""
    project = make_lab("{allowed_signers: [alice@example.org]}")
    forge.keys["alice"] = project.public("mallory")
    project.record("it", "--key", str(project.key("mallory")))
    assert project.plan() == {"it": ("stale", "untrusted")}
    assert forge.asked == []


def test_a_principal_that_is_spelled_as_a_forge_user_is_not_that_user(make_lab, forge):
    """Where policy says `lab:bob`, a line of allowed_signers with that name grants nothing."""
    project = make_lab()
    signers = f"lab:bob {project.public('mallory')}\n"
    project.repo.commit({".gitledger/allowed_signers": signers})
    forge.keys["bob"] = project.public("bob")
    project.record("it", "--key", str(project.key("mallory")))
    assert project.plan() == {"it": ("stale", "untrusted")}


def test_a_key_that_was_withdrawn_counts_no_more(make_lab, forge):
    project = make_lab()
    forge.keys["bob"] = project.public("bob")
    project.record("it", "--key", str(project.key("bob")))
    assert project.verify()[0] == "passed"
    forge.keys["bob"] = project.public("other")
    done = project.ledger("merge", "--verify-inputs", "--key", str(project.key("bob")), "--json", expect=1)
    assert findings(done) == {"untrusted": done.document["findings"][0]["found"]}
    assert "unknown-signer" in done.document["findings"][0]["found"]
    assert project.verify() == ("failed", {"untrusted"})  # the new answer is the one that is kept


def test_verify_inputs_says_so_in_the_merged_receipt(make_lab, forge):
    project = make_lab()
    forge.keys["bob"] = project.public("bob")
    project.record("it", "--key", str(project.key("bob")))
    project.verify()
    done = project.ledger("merge", "--verify-inputs", "--key", str(project.key("bob")), "--json")
    assert forge.asked == ["bob", "bob"]
    assert project.receipt(done.document["record"])["inputs_verified"] is True


def test_verify_inputs_refuses_what_nobody_signed(make_lab, forge):
    project = make_lab("{signer_mode: open, allow_unsigned: true}")
    project.record("it", "--unsigned")
    assert project.ledger("merge", "--json").document["outcome"] == "passed"
    done = project.ledger("merge", "--verify-inputs", "--json", expect=1)
    assert "unsigned-input" in findings(done)


# --- offline ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["option", "variable", "config"])
def test_offline_judges_by_what_was_answered_lately_and_says_what_it_lacks(make_lab, forge, how):
    project = make_lab()
    forge.keys["bob"] = project.public("bob")
    project.record("it", "--key", str(project.key("bob")))
    args, env = (["--offline"], {}) if how == "option" else ([], {})
    if how == "variable":
        env = {"GITLEDGER_OFFLINE": "1"}
    if how == "config":
        project.repo.git("config", "gitledger.offline", "true")
    done = project.ledger("verify", *args, env=env, expect=2)
    assert "[forge-offline]" in done.err
    assert forge.asked == []
    project.repo.git("config", "gitledger.offline", "false")
    project.ledger("verify")
    if how == "config":
        project.repo.git("config", "gitledger.offline", "yes")
    forge.close()
    assert project.ledger("verify", "--json", *args, env=env).document["verdict"] == "passed"


def test_verify_inputs_and_offline_contradict_each_other(make_lab, forge):
    project = make_lab()
    forge.keys["bob"] = project.public("bob")
    project.record("it", "--key", str(project.key("bob")))
    project.verify()
    assert "[offline-current]" in project.ledger("merge", "--offline", "--verify-inputs", expect=2).err


# --- forges that misbehave: no verdict, never a green one ------------------------------------------------------


def _stall(handler) -> None:
    time.sleep(30)


def _redirect(handler) -> None:
    handler.send_response(302)
    handler.send_header("Location", "http://127.0.0.1:1/bob.keys")
    handler.end_headers()


def _flood(handler) -> None:
    """Answer with 5 GB, a megabyte at a time, for as long as somebody listens."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(5 << 30))
    handler.end_headers()
    for _ in range(5 << 10):
        handler.wfile.write(b"\n" * (1 << 20))


def _cut(handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"ssh-ed25519 AAAA")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (_stall, "did not answer within"),
        (_redirect, "redirects to another place"),
        (_flood, "answered more than"),
        (_cut, "broke off"),
    ],
)
def test_a_forge_that_stalls_redirects_or_floods_gives_no_verdict(make_lab, forge, page, said):
    project = make_lab()
    forge.keys["bob"] = page
    project.record("it", "--key", str(project.key("bob")))
    started = time.monotonic()
    done = project.ledger("verify", expect=2)
    assert time.monotonic() - started < 25
    assert "[forge-unreachable]" in done.err
    assert said in done.err


def test_a_forge_that_is_down_never_brings_an_older_answer_back(make_lab, forge):
    project = make_lab()
    forge.keys["bob"] = project.public("bob")
    project.record("it", "--key", str(project.key("bob")))
    project.verify()
    [kept] = (project.path.parent / "home/.cache/gitledger/forges").iterdir()
    document = json.loads(kept.read_text())
    kept.write_text(json.dumps(document | {"fetched_at": "2026-01-01T00:00:00Z"}))
    forge.close()
    assert "[forge-unreachable]" in project.ledger("verify", expect=2).err
    assert "[forge-offline]" in project.ledger("verify", "--offline", expect=2).err


def test_a_user_that_the_forge_does_not_know_has_no_keys(make_lab, forge):
    project = make_lab()
    project.record("it", "--key", str(project.key("bob")))
    done = project.ledger("verify", "--json", expect=1)
    assert {"untrusted", "forge-user-unknown"} <= set(findings(done))


@pytest.mark.parametrize("name", ["bal:bob", "lab:", "lab:a/b", "lab:../bob", "Lab:bob", "lab:bob:x"])
def test_a_forge_user_that_can_not_be_one_is_an_error_of_the_configuration(make_lab, name):
    project = make_lab(json.dumps({"allowed_signers": [name]}))
    assert "[bad-forge-user]" in project.ledger("verify", expect=2).err


# --- signer_mode: open -----------------------------------------------------------------------------------------


def test_open_mode_accepts_the_key_of_the_user_that_a_record_names_and_says_so(make_lab, forge):
    project = make_lab("{signer_mode: open}")
    forge.keys["carol"] = project.public("carol")
    project.repo.git("config", "gitledger.user", "lab:carol")
    project.record("it", "--key", str(project.key("carol")))
    done = project.ledger("verify", "--json")
    assert done.document["verdict"] == "passed"
    assert "signer-mode-open" in findings(done)
    assert "signer-mode-open" in project.ledger("verify").out


@pytest.mark.parametrize("user", ["lab:dave", "carol", "bal:carol", "lab:nobody", "lab:carol/../dave"])
def test_open_mode_counts_no_key_of_anybody_else(make_lab, forge, user):
    project = make_lab("{signer_mode: open}")
    forge.keys |= {"carol": project.public("carol"), "dave": project.public("dave")}
    project.repo.git("config", "gitledger.user", user)
    project.record("it", "--key", str(project.key("carol")))
    assert project.verify() == ("failed", {"untrusted"})


def test_open_mode_can_not_satisfy_the_ci_modes(make_lab, forge):
    project = make_lab("{signer_mode: open, require_mode: ci}")
    forge.keys["carol"] = project.public("carol")
    project.repo.git("config", "gitledger.user", "lab:carol")
    project.record("it", "--mode", "ci", "--key", str(project.key("carol")))
    assert project.verify() == ("failed", {"policy"})


def test_restricted_mode_takes_no_records_word_for_whose_it_is(make_lab, forge):
    project = make_lab("{allowed_signers: [alice@example.org]}")
    forge.keys["carol"] = project.public("carol")
    project.repo.git("config", "gitledger.user", "lab:carol")
    project.record("it", "--key", str(project.key("carol")))
    assert project.verify() == ("failed", {"untrusted"})
    assert forge.asked == []


def test_a_forge_user_may_be_a_revoker(make_lab, forge):
    project = make_lab('{revokers: ["lab:ruth"]}')
    forge.keys["ruth"] = project.public("ruth")
    record = project.record("it")["record"]
    assert project.verify() == ("passed", set())
    project.ledger("revoke", record, "--reason", "wrong machine", "--key", str(project.key("ruth")))
    assert project.verify() == ("failed", {"revoked"})


def test_a_forge_user_may_certify_a_lane(make_project, forge):
    config = (
        f'version: 1\nrepository: demo\nforges: {{lab: "{forge.template}"}}\n'
        'lanes:\n  cpu: {match: {device.kind: cpu}, signers: ["lab:bob"], runs: [{model: absent}]}\n'
    )
    project = make_project(config, {"src/x": "x"})
    forge.keys["bob"] = project.public("bob")
    project.ledger("doctor", "--lane", "cpu", "--record", "--key", str(project.key("bob")), expect=99)
    project.ledger("doctor", "--lane", "cpu", "--record", expect=99)  # Alice's, who may not
    document = project.ledger("lanes", "--json", expect=1).document
    assert [(cell["status"], cell["evidence"]["signer"]) for cell in document["cells"]] == [
        ("inconclusive", "lab:bob")
    ]
    assert [item["reason"] for item in document["ignored"]] == ["unknown-signer"]
    assert forge.asked == ["bob"]
