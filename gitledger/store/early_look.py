"""git's look at a large work tree, begun as the very first thing: it goes on while Python loads what we need.

Only where it is plain which repository that is: one whose `.git` folder lies in the current folder, and with no
variable that points elsewhere. Whoever opens the repository then sees whether it was that one. It loads next to
nothing.
"""

from __future__ import annotations

import os
import stat
import time

from gitledger.store.git_environment import AGENT_VARIABLES, REPOSITORY_VARIABLES, scrubbed
from gitledger.store.status_words import NO_LOCKS, status_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FACTS_WORDS", "LARGE_INDEX_BYTES", "SETTINGS_WORDS", "EarlyAnswer", "EarlyLook", "look_early"]

LARGE_INDEX_BYTES = 1 << 19
"""From which size of the index on it pays: some 6,000 files."""
TIMEOUT_S = 600.0
MAX_BYTES = 512 << 20
_SIGTERM = 15
_NOT_IGNORED = (13, 25)
"""SIGPIPE and SIGXFSZ, which Python ignores and a child would go on ignoring (`signal` takes long to load)."""
_FIRST = b"# branch.oid "
_DIES_WITHIN_S = 0.5
"""A git that waits for a file system that is gone doesn't; it is left alone then."""
_OTHERS_TIMEOUT_S = 5.0
"""What takes longer is asked anew, by whoever can say what is wrong then."""
FACTS_WORDS = (
    "rev-parse",
    "--is-shallow-repository",
    "--show-object-format",
    "--absolute-git-dir",
    "--git-common-dir",
    "--show-toplevel",
)
"""How git is asked which repository a folder lies in; the last line is missing where there is no work tree."""
SETTINGS_WORDS = ("config", "--list", "-z")
"""How it is asked for its whole configuration."""


class EarlyAnswer:
    """A git that runs since before anything was loaded, and what it prints."""

    def __init__(self, child: int, output: int) -> None:
        self._child = child
        self._output = output

    def said(self, *, timeout_s: float = TIMEOUT_S) -> bytes | None:
        """Return what git printed, once it has ended; None where it failed, or was told to end."""
        if self._child < 0:
            return None
        found = self._read(timeout_s)
        child, self._child = self._child, -1
        os.close(self._output)
        if found is None:
            os.kill(child, _SIGTERM)
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        except ChildProcessError:  # whoever started us ignores children, and nobody can tell how it ended
            return None
        return found if status == 0 else None

    def _read(self, timeout_s: float) -> bytes | None:
        import select

        ready, found = select.poll(), bytearray()
        ready.register(self._output, select.POLLIN)
        until_s = time.monotonic() + timeout_s
        while len(found) <= MAX_BYTES and ready.poll(max(0.0, until_s - time.monotonic()) * 1_000):
            chunk = os.read(self._output, 1 << 16)
            if not chunk:
                return bytes(found)
            found += chunk
        return None

    def abandon(self) -> None:
        """Let git end, and wait no longer than it takes to die; nobody wants to know any more."""
        child, self._child = self._child, -1
        if child < 0:
            return
        os.close(self._output)
        try:
            os.killpg(child, _SIGTERM)  # whatever it has started as well
            until_s = time.monotonic() + _DIES_WITHIN_S
            while os.waitpid(child, os.WNOHANG)[0] == 0 and time.monotonic() < until_s:
                time.sleep(0.002)
        except (ProcessLookupError, ChildProcessError, PermissionError):
            return  # it has ended


class EarlyLook(EarlyAnswer):
    """A `git status` that runs; `index` is how the index stood before, `began_s` a `time.monotonic` second.

    `others` are what git is asked beside it, by its words.
    """

    def __init__(
        self,
        folder: str,
        index: os.stat_result,
        began_s: float,
        child: int,
        output: int,
        others: Mapping[tuple[str, ...], EarlyAnswer],
    ) -> None:
        super().__init__(child, output)
        self.folder = folder
        self.index = index
        self.began_s = began_s
        self._others = others

    def is_at(self, git_dir: str | os.PathLike[str] | None, top: str | os.PathLike[str]) -> bool:
        """Tell whether it is a look at this repository, and at this work tree."""
        try:
            own = os.stat(os.path.join(self.folder, ".git"))
            return (
                git_dir is not None
                and os.path.samestat(own, os.stat(git_dir))
                and os.path.samestat(os.stat(self.folder), os.stat(top))
            )
        except OSError:
            return False

    def said(self, *, timeout_s: float = TIMEOUT_S) -> bytes | None:
        """Return what git printed of the work tree once it has ended; None where it failed, or was told to end."""
        found = super().said(timeout_s=timeout_s)
        return found if found is not None and found.startswith(_FIRST) else None

    def answer(self, words: tuple[str, ...], folder: str | os.PathLike[str]) -> bytes | None:
        """Return what git said to other words in a folder; None where it was not asked so, or failed at it."""
        other = self._others.get(words)
        if other is None or os.fspath(folder) != self.folder:
            return None
        return other.said(timeout_s=_OTHERS_TIMEOUT_S)

    def abandon(self) -> None:
        """Let every git end, and wait no longer than it takes to die."""
        for answer in self._others.values():
            answer.abandon()
        super().abandon()


def look_early(env: Mapping[str, str]) -> EarlyLook | None:
    """Return a look at the work tree whose top is the current folder; None where that isn't plain, or small."""
    try:
        folder = os.getcwd()
        for stream in range(3):
            os.fstat(stream)  # of one that is closed a pipe of ours would take the place
        if not REPOSITORY_VARIABLES.isdisjoint(env) or not stat.S_ISDIR(os.lstat(".git").st_mode):
            return None
        index = os.stat(".git/index")
        return _begun(folder, index, env) if index.st_size >= LARGE_INDEX_BYTES else None
    except (OSError, NotImplementedError, ValueError):
        return None


def _begun(folder: str, index: os.stat_result, env: Mapping[str, str]) -> EarlyLook:
    keyless = scrubbed({name: value for name, value in env.items() if name not in AGENT_VARIABLES})
    began_s = time.monotonic()
    others: dict[tuple[str, ...], EarlyAnswer] = {}
    status = _started(status_words(folder, walk=True, aside=True), keyless | NO_LOCKS)
    look = EarlyLook(folder, index, began_s, *status, others)
    try:
        for words in (FACTS_WORDS, SETTINGS_WORDS):
            others[words] = EarlyAnswer(*_started(words, keyless))
    except BaseException:
        look.abandon()
        raise
    return look


def _started(words: tuple[str, ...], env: Mapping[str, str]) -> tuple[int, int]:
    """Return the process of a git that is started, and the pipe from which its output is read."""
    output, into = os.pipe()
    try:
        child = os.posix_spawnp(
            "git",
            ["git", *words],
            env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, into, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsid=True,
            setsigdef=_NOT_IGNORED,
        )
    except BaseException:
        os.close(output)
        raise
    finally:
        os.close(into)
    return child, output
