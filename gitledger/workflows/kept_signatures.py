"""Lines whose signatures were found good in this clone before, kept for the next plan (`store.kept_file`).

What was good stays good, and half of what it takes to open a record is to see so again. Whose key it is, what the
line says and whether it counts is asked each time. Only a plan looks here, which is no verdict: whoever judges
checks every signature itself, since whatever runs in this clone could write here.
"""

from __future__ import annotations

import hashlib
from dataclasses import field
from pathlib import Path

from gitledger import __version__
from gitledger.dataclass import dataclass
from gitledger.store.kept_file import read_kept, write_kept

__all__ = ["MOST_KEPT", "KeptSignatures"]

MOST_KEPT = 10_000
"""Lines that are kept, 32 bytes each; of more, those that the last plan came across."""
_CHECKER = 1
"""One more whenever a signature is refused that was taken before."""
_MAGIC = f"gitledger signatures {__version__} {_CHECKER}\n".encode()
_BYTES = hashlib.sha256().digest_size


@dataclass(slots=True)
class KeptSignatures:
    """The lines by their digests; `path` is where they are kept."""

    path: Path
    _kept: frozenset[bytes] | None = None
    _met: dict[bytes, None] = field(default_factory=dict)

    def has(self, line: bytes) -> bool:
        """Tell whether the line's signature was found good before."""
        if self._kept is None:
            self._kept = _read(self.path)
        digest = hashlib.sha256(line).digest()
        found = digest in self._kept
        if found:
            self._met[digest] = None
        return found

    def add(self, line: bytes) -> None:
        """Note that the line's signature was found good."""
        self._met[hashlib.sha256(line).digest()] = None

    def keep(self) -> None:
        """Keep what was noted, where it is not kept already; where that isn't possible now, nothing is."""
        kept = self._kept or frozenset()
        if self._met.keys() <= kept:
            return
        digests = [*self._met, *(kept - self._met.keys())][:MOST_KEPT]
        content = b"".join(digests)
        write_kept(self.path, (_MAGIC, hashlib.sha256(content).digest(), content))


def _read(path: Path) -> frozenset[bytes]:
    """Return the kept digests; none where anything is wrong with them."""
    raw = read_kept(path)
    start = len(_MAGIC) + _BYTES
    if raw is None or not raw.startswith(_MAGIC):
        return frozenset()
    content = raw[start:]
    if hashlib.sha256(content).digest() != raw[len(_MAGIC) : start]:
        return frozenset()
    return frozenset(content[at : at + _BYTES] for at in range(0, len(content), _BYTES))
