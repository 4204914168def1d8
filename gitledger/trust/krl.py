"""OpenSSH key revocation lists (openssh-portable, PROTOCOL.krl)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import field
from functools import partial

from gitledger.dataclass import dataclass
from gitledger.trust.certificates import Certificate
from gitledger.trust.wire import WireReader, malformed

__all__ = ["Krl", "is_krl", "parse_krl"]

_MAGIC = b"SSHKRL\n\x00"
_VERSION = 1
_CERTIFICATES, _KEYS, _SHA1, _SIGNATURE, _SHA256, _EXTENSION = 1, 2, 3, 4, 5, 255
_SERIALS, _RANGE, _BITMAP, _KEY_IDS, _CERT_EXTENSION = 0x20, 0x21, 0x22, 0x23, 0x39


def is_krl(data: bytes) -> bool:
    """Tell whether a file is a KRL rather than a list of lines."""
    return data.startswith(_MAGIC)


@dataclass(slots=True)
class _Authority:
    """Certificates revoked of one authority (`key` empty: of any), by serial and by key id."""

    key: bytes
    ranges: list[tuple[int, int]] = field(default_factory=list)
    bitmaps: list[tuple[int, bytes]] = field(default_factory=list)
    key_ids: set[str] = field(default_factory=set)

    def revokes(self, certificate: Certificate) -> bool:
        if self.key and self.key != certificate.authority.blob:
            return False
        if certificate.key_id in self.key_ids:
            return True
        return self._lists(certificate.serial)

    def _lists(self, serial: int) -> bool:
        if any(low <= serial <= high for low, high in self.ranges):
            return True
        return any(_bit(bitmap, serial - offset) for offset, bitmap in self.bitmaps)


def _bit(bitmap: bytes, index: int) -> bool:
    """Tell whether bit `index` of a big-endian number is set."""
    byte, bit = divmod(index, 8)
    return 0 <= byte < len(bitmap) and bool(bitmap[-1 - byte] >> bit & 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Krl:
    """What one KRL revokes."""

    keys: frozenset[bytes]
    sha1: frozenset[bytes]
    sha256: frozenset[bytes]
    _authorities: tuple[_Authority, ...]

    def revokes_key(self, blob: bytes) -> bool:
        """Tell whether a plain key is revoked, by itself or by a hash of it."""
        sha1 = hashlib.sha1(blob, usedforsecurity=False).digest()
        return blob in self.keys or hashlib.sha256(blob).digest() in self.sha256 or sha1 in self.sha1

    def revokes_certificate(self, certificate: Certificate) -> bool:
        """Tell whether a certificate is revoked by its serial or key id."""
        return any(authority.revokes(certificate) for authority in self._authorities)


def parse_krl(data: bytes) -> Krl:
    """Return what a KRL revokes; raises `DecodeError`.

    Its own signatures are not looked at: it stands in a tree that policy trusts, as a plain list does. Unknown
    sections, and extensions that call themselves critical, are refused as the format demands.
    """
    reader = WireReader(data, "KRL")
    reader.take(len(_MAGIC))
    if reader.uint32() != _VERSION:
        malformed("KRL", "an unknown format version")
    for _ in range(3):  # its own version, its date, flags
        reader.uint64()
    reader.string()
    reader.string()
    keys: set[bytes] = set()
    hashes: dict[int, set[bytes]] = {_SHA1: set(), _SHA256: set()}
    authorities: list[_Authority] = []
    while not reader.is_done:
        kind, body = reader.byte(), reader.string()
        if kind == _CERTIFICATES:
            authorities.append(_authority(body))
        elif kind == _KEYS:
            keys.update(_strings(body))
        elif kind in hashes:
            hashes[kind].update(_strings(body))
        elif kind == _EXTENSION:
            _skip_extension(body)
        elif kind != _SIGNATURE:
            malformed("KRL", f"an unknown section {kind}")
    return Krl(
        keys=frozenset(keys),
        sha1=frozenset(hashes[_SHA1]),
        sha256=frozenset(hashes[_SHA256]),
        _authorities=tuple(authorities),
    )


def _strings(body: bytes) -> list[bytes]:
    reader = WireReader(body, "KRL section")
    found = []
    while not reader.is_done:
        found.append(reader.string())
    return found


def _authority(body: bytes) -> _Authority:
    reader = WireReader(body, "KRL certificates")
    authority = _Authority(key=reader.string())
    reader.string()
    readers: dict[int, Callable[[bytes], None]] = {
        _SERIALS: partial(_read_serials, authority),
        _RANGE: partial(_read_range, authority),
        _BITMAP: partial(_read_bitmap, authority),
        _KEY_IDS: partial(_read_key_ids, authority),
        _CERT_EXTENSION: _skip_extension,
    }
    while not reader.is_done:
        kind, part = reader.byte(), reader.string()
        if kind not in readers:
            malformed("KRL", f"an unknown certificate section {kind}")
        readers[kind](part)
    return authority


def _read_serials(authority: _Authority, part: bytes) -> None:
    reader = WireReader(part, "KRL serials")
    while not reader.is_done:
        serial = reader.uint64()
        _add_range(authority, serial, serial)


def _read_range(authority: _Authority, part: bytes) -> None:
    reader = WireReader(part, "KRL range")
    low, high = reader.uint64(), reader.uint64()
    reader.done()
    _add_range(authority, low, high)


def _add_range(authority: _Authority, low: int, high: int) -> None:
    # Serial 0 means "none was given", so no list may hold it (krl.c, ssh_krl_revoke_cert_by_serial_range).
    if low == 0 or low > high:
        malformed("KRL", f"serials from {low} to {high}")
    authority.ranges.append((low, high))


def _read_bitmap(authority: _Authority, part: bytes) -> None:
    reader = WireReader(part, "KRL bitmap")
    offset, raw = reader.uint64(), reader.string()
    reader.done()
    if _bit(raw, -offset):
        malformed("KRL", "a bitmap that holds serial 0")
    authority.bitmaps.append((offset, raw))


def _read_key_ids(authority: _Authority, part: bytes) -> None:
    reader = WireReader(part, "KRL key ids")
    while not reader.is_done:
        authority.key_ids.add(reader.text())


def _skip_extension(body: bytes) -> None:
    reader = WireReader(body, "KRL extension")
    name = reader.string()
    is_critical = reader.byte()
    reader.string()
    reader.done()
    if is_critical:
        malformed("KRL", f"an unknown critical extension {ascii(name)[:40]}")
