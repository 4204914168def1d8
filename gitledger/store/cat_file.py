"""Objects read through one `git cat-file` that lives as long as whoever asks it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from threading import Lock

from gitledger.errors import StoreError
from gitledger.store.conversation import Conversation, ConversationEnded
from gitledger.store.encoding import ID_BYTES, object_corrupt
from gitledger.store.git import Git
from gitledger.store.objects import ObjectKind

__all__ = ["CatFile"]

_KINDS: Mapping[bytes, ObjectKind] = {b"blob": "blob", b"tree": "tree", b"commit": "commit", b"tag": "tag"}
_HEX = re.compile(r"\A[0-9a-f]+\Z")


class CatFile:
    """Answers for one object after another; threads take turns. git is started when it is first asked.

    `env` adds variables for it. Raises `StoreError` `object-corrupt`, and `object-unavailable` where git ended
    instead of answering; it is started anew then, when it is asked again.
    """

    def __init__(self, git: Git, object_format: str, *, env: Mapping[str, str] | None = None) -> None:
        self._git = git
        self._object_format = object_format
        self._env = env
        self._talk: Conversation | None = None
        self._turn = Lock()

    def head(self, oid: str) -> tuple[ObjectKind, int] | None:
        """Return an object's kind and size in bytes, None where the repository lacks it; never a prefix match."""
        with self._turn:
            return self._ask("info", oid)

    def read(self, oid: str, kind: ObjectKind) -> bytes | None:
        """Return an object's bytes, None where it is absent or of another kind.

        Held against its id, which git does for loose objects only.
        """
        with self._turn:
            head = self._ask("contents", oid)
            if head is None or self._talk is None:
                return None
            found, size = head
            try:
                content = self._talk.take(size + 1)[:-1]
            except ConversationEnded as error:
                self._talk = None
                raise object_corrupt(kind, oid) from error
        if found != kind:
            return None
        named = hashlib.new(self._object_format, f"{found} {size}\0".encode() + content, usedforsecurity=False)
        if named.hexdigest() != oid:
            raise object_corrupt(kind, oid)
        return content

    def close(self) -> None:
        """End git; it is started anew when it is asked again."""
        with self._turn:
            if self._talk is not None:
                self._talk.close()
                self._talk = None

    def _ask(self, command: str, oid: str) -> tuple[ObjectKind, int] | None:
        """Return kind and size of an object, with its content to follow where that was asked for."""
        if len(oid) != 2 * ID_BYTES[self._object_format] or not _HEX.match(oid):
            return None
        if self._talk is None:
            self._talk = Conversation(self._git, "cat-file", "--batch-command", "--buffer", env=self._env)
        try:
            self._talk.ask(f"{command} {oid}\nflush\n".encode("ascii"))
            words = self._talk.line().split(b" ")
        except ConversationEnded as error:
            self._talk = None
            raise _unavailable(oid, str(error)) from error
        if len(words) == 3:
            return _KINDS[words[1]], int(words[2])
        if "error: " in self._talk.complaint():  # else it warns that nothing is fetched
            raise object_corrupt("object", oid)
        return None


def _unavailable(oid: str, why: str) -> StoreError:
    return StoreError(
        "object-unavailable",
        f"git could not get object {oid}: {why}",
        "git fsck; in a partial clone: check that its remote can be reached",
    )
