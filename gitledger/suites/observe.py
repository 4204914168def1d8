"""Notes which files of the repository a Python process opens, by an audit hook (PEP 578).

Copied as `_gitledger_observe.py` into a folder that stands on `PYTHONPATH`, where `sitecustomize.py` starts it in
every Python process below `record`: pytest, its xdist workers, forks, and Python programs that tests start.
Standard library only, Python 3.8 and later.

Each file is told once a process, by appending its path from the repository's root and a NUL to one file. So what
was read is known even of processes that end by `os._exit`. What this run wrote before it read it is no input: a
file whose change time is not older than the run. Where only that is younger, not the content (a copy with its old
times, or a mode that was changed), the path begins with `/`: whether the commit has the file decides. An empty
path says that there was more than was told.
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # whose module takes longer to load than all that a small script does
    from typing import Any

VARIABLE = "GITLEDGER_OBSERVED"
"""Change time in nanoseconds from which on a file is this run's, the file to append to, and the root, by lines."""
MAX_FILES = 200_000
"""Files that one process tells of."""
MAX_REMEMBERED = 50_000
"""Folders and files remembered by the names that they were opened under; more are looked up again."""
_OTHER_EVENTS = {"import": 1, "ctypes.dlopen": 0, "sqlite3.connect": 0, "os.rename": 0, "os.link": 0}
"""Events beside `open` that read a file, and which of their arguments is its path."""
_PROGRAM_EVENTS = {"subprocess.Popen": 2, "os.exec": None, "os.posix_spawn": None}
"""Events that start a program, and which of their arguments is its folder; the program and its arguments lead."""

_active = False


def start() -> bool:
    """Observe this process from now on, and what it has imported already; tells whether it is observed."""
    global _active
    value = os.environ.get(VARIABLE, "")  # noqa: TID251 - there is nobody to hand it in
    if not _active and value.count("\n") >= 2:
        began, log, root = value.split("\n", 2)
        if root == os.sep:
            return False  # a repository that is the whole machine
        look = _looker(int(began), log, root)
        for module in list(sys.modules.values()):
            look(getattr(module, "__file__", None), os.O_RDONLY)
        sys.addaudithook(_hook(look))
        _active = True
    return _active


def _hook(look: Any) -> Any:
    """Return the hook. It is called for every event that Python tells of, so it asks but once which one it is."""
    others, programs = _OTHER_EVENTS, _PROGRAM_EVENTS
    told = {"open": 0, **others, **programs}

    def audit(event: str, args: Any) -> None:
        if event in told:
            if event == "open":
                look(args[0], args[2])
            elif event in others:
                look(args[others[event]], 0)
            else:
                place = programs[event]
                for word in _program(args[0], args[1], args[place] if place else None):
                    look(word, 0)

    return audit


def _program(program: Any, arguments: Any, folder: Any) -> list[str]:
    """Return a program that is started and the script that it is given first: no other process tells of them."""
    try:
        words = [program, *([] if isinstance(arguments, (str, bytes)) else arguments)[1:2]]
        texts = [os.fsdecode(word) for word in words if word]
        if os.sep not in texts[0]:
            del texts[0]  # it is found on the path
        return [os.path.join(folder or "", text) for text in texts if text[:1] != "-"]  # noqa: PTH118
    except Exception:
        return []


def _looker(began: int, log: str, root: str) -> Any:  # noqa: C901 - one closure, so that tests can't replace its parts
    """Return what takes a path as it was opened, with the flags of open(2), and never raises.

    All that it calls is bound here: tests replace `os.open`, the current folder and whole file systems.
    """
    lstat, readlink, getcwd, fsencode, fsdecode = os.lstat, os.readlink, os.getcwd, os.fsencode, os.fsdecode
    open_file, write, close = os.open, os.write, os.close
    is_link, is_file = stat.S_ISLNK, stat.S_ISREG
    access, writes, empties = os.O_ACCMODE, os.O_WRONLY, os.O_TRUNC | os.O_EXCL
    appends = os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
    prefix = root + os.sep
    start = len(prefix)
    separator, caches, git = os.sep, os.sep + "__pycache__", os.sep + ".git" + os.sep
    tag = "." + (sys.implementation.cache_tag or "none")
    elsewhere = sys.pycache_prefix or "\0"
    seen: set[str] = set()
    told: set[str] = set()
    appended: set[str] = set()
    folders: dict[str, str | None] = {}
    lost: list[bool] = []

    def append(data: bytes) -> None:
        file = open_file(log, appends)
        try:
            write(file, data)
        finally:
            close(file)

    def tell(path: str, mark: str = "") -> None:
        name = mark + path[start:]
        if name in told or len(told) > MAX_FILES:
            return
        told.add(name)
        append((fsencode(name) if len(told) <= MAX_FILES else b"") + b"\0")

    def resolved(path: str, links: int = 40) -> str:
        """Return the real path of an absolute one; raises `OSError` where something on the way is missing."""
        done, parts = "", path.split(separator)[::-1]
        while parts:
            part = parts.pop()
            if part == "..":
                done = done.rpartition(separator)[0]
            elif part not in ("", "."):
                step = done + separator + part
                if not is_link(lstat(step).st_mode):
                    done = step
                    continue
                target = readlink(step)
                links -= 1
                if links < 0:
                    raise OSError(path)
                if target[:1] == separator:
                    done = ""
                parts += target.split(separator)[::-1]
        return done or separator

    def through(folder: str) -> None:
        """Tell of the symlinks on the way to `folder`, as far as they stand in the repository."""
        at = root
        for part in folder[start:].split(separator):
            step = at + separator + part
            if part in ("", "."):
                continue
            if part == "..":
                at = resolved(step)
            elif is_link(lstat(step).st_mode):
                tell(step)
                at = resolved(step)
            else:
                at = step
            if at != root and not at.startswith(prefix):
                return

    def found(folder: str) -> str | None:
        """Return the real path of a folder of the repository, None for any other."""
        if len(folders) > MAX_REMEMBERED:
            folders.clear()
        real: str | None = resolved(folder)
        if real != folder and folder.startswith(prefix):
            through(folder)
        below = f"{real}{separator}"[len(root) :] if real == root or str(real).startswith(prefix) else git
        folders[folder] = real = None if git in below else real
        return real

    def source(path: str) -> str:
        """Return the source of a compiled module, itself for any other path."""
        folder, _, name = path.rpartition(separator)
        end = name.rfind(tag)
        if end > 0 and folder.endswith(caches):
            return folder[: -len(caches)] + separator + name[:end] + ".py"
        if end > 0 and folder.startswith(elsewhere):
            return folder[len(elsewhere) :] + separator + name[:end] + ".py"
        return path

    def examine(path: str, flags: int) -> bool:
        """Tell of the file at an absolute path where it counts; returns whether that is settled for good."""
        if path[-4:] == ".pyc":
            path = source(path)
        folder, _, name = path.rpartition(separator)
        real = folders.get(folder, "")
        if real == "":
            real = found(folder)
        if real is None:
            return False
        here = real + separator + name
        status = lstat(here)
        if is_link(status.st_mode):
            if status.st_ctime_ns < began:
                tell(here)
            return examine(resolved(here), flags)
        if not is_file(status.st_mode):
            return False
        if flags & empties:
            return False  # the run writes it; a later reading finds a younger file
        if flags & access == writes:
            if status.st_ctime_ns < began:
                appended.add(here)
            return False
        if status.st_ctime_ns < began or here in appended:
            tell(here)
        elif status.st_mtime_ns < began:
            tell(here, separator)
        return True

    def look(path: Any, flags: Any) -> None:
        try:
            if lost:
                append(b"\0")
                lost.clear()
            if type(path) is not str:
                if path is None or type(path) is int:
                    return
                path = fsdecode(path)
            if path in seen:
                return
            if path[:1] != separator:
                if path[:5] == "file:":
                    path = path[5:].partition("?")[0]
                path = getcwd() + separator + path
                if path in seen:
                    return
            if examine(path, flags) and len(seen) < MAX_REMEMBERED:
                seen.add(path)
        except (OSError, TypeError, ValueError):
            return  # what is not there, or no path at all
        except Exception:
            lost.append(True)  # a file may have been missed: better to say that not all was told

    return look
