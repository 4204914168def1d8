"""What a person may type here: the names that a shell completes. Whatever can't be read offers nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gitledger.errors import LedgerError
from gitledger.store.remote import remote_names
from gitledger.workflows.session import Session
from gitledger.workflows.target import head_of
from gitledger.workflows.trusted import read_config

__all__ = ["WORDS", "words_here"]

MAX_REFS = 1000
"""So many branches and tags are offered at most."""


def words_here(session: Session, kind: str) -> list[str]:
    """Return the names of a kind of `WORDS`, in the order of the configuration or of git.

    Shards are written with their variants, as `--shard` takes them; what is not committed is not declared.
    """
    try:
        return list(dict.fromkeys(WORDS[kind](session)))
    except LedgerError:
        return []


def _shards(session: Session) -> Iterable[str]:
    return map(str, read_config(session.repo, head_of(session)).shard_keys())


def _variants(session: Session) -> Iterable[str]:
    keys = read_config(session.repo, head_of(session)).shard_keys()
    return [key.variant for key in keys if key.variant is not None]


def _lanes(session: Session) -> Iterable[str]:
    return list(read_config(session.repo, head_of(session)).lanes)


def _refs(session: Session) -> Iterable[str]:
    spaces = ("refs/heads", "refs/remotes", "refs/tags")
    done = session.repo.git.run("for-each-ref", f"--count={MAX_REFS}", "--format=%(refname:short)", *spaces)
    return ["HEAD", *done.text.splitlines()]


def _remotes(session: Session) -> Iterable[str]:
    return remote_names(session.repo)


WORDS: dict[str, Callable[[Session], Iterable[str]]] = {
    "lanes": _lanes,
    "refs": _refs,
    "remotes": _remotes,
    "shards": _shards,
    "variants": _variants,
}
"""Each kind of name, and where it comes from."""
