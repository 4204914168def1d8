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
_MANY = 20
"""From how many on objects are read ahead by a git of their own, which takes as long to start as reading these."""
_HEX = re.compile(r"\A[0-9a-f]+\Z")


class CatFile:
    """Answers for one object after another; threads take turns. git is started when it is first asked.

    `env` adds variables for it. Raises `StoreError` `object-corrupt`, and `object-unavailable` where git ended
    instead of answering; it is started anew then, when it is asked again.
    """

    def __init__(self, git: Git, object_format: str, *, env: Mapping[str, str] | None = None) -> None:
        self._object_format = object_format
        self._talk = _Talk(git, object_format, env)
        self._ahead = _Talk(git, object_format, env)
        self._kept: dict[str, tuple[ObjectKind, bytes]] = {}
        self._kept_bytes = 0

    def head(self, oid: str) -> tuple[ObjectKind, int] | None:
        """Return an object's kind and size in bytes, None where the repository lacks it; never a prefix match."""
        if (known := self._kept.get(oid)) is not None:
            return known[0], len(known[1])
        if not self._is_id(oid):
            return None
        with self._talk.turn:
            self._talk.send("info", [oid])
            return self._talk.answer(oid)

    def read(self, oid: str, kind: ObjectKind) -> bytes | None:
        """Return an object's bytes, None where it is absent or of another kind.

        Held against its id, which git does for loose objects only.
        """
        known = self._kept.get(oid)
        if known is None:
            if not self._is_id(oid):
                return None
            with self._talk.turn:
                self._talk.send("contents", [oid])
                head = self._talk.answer(oid)
                if head is None:
                    return None
                known = head[0], self._talk.content(oid, *head)
                self._keep(oid, *known)
        return known[1] if known[0] == kind else None

    def read_ahead(self, oids: Iterable[str]) -> None:
        """Read small objects that will be asked for: git and we then wait for each other once, and not for each.

        Of many it is another git that is asked, so that nobody waits who asks for one meanwhile. What it fails at
        is left to whoever asks for that object.
        """
        left = [oid for oid in dict.fromkeys(oids) if oid not in self._kept and self._is_id(oid)]
        talk = self._ahead if len(left) >= _MANY else self._talk
        with talk.turn:
            try:
                while left:
                    self._read_batch(talk, left[:_BATCH])
                    left = left[_BATCH:]
            except StoreError:  # answers may still be on their way
                talk.end()

    def _read_batch(self, talk: _Talk, oids: list[str]) -> None:
        talk.send("info", oids)
        heads = [(oid, head) for oid in oids if (head := talk.answer(oid)) is not None]
        wanted = [oid for oid, (_, size) in heads if size <= MAX_KEPT_EACH_BYTES]
        talk.send("contents", wanted)
        for oid in wanted:
            head = talk.answer(oid)
            if head is not None:
                self._keep(oid, head[0], talk.content(oid, *head))

    def _keep(self, oid: str, kind: ObjectKind, content: bytes) -> None:
        if len(content) <= MAX_KEPT_EACH_BYTES and self._kept_bytes + len(content) <= MAX_KEPT_BYTES:
            self._kept[oid] = kind, content
            self._kept_bytes += len(content)

    def _is_id(self, oid: str) -> bool:
        return len(oid) == 2 * ID_BYTES[self._object_format] and _HEX.match(oid) is not None

    def hang_up(self) -> None:
        """Tell git that nothing more is asked, without waiting for its end; `close` does that."""
        for talk in (self._talk, self._ahead):
            with talk.turn:
                talk.hang_up()

    def close(self) -> None:
        """End git; it is started anew when it is asked again."""
        for talk in (self._talk, self._ahead):
            with talk.turn:
                talk.end()


class _Talk:
    """One git that is asked and answers; only whoever has the `turn` may use it. Raises as `CatFile` does."""

    def __init__(self, git: Git, object_format: str, env: Mapping[str, str] | None) -> None:
        self.turn = Lock()
        self._git = git
        self._object_format = object_format
        self._env = env
        self._running: Conversation | None = None

    def send(self, command: str, oids: list[str]) -> None:
        """Ask something of each of these ids."""
        if self._running is None:
            self._running = Conversation(self._git, "cat-file", "--batch-command", "--buffer", env=self._env)
        lines = "".join(f"{command} {oid}\n" for oid in oids)
        try:
            self._running.ask(f"{lines}flush\n".encode("ascii"))
        except ConversationEnded as error:
            raise self._ended(oids[0] if len(oids) == 1 else "", error) from error

    def answer(self, oid: str) -> tuple[ObjectKind, int] | None:
        """Return kind and size of the next object, with its content to follow where that was asked for."""
        running = self._answering(oid)
        try:
            words = running.line().split(b" ")
        except ConversationEnded as error:
            raise self._ended(oid, error) from error
        if len(words) == 3:
            return _KINDS[words[1]], int(words[2])
        if "error: " in running.complaint():  # else it warns that nothing is fetched
            raise object_corrupt("object", oid)
        return None

    def content(self, oid: str, kind: ObjectKind, size: int) -> bytes:
        """Return the content that follows an answer, held against the object's id."""
        running = self._answering(oid)
        try:
            content = running.take(size + 1)[:-1]
        except ConversationEnded as error:
            self._running = None
            raise object_corrupt(kind, oid) from error
        if object_id(kind, content, self._object_format) != oid:
            raise object_corrupt(kind, oid)
        return content

    def hang_up(self) -> None:
        """Tell git that nothing more is asked."""
        if self._running is not None:
            self._running.hang_up()

    def end(self) -> None:
        """End git."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def _answering(self, oid: str) -> Conversation:
        if self._running is None:
            raise _unavailable(oid, "it has ended")
        return self._running

    def _ended(self, oid: str, error: ConversationEnded) -> StoreError:
        self._running = None
        return _unavailable(oid, str(error))


def _unavailable(oid: str, why: str) -> StoreError:
    return StoreError(
        "object-unavailable",
        f"git could not get object {oid}: {why}",
        "git fsck (in a partial clone: check that its remote can be reached)",
    )
