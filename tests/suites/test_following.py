"""A journal read while it is written says what the whole of it says, whoever writes it and however."""

from __future__ import annotations

import json
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.errors import DecodeError
from gitledger.suites import following as following_module
from gitledger.suites.following import Following
from gitledger.suites.journal import read_journal

NONCE = "0123456789abcdef"
EVENTS = [
    ["journal", 1, NONCE, {"python": "3.12.1", "dist": "no", "narrowed": []}],
    ["ids", ["a", "b"]],
    ["selected", None],
    ["collected", 2],
    ["full", 2],
    *(event for test in (0, 1) for event in (["s", test], ["r", test, "call", "passed", 1, ""])),
    ["finish", 0],
]
LINES = [json.dumps(event).encode() + b"\n" for event in EVENTS]
ODD = [
    b"\n",
    b"not json\n",
    b"[]\n",
    LINES[0],
    LINES[-1],
    b'["s", 7]\n',
    b"\xff\n",
    b'["r", 0',
    b"[" * 9_000 + b"\n",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("journals") / "journal"


@given(
    pieces=st.lists(st.sampled_from([*LINES, *ODD]) | st.just(b"".join(LINES)), max_size=6),
    cuts=st.lists(st.integers(0, 400), max_size=5),
    rewritten=st.none() | st.integers(0, 300),
    cut_short=st.booleans(),
)
def test_whatever_is_written_and_whenever_it_is_looked_at(place, pieces, cuts, rewritten, cut_short):
    data = b"".join(pieces)
    followed = Following(place, NONCE)
    for end in sorted(cuts):
        place.write_bytes(data[:end])
        followed.look()
    if rewritten is not None and rewritten < len(data):
        data = data[:rewritten] + b"X" + data[rewritten + 1 :]
    if cut_short:
        data = data[: len(data) // 2]
    assert followed.journal(data) == read_journal(data, NONCE)
    assert followed.journal(data) == read_journal(data, NONCE)


def test_most_of_it_is_read_when_the_run_is_over(place):
    data = b"".join(LINES[:-1])
    place.write_bytes(b"")
    with Following(place, NONCE) as followed:
        place.write_bytes(data)
        deadline = time.monotonic() + 30
        while len(followed._taken) < len(data) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert followed._taken == data
    assert followed.journal(b"".join(LINES)).is_finished


def test_what_is_rewritten_after_it_was_read_is_read_anew(place):
    place.write_bytes(b"".join(LINES[:7]))
    followed = Following(place, NONCE)
    followed.look()
    assert followed._taken
    failed = b"".join(LINES).replace(b'"passed"', b'"failed"')
    assert followed.journal(failed) == read_journal(failed, NONCE)
    assert followed.journal(failed) != read_journal(b"".join(LINES), NONCE)


@pytest.mark.parametrize("kind", ["absent", "fifo", "folder", "symlink"])
def test_what_is_no_journal_is_not_waited_for(tmp_path, kind):
    path = tmp_path / "journal"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "symlink":
        (tmp_path / "other").write_bytes(b"".join(LINES))
        path.symlink_to("other")
    followed = Following(path, NONCE)
    followed.look()
    assert not followed._taken


def test_no_more_is_kept_than_a_journal_may_have(place, monkeypatch):
    size = len(b"".join(LINES[:3]))
    monkeypatch.setattr(following_module, "MAX_JOURNAL_BYTES", size)
    monkeypatch.setattr("gitledger.suites.journal.MAX_JOURNAL_BYTES", size)
    monkeypatch.setattr(following_module, "_STEP_BYTES", size)
    followed = Following(place, NONCE)
    place.write_bytes(b"".join(LINES))
    for _ in range(9):
        followed.look()
    assert len(followed._taken) <= size
    with pytest.raises(DecodeError, match="exceeds the limit"):
        followed.journal(b"".join(LINES))
