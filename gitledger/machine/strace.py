"""Reads what strace wrote, as something that anybody may have written: which files processes opened, in order.

One line is a call, or half of one where another process came between:

    PID openat(AT_FDCWD</folder>, "name", O_RDONLY) = 3</folder/name>
    PID execve("./tool", [...], 0x7ffd /* 20 vars */ <unfinished ...>
    PID <... execve resumed>)             = 0
    PID +++ exited with 0 +++

Paths in `<>` are the kernel's, with `<`, `>` and line ends escaped, and other strings stand in quotes: no name of
a file can look like the end of a call. Where only a relative name is told, it is joined to the folder of its
process, followed through `chdir` and forks; a child that speaks before its parent's fork has returned may be that
of several parents, and then has all their folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, NoReturn

from gitledger.wording import counted

__all__ = ["BLINDING", "Event", "TraceFault", "read_trace"]

MAX_PROCESSES = 100_000
MAX_LINE_BYTES = 64 << 10
MAX_FOLDERS = 64
MAX_FOLDER_BYTES = 16 << 10

_TEXT = rb'"((?:[^"\\]|\\.)*)"'
_FD = rb"(?:AT_FDCWD|-?\d+)(?:<([^<>]*)>)?(?:\(deleted\))?"
_LINE = re.compile(rb"(\d+) +(.*)", re.DOTALL)
_CALL = re.compile(
    rb"(\w+)\((.*)\)\s+= "
    rb'(?:-1 E[A-Z0-9]+ \([^()"<>]*\)|(\d+)(?:<([^<>]*)>(?:\(deleted\))?)?|\?(?: E[A-Z0-9]+ \([^()"<>]*\))?)',
    re.DOTALL,
)
_RESUMED = re.compile(rb"<\.\.\. (\w+) resumed>(.*)", re.DOTALL)
_UNFINISHED = b" <unfinished ...>"
_ENDED = re.compile(rb"\+\+\+ (?:exited with \d+|killed by \w+(?: \(core dumped\))?) \+\+\+")
_CHANGED = re.compile(rb"(.*) <pid changed to \d+ \.\.\.>", re.DOTALL)
_SUPERSEDED = re.compile(rb"\+\+\+ superseded by execve in pid (\d+) \+\+\+")
_ONE = re.compile(_TEXT + rb"(?:, (.*))?", re.DOTALL)
_ONE_AT = re.compile(_FD + rb", " + _TEXT + rb"(?:, (.*))?", re.DOTALL)
_TWO = re.compile(_TEXT + rb", " + _TEXT, re.DOTALL)
_TWO_AT = re.compile(_FD + rb", " + _TEXT + rb", " + _FD + rb", " + _TEXT + rb"(?:, (.*))?", re.DOTALL)
_FOLDER = re.compile(_FD)
_FLAGS = re.compile(rb"\bO_[A-Z_]+")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b'"': b'"', b"\\": b"\\"}
BLINDING = ("io_uring_setup", "chroot", "pivot_root", "mount", "move_mount")
"""Calls after which a trace no longer says which files are opened: by a queue, or under other names."""
_BLINDING = tuple(name.encode() for name in BLINDING)
_FORKS = (b"fork", b"vfork", b"clone", b"clone3")


class TraceFault(Exception):  # noqa: N818 - it is the trace's fault, and never shown as an error
    """The trace can't be believed to be all; the message says why, for people."""


class Event(NamedTuple):
    """One successful call. `kind` is `open`, `exec`, `rename`, `link` or `unlink`.

    `names`: the absolute path as it was given, symlinks and all, of which there may be several candidates.
    `others`: the second path of `rename` and `link` likewise. `real`: the kernel's own path of an open file.
    `reads`: open for reading; `empties`: nothing that was in the file is left; `swaps`: both names were exchanged.
    """

    kind: str
    names: tuple[str, ...]
    others: tuple[str, ...] = ()
    real: str | None = None
    reads: bool = False
    empties: bool = False
    swaps: bool = False


def read_trace(lines: Iterable[bytes], folder: str) -> Iterator[Event]:
    """Yield what the calls of a trace did, in its order; `folder` is where its first process began.

    Raises `TraceFault` for a line that strace doesn't write, and at the end for a trace that breaks off: every
    process that appears must have ended.
    """
    reader = _Reader(folder)
    for line in lines:
        event = reader.take(line)
        if event is not None:
            yield event
    reader.finish()


class _Process:
    """A process that lives: its folders (shared between those that share them), and its call under way."""

    __slots__ = ("folders", "has_executed", "is_early", "pending")

    def __init__(self, folders: list[tuple[str, ...]], *, is_early: bool = False) -> None:
        self.folders = folders
        self.is_early = is_early
        self.pending: bytes | None = None
        self.has_executed = False


class _Reader:
    def __init__(self, folder: str) -> None:
        self.start = folder
        self.processes: dict[int, _Process] = {}
        self.forking: set[int] = set()
        self.born: dict[int, list[tuple[str, ...]]] = {}
        self.gone_early: set[int] = set()
        self.lines = 0

    def take(self, line: bytes) -> Event | None:
        self.lines += 1
        if not line.endswith(b"\n"):
            self._fault("its last line breaks off")
        found = _LINE.fullmatch(line[:-1])
        if found is None or len(line) > MAX_LINE_BYTES:
            self._fault("it is no line of strace")
        pid, text = int(found[1]), found[2]
        process = self.processes.get(pid) or self._appear(pid)
        if text.startswith(b"+++ superseded "):
            return self._executed_by_thread(pid, text)
        if text.startswith(b"+++ "):
            self._end(pid, process, text)
            return None
        if text.startswith(b"--- "):
            return None
        changed = _CHANGED.fullmatch(text) if text.endswith(b" ...>") else None
        if changed or text.endswith(_UNFINISHED):
            if process.pending is not None:
                self._fault("a call within a call")
            process.pending = changed[1] if changed else text[: -len(_UNFINISHED)]
            if process.pending.partition(b"(")[0] in _FORKS:
                self.forking.add(pid)
            return None
        if process.has_executed and text.startswith((b"<... execve resumed>", b"<... execveat resumed>")):
            process.has_executed = False
            return None
        if text.startswith(b"<... "):
            text = self._resumed(pid, process, text)
        return self._call(process, text)

    def finish(self) -> None:
        if self.processes:
            raise TraceFault(
                f"the trace breaks off: {counted(len(self.processes), 'process', 'processes')} without an end"
            )
        if not self.lines:
            raise TraceFault("the trace is empty")

    def _fault(self, why: str) -> NoReturn:
        raise TraceFault(f"the trace can't be read: line {self.lines}: {why}")

    # -- processes ------------------------------------------------------------------------------------------------

    def _appear(self, pid: int) -> _Process:
        if len(self.processes) >= MAX_PROCESSES:
            self._fault(f"more than {MAX_PROCESSES} processes at once")
        folders = self.born.pop(pid, None)
        is_early = False
        if folders is None and self.lines == 1:
            folders = [(self.start,)]
        elif folders is None:
            is_early = True
            folders = self._inherited()
        made = self.processes[pid] = _Process(folders, is_early=is_early)
        return made

    def _inherited(self) -> list[tuple[str, ...]]:
        """Return the folders of whoever is forking just now: one of them is the parent."""
        parents = [self.processes[pid] for pid in self.forking]
        if len(parents) == 1 and b"CLONE_FS" in (parents[0].pending or b""):
            return parents[0].folders
        return [self._some({folder for parent in parents for folder in parent.folders[0]})]

    def _some(self, folders: set[str]) -> tuple[str, ...]:
        if len(folders) > MAX_FOLDERS or any(len(folder) > MAX_FOLDER_BYTES for folder in folders):
            self._fault("the folder of a process is not known")
        return tuple(sorted(folders))

    def _executed_by_thread(self, pid: int, text: bytes) -> Event:
        """Return the program that a thread has executed, which goes on under the name of its process.

        The kernel tells of it only once it is done, whatever strace then prints as the result (6.1: nonsense).
        """
        found = _SUPERSEDED.fullmatch(text)
        thread = self.processes.pop(int(found[1]), None) if found else None
        if found is None or thread is None or thread.pending is None:
            self._fault("a program that nobody executed")
        self.forking -= {pid, int(found[1])}
        self.processes[pid] = thread
        name, _, args = thread.pending.partition(b"(")
        if name not in (b"execve", b"execveat"):
            self._fault("a program that nobody executed")
        thread.pending, thread.has_executed = None, True
        return self._event(thread, name, args, None)

    def _end(self, pid: int, process: _Process, text: bytes) -> None:
        if not _ENDED.fullmatch(text):
            self._fault("it is no line of strace")
        del self.processes[pid]
        self.forking.discard(pid)
        if process.is_early and self.forking:
            self.gone_early.add(pid)
        elif not self.forking:
            self.gone_early.clear()

    def _resumed(self, pid: int, process: _Process, text: bytes) -> bytes:
        found = _RESUMED.fullmatch(text)
        pending, process.pending = process.pending, None
        self.forking.discard(pid)
        if found is None or pending is None or pending.partition(b"(")[0] != found[1]:
            self._fault("the end of a call that did not begin")
        return pending + found[2]

    # -- calls ----------------------------------------------------------------------------------------------------

    def _call(self, process: _Process, text: bytes) -> Event | None:
        if text.endswith(b"<unfinished ...>) = ?"):
            return None  # its process was killed within it
        found = _CALL.fullmatch(text)
        if found is None:
            self._fault("it is no line of strace")
        name, args, number, real = found.groups()
        if number is None:
            return None
        if name in _BLINDING:
            raise TraceFault(f"a process called {name.decode()}, after which strace can't see what it opens")
        if name in _FORKS:
            self._forked(process, args, int(number))
            return None
        if name == b"chdir":
            self._move(process, self._named(process, self._match(_ONE, args)[1]))
            return None
        if name == b"fchdir":
            self._move(process, self._based(process, self._match(_FOLDER, args)[1]))
            return None
        return self._event(process, name, args, None if real is None else self._text(real))

    def _forked(self, process: _Process, args: bytes, child: int) -> None:
        if child in self.gone_early:
            self.gone_early.discard(child)
        elif child not in self.processes and child > 0:
            if len(self.born) >= MAX_PROCESSES:
                self._fault(f"more than {MAX_PROCESSES} processes that never spoke")
            self.born[child] = process.folders if b"CLONE_FS" in args else [process.folders[0]]

    def _event(self, process: _Process, name: bytes, args: bytes, real: str | None) -> Event:
        if name in (b"rename", b"link"):
            two = self._match(_TWO, args)
            return Event(name.decode(), self._named(process, two[1]), self._named(process, two[2]))
        if name in (b"renameat", b"renameat2", b"linkat"):
            at = self._match(_TWO_AT, args)
            first, second = self._named(process, at[2], at[1], args), self._named(process, at[4], at[3])
            swaps = b"RENAME_EXCHANGE" in (at[5] or b"")
            return Event("link" if name == b"linkat" else "rename", first, second, swaps=swaps)
        if name == b"open_by_handle_at":
            return self._opened((), args.rpartition(b"}")[2], real)
        if name in (b"open", b"creat", b"execve", b"unlink"):
            one = self._match(_ONE, args)
            names, rest = self._named(process, one[1]), one[2]
        elif name in (b"openat", b"openat2", b"execveat", b"unlinkat"):
            at = self._match(_ONE_AT, args)
            names, rest = self._named(process, at[2], at[1], args), at[3]
        else:
            self._fault("a call that was not asked for")
        if name in (b"execve", b"execveat"):
            return Event("exec", names)
        if name in (b"unlink", b"unlinkat"):
            return Event("unlink", names)
        return self._opened(names, b"O_WRONLY|O_TRUNC" if name == b"creat" else rest or b"", real)

    def _opened(self, names: tuple[str, ...], rest: bytes, real: str | None) -> Event:
        flags = set(_FLAGS.findall(rest))
        return Event(
            "open",
            names,
            real=real,
            reads=not flags & {b"O_WRONLY", b"O_PATH"},
            empties=bool(flags & {b"O_TRUNC", b"O_EXCL"}),
        )

    def _match(self, pattern: re.Pattern[bytes], args: bytes) -> re.Match[bytes]:
        found = pattern.fullmatch(args)
        if found is None:
            self._fault("arguments that can't be read")
        return found

    # -- names ----------------------------------------------------------------------------------------------------

    def _named(
        self, process: _Process, name: bytes, base: bytes | None = None, args: bytes = b""
    ) -> tuple[str, ...]:
        """Return the absolute paths that a name may stand for."""
        text = self._text(name)
        folders = self._based(process, base)
        if base is not None and args.startswith(b"AT_FDCWD<"):
            process.folders[0] = folders  # the kernel's word for where the process is
        if text.startswith("/"):
            return (text,)
        if not folders:
            self._fault("the folder of a process is not known")
        return tuple(f"{folder}/{text}" if text else folder for folder in folders)

    def _based(self, process: _Process, base: bytes | None) -> tuple[str, ...]:
        return process.folders[0] if base is None else (self._text(base),)

    def _move(self, process: _Process, folders: tuple[str, ...]) -> None:
        process.folders[0] = self._some({_tidy(folder) for folder in folders})

    def _text(self, data: bytes) -> str:
        try:
            raw = _ESCAPE.sub(_unescaped, data) if b"\\" in data else data
        except (KeyError, ValueError):
            self._fault("an escape that strace doesn't write")
        return raw.decode("utf-8", "surrogateescape")


def _unescaped(found: re.Match[bytes]) -> bytes:
    return _LETTERS[found[1]] if not found[1].isdigit() else bytes((int(found[1], 8),))


def _tidy(folder: str) -> str:
    return "/" + "/".join(part for part in folder.split("/") if part not in ("", "."))
