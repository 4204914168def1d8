"""Patterns mean what git means by them: git itself is the oracle."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from gitledger.errors import ManifestError
from gitledger.manifest.pattern import canonical_text, compile_pattern, escape_path, has_wildcard, path_bytes

PARTS = [
    "*",
    "**",
    "?",
    "a",
    "b",
    "ab",
    ".py",
    "[ab]",
    "[!a]",
    "[^b]",
    "[]a]",
    "[a-c]",
    "[[:alpha:]]",
    "[a-]",
    "\\*",
]
PARTS += [
    "[[:x]",
    "[b-a]",
    "[\\]]",
    "é",
    "[é]",
    "-",
    "]",
    "\\[",
    "[[:digit:][:punct:]]",
    "[!]a]",
    "[--a]",
    "[a\\-c]",
]
NAMES = [
    "a",
    "b",
    "ab",
    "abc",
    "a.py",
    "b.py",
    "*",
    "é",
    "-",
    "]",
    "[",
    "1",
    "ba",
    "A",
    ".py",
    "a\nb",
    "a*",
    "a b",
]
component = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("".join)
pattern_text = st.builds(
    lambda parts, end: "/".join(parts) + end,
    st.lists(component, min_size=1, max_size=3),
    st.sampled_from(["", "/"]),
)
path_text = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def git_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("oracle")
    subprocess.run(["git", "init", "-q", str(folder)], check=True, env=_env(folder))
    return folder


def _env(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C.UTF-8",
    }


def git_ignores(folder: Path, pattern: str, paths: list[str]) -> set[str]:
    """Return which paths git's own matcher takes for ignored; a path that ends in `/` is a folder."""
    (folder / ".git" / "info" / "exclude").write_bytes(path_bytes(pattern) + b"\n")
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=folder,
        input=b"".join(b"./" + path_bytes(path) + b"\0" for path in paths),
        capture_output=True,
        env=_env(folder),
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return {
        path.decode("utf-8", "surrogateescape").removeprefix("./") for path in done.stdout.split(b"\0") if path
    }


def takes(text: str, path: str) -> bool:
    """Tell whether the pattern matches the file at `path`, or a folder above it."""
    pattern = compile_pattern(text)
    states = pattern.start()
    names = path.split("/")
    for i, name in enumerate(names):
        states, accepted = pattern.step(states, path_bytes(name))
        if accepted and (i + 1 < len(names) or not pattern.folder_only):
            return True
    return False


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=pattern_text, paths=st.lists(path_text, min_size=1, max_size=12, unique=True))
@example(text="a/**/b", paths=["a/b", "a/x/b", "a/x/y/b", "ab", "x/a/b"])
@example(text="a/**", paths=["a", "a/b", "a/b/c", "b/a/c"])
@example(text="**/a", paths=["a", "x/a", "x/y/a", "xa"])
@example(text="[[:x]", paths=["[", ":", "x", "a"])
def test_globs_match_as_git_does(git_folder: Path, text: str, paths: list[str]) -> None:
    # A leading `#` and trailing blanks are syntax of the file, not of patterns; none are generated.
    theirs = git_ignores(git_folder, text, paths)
    refusal = refused(text)
    if refusal:
        # But for one reading that git's manual and git disagree on, we refuse what matches nothing in git.
        assert "`**`" in refusal or theirs == set()
    elif has_wildcard(text):  # others are plain paths from the root, which gitignore says with a slash in front
        assert {path for path in paths if takes(text, path)} == theirs


def refused(text: str) -> str:
    """Return why the pattern is refused, or nothing."""
    try:
        compile_pattern(text)
    except ManifestError as error:
        return error.message
    return ""


@given(text=pattern_text)
def test_the_canonical_text_is_a_fixed_point(text: str) -> None:
    once = canonical_text(text)
    assert canonical_text(once) == once
    assert canonical_text(f"./{once}") == once or canonical_text(f"./{once}").removeprefix("./") == once


@given(path=st.lists(st.text(min_size=1, max_size=8).filter(lambda t: "/" not in t), min_size=1, max_size=3))
@example(path=["!x"])
@example(path=["c:x"])
@example(path=["a[1].py", "*", "b\\n"])
def test_an_escaped_path_is_that_path(path: list[str]) -> None:
    text = "/".join(path)
    names = list(path)
    assume("\0" not in text and not {".", ".."} & set(names))
    pattern = compile_pattern(escape_path(text))
    assert pattern.parts == tuple(path_bytes(name) for name in names)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("../x", "path-outside"),
        ("a/../b", "path-outside"),
        ("/etc/passwd", "path-outside"),
        ("C:\\x", "path-outside"),
        ("c:/x", "path-outside"),
        ("!a", "pattern-negated"),
        ("a[", "pattern-invalid"),
        ("a\\", "pattern-invalid"),
        ("a**/b", "pattern-invalid"),
        ("src\\foo", "pattern-invalid"),
        ("[[:nope:]]", "pattern-invalid"),
        ("a\0b", "pattern-invalid"),
    ],
)
def test_what_is_no_pattern_of_the_repository_is_refused_by_name(text: str, code: str) -> None:
    with pytest.raises(ManifestError) as caught:
        compile_pattern(text)
    assert caught.value.code == code
    assert "\n" not in str(caught.value)


def test_many_stars_cost_no_time() -> None:
    pattern = compile_pattern("*a" * 60 + "b")
    states, accepted = pattern.step(pattern.start(), b"a" * 4000)
    assert not accepted
    assert states


def test_a_leading_dot_keeps_a_glob_to_the_root() -> None:
    assert takes("./*.py", "a.py")
    assert not takes("./*.py", "src/a.py")
    assert takes("*.py", "src/a.py")
