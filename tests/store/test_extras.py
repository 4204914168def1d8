"""Ignored and generated files, known by content; nothing behind a symlink, nothing outside."""

from __future__ import annotations

import hashlib
import os

import pytest

from gitledger.errors import ManifestError
from gitledger.records.tree import MODE_EXECUTABLE, MODE_FILE, MODE_FOLDER, MODE_SYMLINK, TreeEntry
from gitledger.store.extras import ExtraFact, ExtraFiles, extra_file


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "tree"
    (folder / "gen/deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("")
    (folder / "gen/a.cuh").write_bytes(b"abc")
    (folder / "gen/deep/run").write_bytes(b"")
    (folder / "gen/deep/run").chmod(0o755)
    (folder / "link").symlink_to("gen")
    (folder / "gen/file-link").symlink_to("a.cuh")
    os.mkfifo(folder / "gen/pipe")
    (tmp_path / "outside").write_text("secret")
    return folder


def refusal(root, path) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        extra_file(root, path)
    assert path.strip() in caught.value.message or ascii(path) in caught.value.message
    return caught.value


def test_a_file_is_its_content_mode_and_size(root):
    assert extra_file(root, "gen/a.cuh") == ExtraFact(
        path="gen/a.cuh", mode=MODE_FILE, sha256=hashlib.sha256(b"abc").hexdigest(), size=3
    )
    assert extra_file(root, "./gen//deep/run").path == "gen/deep/run"
    assert extra_file(root, "gen/deep/run").mode == MODE_EXECUTABLE


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("gen/none", "extra-missing"),
        ("none/none", "extra-missing"),
        ("gen", "extra-not-regular"),
        (".", "extra-not-regular"),
        ("gen/pipe", "extra-not-regular"),
        ("gen/file-link", "extra-not-regular"),
        ("link/a.cuh", "extra-not-regular"),
        ("gen/a.cuh/below", "extra-not-regular"),
        ("../outside", "path-outside"),
        ("gen/../gen/a.cuh", "path-outside"),
        ("/etc/hostname", "path-outside"),
        (".git/config", "path-outside"),
        ("gen/a\0", "path-outside"),
        ("n" * 300, "extra-unreadable"),
    ],
)
def test_whatever_is_no_regular_file_inside_is_refused_by_name(root, path, code):
    if len(path) < 300:
        assert refusal(root, path).code == code
    else:
        with pytest.raises(ManifestError) as caught:
            extra_file(root, path)
        assert caught.value.code == code


def test_the_manifest_room_sees_entries_and_children(root):
    files = ExtraFiles(root)
    assert files.entry("") == TreeEntry(MODE_FOLDER, "", "")
    assert files.entry("link") == TreeEntry(MODE_SYMLINK, "link", "")
    assert files.children("gen") == (
        TreeEntry(MODE_FILE, "a.cuh", ""),
        TreeEntry(MODE_FOLDER, "deep", ""),
        TreeEntry(MODE_SYMLINK, "file-link", ""),
        TreeEntry(0, "pipe", ""),
    )
    assert [entry.name for entry in files.children("")] == ["gen", "link"]
    assert files.sha256("gen/a.cuh") == hashlib.sha256(b"abc").hexdigest()


@pytest.mark.parametrize("path", ["none", "link/a.cuh", "gen/a.cuh/x", ".git", ".git/config", "../outside", "/"])
def test_nothing_stands_behind_links_outside_or_in_git(root, path):
    assert ExtraFiles(root).entry(path) is None
    assert ExtraFiles(root).children(path) == ()


def test_an_unreadable_folder_is_an_error_and_not_empty(root):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    files = ExtraFiles(root)
    (root / "gen/deep").chmod(0)
    with pytest.raises(ManifestError) as caught:
        files.children("gen/deep")
    assert caught.value.code == "extra-unreadable"
