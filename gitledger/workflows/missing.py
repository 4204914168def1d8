"""Whether records of others may be missing here: then it looks as if nothing had been recorded.

In a clone that `git ledger init` has not set up, plain `git fetch` brings commits and no ledger.
"""

from __future__ import annotations

from gitledger.store.refs import RECORDS_REF
from gitledger.store.remote import remote_names
from gitledger.store.seen_at import last_sight
from gitledger.workflows.session import Session

__all__ = ["not_fetched", "unfetched_remote"]


def unfetched_remote(session: Session) -> str:
    """Return the remote whose ledger may hold more than is here; "" where none is known to.

    That is one whose ledger nobody fetched; or one that plain `git fetch` has brought commits from since, without
    the ledger.
    """
    remote = _remote(session)
    return remote if remote and _may_hold_more(session, remote, has_any=_has_any(session)) else ""


def not_fetched(session: Session) -> str:
    """Return a sentence that says how the ledger gets here; nothing where all is here, or no remote to ask."""
    remote = _remote(session)
    if not remote:
        return ""
    has_any, fetch = _has_any(session), f"`git ledger sync --fetch-only {remote}`"
    if not _may_hold_more(session, remote, has_any=has_any):
        none = f"git ledger: this clone has no ledger, and {remote} had none when it was last asked"
        return "" if has_any else none
    if not has_any:
        return f"git ledger: this clone has no ledger; {fetch} brings that of {remote}"
    return (
        f"git ledger: `git fetch` brings no records of others into this clone; {fetch} does (and "
        f"`git ledger init` lets git fetch them, too)"
    )


def _may_hold_more(session: Session, remote: str, *, has_any: bool) -> bool:
    return not _is_fetched(session, remote) and not (has_any and _brings_ledger(session, remote))


def _remote(session: Session) -> str:
    """Return the remote that `git fetch` asks, that of the branch, else origin, else any; "" without one."""
    names = remote_names(session.repo)
    branch = session.repo.branch()
    own = "" if branch is None else session.repo.config(f"branch.{branch}.remote") or ""
    return next((name for name in (own, "origin") if name in names), names[0] if names else "")


def _has_any(session: Session) -> bool:
    return bool(session.repo.git.run("for-each-ref", "--count=1", RECORDS_REF, "refs/gitledger/").text)


def _is_fetched(session: Session, remote: str) -> bool:
    """Tell whether the ledger was fetched from where the remote is now, and no commits came after it."""
    sight = last_sight(session.repo, remote)
    if sight is None or sight.fetched_ns is None:
        return False
    try:
        return (session.repo.git_dir / "FETCH_HEAD").stat().st_mtime_ns <= sight.fetched_ns
    except OSError:
        return True  # git has fetched nothing since it cloned


def _brings_ledger(session: Session, remote: str) -> bool:
    """Tell whether a refspec of the remote's covers the notes, whoever configured it."""
    for spec in session.repo.config_all(f"remote.{remote}.fetch"):
        start, star, end = spec.removeprefix("+").partition(":")[0].partition("*")
        covers = RECORDS_REF.startswith(start) and RECORDS_REF.endswith(end)
        if covers if star else start == RECORDS_REF:
            return True
    return False
