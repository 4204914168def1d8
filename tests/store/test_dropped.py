"""What was looked back at once is not looked at again, and no answer differs for it: whatever became of the refs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitledger.records.ids import CommitId
from gitledger.records.tree import MODE_FILE, MODE_FOLDER, TreeEntry
from gitledger.store import dropped
from gitledger.store.dropped import recently_dropped
from gitledger.store.ledger import Ledger
from gitledger.store.objects import Identity, RefUpdate
from gitledger.store.refs import RECORDS_REF
from gitledger.store.repository import Repository, open_repository

WHO = Identity(name="Alice", email="alice@example.org")
OURS, THEIRS, INBOX = RECORDS_REF, "refs/gitledger/remotes/one/records", "refs/gitledger/inbox/x"
COMMITS = (CommitId("a" * 40), CommitId("b" * 40))


@dataclass
class Notes:
    """A ledger whose refs move in every way in which refs can."""

    repo: Repository
    tips: dict[str, CommitId | None] = field(default_factory=dict)
    held: dict[str, frozenset[tuple[int, int]]] = field(default_factory=dict)

    @property
    def files(self) -> list[Path]:
        return list((self.repo.common_dir / "gitledger").glob("looked-back-*"))

    def put(
        self, ref: str, lines: frozenset[tuple[int, int]], *parents: CommitId | None, fanned: bool = False
    ) -> None:
        """Make a ref hold these (line, commit), in a commit with these parents."""
        objects, noted = self.repo.objects, []
        for number, commit in enumerate(COMMITS):
            texts = sorted(b"line %d\n" % line for line, place in lines if place == number)
            if texts:
                entry = (MODE_FILE, objects.write_blob(b"".join(texts)))
                noted.append(TreeEntry(MODE_FOLDER, commit[:2], objects.write_tree([TreeEntry(entry[0], commit[2:], entry[1])]))
                             if fanned else TreeEntry(entry[0], commit, entry[1]))  # fmt: skip
        tree = objects.write_tree(noted)
        if ref == INBOX:
            tree = objects.write_tree([TreeEntry(MODE_FOLDER, "records", tree)])
        known = [parent for parent in dict.fromkeys(parents) if parent is not None]
        tip = objects.write_commit(tree=tree, parents=known, message="m", identity=WHO)
        self.move(ref, tip, lines)

    def move(self, ref: str, tip: CommitId | None, lines: frozenset[tuple[int, int]]) -> None:
        assert self.repo.objects.update_refs([RefUpdate(ref, self.tips.get(ref), tip)])
        self.tips[ref], self.held[ref] = tip, lines

    def looked(self) -> Any:
        return recently_dropped(self.repo, Ledger(self.repo.objects).view())

    def looked_anew(self) -> Any:
        kept = {file: file.read_bytes() for file in self.files}
        for file in kept:
            file.unlink()
        found = self.looked()
        for file in self.files:
            file.unlink()
        for file, content in kept.items():
            file.write_bytes(content)
            file.chmod(0o600)
        return found


@pytest.fixture
def notes(git_repo, monkeypatch) -> Notes:
    """An empty ledger, of which all is kept however small."""
    git_repo.commit({"a": "1"})
    monkeypatch.setattr(dropped, "LEAST_KEPT", 0)
    repo = open_repository(git_repo.path, env=git_repo.env)
    repo.objects.load()
    return Notes(repo)


LINE = st.tuples(st.integers(0, 5), st.integers(0, 1))
REF = st.sampled_from([OURS, THEIRS])
STEP = st.one_of(
    st.tuples(st.just("add"), REF, LINE),
    st.tuples(st.just("add"), REF, LINE),
    st.tuples(st.just("drop"), REF, LINE),
    st.tuples(st.just("fan"), REF, LINE),
    st.tuples(st.just("unite"), REF, LINE),
    st.tuples(st.just("force"), REF, LINE),
    st.tuples(st.just("follow"), REF, LINE),
    st.tuples(st.just("delete"), REF, LINE),
    st.tuples(st.just("receive"), REF, LINE),
    st.tuples(st.just("empty"), REF, LINE),
)


def take(notes: Notes, kind: str, ref: str, line: tuple[int, int]) -> None:
    other = THEIRS if ref == OURS else OURS
    tip, lines = notes.tips.get(ref), notes.held.get(ref, frozenset())
    match kind:
        case "add":
            notes.put(ref, lines | {line}, tip)
        case "drop":
            notes.put(ref, lines - {line}, tip)
        case "fan":
            notes.put(ref, lines, tip, fanned=True)
        case "unite":
            notes.put(ref, lines | notes.held.get(other, frozenset()), tip, notes.tips.get(other))
        case "force":
            notes.put(ref, frozenset({line}))
        case "follow" if notes.tips.get(other) is not None:
            notes.move(ref, notes.tips[other], notes.held[other])
        case "delete" if tip is not None:
            notes.move(ref, None, frozenset())
        case "receive":
            notes.put(INBOX, frozenset({line}))
        case "empty" if notes.tips.get(INBOX) is not None:
            notes.move(INBOX, None, frozenset())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.lists(STEP, min_size=1, max_size=3), min_size=1, max_size=7))
def test_s16_no_dropped_line_is_overlooked_for_an_earlier_look(notes, steps):
    for ref, tip in notes.tips.items():
        if tip is not None:
            notes.move(ref, None, frozenset())
    for file in notes.files:
        file.unlink()
    for some in steps:
        for step in some:
            take(notes, *step)
        assert notes.looked() == notes.looked_anew(), steps


def looks(notes: Notes, monkeypatch) -> list[str]:
    """Return the git commands that one look starts."""
    asked: list[str] = []
    run = type(notes.repo.git).run
    with monkeypatch.context() as patch:
        patch.setattr(
            type(notes.repo.git), "run", lambda self, *args, **kw: asked.append(args[0]) or run(self, *args, **kw)
        )
        notes.looked()
    return asked


def test_what_was_looked_at_is_not_looked_at_again(notes, monkeypatch):
    both = frozenset({(0, 0), (1, 0)})
    notes.put(OURS, frozenset({(0, 0)}))
    assert looks(notes, monkeypatch) == ["rev-list", "diff-tree"]
    assert looks(notes, monkeypatch) == []
    notes.put(OURS, both, notes.tips[OURS])
    assert looks(notes, monkeypatch) == ["rev-list", "diff-tree"]
    assert looks(notes, monkeypatch) == []


def test_what_was_dropped_stays_dropped_however_often_it_is_looked_at(notes):
    notes.put(OURS, frozenset({(0, 0)}))
    notes.looked()
    notes.put(OURS, frozenset({(1, 0)}), notes.tips[OURS])
    for _ in range(3):
        assert notes.looked() == {COMMITS[0]: (b"line 0",)}


def test_a_line_that_only_an_inbox_held_is_lost_with_it(notes):
    notes.put(OURS, frozenset({(0, 0)}))
    notes.put(INBOX, frozenset({(0, 0)}))
    notes.put(OURS, frozenset({(1, 0)}), notes.tips[OURS])
    assert notes.looked() == {}
    notes.move(INBOX, None, frozenset())
    assert notes.looked() == {COMMITS[0]: (b"line 0",)}


@pytest.mark.parametrize("after", [None, frozenset({(1, 0)})], ids=["deleted", "forced"])
def test_a_line_that_only_a_ref_held_which_went_elsewhere_is_lost_with_it(notes, after):
    line = frozenset({(0, 0)})
    notes.put(THEIRS, line)
    notes.put(OURS, line)
    notes.put(OURS, frozenset(), notes.tips[OURS])
    assert notes.looked() == {}
    if after is None:
        notes.move(THEIRS, None, frozenset())
    else:
        notes.put(THEIRS, after)
    assert notes.looked() == {COMMITS[0]: (b"line 0",)}


def test_a_look_that_could_not_read_all_is_made_again(notes, git_repo):
    notes.put(OURS, frozenset({(0, 0)}))
    blob = git_repo.git("rev-parse", f"{OURS}:{COMMITS[0]}")
    notes.put(OURS, frozenset({(1, 0)}), notes.tips[OURS])
    stored = git_repo.path / ".git/objects" / blob[:2] / blob[2:]
    aside = stored.rename(git_repo.path / "aside")
    fresh = open_repository(git_repo.path, env=git_repo.env)
    assert Notes(fresh).looked() == {}
    aside.rename(stored)
    fresh = open_repository(git_repo.path, env=git_repo.env)
    assert Notes(fresh).looked() == {COMMITS[0]: (b"line 0",)}


@pytest.mark.parametrize(
    "damage", [b"", b"x", b"gitledger looked back 1\n", None], ids=["empty", "other", "cut", "flipped"]
)
def test_a_damaged_file_is_as_good_as_none(notes, damage):
    notes.put(OURS, frozenset({(0, 0)}))
    notes.looked()
    (file,) = notes.files
    raw = bytearray(file.read_bytes())
    raw[-9] ^= 1
    file.write_bytes(bytes(raw) if damage is None else damage)
    assert notes.looked() == {}
    notes.put(OURS, frozenset(), notes.tips[OURS])
    assert notes.looked() == {COMMITS[0]: (b"line 0",)}
