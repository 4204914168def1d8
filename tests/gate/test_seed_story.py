"""The sharded suite of the seed, on a package that nobody here wrote, through our GitHub workflow (`make test-real`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from datetime import datetime
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

PACKAGE = "packaging==25.0"
TESTS = [f"tests/test_{name}.py" for name in ("manylinux", "markers", "metadata", "requirements", "tags", "utils")]
COMMAND = [
    "python",
    "-m",
    "coverage",
    "run",
    "--source=src",
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    *TESTS,
]
CONFIG = {
    "version": 1,
    "repository": "packaging",
    "shards": {"unit": {"split": 3, "command": COMMAND}},
    "coverage": {"fail_under": 55, "precision": 0},
    "policy": {"allowed_signers": ["alice@example.org", "runner@example.org"], "ci_key_fingerprints": ["RUNNER"]},
}
TIMEOUT_S = 600


@pytest.fixture
def packaging(tmp_path: Path) -> dict[str, bytes]:
    """The source distribution's files by path."""
    folder = tmp_path / "sdist"
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--no-binary",
        ":all:",
        "-d",
        str(folder),
    ]
    subprocess.run([*command, PACKAGE], check=True, capture_output=True, timeout=TIMEOUT_S)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        members = [(member.name.partition("/")[2], tar.extractfile(member)) for member in tar.getmembers()]
        return {name: content.read() for name, content in members if content is not None}


def seconds(hosted, record: str) -> float:
    session = hosted.receipt(record)["session"]
    first, last = (datetime.fromisoformat(session[key]) for key in ("started_at", "ended_at"))
    return (last - first).total_seconds()


def test_three_shards_one_never_starts_its_rerun_is_green_and_what_another_would_buy(
    make_hosted, make_github, pull_request, packaging, tmp_path, capsys
):
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), "pretend"]
    subprocess.run(install, check=True, capture_output=True, timeout=TIMEOUT_S)
    hosted = make_hosted(json.dumps(CONFIG), {**packaging, ".gitignore": b"__pycache__/\n.coverage\n"})
    hosted.repo.env["PYTHONPATH"] = os.pathsep.join(["src", str(site)])
    whole = hosted.record("whole", "--paths", ".", "--", *COMMAND)
    before = seconds(hosted, whole["record"])

    head = hosted.topic({"src/packaging/utils.py": packaging["src/packaging/utils.py"] + b"\n# changed\n"})
    secrets = {"LEDGER_KEY": hosted.key("runner").read_text()}
    github = make_github(hosted, pull_request(hosted, head), secrets=secrets)
    assert github.run(broken=("unit-3-of-3",)) == "failure", github.logs
    assert "unit-3-of-3: never recorded" in github.logs["gate"]
    assert github.run_job("shard", only=("unit-3-of-3",)) == "success", github.logs["unit-3-of-3"]
    assert github.run_job("gate") == "success", github.logs["gate"]

    hosted.ledger("sync", "--fetch-only")
    shards = hosted.ledger("verify", head, "--json").document["shards"]
    first = {row["name"]: seconds(hosted, row["record"]) for row in shards}
    hosted.ledger("split", "--write")
    advice = hosted.ledger("split", "--advise").out
    head = hosted.topic({})  # the durations are committed with it, and every part is cut anew
    again = make_github(hosted, pull_request(hosted, head), secrets=secrets)
    assert again.run() == "success", again.logs
    hosted.ledger("sync", "--fetch-only")
    shards = hosted.ledger("verify", head, "--json").document["shards"]
    second = {row["name"]: seconds(hosted, row["record"]) for row in shards}
    (coverage,) = [line for line in again.logs["gate"].splitlines() if line.startswith("coverage:")]
    assert "3 parts: the longest takes" in advice
    with capsys.disabled():
        print(f"\n{PACKAGE}, {len(TESTS)} files: {before:.1f} s unsharded; {coverage}")
        print(f"parts by number of files {first}, by durations {second}\n{advice}")
