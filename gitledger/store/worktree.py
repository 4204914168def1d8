"""The state of a work tree, as DESIGN section 5 defines "dirty", read from git's plumbing.

What git compares, git compares here (file modes, line endings, filters). What only hides an edit doesn't count:
assume-unchanged and skip-worktree flags, personal ignore files, file system monitors, relaxed stat checks, names
taken for one another where the file system tells them apart, and the `ignore` settings of submodules.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gitledger.dataclass import dataclass, replace
from gitledger.errors import StoreError, UsageError
from gitledger.records.ids import CommitId
from gitledger.store.early_look import LARGE_INDEX_BYTES, EarlyLook
from gitledger.store.git import Git
from gitledger.store.git_environment import AGENT_VARIABLES
from gitledger.store.index_file import Indexed, read_index
from gitledger.store.meanwhile import Meanwhile
from gitledger.store.status_words import NO_LOCKS, settings_for, status_words

__all__ = ["Survey", "WorkTreeState", "literal_prefix", "survey", "work_tree_state"]

_SECOND_NS = 1_000_000_000
_FIELDS_BEFORE_PATH = {"1": 8, "2": 9, "u": 10}
_CACHE_MARKS = ("CACHEDIR.TAG", "pyvenv.cfg")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTreeState:
    """HEAD's commit (None before the first one) and what differs from it; paths from the root, sorted.

    `changed` holds tracked paths that differ in the index or in the work tree, submodules that moved, and tracked
    changes inside of them. `untracked` holds files (and, ending in `/`, folders) that the tree's `.gitignore`
    files don't cover.
    """

    head: CommitId | None
    changed: tuple[str, ...]
    untracked: tuple[str, ...]

    @property
    def dirty(self) -> bool:
        """Whether anything differs."""
        return bool(self.changed or self.untracked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a look at the work tree found; what counts of `self_ignored` and `absent` is for scopes to decide.

    `self_ignored` holds folders that ignore themselves; `absent` tracked files that a sparse checkout left out,
    and submodules (ending in `/`) that were never fetched.
    """

    root: Path
    seen: WorkTreeState
    self_ignored: tuple[str, ...]
    absent: tuple[str, ...]

    def edits(self, scope_paths: Sequence[str]) -> WorkTreeState:
        """Return what was edited, for the declared paths and patterns of `scope_paths`, from the root."""
        hidden = [folder for folder in self.self_ignored if _in_scope(self.root, folder, scope_paths)]
        untracked = tuple(sorted({*self.seen.untracked, *hidden}))
        return replace(self.seen, untracked=untracked) if hidden else self.seen

    def state(self, scope_paths: Sequence[str], *, names: Collection[str] = ()) -> WorkTreeState:
        """Return the state for a run with these declared paths: edits, and inputs that are not here.

        `names` are names of files that are inputs wherever they lie. A file that a sparse checkout left out, or a
        submodule that was never fetched, is no edit. A run that should have had it ran without an input all the
        same; tests in it were not even collected.
        """
        edited = self.edits(scope_paths)
        missing = [path for path in self.absent if path.rpartition("/")[2] in names or _reaches(scope_paths, path)]
        return replace(edited, changed=tuple(sorted({*edited.changed, *missing}))) if missing else edited


def work_tree_state(git: Git, *, scope_paths: Sequence[str] = (), names: Collection[str] = ()) -> WorkTreeState:
    """Return the state of the work tree that `git.folder` lies in, for a run of a shard with these declared paths.

    `scope_paths` are the declared paths and patterns, from the root. A folder that ignores itself (its own
    `.gitignore` is `*`: caches, virtual environments) is dirt only where one of them reaches into it, and so is a
    tracked file that is not checked out; of the latter also those called one of `names`, wherever they lie. Raises
    `UsageError` `no-work-tree`, and `StoreError` where git can't tell.
    """
    return survey(git).state(scope_paths, names=names)


def survey(git: Git, begun: EarlyLook | None = None) -> Survey:
    """Return what the work tree that `git.folder` lies in holds; raises as `work_tree_state` does.

    `begun` is a look that began before the repository was opened; it counts where it is one at this repository.
    """
    # A run may have configured filters and hooks that git would start now, with the recorder's environment.
    keyless = {name: value for name, value in git.env.items() if name not in AGENT_VARIABLES}
    top = replace(git, folder=_top(git), env=keyless)
    has_rules = _has_rules_of_its_own(top)
    if begun is not None and (has_rules or not begun.is_at(top.git_dir, top.folder)):
        begun.abandon()
        begun = None
    if has_rules:
        with Meanwhile(partial(_untracked, top)) as others, Meanwhile(partial(_ignored, top)) as covered:
            tracked = _tracked(top, walk=False)
        untracked, ignored = others.result(), covered.result()
    else:
        tracked = _tracked(top, walk=True, begun=begun)
        untracked, ignored = tracked.untracked, tracked.ignored
    rules, folders = _self_ignored(top, ignored)
    return Survey(
        root=top.folder,
        seen=WorkTreeState(
            head=tracked.head,
            changed=tuple(sorted(set(tracked.changed))),
            untracked=tuple(sorted({*untracked, *rules})),
        ),
        self_ignored=folders,
        absent=tuple(sorted(tracked.absent)),
    )


def _top(git: Git) -> Path:
    if git.work_tree is not None:
        return git.work_tree
    done = git.run("rev-parse", "--show-toplevel", statuses=frozenset({0, 128}))
    if done.status or not done.text:
        raise UsageError("no-work-tree", f"{git.folder} is in no work tree ({done.reason})", "run it in a clone")
    return Path(done.text)


def _paths(git: Git, *args: str) -> list[str]:
    done = git.run(*settings_for(git.folder), *args, "-z", env=NO_LOCKS)
    return [path for path in done.stdout.decode("utf-8", "surrogateescape").split("\0") if path]


def _index(git: Git) -> list[str]:
    """Return the index as lines that `Indexed.of` reads; of tens of thousands hardly one needs to be."""
    return _paths(git, "ls-files", "-v", "--stage")


# --- tracked changes -------------------------------------------------------------------------------------------


class _Status(NamedTuple):
    """What `git status` said: HEAD, tracked changes, and untracked and ignored paths where they were asked for."""

    head: CommitId | None
    changed: list[str]
    untracked: list[str]
    ignored: list[str]


class _Tracked(NamedTuple):
    """HEAD, every tracked change, what a sparse checkout or an absent submodule left out; paths from here.

    `untracked` and `ignored` are what one walk with the comparison found, nothing where none was asked for.
    """

    head: CommitId | None
    changed: list[str]
    absent: list[str]
    untracked: list[str]
    ignored: list[str]


def _tracked(git: Git, *, walk: bool, begun: EarlyLook | None = None) -> _Tracked:
    """Return what can be said of tracked files, those inside submodules included."""
    if git.git_dir is not None:
        original = git.git_dir / "index"
    else:
        original = git.folder / git.run("rev-parse", "--git-path", "index").text
    found, submodules = _compared(git, original, walk=walk, begun=begun)
    for path in submodules:
        inside = git.folder / path
        if (inside / ".git").exists():
            below = _tracked_below(git, path)
            found.changed.extend(f"{path}/{changed}" for changed in below.changed)
            found.absent.extend(f"{path}/{absent}" for absent in below.absent)
        else:
            found.absent.append(f"{path}/")
    return found


def _tracked_below(git: Git, path: str) -> _Tracked:
    """Return what can be said of a submodule: of the files that lie here, whatever its `core.worktree` says."""
    inside = git.folder / path
    try:
        return _tracked(replace(git, folder=inside, git_dir=None, work_tree=inside), walk=False)
    except StoreError as error:
        if error.code != "git-failed":
            raise
        way = f"mend {ascii(f'{path}/.git')[1:-1]}, or take it away and `git submodule update --init`"
        text = f"submodule {ascii(path)[1:-1]}: {error.message}"
        raise StoreError("git-failed", text, error.hint or way) from error


def _compared(git: Git, original: Path, *, walk: bool, begun: EarlyLook | None) -> tuple[_Tracked, Sequence[str]]:
    """Return what can be said of tracked files outside submodules, and the paths of those.

    Of a large index git makes its comparison while we look for entries that it would have to compare anew; hardly
    ever are there any. What it said of an index that was written meanwhile doesn't count.
    """
    before = _stamp(original) if begun is None else begun.index
    if before is None or before.st_size < LARGE_INDEX_BYTES:
        doubtful, absent, submodules = _look_into(git, original)
        found = _status(git, original, doubtful, walk=walk)
    else:
        with Meanwhile(partial(_asked, git, begun, walk=walk)) as asked:
            doubtful, absent, submodules = _look_into(git, original)
        found = asked.result()
        after = _stamp(original)
        same = after is not None and (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
        if doubtful or not same:
            found = _status(git, original, doubtful, walk=walk)
    return _Tracked(found.head, found.changed, absent, found.untracked, found.ignored), submodules


def _asked(git: Git, begun: EarlyLook | None, *, walk: bool) -> _Status:
    said = None if begun is None else begun.said()
    return _run_status(git, {}, walk=walk) if said is None else _told(said)


def _stamp(index: Path) -> os.stat_result | None:
    try:
        return index.stat()
    except OSError:
        return None


def _status(git: Git, original: Path, doubtful: Sequence[Indexed], *, walk: bool) -> _Status:
    if not doubtful:
        return _run_status(git, {}, walk=walk)
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="gitledger-index-") as folder:
        copy = Path(folder) / "index"
        shutil.copy2(original, copy)
        env = {"GIT_INDEX_FILE": str(copy)}
        lines = (f"{entry.mode} {entry.oid} 0\t{entry.path}\0" for entry in doubtful)
        git.run(
            *(*settings_for(git.folder), "update-index", "-z", "--index-info"),
            stdin="".join(lines).encode("utf-8", "surrogateescape"),
            env=env,
        )
        return _run_status(git, env, walk=walk)


def _look_into(git: Git, original: Path) -> tuple[list[Indexed], list[str], Sequence[str]]:
    """Return the index entries whose content has to be compared, paths left out, and the paths of submodules."""
    try:
        # Asked before it is read: if it is written meanwhile, more is in doubt.
        written_ns = _written_ns(original.stat())
        suspects = read_index(original.read_bytes(), written_s=written_ns // _SECOND_NS)
    except FileNotFoundError:
        return [], [], ()
    except OSError:  # git will say what is wrong with it
        written_ns, suspects = 0, None
    if suspects is None:
        try:
            entries = [Indexed.of(line) for line in _index(git)]
        except StoreError as error:
            error.hint = _remade(git, original)
            raise
        merged = [entry for entry in entries if entry.stage == "0"]
        submodules: Sequence[str] = [entry.path for entry in entries if entry.mode == "160000"]
    else:
        merged, submodules = list(suspects.entries), suspects.submodules
    doubtful, absent = [], []
    for entry in merged:
        found = _stat_of(git.folder, entry.path)
        if found is None and entry.tag in "Ss":
            absent.append(entry.path)
        elif _is_doubtful(entry, found, written_ns):
            doubtful.append(entry)
    return doubtful, absent, submodules


def _remade(git: Git, index: Path) -> str:
    """Return the command that makes a damaged index anew; what was staged is lost, and nothing else."""
    import shlex

    return f"rm {shlex.quote(str(index))} && git -C {shlex.quote(str(git.folder))} reset (if it is damaged)"


def _written_ns(index: os.stat_result) -> int:
    """Return when an index was written; 0 where its mtime was set to a later time, and tells nothing."""
    return index.st_mtime_ns if index.st_mtime_ns <= index.st_ctime_ns else 0


def _stat_of(root: Path, path: str) -> os.stat_result | None:
    try:
        return os.lstat(f"{root}/{path}")
    except OSError:
        return None


def _is_doubtful(entry: Indexed, found: os.stat_result | None, index_written_ns: int) -> bool:
    """Tell whether git might take an edit of the file for none, so that its content has to be compared.

    That is so for a flagged entry and for a file touched since the index was written: git compares times in whole
    seconds, and an mtime can be set back. What was touched before that, in the second that the index notes, shows
    by the fraction of that second; where the index was not read here, by an mtime of another second. Unmerged ones
    are dirty anyway.
    """
    if found is None:
        return entry.tag == "h"
    if found.st_ctime_ns >= index_written_ns or entry.tag == "S" or entry.tag.islower():
        return True
    if entry.changed_ns is None:
        return found.st_mtime_ns // _SECOND_NS != found.st_ctime_ns // _SECOND_NS
    noted_s, fraction_ns = divmod(entry.changed_ns, _SECOND_NS)
    is_the_same = found.st_ctime_ns == entry.changed_ns and fraction_ns > 0  # not of whole seconds alone
    return found.st_ctime_ns // _SECOND_NS == noted_s and not is_the_same


def _run_status(git: Git, env: dict[str, str], *, walk: bool) -> _Status:
    done = git.run(*status_words(git.folder, walk=walk), env=NO_LOCKS | env)
    return _told(done.stdout)


def _told(status: bytes) -> _Status:
    head: CommitId | None = None
    found = _Status(None, [], [], [])
    lines = iter(status.decode("utf-8", "surrogateescape").split("\0")[:-1])
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind in _FIELDS_BEFORE_PATH:
            found.changed.append(line.split(" ", _FIELDS_BEFORE_PATH[kind])[-1])
            if kind == "2":
                found.changed.append(next(lines, ""))
        elif kind == "?":
            found.untracked.append(rest)
        elif kind == "!":
            found.ignored.append(rest)
        elif rest.startswith("branch.oid ") and not rest.endswith("(initial)"):
            head = CommitId(rest.removeprefix("branch.oid "))
        elif kind != "#":
            raise StoreError("git-unreadable", "git status printed a line of an unknown kind", "update git-ledger")
    return found._replace(head=head)


# --- untracked files -------------------------------------------------------------------------------------------


def _has_rules_of_its_own(git: Git) -> bool:
    """Tell whether this clone ignores files by rules that `git status` can't be told to leave out."""
    if git.git_dir is None:
        return True
    pointer = git.git_dir / "commondir"
    try:
        common = git.git_dir / pointer.read_text().strip() if pointer.exists() else git.git_dir
        text = (common / "info" / "exclude").read_bytes()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return any(line.strip() and not line.startswith(b"#") for line in text.splitlines())


def _untracked(git: Git) -> list[str]:
    """Return untracked files that no `.gitignore` covers; `ls-files` reads no other exclusions unless asked to."""
    return _paths(git, "ls-files", "--others", "--exclude-per-directory=.gitignore")


def _ignored(git: Git) -> list[str]:
    """Return untracked files and folders that a `.gitignore` covers; nothing below such a folder."""
    return _paths(*(git, "ls-files", "--others", "--ignored", "--directory", "--exclude-per-directory=.gitignore"))


def _self_ignored(git: Git, ignored: Iterable[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return untracked `.gitignore` files that hide themselves, and folders that hide themselves as a whole.

    A rule that isn't part of the tree covers nothing, except for a folder whose whole rule is `*`, that holds
    nothing tracked and that no declared path reaches into. git doesn't descend into folders that a rule from
    above covers, so whatever this finds stands in a folder of its own.
    """
    found = [path for path in ignored if path == ".gitignore" or path.endswith("/.gitignore")]
    tracked = _tracked_folders(_index(git)) if found else frozenset()
    rules, folders = [], []
    for rule in found:
        folder = rule.removesuffix(".gitignore")
        if not folder or folder in tracked or not _ignores_everything(git.folder / rule):
            rules.append(rule)
        else:
            folders.append(folder)
    return rules, tuple(folders)


def _tracked_folders(index: Iterable[str]) -> frozenset[str]:
    folders: set[str] = set()
    for line in index:
        parent = line.partition("\t")[2].rpartition("/")[0]
        while parent and f"{parent}/" not in folders:
            folders.add(f"{parent}/")
            parent = parent.rpartition("/")[0]
    return frozenset(folders)


def _ignores_everything(rule: Path) -> bool:
    try:
        lines = rule.read_bytes().splitlines()
    except OSError:
        return False
    return [line.strip() for line in lines if line.strip() and not line.startswith(b"#")] == [b"*"]


def _in_scope(root: Path, folder: str, scope_paths: Sequence[str]) -> bool:
    """Return whether a declared path reaches into `folder` (which ends in `/`).

    A path or pattern that begins at the root names no folder in particular: there, caches and virtual
    environments that say what they are stay out.
    """
    prefixes = [literal_prefix(path) for path in scope_paths]
    if "" in prefixes and not any((root / folder / mark).is_file() for mark in _CACHE_MARKS):
        return True
    return any(f"{prefix}/".startswith(folder) or folder.startswith(f"{prefix}/") for prefix in prefixes if prefix)


def _reaches(scope_paths: Sequence[str], path: str) -> bool:
    """Tell whether an absent path (of a submodule: ending in `/`) may be an input of what declares `scope_paths`.

    Exclusions and what comes behind a wildcard are not looked at: in doubt it may.
    """
    prefixes = [literal_prefix(scope) for scope in scope_paths]
    is_below = any(not prefix or f"{path}/".startswith(f"{prefix}/") for prefix in prefixes)
    return is_below or (path.endswith("/") and any(f"{prefix}/".startswith(path) for prefix in prefixes))


def literal_prefix(pattern: str) -> str:
    """Return the folders and name of a path or pattern up to its first wildcard; `` for the root."""
    plain = []
    for part in pattern.removeprefix("!").split("/"):
        if any(mark in part for mark in "*?[\\"):
            break
        if part not in {"", "."}:
            plain.append(part)
    return "/".join(plain)
