"""Forge users (`github:alice`) and the keys that their forge publishes.

A forge is asked only for users that policy lists, once a command. An answer is kept for `max_age`; offline, an
older one will do up to `offline_max_age`, since a key that its owner has taken back must not stand for ever.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError, DecodeError, TrustError
from gitledger.records.decode import Reader, format_time, load_json, shown
from gitledger.trust.certificates import parse_key_line
from gitledger.trust.keys import PublicKey

__all__ = ["BUILT_IN", "ForgeAnswer", "ForgeUser", "Forges", "proxies_from"]

BUILT_IN = {"github": "https://github.com/{user}.keys"}
"""Forges that need no entry in the configuration; an entry of the same name replaces one."""

FETCH_TIMEOUT_S = 10.0
MAX_AGE = timedelta(hours=1)
OFFLINE_MAX_AGE = timedelta(days=7)
_NAME = r"\A[a-z0-9-]+\Z"
_USER = r"\A[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,99})\Z"


@dataclass(frozen=True, slots=True)
class ForgeUser:
    """`FORGE:USER`, a forge's account: never the same as a principal of that name."""

    forge: str
    user: str

    def __str__(self) -> str:
        return f"{self.forge}:{self.user}"

    @classmethod
    def parse(cls, text: str) -> ForgeUser:
        """Return the user that `github:alice` names; raises `ValueError`."""
        forge, colon, user = text.partition(":")
        if not colon or not re.match(_NAME, forge) or not re.match(_USER, user):
            raise ValueError("expected FORGE:USER, as github:alice")
        return cls(forge, user)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeAnswer:
    """The keys that a forge published for a user at `fetched_at`; `ignored` names lines that are no usable key."""

    user: ForgeUser
    keys: tuple[PublicKey, ...]
    fetched_at: datetime
    from_cache: bool
    ignored: tuple[str, ...] = ()

    def holds(self, key: PublicKey) -> bool:
        """Tell whether `key` is one of them; a certificate never is."""
        return key.certificate is None and any(key.blob == known.blob for known in self.keys)


def proxies_from(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the proxies that an environment names, as other tools read it; loopback never goes through one."""
    found = {}
    for scheme in ("https", "http"):
        if value := environ.get(f"{scheme}_proxy") or environ.get(f"{scheme.upper()}_PROXY"):
            found[scheme] = value
    return found


class Forges:
    """The forges of one command: URL templates, a cache folder, and one instant that is now.

    `templates` map a forge's name to a URL that holds `{user}` once, behind the host. `cache` None keeps nothing.
    """

    def __init__(
        self,
        templates: Mapping[str, str],
        *,
        now: datetime,
        cache: Path | None,
        offline: bool = False,
        timeout_s: float = FETCH_TIMEOUT_S,
        max_age: timedelta = MAX_AGE,
        offline_max_age: timedelta = OFFLINE_MAX_AGE,
        proxies: Mapping[str, str] | None = None,
    ) -> None:
        self._templates = {**BUILT_IN, **templates}
        for name, template in self._templates.items():
            _check_template(name, template)
        self._now = now
        self._cache = cache
        self._offline = offline
        self._timeout_s = timeout_s
        self._max_age = max_age
        self._offline_max_age = offline_max_age
        self._proxies = proxies or {}
        self._asked: dict[ForgeUser, ForgeAnswer] = {}

    def keys(self, user: ForgeUser, *, current: bool = False) -> ForgeAnswer:
        """Return the published keys of `user`; `current` asks the forge even if a kept answer is young enough.

        Raises `TrustError`: `forge-unknown`, `forge-user-unknown`, `forge-unreachable`, `forge-offline`. A forge
        that can't be reached never falls back to an older answer unless offline was asked for: whoever can block
        the network must not bring a withdrawn key back.
        """
        asked = self._asked.get(user)
        if asked is None or (current and asked.from_cache):
            asked = self._answer(user, current)
            self._asked[user] = asked
        return asked

    def _answer(self, user: ForgeUser, current: bool) -> ForgeAnswer:
        url = self.url(user)
        kept = self._read_cache(url)
        if self._offline:
            return self._offline_answer(user, kept)
        if kept and not current and self._now - kept[0] <= self._max_age:
            return _parse(user, kept[1], kept[0], from_cache=True)
        from gitledger.trust.fetch import fetch  # with urllib behind it: few judgements ask a forge

        body = fetch(url, timeout_s=self._timeout_s, proxies=self._proxies)
        answer = _parse(user, body, self._now, from_cache=False)
        self._write_cache(url, body)
        return answer

    def _offline_answer(self, user: ForgeUser, kept: tuple[datetime, bytes] | None) -> ForgeAnswer:
        if kept is None:
            raise TrustError(
                "forge-offline", f"the keys of {user} were never fetched here", "run once without --offline"
            )
        if self._now - kept[0] > self._offline_max_age:
            age = f"fetched {format_time(kept[0])}, more than {self._offline_max_age.days} days ago"
            raise TrustError("forge-offline", f"the keys of {user} were {age}", "run once without --offline")
        return _parse(user, kept[1], kept[0], from_cache=True)

    def url(self, user: ForgeUser) -> str:
        """Return where the keys of `user` are published; raises `TrustError` `forge-unknown`."""
        template = self._templates.get(user.forge)
        if template is None:
            known = ", ".join(sorted(self._templates))
            raise TrustError(
                "forge-unknown",
                f"{user}: no forge of that name (known: {known})",
                "add it under forges: in the config",
            )
        return template.replace("{user}", user.user)

    def _cache_file(self, url: str) -> Path | None:
        return self._cache / f"{hashlib.sha256(url.encode()).hexdigest()}.json" if self._cache else None

    def _read_cache(self, url: str) -> tuple[datetime, bytes] | None:
        """Return when and what was answered; None for anything else than a whole answer from the past.

        A file that others may write says nothing: it grants keys.
        """
        from gitledger.trust.fetch import MAX_ANSWER_BYTES

        path = self._cache_file(url)
        try:
            raw = path.read_bytes() if path and _is_own(path) else b""
            reader = Reader(load_json(raw, limit=2 * MAX_ANSWER_BYTES))
            when, body = reader.time("fetched_at"), reader.text("body", limit=MAX_ANSWER_BYTES)
            is_ours = reader.text("url") == url
        except (OSError, DecodeError):
            return None
        return (when, body.encode("latin-1", "replace")) if is_ours and when <= self._now else None

    def _write_cache(self, url: str, body: bytes) -> None:
        """Keep an answer for later, if that is possible; nothing depends on it."""
        import tempfile

        path = self._cache_file(url)
        if path is None:
            return
        document = {"body": body.decode("latin-1"), "fetched_at": format_time(self._now), "url": url}
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.parent.chmod(0o700)
            handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(document, file)
            Path(temporary).replace(path)
        except OSError:
            return


def _is_own(path: Path) -> bool:
    """Tell whether the file and its folder belong to this user and nobody else may write them."""
    found = (path.stat(), path.parent.stat())
    return all(status.st_uid == os.geteuid() and not status.st_mode & 0o022 for status in found)


def _check_template(name: str, template: str) -> None:
    from gitledger.trust.fetch import is_safe_url

    parts = urlsplit(template)
    if not re.match(_NAME, name) or template.count("{user}") != 1 or "{user}" in parts.netloc:
        raise ConfigError(
            "bad-forge",
            f"forges.{name}: {shown(template)} must hold {{user}} once, behind the host",
            "mend the config",
        )
    if not is_safe_url(template.replace("{user}", "user")):
        raise ConfigError(
            "bad-forge", f"forges.{name}: {shown(template)} is not https", "use https; http is for loopback alone"
        )


def _parse(user: ForgeUser, body: bytes, fetched_at: datetime, *, from_cache: bool) -> ForgeAnswer:
    keys, ignored = [], []
    for number, line in enumerate(body.decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            key = parse_key_line(line.strip())
        except DecodeError as error:
            ignored.append(f"{user}, line {number}: {error.message}")
            continue
        if key.certificate is None:
            keys.append(key)
        else:
            ignored.append(f"{user}, line {number}: a certificate")
    return ForgeAnswer(
        user=user, keys=tuple(keys), fetched_at=fetched_at, from_cache=from_cache, ignored=tuple(ignored)
    )
