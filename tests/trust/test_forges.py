"""Forge users and their keys, over a real HTTP server on loopback."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gitledger.errors import ConfigError, TrustError
from gitledger.trust.fetch import MAX_ANSWER_BYTES, MAX_REDIRECTS, is_safe_url
from gitledger.trust.forges import Forges, ForgeUser, proxies_from

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
ALICE = ForgeUser("lab", "alice")


class Server:
    """A forge on loopback: `pages` maps a path to bytes, or to a function of the request handler."""

    def __init__(self) -> None:
        self.pages: dict[str, object] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                page = outer.pages.get(self.path)
                if callable(page):
                    page(self)
                elif page is None:
                    self.send_error(404)
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(page)))
                    self.end_headers()
                    self.wfile.write(page)

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.base = f"http://127.0.0.1:{self.http.server_port}"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def forges(server, tmp_path):
    """Return a maker of `Forges` that ask the loopback server: `forges(now=…, offline=…)`."""

    def make(**options) -> Forges:
        options = {"now": NOW, "cache": tmp_path / "cache", "timeout_s": 2.0} | options
        return Forges({"lab": server.base + "/{user}.keys"}, **options)

    return make


@pytest.fixture
def key(signers_by_kind):
    return signers_by_kind["ed25519"].key


def refused(forges: Forges, code: str, user: ForgeUser = ALICE, **options) -> TrustError:
    with pytest.raises(TrustError) as caught:
        forges.keys(user, **options)
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


def test_a_users_keys_are_those_that_the_forge_publishes(server, forges, key, signers_by_kind):
    other = signers_by_kind["rsa"].key
    server.pages["/alice.keys"] = f"{key.line} comment\n{other.line}\n\nssh-dss AAAA\n<html>\n".encode()
    answer = forges().keys(ALICE)
    assert answer.holds(key)
    assert answer.holds(other)
    assert not answer.holds(signers_by_kind["ecdsa256"].key)
    assert len(answer.ignored) == 2
    assert not answer.from_cache


def test_a_login_page_grants_nothing(server, forges, key):
    server.pages["/alice.keys"] = b"<!doctype html>\n<title>Sign in</title>\n"
    answer = forges().keys(ALICE)
    assert answer.keys == ()
    assert not answer.holds(key)


def test_one_command_asks_once_and_the_next_within_the_age_not_at_all(server, forges, key):
    server.pages["/alice.keys"] = key.line.encode()
    first = forges()
    first.keys(ALICE)
    first.keys(ALICE)
    assert server.asked == ["/alice.keys"]
    later = forges(now=NOW + timedelta(minutes=59)).keys(ALICE)
    assert later.from_cache
    assert later.fetched_at == NOW
    assert later.holds(key)
    assert len(server.asked) == 1
    forges(now=NOW + timedelta(minutes=61)).keys(ALICE)
    assert len(server.asked) == 2


def test_current_keys_are_asked_for_whatever_the_cache_says(server, forges, key):
    """`merge --verify-inputs`: a key that was withdrawn a minute ago is gone."""
    server.pages["/alice.keys"] = key.line.encode()
    forges().keys(ALICE)
    server.pages["/alice.keys"] = b""
    asked = forges(now=NOW + timedelta(minutes=1))
    assert asked.keys(ALICE).holds(key)
    assert not asked.keys(ALICE, current=True).holds(key)
    assert not asked.keys(ALICE).holds(key)


def test_offline_uses_what_was_fetched_for_a_while_and_asks_nobody(server, forges, key):
    refused(forges(offline=True), "forge-offline")
    server.pages["/alice.keys"] = key.line.encode()
    forges().keys(ALICE)
    server.asked.clear()
    answer = forges(offline=True, now=NOW + timedelta(days=6)).keys(ALICE)
    assert answer.holds(key)
    assert answer.from_cache
    refused(forges(offline=True, now=NOW + timedelta(days=8)), "forge-offline")
    assert server.asked == []


def test_an_answer_from_the_future_or_a_damaged_one_is_no_answer(server, forges, key, tmp_path):
    server.pages["/alice.keys"] = key.line.encode()
    forges(now=NOW + timedelta(days=1)).keys(ALICE)
    refused(forges(offline=True), "forge-offline")
    for file in (tmp_path / "cache").iterdir():
        file.write_text('{"url": 1}')
    refused(forges(offline=True, now=NOW + timedelta(days=2)), "forge-offline")


@pytest.mark.parametrize("place", ["folder", "file"])
def test_a_kept_answer_that_others_may_write_is_no_answer(server, forges, key, tmp_path, place):
    """It grants keys: whoever can write it could grant any."""
    server.pages["/alice.keys"] = key.line.encode()
    forges().keys(ALICE)
    [file] = (tmp_path / "cache").iterdir()
    (file.parent if place == "folder" else file).chmod(0o777)
    assert not forges().keys(ALICE).from_cache
    assert server.asked == ["/alice.keys"] * 2


def test_an_unreachable_forge_does_not_bring_older_keys_back(server, forges, key):
    server.pages["/alice.keys"] = key.line.encode()
    forges().keys(ALICE)

    def fail(handler) -> None:
        handler.send_error(503)

    server.pages["/alice.keys"] = fail
    refused(forges(now=NOW + timedelta(hours=2)), "forge-unreachable")


def test_an_unknown_user_and_an_unknown_forge_are_named(forges):
    assert "alice" in refused(forges(), "forge-user-unknown").message
    assert "known: github, lab" in refused(forges(), "forge-unknown", ForgeUser("nowhere", "alice")).message


def test_a_redirect_to_another_host_is_refused(server, forges, key):
    other = Server()
    other.pages["/alice.keys"] = key.line.encode()

    def redirect(handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", other.base + "/alice.keys")
        handler.end_headers()

    server.pages["/alice.keys"] = redirect
    try:
        assert "redirects" in refused(forges(), "forge-unreachable").message
        assert other.asked == []
    finally:
        other.close()


def test_a_redirect_within_the_host_is_followed_but_not_for_ever(server, forges, key):
    def to(path: str):
        def redirect(handler) -> None:
            handler.send_response(302)
            handler.send_header("Location", path)
            handler.end_headers()

        return redirect

    server.pages["/alice.keys"] = to("/renamed.keys")
    server.pages["/renamed.keys"] = key.line.encode()
    assert forges(cache=None).keys(ALICE).holds(key)
    server.pages["/renamed.keys"] = to("/alice.keys")
    refused(forges(cache=None), "forge-unreachable")
    assert len(server.asked) < 12
    server.asked.clear()
    server.pages |= {f"/{n}.keys": to(f"/{n + 1}.keys") for n in range(9)}
    server.pages |= {"/alice.keys": to("/0.keys"), "/9.keys": key.line.encode()}
    refused(forges(cache=None), "forge-unreachable")
    assert len(server.asked) == 1 + MAX_REDIRECTS


def test_a_stalling_server_ends_at_the_deadline(server, forges):
    """One byte at a time, each well within a socket's own time-out."""

    def drip(handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b"#")
            handler.wfile.flush()
            time.sleep(0.05)

    server.pages["/alice.keys"] = drip
    began = time.monotonic()
    refused(forges(timeout_s=0.4), "forge-unreachable")
    assert time.monotonic() - began < 2


def test_an_endless_answer_is_cut_off_and_refused(server, forges):
    def flood(handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"# " + b"x" * 65534)
        except OSError:
            pass

    server.pages["/alice.keys"] = flood
    assert str(MAX_ANSWER_BYTES) in refused(forges(), "forge-unreachable").message


def test_an_answer_that_breaks_off_is_refused(server, forges, key):
    def cut(handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "5000")
        handler.end_headers()
        handler.wfile.write(key.line.encode())

    server.pages["/alice.keys"] = cut
    assert "broke off" in refused(forges(), "forge-unreachable").message


@pytest.mark.parametrize(
    "user", ["github", "github:", ":alice", "github:a/b", "github:..", "github:a?b", "gh:a b", "G:a"]
)
def test_names_that_could_leave_their_place_in_the_url_are_no_users(user):
    with pytest.raises(ValueError, match="FORGE:USER"):
        ForgeUser.parse(user)


def test_a_user_is_spelled_forge_colon_name():
    assert str(ForgeUser.parse("github:alice-h")) == "github:alice-h"
    assert (
        Forges({}, now=NOW, cache=None).url(ForgeUser.parse("github:alice-h")) == "https://github.com/alice-h.keys"
    )


@pytest.mark.parametrize(
    "template",
    [
        "http://example.org/{user}.keys",
        "https://{user}.example.org/keys",
        "https://example.org/keys",
        "https://example.org/{user}/{user}",
        "file:///etc/{user}",
        "https://me:secret@example.org/{user}",
        "ftp://example.org/{user}",
    ],
)
def test_a_template_is_https_with_one_user_behind_the_host(template):
    with pytest.raises(ConfigError) as caught:
        Forges({"lab": template}, now=NOW, cache=None)
    assert caught.value.code == "bad-forge"


def test_http_is_for_loopback_alone():
    assert is_safe_url("http://127.0.0.1:8080/a")
    assert is_safe_url("http://[::1]/a")
    assert not is_safe_url("http://127.0.0.1.example.org/a")
    assert not is_safe_url("http://127.0.0.1@example.org/a")
    assert not is_safe_url("https://")


def test_proxies_come_from_the_environment_that_is_handed_in():
    assert proxies_from({"HTTPS_PROXY": "http://proxy:3128"}) == {"https": "http://proxy:3128"}
    assert proxies_from({}) == {}
