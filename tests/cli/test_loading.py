"""What a command stands in for while it loads is, for whoever asks, the module that it stands for."""

from __future__ import annotations

import inspect
import json
import platform
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gitledger.cli.loading import system_name, trimmed

SEEN = """\
import json, sys
from gitledger.cli.loading import Deferred
from gitledger.cli.start import main
try:
    main()
finally:
    kept = sorted(name for name, module in sys.modules.items() if isinstance(module, Deferred))
    print(json.dumps([kept, sorted(sys.modules)]), file=sys.stderr)
"""


@settings(max_examples=1000)
@given(
    st.text(max_size=30) | st.text(" \nab", max_size=30) | st.text(" \t\n\x0b\x0c\r\x1c\x85\xa0ab", max_size=12)
)
@example("Say more.")
@example(" \n  two\n   lines\n")
def test_help_is_trimmed_as_the_standard_library_trims_it(text):
    assert trimmed(text) == inspect.cleandoc(text)


def test_the_system_is_called_what_the_standard_library_calls_it():
    assert system_name() == platform.system()


@pytest.fixture
def run(make_project):
    """Run Python in a project; return its JSON on stderr's last line, and the exit status."""
    project = make_project("version: 1\nrepository: demo\nshards: {}\n", {"a.py": ""})

    def run(code: str, *words: str) -> tuple[object, subprocess.CompletedProcess[str]]:
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(
            command,
            cwd=project.path,
            env=dict(project.repo.env),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return json.loads(done.stderr.splitlines()[-1]), done

    return run


@pytest.mark.parametrize(
    "words", [("plan", "--json"), ("verify",), ("status",), ("--version",), ("--help",), ("plan", "--help")]
)
def test_what_everyday_commands_hardly_use_stays_unloaded(run, words):
    (kept, loaded), done = run(SEEN, *words)
    assert kept == ["bz2", "inspect", "lzma", "platform", "urllib.parse"], done.stderr
    assert not {"dis", "ast", "tokenize", "ipaddress", "_bz2", "_lzma"} & set(loaded)


def test_help_of_a_command_is_what_click_writes_without_any_of_it(run):
    plain = "import sys\nfrom gitledger.cli.app import main\ntry:\n    main()\nfinally:\n    print('[]', file=sys.stderr)\n"
    for words in (("plan", "--help"), ("record", "--help"), ("--help",), ("help", "plan"), ("verify", "--nope")):
        (_, ours), (_, theirs) = run(SEEN, *words), run(plain, *words)
        assert (ours.stdout, ours.returncode) == (theirs.stdout, theirs.returncode)


ASKED = """\
import json, sys, threading
from gitledger.cli.loading import Deferred, defer_seldom_used
for name in ("bz2", "inspect", "lzma", "platform", "urllib.parse"):
    sys.modules.pop(name, None)
defer_seldom_used()
import inspect, platform, urllib, urllib.parse
from urllib.parse import urlsplit
stands = inspect, platform, urllib.parse, sys.modules["urllib.parse"]
assert all(isinstance(module, Deferred) for module in stands)
found = []
threads = [threading.Thread(target=lambda: found.append(inspect.signature)) for _ in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
assert len(found) == 8 and len(set(map(id, found))) == 1, found
assert str(inspect.signature(lambda a, b=1: 0)) == "(a, b=1)"
assert isinstance(urllib.parse, Deferred)
assert urllib.parse.unquote("%41") == "A"
assert not isinstance(urllib.parse, Deferred)
assert urlsplit("http://[::1]/").hostname == "::1"
from pathlib import Path
assert Path("/a b").as_uri() == "file:///a%20b"
assert platform.uname().system == platform.system()
assert not any(isinstance(sys.modules[name], Deferred) for name in ("inspect", "platform", "urllib.parse"))
assert inspect.cleandoc(" a\\n  b") == "a\\nb"
from inspect import getdoc, cleandoc
from urllib.parse import urlencode
import bz2, lzma, shutil, tarfile
assert isinstance(bz2, Deferred) and isinstance(lzma, Deferred)
assert bz2.decompress(bz2.compress(b"a")) == lzma.decompress(lzma.compress(b"a")) == b"a"
assert "bztar" in dict(shutil.get_archive_formats())
try:
    inspect.unheard_of
except AttributeError as error:
    assert "unheard_of" in str(error)
import copy, dataclasses
assert dataclasses.asdict(dataclasses.make_dataclass("Made", ["a"])(1)) == {"a": 1}
print(json.dumps("good"), file=sys.stderr)
"""


def test_whoever_asks_for_more_has_the_module_itself(run):
    said, done = run(ASKED)
    assert (said, done.returncode) == ("good", 0), done.stderr
