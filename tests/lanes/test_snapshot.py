"""What loads is what was hashed: a file that is swapped, or written into, after its hash changes nothing of a run."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger.lanes.probe.faults import ProbeError
from gitledger.lanes.probe.snapshot import snapshot


def claims(root: Path) -> list[dict[str, object]]:
    """The files of a folder as the parent hashes them."""
    return [
        {"name": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "size": file.stat().st_size}
        for file in sorted(root.iterdir())
    ]


@pytest.fixture
def model(tmp_path):
    root = tmp_path / "model"
    root.mkdir()
    (root / "config.json").write_text("{}")
    (root / "weights.safetensors").write_bytes(b"A" * 3_000_000)
    return root


def test_what_was_hashed_stays_whatever_becomes_of_the_file(model, tmp_path):
    copies = snapshot(model, claims(model), tmp_path / "copies")
    assert sorted(item.name for item in copies.iterdir()) == ["config.json", "weights.safetensors"]
    (model / "config.json").unlink()
    (model / "config.json").write_text('{"another": 1}')
    with (model / "weights.safetensors").open("r+b") as file:
        file.write(b"B")
    assert (copies / "config.json").read_text() == "{}"
    assert (copies / "weights.safetensors").read_bytes() == b"A" * 3_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="seals are Linux's")
def test_the_copies_are_sealed_and_not_even_their_own_process_writes_to_them(model, tmp_path):
    copies = snapshot(model, claims(model), tmp_path / "copies")
    for act in (
        lambda file: file.write(b"B"),
        lambda file: file.truncate(1),
        lambda file: os.posix_fallocate(file.fileno(), 0, 4_000_000),
    ):
        with (copies / "weights.safetensors").open("r+b", buffering=0) as file, pytest.raises(OSError):
            act(file)


@pytest.mark.parametrize("change", ["swapped", "written into", "cut", "grown"])
def test_a_file_that_changed_since_its_hash_is_no_model_of_that_digest(model, tmp_path, change):
    hashed = claims(model)
    weights = model / "weights.safetensors"
    before = weights.stat()
    if change == "swapped":
        weights.rename(model / "old")
        weights.write_bytes(b"B" * 3_000_000)
    elif change == "written into":
        with weights.open("r+b") as file:
            file.seek(1_500_000)
            file.write(b"B")
    elif change == "cut":
        os.truncate(weights, 2_999_999)
    else:
        with weights.open("ab") as file:
            file.write(b"A")
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ProbeError, match=r"weights\.safetensors is another file") as caught:
        snapshot(model, hashed, tmp_path / "copies")
    assert caught.value.code == "artifact-mismatch"


def test_nothing_that_was_not_hashed_lies_beside_the_copies(model, tmp_path):
    hashed = claims(model)
    (model / "modeling.py").write_text("raise SystemExit")
    copies = snapshot(model, hashed, tmp_path / "copies")
    assert not (copies / "modeling.py").exists()


def test_where_memory_can_not_be_sealed_the_copies_are_files_that_may_only_be_read(model, tmp_path):
    code = (
        "import json, os, sys; from pathlib import Path; del os.memfd_create\n"
        "from gitledger.lanes.probe.snapshot import snapshot\n"
        "print(snapshot(Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3])))"
    )
    place = tmp_path / "copies"
    subprocess.run(
        [sys.executable, "-c", code, str(model), json.dumps(claims(model)), str(place)], check=True, timeout=60
    )
    assert (place / "config.json").read_text() == "{}"
    assert oct((place / "weights.safetensors").stat().st_mode & 0o777) == "0o400"
    assert not (place / "weights.safetensors").is_symlink()
