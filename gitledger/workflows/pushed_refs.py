"""What a pre-push hook can see of the push: git hands it the refs on standard input, and hook managers hide some.

git itself, husky, and lefthook with `use_stdin: true` pass everything on. pre-commit and prek give no input and no
arguments, but `PRE_COMMIT_*` variables of the first ref; for a branch that is new on the remote they leave out its
commits. Input that is empty beside arguments means that nothing is pushed, or that somebody else has read it:
lefthook without `use_stdin`, or what ran before in the same hook (`git lfs pre-push "$@"`). Whatever is hidden is
said, since nobody can judge it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError
from gitledger.store.repository import Repository
from gitledger.workflows.pre_push import MODE_KEY, PushLine, parse_push
from gitledger.workflows.push_rules import known_remote

__all__ = ["SeenPush", "seen_push"]

_NONE = "0" * 40
_READ = "handed no refs: nothing is pushed, or what runs before this hook has read them"


@dataclass(frozen=True, slots=True)
class SeenPush:
    """The remote that is pushed to, the refs that can be seen, and sentences about those that can't.

    `remote` is its name, else its URL; `url` its URL as git resolved it, empty where that is hidden.
    """

    remote: str
    lines: tuple[PushLine, ...]
    messages: tuple[str, ...] = ()
    url: str = ""


def seen_push(repo: Repository, text: str, arguments: Sequence[str], environ: Mapping[str, str]) -> SeenPush:
    """Return the push as far as it can be seen; raises `UsageError` `bad-hook-input`, and where HEAD is no commit.

    Input counts first, then the variables of pre-commit. Where neither is there, HEAD stands for what is pushed,
    for to see nothing must not mean that there is nothing to judge; unless there are arguments, as there are in an
    empty push of git's, and the remote has HEAD already.
    """
    remote = (arguments[0] if arguments else environ.get("PRE_COMMIT_REMOTE_NAME")) or "origin"
    url = arguments[1] if len(arguments) > 1 else environ.get("PRE_COMMIT_REMOTE_URL", "")
    lines = parse_push(text)
    if lines or repo.config(MODE_KEY) == "off":
        return SeenPush(remote, lines, url=url)
    local, to = environ.get("PRE_COMMIT_LOCAL_BRANCH"), environ.get("PRE_COMMIT_REMOTE_BRANCH")
    if local and to:
        commit = environ.get("PRE_COMMIT_TO_REF") or _commit(repo, local)
        line = PushLine(local, commit, to, environ.get("PRE_COMMIT_FROM_REF") or _NONE)
        first = "pre-commit shows the first ref of a push, and only that one is judged"
        return SeenPush(remote, (line,), (first,), url)
    hidden = "the hook manager hides what is pushed; HEAD is judged in its place (lefthook: use_stdin: true)"
    if arguments and "PRE_COMMIT" not in environ:
        known = known_remote(repo, remote, url)
        if not _lacks(repo, known, "HEAD"):
            return SeenPush(remote, (), (_READ,) if _lacks(repo, known, "--branches") else (), url)
        hidden = f"{_READ}; HEAD, which is not at {remote}, is judged in its place"
    branch = repo.branch()
    ref = "HEAD" if branch is None else f"refs/heads/{branch}"
    return SeenPush(remote, (PushLine(ref, _commit(repo, "HEAD"), ref, _NONE),), (hidden,), url)


def _lacks(repo: Repository, remote: str | None, what: str) -> bool:
    """Tell whether `what` has a commit that the remote did not have when this clone last looked."""
    there = () if remote is None else ("--not", f"--remotes={remote}")
    done = repo.git.run("rev-list", "--max-count=1", what, *there, "--", statuses=frozenset({0, 128}))
    return bool(done.text)


def _commit(repo: Repository, name: str) -> str:
    """Return the object that a local ref names, all zeros for none: a deletion."""
    try:
        return repo.resolve(name)
    except UsageError as error:
        if error.code != "unknown-commit":
            raise
        return _NONE
