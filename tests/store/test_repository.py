"""A repository is found as git finds it, and answers as git does."""

from __future__ import annotations

import time

import pytest

from gitledger.errors import ConfigError, StoreError, UsageError
from gitledger.records.ids import CommitId
from gitledger.store.history import distances, is_cut
from gitledger.store.objects import Identity
from gitledger.store.remote import remote_names
from gitledger.store.repository import open_repository


@pytest.fixture
def opened(git_repo):
    git_repo.commit({"a": "1"})
    return open_repository(git_repo.path, env=git_repo.env)


def refused(path, env) -> UsageError:
    with pytest.raises(UsageError) as caught:
        open_repository(path, env=env)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value


def test_it_is_found_from_any_folder_in_it(git_repo):
    git_repo.write("x/y/z", "1")
    repo = open_repository(git_repo.path / "x" / "y", env=git_repo.env)
    assert repo.worktree == git_repo.path
    assert repo.git_dir == repo.common_dir == git_repo.path / ".git"
    assert (repo.object_format, repo.is_shallow, repo.head(), repo.branch()) == ("sha1", False, None, "main")


def test_a_bare_repository_has_no_worktree(make_repo):
    bare = make_repo("bare.git", "--bare")
    repo = open_repository(bare.path, env=bare.env)
    assert repo.worktree is None
    assert repo.git_dir == bare.path


def test_a_linked_worktree_has_its_own_head_and_the_common_refs(git_repo):
    first = git_repo.commit({"a": "1"})
    git_repo.git("worktree", "add", "-q", "-b", "side", "../linked")
    second = git_repo.commit({"a": "2"})
    repo = open_repository(git_repo.path.parent / "linked", env=git_repo.env)
    assert repo.worktree == git_repo.path.parent / "linked"
    assert repo.git_dir == git_repo.path / ".git" / "worktrees" / "linked"
    assert repo.common_dir == git_repo.path / ".git"
    assert (repo.head(), repo.branch()) == (first, "side")
    assert repo.resolve("main") == second


def test_a_submodule_is_a_repository_of_its_own(git_repo, make_repo):
    inner = make_repo("inner")
    head = inner.commit({"b": "1"})
    git_repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "sub")
    repo = open_repository(git_repo.path / "sub", env=git_repo.env)
    assert repo.worktree == git_repo.path / "sub"
    assert repo.git_dir == git_repo.path / ".git" / "modules" / "sub"
    assert repo.head() == head


def test_git_dir_and_work_tree_of_the_environment_are_honoured(git_repo, tmp_path):
    """What a hook inherits; from a linked worktree GIT_DIR names that worktree's own folder."""
    head = git_repo.commit({"a": "1"})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    env = dict(git_repo.env) | {"GIT_DIR": str(git_repo.path / ".git"), "GIT_WORK_TREE": str(git_repo.path)}
    repo = open_repository(elsewhere, env=env)
    assert (repo.git_dir, repo.worktree, repo.head()) == (git_repo.path / ".git", git_repo.path, head)
    relative = open_repository(git_repo.path, env=dict(git_repo.env) | {"GIT_DIR": ".git"})
    assert relative.git_dir == git_repo.path / ".git"
    refused(git_repo.path, dict(git_repo.env) | {"GIT_DIR": str(elsewhere)})


def test_outside_of_a_repository(tmp_path, hermetic_env):
    assert refused(tmp_path, hermetic_env).code == "not-a-repository"
    assert refused(tmp_path / "absent", hermetic_env).code == "not-a-folder"


@pytest.mark.parametrize("name", ["twin\nx", "twin\n"])
@pytest.mark.parametrize("options", [(), ("--bare",)], ids=["", "bare"])
def test_a_path_with_a_line_break_is_refused_and_not_taken_for_the_path_before_it(make_repo, name, options):
    """git prints paths by lines, and quotes none of these."""
    make_repo("twin", *options)
    repo = make_repo(name, *options)
    error = refused(repo.path, repo.env)
    assert (error.code, "line break" in error.message) == ("repository-unsupported", True)


def test_a_repository_of_another_user_is_refused_with_the_remedy(git_repo):
    import os

    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    for path in (git_repo.path, git_repo.path / ".git"):
        os.chown(path, 12345, 12345)
    env = dict(git_repo.env)
    error = refused(git_repo.path, env)
    assert (error.code, "safe.directory" in error.hint) == ("repository-not-owned", True)
    trusted = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    git_repo_env = env | trusted
    assert open_repository(git_repo.path, env=git_repo_env).worktree == git_repo.path


def test_revisions_are_read_as_git_reads_them_and_tags_are_peeled(git_repo, opened):
    first = git_repo.git("rev-parse", "HEAD")
    second = git_repo.commit({"a": "2"}, "fix: two")
    git_repo.git("tag", "-a", "-m", "t", "v1", first)
    tag = git_repo.git("rev-parse", "v1")
    assert tag != first
    for rev, commit in {
        "HEAD": second, "HEAD~1": first, "main": second, "v1": first, tag: first, second: second,
        second[:10]: second, ":/fix": second, "HEAD^{commit}": second,
    }.items():  # fmt: skip
        assert opened.resolve(rev) == commit, rev


@pytest.mark.parametrize(
    "rev",
    ["", "absent", "-q", "--all", "HEAD..HEAD", "HEAD:a", "HEAD^{tree}", "a\0b", "1" * 40, "HEAD\nHEAD", "\udcff"],
)
def test_what_names_no_commit_is_a_usage_error(opened, rev):
    with pytest.raises(UsageError) as caught:
        opened.resolve(rev)
    assert caught.value.code == "unknown-commit"
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_a_commit_and_the_branch(git_repo, opened):
    head = opened.head()
    assert head == git_repo.git("rev-parse", "HEAD")
    assert opened.commit(head).summary == "change"
    with pytest.raises(UsageError):
        opened.commit(CommitId("1" * 40))
    git_repo.git("checkout", "-q", "-b", "feature/x")
    assert opened.branch() == "feature/x"
    git_repo.git("checkout", "-q", "--detach")
    assert (opened.branch(), opened.head()) == (None, head)


def test_configuration_is_gits_own(git_repo):
    git_repo.git("config", "--add", "GitLedger.Sub.Key.NAME", "one\ntwo")
    git_repo.git("config", "--add", "gitledger.Sub.Key.name", "")
    git_repo.git("config", "core.signed", "x")
    with (git_repo.path / ".git" / "config").open("a") as file:
        file.write("[include]\n\tpath = extra\n[bare]\n\tflag\n")
    (git_repo.path / ".git" / "extra").write_text("[core]\n\tsigned = y\n")
    env = dict(git_repo.env) | {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "bare.other", "GIT_CONFIG_VALUE_0": "z",
    }  # fmt: skip
    repo = open_repository(git_repo.path, env=env)
    assert repo.config_all("gitledger.Sub.Key.name") == ("one\ntwo", "")
    assert repo.config_all("gitledger.sub.key.name") == ()
    assert repo.config("CORE.Signed") == "y"
    assert (repo.config("bare.flag"), repo.config("bare.other")) == ("true", "z")
    assert repo.config("gitledger.absent") is None


def test_remotes_are_those_that_git_lists(git_repo):
    git_repo.git("remote", "add", "origin", "../a")
    settings = ("a.b/c.url", "A.prune", "pushDefault", "zz.mirror", "\u00e9 x.url", "/no.url", "origin.fetch")
    for key in settings:
        git_repo.git("config", f"remote.{key}", "true")
    named = ("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "remote.env.url"), ("GIT_CONFIG_VALUE_0", "x")
    git_repo.env.update(named)
    listed = git_repo.git("remote").splitlines()
    assert {"a.b/c", "A", "env", "origin"} <= set(listed)
    assert remote_names(open_repository(git_repo.path, env=git_repo.env)) == tuple(sorted(listed))


def test_the_identity_is_the_one_that_git_would_write(git_repo):
    repo = open_repository(git_repo.path, env=git_repo.env)
    assert repo.identity(git_repo.env) == Identity("Alice", "alice@example.org")
    with pytest.raises(UsageError) as caught:
        repo.identity({"GIT_AUTHOR_NAME": "Bob"})
    assert (caught.value.code, "git config user.email" in caught.value.hint) == ("no-identity", True)
    git_repo.git("config", "user.name", " <Carol\n> ")
    git_repo.git("config", "user.email", "carol@example.org")
    repo = open_repository(git_repo.path, env=git_repo.env)
    assert repo.identity({}) == Identity("Carol", "carol@example.org")
    with pytest.raises(UsageError):
        repo.identity({"GIT_AUTHOR_NAME": "..."})


def test_files_of_a_commit(git_repo, opened):
    (git_repo.path / "link").symlink_to("a")
    head = CommitId(git_repo.commit({"d/e/f": b"\0x", "run.sh": "#!"}))
    assert opened.file_at(head, "d/e/f") == b"\0x"
    assert opened.file_at(head, "a") == b"1"
    for path in ("d/e/f/g", "absent", "", "/a", "d//e/f", "../a", "a/"):
        assert opened.file_at(head, path) is None, path


def test_what_is_there_and_is_no_regular_file_is_an_error_and_not_an_absent_file(git_repo, opened):
    (git_repo.path / "link").symlink_to("a")
    (git_repo.path / "linked").symlink_to("d")
    git_repo.commit({"d/e/f": "x"})
    git_repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    git_repo.git("commit", "-q", "-m", "a submodule")
    head = CommitId(git_repo.git("rev-parse", "HEAD"))
    cases = {
        "link": "'link' is a symbolic link",
        "linked/e/f": "'linked' is a symbolic link",
        "link/a": "'link' is a symbolic link",
        "d": "'d' is a folder",
        "d/e": "'d/e' is a folder",
        "sub": "'sub' is a submodule",
        "sub/a": "'sub' is a submodule",
    }
    for path, what in cases.items():
        with pytest.raises(ConfigError, match=what) as caught:
            opened.file_at(head, path)
        assert caught.value.code == "file-malformed"


def test_a_file_of_the_mode_that_git_wrote_long_ago_is_a_file(git_repo, opened):
    blob = git_repo.git("rev-parse", "HEAD:a")
    raw = b"100664 old\0" + bytes.fromhex(blob)
    tree = git_repo.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", input=raw)
    commit = CommitId(git_repo.git("commit-tree", "-m", "old", tree))
    assert opened.file_at(commit, "old") == b"1"


def test_a_file_whose_blob_is_missing_is_an_error_and_not_an_absent_file(git_repo, opened):
    head = opened.head()
    blob = git_repo.git("rev-parse", "HEAD:a")
    (git_repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(StoreError) as caught:
        open_repository(git_repo.path, env=git_repo.env).file_at(head, "a")
    assert caught.value.code == "object-missing"


#     g
#    / \
#   e   f      h is a root of its own
#   |   |\
#   d   | h
#    \ /
#     c - b - a
PARENTS = {"g": "ef", "e": "d", "f": "ch", "d": "c", "c": "b", "b": "a", "a": "", "h": ""}


def parents(commit: CommitId) -> tuple[CommitId, ...] | None:
    found = PARENTS.get(commit)
    return None if found is None else tuple(map(CommitId, found))


def test_distance_is_the_least_number_of_parent_edges():
    everything = [CommitId(name) for name in "abcdefgh"]
    assert distances(parents, frozenset(), CommitId("g"), everything) == {
        "g": 0, "e": 1, "f": 1, "d": 2, "c": 2, "h": 2, "b": 3, "a": 4,
    }  # fmt: skip
    assert distances(parents, frozenset(), CommitId("e"), everything) == {"e": 0, "d": 1, "c": 2, "b": 3, "a": 4}
    assert distances(parents, frozenset(), CommitId("e"), [CommitId("h"), CommitId("g")]) == {}
    assert distances(parents, frozenset(), CommitId("absent"), [CommitId("absent")]) == {}
    assert distances(parents, frozenset(), CommitId("g"), []) == {}


def test_a_walk_stops_once_all_wanted_are_found():
    asked = []

    def counting(commit):
        asked.append(commit)
        return parents(commit)

    assert distances(counting, frozenset(), CommitId("g"), [CommitId("f")]) == {"f": 1}
    assert set(asked) == set("gef")


def test_nothing_is_reached_through_the_boundary_or_a_missing_commit():
    cut = frozenset({CommitId("c")})
    assert distances(parents, cut, CommitId("g"), [CommitId("c"), CommitId("b")]) == {"c": 2}
    assert is_cut(parents, cut, CommitId("g"))
    assert not is_cut(parents, cut, CommitId("h"))
    assert not is_cut(parents, frozenset({CommitId("a")}), CommitId("g"))
    del_b = {name: found for name, found in PARENTS.items() if name != "b"}

    def without_b(commit):
        found = del_b.get(commit)
        return None if found is None else tuple(map(CommitId, found))

    assert distances(without_b, frozenset(), CommitId("g"), [CommitId("a"), CommitId("b")]) == {}


@pytest.fixture(params=[1, 2_000], ids=["listed-by-git", "read-one-by-one"])
def walk(request, monkeypatch):
    """After how many commits git is asked for the rest of a history: it must make no difference."""
    monkeypatch.setattr("gitledger.store.repository._FEW_COMMITS", request.param)


@pytest.mark.usefixtures("walk")
def test_in_a_shallow_clone_an_unknown_ancestry_is_not_an_ancestry(git_repo, make_repo):
    commits = [CommitId(git_repo.commit({"a": str(n)})) for n in range(4)]
    make_repo("clones").git("clone", "-q", "--depth=2", f"file://{git_repo.path}", "shallow")
    path = git_repo.path.parent / "clones" / "shallow"
    repo = open_repository(path, env=git_repo.env)
    assert repo.is_shallow
    assert repo.distances(commits[3], commits) == {commits[3]: 0, commits[2]: 1}
    assert repo.history_is_cut(commits[3])
    # Even where the objects are here by another way, git's own boundary counts.
    import subprocess

    subprocess.run(
        ["git", "fetch", "-q", str(git_repo.path), f"{commits[1]}:refs/heads/other", "--depth=1"],
        cwd=path, env=dict(git_repo.env), check=True,
    )  # fmt: skip
    again = open_repository(path, env=git_repo.env)
    assert commits[0] not in again.distances(commits[3], commits)
    full = open_repository(git_repo.path, env=git_repo.env)
    assert full.distances(commits[3], commits) == {commit: 3 - n for n, commit in enumerate(commits)}
    assert not full.history_is_cut(commits[3])


@pytest.mark.usefixtures("walk")
def test_replaced_commits_keep_their_ancestry(git_repo):
    first, second = (CommitId(git_repo.commit({"a": str(n)})) for n in range(2))
    git_repo.git("replace", "--graft", second)
    assert git_repo.git("rev-list", "--count", second) == "1"
    repo = open_repository(git_repo.path, env=git_repo.env)
    assert repo.distances(second, [first]) == {first: 1}
    assert repo.resolve("HEAD~1") == first
    (git_repo.path / ".git" / "info" / "grafts").write_text(f"{second}\n")
    assert repo.distances(second, [first]) == {first: 1}


@pytest.mark.usefixtures("walk")
def test_history_with_a_hole_is_walked_as_far_as_it_goes(git_repo):
    first, second, third = (CommitId(git_repo.commit({"a": str(n)})) for n in range(3))
    (git_repo.path / ".git" / "objects" / first[:2] / first[2:]).unlink()
    repo = open_repository(git_repo.path, env=git_repo.env)
    assert repo.distances(third, [first, second]) == {second: 1}
    assert list(repo.rings(third)) == [[third], [second], []]


def test_a_long_history_is_walked_once_in_about_a_second(git_repo):
    """100,000 commits take about a second; a tenth of them stays far below what a quadratic walk would take."""
    count = 10_000
    stream = "".join(
        f"commit refs/heads/main\nmark :{n}\ncommitter A <a@x> {1_700_000_000 + n} +0000\ndata 1\nx\n"
        + (f"from :{n - 1}\n" if n > 1 else "")
        + "\n"
        for n in range(1, count + 1)
    )
    git_repo.git("fast-import", "--quiet", input=stream.encode())
    repo = open_repository(git_repo.path, env=git_repo.env)
    root = CommitId(git_repo.git("rev-list", "--max-parents=0", "main"))
    start = time.perf_counter()
    assert repo.distances(repo.resolve("main"), [root]) == {root: count - 1}
    assert time.perf_counter() - start < 5


def test_of_an_ambiguous_name_none_is_proposed_that_somebody_may_have_pushed(git_repo):
    commit = git_repo.commit({"a": "1"})
    git_repo.git("update-ref", "refs/remotes/origin/main", commit)
    git_repo.git("tag", "origin/main", git_repo.commit({"a": "2"}))
    repository = open_repository(git_repo.path, env=git_repo.env)
    with pytest.raises(UsageError) as refused:
        repository.resolve("origin/main")
    assert refused.value.code == "ambiguous-ref"
    assert "refs/tags" not in refused.value.hint
    assert refused.value.hint.endswith("refs/remotes/")


def test_a_branch_may_be_named_as_a_file_of_git_that_is_no_ref(git_repo):
    commit = git_repo.commit({"a": "1"})
    git_repo.git("branch", "config")
    git_repo.git("branch", "hooks/x")
    repository = open_repository(git_repo.path, env=git_repo.env)
    assert repository.resolve("config") == repository.resolve("hooks/x") == commit
    assert repository.resolve("HEAD") == repository.resolve("@") == commit
