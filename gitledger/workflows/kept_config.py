"""Configurations that were read in this clone lately, kept for the next plan (`store.kept_file`).

A configuration is kept by the digest of its very text, and only once it was read without an error. Whoever judges
reads the text itself, and whoever records: whatever runs in this clone could write here, and would then decide a
verdict, or in whose name a failure is signed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from gitledger import __version__
from gitledger.config.document import Document, read_document
from gitledger.config.kept_document import READER, decode_document, encode_document
from gitledger.config.load import config_of
from gitledger.config.schema import Config
from gitledger.errors import ConfigError
from gitledger.store.kept_file import read_kept, write_kept

__all__ = ["MOST_KEPT", "load_config_kept"]

MOST_KEPT = 4
"""Texts of which the documents are kept, the latest first: a commit's, its policy's, those of another branch."""
_MAGIC = f"gitledger configurations {__version__} {READER}\n".encode()


def load_config_kept(text: bytes, *, source: str, path: Path) -> Config:
    """Return what `load_config` returns, and raise what it raises; `path` is where documents are kept."""
    digest = hashlib.sha256(text).hexdigest().encode()
    kept = _read(path)
    if digest in kept:
        try:
            return config_of(decode_document(kept[digest], source=source))
        except (ConfigError, ValueError, TypeError, ArithmeticError, RecursionError):
            pass  # none of what is kept can be wrong in itself: it is damaged, and the text says what there is
    document = read_document(text, source=source)
    config = config_of(document)
    _write(path, digest, document, kept)
    return config


def _read(path: Path) -> dict[bytes, bytes]:
    """Return the kept documents by the digests of their texts; none where anything is wrong with them."""
    raw = read_kept(path)
    start = len(_MAGIC)
    if raw is None or not raw.startswith(_MAGIC):
        return {}
    check, _, content = raw[start:].partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != check:
        return {}
    pairs = (line.partition(b" ") for line in content.splitlines())
    return {digest: line for digest, _, line in pairs}


def _write(path: Path, digest: bytes, document: Document, kept: dict[bytes, bytes]) -> None:
    others = [(other, line) for other, line in kept.items() if other != digest]
    lines = [(digest, encode_document(document)), *others[: MOST_KEPT - 1]]
    content = b"".join(b"%b %b\n" % line for line in lines)
    write_kept(path, (_MAGIC, hashlib.sha256(content).hexdigest().encode(), b"\n", content))
