"""From the chosen key to a signer: in process where the private half can be read, else through ssh-keygen."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from gitledger.errors import DecodeError, TrustError
from gitledger.trust.certificates import parse_key_line
from gitledger.trust.find_key import KEY_VARIABLE, KeyChoice
from gitledger.trust.keygen import Keygen, KeygenSigner
from gitledger.trust.keys import PublicKey
from gitledger.trust.private_keys import (
    MAX_KEY_FILE_BYTES,
    Passphrase,
    PrivateKey,
    is_private_key_text,
    load_private_key,
    peek_private_key,
)
from gitledger.trust.signer import FileSigner, Signer
from gitledger.wording import shell_word

__all__ = ["open_signer"]


def open_signer(
    choice: KeyChoice,
    *,
    environ: Mapping[str, str],
    passphrase: Passphrase | None = None,
    program: str = "ssh-keygen",
) -> Signer:
    """Return the signer of a chosen key.

    A locked key signs through the agent where the agent holds it; else `passphrase` is asked, once for all that
    this signer will sign. `program` is git's `gpg.ssh.program`. Raises `TrustError` naming what to set or type.
    """
    keygen = Keygen(environ=environ, program=program)
    if choice.private_text is not None:
        return FileSigner(
            load_private_key(choice.private_text.encode(), where=choice.origin, passphrase=passphrase)
        )
    if choice.public_line is not None:
        key = _public(choice.public_line, choice.origin)
        return KeygenSigner(key, keygen, line=choice.public_line, backend="agent")
    assert choice.path is not None  # noqa: S101 - KeyChoice has exactly one of the three
    return _open_path(choice.path.absolute(), keygen, passphrase, origin=choice.origin)


def _open_path(path: Path, keygen: Keygen, passphrase: Passphrase | None, *, origin: str) -> Signer:
    text = _read(path, origin).decode("utf-8", "replace")
    if is_private_key_text(text):
        return _open_private(path, keygen, passphrase, certified=None)
    key = _public(text, f"{origin}: {path}", path)
    private = path.with_name(path.name.removesuffix(".pub").removesuffix("-cert"))
    if private == path or not private.is_file() or keygen.agent_holds(key):
        return KeygenSigner(key, keygen, path=path, backend="agent")
    return _open_private(private, keygen, passphrase, certified=key)


def _open_private(
    path: Path, keygen: Keygen, passphrase: Passphrase | None, *, certified: PublicKey | None
) -> Signer:
    _check_mode(path)
    data = _read(path, str(path))
    try:
        peek = peek_private_key(data)
    except DecodeError as error:
        raise TrustError("key-refused", f"{path}: {error.message}", error.hint) from error
    if peek and peek.public.is_fido:
        return KeygenSigner(certified or peek.public, keygen, path=path, backend="ssh-keygen")
    if peek and peek.is_encrypted and keygen.agent_holds(peek.public):
        public = certified or peek.public
        return KeygenSigner(public, keygen, line=_line(public), backend="agent")
    try:
        private = load_private_key(data, where=str(path), passphrase=passphrase)
    except TrustError as error:
        if error.code == "passphrase-needed":
            start = (
                "" if keygen.environ.get("SSH_AUTH_SOCK") else 'eval "$(ssh-agent)" && '
            )  # without one it fails
            error.hint = f"{start}ssh-add {shell_word(path)}"
        raise
    _check_pair(private, certified, path)
    return FileSigner(private, certified=certified)


def _line(key: PublicKey) -> str:
    return key.certificate.line if key.certificate else key.line


def _check_pair(private: PrivateKey, public: PublicKey | None, path: Path) -> None:
    if public and public.blob != private.public.blob:
        raise TrustError(
            "key-refused",
            f"{path} and its public file hold different keys",
            f"ssh-keygen -y -f {path} > {path}.pub",
        )


def _other_key(origin: str, path: Path | None = None) -> str:
    """Return how another key is named in the place that named this one."""
    if origin == "--key":
        return "give --key the path of a key"
    if origin == KEY_VARIABLE:
        return f"set {KEY_VARIABLE} to the path of a key, or unset it"
    if origin.endswith(".signingKey"):
        return f"git config {origin} PATH"
    return f"ls -l {shell_word(path)}" if path else "give --key the path of a key"


def _public(text: str, where: str, path: Path | None = None) -> PublicKey:
    try:
        return parse_key_line(text.strip())
    except DecodeError as error:
        code = "key-refused" if error.code == "weak-key" else "key-unreadable"
        raise TrustError(
            code,
            f"{where}: {error.message}",
            f"ssh-keygen -l -f {shell_word(path)}" if path else _other_key(where),
        ) from error


def _read(path: Path, origin: str) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_KEY_FILE_BYTES + 1)
    except OSError as error:
        raise TrustError(
            "key-unreadable",
            f"{origin}: the signing key {path} can't be read: {error.strerror}",
            _other_key(origin, path),
        ) from error
    if len(data) > MAX_KEY_FILE_BYTES:
        raise TrustError("key-unreadable", f"{origin}: {path} is no key file: too large", _other_key(origin, path))
    return data


def _check_mode(path: Path) -> None:
    """Refuse a key that others can read, as ssh does (authfile.c, sshkey_perm_ok): own files alone are judged."""
    status = path.stat()
    if status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        hint = f"chmod 600 {shell_word(path)}"
        raise TrustError("key-permissions", f"{path} can be read by others (mode {mode:04o})", hint)
