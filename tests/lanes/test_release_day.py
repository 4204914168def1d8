"""The day of a release with two lanes: two labs with a machine and a key each, and a release that waits for both.

Run by `make test-lanes`; the model is one that a package ships, really executed on this machine's CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lanes

TORCH = os.environ.get("GITLEDGER_TEST_TORCH", sys.executable)
PLACE = "import importlib.util; print(importlib.util.find_spec('silero_vad').submodule_search_locations[0])"
CONFIG = """\
version: 1
repository: demo
shards:
  unit: {command: pytest -q tests/alpha}
lanes:
  east: {signers: [lab-east], match: {device.kind: cpu, os.name: linux}, runs: [{model: silero}]}
  west: {signers: [lab-west], match: {device.kind: cpu}, runs: [{model: silero}]}
policy: {allowed_signers: [alice@example.org]}
"""


@pytest.fixture
def release(make_project, make_repo, tmp_path):
    """A tagged release on a server, two labs that may certify a lane each, and the model laid out for them."""
    project = make_project(CONFIG)
    signers = project.path / ".gitledger/allowed_signers"
    labs = "".join(f'lab-{name} namespaces="gitledger" {project.public(name)}\n' for name in ("east", "west"))
    signers.write_text(signers.read_text() + labs)
    project.repo.commit(message="The release")
    project.repo.git("tag", "v1.0")
    server = make_repo("server.git", "--bare")
    project.repo.git("remote", "add", "origin", str(server.path))
    project.repo.git("push", "-q", "origin", "main", "v1.0")
    done = subprocess.run([TORCH, "-c", PLACE], capture_output=True, text=True, check=True, timeout=60)
    model = tmp_path / "models/silero"
    model.mkdir(parents=True)
    (model / "silero_vad.jit").symlink_to(Path(done.stdout.strip(), "data/silero_vad.jit"))
    (model / "silero_vad.jit.inputs.json").write_text(json.dumps({"inputs": [{"shape": [1, 512]}, 16000]}))
    return project


@pytest.fixture
def lab(release, tmp_path):
    """Return a runner of commands in a lab's own clone, on the release's commit, with the lab's key."""

    def run(name: str, *args: str, key: str | None = None, expect: int = 0) -> None:
        clone = tmp_path / f"lab-{name}"
        if not clone.exists():
            release.repo.git("clone", "-q", "--branch", "v1.0", str(tmp_path / "server.git"), str(clone))
        env = {
            "GITLEDGER_SIGNING_KEY": str(release.key(key or name)),
            "GITLEDGER_DOWNLOAD_DIR": str(tmp_path / "models"),
        }
        release.ledger("-C", str(clone), *args, env=env, expect=expect)

    return run


def cells(release) -> dict[str, str]:
    """Return the status of each lane, as whoever releases sees it."""
    release.ledger("sync", "--fetch-only")
    found = release.ledger("lanes", "v1.0", "--policy-from", "main", "--json", expect=None).document
    return {cell["lane"]: cell["status"] for cell in found["cells"]}


def test_a_release_waits_for_both_lanes_each_certified_by_its_own_lab(release, lab):
    release.record("unit")
    assert cells(release) == {"east": "missing", "west": "missing"}
    release.ledger("verify", "v1.0", "--lanes", "--policy-from", "main", expect=1)

    lab("east", "doctor", "--lane", "east", "--record", "--python", TORCH)
    lab("east", "sync")
    assert cells(release) == {"east": "passed", "west": "missing"}

    lab("west", "doctor", "--lane", "west", "--record", "--python", TORCH, key="east")
    lab("west", "sync")
    assert cells(release)["west"] != "passed", "the other lab's word doesn't count for this lane"
    release.ledger("verify", "v1.0", "--lanes", "--policy-from", "main", expect=1)

    lab("west", "doctor", "--lane", "west", "--record", "--python", TORCH)
    lab("west", "sync")
    assert cells(release) == {"east": "passed", "west": "passed"}
    said = release.ledger("verify", "v1.0", "--lanes", "--policy-from", "main").out
    assert "verdict: passed" in said

    release.repo.commit({"src/alpha.py": "def alpha():\n    return 1  # after the release\n"})
    release.repo.git("push", "-q", "origin", "main")
    found = release.ledger("lanes", "--json", expect=1).document
    assert {cell["status"] for cell in found["cells"]} == {"stale"}, (
        "a release is certified by its own commit alone"
    )
    assert cells(release) == {"east": "passed", "west": "passed"}
