"""What a pre-push hook can see of the push: git hands it the refs on standard input, and hook managers hide some.

git itself, husky, and lefthook with `use_stdin: true` pass everything on. pre-commit and prek give no input and no
arguments, but `PRE_COMMIT_*` variables of the first ref; for a branch that is new on the remote they leave out its
commits. Whatever is hidden is said, since nobody can judge it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError
from gitledger.store.repository import Repository
from gitledger.workflows.pre_push import PushLine, parse_push

__all__ = ["SeenPush", "seen_push"]

_NONE = "0" * 40


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

    Input counts first, then the variables of pre-commit. Where neither is there, though git always gives at least
    arguments, HEAD stands for what is pushed: to see nothing must not mean that there is nothing to judge.
    """
    remote = (arguments[0] if arguments else environ.get("PRE_COMMIT_REMOTE_NAME")) or "origin"
    url = arguments[1] if len(arguments) > 1 else environ.get("PRE_COMMIT_REMOTE_URL", "")
    lines = parse_push(text)
    if lines or (arguments and "PRE_COMMIT" not in environ):
        return SeenPush(remote, lines, url=url)
    local, to = environ.get("PRE_COMMIT_LOCAL_BRANCH"), environ.get("PRE_COMMIT_REMOTE_BRANCH")
    if local and to:
        commit = environ.get("PRE_COMMIT_TO_REF") or _commit(repo, local)
        line = PushLine(local, commit, to, environ.get("PRE_COMMIT_FROM_REF") or _NONE)
        first = "pre-commit shows the first ref of a push, and only that one is judged"
        return SeenPush(remote, (line,), (first,), url)
    branch = repo.branch()
    ref = "HEAD" if branch is None else f"refs/heads/{branch}"
    hidden = "the hook manager hides what is pushed; HEAD is judged in its place (lefthook: use_stdin: true)"
    return SeenPush(remote, (PushLine(ref, _commit(repo, "HEAD"), ref, _NONE),), (hidden,), url)


def _commit(repo: Repository, name: str) -> str:
    """Return the object that a local ref names, all zeros for none: a deletion."""
    try:
        return repo.resolve(name)
    except UsageError as error:
        if error.code != "unknown-commit":
            raise
        return _NONE
