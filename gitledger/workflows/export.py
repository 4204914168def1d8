"""Export: what a commit's evidence says, in the formats of other tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError
from gitledger.records.fragments import lines_of
from gitledger.records.ids import CommitId
from gitledger.store.bundle import bundle_of
from gitledger.store.facts import CommitFacts
from gitledger.suites import coverage_write
from gitledger.trust.verified import Rejected, open_record
from gitledger.verdict.coverage import CoverageUnion
from gitledger.verdict.union import Union, form_union
from gitledger.wording import counted
from gitledger.workflows import export_reports
from gitledger.workflows.durations import durations_of
from gitledger.workflows.gather import gather
from gitledger.workflows.session import Session

__all__ = ["DEFAULT_COMMITS", "FILES", "FORMATS", "Exported", "export"]

DEFAULT_COMMITS = 100
"""How many commits an HTML report shows."""

FILES = {
    "html": "report.html",
    "markdown": "report.md",
    "junit": "junit.xml",
    "coverage": ".coverage",
    "coverage-xml": "coverage.xml",
    "lcov": "lcov.info",
    "durations": "durations.json",
    "in-toto": "statements.jsonl",
    "bundle": "../ledger.bundle",
}
"""What a file of each format is called as a rule. A bundle in the work tree would make it dirty."""
_CONFIGURATION = (".coveragerc", ".coveragerc.toml", "setup.cfg", "tox.ini", "pyproject.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was exported: its bytes, and sentences about it."""

    content: bytes
    notes: tuple[str, ...] = ()


def export(
    session: Session,
    target: CommitId,
    format_: str,
    *,
    policy_from: str | None = None,
    commits: int = DEFAULT_COMMITS,
) -> Exported:
    """Return the export of a commit's evidence; `commits` is how many an HTML report shows.

    Raises `UsageError`: `unknown-format`, `no-coverage` where the union has no number to be believed,
    `export-failed`; and what `gather` raises.
    """
    if format_ not in FORMATS:
        raise UsageError("unknown-format", f"no export format {format_!a}", f"known: {', '.join(FORMATS)}")
    if format_ == "html":
        return Exported(content=export_reports.html(session, target, policy_from, commits))
    return FORMATS[format_](session, target, policy_from)


_Format = Callable[[Session, CommitId, str | None], Exported]


def _coverage(session: Session, target: CommitId, policy_from: str | None) -> CoverageUnion:
    case = gather(session, target, policy_from=policy_from)
    union = form_union(case.situation)
    found = union.coverage
    if found.claim is None:
        why, way = _lacking(union)
        raise UsageError("no-coverage", f"commit {target[:12]} has no whole coverage: {why}", way)
    return found


def _lacking(union: Union) -> tuple[str, str]:
    """Return why a union has no number, and what makes one."""
    measured = [choice for choice in union.choices if choice.shard.measured]
    without = [choice for choice in measured if choice.result is None]
    if not measured:
        return "no shard measures any", "take `coverage: none` from a shard that does, in .gitledger/config.yaml"
    if without:
        key, reason = without[0].shard.key, without[0].reason
        return f"nothing stands for {key} ({reason})", f"git ledger record --shard {key}"
    faults = (*union.coverage.faults, *union.coverage.notes)
    telling = next((fault for fault in faults if fault.remedy), None)
    if telling is not None:
        return f"{telling.code}, {telling.subject}", telling.remedy
    key = measured[0].shard.key
    return "no shard recorded any", f"let its command measure (pytest --cov), then git ledger record --shard {key}"


def _data(session: Session, target: CommitId, policy_from: str | None) -> Exported:
    """Return coverage's data file, its names those that `coverage report` looks for in this work tree."""
    found = _coverage(session, target, policy_from)
    root = session.repo.worktree or Path()
    relative = _is_relative(session, target)
    rows = [
        (file.path if relative else str(root / file.path), lines_of(file.executed), sorted(file.taken))
        for file in found.files
    ]
    with tempfile.TemporaryDirectory(prefix="gitledger-") as folder:
        path = Path(folder) / "data"
        coverage_write.write_data(path, rows, branch=found.branch)
        return Exported(content=path.read_bytes(), notes=_notes(found))


def _is_relative(session: Session, target: CommitId) -> bool:
    from gitledger.suites.coverage_settings import coverage_settings

    return coverage_settings(lambda name: session.repo.file_at(target, name)).relative_files


def _notes(found: CoverageUnion) -> tuple[str, ...]:
    version = coverage_write.version()
    if version == found.version:
        return ()
    return (f"measured by coverage {found.version}, written by {version}: its report may count otherwise",)


def _report(kind: str) -> Callable[[Session, CommitId, str | None], Exported]:
    def make(session: Session, target: CommitId, policy_from: str | None) -> Exported:
        found = _coverage(session, target, policy_from)
        with tempfile.TemporaryDirectory(prefix="gitledger-") as place:
            folder = Path(place).resolve()
            sources = folder / "sources"
            sources.mkdir()
            _check_out(session, target, sources, [file.path for file in found.files])
            request = {
                "branch": found.branch,
                "files": [[file.path, lines_of(file.executed), sorted(file.taken)] for file in found.files],
                "kind": kind,
                "output": str(folder / "report"),
            }
            (folder / "request").write_text(json.dumps(request), encoding="ascii")
            _run(session, sources, folder / "request")
            text = (folder / "report").read_bytes()
        root = str(session.repo.worktree or ".")
        return Exported(content=text.replace(os.fsencode(sources), os.fsencode(root)), notes=_notes(found))

    return make


def _run(session: Session, sources: Path, request: Path) -> None:
    script = Path(coverage_write.__file__)
    env = {name: value for name, value in session.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, str(script), str(request)], cwd=sources, env=env, capture_output=True, check=False
    )
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise UsageError("export-failed", f"coverage could not write it: {' '.join(last)}", "git ledger verify")


def _check_out(session: Session, target: CommitId, folder: Path, paths: list[str]) -> None:
    """Write the commit's own content of `paths`, and coverage's configuration, below `folder`."""
    facts = CommitFacts(session.repo.objects, session.repo.commit(target).tree)
    for path in (*paths, *_CONFIGURATION):
        entry = facts.entry(path)
        if entry is None or entry.kind != "blob":
            continue
        content = facts.blob(entry.oid)
        if content is None:
            raise UsageError("export-failed", f"the source {path!a} is not in this clone", "git fetch")
        place = folder / PurePosixPath(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _durations(session: Session, target: CommitId, policy_from: str | None) -> Exported:
    """Return durations as pytest-split keeps them: seconds by node id, sorted."""
    found = durations_of(session, target, policy_from=policy_from)
    seconds = {node_id: value / 10**6 for node_id, value in sorted(found.tests_us.items())}
    return Exported(content=(json.dumps(seconds, indent=4) + "\n").encode("utf-8"))


def _in_toto(session: Session, target: CommitId, policy_from: str | None) -> Exported:  # noqa: ARG001
    """Return the commit's statements as they were signed, one a line; what is no record there is left out.

    A signature that is good says which key signed, and not whose key it is: policy is asked by `verify` alone.
    """
    tree = session.repo.commit(target).tree
    lines, left_out = [], 0
    for line in session.ledger.lines(target):
        opened = open_record(line, commit=target)
        if isinstance(opened, Rejected) or opened.statement.subject.tree != tree:
            left_out += 1
        else:
            lines.append(opened.statement.raw)
    notes = (
        (f"left out {counted(left_out, 'line')} that can't be read as a record of this commit",)
        if left_out
        else ()
    )
    return Exported(content=b"".join(line + b"\n" for line in lines), notes=notes)


def _bundle(session: Session, target: CommitId, policy_from: str | None) -> Exported:  # noqa: ARG001
    """Return a git bundle of the ledger, of all commits and not only of one."""
    return Exported(content=bundle_of(session.repo))


def _plain(written: Callable[[Session, CommitId, str | None], bytes]) -> _Format:
    return lambda session, target, policy_from: Exported(content=written(session, target, policy_from))


def _page(session: Session, target: CommitId, policy_from: str | None) -> Exported:
    return Exported(content=export_reports.html(session, target, policy_from, DEFAULT_COMMITS))


FORMATS: dict[str, _Format] = {
    "html": _page,
    "markdown": _plain(export_reports.markdown),
    "junit": _plain(export_reports.junit),
    "coverage": _data,
    "coverage-xml": _report("coverage-xml"),
    "lcov": _report("lcov"),
    "durations": _durations,
    "in-toto": _in_toto,
    "bundle": _bundle,
}
"""Each format by its name."""
