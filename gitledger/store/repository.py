"""A repository found as git finds it, and what the other rooms ask of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import field
from io import BytesIO
from pathlib import Path
from typing import cast

from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError, StoreError, UsageError
from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.records.tree import FILE_MODES, MODE_FOLDER, MODE_SYMLINK, CommitInfo, TreeEntry
from gitledger.store.early_look import FACTS_WORDS, SETTINGS_WORDS, EarlyLook
from gitledger.store.encoding import ID_BYTES, object_missing, refuse_unsound
from gitledger.store.git import Git, GitDone
from gitledger.store.history import ReadParents, distances, is_cut, listed_after, rings
from gitledger.store.objects import GitObjects, Identity
from gitledger.store.ref_files import OddRef

__all__ = ["Repository", "open_repository"]

_DISCOVERY = ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_CEILING_DIRECTORIES")
_FACTS = 4
"""Lines of what git says of a repository, the top of its work tree apart."""
_HEADS = "refs/heads/"
_TOO_OLD = "git --version (2.39 or newer is needed)"
_REF_PLACES = ("refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}", "refs/remotes/{}/HEAD")
"""Where git looks for a short name, and in what order (gitrevisions(7))."""
_REF_PART = r"[^~^@:]*(?:@(?!\{)[^~^@:]*)*"
"""What of a revision can be a ref: all before `~`, `^`, `:` and `@{`."""
_PSEUDO_REF = r"\A[A-Z_]+\Z"
_REF_FILE = rb"(?:[0-9a-fA-F]{40}|ref:)"
_FEW_COMMITS = 2_000
"""How many commits are read one by one before git is asked for all of a history, which costs it as much."""
_MANY_BLOBS = 1_000
"""From how many on git is asked in which order to read them, which takes it as long as reading hundreds."""
_ALL_OBJECTS = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
_MAX_LISTED_BYTES = 256 << 20
_ANY = frozenset({0, 1, 128})
_ANY_END = frozenset(range(-64, 256))
MAX_REV_CHARACTERS = 4_096
"""What git is asked to read as the name of a commit; its own matching of refs overflows the stack on more."""
_SHORT_ID = r"\A[0-9a-f]{4,63}\Z"
_CRUD = " .,:;<>\"\\'" + "".join(map(chr, range(32)))
Config = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """One repository.

    `git_dir` is this worktree's own git folder and `common_dir` the one that all worktrees share; mostly they are
    one. `worktree` is None in a bare repository. `git` runs git here. `boundary` holds the commits whose parents a
    shallow clone cut off. `settings` is git's configuration as it stood when the repository was opened.
    """

    git_dir: Path
    common_dir: Path
    worktree: Path | None
    objects: GitObjects
    object_format: str
    git: Git
    boundary: frozenset[CommitId] = field(repr=False)
    settings: Config = field(repr=False)

    @property
    def is_shallow(self) -> bool:
        """Tell whether history is cut off somewhere."""
        return bool(self.boundary)

    def resolve(self, rev: str) -> CommitId:
        """Return the commit that `rev` names as git reads it, tags peeled.

        Raises `UsageError` `unknown-commit`, and `ambiguous-ref` where git would choose among several refs: it
        prefers a tag `origin/main` to the remote's branch, and whoever may push could push such a tag. Raises
        `StoreError` `object-missing` where `rev` is known and what it names is not there, or damaged.
        """
        commit = CommitId(rev)
        if len(rev) > MAX_REV_CHARACTERS:
            raise self._unknown(rev)
        if len(rev) == 2 * ID_BYTES[self.object_format] and self.objects.read_parents(commit) is not None:
            return commit
        self._refuse_ambiguous(rev)
        named = self._parsed(rev)
        peeled = named and self._parsed(f"{named}^{{commit}}")
        if not peeled:
            self._refuse_missing(named, rev)
            raise self._unknown(rev)
        return CommitId(peeled)

    def _refuse_missing(self, named: str, rev: str) -> None:
        """Raise where a name leads to the id of an object that can't be read."""
        is_id = len(named) == 2 * ID_BYTES[self.object_format]
        if is_id and named != rev and self.git.run("cat-file", "-e", named, statuses=_ANY).status:
            raise object_missing("object", named)

    def _refuse_ambiguous(self, rev: str) -> None:
        name = re.match(_REF_PART, rev)[0]  # type: ignore[index]  # it matches anything
        if not name or name == "HEAD" or name.startswith(("refs/", "-")) or "\0" in name:
            return
        places = [place.format(name) for place in _REF_PLACES]
        # Patterns match folders too: only what is spelled out counts.
        done = self.git.run("for-each-ref", "--format=%(objectname) %(refname)", "--", *places)
        found = {
            ref: oid for oid, _, ref in (line.partition(" ") for line in done.text.splitlines()) if ref in places
        }
        others = self._files_named(name) if found or not re.match(_PSEUDO_REF, name) else set()
        others |= self._objects_named(name) - set(found.values()) if found and re.match(_SHORT_ID, name) else set()
        if len({*found.values(), *others}) > 1 or (others and not found):
            # Whoever may push may have pushed either, so none is proposed; a tracking ref is the likelier.
            names = sorted(found, key=lambda ref: (not ref.startswith("refs/remotes/"), ref))
            what = ", ".join([*names, *sorted(others)])
            hint = f"give the full name of what you mean, beginning with refs/{'remotes/' if '/' in name else ''}"
            raise UsageError("ambiguous-ref", f"{rev!a} names more than one thing: {what}", hint)

    def _files_named(self, name: str) -> set[str]:
        """Return files in the repository's own folders that git would read as the ref `name`, before any other."""
        places = {folder / name for folder in (self.git_dir, self.common_dir)}
        return {str(place) for place in places if _is_ref_file(place)}

    def _objects_named(self, short: str) -> set[str]:
        return set(self.git.run("rev-parse", f"--disambiguate={short}", statuses=_ANY).text.split())

    def _parsed(self, rev: str) -> str:
        if not rev or rev.startswith("-") or "\0" in rev:
            return ""
        return self.git.run("rev-parse", "--verify", "-q", rev, statuses=_ANY).text.strip()

    def _unknown(self, rev: str) -> UsageError:
        if near := self._nearest(rev):
            return UsageError(
                "unknown-commit", f"{rev!a} names no commit of this repository", f"did you mean {near}?"
            )
        has_remote = any(key.startswith("remote.") and key.endswith(".url") for key in self.settings)
        hint = (
            "git fetch" if has_remote else "git remote add origin URL" if "/" in rev else "git log --all --oneline"
        )
        hint = "git fetch --unshallow" if self.is_shallow else hint
        return UsageError("unknown-commit", f"{rev!a} names no commit of this repository", hint)

    def _nearest(self, rev: str) -> str:
        """Return the branch or tag, local or of a remote, of which `rev` is a slip; "" where none is near."""
        name = re.match(_REF_PART, rev)[0]  # type: ignore[index]  # it matches anything
        if not name or len(rev) > MAX_REV_CHARACTERS or rev.startswith("-"):
            return ""
        from difflib import get_close_matches  # for errors alone

        places = ("refs/heads", "refs/tags", "refs/remotes")
        listed = self.git.run("for-each-ref", "--format=%(refname)", *places).text.splitlines()
        known = {short: ref for ref in listed for short in (ref, ref.split("/", 2)[2])}
        near = get_close_matches(name, [one for one in known if one != name], n=1, cutoff=0.75)
        return f"{near[0]}{rev[len(name) :]}" if near and name not in known else ""

    def commit(self, commit: CommitId) -> CommitInfo:
        """Return a commit; raises `UsageError` `unknown-commit` where this clone lacks it."""
        info = self.objects.read_commit(commit)
        if info is None:
            raise self._unknown(commit)
        return info

    def head(self) -> CommitId | None:
        """Return the commit that is checked out in this worktree, None before the first one."""
        return self.objects.read_ref("HEAD")

    def branch(self) -> str | None:
        """Return the short name of the branch that is checked out, None for a detached HEAD."""
        name = self._named_by_head() or ""
        return name.removeprefix(_HEADS) if name.startswith(_HEADS) else None

    def _named_by_head(self) -> str | None:
        from gitledger.store.late_libgit import LateLibgit

        if isinstance(self.objects, LateLibgit):
            with suppress(OddRef):
                return self.objects.named_by_head()
        return self.git.run("symbolic-ref", "-q", "HEAD", statuses=frozenset({0, 1})).text

    def config(self, key: str) -> str | None:
        """Return the value of a git configuration key, the last of several, None where it is not set."""
        values = self.config_all(key)
        return values[-1] if values else None

    def config_all(self, key: str) -> tuple[str, ...]:
        """Return all values of a git configuration key, least specific first; a bare key reads `true`."""
        return self.settings.get(_canonical(key), ())

    def identity(self, env: Mapping[str, str]) -> Identity:
        """Return whom git would name as an author: GIT_AUTHOR_*, author.*, user.*, EMAIL.

        What git would guess from the machine's user database is not taken. Raises `UsageError` `no-identity`.
        """
        name = env.get("GIT_AUTHOR_NAME") or self.config("author.name") or self.config("user.name")
        email = env.get("GIT_AUTHOR_EMAIL") or self.config("author.email") or self.config("user.email")
        identity = Identity(name=_clean(name), email=_clean(email or env.get("EMAIL")))
        asked = (("user.name", identity.name, '"Your Name"'), ("user.email", identity.email, "you@example.org"))
        if lacking := {key: example for key, value, example in asked if not value}:
            hint = " && ".join(f"git config {key} {example}" for key, example in lacking.items())
            raise UsageError("no-identity", f"git has no {' and no '.join(lacking)} to write commits with", hint)
        return identity

    def file_at(self, commit: CommitId, path: str) -> bytes | None:
        """Return the content of a regular file in a commit's tree, None where nothing stands at `path`.

        Raises `UsageError` `unknown-commit`, and `StoreError` `object-missing` where the tree names an object that
        this clone lacks: absent and not at hand are different things. So is what is there and is no regular file
        (`ConfigError` `file-malformed`): a checkout reads something there, and links are not followed here.
        """
        tree = self.commit(commit).tree
        *folders, name = path.split("/")
        for depth, folder in enumerate(folders, 1):
            found = self._entry(tree, folder)
            if found is None or found.mode in FILE_MODES:  # below a file there is nothing
                return None
            if found.mode != MODE_FOLDER:
                raise _no_regular_file(commit, "/".join(folders[:depth]), found)
            tree = TreeId(found.oid)
        entry = self._entry(tree, name)
        if entry is None:
            return None
        if entry.mode not in FILE_MODES:
            raise _no_regular_file(commit, path, entry)
        content = self.objects.read_blob(BlobId(entry.oid))
        if content is None:
            raise object_missing("blob", entry.oid)
        return content

    def _entry(self, tree: TreeId, name: str) -> TreeEntry | None:
        entries = self.objects.read_tree(tree)
        if entries is None:
            raise object_missing("tree", tree)
        refuse_unsound(tree, entries)
        return next((entry for entry in entries if entry.name == name), None)

    def distances(self, target: CommitId, wanted: Collection[CommitId]) -> dict[CommitId, int]:
        """Return the least number of parent edges from `target` to each of `wanted` that is it or an ancestor.

        Commits whose ancestry this clone doesn't know are not in the result.
        """
        return distances(self._parents(target), self.boundary, target, wanted)

    def rings(self, target: CommitId) -> Iterator[list[CommitId]]:
        """Yield `target` and its ancestors by distance, of those that are here and whose ancestry is known."""
        return rings(self._parents(target), self.boundary, target)

    def _parents(self, target: CommitId) -> ReadParents:
        return listed_after(_FEW_COMMITS, self.objects.read_parents, lambda: self._history(target))

    def _history(self, target: CommitId) -> Mapping[CommitId, str]:
        """Return the parents of all ancestors of `target`, with spaces between; nothing where git fails at any.

        Those at the boundary of a shallow clone are left out: git would say that they have none.
        """
        try:
            listed = self.git.run("-c", "core.commitGraph=false", "rev-list", "--parents", target)
        except StoreError:
            return {}
        # Text stays text: a hundred thousand tuples would cost more than the walk.
        end = 2 * ID_BYTES[self.object_format]
        known = {line[:end]: line[end + 1 :] for line in listed.stdout.decode("ascii").splitlines()}
        for commit in self.boundary:
            known.pop(commit, None)
        return cast("dict[CommitId, str]", known)

    def in_pack_order(self, blobs: Set[BlobId]) -> list[BlobId]:
        """Return many blobs in the order in which they lie in packs: deltas are then unpacked after their bases.

        Where git can't say, and for blobs that are not packed, any order will do.
        """
        found: dict[BlobId, None] = {}
        if len(blobs) >= _MANY_BLOBS:
            with suppress(StoreError):
                listed = self.git.run(*_ALL_OBJECTS, limit=_MAX_LISTED_BYTES).stdout
                wanted = {blob.encode("ascii"): blob for blob in blobs}
                lines = (line.rstrip(b"\n") for line in BytesIO(listed))
                found = dict.fromkeys(wanted[line] for line in lines if line in wanted)
        return [*found, *sorted(blobs - found.keys())]

    def history_is_cut(self, target: CommitId) -> bool:
        """Tell whether a shallow clone cut off some of the history of `target`."""
        return self.is_shallow and is_cut(self.objects.read_parents, self.boundary, target)


def open_repository(path: Path, *, env: Mapping[str, str], early: EarlyLook | None = None) -> Repository:
    """Return the repository that git finds from folder `path` with `env` (GIT_DIR and its kin included).

    `early` may have asked git already.

    Raises `UsageError`: `not-a-repository`, `repository-not-owned` (git's safe.directory), `not-a-folder`, and
    `repository-unsupported`.
    """
    finder = Git(path, env)
    given = {name: env[name] for name in _DISCOVERY if env.get(name)}
    inside = _asked_early(early, FACTS_WORDS, path) or finder.run(*FACTS_WORDS, env=given, statuses=_ANY_END)
    facts = inside.text.split("\n")
    if len(facts) < _FACTS:
        raise _not_found(path, inside.reason)
    if len(facts) > _FACTS + (inside.status == 0):
        raise UsageError(
            "repository-unsupported",
            f"{path!a}: the path of the repository holds a line break",
            "move it elsewhere",
        )
    shallow, object_format, git_dir, common = facts[:_FACTS]
    top = facts[_FACTS] if len(facts) > _FACTS else None
    common_dir = (path / common).resolve()
    worktree = Path(top) if top is not None else None
    git = Git(worktree or Path(git_dir), env, git_dir=Path(git_dir), work_tree=worktree)
    settings = _read_config(_asked_early(early, SETTINGS_WORDS, path) or git.run(*SETTINGS_WORDS))
    return Repository(
        git_dir=Path(git_dir),
        common_dir=common_dir,
        worktree=worktree,
        objects=_back_end(git, common_dir, object_format, settings),
        object_format=object_format,
        git=git,
        boundary=_boundary(common_dir) if shallow == "true" else frozenset(),
        settings=settings,
    )


def _back_end(git: Git, common_dir: Path, object_format: str, settings: Config) -> GitObjects:
    """Return the back end that can read this repository; the one place where it is chosen.

    libgit2 1.9 opens neither sha256 nor reftable repositories, and never fetches the objects that a partial clone
    left at its remote: they would look as if they were missing. What else it refuses, git may still read.
    """
    promisors = (
        key for key, values in settings.items() if key.startswith("remote.") and key.endswith(".promisor")
    )
    needs_git = (
        object_format != "sha1"
        or settings.get("extensions.refstorage", ("files",))[-1] != "files"
        or "extensions.partialclone" in settings
        or any(promisors)
    )
    if needs_git or git.git_dir is None:
        from gitledger.store.gitplumbing import PlumbingObjects

        return PlumbingObjects(git)
    from gitledger.store.late_libgit import LateLibgit

    return LateLibgit(git, git.git_dir, common_dir)


def _not_found(path: Path, reason: str) -> UsageError:
    if "not a git repository" in reason:
        return UsageError(
            "not-a-repository", f"{path} is not inside a git repository", "git init (or give -C DIR)"
        )
    if "dubious ownership" in reason:
        hint = f"git config --global --add safe.directory {path}"
        return UsageError("repository-not-owned", f"the repository at {path} is owned by another user", hint)
    return UsageError("repository-unsupported", f"git can't read the repository at {path}: {reason}", _TOO_OLD)


def _asked_early(early: EarlyLook | None, words: tuple[str, ...], path: Path) -> GitDone | None:
    said = None if early is None else early.answer(words, path)
    return None if said is None else GitDone(command=words[0], status=0, stdout=said, stderr=b"")


def _read_config(listed: GitDone) -> Config:
    """Return git's whole configuration, includes and environment as git has them."""
    values: dict[str, tuple[str, ...]] = {}
    for item in listed.stdout.split(b"\0"):
        key, newline, value = item.decode("utf-8", "surrogateescape").partition("\n")
        if key:
            values[key] = (*values.get(key, ()), value if newline else "true")
    return values


def _canonical(key: str) -> str:
    """Return a key as git lists it: section and last part in lower case, the part between as it is."""
    section, _, rest = key.partition(".")
    middle, dot, name = rest.rpartition(".")
    return f"{section.lower()}.{middle}{dot}{name.lower()}"


def _is_ref_file(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return bool(re.match(_REF_FILE, file.read(70)))
    except (OSError, ValueError):
        return False


def _boundary(common_dir: Path) -> frozenset[CommitId]:
    try:
        text = (common_dir / "shallow").read_text("ascii")
    except (OSError, ValueError) as error:
        raise StoreError(
            "object-corrupt", f"{common_dir / 'shallow'} can't be read: {error}", "git fsck"
        ) from error
    return frozenset(map(CommitId, text.split()))


def _no_regular_file(commit: CommitId, path: str, entry: TreeEntry) -> ConfigError:
    """Return the error of an entry that stands where a file, or the folder of one, would be read."""
    what = {MODE_SYMLINK: "a symbolic link", MODE_FOLDER: "a folder"}.get(entry.mode, "a submodule")
    message = f"commit {commit[:12]}: {path!a} is {what} and no regular file"
    return ConfigError("file-malformed", message, f"commit the file itself in place of {path!a}")


def _clean(text: str | None) -> str:
    """Return a name or address as git would put it into a commit (ident.c: crud at the ends, and no brackets)."""
    return re.sub(r"[\x00-\x1f<>]", "", (text or "").strip(_CRUD))
