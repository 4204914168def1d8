"""Init: configuration, signer, fetch refspecs and hook; every step is safe to repeat (DESIGN section 10)."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

from gitledger.config.example import example_config
from gitledger.config.load import load_config
from gitledger.config.schema import CONFIG_PATH
from gitledger.dataclass import dataclass
from gitledger.errors import StoreError, UsageError
from gitledger.store.remote import remote_names, tracking_refspecs
from gitledger.store.repository import Repository
from gitledger.store.seen_at import last_sight, note_sight
from gitledger.trust.signer import Signer
from gitledger.trust.signers import Signers
from gitledger.wording import from_top
from gitledger.workflows.hook_files import hooks_folder, install_hook, uninstall_hook
from gitledger.workflows.hook_managers import manager_of
from gitledger.workflows.session import Session
from gitledger.workflows.target import no_work_tree
from gitledger.workflows.trusted import SIGNERS_PATH

__all__ = ["Step", "initialise", "uninstall"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was looked at: what, whether it was changed, and a word on it."""

    what: str
    changed: bool
    text: str


def initialise(session: Session, signer: Signer, *, principal: str, python: str) -> list[Step]:
    """Return what was done, step by step; a second call changes nothing.

    What HEAD holds and the work tree lacks (a sparse clone) stands as HEAD has it, and is not written over.

    Raises `UsageError` in a bare repository, `ConfigError` where an existing file can't be read as what it is,
    `StoreError` where something can't be written.
    """
    root = _root(session.repo)
    name = _principal(session, principal)
    steps = [_config(session.repo, root, name), _signer(session.repo, root, name, signer)]
    steps += [_refspecs(session.repo, remote) for remote in remote_names(session.repo)]
    return [*steps, _hook(session.repo, python), *_identity(session)]


def uninstall(session: Session) -> list[Step]:
    """Return what was taken back: hook and fetch refspecs. The ledger and `.gitledger/` stay."""
    hook = uninstall_hook(session.repo)
    steps = [Step("hook", hook.done == "removed", str(hook.path))]
    for remote in remote_names(session.repo):
        ours = set(tracking_refspecs(remote)) & set(session.repo.config_all(f"remote.{remote}.fetch"))
        for spec in sorted(ours):
            session.repo.git.run("config", "--unset-all", f"remote.{remote}.fetch", f"^{re.escape(spec)}$")
        steps.append(Step("fetch", bool(ours), f"remote.{remote}.fetch"))
    return steps


def _root(repo: Repository) -> Path:
    if repo.worktree is None:
        raise no_work_tree(repo, "there is nothing to write to")
    return repo.worktree


def _principal(session: Session, text: str) -> str:
    """Return the name that stands in allowed_signers for a person: no blanks, commas, quotes, or patterns.

    Where git knows none, all that it will want to write commits with is named at once.
    """
    name = re.sub(r"[^\w.@+-]", "-", text.strip())
    if not name:
        session.repo.identity(session.environ)
    if not name or name.startswith("-"):
        raise UsageError("no-identity", "git knows no name for you", "git config user.email you@example.org")
    return name


def _identity(session: Session) -> list[Step]:
    """Return a step that names what git lacks to write commits with, before the first record asks for it."""
    try:
        session.repo.identity(session.environ)
    except UsageError as error:
        return [Step("identity", False, f"{error.message}, and records are written as such: {error.hint}")]
    return []


def _left_out(repo: Repository, root: Path, path: str) -> bytes | None:
    """Return what HEAD holds at a path that is not checked out, None where HEAD lacks it or it is here."""
    head = repo.head()
    return None if head is None or (root / path).exists() else repo.file_at(head, path)


def _config(repo: Repository, root: Path, principal: str) -> Step:
    path = root / CONFIG_PATH
    if path.exists():
        _check_config(path)
        return Step("configuration", False, f"{CONFIG_PATH} is there")
    left_out = _left_out(repo, root, CONFIG_PATH)
    if left_out is not None and _says_something(left_out):
        return Step("configuration", False, f"HEAD's {CONFIG_PATH} holds; it is not checked out here")
    _write(path, example_config(uuid.uuid4().hex, principal))
    return Step("configuration", True, f"wrote {CONFIG_PATH}")


def _says_something(config: bytes) -> bool:
    """Tell whether there is more to a configuration than blank lines and comments; one without is none yet."""
    return any(line.strip() and not line.lstrip().startswith(b"#") for line in config.splitlines())


def _check_config(path: Path) -> None:
    """Raise `ConfigError` where the configuration that is there can't be used as it stands."""
    from gitledger.workflows.forge_names import check_forge_users

    try:
        text = path.read_bytes()
    except OSError as error:
        raise StoreError("file-unreadable", f"{path} can't be read: {error.strerror}", f"mend {path}") from error
    check_forge_users(load_config(text, source=CONFIG_PATH))


def _signer(repo: Repository, root: Path, principal: str, signer: Signer) -> Step:
    """Add the person's key, unless an entry already admits it."""
    path = root / SIGNERS_PATH
    left_out = _left_out(repo, root, SIGNERS_PATH)
    try:
        before = path.read_bytes() if path.exists() else left_out or b""
    except OSError as error:
        raise StoreError("file-unreadable", f"{path} can't be read: {error.strerror}", "mend it") from error
    known = Signers.parse(before, allowed_source=SIGNERS_PATH)
    if any(entry.key.blob == signer.key.blob for entry in known.entries):
        return Step("signer", False, f"your key {signer.fingerprint} is in {SIGNERS_PATH}")
    if left_out is not None:
        restore = f"git restore --ignore-skip-worktree-bits {from_top(SIGNERS_PATH)}"
        todo = f"to add your key {signer.fingerprint}: {restore}"
        return Step("signer", False, f"HEAD's {SIGNERS_PATH} holds, not checked out here; {todo}, then init again")
    gap = "" if not before or before.endswith(b"\n") else "\n"
    line = f'{principal} namespaces="gitledger" {signer.key.line}\n'
    _write(path, before.decode("utf-8", "surrogateescape") + gap + line)
    return Step("signer", True, f"added {principal} {signer.fingerprint} to {SIGNERS_PATH}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", errors="surrogateescape")
    except OSError as error:
        raise StoreError(
            "file-unwritable", f"{path} can't be written: {error.strerror}", "check the folder"
        ) from error


def _hook(repo: Repository, python: str) -> Step:
    """Put the hook where git looks for it, unless a manager of hooks owns that place: then say how it is told."""
    manager = manager_of(repo, hooks_folder(repo))
    if manager is not None:
        return Step("hook", False, manager.advice if manager.calls_us else f"not installed: {manager.advice}")
    hook = install_hook(repo, python)
    chained = ", after the hook that was there" if hook.chained else ""
    return Step("hook", hook.done == "installed", f"{hook.path}{chained}")


def _refspecs(repo: Repository, remote: str) -> Step:
    key = f"remote.{remote}.fetch"
    missing = [spec for spec in tracking_refspecs(remote) if spec not in repo.config_all(key)]
    for spec in missing:
        repo.git.run("config", "--add", key, spec)
    if last_sight(repo, remote) is None:
        note_sight(repo, remote, fetched=False)  # what plain fetches bring from now on is of this place
    text = f"plain `git fetch {remote}` brings its ledger"
    return Step("fetch", bool(missing), text)
