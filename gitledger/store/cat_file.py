"""Objects read through one `git cat-file` that lives as long as whoever asks it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from threading import Lock

from gitledger.errors import StoreError
from gitledger.store.conversation import Conversation, ConversationEnded
from gitledger.store.encoding import ID_BYTES, object_corrupt, object_id
from gitledger.store.git import Git
from gitledger.store.objects import ObjectKind

__all__ = ["CatFile"]

_KINDS: Mapping[bytes, ObjectKind] = {b"blob": "blob", b"tree": "tree", b"commit": "commit", b"tag": "tag"}
MAX_KEPT_BYTES = 32 << 20
"""How much is kept of what was read: objects never change, and some are asked for again and again."""
MAX_KEPT_EACH_BYTES = 1 << 20
_BATCH = 500
"""Questions that are put at once: as many as a pipe takes (64 KiB) while git is busy with its answers."""
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
        self._kept: dict[str, tuple[ObjectKind, bytes]] = {}
        self._kept_bytes = 0

    def head(self, oid: str) -> tuple[ObjectKind, int] | None:
        """Return an object's kind and size in bytes, None where the repository lacks it; never a prefix match."""
        if (known := self._kept.get(oid)) is not None:
            return known[0], len(known[1])
        with self._turn:
            return self._ask("info", oid)

    def read(self, oid: str, kind: ObjectKind) -> bytes | None:
        """Return an object's bytes, None where it is absent or of another kind.

        Held against its id, which git does for loose objects only.
        """
        known = self._kept.get(oid)
        if known is None:
            with self._turn:
                head = self._ask("contents", oid)
                if head is None:
                    return None
                known = head[0], self._content(oid, *head)
                self._keep(oid, *known)
        return known[1] if known[0] == kind else None

    def read_ahead(self, oids: Iterable[str]) -> None:
        """Read small objects that will be asked for: git and we then wait for each other once, and not for each.

        What it fails at is left to whoever asks for that object.
        """
        left = [oid for oid in dict.fromkeys(oids) if oid not in self._kept and self._is_id(oid)]
        with self._turn:
            try:
                while left:
                    self._read_batch(left[:_BATCH])
                    left = left[_BATCH:]
            except StoreError:  # answers may still be on their way
                self._end()

    def _read_batch(self, oids: list[str]) -> None:
        self._send("".join(f"info {oid}\n" for oid in oids))
        heads = [(oid, head) for oid in oids if (head := self._answer(oid)) is not None]
        wanted = [oid for oid, (_, size) in heads if size <= MAX_KEPT_EACH_BYTES]
        self._send("".join(f"contents {oid}\n" for oid in wanted))
        for oid in wanted:
            head = self._answer(oid)
            if head is not None:
                self._keep(oid, head[0], self._content(oid, *head))

    def _keep(self, oid: str, kind: ObjectKind, content: bytes) -> None:
        if len(content) <= MAX_KEPT_EACH_BYTES and self._kept_bytes + len(content) <= MAX_KEPT_BYTES:
            self._kept[oid] = kind, content
            self._kept_bytes += len(content)

    def hang_up(self) -> None:
        """Tell git that nothing more is asked, without waiting for its end; `close` does that."""
        with self._turn:
            if self._talk is not None:
                self._talk.hang_up()

    def close(self) -> None:
        """End git; it is started anew when it is asked again."""
        with self._turn:
            self._end()

    def _end(self) -> None:
        if self._talk is not None:
            self._talk.close()
            self._talk = None

    def _is_id(self, oid: str) -> bool:
        return len(oid) == 2 * ID_BYTES[self._object_format] and _HEX.match(oid) is not None

    def _ask(self, command: str, oid: str) -> tuple[ObjectKind, int] | None:
        """Return kind and size of an object, with its content to follow where that was asked for."""
        if not self._is_id(oid):
            return None
        self._send(f"{command} {oid}\n", oid)
        return self._answer(oid)

    def _send(self, commands: str, oid: str = "") -> None:
        if self._talk is None:
            self._talk = Conversation(self._git, "cat-file", "--batch-command", "--buffer", env=self._env)
        try:
            self._talk.ask(f"{commands}flush\n".encode("ascii"))
        except ConversationEnded as error:
            raise self._ended(oid, error) from error

    def _answer(self, oid: str) -> tuple[ObjectKind, int] | None:
        talk = self._talking(oid)
        try:
            words = talk.line().split(b" ")
        except ConversationEnded as error:
            raise self._ended(oid, error) from error
        if len(words) == 3:
            return _KINDS[words[1]], int(words[2])
        if "error: " in talk.complaint():  # else it warns that nothing is fetched
            raise object_corrupt("object", oid)
        return None

    def _content(self, oid: str, kind: ObjectKind, size: int) -> bytes:
        """Return the content that follows an answer, held against the object's id."""
        talk = self._talking(oid)
        try:
            content = talk.take(size + 1)[:-1]
        except ConversationEnded as error:
            self._talk = None
            raise object_corrupt(kind, oid) from error
        if object_id(kind, content, self._object_format) != oid:
            raise object_corrupt(kind, oid)
        return content

    def _talking(self, oid: str) -> Conversation:
        if self._talk is None:
            raise _unavailable(oid, "it has ended")
        return self._talk

    def _ended(self, oid: str, error: ConversationEnded) -> StoreError:
        self._talk = None
        return _unavailable(oid, str(error))


def _unavailable(oid: str, why: str) -> StoreError:
    return StoreError(
        "object-unavailable",
        f"git could not get object {oid}: {why}",
        "git fsck (in a partial clone: check that its remote can be reached)",
    )
