"""Refs read as git keeps them in files: a loose file each, else a line of `packed-refs` (gitrepository-layout)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from gitledger.records.ids import CommitId

__all__ = ["OddRef", "RefFiles"]

_PLAIN = re.compile(r"\A(?:HEAD|refs(?:/[A-Za-z0-9_+=-][A-Za-z0-9_+=.-]*)+)\Z")
"""Names that can only be meant in one way; whatever else git allows, or refuses, is for git's own code to say."""
_OWN = ("refs/bisect/", "refs/rewritten/", "refs/worktree/")
"""What each worktree has of its own, besides HEAD."""
_ID = re.compile(rb"\A([0-9a-f]{40})\s*\Z")
_SYMBOLIC = re.compile(rb"\Aref:\s*([^\s]+)\s*\Z")
_MAX_STEPS = 5
"""How many symbolic refs git follows."""


class OddRef(Exception):  # noqa: N818 - no fault by itself: somebody who knows more has to be asked
    """A ref that isn't plainly there or plainly absent."""


class RefFiles:
    """The refs of a repository that keeps them in files; `git_dir` is the worktree's, `common_dir` everybody's.

    Raises `OddRef` from every method where it can't tell.
    """

    def __init__(self, git_dir: Path, common_dir: Path) -> None:
        self._git_dir = git_dir
        self._common_dir = common_dir

    def read(self, name: str) -> CommitId | None:
        """Return the id a full ref name points to, symbolic refs followed, or None where there is no such ref."""
        for _ in range(_MAX_STEPS):
            content = self._loose(name)
            if content is None:
                return self._packed(name)
            if found := _ID.match(content):
                return CommitId(found[1].decode("ascii"))
            target = _SYMBOLIC.match(content)
            if target is None:
                raise OddRef(name)
            name = os.fsdecode(target[1])
        raise OddRef(name)

    def named_by(self, name: str) -> str | None:
        """Return the full name of the ref that a symbolic one leads to in the end; None where it holds an id."""
        place = self._place(name)
        for step in range(_MAX_STEPS):
            if place.is_symlink():  # git has made HEAD one, long ago
                break
            content = self._loose(name)
            if content is None or _ID.match(content):
                return name if step else None
            target = _SYMBOLIC.match(content)
            if target is None:
                break
            name = os.fsdecode(target[1])
            place = self._place(name)
        raise OddRef(name)

    def below(self, prefix: str) -> Mapping[str, CommitId]:
        """Return every ref below `prefix` (which ends in `/`), by full name.

        Loose ones are listed first: what `git pack-refs` moves meanwhile is then found packed.
        """
        names: set[str] = set()
        self._place(prefix + "x")  # raises for what is not plain
        for folder, _, files in os.walk(self._common_dir / prefix, onerror=_refuse_unreadable):
            below = Path(folder).relative_to(self._common_dir).as_posix()
            names.update(f"{below}/{file}" for file in files if not file.endswith(".lock"))
        pattern = rb"^[0-9a-f]{40} (" + re.escape(prefix.encode("ascii")) + rb"[^\n]+)$"
        names.update(os.fsdecode(name) for name in re.findall(pattern, self._packed_refs(), re.MULTILINE))
        found = {name: self.read(name) for name in sorted(names)}
        return {name: target for name, target in found.items() if target is not None}

    def _place(self, name: str) -> Path:
        if not _PLAIN.match(name) or name.startswith(_OWN) or ".." in name or ".lock/" in f"{name}/":
            raise OddRef(name)
        return (self._git_dir if name == "HEAD" else self._common_dir) / name

    def _loose(self, name: str) -> bytes | None:
        try:
            return self._place(name).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        except OSError as error:
            raise OddRef(name) from error

    def _packed(self, name: str) -> CommitId | None:
        found = re.search(
            rb"^([0-9a-f]{40}) " + re.escape(name.encode("ascii")) + rb"$", self._packed_refs(), re.MULTILINE
        )
        return None if found is None else CommitId(found[1].decode("ascii"))

    def _packed_refs(self) -> bytes:
        try:
            return (self._common_dir / "packed-refs").read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise OddRef("packed-refs") from error


def _refuse_unreadable(error: OSError) -> None:
    """Let a folder of refs that can't be read be asked about; one that isn't there holds none."""
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise OddRef(str(error.filename)) from error
