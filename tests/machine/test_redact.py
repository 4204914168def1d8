"""Credentials never reach the ledger (DESIGN section 3): URLs, command lines, excerpts of logs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.machine.redact import HIDDEN, excerpt, redact_argv, redact_text, redact_url, secret_values

X = "Zq3" * 14  # stands for the random part of a token; put together here, so that no scanner takes it for one


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://github.com/a/b.git", "https://github.com/a/b.git"),
        ("https://alice:hunter22@github.com/a/b.git", "https://github.com/a/b.git"),
        (f"https://{X}@github.com/a/b.git", "https://github.com/a/b.git"),
        ("https://x-access-token:abc@ghe.example.org:8443/a", "https://ghe.example.org:8443/a"),
        ("ssh://git@host.example/a/b", "ssh://git@host.example/a/b"),
        ("ssh://git:word@host.example/a/b", "ssh://host.example/a/b"),
        ("git+ssh://git@host/a", "git+ssh://git@host/a"),
        ("git@github.com:a/b.git", "git@github.com:a/b.git"),
        ("https://host/a?token=abc&x=1", "https://host/a"),
        ("https://host/a?x#frag", "https://host/a#frag"),
        ("https://host/cb#access_token=abc", "https://host/cb"),
        ("https://u:p@ss@host/a", "https://host/a"),
        ("https://u:p/w@host/a", "https://host/a"),
        ("https://u:p#w@host/a", "https://host/a"),
        ("https://u:p?w@host/a?q", "https://host/a"),
        ("https://u:nohost", f"https://{HIDDEN}"),
        ("https://host/@scope/pkg@1.2", "https://host/@scope/pkg@1.2"),
        ("http://[::1]:8080/a?b", "http://[::1]:8080/a"),
        ("postgresql+psycopg://u:pw@db/x", "postgresql+psycopg://db/x"),
        ("HTTPS://U:P@HOST/a", "HTTPS://HOST/a"),
        ("see https://u:p@h/x?y and http://k@i/z.", "see https://h/x and http://i/z."),
        ("/srv/git/repo.git", "/srv/git/repo.git"),
        ("", ""),
    ],
)
def test_urls_lose_credentials_and_queries_and_nothing_else(given, kept):
    assert redact_url(given) == kept
    assert redact_url(kept) == kept


SECRETS = [
    "ghp_" + X,
    "gho_" + X,
    "github_pat_" + X,
    "glpat-" + X[:20],
    "AKIA" + "ABCDEFGH12345678",
    "xoxb-" + X,
    "sk-" + "ant-" + X,
    "sk_live_" + X,
    "hf_" + X,
    "npm_" + X,
    "pypi-" + X,
    "AIza" + X,
    "eyJhbGciOi" + X + "." + X + "." + X,
    "AGE-SECRET-KEY-1" + X.upper(),
]


@pytest.mark.parametrize("token", SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "got '{}' here", 'x="{}"', "a,{},b", "https://h/{}/x", "E   {}\n", "({})"]
)
def test_tokens_of_known_shapes_are_hidden(token, around):
    hidden = redact_text(around.format(token))

    assert token not in hidden
    assert token[-12:] not in hidden
    assert HIDDEN in hidden


@pytest.mark.parametrize(
    "line",
    [
        "password={}",
        "PASSWORD = '{}'",
        'db_password: "{}"',
        '{{"api_key": "{}", "x": 1}}',
        "{{'aws_secret_access_key': '{}'}}",
        "AWS_SECRET_ACCESS_KEY={} make",
        "token => {}",
        "export GITLAB_TOKEN={}",
        "Authorization: Bearer {}",
        "authorization: token {}",
        "curl -H 'PRIVATE-TOKEN: {}' x",
        "headers={{'Authorization': 'Basic {}'}}",
        "Set-Cookie: session={}; Path=/",
        "using bearer {}",
        "tool --password {} run",
        "tool --auth-token={} run",
        "password   = b'{}'",
        'passphrase="{}',
        "client_secret={}&x=1",
        "//registry.example/:_authToken={}",
        "signing_key={}",
    ],
)
@pytest.mark.parametrize("value", ["hunter2hunter2[99]xyz", "Abc/def+ghi=jkl.mno"])
def test_values_of_telling_names_are_hidden(line, value):
    hidden = redact_text(line.format(value))

    assert value not in hidden
    assert value[-6:] not in hidden
    assert redact_text(hidden) == hidden


@pytest.mark.parametrize(
    "line",
    [
        "1 passed in 0.12s",
        "tests/test_token.py::test_token_is_valid PASSED",
        "E       assert tokens == 512",
        "tokens: 512, max_new_tokens=64",
        "tokenizer: loaded",
        "secrets.py:12: in <module>",
        "def login(password, token):",
        "assert password == other",
        "keyboard: us",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "sha256:" + "0123456789abcdef" * 4,
        "PWD=/srv/app",
        "the bearer of this",
        "task-1 sk-1",
    ],
)
def test_ordinary_lines_stay_as_they_are(line):
    assert redact_text(line) == line


def test_private_keys_are_hidden_whole_and_in_part():
    begin, end = "-----BEGIN OPENSSH " + "PRIVATE KEY-----", "-----END OPENSSH " + "PRIVATE KEY-----"
    body = "\n".join(["b3BlbnNzaC1rZXk" * 4] * 5)

    assert redact_text(f"a\n{begin}\n{body}\n{end}\nb") == f"a\n{HIDDEN}\nb"
    assert redact_text(f"a\n{begin}\n{body}") == f"a\n{HIDDEN}"
    assert redact_text(f"{body}\n{end}\nb") == f"{HIDDEN}\nb"
    assert redact_text("-----BEGIN PUBLIC KEY-----\nMFkw") == "-----BEGIN PUBLIC KEY-----\nMFkw"


def test_given_secrets_are_hidden_in_every_form_and_short_ones_are_not_secrets():
    assert redact_text("x=p@ss/word! y", ["p@ss/word!"]) == f"x={HIDDEN} y"
    assert "p%40ss" not in redact_text("?q=p%40ss%2Fword%21", ["p@ss/word!"])
    assert "second line" not in redact_text("| second line |", ["first line\nsecond line\n"])
    assert redact_text("abcdefgh abcdef", ["abcdef", "abcdefgh"]) == f"{HIDDEN} {HIDDEN}"
    assert redact_text("on and on", ["on", ""]) == "on and on"


def test_secret_values_are_found_by_their_names():
    env = {
        "API_TOKEN": "aaaaaaaa",
        "HOME": "/root/home",
        "DB_PASSWORD": "bbbbbbbb",
        "TOKENIZERS_PARALLELISM": "false",
        "X_SECRET": "no",
    }

    assert secret_values(env) == ("aaaaaaaa", "bbbbbbbb")


@given(st.text(max_size=300) | st.text(alphabet="password=token:/@?#'\"[] \n-abc0", max_size=120))
def test_redacting_twice_is_redacting_once(text):
    once = redact_text(text)

    assert redact_text(once) == once


@given(
    st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\"'\\"), min_size=8)
)
def test_no_password_of_printable_characters_gets_through(value):
    for line in (f"password={value} end", f'"password": "{value}"', f"--password {value}", f"PASSWORD='{value}'"):
        assert value not in redact_text(line).replace(HIDDEN, "")


@pytest.mark.parametrize(
    ("argv", "kept"),
    [
        (("pytest", "-q", "tests"), ("pytest", "-q", "tests")),
        (("x", "--password", "a b", "y"), ("x", "--password", HIDDEN, "y")),
        (("x", "--api-key=a b"), ("x", f"--api-key={HIDDEN}")),
        (("env", "TOKEN=a b", "make"), ("env", f"TOKEN={HIDDEN}", "make")),
        (("x", "--token", "--token"), ("x", "--token", HIDDEN)),
        (
            ("/usr/bin/curl", "-u", "alice:pw", "https://a:b@h/x?y"),
            ("/usr/bin/curl", "-u", f"alice:{HIDDEN}", "https://h/x"),
        ),
        (("docker", "run", "-u", "1000:1000"), ("docker", "run", "-u", "1000:1000")),
        (
            ("sh", "-c", "curl -H 'Authorization: Bearer abc' h"),
            ("sh", "-c", f"curl -H 'Authorization: {HIDDEN}' h"),
        ),
        ((), ()),
    ],
)
def test_command_lines_keep_their_shape_and_lose_their_secrets(argv, kept):
    assert redact_argv(argv) == kept


def test_a_short_log_is_its_own_excerpt(tmp_path):
    log = tmp_path / "log"
    log.write_text("one\ntwo ü\n")

    assert excerpt(log, 1000) == "one\ntwo ü\n"


def test_an_excerpt_keeps_both_ends_and_says_that_the_middle_is_out(tmp_path):
    log = tmp_path / "log"
    log.write_text("".join(f"line {n}\n" for n in range(100_000)))
    text = excerpt(log, 4000)

    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("line 99999\n")
    assert "left out" in text
    assert 3000 < len(text.encode()) <= 4000


@pytest.mark.parametrize("limit", [0, 1, 10, 100, 5000])
@pytest.mark.parametrize(
    "content", [b"\xff\x00" * 40_000, b"x" * 100_000, "ü€😀\n".encode() * 20_000, b"", b"\n" * 50_000]
)
def test_an_excerpt_is_bounded_whatever_the_log_holds(tmp_path, limit, content):
    log = tmp_path / "log"
    log.write_bytes(content)
    text = excerpt(log, limit)

    assert len(text.encode()) <= limit


@pytest.mark.parametrize("offset", range(0, 60, 7))
def test_no_part_of_a_secret_at_the_edge_of_an_excerpt_is_kept(tmp_path, offset):
    log = tmp_path / "log"
    line = f"{'a' * (offset % 8)} {' '.join(['ghp_' + X] * 8)}\n"  # hidden, it shrinks so far that the edges show
    log.write_text(line * 3000)
    for limit in range(100_000 + offset, 100_400, 57):
        text = excerpt(log, limit)
        assert HIDDEN in text
        assert "ghp_" not in text
        assert "Zq3" not in text


def test_redaction_is_linear_in_hostile_text():
    begin = time.perf_counter()
    for piece in (
        "-",
        "a",
        "password",
        "password=",
        "--",
        '"',
        "https://",
        "a@",
        "\\",
        " ",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "sk-",
    ):
        redact_text(piece * (200_000 // len(piece)))
    assert time.perf_counter() - begin < 5
