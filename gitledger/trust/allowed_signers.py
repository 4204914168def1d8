"""`allowed_signers`, read as OpenSSH reads it (ssh-keygen(1), ALLOWED SIGNERS; openssh-portable, sshsig.c).

Two differences, both towards refusal. OpenSSH skips a line that it can't read; here it is an error that names
the line, since a typing mistake must not silently take a signer away. A date without `Z` is local time there, so
that one file would mean different things on two machines; here it is an error that says what to write. A
well-formed key that may not sign (DSA, short RSA) grants nothing and is listed in `ignored`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NoReturn

from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError, DecodeError
from gitledger.records.decode import shown
from gitledger.trust.certificates import Certificate, decode_key
from gitledger.trust.keys import PublicKey, decode_key_text
from gitledger.trust.patterns import list_matches, literal_names

__all__ = ["AllowedSigner", "AllowedSigners", "parse_allowed_signers"]

MAX_FILE_BYTES = 4 << 20
MAX_LINE_BYTES = 64 << 10

_SPACE = " \t\r\n"
_DATE = r"(?ia)\A(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?(Z|UTC)?\Z"
_OPTION = re.compile(r'(namespaces|valid-after|valid-before)="((?:\\"|[^"])*)"', re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedSigner:
    """One line: who (a pattern list), by which key or authority, for what, and when (both ends inclusive)."""

    principals: str
    key: PublicKey
    is_authority: bool = False
    namespaces: str | None = None
    valid_after: datetime | None = None
    valid_before: datetime | None = None
    where: str = ""

    def admits(self, key: PublicKey, at: datetime, namespace: str) -> bool:
        """Tell whether the line accepts signatures by `key` in `namespace` at `at`, for whomever."""
        if self.namespaces is not None and not list_matches(namespace, self.namespaces):
            return False
        if self.valid_after is not None and at < self.valid_after:
            return False
        if self.valid_before is not None and at > self.valid_before:
            return False
        if not self.is_authority:
            # As in OpenSSH, a plain line does not admit its key inside a certificate.
            return key.certificate is None and key.blob == self.key.blob
        return _is_vouched(key.certificate, self.key, at)

    def names(self, key: PublicKey) -> frozenset[str]:
        """Return the principals that it grants `key`, once it admits it; patterns as they are spelled."""
        listed = literal_names(self.principals)
        if not self.is_authority:
            return listed
        vouched = key.certificate.principals if key.certificate else ()
        granted = frozenset(name for name in vouched if list_matches(name, self.principals))
        patterns = frozenset(entry for entry in listed if any(list_matches(name, entry) for name in granted))
        return granted | patterns

    def speaks_for(self, key: PublicKey, name: str) -> bool:
        """Tell whether it lets `key` speak for `name`, once it admits it."""
        if not list_matches(name, self.principals):
            return False
        return not self.is_authority or bool(key.certificate and name in key.certificate.principals)


def _is_vouched(certificate: Certificate | None, authority: PublicKey, at: datetime) -> bool:
    return bool(certificate and certificate.authority.blob == authority.blob and certificate.vouches_at(at))


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedSigners:
    """The lines of one file that count, and why others (`FILE:LINE: reason`) don't."""

    entries: tuple[AllowedSigner, ...]
    ignored: tuple[str, ...] = ()


def parse_allowed_signers(data: bytes, *, source: str = ".gitledger/allowed_signers") -> AllowedSigners:
    """Return what a file grants; raises `ConfigError` `bad-allowed-signers` naming `source` and the line."""
    entries: list[AllowedSigner] = []
    ignored: list[str] = []
    for where, line in numbered_lines(data, source, "bad-allowed-signers"):
        try:
            entry = _parse_line(line, where)
        except DecodeError as error:
            if error.code != "weak-key":
                _bad(where, error.message)
            ignored.append(f"{where}: {error.message}")
            continue
        entries.append(entry)
    return AllowedSigners(entries=tuple(entries), ignored=tuple(ignored))


def numbered_lines(data: bytes, source: str, code: str) -> list[tuple[str, str]]:
    """Return (`FILE:LINE`, text) of each line that is neither blank nor a comment; raises `ConfigError`."""
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(code, f"{source}: {len(data)} bytes, more than the limit of {MAX_FILE_BYTES}", _EDIT)
    found = []
    for number, raw in enumerate(data.split(b"\n"), start=1):
        where = f"{source}:{number}"
        if len(raw) > MAX_LINE_BYTES:
            raise ConfigError(code, f"{where}: a line of more than {MAX_LINE_BYTES} bytes", _EDIT)
        try:
            line = raw.decode("utf-8").strip(_SPACE)
        except UnicodeDecodeError as error:
            raise ConfigError(code, f"{where}: not UTF-8", _EDIT) from error
        if "\x00" in line:
            raise ConfigError(code, f"{where}: holds a NUL byte", _EDIT)
        if line and not line.startswith("#"):
            found.append((where, line))
    return found


_EDIT = "mend the line; see ssh-keygen(1), ALLOWED SIGNERS"


def _bad(where: str, text: str, hint: str = _EDIT) -> NoReturn:
    raise ConfigError("bad-allowed-signers", f"{where}: {text}", hint)


def _parse_line(line: str, where: str) -> AllowedSigner:
    principals, rest = _take_principals(line, where)
    key = _take_key(rest)
    if key is not None:
        return _entry(principals, "", key, where)
    options, rest = _take_options(rest, where)
    key = _take_key(rest)
    if key is None:
        _bad(where, "no key: expected PRINCIPALS [OPTIONS] TYPE BASE64")
    return _entry(principals, options, key, where)


def _take_principals(line: str, where: str) -> tuple[str, str]:
    """Split off the first word; a quoted part of it may hold spaces and ends it (misc.c, strdelimw)."""
    stop = re.search(r'[ \t\r\n"]', line)
    if stop is None:
        _bad(where, "only one word: expected PRINCIPALS [OPTIONS] TYPE BASE64")
    head, tail = line[: stop.start()], line[stop.start() + 1 :]
    if stop.group() != '"':
        return head, tail.lstrip(_SPACE)
    quoted, end, rest = tail.partition('"')
    if not end:
        _bad(where, "a quote is not closed")
    if rest and rest[0] not in _SPACE:
        # OpenSSH ends the word here and reads what follows as options: surely not what was meant.
        _bad(where, "text follows a closing quote; quote the whole list of principals")
    return head + quoted, rest.lstrip(_SPACE)


def _take_key(text: str) -> PublicKey | None:
    """Return the key that `TYPE BASE64 [COMMENT]` spells, or None where the first word is no key type."""
    words = re.split(r"[ \t]+", text, maxsplit=2)
    if len(words) < 2 or not re.fullmatch(r"(?:ssh|ecdsa|sk-ssh|sk-ecdsa|webauthn)-[a-z0-9@.-]+", words[0]):
        return None
    key = decode_key(decode_key_text(words[0], words[1]))
    if key.certificate is not None:
        raise DecodeError("malformed", "a certificate; list its authority's key with cert-authority instead")
    return key


def _take_options(text: str, where: str) -> tuple[str, str]:
    """Split off the options: up to the first blank outside quotes (sshkey.c, sshkey_advance_past_options)."""
    match = re.match(r'(?:\\"|"(?:\\"|[^"])*"|[^ \t"])*', text)
    end = match.end() if match else 0
    if end < len(text) and text[end] not in " \t":
        _bad(where, "a quote is not closed")
    return text[:end], text[end:].lstrip(" \t")


def _entry(principals: str, options: str, key: PublicKey, where: str) -> AllowedSigner:
    found: dict[str, str] = {}
    is_authority = False
    rest = options
    while rest:
        if match := _OPTION.match(rest):
            name = match[1].lower()
            if name in found:
                _bad(where, f"{name} is given twice")
            found[name] = match[2].replace('\\"', '"')
            rest = rest[match.end() :]
        elif rest[:14].lower() == "cert-authority":
            is_authority, rest = True, rest[14:]
        else:
            _bad(where, f"unknown or unquoted option at {shown(rest, 40)}")
        if rest and (rest[0] != "," or rest == ","):
            _bad(where, f"unknown option at {shown(rest, 40)}")
        rest = rest[1:]
    after = _date(found.get("valid-after"), "valid-after", where)
    before = _date(found.get("valid-before"), "valid-before", where)
    if after and before and before <= after:
        _bad(where, "valid-before is not after valid-after")
    return AllowedSigner(
        principals=principals,
        key=key,
        is_authority=is_authority,
        namespaces=found.get("namespaces"),
        valid_after=after,
        valid_before=before,
        where=where,
    )


def _date(text: str | None, option: str, where: str) -> datetime | None:
    if text is None:
        return None
    match = re.match(_DATE, text)
    if not match:
        _bad(where, f"{option}: expected YYYYMMDDZ or YYYYMMDDHHMM[SS]Z, found {shown(text)}")
    if not match[7]:
        _bad(
            where,
            f"{option}: {shown(text)} has no Z, so it would mean another instant in every time zone",
            f'write {option}="{text}Z" for UTC',
        )
    try:
        when = datetime(*(int(part or 0) for part in match.groups()[:6]), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError as error:
        raise ConfigError("bad-allowed-signers", f"{where}: {option}: {error}", _EDIT) from error
    if when <= datetime(1970, 1, 1, tzinfo=UTC):
        _bad(where, f"{option}: {shown(text)} is not after 1970")
    return when
