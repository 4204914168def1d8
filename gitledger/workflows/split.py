"""Split: prove the partition on the real collection, refresh the durations, advise on the number of parts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gitledger.config.command import pytest_arguments
from gitledger.config.schema import DURATIONS_PATH, Config, ShardConfig
from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError, UsageError
from gitledger.records.ids import CommitId
from gitledger.suites.advise import Advice, advise
from gitledger.suites.collect import Collected, collect
from gitledger.suites.cut import Durations, FileCost, TooManyPartsError, cut_files, file_costs, read_durations
from gitledger.verdict.finding import Finding, blocking, note
from gitledger.wording import counted
from gitledger.workflows.durations import Run, durations_of, encode_durations, runs_of
from gitledger.workflows.gather import gather
from gitledger.workflows.session import Session
from gitledger.workflows.target import head_of
from gitledger.workflows.trusted import read_config

__all__ = ["Checked", "Part", "advise_splits", "check_splits", "write_durations"]

MAX_NAMED = 100
"""How many tests of no shard a document names; the others are counted."""
_UNCUT = "no declared shard is split, so there are no parts to look at"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a shard as the cut makes it."""

    name: str
    files: tuple[FileCost, ...]

    def encode(self) -> dict[str, Any]:
        """Return the JSON object of `split --json`."""
        return {
            "files": [cost.file for cost in self.files],
            "name": self.name,
            "seconds": sum(cost.cost_us for cost in self.files) / 10**6,
            "tests": sum(cost.tests for cost in self.files),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The parts of every split shard, and every fault of the partition."""

    parts: tuple[Part, ...]
    orphans: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def is_partition(self) -> bool:
        """Tell whether every collected test belongs to exactly one shard; a check of nothing proves nothing."""
        return not any(finding.blocks for finding in self.findings)

    def encode(self) -> dict[str, Any]:
        """Return the document of `split --check --json`."""
        return {
            "findings": [finding.encode() for finding in self.findings],
            "orphans": list(self.orphans[:MAX_NAMED]),
            "orphan_count": len(self.orphans),
            "parts": [part.encode() for part in self.parts],
            "verdict": "passed" if self.is_partition else "failed",
        }


def check_splits(session: Session, *, timeout_s: float | None = None) -> Checked:
    """Return the partition of the work tree's tests, as the declared commands really collect them.

    Raises `UsageError` `no-pytest-shards`, `no-split` where no shard is split and no test is in two shards or in
    none, and what reading the configuration raises.
    """
    head = head_of(session)
    config = read_config(session.repo, head)
    shards = [shard for shard in config.shards.values() if shard.results.kind == "pytest" and shard.command]
    if not shards:
        raise UsageError("no-pytest-shards", "no declared shard runs pytest", "declare one with a command")
    durations = read_durations(session.repo.file_at(head, DURATIONS_PATH))
    found = _collections(session, shards, timeout_s)
    whole = found.pop(None, None)
    findings = [*_broken(found), *_twice(shards, found)]
    parts: list[Part] = []
    for shard in shards:
        if shard.split is None or found[shard.name].fault:
            continue
        try:
            parts += _parts(shard, shard.split, found[shard.name], durations)
        except TooManyPartsError as error:
            findings.append(_too_many(shard, error))
    orphans, lost = _orphans(whole, found)
    findings += lost
    for text in durations.warnings:
        findings.append(note("durations", "8", DURATIONS_PATH, expected="durations of tests", found=text))
    if not any(shard.split for shard in shards):
        if not any(finding.blocks for finding in findings):
            raise _no_split()
        findings.append(note("no-split", "8", "configuration", expected="a shard with `split: K`", found=_UNCUT))
    return Checked(parts=tuple(parts), orphans=tuple(orphans), findings=tuple(findings))


def _no_split() -> UsageError:
    return UsageError(
        "no-split",
        _UNCUT,
        "write `split: 2` into a shard of .gitledger/config.yaml (it is then cut in two)",
    )


def _collections(
    session: Session, shards: Sequence[ShardConfig], timeout_s: float | None
) -> dict[str | None, Collected]:
    """Return what each shard's command collects, and under None what pytest collects by itself."""
    root = session.repo.worktree or Path()
    commands: dict[str | None, tuple[str, ...]] = {shard.name: shard.command or () for shard in shards}
    bare = next((words for shard in shards if (words := _bare(shard.command or ()))), None)
    if bare is not None:
        commands[None] = bare
    done: dict[tuple[str, ...], Collected] = {}
    with tempfile.TemporaryDirectory(prefix="gitledger-") as place:
        for number, argv in enumerate(dict.fromkeys(commands.values())):
            done[argv] = collect(
                argv,
                root=root,
                folder=Path(place) / str(number),
                environ=session.environ,
                clock=session.now,
                timeout_s=timeout_s,
            )
    return {name: done[argv] for name, argv in commands.items()}


def _bare(command: Sequence[str]) -> tuple[str, ...] | None:
    """Return a command without pytest's arguments, None where it is not plainly pytest."""
    arguments = pytest_arguments(command)
    return None if arguments is None else tuple(command[: len(command) - len(arguments)])


def _broken(found: Mapping[str | None, Collected]) -> Iterator[Finding]:
    for name, collected in found.items():
        if collected.fault or not collected.selected:
            yield blocking(
                "collection-error",
                "8",
                name,
                expected="a collection of tests",
                found=collected.fault or "no tests",
                remedy="run the shard's command with --collect-only",
            )


def _twice(shards: Sequence[ShardConfig], found: Mapping[str | None, Collected]) -> Iterator[Finding]:
    """Yield pairs of shards that share tests and a variant."""
    for place, shard in enumerate(shards):
        for other in shards[:place]:
            if not (set(shard.variants) & set(other.variants) or not (shard.variants or other.variants)):
                continue
            shared = sorted({*found[shard.name].selected} & {*found[other.name].selected})
            if shared:
                yield blocking(
                    "duplicate-tests",
                    "7",
                    shard.name,
                    expected="each test in exactly one shard",
                    found=f"{len(shared)} also in {other.name}: {_named(shared, 3)}",
                    remedy="give the shards' commands disjoint tests",
                )


def _parts(shard: ShardConfig, total: int, collected: Collected, durations: Durations) -> list[Part]:
    runs = cut_files(file_costs(collected.selected, durations), total)
    names = list(dict.fromkeys(key.name for key, split in shard.identities() if split is not None))
    return [Part(name, tuple(run)) for name, run in zip(names, runs, strict=True)]


def _too_many(shard: ShardConfig, error: TooManyPartsError) -> Finding:
    return blocking(
        "split-too-many",
        "8",
        shard.name,
        expected="at least one file for each part",
        found=str(error),
        remedy=f"lower `split` of {shard.name}",
    )


def _named(node_ids: Sequence[str], limit: int) -> str:
    return ", ".join(ascii(name)[1:-1] for name in node_ids[:limit])


def _orphans(whole: Collected | None, found: Mapping[str | None, Collected]) -> tuple[list[str], list[Finding]]:
    """Return the tests that pytest finds by itself and no shard selects, and findings about them."""
    if whole is None or whole.fault:
        why = "no shard's command is plainly pytest" if whole is None else whole.fault
        return [], [note("orphans-unknown", "8", "tests of no shard", expected="a bare collection", found=why)]
    if any(item.rootdir != whole.rootdir for item in found.values() if not item.fault):
        text = "a shard's command has another rootdir, so node ids can't be compared"
        return [], [note("orphans-unknown", "8", "tests of no shard", expected="one rootdir", found=text)]
    taken = {node_id for item in found.values() for node_id in item.selected}
    orphans = [node_id for node_id in whole.selected if node_id not in taken]
    left = len({*whole.full} - {*whole.selected} - taken)
    findings = []
    if orphans:
        findings.append(
            blocking(
                "tests-of-no-shard",
                "8",
                "collection",
                expected="every test in a shard",
                found=f"{len(orphans)} in none: {_named(orphans, 5)}",
                remedy="widen a shard's command, or declare one for them",
            )
        )
    if left:
        text = f"{counted(left, 'test')} deselected by pytest's own configuration: of no shard"
        findings.append(note("deselected", "8", "collection", expected="every test in a shard", found=text))
    return orphans, findings


def write_durations(session: Session) -> tuple[int, int]:
    """Write the durations of HEAD's evidence into the work tree; return how many are new and how many there are.

    Raises `UsageError` `no-durations` where the ledger knows none.
    """
    head = head_of(session)
    found = durations_of(session, head)
    if not found.refreshed:
        raise UsageError("no-durations", "the ledger knows no durations of these tests", "git ledger record")
    path = (session.repo.worktree or Path()) / DURATIONS_PATH
    path.write_bytes(encode_durations(found))
    return found.refreshed, len(found.tests_us)


def advise_splits(session: Session, target: CommitId) -> dict[str, Advice]:
    """Return advice for every shard that is split, by name; raises `UsageError` `no-split`, `no-durations`."""
    case = gather(session, target)
    config = read_config(session.repo, target)
    splits = {name: shard.split for name, shard in config.shards.items() if shard.split}
    if not splits:
        raise _no_split()
    durations = durations_of(session, target)
    known = Durations(durations.tests_us, durations.fixed_us)
    found = {}
    runs = runs_of(case)
    for name, parts in splits.items():
        mine = [run for run in runs if _shard_name(config, run) == name]
        points = [(sum(run.tests_us.values()), run.wall_us) for run in mine]
        if points:
            ids = sorted({node_id for run in mine for node_id in run.tests_us})
            found[name] = advise(ids, parts, known, points)
    if not found:
        raise UsageError("no-durations", "no part of a split was recorded yet", "git ledger record --shard PART")
    return found


def _shard_name(config: Config, run: Run) -> str | None:
    try:
        return config.shard(run.key).name
    except ConfigError:
        return None
