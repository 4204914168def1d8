"""Which key signs: the first given of five places, by arguments alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitledger.errors import TrustError
from gitledger.trust.find_key import KEY_VARIABLE, KeyChoice, find_key
from gitledger.trust.open_signer import open_signer

PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"
PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA alice"


@pytest.fixture
def home(tmp_path):
    (tmp_path / ".ssh").mkdir()
    return tmp_path


def choose(home: Path, explicit: str | None = None, variable: str | None = None, **config: str) -> KeyChoice:
    settings = {name.replace("_", ".").lower(): value for name, value in config.items()}
    environ = {} if variable is None else {KEY_VARIABLE: variable}
    return find_key(explicit, environ=environ, config=lambda key: settings.get(key.lower()), home=home)


def test_t07_the_first_given_place_wins(home):
    (home / ".ssh" / "id_ed25519").touch()
    given = {"explicit": "/k1", "variable": "/k2", "gitledger_signingKey": "/k3", "user_signingKey": "/k4"}
    for origin, path in (
        ("--key", "/k1"),
        (KEY_VARIABLE, "/k2"),
        ("gitledger.signingKey", "/k3"),
        ("user.signingKey", "/k4"),
    ):
        choice = choose(home, **given, gpg_format="ssh")
        assert (choice.origin, choice.path) == (origin, Path(path))
        given.pop(next(iter(given)))
    assert choose(home).path == home / ".ssh" / "id_ed25519"


def test_t07_default_files_in_their_order(home):
    for name in ("id_rsa", "id_ecdsa", "id_ed25519"):
        (home / ".ssh" / name).touch()
        assert choose(home).path.name == name


def test_t07_an_openpgp_signing_key_is_not_an_ssh_key(home):
    for config in ({}, {"gpg_format": "openpgp"}):
        with pytest.raises(TrustError):
            choose(home, user_signingKey="ABCDEF0123456789", **config)
    assert choose(home, user_signingKey="~/keys/key.pub", gpg_format="ssh").path == home / "keys" / "key.pub"


@pytest.mark.parametrize("given", [{}, {"gpg_format": "openpgp"}, {"gpg_format": "ssh"}])
@pytest.mark.parametrize("value", ["key::garbage", "/no/such/key", "~/nope", "./key", "id.pub", "ssh-rsa garbage"])
def test_t07_a_key_that_was_named_is_never_passed_over_for_a_default(home, value, given):
    (home / ".ssh" / "id_ed25519").touch()
    choice = choose(home, user_signingKey=value, **given)
    assert choice.origin == "user.signingKey"
    with pytest.raises(TrustError, match=r"user\.signingKey") as caught:
        open_signer(choice, environ={})
    assert caught.value.code == "key-unreadable"


@pytest.mark.parametrize("value", ["ABCDEF0123456789", "Alice <alice@example.org>", "/CN=Alice/O=Example"])
def test_t07_a_key_of_another_kind_is_passed_over(home, value):
    (home / ".ssh" / "id_ed25519").touch()
    assert choose(home, user_signingKey=value).origin == "~/.ssh/id_ed25519"


@pytest.mark.parametrize("value", ["key::garbage", "/no/such/key"])
def test_t07_our_own_setting_that_names_no_key_is_named(home, value):
    (home / ".ssh" / "id_ed25519").touch()
    with pytest.raises(TrustError, match=r"gitledger\.signingKey: "):
        open_signer(choose(home, gitledger_signingKey=value), environ={})


@pytest.mark.parametrize("spelling", [f"key::{PUBLIC}", PUBLIC])
def test_t07_a_public_key_itself_names_a_key_of_the_agent(home, spelling):
    choice = choose(home, user_signingKey=spelling)
    assert choice.public_line == PUBLIC
    assert choice.path is None


def test_t07_the_variable_may_hold_the_private_key_itself_and_never_shows_it(home):
    choice = choose(home, variable=PRIVATE)
    assert choice.private_text == PRIVATE
    assert "AAAA" not in repr(choice)


def test_t07_no_key_anywhere_says_what_to_set(home):
    with pytest.raises(TrustError) as caught:
        choose(home)
    assert caught.value.code == "no-key"
    assert KEY_VARIABLE in caught.value.message
    assert "git config gitledger.signingKey" in caught.value.hint
    assert caught.value.exit_status == 2


@pytest.mark.parametrize("value", ["two\nlines", "   ", "nul\x00"])
def test_t07_what_is_neither_path_nor_key_is_named(home, value):
    with pytest.raises(TrustError, match="--key"):
        choose(home, explicit=value)
