"""The SSH wire encoding (RFC 4251 section 5), read strictly.

Every read is of full length, every integer in its one canonical spelling, and `done` refuses trailing bytes, so
that what parses re-encodes to the same bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

from gitledger.errors import DecodeError

__all__ = ["WireReader", "malformed", "put_byte", "put_mpint", "put_string", "put_uint32", "put_uint64"]

MAX_MPINT_BYTES = 2049
"""16,384 bits and a sign byte, the largest number that OpenSSH reads (sshbuf.h, SSHBUF_MAX_BIGNUM)."""


def malformed(what: str, text: str) -> NoReturn:
    """Raise the decoding error of one structure."""
    raise DecodeError("malformed", f"{what}: {text}", "git ledger fsck")


class WireReader:
    """Reads one structure from front to back; `what` names it in errors. Getters raise `DecodeError`."""

    __slots__ = ("_at", "_data", "what")

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._at = 0
        self.what = what

    @property
    def position(self) -> int:
        """The number of bytes read so far."""
        return self._at

    @property
    def is_done(self) -> bool:
        """Tell whether nothing is left."""
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        """Return exactly `size` bytes."""
        end = self._at + size
        if end > len(self._data):
            malformed(self.what, f"cut short: {size} bytes announced, {len(self._data) - self._at} left")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def byte(self) -> int:
        """Return one byte as a number."""
        return self.take(1)[0]

    def uint32(self) -> int:
        """Return four bytes, big-endian."""
        return int.from_bytes(self.take(4), "big")

    def uint64(self) -> int:
        """Return eight bytes, big-endian."""
        return int.from_bytes(self.take(8), "big")

    def string(self) -> bytes:
        """Return a length-prefixed string of bytes."""
        start = self._at + 4
        end = start + int.from_bytes(self._data[self._at : start], "big")
        if end > len(self._data) or start > len(self._data):
            return self.take(self.uint32())  # fails, and says how
        self._at = end
        return self._data[start:end]

    def name(self) -> str:
        """Return a string of printable ASCII (algorithm names, namespaces)."""
        name = _name(self.string())
        if name is None:
            malformed(self.what, "a name holds other than printable ASCII characters")
        return name

    def text(self) -> str:
        """Return a string of UTF-8 without NUL."""
        raw = self.string()
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            malformed(self.what, "a text is not UTF-8")
        if "\x00" in text:
            malformed(self.what, "a text holds a NUL")
        return text

    def mpint(self) -> int:
        """Return a number of at least 0; negative numbers and needless leading zeroes are refused."""
        raw = self.string()
        if len(raw) > MAX_MPINT_BYTES:
            malformed(self.what, "a number is too large")
        number = int.from_bytes(raw, "big")
        if put_mpint(number)[4:] != raw:
            malformed(self.what, "a number is not in its canonical spelling")
        return number

    def done(self) -> None:
        """Refuse trailing bytes."""
        if not self.is_done:
            malformed(self.what, f"{len(self._data) - self._at} trailing bytes")


@lru_cache(maxsize=64)
def _name(raw: bytes) -> str | None:
    """Return a name, or None for what is none; every signature spells the same few."""
    name = raw.decode("latin-1")
    return name if name.isascii() and name.isprintable() and " " not in name else None


def put_byte(number: int) -> bytes:
    """Return a byte."""
    return number.to_bytes(1, "big")


def put_uint32(number: int) -> bytes:
    """Return four bytes, big-endian."""
    return number.to_bytes(4, "big")


def put_uint64(number: int) -> bytes:
    """Return eight bytes, big-endian."""
    return number.to_bytes(8, "big")


def put_string(data: bytes | str) -> bytes:
    """Return a length-prefixed string; text is encoded as UTF-8."""
    raw = data.encode("utf-8") if isinstance(data, str) else data
    return put_uint32(len(raw)) + raw


def put_mpint(number: int) -> bytes:
    """Return the one spelling of a number of at least 0: no needless zeroes but the sign byte."""
    return put_string(number.to_bytes((number.bit_length() + 8) // 8, "big") if number else b"")
