"""One bounded request for a small public text: time, size and redirects all have an end."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPException
from typing import IO
from urllib.parse import SplitResult, urlsplit

from gitledger.dataclass import dataclass
from gitledger.errors import TrustError

__all__ = ["MAX_ANSWER_BYTES", "fetch", "is_safe_url"]

MAX_ANSWER_BYTES = 256 << 10
MAX_REDIRECTS = 3
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_OFFLINE = "retry later, or use --offline to judge by the keys of the last answer"


def is_safe_url(url: str) -> bool:
    """Tell whether a URL is https, or http on loopback, and carries no credentials."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)


def _place(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects on the very host, port and scheme that was asked, and no further."""

    max_redirections = MAX_REDIRECTS

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message[str, str],
        newurl: str,
    ) -> urllib.request.Request | None:
        if _place(urlsplit(newurl)) != _place(urlsplit(req.full_url)):
            fp.close()
            raise TrustError(
                "forge-unreachable", f"{req.full_url} redirects to another place ({ascii(newurl)[1:81]})", _OFFLINE
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


@dataclass(slots=True)
class _Answer:
    """What the fetching thread leaves behind."""

    body: bytes | None = None
    error: TrustError | None = None


def fetch(url: str, *, timeout_s: float, proxies: Mapping[str, str]) -> bytes:
    """Return the body of a 200 answer; raises `TrustError` `forge-unreachable` or `forge-user-unknown` (404).

    `timeout_s` bounds the whole exchange. Name look-up, handshake and a server that drips a byte a second know no
    such bound of their own, so they run in a thread that is left behind at the deadline.
    """
    if not is_safe_url(url):
        raise TrustError("forge-unreachable", f"{url} is not https", "use https; http is for loopback alone")
    answer = _Answer()
    thread = threading.Thread(target=_fetch_into, args=(answer, url, timeout_s, proxies), daemon=True)
    thread.start()
    thread.join(timeout_s)
    if answer.error is not None:
        raise answer.error
    if answer.body is None:
        raise TrustError("forge-unreachable", f"{url} did not answer within {timeout_s:g} s", _OFFLINE)
    return answer.body


def _fetch_into(answer: _Answer, url: str, timeout_s: float, proxies: Mapping[str, str]) -> None:
    try:
        answer.body = _fetch(url, timeout_s, proxies)
    except TrustError as error:
        answer.error = error
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            answer.error = TrustError(
                "forge-user-unknown", f"{url}: no such user (404)", "check the name in policy"
            )
        else:
            answer.error = TrustError("forge-unreachable", f"{url} answered {error.code}", _OFFLINE)
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        answer.error = TrustError(
            "forge-unreachable", f"{url} can't be reached: {ascii(str(reason))[1:121]}", _OFFLINE
        )


def _fetch(url: str, timeout_s: float, proxies: Mapping[str, str]) -> bytes:
    through = {} if urlsplit(url).hostname in _LOOPBACK else dict(proxies)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(through), _SameHost())
    request = urllib.request.Request(url, headers={"User-Agent": "git-ledger", "Accept": "text/plain"})  # noqa: S310
    with opener.open(request, timeout=timeout_s) as response:  # the scheme was checked above
        if response.status != 200:
            raise TrustError("forge-unreachable", f"{url} answered {response.status}", _OFFLINE)
        body: bytes = response.read(MAX_ANSWER_BYTES + 1)
        is_cut = len(body) <= MAX_ANSWER_BYTES and bool(response.length)  # read(n) accepts a body cut short
    if is_cut:
        raise TrustError("forge-unreachable", f"{url} broke off in the middle of its answer", _OFFLINE)
    if len(body) > MAX_ANSWER_BYTES:
        raise TrustError("forge-unreachable", f"{url} answered more than {MAX_ANSWER_BYTES} bytes", _OFFLINE)
    return body
