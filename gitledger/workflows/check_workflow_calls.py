"""What the shell lines of a workflow do, as far as a gate's rules ask: calls of `git ledger`, and their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gitledger.dataclass import dataclass
from gitledger.verdict.finding import Finding, blocking
from gitledger.workflows.check_workflow_document import Place

__all__ = [
    "CALL",
    "LOOSE",
    "RULE",
    "Call",
    "calls_of",
    "count_faults",
    "dropped_status",
    "loosened",
    "place_of",
    "tolerance",
    "word_faults",
]

RULE = "10"
CALL = re.compile(r"(?:^|[\s;&|(!])git[- ]ledger((?:\s+(?:-C\s+\S+|-\S+))*)\s+([a-z][a-z-]*)([^;&|]*)")
_DROPS = re.compile(
    r"\|\|\s*(?:true|:|exit 0|echo\b|printf\b)|;\s*(?:true|exit 0)\b|\bset \+e\b"
    r"|(?:^|;\s*)(?:if|while|until|!)\s+git[- ]ledger\b|(?:\$\(|`)\s*git[- ]ledger (?:gate|verify|record|run)\b"
    r"|git[- ]ledger (?:gate|verify|record|run)\b[^|;&]*&\s*$"
)
_KEPT = re.compile(r"git[- ]ledger[^|]*\|\|\s*(\w+)=\$\?")
_PIPE = re.compile(r"git[- ]ledger[^|;&]*\|(?!\|)")
_PART = re.compile(r"\b[A-Za-z_][\w.]*-\d+-of-\d+\b")
_SPLITS = re.compile(r"--splits?[ =]\d+")
_COUNTED = re.compile(r"(?:-(?:eq|ne|lt|le|gt|ge)|[!=]=)\s*[\"']?[1-9]\d*\b")
_THRESHOLD = re.compile(r"--(?:cov-)?fail-under\b|\bfail_under\b")
_OWN_POLICY = re.compile(
    r"--policy-from[ =][\"']?(?:HEAD\b|\$\{?GITHUB_SHA|\$\{?CI_COMMIT_SHA|\$\{\{\s*github\.(?:sha|head_ref)"
    r"|\$\{\{\s*github\.event\.pull_request\.head|\$\{?GITHUB_HEAD_REF)"
)
LOOSE = ("--accept-shards", "--allow-skipped", "--no-verify")


@dataclass(frozen=True, slots=True)
class Call:
    """One `git ledger COMMAND …` in a line of shell."""

    line: int
    command: str
    words: tuple[str, ...]
    source: str

    def has(self, option: str) -> bool:
        """Tell whether an option is given, with `=` or without."""
        return any(word == option or word.startswith(f"{option}=") for word in self.words)


def calls_of(script: Place) -> Iterator[Call]:
    """Yield the calls of `git ledger` in a script."""
    for line in script.commands():
        for found in CALL.finditer(line.text):
            yield Call(line.line, found[2], tuple(found[3].split()), line.text)


def loosened(line: int, job: str, option: str) -> Finding:
    """Return the finding of an option that bears, for every change, what a maintainer may bear once."""
    return blocking(
        "gate-loosened",
        RULE,
        place_of(line, job),
        expected="a maintainer to say so, once, for one change",
        found=f"{option} for every change",
        remedy=f"take {option} out of the workflow",
    )


def place_of(line: int, job: str) -> str:
    """Return how a finding names its place."""
    return f"line {line}, job {job}" if job else f"line {line}"


def tolerance(body: Place, key: str, *, job: str, unsaid: str = "") -> Iterator[Finding]:
    """Yield the key of a job or step by which its failure is none; `unsaid`: what a value that is no text says."""
    lenient = body.get(key)
    if lenient and lenient.text != "false":
        yield blocking(
            "failure-tolerated",
            RULE,
            place_of(lenient.line, job),
            expected="a failure to be one",
            found=f"{key}: {lenient.text or unsaid}",
            remedy="take it out",
        )


def dropped_status(script: Place, *, job: str, pipes_fail: bool) -> Iterator[Finding]:
    """Yield the lines after which nobody knows whether a call of `git ledger` failed."""
    text = "\n".join(line.text for line in script.commands())
    if not any(call.command in ("gate", "verify", "record", "run") for call in calls_of(script)):
        return
    for line in script.commands():
        piped = not pipes_fail and "pipefail" not in text and _PIPE.search(line.text)
        kept = _KEPT.search(line.text)
        forgotten = kept and not re.search(rf"\bexit [\"']?\$\{{?{kept[1]}\b", text)
        if _DROPS.search(line.text) or piped or forgotten:
            yield blocking(
                "failure-tolerated",
                RULE,
                place_of(line.line, job),
                expected="the status of git ledger to be the status of the step",
                found=line.text,
                remedy="take out what swallows it (|| true, set +e, if, a pipe without pipefail)",
            )


def count_faults(values: Iterable[Place], *, job: str, counted: bool) -> Iterator[Finding]:
    """Yield values and lines that spell how many parts a suite has; `counted`: numbers compared with, too."""
    for value in values:
        for line in value.commands():
            found = _PART.search(line.text) or _SPLITS.search(line.text)
            found = found or (_COUNTED.search(line.text) if counted else None)
            if found:
                yield blocking(
                    "literal-count",
                    RULE,
                    place_of(line.line, job),
                    expected="the number of parts to stand in the configuration alone (`split:`)",
                    found=found[0].strip(),
                    remedy="make the matrix of `git ledger plan --format github`",
                )


def word_faults(script: Place, *, job: str, is_gate: bool) -> Iterator[Finding]:
    """Yield what a script says that loosens a verdict: thresholds, its own policy, shards and skips accepted."""
    for line in script.commands():
        if found := _THRESHOLD.search(line.text):
            yield blocking(
                "threshold-in-workflow",
                RULE,
                place_of(line.line, job),
                expected="one threshold, in the configuration, applied by the gate",
                found=found[0],
                remedy="coverage: {fail_under: N} in .gitledger/config.yaml",
            )
    for call in calls_of(script):
        own = _OWN_POLICY.search(call.source)
        unpinned = is_gate and call.command == "verify" and not call.has("--policy-from")
        if call.command in ("gate", "verify", "merge") and (own or unpinned):
            yield blocking(
                "policy-self",
                RULE,
                place_of(call.line, job),
                expected="the policy of the branch that the change is to land on",
                found=own[0] if own else "verify without --policy-from: the change judges itself",
                remedy="git ledger gate (or git ledger verify --policy-from origin/main)",
            )
        loose = [option for option in LOOSE if call.has(option)]
        if call.command in ("gate", "verify") and loose:
            yield loosened(call.line, job, loose[0])
