"""What was seen in notes once is not read again, and no answer differs for it: whatever hangs there, and wherever."""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitledger.records.envelope import decode_line
from gitledger.records.ids import CommitId, Digest, ShardKey
from gitledger.records.revocation import Revocation
from gitledger.records.statement import Subject
from gitledger.records.tree import MODE_FILE, MODE_FOLDER, TreeEntry
from gitledger.store import dropped as dropped_module
from gitledger.store.objects import Identity, RefUpdate
from gitledger.store.refs import RECORDS_REF
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.workflows import gather as gather_module
from gitledger.workflows import known as known_module
from gitledger.workflows import seen as seen_module
from gitledger.workflows.dropped import look_back
from gitledger.workflows.judge import plan, verify
from gitledger.workflows.merge import merge
from gitledger.workflows.relevance import NEAREST, Relevance, Seen, marks_of, mattering
from gitledger.workflows.seen import see

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: test ! -e bad, results: exit-status}
  docs: {paths: [docs], command: "true", results: exit-status}
carry: {from: %s}
policy: {allow_carried: true, revokers: [alice@example.org]}
"""
FILES = {"src/a.py": "0\n", "docs/a.md": "0\n", ".gitignore": "bad\n"}
REFS = (
    RECORDS_REF,
    "refs/gitledger/remotes/one/records",
    "refs/gitledger/remotes/two/records",
    "refs/gitledger/inbox/x",
)
WHO = Identity(name="Alice", email="alice@example.org")
FAR = 1 << 62


@dataclass
class World:
    """Commits with real records on some, every one of which can be hung anywhere in every ref of the ledger."""

    stage: Any
    commits: list[CommitId]
    lines: list[tuple[int, bytes]]
    now: datetime

    def session(self) -> Any:
        return self.stage.session(now=self.now)

    @property
    def files(self) -> list[Path]:
        """Return what is kept."""
        kept = self.stage.path / ".git/gitledger"
        return [*kept.glob("marks-*"), *kept.glob("looked-back-*")]

    def forget(self) -> None:
        for path in self.files:
            path.unlink()

    def hang(self, hung: set[tuple[int, int, int]], dropped: set[tuple[int, int, int]] = frozenset()) -> None:
        """Make the refs hold these lines: (number of a line, of a commit or -1 for its own, of a ref)."""
        objects = self.session().repo.objects
        for number, ref in enumerate(REFS):
            tip: CommitId | None = None
            for some in ([hung | dropped] if dropped else []) + [hung]:
                tree = self._tree(objects, {item for item in some if item[2] == number})
                if "inbox" in ref:
                    tree = objects.write_tree([TreeEntry(MODE_FOLDER, "records", tree)])
                tip = objects.write_commit(
                    tree=tree, parents=[] if tip is None else [tip], message="m", identity=WHO
                )
            assert objects.update_refs([RefUpdate(ref, objects.read_ref(ref), tip)])

    def _tree(self, objects: Any, items: set[tuple[int, int, int]]) -> Any:
        notes: dict[str, set[bytes]] = {}
        for line, commit, _ in items:
            home, text = self.lines[line]
            notes.setdefault(self.commits[home if commit < 0 else commit], set()).add(text)
        folders: dict[str, list[TreeEntry]] = {}
        for oid, texts in notes.items():
            blob = objects.write_blob(b"".join(text + b"\n" for text in sorted(texts)))
            # Half of the commits lie in folders, as in a large ledger, and half don't, as in a small one.
            fanned = int(oid[0], 16) % 2
            place, name = (oid[:2], oid[2:]) if fanned else ("", oid)
            folders.setdefault(place, []).append(TreeEntry(MODE_FILE, name, blob))
        below = [
            TreeEntry(MODE_FOLDER, place, objects.write_tree(inner)) for place, inner in folders.items() if place
        ]
        return objects.write_tree([*folders.get("", ()), *below])

    def answers(self) -> list[Any]:
        """Return every document of the commands that judge, of the newest commit and of one before."""
        found: list[Any] = []
        for target in (self.commits[-1], self.commits[-3]):
            session = self.session()
            found += [verify(session, target).encode(), plan(session, target).encode()]
        session = self.session()
        before = session.repo.objects.read_ref(RECORDS_REF)
        found.append(merge(session, target, self.stage.signer("alice"), user="alice@example.org").encode())
        after = session.repo.objects.read_ref(RECORDS_REF)
        assert session.repo.objects.update_refs([RefUpdate(RECORDS_REF, after, before)])
        return found


def kind_of(line: bytes) -> str:
    """Return what a line says that it is; raises for what is nothing that anybody knows."""
    kind = json.loads(base64.b64decode(json.loads(line)["payload"], validate=True))["predicateType"]
    known = ("receipt:shard", "receipt:merged", "revocation")
    if kind not in {f"urn:gitledger:{name}:v1" for name in known}:
        raise ValueError(kind)
    return str(kind)


def of_shard(line: bytes) -> tuple[str, str, str] | None:
    """Return name, variant and manifest of a shard receipt, None for what isn't one; raises for what is nothing."""
    document = json.loads(base64.b64decode(json.loads(line)["payload"]))
    if not document["predicateType"].endswith("receipt:shard:v1"):
        return None
    shard = document["predicate"]["shard"]
    return shard["name"], shard["variant"] or "", document["predicate"]["manifest"]["digest"]


def read_all(
    relevance: Any, ledger: Any, rings: Any, target: str, *, apart: Any = frozenset()
) -> Iterator[tuple[str, int | None]]:
    """Do what `mattering` does by reading every line of every note as JSON, without marks, and all of history."""
    view, against = ledger.marks
    added = ledger.added
    notes = view.annotated()
    distances = {commit: distance for distance, ring in enumerate(rings) for commit in ring}
    digests, names = set(relevance.digests), {(key.name, key.variant or "") for key in relevance.by_name}
    seen: Counter[tuple[str, str]] = Counter()
    commits = (notes.keys() | added.keys()) - {target}
    for commit in sorted(commits, key=lambda commit: (distances.get(commit, FAR), commit)):
        matters = any(not view.lines_of(frozenset({blob})) for blob in notes.get(commit, ()))
        met: set[tuple[str, str]] = set()
        for line in (*view.lines(commit), *against.get(commit, ())):
            try:
                kind, found = kind_of(line), of_shard(line)
            except (ValueError, KeyError, TypeError):
                matters = True
                continue
            matters = matters or (kind.endswith(":merged:v1") and relevance.merged_matter)
            if found is not None:
                met.add(found[:2])
                matters = matters or found[2] in digests or found[:2] in names
        if commit in distances:
            matters = matters or any(seen[name] < NEAREST for name in met)
            seen.update(met)
        if matters:
            yield commit, distances.get(commit)


@pytest.fixture
def keep_all(monkeypatch):
    """Marks are kept for the smallest ledger."""
    monkeypatch.setattr(seen_module, "LEAST_KEPT", 0)
    monkeypatch.setattr(dropped_module, "LEAST_KEPT", 0)


@pytest.fixture
def world(make_project, stage, keep_all, request) -> World:
    project = make_project(CONFIG % getattr(request, "param", "ancestors"), FILES, name="seen")
    made = replace(stage, project=project)
    made.repo.git("branch", "trusted")
    world = World(made, [], [], datetime.now(UTC))
    for number, path in enumerate(("", "src/a.py", "docs/a.md", "side.md", "src/a.py", "README.md")):
        made.repo.git("checkout", "-q", "-B", "side" if path == "side.md" else "main", "main")
        made.repo.commit({path: f"{number % 4}\n"} if path else {})  # the fifth takes up the first one's inputs
        world.commits.append(CommitId(made.head()))
        world.lines += [(number, line) for line in recorded(made, is_merged=number in (1, 4))]
    world.lines += [(0, b"garbage"), (3, b'{"payload":"!!!"}'), (2, b'{"payload":"e30="}')]
    made.clear()
    world.now = datetime.now(UTC) + timedelta(seconds=1)
    return world


def recorded(stage: Any, *, is_merged: bool) -> list[bytes]:
    """Return all that anybody might have written about HEAD: results, and what speaks against them."""
    bad = stage.path / "bad"
    stage.record_of("lint")
    stage.record_of("docs")
    bad.touch()
    stage.record_of("lint")
    bad.unlink()
    first, second, *_ = receipts = stage.lines()
    if is_merged:
        stage.merge()
    receipt = stage.document(first)
    receipt["predicate"]["shard"] |= {"name": "gone", "variant": "a100"}
    strangers = (
        stage.seal(receipt),
        stage.seal(stage.document(second), by="mallory"),
        stage.seal(b'{"predicateType":"urn:gitledger:receipt:shard:v9"}'),
        stage.seal(b'{"predicateType":"urn:gitledger:receipt:shard:v1"}'),
    )
    merged = set(stage.lines()) - set(receipts)
    own = [line.encode() for line in (*receipts, *sorted(merged), *strangers)]
    return [*own, revocation(stage, first.encode())]


def revocation(stage: Any, line: bytes) -> bytes:
    info, signer = stage.session().repo.commit(CommitId(stage.head())), stage.signer("alice")
    document = Revocation(
        repository="demo",
        record=decode_line(line).id,
        reason="wrong driver",
        revoked_at=datetime.now(UTC),
        subject=Subject(commit=info.id, tree=info.tree),
        signer=claim_of(signer, user="alice@example.org"),
    )
    return sign_payload(document.encode(), signer).encode()


def hung_somewhere(lines: int, commits: int, most: int) -> st.SearchStrategy[set[tuple[int, int, int]]]:
    """Return sets of lines on commits: most on their own, some where they don't belong."""
    place = st.one_of(st.just(-1), st.just(-1), st.integers(0, commits - 1))
    return st.sets(st.tuples(st.integers(0, lines - 1), place, st.integers(0, len(REFS) - 1)), max_size=most)


def damage(file: Path, draw: random.Random) -> None:
    """Change the kept file in one of the ways in which files get damaged."""
    raw = bytearray(file.read_bytes())
    at = draw.randrange(len(raw))
    match draw.randrange(4):
        case 0:
            raw[at] ^= 1 << draw.randrange(8)
        case 1:
            del raw[at:]
        case 2:
            raw[at:at] = b"\0"
        case 3:
            raw = bytearray()
    file.write_bytes(raw)


class Asked:
    """Asks which commits matter: with what was seen, and by reading everything."""

    def __init__(self, world: World, data: Any) -> None:
        manifests = sorted({found[2] for found in map(shard_or_none, (line for _, line in world.lines)) if found})
        names = [ShardKey("lint", None), ShardKey("gone", "a100"), ShardKey("docs", None)]
        self.session = world.session()
        self.target = world.commits[data.draw(st.integers(0, len(world.commits) - 1))]
        self.relevance = Relevance(
            digests=data.draw(st.lists(st.sampled_from([*map(Digest, manifests), Digest("0" * 64)]), max_size=2)),
            by_name=data.draw(st.lists(st.sampled_from(names), max_size=1)),
            merged_matter=data.draw(st.booleans()),
        )

    def seen(self) -> list[tuple[str, int | None]]:
        view = self.session.ledger.view()
        rings = self.session.repo.rings(self.target)
        against = look_back(self.session, view).against
        added = {commit: marks_of(lines) for commit, lines in against.items()}
        return list(mattering(self.relevance, Seen(see(self.session, view), added), rings, self.target))

    def read(self) -> list[tuple[str, int | None]]:
        view = self.session.ledger.view()
        rings = self.session.repo.rings(self.target)
        against = look_back(self.session, view).against
        return list(read_all(self.relevance, Seen((view, against), against), rings, self.target))


def shard_or_none(line: bytes) -> tuple[str, str, str] | None:
    try:
        return of_shard(line)
    except (ValueError, KeyError, TypeError):
        return None


NO_DEADLINE = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@settings(max_examples=20, **NO_DEADLINE)
@given(data=st.data(), draw=st.randoms(use_true_random=False))
def test_the_same_commits_are_read_whatever_was_seen_before(world: World, data, draw):
    lines, commits = len(world.lines), len(world.commits)
    before = data.draw(hung_somewhere(lines, commits, 25))
    after = before | data.draw(hung_somewhere(lines, commits, 8))
    dropped = data.draw(hung_somewhere(lines, commits, 4))
    world.forget()
    world.hang(before)
    asked = Asked(world, data)
    asked.seen()
    world.hang(after - dropped, dropped)
    expected = asked.read()
    assert asked.seen() == expected, "grown"
    assert asked.seen() == expected, "as it is"
    for file in sorted(world.files):
        damage(file, draw)
    assert asked.seen() == expected, "damaged"
    world.forget()
    assert asked.seen() == expected, "without"


@pytest.mark.parametrize("world", ["ancestors", "same-manifest"], indirect=True)
def test_no_answer_differs_for_what_was_seen_before(world: World, monkeypatch):
    for number in range(2):
        draw = random.Random(number)

        def some(count: int, draw: random.Random = draw) -> set[tuple[int, int, int]]:
            places = (-1, -1, -1, draw.randrange(len(world.commits)))
            return {
                (draw.randrange(len(world.lines)), draw.choice(places), draw.randrange(4)) for _ in range(count)
            }

        before, dropped = some(40), some(3)
        world.forget()
        world.hang(before)
        world.answers()
        world.hang((before | some(6)) - dropped, dropped)
        grown = world.answers()
        assert {shard["verdict"] for shard in grown[0]["shards"]}
        for file in sorted(world.files):
            damage(file, draw)
        assert world.answers() == grown
        with monkeypatch.context() as patch:
            patch.setattr(known_module, "see", lambda session, view: (view, look_back(session, view).against))
            patch.setattr(gather_module, "mattering", read_all)
            assert world.answers() == grown


@pytest.fixture
def bare_world(stage, keep_all) -> World:
    """Three commits, and a line of garbage for each."""
    commits = [CommitId(stage.repo.commit({"src/alpha.py": f"{number}\n"})) for number in range(3)]
    lines = [(number, b"garbage %d" % number) for number in range(3)]
    return World(stage, commits, lines, datetime.now(UTC))


def test_what_was_seen_is_not_read_again(bare_world: World, monkeypatch):
    bare_world.hang({(0, -1, 0), (1, -1, 1)})
    session = bare_world.session()
    read: list[Any] = []
    monkeypatch.setattr(seen_module, "marks_of", lambda lines: read.append(lines) or marks_of(lines))
    first = see(session, session.ledger.view())
    assert len(read) == 2
    assert see(session, session.ledger.view()) == first
    assert len(read) == 2
    bare_world.hang({(0, -1, 0), (1, -1, 1), (2, -1, 0)})
    assert see(session, session.ledger.view()).rows == 3
    assert read[2:] == [(b"garbage 2",)]
    bare_world.hang({(2, -1, 0)})
    assert see(session, session.ledger.view()).rows == 1, "what the ledger lacks now is not kept"


def test_few_notes_are_not_kept(bare_world: World, monkeypatch):
    monkeypatch.setattr(seen_module, "LEAST_KEPT", 2)
    bare_world.hang({(0, -1, 0)})
    see(bare_world.session(), bare_world.session().ledger.view())
    assert bare_world.files == []


def test_what_is_said_of_few_notes_is_not_believed(bare_world: World, monkeypatch):
    """Nobody keeps marks of so few: whatever runs in the clone could have written that there is nothing to see."""
    bare_world.hang({(0, -1, 0), (1, -1, 1)})
    session = bare_world.session()
    see(session, session.ledger.view())
    assert len(bare_world.files) == 1
    read: list[Any] = []
    monkeypatch.setattr(seen_module, "marks_of", lambda lines: read.append(lines) or marks_of(lines))
    monkeypatch.setattr(seen_module, "LEAST_KEPT", 3)
    assert see(session, session.ledger.view()).rows == len(read) == 2


def test_folders_that_repeat_themselves_are_read_by_other_rules_and_never_kept(bare_world: World):
    bare_world.hang({(0, -1, 0)})
    session = bare_world.session()
    objects, view = session.repo.objects, session.ledger.view()
    [(commit, [blob])] = view.annotated().items()
    tree = objects.write_tree([TreeEntry(MODE_FILE, commit[2:], blob)])
    places = sorted({commit[:2], "00", "ff"})
    root = objects.write_tree([TreeEntry(MODE_FOLDER, digits, tree) for digits in places])
    tip = objects.write_commit(tree=root, parents=[], message="m", identity=WHO)
    assert objects.update_refs([RefUpdate(RECORDS_REF, objects.read_ref(RECORDS_REF), tip)])
    view = session.ledger.view()
    assert see(session, view).rows == len(view.annotated()) == len(places)
    assert bare_world.files == []
