"""Who a key belongs to: named cases of allowed_signers and revoked_keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gitledger.errors import ConfigError
from gitledger.trust.keys import PublicKey
from gitledger.trust.patterns import list_matches
from gitledger.trust.signers import Signers
from gitledger.trust.verified import check_sshsig
from gitledger.trust.wire import put_mpint, put_string

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def key(signers_by_kind) -> PublicKey:
    return signers_by_kind["ed25519"].key


@pytest.fixture
def other(signers_by_kind) -> PublicKey:
    return signers_by_kind["rsa"].key


def signers(text: str, revoked: str | bytes = b"") -> Signers:
    return Signers.parse(text.encode(), revoked if isinstance(revoked, bytes) else revoked.encode())


# T01: retired and revoked keys


def test_t01_a_retired_key_speaks_for_the_time_before_only(key):
    known = signers(f'alice valid-before="20260615Z" {key.line}')
    assert known.principals(key, NOW - DAY) == {"alice"}
    assert known.principals(key, NOW) == frozenset()
    assert known.is_valid_now(key, NOW - DAY)
    assert not known.is_valid_now(key, NOW)


def test_t01_a_key_is_not_valid_before_its_time(key):
    known = signers(f'alice valid-after="20260615120000Z" {key.line}')
    assert not known.principals(key, NOW - timedelta(microseconds=1))
    assert known.principals(key, NOW) == {"alice"}


def test_t01_both_ends_of_a_validity_are_inclusive(key):
    known = signers(f'alice valid-before="20260615120000Z" {key.line}')
    assert known.principals(key, NOW)
    assert not known.principals(key, NOW + timedelta(microseconds=1))


def test_t01_a_revoked_key_has_no_principals_at_any_time(key, other):
    for revoked in (f"{key.line} stolen\n", f"{key.fingerprint}\n", f"# why\r\n\r\n  {key.line}\r\n"):
        known = signers(f"alice {key.line}\nbob {other.line}", revoked)
        assert known.is_revoked(key)
        for at in (NOW - 1000 * DAY, NOW, NOW + 1000 * DAY):
            assert not known.principals(key, at)
            assert not known.speaks_for(key, "alice", at)
        assert known.principals(other, NOW) == {"bob"}
        assert not known.is_revoked(other)


def test_t01_a_revoked_authority_takes_its_certificates_with_it(ssh, key_files):
    authority = key_files["ed25519"]
    certified = ssh.certify(authority, ssh.make_key(name="user"), "-I", "id-1", "-n", "alice", "-z", "5")
    line = certified.certificate.authority.line
    file = f"alice cert-authority {line}"
    assert signers(file).principals(certified, NOW) == {"alice"}
    assert signers(file, line).is_revoked(certified)
    assert signers(file, certified.line).is_revoked(certified)  # the user's plain key
    assert not signers(file, line).principals(certified, NOW)


def test_t01_an_unreadable_line_of_revoked_keys_is_an_error_since_it_may_be_the_one(key):
    for text in (
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        "SHA256:short",
        "nonsense",
        "\x1f",
        "\u2003",
        "MD5:00:11",
        f"alice {key.line}",
    ):
        with pytest.raises(ConfigError) as caught:
            Signers.parse(b"", f"# a comment\n{text}\n".encode(), revoked_source="revoked_keys")
        assert caught.value.code == "bad-revoked-keys"
        assert caught.value.message.startswith("revoked_keys:2:")


# T03: allowed_signers


def test_t03_a_line_of_several_principals_grants_each(key):
    known = signers(f"alice,bob@example.org {key.line} laptop")
    assert known.principals(key, NOW) == {"alice", "bob@example.org"}
    assert known.all_principals() == {"alice", "bob@example.org"}


def test_t03_lines_of_one_key_add_up(key):
    known = signers(f'alice {key.line}\nbob valid-before="20250101Z" {key.line}\ncarol {key.line}')
    assert known.principals(key, NOW) == {"alice", "carol"}


def test_t03_a_pattern_grants_the_names_that_it_matches_and_shows_itself(key):
    known = signers(f"*@example.org,!eve@example.org {key.line}")
    assert known.speaks_for(key, "bob@example.org", NOW)
    assert not known.speaks_for(key, "eve@example.org", NOW)
    assert not known.speaks_for(key, "bob@example.com", NOW)
    assert known.principals(key, NOW) == {"*@example.org"}
    assert known.principals(key, NOW, among={"bob@example.org", "eve@example.org"}) == {
        "*@example.org",
        "bob@example.org",
    }


def test_t03_a_name_that_its_own_line_negates_is_not_granted(key):
    known = signers(f"alice,!alice,bob {key.line}")
    assert known.principals(key, NOW) == {"bob"}


def test_t03_names_are_compared_to_the_letter(key):
    known = signers(f"alice {key.line}")
    for name in ("Alice", "alice ", "alic", "alicee", "", "аlice"):  # the last one begins with a Cyrillic letter
        assert not known.speaks_for(key, name, NOW)


def test_t03_the_namespace_of_records_must_be_listed_where_any_is(key):
    assert not signers(f'alice namespaces="git" {key.line}').principals(key, NOW)
    assert not signers(f'alice namespaces="" {key.line}').principals(key, NOW)
    assert not signers(f'alice namespaces="git*,!gitledger" {key.line}').principals(key, NOW)
    assert signers(f'alice namespaces="git,gitledger" {key.line}').principals(key, NOW)


def test_t03_comments_blank_lines_and_crlf(key):
    known = signers(f"# ours\r\n\r\n   \r\n  alice\t{key.line}   a comment # here\r\n#bob {key.line}\r\n")
    assert known.principals(key, NOW) == {"alice"}


def test_t03_a_quoted_principal_may_hold_blanks(key):
    assert signers(f'"alice of the lab" {key.line}').principals(key, NOW) == {"alice of the lab"}


@pytest.mark.parametrize("option", ["valid-after", "valid-before"])
def test_t03_a_date_without_z_is_refused_with_the_remedy(option, key):
    with pytest.raises(ConfigError) as caught:
        signers(f'# one\nalice {option}="20260615" {key.line}')
    assert caught.value.code == "bad-allowed-signers"
    assert ":2: " in caught.value.message
    assert f'{option}="20260615Z"' in caught.value.hint


BROKEN = {
    "one word": "alice",
    "no key": "alice cert-authority",
    "key cut": "alice ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA",
    "not base64": "alice ssh-ed25519 !!!!",
    "type and key differ": "alice ssh-rsa KEY64",
    "unknown option": "alice no-such-option KEY",
    "unquoted option": "alice namespaces=gitledger KEY",
    "option twice": 'alice namespaces="a",namespaces="b" KEY',
    "comma at the end": "alice cert-authority, KEY",
    "quote not closed": '"alice KEY',
    "option quote not closed": 'alice namespaces="git KEY',
    "text after quote": '"alice"bob KEY',
    "no such date": 'alice valid-after="20260230Z" KEY',
    "words for a date": 'alice valid-after="yesterday" KEY',
    "before not after": 'alice valid-after="20260102Z",valid-before="20260101Z" KEY',
    "the year 1970": 'alice valid-before="19700101Z" KEY',
    "NUL": "alice\x00 KEY",
    "a certificate": "alice CERT",
    "long line": "alice KEY " + "x" * 70_000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_t03_a_line_that_cannot_be_read_is_named(name, key, ssh, key_files):
    text = BROKEN[name].replace("KEY64", key.line.split()[1]).replace("KEY", key.line)
    if "CERT" in text:
        made = ssh.certify(key_files["rsa"], ssh.make_key(name="user"), "-I", "id", "-n", "alice")
        text = text.replace("CERT", made.certificate.line)
    with pytest.raises(ConfigError) as caught:
        Signers.parse(f"# fine\nalice {key.line}\n{text}\n".encode(), allowed_source="signers")
    assert caught.value.code == "bad-allowed-signers"
    assert caught.value.message.startswith("signers:3: ")
    assert caught.value.hint


def test_t03_a_key_that_may_not_sign_grants_nothing_and_blocks_nobody(key):
    import base64

    weak = base64.b64encode(put_string("ssh-rsa") + put_mpint(65537) + put_mpint((1 << 1023) | 1)).decode()
    known = signers(f"old ssh-rsa {weak}\nalice {key.line}")
    assert known.principals(key, NOW) == {"alice"}
    assert known.all_principals() == {"alice"}
    assert len(known.ignored) == 1
    assert ":1: " in known.ignored[0]
    assert "1024 bits" in known.ignored[0]


def test_t03_nobody_is_nobody(key):
    for text in ("", "# nobody\n", "!alice " + key.line):
        assert not signers(text).principals(key, NOW)
        assert not signers(text).all_principals()


# certificates


def test_an_authority_grants_what_both_certificate_and_line_name(ssh, key_files):
    made = ssh.certify(
        key_files["ecdsa384"], ssh.make_key(name="user"), "-I", "id", "-n", "alice,bob,eve@else.org"
    )
    authority = made.certificate.authority.line
    known = signers(f"alice,carol,*@else.org cert-authority {authority}")
    assert known.principals(made, NOW) == {"alice", "eve@else.org", "*@else.org"}
    assert known.speaks_for(made, "alice", NOW)
    assert not known.speaks_for(made, "bob", NOW)
    assert not known.speaks_for(made, "carol", NOW)


def test_an_authority_is_no_signer_and_a_signer_is_no_authority(ssh, key_files, signers_by_kind):
    made = ssh.certify(key_files["rsa"], ssh.make_key(name="user"), "-I", "id", "-n", "alice")
    authority = signers_by_kind["rsa"].key
    assert not signers(f"alice cert-authority {authority.line}").principals(authority, NOW)
    assert not signers(f"alice {authority.line}").principals(made, NOW)
    assert not signers(f"alice {made.line}").principals(made, NOW)


@pytest.mark.parametrize(
    "options",
    [
        ("-n", "alice", "-V", "20200101Z:20200102Z"),
        ("-n", "alice", "-h"),
        (),
        ("-n", "alice", "-O", "force-command=x"),
    ],
    ids=["expired", "host", "no principals", "critical option"],
)
def test_a_certificate_that_does_not_vouch_grants_nothing(options, ssh, key_files):
    made = ssh.certify(key_files["ed25519"], ssh.make_key(name="user"), "-I", "id", *options)
    assert not made.certificate.vouches_at(NOW)
    assert not signers(f"* cert-authority {made.certificate.authority.line}").principals(made, NOW)


def test_a_record_signed_with_a_certificate_names_its_plain_key(ssh, key_files, load_signer):
    from gitledger.trust.signer import FileSigner

    path = ssh.make_key(name="user")
    made = ssh.certify(key_files["ed25519"], path, "-I", "id", "-n", "alice")
    signer = FileSigner(load_signer(path)._private, certified=made)
    blob = signer.sign(b"message")
    key, _ = check_sshsig(blob, b"message")
    assert key.certificate == made.certificate
    assert key.fingerprint == load_signer(path).fingerprint
    allowed = f"alice cert-authority {made.certificate.authority.line}\n"
    assert ssh.verify(blob, b"message", allowed=allowed).returncode == 0


def test_a_certificate_ends_just_before_the_instant_that_it_names(ssh, key_files):
    """Unlike a line's `valid-before`, which is inclusive (sshkey.c, sshkey_cert_check_authority)."""
    span = ("-V", "20260615110000Z:20260615120000Z")
    made = ssh.certify(key_files["ed25519"], ssh.make_key(name="user"), "-I", "id", "-n", "alice", *span)
    known = signers(f"alice cert-authority {made.certificate.authority.line}")
    assert not known.principals(made, NOW)
    assert known.principals(made, NOW - timedelta(microseconds=1))
    assert known.principals(made, NOW - timedelta(hours=1))
    assert not known.principals(made, NOW - timedelta(hours=1, microseconds=1))


# patterns


@pytest.mark.parametrize(
    ("name", "patterns", "matches"),
    [
        ("abc", "a*c", True),
        ("abc", "a?c", True),
        ("ac", "a?c", False),
        ("abc", "*b", False),
        ("a*c", "a*c", True),
        ("a.c", "abc", False),
        ("", "*", True),
        ("", "", True),
        ("é", "?", False),
        ("é", "??", True),
        ("a\nb", "a*b", True),
        ("abc", "x,abc", True),
        ("abc", "*,!abc", False),
        ("abc", "!abc,*", False),
        ("aXbXc", "a*b*c", True),
        ("abab", "*ab", True),
        ("a", "a" + "*" * 2000, False),
    ],
)
def test_pattern_lists_match_as_in_openssh(name, patterns, matches):
    assert list_matches(name, patterns) is matches


def test_a_hostile_pattern_does_not_stall():
    import time

    began = time.perf_counter()
    assert not list_matches("a" * 4000, "*a" * 400 + "b")
    assert time.perf_counter() - began < 1
