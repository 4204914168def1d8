"""Takes credentials out of what goes into the ledger, which is for ever: URLs, command lines, excerpts of logs.

Where a text could be read either way it is hidden. What stays is still redacted when it is redacted once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

__all__ = ["HIDDEN", "excerpt", "redact_argv", "redact_text", "redact_url", "secret_values"]

HIDDEN = "[redacted]"
MIN_SECRET_CHARS = 6  # a shorter value would blot out half the text, and protects nothing
MARGIN_BYTES = 8192  # read beyond an excerpt's edges, so that a secret on the edge is seen whole

# Not "tokens": in logs of language models they are counted, and hidden from nobody.
_TELLING = (
    r"(?:(?:passw(?:or)?d|passphrase|passwd|secret|credential|cookie)s?|token"
    r"|(?:api|access|secret|private|signing|encryption|account|auth|shared)[_-]?keys?)"
    r"(?:[_-](?:id|value|base64|b64))?"
)
_TELLING_NAME = re.compile(rf"{_TELLING}$", re.IGNORECASE)
_URL = re.compile(
    r"\b([a-z][a-z0-9+.-]{1,30}://)"  # scheme
    r"(?:([^\s/?#\"'<>]*)@)?"  # user and password
    r"([^\s?#\"'<>]*)"  # host and path
    r"(\?[^\s#\"'<>]*)?"
    r"(#[^\s\"'<>]*)?",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    rf"({_TELLING}[\"']?[ \t]{{0,4}}(?::(?!:|//)|=>|=(?!=\s)|,(?=[ \t]?[\"']))[ \t]{{0,4}})"
    r"(b?\"(?:[^\"\\\n]|\\.)*\"?|b?'(?:[^'\\\n]|\\.)*'?|\S+)",
    re.IGNORECASE,
)
_OPTION = re.compile(rf"((?<![\w-])--?[\w-]{{0,40}}{_TELLING}[ \t]+)(\"[^\"\n]*\"|'[^'\n]*'|\S+)", re.IGNORECASE)
_HEADER = re.compile(
    r"\b((?:proxy-)?authorization|x-api-key|x-auth-token|private-token|job-token|(?:set-)?cookie)"
    r"([\"']?[ \t]*[:=,][ \t]*[\"']?)([^\"'\r\n]+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(bearer[ \t]+)\S{16,}", re.IGNORECASE)
_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_KEY_REST = re.compile(r"\A.*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.DOTALL)
# Prefixes as their issuers publish them for secret scanning.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}"
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas)-[\w.-]{16,}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"
    r"|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}"
    r"|sk-[\w-]{16,}|[srp]k_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|hf_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{20,}|pypi-[\w-]{16,}|dckr_pat_[\w-]{16,}"
    r"|AIza[\w-]{30,}|ya29\.[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|hvs\.[\w-]{16,}|tskey-[\w-]{16,}|glsa_\w{16,}|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}|dop_v1_[a-f0-9]{16,}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{16,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"
    r")"
)


def redact_url(text: str) -> str:
    """Return the text with credentials, query strings and telling fragments taken out of every URL in it.

    The user of an `ssh` URL stays where no password comes with it: `git@` is an address, not a credential.
    """
    return _URL.sub(_plain_url, text)


def _plain_url(match: re.Match[str]) -> str:
    scheme, user, rest, query, fragment = match.groups()
    if user is None and not _is_host(rest.partition("/")[0]):
        # A user and a password that holds a bare slash, question mark or hash: the host follows the last @.
        before, at, after = f"{rest}{query or ''}{fragment or ''}".rpartition("@")
        rest, fragment = re.split("[?#]", after)[0] if at and before else HIDDEN, None
    keep = f"{user}@" if user and ":" not in user and "ssh" in scheme.lower() else ""
    return f"{scheme}{keep}{rest}{fragment if fragment and not set('=@') & set(fragment) else ''}"


def _is_host(text: str) -> bool:
    """Return whether this can be a host, with or without a port."""
    return re.fullmatch(r"(?:\[[^\]]*\]|[^:@]*)(?::[0-9]*)?", text) is not None


def redact_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without the given secrets, tokens' known shapes, private keys and telling names' values."""
    for form in sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    text = _KEY_BLOCK.sub(HIDDEN, text)
    text = _KEY_REST.sub(HIDDEN, text)
    text = redact_url(text)
    text = _TOKEN.sub(HIDDEN, text)
    text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    text = _OPTION.sub(rf"\1{HIDDEN}", text)
    return _ASSIGNED.sub(_hidden_value, text)


def _hidden_value(match: re.Match[str]) -> str:
    value = match[2]
    quote_mark = value[-1] if value[-1] in "\"'" and len(value) > 1 else ""
    opening = value[: value.index(quote_mark) + 1] if quote_mark else ""
    return f"{match[1]}{opening}{HIDDEN}{quote_mark}"


def _forms(secret: str) -> tuple[str, ...]:
    """Return the ways in which a secret is printed: as it is, escaped in a URL, and line by line."""
    whole = secret.strip()
    forms = (whole, quote(whole, safe=""), *(line.strip() for line in whole.splitlines()))
    return tuple(form for form in forms if len(form) >= MIN_SECRET_CHARS)


def redact_argv(argv: Sequence[str], secrets: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the command line with telling options' and variables' values hidden, the rest redacted."""
    known = tuple(secrets)
    hidden: list[str] = []
    value_follows = False
    for item in argv:
        name, equals, _value = item.partition("=")
        if value_follows:
            hidden.append(HIDDEN)
        elif equals and _TELLING_NAME.search(name):
            hidden.append(f"{name}={HIDDEN}")
        elif hidden and hidden[-1] in {"-u", "--user", "--proxy-user"} and ":" in item and _is_fetcher(argv[0]):
            hidden.append(f"{item.partition(':')[0]}:{HIDDEN}")
        else:
            hidden.append(redact_text(item, known))
        value_follows = not value_follows and item.startswith("-") and bool(_TELLING_NAME.search(item))
    return tuple(hidden)


def _is_fetcher(program: str) -> bool:
    return program.rpartition("/")[2] in {"curl", "wget"}


def secret_values(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of those variables of an environment whose names say that they are secret."""
    return tuple(
        value for name, value in env.items() if _TELLING_NAME.search(name) and len(value) >= MIN_SECRET_CHARS
    )


def excerpt(log: Path, limit_bytes: int, secrets: Iterable[str] = ()) -> str:
    """Return a log's head and tail in at most `limit_bytes` of UTF-8, redacted; a line between says what is out.

    Bytes that are no UTF-8 become U+FFFD. Raises OSError where the log can't be read.
    """
    known = tuple(secrets)
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        if size <= limit_bytes + 2 * MARGIN_BYTES:
            whole = redact_text(file.read(size).decode("utf-8", "replace"), known)
            if len(whole.encode()) <= limit_bytes:
                return whole
            head = tail = whole
        else:
            window = limit_bytes // 2 + MARGIN_BYTES
            head_bytes = file.read(window)
            file.seek(size - window)
            tail_bytes = file.read(window)
            head = redact_text(_up_to_a_break(head_bytes).decode("utf-8", "replace"), known)
            tail = redact_text(_from_a_break(tail_bytes).decode("utf-8", "replace"), known)
    gap = f"\n[... {size} bytes in all, the middle is left out ...]\n"
    room = max(0, limit_bytes - len(gap.encode()))
    kept_tail = _last(tail, room - room // 3)
    kept = _first(head, room // 3) + gap + kept_tail
    return _first(kept, limit_bytes)


def _up_to_a_break(block: bytes) -> bytes:
    """Return the block without its last, cut word or line: half a secret has no shape to be known by."""
    return block[: max(block.rfind(b"\n"), block.rfind(b" "), 0)]


def _from_a_break(block: bytes) -> bytes:
    """Return the block without its first, cut line; nothing where it is all one line."""
    place = block.find(b"\n")
    return block[place + 1 :] if place >= 0 else b""


def _first(text: str, limit_bytes: int) -> str:
    return text.encode()[:limit_bytes].decode("utf-8", "ignore")


def _last(text: str, limit_bytes: int) -> str:
    content = text.encode()
    return content[max(0, len(content) - limit_bytes) :].decode("utf-8", "ignore")
