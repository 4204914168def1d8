"""Which key signs: the first given of five places (DESIGN section 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.errors import TrustError
from gitledger.trust.private_keys import is_private_key_text

__all__ = ["KEY_VARIABLE", "KeyChoice", "find_key"]

KEY_VARIABLE = "GITLEDGER_SIGNING_KEY"
"""Holds a path or the private key itself; never passed on to a child."""

_DEFAULTS = ("id_ed25519", "id_ecdsa", "id_rsa")
_SET_ONE = "set one with `git config gitledger.signingKey PATH`, or make one with `ssh-keygen -t ed25519`"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChoice:
    """A key that was chosen: exactly one of its three spellings, and where it was given.

    `path` is a file of either half, `public_line` a public key whose private half an agent holds, `private_text` a
    private key handed over as text.
    """

    origin: str
    path: Path | None = None
    public_line: str | None = None
    private_text: str | None = None

    def __repr__(self) -> str:
        return f"KeyChoice({self.origin!r}, path={self.path})"


def find_key(
    explicit: str | None, *, environ: Mapping[str, str], config: Callable[[str], str | None], home: Path
) -> KeyChoice:
    """Return the key to sign with.

    `config` looks up one git configuration key. Nothing is read but whether the default files exist. Only a
    `user.signingKey` that names a key of another kind (OpenPGP, X.509) is passed over. Raises `TrustError`
    `no-key` where nothing names a key.
    """
    if explicit is not None:
        return _choice(explicit, "--key", home)
    if value := environ.get(KEY_VARIABLE, ""):
        return _choice(value, KEY_VARIABLE, home)
    if value := config("gitledger.signingKey") or "":
        return _choice(value, "gitledger.signingKey", home)
    value = config("user.signingKey") or ""
    # A key that was named and can't be used is an error of whoever opens it: no other key signs in its place.
    if value and (_is_ssh(value) or config("gpg.format") == "ssh"):
        return _choice(value, "user.signingKey", home)
    for name in _DEFAULTS:
        if (home / ".ssh" / name).is_file():
            return KeyChoice(origin=f"~/.ssh/{name}", path=home / ".ssh" / name)
    raise TrustError(
        "no-key",
        f"no signing key: none of --key, {KEY_VARIABLE}, gitledger.signingKey, user.signingKey, ~/.ssh/id_ed25519",
        _SET_ONE,
    )


def _is_ssh(value: str) -> bool:
    """Tell whether a spelling is one that no OpenPGP or X.509 key has: git's `key::`, a public key, a file."""
    text = value.strip()
    is_file = (
        text.startswith(("~/", "./", "../")) or text.endswith(".pub") or (text[:1] == "/" and "=" not in text)
    )
    return text.startswith("key::") or _is_public_literal(value) or is_file


def _is_public_literal(value: str) -> bool:
    return value.startswith(("key::", "ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")) and " " in value.strip()


def _choice(value: str, origin: str, home: Path) -> KeyChoice:
    if is_private_key_text(value):
        return KeyChoice(origin=origin, private_text=value)
    if _is_public_literal(value) or value.startswith("key::"):
        return KeyChoice(origin=origin, public_line=value.removeprefix("key::").strip())
    if not value.strip() or "\n" in value.strip() or "\x00" in value:
        raise TrustError("no-key", f"{origin} holds neither a path nor a key", _SET_ONE)
    path = Path(value.strip())
    if path.parts[:1] == ("~",):
        path = home.joinpath(*path.parts[1:])
    return KeyChoice(origin=origin, path=path)
