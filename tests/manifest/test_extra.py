"""Ignored and generated inputs: by content where they are, by a receipt's claim where they are not."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from gitledger.errors import ManifestError
from gitledger.manifest.extra import check_extra, resolve_extra
from gitledger.manifest.resolve import resolve
from gitledger.records.ids import Digest
from gitledger.records.receipt import ExtraClaim
from gitledger.store.extras import ExtraFiles


@pytest.fixture
def repo(git_repo: Any) -> Any:
    git_repo.commit({"src/a.py": "a", ".gitignore": "gen/\n"})
    git_repo.write("gen/k.so", b"\x7fELF")
    git_repo.write("gen/deep/l.so", b"l")
    return git_repo


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["gen/k.so"], ["gen/k.so"]),
        (["gen/**/*.so"], ["gen/deep/l.so", "gen/k.so"]),
        (["*.so", "gen/k.so"], ["gen/deep/l.so", "gen/k.so"]),
    ],
)
def test_patterns_find_files_of_the_work_tree(repo: Any, patterns: list[str], expected: list[str]) -> None:
    assert [claim.path for claim in resolve_extra(patterns, ExtraFiles(repo.path))] == expected


def test_content_and_mode_are_inputs(repo: Any, manifest_at: Any) -> None:
    digests = [manifest_at(repo, ["src"], extra_paths=["gen/k.so"]).digest]
    repo.write("gen/k.so", b"other")
    digests.append(manifest_at(repo, ["src"], extra_paths=["gen/k.so"]).digest)
    (repo.path / "gen/k.so").chmod(0o755)
    digests.append(manifest_at(repo, ["src"], extra_paths=["gen/k.so"]).digest)
    assert len(set(digests)) == 3


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("gen/none.so", "pattern-unmatched"),
        ("gen/*.o", "pattern-unmatched"),
        ("gen", "extra-not-regular"),
        (".", "extra-not-regular"),
        ("gen/*", "extra-not-regular"),
        ("link.so", "extra-not-regular"),
        ("pipe", "extra-not-regular"),
        ("linked/k.so", "symlinked-component"),
        ("../k.so", "path-outside"),
        ("/k.so", "path-outside"),
        (".git/config", "path-outside"),
        (".git", "path-outside"),
        ("sub/.GIT/config", "path-outside"),
    ],
)
def test_what_is_no_regular_file_of_the_project_is_refused_by_name(repo: Any, pattern: str, code: str) -> None:
    (repo.path / "link.so").symlink_to("gen/k.so")
    (repo.path / "linked").symlink_to("gen")
    os.mkfifo(repo.path / "pipe")
    with pytest.raises(ManifestError) as caught:
        resolve_extra([pattern], ExtraFiles(repo.path))
    assert caught.value.code == code
    assert pattern.strip("./").split("/")[0] in caught.value.message


def test_more_files_than_a_receipt_may_name_are_refused(repo: Any) -> None:
    for i in range(4001):
        (repo.path / f"gen/{i}.bin").touch()
    with pytest.raises(ManifestError) as caught:
        resolve_extra(["gen/*.bin"], ExtraFiles(repo.path))
    assert caught.value.code == "extra-too-many"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_an_error(repo: Any) -> None:
    (repo.path / "gen/k.so").chmod(0)
    with pytest.raises(ManifestError) as caught:
        resolve_extra(["gen/k.so"], ExtraFiles(repo.path))
    assert caught.value.code == "extra-unreadable"


def test_a_clone_without_the_files_makes_the_digest_from_the_claim(
    repo: Any, manifest_at: Any, facts_at: Any, definition: Any
) -> None:
    recorded = manifest_at(repo, ["src"], extra_paths=["gen/*.so"])
    elsewhere = resolve(definition(["src"], extra_paths=["gen/*.so"]), facts_at(repo), None)
    assert elsewhere.digest_with(recorded.extra) == recorded.digest
    with pytest.raises(ManifestError) as caught:
        _ = elsewhere.digest
    assert caught.value.code == "extra-unavailable"


CLAIM = ExtraClaim(path="gen/k.so", mode=0o100644, sha256=Digest("0" * 64))


@pytest.mark.parametrize(
    "claims",
    [
        (),
        (CLAIM, CLAIM),
        (CLAIM, replace(CLAIM, path="src/a.py")),
        (CLAIM, replace(CLAIM, path="gen/k.so/x")),
        (replace(CLAIM, mode=0o120000),),
    ],
)
def test_claims_that_are_not_what_the_patterns_ask_for_give_no_digest(
    repo: Any, facts_at: Any, definition: Any, claims: tuple[ExtraClaim, ...]
) -> None:
    manifest = resolve(definition(["src"], extra_paths=["gen/*.so"]), facts_at(repo), None)
    with pytest.raises(ManifestError) as caught:
        manifest.digest_with(claims)
    assert caught.value.code == "extra-mismatch"


def test_a_claim_for_a_shard_without_extra_paths_gives_no_digest(repo: Any, manifest_at: Any) -> None:
    with pytest.raises(ManifestError):
        manifest_at(repo, ["src"]).digest_with((CLAIM,))


def test_a_clone_that_has_the_files_compares_them(repo: Any) -> None:
    facts = ExtraFiles(repo.path)
    claims = resolve_extra(["gen/**/*.so"], facts)
    assert check_extra(["gen/**/*.so"], claims, facts).agrees
    repo.write("gen/k.so", b"other")
    repo.write("gen/new.so", b"new")
    (repo.path / "gen/deep/l.so").unlink()
    check = check_extra(["gen/**/*.so"], claims, facts)
    assert check.different == ("gen/k.so", "gen/new.so")
    assert check.absent == ("gen/deep/l.so",)
    (repo.path / "gen/k.so").unlink()
    (repo.path / "gen/k.so").symlink_to("new.so")
    assert "gen/k.so" in check_extra(["gen/**/*.so"], claims, facts).different
