"""Which key signs: the first given of five places, by arguments alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitledger.errors import TrustError
from gitledger.trust.find_key import KEY_VARIABLE, KeyChoice, find_key

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
