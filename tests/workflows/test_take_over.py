"""Moving over from pytest-gpu-proof, on receipts and a project that its release 0.4.1 made (`gpu_proof/`)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "gpu_proof"
CONFIG = (
    "version: 1\nrepository: demo\nshards:\n  a: {paths: [src, tests/a], command: 'true', results: exit-status}\n"
)
POLICY = {
    "signer_mode": "restricted",
    "allowed_signers": ["alice", "release-bot"],
    "max_age_days": 14,
    "require_mode": "local",
    "required_fingerprint_paths": ["."],
    "required_fingerprint_excluded_paths": ["gpu-proof.json"],
    "required_shard_fingerprints": {"a": {"paths": ["src", "tests/a"]}, "b": {"paths": ["src", "tests/b"]}},
    "allow_carried": True,
    "carried_max_age_days": 10,
    "allow_dirty": False,
    "min_schema": 3,
}


@pytest.fixture
def moved(make_project):
    """The project that pytest-gpu-proof was set up in, with a configuration of ours on top."""
    project = make_project(CONFIG, {"README.md": "x"})
    project.repo.git("fetch", "-q", str(DATA / "project.bundle"), "main:theirs")
    project.repo.git("checkout", "-q", "-B", "main", "theirs")
    project.repo.commit({".gitledger/config.yaml": CONFIG})
    signers = f"alice@example.org {project.public('alice')}\n"
    project.repo.commit({".gitledger/allowed_signers": signers})
    return project


def commit_of(name: str) -> str:
    return json.loads((DATA / name).read_text())["repo"]["commit_sha"]


def test_receipts_become_history_that_is_shown(moved):
    files = [str(DATA / name) for name in ("merged.json", "shard.json", "failed.json")]
    done = moved.ledger("import", "--json", *files).document
    assert [(item["outcome"], item["shards"], item["tests"]) for item in done] == [
        ("passed", ["a", "b"], 4),
        ("passed", ["a"], 2),
        ("failed", ["a"], 2),
    ]
    entry = moved.ledger("log", "--json").document
    records = {item["record"]: item for commit in entry for item in commit["records"]}
    merged = records[done[0]["record"]]
    assert merged["kind"] == "imported"
    assert merged["origin"]["signed_by"] == "github:alice"
    assert merged["counts"] | {"passed": 3, "skipped": 1, "collected": 4} == merged["counts"]
    text = moved.ledger("show", done[2]["record"], "--tests").out
    assert "pytest-gpu-proof" in text
    assert "failed" in text
    assert "tests/a/test_a.py::test_alpha[1]" in text
    assert moved.ledger("fsck", expect=None).status == 0


def test_importing_again_adds_nothing(moved):
    moved.ledger("import", str(DATA / "merged.json"))
    [again] = moved.ledger("import", "--json", str(DATA / "merged.json")).document
    assert again["record"] is None
    assert sum(len(commit["records"]) for commit in moved.ledger("log", "--json").document) == 1


def test_an_imported_receipt_is_never_carried_and_satisfies_no_verdict(moved):
    """On its own commit too, whatever policy allows."""
    lax = "policy: {allow_carried: true, allow_unwitnessed: true, allow_dirty: true, pin_shards: false}\n"
    moved.repo.git("branch", "-q", "ours")
    moved.repo.git("checkout", "-q", "-B", "main", commit_of("merged.json"))
    signers = f"alice@example.org {moved.public('alice')}\n"
    config = {".gitledger/config.yaml": CONFIG + lax, ".gitledger/allowed_signers": signers}
    moved.repo.commit(config)
    document = json.loads((DATA / "merged.json").read_text())
    document["repo"]["commit_sha"] = moved.repo.git("rev-parse", "HEAD")
    changed = moved.path.parent / "changed.json"
    changed.write_text(json.dumps(document))
    moved.ledger("import", str(changed), str(DATA / "merged.json"))
    assert moved.plan("--carry") == {"a": ("stale", "never-recorded")}
    assert moved.verify() == ("failed", {"never-recorded"})
    assert moved.ledger("merge", "--carry", expect=1)


def test_in_toto_statements_are_exported_as_they_were_signed(moved):
    moved.ledger("import", str(DATA / "merged.json"))
    moved.record("a")
    lines = moved.ledger("export", "in-toto").out.splitlines()
    [statement] = map(json.loads, lines)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"][0]["digest"]["gitCommit"] == moved.repo.git("rev-parse", "HEAD")
    [older] = moved.ledger("export", "in-toto", commit_of("merged.json")).out.splitlines()
    assert json.loads(older)["predicateType"] == "urn:gitledger:imported:v1"
    note = moved.repo.git("notes", "--ref=gitledger/records", "show", "HEAD")
    moved.repo.git("notes", "--ref=gitledger/records", "add", "-f", "-m", note.replace("A", "B", 1), "HEAD")
    assert moved.ledger("export", "in-toto").out == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(schema_version="2"), "schema_version"),
        (lambda d: d.update(tests=[]), "no tests"),
        (lambda d: d["tests"].append(d["tests"][0]), "twice"),
        (lambda d: d["tests"][0].update(outcome="failed"), "not what the tests say"),
        (lambda d: d["tests"][0].update(outcome="great"), "outcome"),
        (lambda d: d["tests"][0].update(duration_s=-1), "duration"),
        (lambda d: d["repo"].update(commit_sha="HEAD"), "commit_sha"),
        (lambda d: d["session"].update(started_at="yesterday"), "started_at"),
    ],
)
def test_what_is_no_receipt_is_refused_by_the_field(moved, tmp_path, change, said):
    document = json.loads((DATA / "merged.json").read_text())
    change(document)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    done = moved.ledger("import", str(path), expect=2)
    assert "[import-unreadable]" in done.err
    assert said in done.err


def test_a_receipt_of_a_commit_that_is_not_here_is_one_error(project):
    done = project.ledger("import", str(DATA / "merged.json"), expect=2)
    assert "[unknown-commit]" in done.err


# --- settings --------------------------------------------------------------------------------------------------


def test_settings_and_policy_become_a_configuration_that_loads(moved, tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    done = moved.ledger("import", "--config", str(policy), "-o", "new.yaml")
    text = (moved.path / "new.yaml").read_text()
    assert "min_schema is left out" in done.err
    assert "expected_skips" in done.err
    assert 'allowed_signers: ["github:alice", "github:release-bot"]' in text
    assert '"a": {"command": "pytest", "paths": ["src", "tests/a"]}' in text
    for line in (
        "marker: " + json.dumps("gpu_proof"),
        "gpu_uuid: false",
        "max_age_days: 14",
        "allow_carried: true",
        "carried_max_age_days: 10",
        'require_mode: "local"',
    ):
        assert line in text, text
    moved.repo.git("rm", "-q", "-r", ".gitledger")
    moved.repo.commit({".gitledger/config.yaml": text, ".gitledger/expected_skips": ""})
    assert moved.plan() == {"a": ("stale", "never-recorded"), "b": ("stale", "never-recorded")}


def test_a_policy_in_yaml_reads_alike(moved, tmp_path):
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    (tmp_path / "policy.yaml").write_text(json.dumps(POLICY, indent=2))
    texts = {moved.ledger("import", "--config", str(tmp_path / f"policy.{kind}")).out for kind in ("json", "yaml")}
    assert len(texts) == 1


def test_without_a_policy_the_mode_is_theirs_which_is_open(moved):
    done = moved.ledger("import", "--config")
    assert 'signer_mode: "open"' in done.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "policy.json: expected a mapping, and it is a list"),
        ("3", "policy.json: expected a mapping, and it is a number"),
        ("{", "policy.json is no policy: "),
        (
            '{"required_shard_fingerprints": 3}',
            "required_shard_fingerprints: expected a mapping, and it is a number",
        ),
        ('{"required_shard_fingerprints": {"a": []}}', "fingerprints.a: expected a mapping, and it is a list"),
        (
            '{"required_shard_fingerprints": {"a": {"paths": 3}}}',
            "a: paths: expected a list of texts, or one text",
        ),
        ('{"allowed_signers": 3}', "allowed_signers: expected a list of texts, and it is a number"),
        ('{"allowed_signers": "alice"}', "allowed_signers: expected a list of texts, and it is a text"),
        ('{"allowed_signers": [3]}', "allowed_signers[0]: expected a text, and it is a number"),
        (
            '{"allowed_key_fingerprints": {}}',
            "allowed_key_fingerprints: expected a list of texts, and it is a mapping",
        ),
        ('{"signer_mode": []}', "signer_mode: expected a text, and it is a list"),
        ('{"allow_carried": "yes"}', "allow_carried: expected true or false, and it is a text"),
        ('{"max_age_days": true}', "max_age_days: expected a number, and it is true or false"),
        ('{"max_age_days": -1}', "these settings can't be translated: "),
        (None, "there is no file "),
    ],
)
def test_a_policy_that_is_none_is_one_error(moved, tmp_path, text, said):
    path = tmp_path / "policy.json"
    if text is not None:
        path.write_text(text.replace('"allowed_signers"', '"signer_mode": "restricted", "allowed_signers"'))
    done = moved.ledger("import", "--config", str(path), expect=2)
    assert "[import-unreadable]; try: " in done.err
    assert said in done.err
    assert "Errno" not in done.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tool = 3", "pyproject.toml: tool: expected a mapping, and it is a number"),
        ("[tool]\ngpu_proof = []", "pyproject.toml: tool.gpu_proof: expected a mapping, and it is a list"),
        (
            "[tool.gpu_proof]\nexpected_skips = 3",
            "tool.gpu_proof.expected_skips: expected a list of texts, or one text",
        ),
        ("[tool.gpu_proof]\nshard_name = ['a']", "tool.gpu_proof.shard_name: expected a text, and it is a list"),
        ("[tool.gpu_proof", "pyproject.toml is no TOML: "),
    ],
)
def test_settings_that_are_none_are_one_error(moved, text, said):
    (moved.path / "pyproject.toml").write_text(text)
    assert said in moved.ledger("import", "--config", expect=2).err


def test_nothing_is_written_over(moved):
    done = moved.ledger("import", "--config", "-o", ".gitledger/config.yaml", expect=2)
    assert "[unwritable]" in done.err


def test_the_how_to_is_tried(moved, tmp_path):
    """Every step of docs/how-to/migrate-from-pytest-gpu-proof.md, on the project that the tool was set up in."""
    repo = moved.repo
    repo.git("checkout", "-q", "-B", "main", commit_of("merged.json"))
    (moved.path / "gpu-proof.json").write_bytes((DATA / "merged.json").read_bytes())
    (moved.path / "gpu-proof-policy.json").write_text(json.dumps(POLICY))
    page = (Path(__file__).parents[2] / "docs/how-to/migrate-from-pytest-gpu-proof.md").read_text()
    steps = page.split("```sh\n")[1:]
    for step in steps:
        script = step.partition("```")[0]
        env = dict(repo.env) | {"GITLEDGER_SIGNING_KEY": str(moved.key("alice"))}
        done = subprocess.run(
            ["sh", "-e", "-c", script], cwd=moved.path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    assert "PASSED" in done.stdout.upper()
