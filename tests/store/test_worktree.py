"""What "dirty" means (DESIGN section 5), asked of real work trees."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from gitledger.errors import StoreError, UsageError
from gitledger.store import early_look, worktree
from gitledger.store.early_look import look_early
from gitledger.store.git import Git
from gitledger.store.worktree import WorkTreeState, work_tree_state


def state_of(repo, *scope_paths: str) -> WorkTreeState:
    """Return the state, which is the same whichever way it is found.

    git compares the files of a large index while we look into it; untracked files are found by the comparison or,
    where the clone has rules of its own, by walks of their own; both happen only where git's folder is known. And
    git may have begun before that.
    """
    found = work_tree_state(Git(repo.path, repo.env), scope_paths=scope_paths)
    work_tree = Path(repo.git("rev-parse", "--show-toplevel"))
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir"))
    known = Git(repo.path, repo.env, git_dir=git_dir, work_tree=work_tree)
    for large_bytes in (0, 1 << 30):
        for apart in (lambda _: True, worktree._has_rules_of_its_own):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(worktree, "LARGE_INDEX_BYTES", large_bytes)
                patch.setattr(worktree, "_has_rules_of_its_own", apart)
                assert work_tree_state(known, scope_paths=scope_paths) == found
    assert state_seen_early(known, work_tree, scope_paths) == found
    return found


def state_seen_early(git: Git, top: Path, scope_paths: Sequence[str]) -> WorkTreeState:
    """Return the state by a look that began before anything was known of the repository."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (worktree, early_look):
            patch.setattr(module, "LARGE_INDEX_BYTES", 0)
        patch.chdir(top)
        early = look_early(git.env)
        assert (early is not None) == (top / ".git/index").exists()
        return worktree.survey(git, early).state(scope_paths)


@pytest.fixture
def repo(git_repo):
    git_repo.commit({"src/a.py": "a = 1\n", "src/b.py": "b = 1\n", ".gitignore": "*.log\nbuild/\n"})
    return git_repo


def test_a_fresh_checkout_is_clean_and_names_its_head(repo):
    assert state_of(repo) == WorkTreeState(head=repo.git("rev-parse", "HEAD"), changed=(), untracked=())
    assert not state_of(repo).dirty


def test_before_the_first_commit_there_is_no_head(git_repo):
    git_repo.write("a", "1")
    git_repo.git("add", "a")
    assert state_of(git_repo) == WorkTreeState(head=None, changed=("a",), untracked=())


def test_the_answer_is_the_same_from_a_subfolder(repo):
    repo.write("src/a.py", "a = 2\n")
    repo.write("new.py", "")
    inside = work_tree_state(Git(repo.path / "src", repo.env))
    assert inside == state_of(repo)
    assert inside.changed == ("src/a.py",)
    assert inside.untracked == ("new.py",)


def test_outside_of_a_work_tree_is_an_error(make_repo, tmp_path):
    with pytest.raises(UsageError) as caught:
        state_of(make_repo("bare.git", "--bare"))
    assert caught.value.code == "no-work-tree"


@pytest.mark.parametrize("staged", [False, True])
def test_edits_count_in_the_index_and_in_the_work_tree(repo, staged):
    repo.write("src/a.py", "a = 2\n")
    if staged:
        repo.git("add", "-A")
    assert state_of(repo).changed == ("src/a.py",)


def test_a_staged_edit_that_was_taken_back_in_the_work_tree_counts(repo):
    repo.write("src/a.py", "a = 2\n")
    repo.git("add", "-A")
    repo.write("src/a.py", "a = 1\n")
    assert state_of(repo).changed == ("src/a.py",)


def test_deletions_renames_modes_and_intent_to_add_count(repo):
    repo.commit({"run.sh": "true\n", "old": "1\n" * 50})
    (repo.path / "src/b.py").unlink()
    (repo.path / "run.sh").chmod(0o755)
    repo.git("mv", "old", "new")
    repo.write("later", "")
    repo.git("add", "-N", "later")
    assert state_of(repo).changed == ("later", "new", "old", "run.sh", "src/b.py")


def test_modes_are_compared_as_git_does(repo):
    (repo.path / "src/a.py").chmod(0o755)
    repo.git("config", "core.fileMode", "false")
    assert not state_of(repo).dirty


def test_line_endings_are_compared_as_git_does(repo):
    repo.git("config", "core.autocrlf", "true")
    (repo.path / "src/a.py").unlink()
    repo.git("checkout", "--", "src/a.py")
    assert (repo.path / "src/a.py").read_bytes() == b"a = 1\r\n"
    assert not state_of(repo).dirty


def test_a_file_that_became_a_symlink_counts(repo):
    (repo.path / "src/a.py").unlink()
    (repo.path / "src/a.py").symlink_to("b.py")
    assert state_of(repo).changed == ("src/a.py",)


def test_unmerged_entries_count(repo):
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"src/a.py": "a = 'side'\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"src/a.py": "a = 'main'\n"})
    repo.git("merge", "-q", "side", check=False)
    assert state_of(repo).changed == ("src/a.py",)


def test_an_edit_of_the_same_size_whose_mtime_is_set_back_counts(repo):
    target = repo.path / "src/a.py"
    old = target.stat().st_mtime_ns - 10_000_000_000
    os.utime(target, ns=(old, old))
    repo.git("update-index", "--refresh")
    repo.git("config", "core.trustctime", "false")
    repo.git("config", "core.checkStat", "minimal")
    repo.write("src/a.py", "a = 2\n")
    os.utime(target, ns=(old, old))
    assert repo.git("--no-optional-locks", "status", "--porcelain") == ""
    assert state_of(repo).changed == ("src/a.py",)


def test_an_index_whose_mtime_lies_ahead_hides_no_edit_made_at_once(repo):
    """git takes it for younger than any edit, and so the second that it noted for over."""
    target, index = repo.path / "src/a.py", repo.path / ".git/index"
    for _ in range(20):  # the edit has to fall into the second that the index notes
        repo.write("src/a.py", "a = 5\n")
        repo.git("add", "src/a.py")
        repo.git("commit", "-q", "--allow-empty", "-m", "five")
        noted_s = int(target.stat().st_ctime)
        repo.write("src/a.py", "a = 6\n")
        ahead_ns = index.stat().st_mtime_ns + 3600 * 10**9
        os.utime(index, ns=(ahead_ns, ahead_ns))
        if int(target.stat().st_ctime) == noted_s:
            break
    assert repo.git("--no-optional-locks", "status", "--porcelain") == ""
    assert state_of(repo).changed == ("src/a.py",)


@pytest.fixture
def cases(repo):
    """A work tree on a file system that tells cases apart, of which git was told that it doesn't."""
    repo.write("SRC", "")
    if (repo.path / "Src").exists():
        pytest.skip("a file system that takes names for one another")
    (repo.path / "SRC").unlink()
    repo.git("config", "core.ignoreCase", "true")
    return repo


@pytest.mark.parametrize("path", ["src/A.py", "Src/a.py", "Build/test_it.py", "trace.LOG"])
def test_a_name_counts_that_differs_in_case_alone_where_the_file_system_tells_them_apart(cases, path):
    """`core.ignoreCase` hides it behind a tracked name or a rule; pytest collects it all the same."""
    cases.write(path, "")
    assert cases.git("status", "--porcelain", "--untracked-files=all") == ""
    assert state_of(cases).untracked == (path,)


def test_a_file_in_the_place_of_a_link_counts_though_git_is_told_that_there_are_none(repo):
    (repo.path / "link").symlink_to("src/a.py")
    repo.git("add", "link")
    repo.git("commit", "-q", "-m", "link")
    (repo.path / "link").unlink()
    repo.write("link", "src/a.py")
    repo.git("config", "core.symlinks", "false")
    assert repo.git("status", "--porcelain") == ""
    assert state_of(repo).changed == ("link",)


def test_a_large_index_that_is_written_while_we_look_into_it_is_compared_anew(repo, monkeypatch):
    look, seen = worktree._look_into, []

    def slow_look(git, original):
        if not seen:
            time.sleep(0.3)  # git has long compared these three files by then
            repo.git("rm", "-q", "--cached", "src/b.py")
        seen.append(original)
        return look(git, original)

    state_of(repo)
    monkeypatch.setattr(worktree, "LARGE_INDEX_BYTES", 0)
    monkeypatch.setattr(worktree, "_look_into", slow_look)
    assert work_tree_state(Git(repo.path, repo.env)).changed == ("src/b.py",)


@pytest.mark.parametrize("flags", [["--assume-unchanged"], ["--skip-worktree"], None])
def test_flags_on_index_entries_hide_no_edit(repo, flags):
    for flag in flags or ["--assume-unchanged", "--skip-worktree"]:
        repo.git("update-index", flag, "src/a.py")
    assert not state_of(repo).dirty
    before = (repo.path / ".git/index").read_bytes()
    repo.write("src/a.py", "a = 2\n")
    assert repo.git("status", "--porcelain") == ""
    assert state_of(repo).changed == ("src/a.py",)
    assert (repo.path / ".git/index").read_bytes() == before


def test_a_flagged_edit_of_the_same_size_made_at_once_counts(repo):
    repo.write("src/a.py", "a = 5\n")
    repo.git("add", "src/a.py")
    repo.git("commit", "-q", "-m", "five")
    repo.git("update-index", "--assume-unchanged", "src/a.py")
    stamp = (repo.path / ".git/index").stat().st_mtime_ns
    repo.write("src/a.py", "a = 6\n")
    os.utime(repo.path / "src/a.py", ns=(stamp, stamp))
    assert state_of(repo).changed == ("src/a.py",)


def test_a_deleted_file_that_is_assumed_unchanged_counts(repo):
    repo.git("update-index", "--assume-unchanged", "src/a.py")
    (repo.path / "src/a.py").unlink()
    assert state_of(repo).changed == ("src/a.py",)


@pytest.mark.parametrize("sparse_index", ["true", "false"])
def test_a_sparse_checkout_is_clean_until_a_left_out_file_comes_back_changed(repo, sparse_index):
    repo.commit({"docs/guide.md": "x\n", "docs/deep/more.md": "y\n"})
    repo.git("sparse-checkout", "init", "--cone")
    repo.git("config", "index.sparse", sparse_index)
    repo.git("sparse-checkout", "set", "src")
    assert not (repo.path / "docs").exists()
    assert not state_of(repo, "src").dirty
    repo.write("docs/guide.md", "z\n")
    assert state_of(repo).changed == ("docs/guide.md",)


@pytest.mark.parametrize("sparse_index", ["true", "false"])
def test_an_input_that_a_sparse_checkout_left_out_counts(repo, sparse_index):
    """The run that should have had it did not even collect its tests."""
    repo.commit({"docs/guide.md": "x\n", "docs/deep/more.md": "y\n", "docs/conftest.py": "z\n"})
    repo.git("sparse-checkout", "init", "--cone")
    repo.git("config", "index.sparse", sparse_index)
    repo.git("sparse-checkout", "set", "src")
    left_out = ("docs/conftest.py", "docs/deep/more.md", "docs/guide.md")
    assert state_of(repo, ".").changed == left_out
    assert state_of(repo, "**/*.md").changed == left_out
    assert state_of(repo, "src", "docs/deep").changed == ("docs/deep/more.md",)
    assert state_of(repo, "docs/guide.md").changed == ("docs/guide.md",)
    assert not state_of(repo, "src", "docs/guide").dirty
    git = Git(repo.path, repo.env)
    assert work_tree_state(git, scope_paths=("src",), names=("conftest.py",)).changed == ("docs/conftest.py",)


@pytest.mark.parametrize("flags", [["--skip-worktree"], ["--skip-worktree", "--assume-unchanged"]])
def test_a_deleted_input_counts_whatever_its_flags(repo, flags):
    for flag in flags:
        repo.git("update-index", flag, "src/a.py")
    (repo.path / "src/a.py").unlink()
    assert state_of(repo, "src").changed == ("src/a.py",)
    assert not state_of(repo, "docs").dirty


def test_untracked_files_count_by_the_trees_gitignore_alone(repo, hermetic_env, tmp_path):
    (tmp_path / "personal").write_text("new.py\n")
    repo.git("config", "core.excludesFile", str(tmp_path / "personal"))
    repo.write("new.py", "1")
    assert repo.git("status", "--porcelain") == ""
    assert state_of(repo).untracked == ("new.py",)
    repo.write(".git/info/exclude", "private/\n")
    for path in ("private/x", "trace.log", "build/o"):
        repo.write(path, "1")
    assert repo.git("status", "--porcelain") == ""
    assert state_of(repo).untracked == ("new.py", "private/x")


def test_odd_names_are_kept_exactly(repo):
    names = [b"new\nline", b"tab\there", b"\xff\xfe", b" lead", b'quo"te']
    for name in names:
        (repo.path / os.fsdecode(name)).write_bytes(b"")
    assert [os.fsencode(path) for path in state_of(repo).untracked] == sorted(names)


def test_a_repository_inside_counts_as_untracked(repo):
    (repo.path / "vendor").mkdir()
    repo.git("init", "-q", "vendor/other")
    assert state_of(repo).untracked == ("vendor/other/",)


# --- folders that ignore themselves ----------------------------------------------------------------------------


@pytest.fixture
def cache(repo):
    repo.write("src/.cache/.gitignore", "# made by a tool\n*\n")
    repo.write("src/.cache/deep/data", "1")
    return repo


@pytest.mark.parametrize("scope", [(), ("docs",), ("src/a.py", "src/.cachex"), ("src/.c",)])
def test_a_folder_that_ignores_itself_is_no_dirt_outside_declared_scopes(cache, scope):
    assert not state_of(cache, *scope).dirty


@pytest.mark.parametrize(
    "scope", ["src", "src/", "./src", "src/.cache", "src/.cache/deep/data", "src/**/*.py", "."]
)
def test_a_folder_that_ignores_itself_is_dirt_inside_a_declared_scope(cache, scope):
    assert state_of(cache, "docs", scope).untracked == ("src/.cache/",)


@pytest.mark.parametrize("mark", ["CACHEDIR.TAG", "pyvenv.cfg"])
@pytest.mark.parametrize(("scope", "dirty"), [(".", False), ("**/*.py", False), ("src", True)])
def test_a_scope_that_is_the_whole_tree_names_no_cache_in_particular(cache, mark, scope, dirty):
    cache.write(f"src/.cache/{mark}", "")
    assert state_of(cache, scope).dirty is dirty


def test_a_folder_that_the_tree_ignores_is_no_dirt_whatever_it_holds(repo):
    repo.write("build/.gitignore", "*\n")
    repo.write("build/sub/x", "")
    assert not state_of(repo, "build", ".").dirty


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("src/.gitignore", "*\n"),
        (".gitignore", "*\n"),
        ("docs/.gitignore", ".gitignore\nhidden.py\n"),
        ("docs/.gitignore", "*\n!kept\n"),
    ],
)
def test_a_rule_outside_the_tree_that_hides_itself_and_sources_is_dirt(git_repo, rule, text):
    git_repo.commit({"src/a.py": "1"})
    git_repo.write(rule, text)
    git_repo.write("src/new.py", "1")
    git_repo.write("docs/hidden.py", "1")
    assert rule in state_of(git_repo).untracked


# --- submodules --------------------------------------------------------------------------------------------------


@pytest.fixture
def outer(repo, make_repo):
    inner = make_repo("inner")
    inner.commit({"lib.c": "1\n"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "vendor/lib")
    repo.git("config", "-f", ".gitmodules", "submodule.vendor/lib.ignore", "all")
    repo.commit(message="add a submodule")
    return repo


def test_a_submodule_at_its_commit_is_clean_and_its_untracked_files_stay_aside(outer):
    outer.write("vendor/lib/untracked", "1")
    assert not state_of(outer).dirty


def test_a_moved_submodule_counts_though_gitmodules_says_to_ignore_it(outer):
    outer.git("-C", "vendor/lib", "commit", "-q", "--allow-empty", "-m", "on")
    assert outer.git("status", "--porcelain") == ""
    assert state_of(outer).changed == ("vendor/lib",)


@pytest.mark.parametrize("flag", [None, "--assume-unchanged", "--skip-worktree"])
def test_a_tracked_edit_inside_a_submodule_counts(outer, flag):
    if flag:
        outer.git("-C", "vendor/lib", "update-index", flag, "lib.c")
    outer.write("vendor/lib/lib.c", "2\n")
    assert state_of(outer).changed == ("vendor/lib/lib.c",)


def test_an_edit_inside_a_submodule_counts_though_its_settings_name_another_folder(outer, tmp_path):
    shutil.copytree(outer.path / "vendor/lib", tmp_path / "lib")
    outer.git("-C", "vendor/lib", "config", "core.worktree", str(tmp_path / "lib"))
    outer.write("vendor/lib/lib.c", "2\n")
    assert outer.git("status", "--porcelain") == ""
    assert state_of(outer).changed == ("vendor/lib/lib.c",)


def test_a_submodule_that_was_never_fetched_counts_where_it_is_an_input(outer):
    outer.git("submodule", "--quiet", "deinit", "-f", "vendor/lib")
    assert not state_of(outer, "src").dirty
    for scope in (".", "vendor", "vendor/lib", "**/*.c"):
        assert state_of(outer, scope).changed == ("vendor/lib/",)


def test_a_submodule_that_git_cannot_read_is_an_error_and_not_clean(outer):
    shutil.rmtree(outer.path / ".git/modules/vendor/lib")
    with pytest.raises(StoreError, match="submodule vendor/lib: ") as caught:
        state_of(outer)
    assert "vendor/lib/.git" in caught.value.hint


def test_a_damaged_index_is_an_error_that_names_what_makes_it_anew(repo):
    index = repo.path / ".git/index"
    index.write_bytes(b"garbage" * 30)
    with pytest.raises(StoreError) as caught:
        state_of(repo)
    command = caught.value.hint.removesuffix(" (if it is damaged)")
    subprocess.run(["sh", "-c", command], env=dict(repo.env), check=True)
    assert not state_of(repo).dirty


def test_a_linked_work_tree_is_judged_by_its_own_index(repo, tmp_path):
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    repo.write("src/a.py", "a = 2\n")
    linked = work_tree_state(Git(tmp_path / "linked", repo.env | {"GIT_DIR": str(repo.path / ".git")}))
    assert not linked.dirty
    (tmp_path / "linked/src/b.py").write_text("b = 2\n")
    assert work_tree_state(Git(tmp_path / "linked", repo.env)).changed == ("src/b.py",)
