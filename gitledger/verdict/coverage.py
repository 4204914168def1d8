"""Coverage of a union: exact set arithmetic over fragments, one threshold applied once (DESIGN section 8).

A number over part of the suite looks like any other, so nothing is left out in silence: a fragment that is
missing, can't be read or measured something else refuses the union. Where no threshold is asked for, the same
faults are notes, and there is no number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from gitledger.dataclass import dataclass, replace
from gitledger.errors import DecodeError
from gitledger.records.bodies import BodyRef, check_body
from gitledger.records.fragments import FileCoverage, Fragment, decode_fragment
from gitledger.records.ids import BlobId, ShardKey
from gitledger.records.merged import CoverageClaim
from gitledger.records.threshold import meets
from gitledger.verdict.finding import Finding, blocking, note
from gitledger.verdict.select import Choice
from gitledger.verdict.situation import Situation
from gitledger.wording import few

__all__ = ["CoverageUnion", "judge_coverage", "percent", "unite_files"]

Dropped = tuple[ShardKey, tuple[str, ...]]
"""A carried shard, and the measured files that have changed since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageUnion:
    """What all shards executed together. `claim` is None where there is no number that could be believed.

    `files` are the united ones, sorted by path; `version` and `branch` say how they were measured. `dropped`
    names, by carried shard, the files left out of its fragment: they have changed since they were measured.
    """

    claim: CoverageClaim | None = None
    faults: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    files: tuple[FileCoverage, ...] = ()
    version: str = ""
    branch: bool = False
    dropped: tuple[Dropped, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """The fragment of one shard, and whether it was measured at another commit.

    `changed` are its files of which the judged commit has other content, or none.
    """

    key: ShardKey
    python: str | None
    fragment: Fragment
    carried: bool
    changed: frozenset[str]


def judge_coverage(choices: Sequence[Choice], situation: Situation) -> CoverageUnion:
    """Return the union of the standing shards' fragments, with every fault of it."""
    wanted = situation.coverage.threshold is not None
    measured = [choice for choice in choices if choice.shard.measured]
    blob_at = cache(situation.facts.blob_at)
    found = [_load(choice, situation, blob_at) for choice in measured if choice.result is not None]
    parts = [part for part in found if isinstance(part, _Part)]
    if not parts and not wanted:
        return CoverageUnion()
    dropped = [(part.key, tuple(sorted(part.changed))) for part in parts if part.carried and part.changed]
    notes = list(_dropped(dropped))
    files, disagreements = unite_files([(part.key, part.python, _unchanged(part)) for part in parts])
    kinds = list(_kinds(parts))
    faults = [
        *(part for part in found if isinstance(part, Finding)),
        *kinds,
        *_sources(parts),
        *(() if kinds else disagreements),  # of another kind, one source looks otherwise
        *_unmeasured(parts, {file.path for file in files}, blob_at),
    ]
    is_whole = len(parts) == len(measured)
    if is_whole and not faults and not any(file.total for file in files):
        faults.append(_empty())
    notes += _cores(parts)
    if wanted:
        notes += _unjudged([choice for choice in measured if choice.result is None], situation)
    else:
        notes = [*(replace(fault, blocks=False) for fault in faults), *notes]
    if faults or not is_whole:
        return CoverageUnion(faults=tuple(faults) if wanted else (), notes=tuple(notes), dropped=tuple(dropped))
    return CoverageUnion(
        claim=_claim(files, situation),
        notes=tuple(notes),
        files=files,
        version=parts[0].fragment.version,
        branch=parts[0].fragment.branch,
        dropped=tuple(dropped),
    )


def percent(claim: CoverageClaim) -> str:
    """Return the percentage with two decimals more than are compared, cut off and never rounded up."""
    if not claim.total:
        return "0"
    decimals = claim.precision + 2
    hundredths = 100 * 10**decimals * claim.covered // claim.total
    return f"{hundredths // 10**decimals}.{hundredths % 10**decimals:0{decimals}}"


def _unjudged(lacking: Sequence[Choice], situation: Situation) -> Iterator[Finding]:
    """Yield that the threshold was held against nothing, where a shard that it asks for has nothing that stands.

    What keeps the verdict from passing is said of those shards; a number over the others would look like any.
    """
    if lacking:
        yield note(
            "coverage-unjudged",
            "8",
            "coverage",
            expected=f"what all measured shards executed, for the threshold of {situation.coverage.threshold}",
            found=f"not judged, nothing stands for {few([str(choice.shard.key) for choice in lacking])}",
        )


def _claim(files: Iterable[FileCoverage], situation: Situation) -> CoverageClaim:
    """Return exact integers and the verdict of the one rule."""
    rule = situation.coverage
    covered, total = 0, 0
    for file in files:
        covered, total = covered + file.covered, total + file.total
    passed = None if rule.threshold is None else meets(covered, total, rule.threshold, rule.precision)
    return CoverageClaim(
        covered=covered, total=total, threshold=rule.threshold, precision=rule.precision, passed=passed
    )


BlobAt = Callable[[str], BlobId | None]


def _load(choice: Choice, situation: Situation, blob_at: BlobAt) -> _Part | Finding:
    """Return a shard's fragment, or why there is none to be believed."""
    if choice.result is None:
        raise ValueError(f"nothing stands for {choice.shard.key}")
    key, held = choice.shard.key, choice.result.held
    ref = held.receipt.bodies.get("coverage")
    if ref is None:
        return blocking(
            "coverage-missing",
            "8",
            key,
            expected="a coverage fragment, or `coverage: none` in the shard",
            found="the receipt has none",
            remedy=f"let its command measure (pytest --cov), then git ledger record --shard {key}; "
            "or write `coverage: none` for it",
        )
    fragment = _fragment(ref, situation)
    if fragment is None:
        return _unreadable(key, f"the fragment {ref.oid[:12]} is not here", "git ledger sync")
    if isinstance(fragment, DecodeError):
        return _unreadable(key, fragment.message, f"git ledger record --shard {key}")
    return _Part(
        key,
        held.receipt.environment.python,
        fragment,
        carried=not choice.result.fresh,
        changed=frozenset([file.path for file in fragment.files if blob_at(file.path) != file.blob]),
    )


def _fragment(ref: BodyRef, situation: Situation) -> Fragment | DecodeError | None:
    """Return a fragment, or why it can't be read, or None where it is not here."""
    known = situation.memory.fragments
    identity = (ref.oid, ref.sha256, ref.size)
    found = known.get(identity)
    if found is not None:
        return found
    blob = situation.facts.body(ref)
    if blob is None:
        return None
    try:
        check_body(ref, blob)
        known[identity] = decode_fragment(blob)
    except DecodeError as error:
        known[identity] = error
    return known[identity]


def _unreadable(key: ShardKey, found: str, remedy: str) -> Finding:
    return blocking(
        "coverage-unreadable",
        "8",
        key,
        expected="a coverage fragment that can be read",
        found=found,
        remedy=remedy,
    )


def _kinds(parts: Sequence[_Part]) -> Iterator[Finding]:
    """Yield where versions of coverage or branch flags differ: their numbers don't add up."""
    for part in parts[1:]:
        first = parts[0]
        for code, mine, theirs in (
            ("coverage-versions", f"coverage {part.fragment.version}", f"coverage {first.fragment.version}"),
            ("coverage-branch", _branch(part.fragment), _branch(first.fragment)),
        ):
            if mine != theirs:
                yield blocking(
                    code,
                    "8",
                    part.key,
                    expected=f"{ascii(theirs)[1:-1]} as in {first.key}",
                    found=ascii(mine)[1:-1],
                    remedy=f"git ledger record --shard {part.key}",
                )


def _branch(fragment: Fragment) -> str:
    return "with branches" if fragment.branch else "without branches"


def _cores(parts: Sequence[_Part]) -> list[Finding]:
    cores = {part.fragment.core or "unknown": part.key for part in reversed(parts)}
    if len(cores) < 2:
        return []
    found = ", ".join(f"{ascii(core)[1:-1]} in {key}" for core, key in sorted(cores.items()))
    return [note("coverage-core", "8", "coverage", expected="one measurement core", found=found)]


def _sources(parts: Iterable[_Part]) -> Iterator[Finding]:
    """Yield the shards of this very commit that measured other sources than the commit's."""
    for part in parts:
        if part.changed and not part.carried:
            yield blocking(
                "coverage-source",
                "8",
                part.key,
                expected="the commit's own sources measured",
                found=f"other content of {_names(sorted(part.changed))}",
                remedy=f"git ledger record --shard {part.key}",
            )


def _names(paths: Sequence[str]) -> str:
    named = ", ".join(ascii(path)[1:-1] for path in paths[:3])
    return named if len(paths) <= 3 else f"{named} and {len(paths) - 3} more"


def _unchanged(part: _Part) -> tuple[FileCoverage, ...]:
    """Return a fragment's files without those that the commit has otherwise."""
    files = part.fragment.files
    return tuple(file for file in files if file.path not in part.changed) if part.changed else files


def _dropped(lost: Iterable[Dropped]) -> Iterator[Finding]:
    for key, paths in lost:
        yield note(
            "coverage-cut",
            "8",
            key,
            expected="files unchanged since they were measured",
            found=f"dropped from the carried fragment: {_names(paths)}",
        )


def _unmeasured(parts: Iterable[_Part], measured: set[str], blob_at: BlobAt) -> Iterator[Finding]:
    """Yield dropped files that still exist and that nobody measured as they are: their lines would vanish."""
    for part in parts:
        gone = [
            path
            for path in (sorted(part.changed) if part.carried else ())
            if path not in measured and blob_at(path) is not None
        ]
        if gone:
            yield blocking(
                "coverage-unmeasured",
                "8",
                part.key,
                expected="every measured file measured as it is now",
                found=f"changed since, and measured by no other shard: {_names(gone)}",
                remedy=f"git ledger record --shard {part.key}",
            )


Measured = tuple[ShardKey, str | None, tuple[FileCoverage, ...]]
"""A shard, the version of Python that ran it, and its files."""


def unite_files(parts: Iterable[Measured]) -> tuple[tuple[FileCoverage, ...], list[Finding]]:
    """Return the union file by file, sorted by path, and where one source was analysed in two ways.

    Executed lines and taken branches are united; untaken is what somebody could have taken and nobody did.
    Different versions of Python may see other statements in one source: whatever any of them sees counts.
    """
    united: dict[str, _Source] = {}
    faults: dict[ShardKey, list[str]] = {}
    for key, python, files in parts:
        for file in files:
            source = united.get(file.path)
            if source is None:
                united[file.path] = _Source(file, python)
            elif not source.take(file, python):
                faults.setdefault(key, []).append(file.path)
    findings = [
        blocking(
            "coverage-disagrees",
            "8",
            key,
            expected="one source analysed in one way by every shard",
            found=f"other statements or branches of {_names(paths)}",
            remedy=f"git ledger record --shard {key}",
        )
        for key, paths in faults.items()
    ]
    return tuple(united[path].file() for path in sorted(united)), findings


class _Source:
    """The union of one source so far; made into a file once, however many shards measured it.

    `analyses` holds the statements and the number of branches that each version of Python saw in it.
    """

    __slots__ = ("analyses", "branches", "executed", "first", "is_shared", "statements", "taken", "untaken")

    def __init__(self, first: FileCoverage, python: str | None) -> None:
        self.first = first
        self.is_shared = False
        self.analyses = {python: (first.statements, first.branches)}
        self.statements, self.executed = first.statements, first.executed
        self.branches, self.taken, self.untaken = first.branches, first.taken, first.untaken

    def take(self, other: FileCoverage, python: str | None) -> bool:
        """Unite with another shard's measurements; False, and nothing is, where it analysed in another way."""
        if self.first.blob != other.blob:
            return False
        seen = (other.statements, other.branches)
        if self.analyses.setdefault(python, seen) != seen or (
            python is None and {*self.analyses.values()} != {seen}
        ):
            return False
        if self.branches or other.branches:
            taken = self.taken | other.taken
            untaken = (self.untaken | other.untaken) - taken
            branches = max(self.branches, other.branches)
            if len(untaken) > branches:
                return False
            self.branches, self.taken, self.untaken = branches, taken, untaken
        self.is_shared = True
        self.statements |= other.statements
        self.executed |= other.executed
        return True

    def file(self) -> FileCoverage:
        if not self.is_shared:
            return self.first
        return replace(
            self.first,
            statements=self.statements,
            executed=self.executed,
            branches=self.branches,
            taken=self.taken,
            untaken=self.untaken,
        )


def _empty() -> Finding:
    return blocking(
        "coverage-empty",
        "8",
        "coverage",
        expected="at least one statement of the commit's files",
        found="nothing was measured",
        remedy="check coverage's source and omit",
    )
