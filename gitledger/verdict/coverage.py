"""Coverage of a union: exact set arithmetic over fragments, one threshold applied once (DESIGN section 8).

A number over part of the suite looks like any other, so nothing is left out in silence: a fragment that is
missing, can't be read or measured something else refuses the union. Where no threshold is asked for, the same
faults are notes, and there is no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gitledger.errors import DecodeError
from gitledger.records.bodies import check_body
from gitledger.records.fragments import FileCoverage, Fragment, decode_fragment
from gitledger.records.ids import ShardKey
from gitledger.records.merged import CoverageClaim
from gitledger.records.threshold import meets
from gitledger.verdict.finding import Finding, blocking, note
from gitledger.verdict.select import Choice
from gitledger.verdict.situation import Situation

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
    """The fragment of one shard, and whether it was measured at another commit."""

    key: ShardKey
    python: str | None
    fragment: Fragment
    carried: bool


def judge_coverage(choices: Sequence[Choice], situation: Situation) -> CoverageUnion:
    """Return the union of the standing shards' fragments, with every fault of it."""
    wanted = situation.coverage.threshold is not None
    measured = [choice for choice in choices if choice.shard.measured]
    found = [_load(choice, situation) for choice in measured if choice.result is not None]
    parts = [part for part in found if isinstance(part, _Part)]
    if not parts and not wanted:
        return CoverageUnion()
    cut, dropped = _cut(parts, situation)
    notes = list(_dropped(dropped))
    files, disagreements = unite_files([(part.key, part.python, part.fragment.files) for part in cut])
    kinds = list(_kinds(parts))
    faults = [
        *(part for part in found if isinstance(part, Finding)),
        *kinds,
        *_sources(parts, situation),
        *(() if kinds else disagreements),  # of another kind, one source looks otherwise
        *_unmeasured(parts, {file.path for file in files}, situation),
    ]
    is_whole = len(parts) == len(measured)
    if is_whole and not faults and not any(file.total for file in files):
        faults.append(_empty())
    notes += _cores(parts)
    if not wanted:
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


def _load(choice: Choice, situation: Situation) -> _Part | Finding:
    """Return a shard's fragment, or why there is none to be believed."""
    if choice.result is None:
        raise ValueError(f"nothing stands for {choice.shard.key}")
    key, held = choice.shard.key, choice.result.held
    ref = held.receipt.bodies.get("coverage")
    remedy = f"git ledger record --shard {key}"
    if ref is None:
        return blocking(
            "coverage-missing",
            "8",
            key,
            expected="a coverage fragment, or `coverage: none` in the shard",
            found="the receipt has none",
            remedy=remedy,
        )
    blob = situation.facts.body(ref)
    if blob is None:
        return _unreadable(key, f"the fragment {ref.oid[:12]} is not here", "git ledger sync")
    try:
        check_body(ref, blob)
        fragment = decode_fragment(blob)
    except DecodeError as error:
        return _unreadable(key, error.message, remedy)
    return _Part(key, held.receipt.environment.python, fragment, carried=not choice.result.fresh)


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


def _sources(parts: Iterable[_Part], situation: Situation) -> Iterator[Finding]:
    """Yield the shards of this very commit that measured other sources than the commit's."""
    for part in parts:
        other = [] if part.carried else _changed(part, situation)
        if other:
            yield blocking(
                "coverage-source",
                "8",
                part.key,
                expected="the commit's own sources measured",
                found=f"other content of {_names(other)}",
                remedy=f"git ledger record --shard {part.key}",
            )


def _changed(part: _Part, situation: Situation) -> list[str]:
    blob_at = situation.facts.blob_at
    return [file.path for file in part.fragment.files if blob_at(file.path) != file.blob]


def _names(paths: Sequence[str]) -> str:
    named = ", ".join(ascii(path)[1:-1] for path in paths[:3])
    return named if len(paths) <= 3 else f"{named} and {len(paths) - 3} more"


def _cut(parts: Iterable[_Part], situation: Situation) -> tuple[list[_Part], list[Dropped]]:
    """Return the parts with only the commit's own sources, and what carried ones lost by that."""
    kept, lost = [], []
    for part in parts:
        dropped = set(_changed(part, situation))
        files = tuple(file for file in part.fragment.files if file.path not in dropped)
        kept.append(replace(part, fragment=replace(part.fragment, files=files)))
        if dropped and part.carried:
            lost.append((part.key, tuple(sorted(dropped))))
    return kept, lost


def _dropped(lost: Iterable[Dropped]) -> Iterator[Finding]:
    for key, paths in lost:
        yield note(
            "coverage-cut",
            "8",
            key,
            expected="files unchanged since they were measured",
            found=f"dropped from the carried fragment: {_names(paths)}",
        )


def _unmeasured(parts: Iterable[_Part], measured: set[str], situation: Situation) -> Iterator[Finding]:
    """Yield dropped files that still exist and that nobody measured as they are: their lines would vanish."""
    for part in parts:
        gone = [
            path
            for path in (_changed(part, situation) if part.carried else ())
            if path not in measured and situation.facts.blob_at(path) is not None
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
    united: dict[str, tuple[set[str | None], FileCoverage]] = {}
    faults: dict[ShardKey, list[str]] = {}
    for key, python, files in parts:
        for file in files:
            pythons, first = united.setdefault(file.path, (set(), file))
            found = _united(first, file, may_differ=python not in {*pythons, None} and bool(pythons))
            if found is None:
                faults.setdefault(key, []).append(file.path)
            else:
                united[file.path] = {*pythons, python}, found
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
    return tuple(united[path][1] for path in sorted(united)), findings


def _united(one: FileCoverage, other: FileCoverage, *, may_differ: bool) -> FileCoverage | None:
    """Return the union of one source, None where it was analysed in two ways."""
    if one.blob != other.blob:
        return None
    if (one.statements, one.branches) != (other.statements, other.branches) and not may_differ:
        return None
    taken = one.taken | other.taken
    untaken = (one.untaken | other.untaken) - taken
    branches = max(one.branches, other.branches)
    if len(untaken) > branches:
        return None
    return replace(
        one,
        statements=one.statements | other.statements,
        executed=one.executed | other.executed,
        branches=branches,
        taken=taken,
        untaken=untaken,
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
