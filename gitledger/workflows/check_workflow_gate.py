"""What a script may do around the call that judges: nothing by which its status could be another one's.

Shell has too many ways to lose a status to list them. So it is said what a call must look like: a command of its
own, at the beginning of a line, in no block, with nothing behind it but a pipe that fails with it; in a shell that
stops at a failure; and before it nothing that ends the script, puts another program in its place, or changes what
the runner says of itself.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence

from gitledger.dataclass import dataclass
from gitledger.verdict.finding import Finding, blocking
from gitledger.workflows.check_workflow_calls import CALL, LOOSE, RULE, calls_of, loosened, place_of
from gitledger.workflows.check_workflow_document import Place
from gitledger.workflows.check_workflow_shell import assigns, disguised, is_open, stops_running, tolerant_set

__all__ = [
    "INTO_RUNNER",
    "JUDGES",
    "Asked",
    "argument_faults",
    "environment_faults",
    "judges_another",
    "judging_calls",
    "moves",
    "policy_by_variable",
    "policy_faults",
    "runner_overridden",
    "script_faults",
    "shell_faults",
]

JUDGES = ("gate", "verify")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_EXPRESSION = re.compile(r"\$\{\{.*?\}\}")
_REDIRECT = re.compile(r"(?:&|\d)?>>?(?:&\d|\s*[\w./$@-]+)|<(?!<)\s*[\w./$@-]+")
_PLAIN = re.compile(
    r"(?:[A-Za-z_]\w*=\S* )*(?:(?:uv|poetry|pdm|hatch|rye) run |time |timeout \d\S* )*git[- ]ledger\b[^;&|()`]*"
)
_KEPT = re.compile(r"\s*\|\| (\w+)=\$\?")
_BLOCK = re.compile(
    r"(?:^|[;&|]\s*|\b(?:then|do|else|time)\s+|!\s+)"
    r"(if|for|while|until|case|select|\{|\()(?=\s|$)"
    r"|\b(fi|done|esac)\b|(?:^|;)\s*([})])"
)
_ENDS = re.compile(
    r"(?:^|[;&|{(]\s*|\b(?:then|do|else) )(?:(?:command|builtin|time|!|\w+=\S*) )*"
    r"(exit|return|exec|trap|alias|eval|source|\.|kill|enable|hash)(?=\s|;|$)([^;|&]*)"
)
_ACTIVATE = re.compile(r"\s*\S*/bin/activate\s*\Z")
_NONZERO = re.compile(r"\s*[\"']?[1-9]\d*[\"']?\s*")
_FUNCTION = re.compile(r"(?:^|[;&|{]\s*)(?:function\s+[\w:-]+|[\w:-]+\s*\(\s*\))")
_SHOPT = re.compile(r"\bshopt -uo? (?:errexit|pipefail)\b|\bshopt -[a-z]+ (?:noexec|onecmd)\b")
_SHELL = re.compile(
    r"(?:/(?:usr/)?bin/)?(?:ba)?sh"
    r"((?: -[euxvlo]+| --(?:noprofile|norc|posix)| (?:errexit|nounset|pipefail))*) \{0\}"
)
_NAME = (
    r"PATH|HOME|XDG_CONFIG_HOME|ENV|BASH_ENV|SHELLOPTS|BASHOPTS|LD_\w+|PYTHON\w*|CI|CI_\w+|GITLAB_CI|GITHUB_\w+|RUNNER_\w+|GITLEDGER_OFFLINE"
    r"|GIT_(?:DIR|WORK_TREE|EXEC_PATH|COMMON_DIR|CONFIG\w*|SSH\w*|NAMESPACE|ALTERNATE_OBJECT_DIRECTORIES|OBJECT_DIRECTORY)"
)
_VARIABLE = re.compile(rf"(?:{_NAME})\Z")
_ASSIGNS = re.compile(
    rf"(?:^|[\s;&|])(?:unset (?:-v )?)?({_NAME})(?:=|\+=|$|(?<=unset ))|\bunset (?:\w+ )*({_NAME})\b"
)
INTO_RUNNER = re.compile(
    r"GITHUB_(?:ENV|PATH)\b|\binsteadOf\b"
    r"|\bgit config [^;&|]*\b(?:alias|include|includeif|url|remote|core\.(?:sshCommand|worktree|gitProxy))\b"
    r"|\bgit remote (?:set-url|add|rename)\b(?![^;&|]*\$\{?(?:CI_REPOSITORY_URL|GITHUB_REPOSITORY)\b)",
    re.IGNORECASE,
)
"""What reaches into every later call of git: variables of the runner, aliases, other files, where a remote is."""
_KNOWN = re.compile(
    r"\$\{\{ *(?:toJSON\( *needs *\)|github\.(?:sha|base_ref|event\.repository\.default_branch)"
    r"|github\.event\.pull_request\.(?:head\.sha|base\.ref|number)(?: *\|\| *github\.sha)?"
    r"|needs\.[\w-]+\.result) *\}\}",
    re.IGNORECASE,
)
"""Expressions that may stand in the line that judges: nobody but the forge says what they come to."""
_TAKES = frozenset({"--policy-from", "--remote", "--from", "--needs", "--key", "--at"})
_POLICY = re.compile(r"--policy-from[ =][\"']?([^\s\"')]+)")
_IN_REF = re.compile(r"\$\{?(\w+)")
_GOES = re.compile(r"(?:^|[;&|({]\s*|\b(?:then|do|else|builtin|command) )((?:cd|pushd|popd)\b)")
_CHECKS_OUT = re.compile(
    r"\bgit (?:-\S+ (?:[^-\s]\S* )?)*(?:checkout|switch|reset|restore|symbolic-ref|update-ref)\b"
)
_SELF = re.compile(
    r"(?:^|/)(?:HEAD|FETCH_HEAD|ORIG_HEAD|@)(?:$|[~^@{])"
    r"|\$\{?(?:GITHUB_(?:SHA|REF|REF_NAME|HEAD_REF)|CI_COMMIT_\w+|CI_MERGE_REQUEST_SOURCE_\w+)\b"
    r"|github\.(?:sha|ref|ref_name|head_ref)\b|github\.event\.(?:pull_request\.head|after|head_commit)"
)
_JUDGED = re.compile(
    r"HEAD|\$\{?(?:GITHUB_SHA|CI_COMMIT_SHA|CI_MERGE_REQUEST_SOURCE_BRANCH_SHA)\}?"
    r"|\$\{\{ ?github\.(?:sha|event\.pull_request\.head\.sha)(?: \|\| github\.sha)? ?\}\}|\$\{?\w+\[@\]\}?|\$@"
)


def shell_faults(used: Place, *, line: int, job: str) -> Iterator[Finding]:
    """Yield a shell that goes on after a failure, or whose scripts can't be read; none is GitHub's `bash -e`."""
    if used and not _stops_at_failure(used.text):
        yield _tolerated(used.line or line, job, f"shell: {used.text}", "shell: bash")


def _stops_at_failure(shell: str) -> bool:
    """Tell whether a shell, as a workflow names it, ends a script at the first command that fails."""
    if shell in ("bash", "sh", ""):
        return True
    found = _SHELL.fullmatch(shell)
    flags = found[1].split() if found else []
    return any(re.fullmatch(r"-[a-z]*e[a-z]*", flag) or flag == "errexit" for flag in flags)


def script_faults(scripts: Sequence[Place], *, job: str, pipes_fail: bool) -> Iterator[Finding]:
    """Yield what a script that judges does by which its status may be lost; `scripts` run in one shell."""
    lines = [line for script in scripts for line in script.commands()]
    text = "\n".join(line.text for line in lines)
    kept = {found[1] for line in lines if (found := _KEPT.search(line.text))}
    depth = 0
    for number, line in enumerate(lines):
        bare = _bare(line.text)
        judging = [call for call in calls_of(line) if call.command in JUDGES and not call.has("--check-workflow")]
        if judging and (depth or not _is_plain(bare, pipes_fail=pipes_fail or "-o pipefail" in text)):
            yield _tolerated(line.line, job, line.text, "give it a line of its own, in no block")
        elif judging:
            yield from _around(lines, number, job)
        depth = max(0, depth + _opened(bare))
        for found in _ENDS.finditer(bare):
            word, rest = found[1], line.text[found.start(2) :]
            named = re.match(r"\s*[\"']?\$\{?(\w+)\}?[\"']?", rest)
            if word in ("source", ".") and _ACTIVATE.match(rest):
                continue
            if word == "exit" and (_NONZERO.match(rest) or (named and named[1] in kept)):
                continue
            yield _tolerated(line.line, job, line.text, f"take {word} out")
        if "<<" in bare.replace("<<<", ""):
            yield _tolerated(line.line, job, line.text, "no here-document beside what judges")
        if _loosens(line.text, bare):
            yield _tolerated(line.line, job, line.text, "take it out")
        yield from _unknown(line, job)
        if found := _ASSIGNS.search(line.text) or INTO_RUNNER.search(line.text):
            yield runner_overridden(line.line, job, found[0].strip())
        if judging and any(not _KNOWN.fullmatch(said) for said in _EXPRESSION.findall(line.text)):
            yield _tolerated(line.line, job, line.text, "hand it over by env: what is put into a line may end it")
        if not judging:
            yield from _handed_over(line, job)


def _handed_over(line: Place, job: str) -> Iterator[Finding]:
    """Yield options that a line puts together for the call that judges (`options=(--accept-shards)`)."""
    for option in LOOSE:
        if re.search(rf"(?<![\w-]){option}\b", line.text):
            yield loosened(line.line, job, option)
    for found in _POLICY.finditer(line.text):
        yield from policy_faults(found[1], line=line.line, job=job)


def _bare(text: str) -> str:
    """Return a line without what its quotes and expressions hold, as long as it was."""
    masked = _EXPRESSION.sub(lambda found: "x" * len(found[0]), text)
    return _QUOTED.sub(lambda found: '"' + "x" * (len(found[0]) - 2) + '"', masked)


def _is_plain(bare: str, *, pipes_fail: bool) -> bool:
    rest = _REDIRECT.sub("", bare).strip()
    found = _PLAIN.match(rest)
    if found is None or "$(" in rest or "`" in rest:
        return False
    left = rest[found.end() :].strip()
    if not left or _KEPT.fullmatch(" " + left):
        return True
    return pipes_fail and left.startswith("|") and not re.search(r"[;&()`]|\|\|", left)


def _loosens(text: str, bare: str) -> bool:
    """Tell whether a line changes what the lines behind it come to: options of the shell, functions, disguises."""
    changed = tolerant_set(text) or stops_running(text) or bool(_SHOPT.search(text))
    return changed or bool(_FUNCTION.search(bare)) or disguised(text) is not None


def _unknown(line: Place, job: str) -> Iterator[Finding]:
    """Yield a line that stands for others, which can't be told from here."""
    if line.text.startswith("!reference"):
        yield _tolerated(line.line, job, line.text, "spell it out here: what is referred to can't be told")


def _around(lines: Sequence[Place], number: int, job: str) -> Iterator[Finding]:
    """Yield what the lines before and behind one that judges make of it."""
    line = lines[number]
    if is_open(before.text for before in lines[:number]):
        yield _tolerated(line.line, job, line.text, "end what the lines before it began")
    if lost := _loses_kept(_bare(line.text), lines[number + 1 :]):
        yield _tolerated(line.line, job, lost, "end with the status that was kept, and nothing between")


def _loses_kept(bare: str, after: Sequence[Place]) -> str | None:
    """Return the line by which a kept status (`|| status=$?`) is lost; None where the script ends with it."""
    kept = _KEPT.search(bare)
    if kept is None:
        return None
    ends = re.compile(rf"exit [\"']?\$\{{?{kept[1]}\}}?[\"']?")
    depth = 0
    for line in after:
        if depth == 0 and ends.fullmatch(line.text):
            return None
        again = _KEPT.search(line.text)
        if assigns(line.text, kept[1]) and not (again and again[1] == kept[1]):
            return line.text
        depth = max(0, depth + _opened(_bare(line.text)))
    return bare


def _opened(bare: str) -> int:
    """Return by how many blocks a line leaves the script deeper."""
    return sum(1 if found[1] else -1 for found in _BLOCK.finditer(bare))


def environment_faults(table: Place, *, job: str) -> Iterator[Finding]:
    """Yield variables that change what the runner says of itself, or which programs are found."""
    for name, value in table.table.items():
        if _VARIABLE.match(name):
            yield runner_overridden(value.line, job, f"{name}: {value.text}")


@dataclass(frozen=True, slots=True)
class Asked:
    """One call that judges, with its words as the shell would take them, expressions and variables as spelled."""

    line: int
    command: str
    folder: str
    words: tuple[str, ...]
    before: tuple[str, ...] = ()
    """What stands between `ledger` and the command."""

    def value(self, option: str) -> str | None:
        """Return the value of an option as the command takes it, the last one; None where it is not given."""
        found = None
        for word, after in itertools.zip_longest(self.words, self.words[1:]):
            if word == option:
                found = after
            elif word.startswith(f"{option}="):
                found = str(word.partition("=")[2])
        return found


def judging_calls(scripts: Sequence[Place]) -> Iterator[Asked]:
    """Yield the calls of scripts that judge."""
    for line in (line for script in scripts for line in script.commands()):
        text = _REDIRECT.sub(lambda found: " " * len(found[0]), line.text)
        for found in CALL.finditer(_bare(text)):
            words, before = (
                _words(text[found.start(3) : found.end(3)]),
                _words(text[found.start(1) : found.end(1)]),
            )
            if found[2] in JUDGES and not any(word.startswith("--check-workflow") for word in words):
                folder = next((after for word, after in itertools.pairwise(before) if word == "-C"), "")
                yield Asked(line.line, found[2], folder, words, before)


def _words(text: str) -> tuple[str, ...]:
    """Return a line's words as the shell takes them; expressions count as one word each, or as part of one."""
    said = _EXPRESSION.findall(text)
    numbers = itertools.count()
    masked = _EXPRESSION.sub(lambda _: f"\0{next(numbers)}\0", text)
    try:
        words = shlex.split(masked)
    except ValueError:
        words = masked.split()
    return tuple(re.sub("\0(\\d+)\0", lambda found: said[int(found[1])], word) for word in words)


def argument_faults(asked: Asked, *, job: str, folders: Sequence[str] = ()) -> Iterator[Finding]:
    """Yield arguments by which another commit, place or time is judged, or another branch's policy applied.

    `folders` are those that the repository was checked out to.
    """
    if {"--help", "-h", "--version"} & {*asked.words, *asked.before}:
        yield judges_another(asked.line, job, "it prints a page and judges nothing")
    if asked.folder and asked.folder.removeprefix("./").rstrip("/") not in folders:
        yield judges_another(asked.line, job, f"-C {asked.folder}")
    for word in asked.before:
        if word.startswith("-C") and word != "-C":
            yield judges_another(asked.line, job, word)
    expected = ""
    for word in asked.words:
        if not expected and not word.startswith("-") and not _JUDGED.fullmatch(word):
            yield judges_another(asked.line, job, word)
        expected = word if not expected and word in _TAKES else ""
    if (time := asked.value("--at")) is not None:
        yield blocking(
            "gate-loosened",
            RULE,
            place_of(asked.line, job),
            expected="what stands now",
            found=f"--at {time}: judged as of another time",
            remedy="take --at out",
        )
    yield from policy_faults(asked.value("--policy-from"), line=asked.line, job=job)
    remote = asked.value("--remote")
    if remote not in (None, "origin", "upstream"):
        yield _self(asked.line, job, f"--remote {remote}")


def policy_by_variable(scripts: Sequence[Place], holders: Sequence[Place], *, job: str) -> Iterator[Finding]:
    """Yield a ref of policy that the change decides behind a variable; `holders` are variables, nearest first.

    One that the script sets itself may hold anything.
    """
    lines = [line for script in scripts for line in script.commands()]
    for line in lines:
        for found in _POLICY.finditer(line.text):
            ref = found[1]
            for name in _IN_REF.findall(ref):
                value = next((given.text for holder in holders if (given := holder.get(name))), None)
                if any(assigns(other.text, name) for other in lines):
                    yield _self(line.line, job, f"--policy-from {ref}, which the script sets")
                elif value is not None:
                    yield from policy_faults(_filled(ref, name, value), line=line.line, job=job)


def moves(scripts: Sequence[Place], *, job: str, folders: Sequence[str] = ()) -> Iterator[Finding]:
    """Yield lines that go elsewhere, or bring another commit here, before what judges is called."""
    for line in (line for script in scripts for line in script.commands()):
        bare = _bare(line.text)
        for found in _GOES.finditer(bare):
            words = _words(line.text[found.start(1) :])[1:2]
            if words and words[0].removeprefix("./").rstrip("/") in folders:
                continue
            yield judges_another(line.line, job, line.text)
        if _CHECKS_OUT.search(bare):
            yield judges_another(line.line, job, line.text)


def _filled(ref: str, name: str, value: str) -> str:
    return re.sub(rf"\$(?:{name}\b|\{{{name}\}})", lambda _: value, ref)


def policy_faults(ref: str | None, *, line: int, job: str) -> Iterator[Finding]:
    """Yield a ref of policy that the change itself decides."""
    if ref is not None and _SELF.search(ref):
        yield _self(line, job, f"--policy-from {ref}")


def _self(line: int, job: str, found: str) -> Finding:
    return blocking(
        "policy-self",
        RULE,
        place_of(line, job),
        expected="the policy of the branch that the change is to land on",
        found=found,
        remedy="git ledger gate (or git ledger verify --policy-from origin/main)",
    )


def _tolerated(line: int, job: str, found: str, remedy: str) -> Finding:
    return blocking(
        "failure-tolerated",
        RULE,
        place_of(line, job),
        expected="the status of git ledger to be the status of the step",
        found=found,
        remedy=remedy,
    )


def runner_overridden(line: int, job: str, found: str) -> Finding:
    """Return the finding of a job that reaches into what the runner says, or into which programs are found."""
    return blocking(
        "runner-overridden",
        RULE,
        place_of(line, job),
        expected="the runner's own word for commit, branch and programs",
        found=found,
        remedy="take it out of the job that judges",
    )


def judges_another(line: int, job: str, found: str) -> Finding:
    """Return the finding of a job that works somewhere else than on the change."""
    return blocking(
        "gate-judges-another",
        RULE,
        place_of(line, job),
        expected="the commit that the runner is about, where it was checked out",
        found=found,
        remedy="git ledger gate (and no more)",
    )
