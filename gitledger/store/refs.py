"""The refs of the ledger: their names, and which commits they point to at one moment (DESIGN section 2)."""

from __future__ import annotations

from gitledger.dataclass import dataclass
from gitledger.records.ids import CommitId, TreeId
from gitledger.records.tree import MODE_FOLDER
from gitledger.store.encoding import object_missing
from gitledger.store.objects import GitObjects

__all__ = [
    "BODIES_REF",
    "INBOX_PREFIX",
    "RECORDS_REF",
    "TRACKING_PREFIX",
    "Roots",
    "Tips",
    "all_tips",
    "local_tips",
    "roots_of",
    "tracking_prefix",
    "tracking_tips",
    "tree_of",
]

RECORDS_REF = "refs/notes/gitledger/records"
BODIES_REF = "refs/notes/gitledger/bodies"
TRACKING_PREFIX = "refs/gitledger/remotes/"
INBOX_PREFIX = "refs/gitledger/inbox/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tips:
    """Commits that hold parts of a ledger: records, bodies, and both (`inbox`)."""

    records: frozenset[CommitId] = frozenset()
    bodies: frozenset[CommitId] = frozenset()
    inbox: frozenset[CommitId] = frozenset()

    def __or__(self, other: Tips) -> Tips:
        return Tips(
            records=self.records | other.records,
            bodies=self.bodies | other.bodies,
            inbox=self.inbox | other.inbox,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """The notes trees of a ledger, to be read as their union."""

    records: frozenset[TreeId]
    bodies: frozenset[TreeId]


def tracking_prefix(remote: str) -> str:
    """Return the prefix of the refs that hold what was last fetched from `remote`."""
    return f"{TRACKING_PREFIX}{remote}/"


def local_tips(objects: GitObjects) -> Tips:
    """Return the tips of this clone's own refs.

    What is folded into a notes ref is deleted afterwards, and records follow their bodies; so inbox refs are read
    first and bodies last, and a reader beside a writer misses neither a line nor a body of one.
    """
    inbox = frozenset(objects.list_refs(INBOX_PREFIX).values())
    records = objects.read_ref(RECORDS_REF)
    bodies = objects.read_ref(BODIES_REF)
    return Tips(records=_set(records), bodies=_set(bodies), inbox=inbox)


def tracking_tips(objects: GitObjects, remote: str | None = None) -> Tips:
    """Return the tips of what was last fetched from `remote`, or from every remote; read as `local_tips` reads."""
    prefix = TRACKING_PREFIX if remote is None else tracking_prefix(remote)
    first = _sorted_out(prefix, objects, of_one_remote=remote is not None)
    last = _sorted_out(prefix, objects, of_one_remote=remote is not None)
    return Tips(records=first.records, inbox=first.inbox, bodies=last.bodies)


def _sorted_out(prefix: str, objects: GitObjects, *, of_one_remote: bool) -> Tips:
    """Sort the refs of remotes, whose names may have slashes, by their last parts."""
    records, bodies, inbox = set(), set(), set()
    for name, tip in objects.list_refs(prefix).items():
        parts = name.removeprefix(prefix).split("/")
        if of_one_remote and len(parts) != (2 if parts[0] == "inbox" else 1):
            continue  # of another remote, whose name begins with this one's
        if parts[-1] == "records":
            records.add(tip)
        elif parts[-1] == "bodies":
            bodies.add(tip)
        elif parts[-2:-1] == ["inbox"]:
            inbox.add(tip)
    return Tips(records=frozenset(records), bodies=frozenset(bodies), inbox=frozenset(inbox))


def all_tips(objects: GitObjects) -> Tips:
    """Return every tip of the ledger; tracking refs first, since they are folded into local ones."""
    tracking = tracking_tips(objects)
    return tracking | local_tips(objects)


def roots_of(objects: GitObjects, tips: Tips) -> Roots:
    """Return the notes trees that the tips hold; raises `StoreError` `object-missing`.

    A tip that is no commit holds no ledger: whoever left a tag or a blob at a remote blocks nobody here.
    """
    records = {tree_of(objects, tip) for tip in tips.records if _may_hold_a_ledger(objects, tip)}
    bodies = {tree_of(objects, tip) for tip in tips.bodies if _may_hold_a_ledger(objects, tip)}
    for tip in tips.inbox:
        if not _may_hold_a_ledger(objects, tip):
            continue
        for entry in objects.read_tree(tree_of(objects, tip)) or ():
            if entry.mode == MODE_FOLDER and entry.name in ("records", "bodies"):
                (records if entry.name == "records" else bodies).add(TreeId(entry.oid))
    return Roots(records=frozenset(records), bodies=frozenset(bodies))


def _may_hold_a_ledger(objects: GitObjects, tip: CommitId) -> bool:
    return objects.object_kind(tip) in ("commit", None)


def tree_of(objects: GitObjects, commit: CommitId) -> TreeId:
    """Return a commit's tree; raises `StoreError` `object-missing`."""
    info = objects.read_commit(commit)
    if info is None:
        raise object_missing("commit", commit)
    return info.tree


def _set(tip: CommitId | None) -> frozenset[CommitId]:
    return frozenset() if tip is None else frozenset({tip})
