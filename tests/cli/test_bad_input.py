"""What users, disks, clocks, old tools and attackers can hand us: each ends in one line and the right exit status.

A table. Each case spoils a recorded project, runs the installed command, and names the exit status and the code that
must come of it: for a code, stderr holds exactly one error line with that code and a way on, and never a traceback;
without one the input must not matter, and the command does its work. Whatever happens, every record that the ledger
held before is there afterwards.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOM = Path(__file__).parent
CONFIG = ".gitledger/config.yaml"
SIGNERS = ".gitledger/allowed_signers"
REVOKED = ".gitledger/revoked_keys"
RECORDS = "refs/notes/gitledger/records"
BODIES = "refs/notes/gitledger/bodies"
HEAD = "version: 1\nrepository: demo\n"
RECORD = ["record", "--shard", "alpha"]


@dataclass(frozen=True)
class Case:
    """One bad input: how it comes about, and what must come of it. `code` None: it must not matter."""

    name: str
    arrange: Callable
    status: int
    code: str | None
    finding: bool = False
    """The code is that of a finding or of what was ignored (`--json`), not of an error."""


TABLE: list[Case] = []


def case(status: int, code: str | None = None, *, finding: bool = False):
    """Put a function that spoils a place into the table, under its own name."""

    def enter(function: Callable) -> Callable:
        TABLE.append(Case(function.__name__.replace("_", "-"), function, status, code, finding))
        return function

    return enter


def entries(status: int, code: str | None, rows: dict[str, object], arrange: Callable, *, finding: bool = False):
    """Put one case a row into the table, all of one kind."""
    for name, value in rows.items():
        TABLE.append(Case(name, lambda place, value=value: arrange(place, value), status, code, finding))


# --- where it is called ---------------------------------------------------------------------------------------


@case(2, "not-a-repository")
def outside_of_any_repository(place):
    place.cwd, place.args = place.path.parent / "home", ["plan"]


@case(2, "not-a-folder")
def a_folder_that_is_not_there(place):
    place.args = ["-C", "nowhere", "plan"]


@case(2, "not-a-folder")
def a_folder_that_is_a_file(place):
    place.args = ["plan", "-C", "src/alpha.py"]


@case(2, "not-a-folder")
def the_current_folder_was_deleted(place):
    (place.path / "gone").mkdir()
    place.cwd, place.shell = place.path / "gone", "rmdir ../gone; {} plan"


@case(2, "not-a-folder")
def a_folder_of_bytes_that_are_no_text(place):
    place.args = ["-C", b"\xff\xfe", "plan"]


def bare(place):
    place.git("clone", "-q", "--mirror", ".", "../bare.git")
    place.cwd = place.path.parent / "bare.git"


@case(2, "no-work-tree")
def record_in_a_bare_repository(place):
    bare(place)
    place.args = RECORD


@case(2, "no-work-tree")
def init_in_a_bare_repository(place):
    bare(place)
    place.args = ["init"]


@case(0)
def verify_in_a_bare_repository(place):
    bare(place)
    place.args = ["verify"]


@case(0)
def record_on_a_detached_head(place):
    place.git("checkout", "-q", "--detach")
    place.args = RECORD


@case(0)
def a_linked_worktree(place):
    place.git("worktree", "add", "-q", "--detach", "../linked")
    place.cwd, place.args = place.path.parent / "linked", ["verify"]


@case(2, "repository-not-owned")
def a_repository_of_another_user(place):
    os.chown(place.path, 12345, 12345)
    os.chown(place.path / ".git", 12345, 12345)
    place.undo.append(lambda: [os.chown(item, 0, 0) for item in (place.path, place.path / ".git")])
    place.args = ["plan"]


# --- a repository in a bad state --------------------------------------------------------------------------------


def unborn(place, args):
    place.git("checkout", "-q", "--orphan", "fresh")
    place.args = args


entries(
    2,
    "no-commit",
    {
        f"no-commits-yet-{args[0]}": args
        for args in (RECORD, ["status"], ["plan"], ["verify"], ["merge"], ["log"], ["show"])
    },
    unborn,
)


def with_head(place, text):
    before = (place.path / ".git/HEAD").read_text()
    (place.path / ".git/HEAD").write_text(text)
    place.undo.append(lambda: (place.path / ".git/HEAD").write_text(before))


@case(2, "not-a-repository")
def head_points_at_garbage(place):
    with_head(place, "garbage\n")
    place.args = ["verify"]


@case(3, "object-missing")
def head_is_a_commit_that_is_missing(place):
    with_head(place, "1" * 40 + "\n")
    place.args = ["verify"]


@case(2, "unknown-commit")
def head_is_a_blob(place):
    with_head(place, place.git("rev-parse", f"HEAD:{CONFIG}") + "\n")
    place.args = ["plan"]


def loose(place, rev: str) -> Path:
    oid = place.git("rev-parse", rev)
    return place.path / ".git/objects" / oid[:2] / oid[2:]


def spoilt_object(place, content: bytes | None, rev: str):
    path = loose(place, rev)
    before = path.read_bytes()
    path.chmod(0o644)
    path.unlink() if content is None else path.write_bytes(content)
    place.undo.append(lambda: path.write_bytes(before))
    place.args = ["verify"]


OBJECTS = {"config": f"HEAD:{CONFIG}", "tree": "HEAD^{tree}", "records-tree": f"{RECORDS}^{{tree}}"}
entries(
    3, "object-missing", {f"missing-{k}": v for k, v in OBJECTS.items()}, lambda p, r: spoilt_object(p, None, r)
)
entries(
    3,
    "object-corrupt",
    {f"corrupt-{k}": v for k, v in OBJECTS.items()},
    lambda p, r: spoilt_object(p, b"not zlib at all", r),
)


@case(3, "object-missing")
def a_pack_that_was_cut_short(place):
    place.git("gc", "-q")
    (pack,) = (place.path / ".git/objects/pack").glob("*.pack")
    before = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(before[: len(before) // 8])
    place.undo.append(lambda: pack.write_bytes(before))
    place.args = ["verify"]


@case(2, "repository-unsupported")
def a_broken_git_config(place):
    path = place.path / ".git/config"
    before = path.read_text()
    path.write_text(before + "[broken\n")
    place.undo.append(lambda: path.write_text(before))
    place.args = ["plan"]


@case(2, "repository-unsupported")
def a_repository_format_of_the_future(place):
    place.git("config", "core.repositoryFormatVersion", "99")
    path = place.path / ".git/config"
    text = path.read_text()
    place.undo.append(lambda: path.write_text(text.replace("= 99", "= 0")))
    place.args = ["plan"]


@case(2, "repository-unsupported")
def a_shallow_file_of_garbage(place):
    place.write(".git/shallow", b"\xff\x00 garbage\n")
    place.undo.append((place.path / ".git/shallow").unlink)
    place.args = ["plan"]


def spoilt_index(place, content: Callable[[bytes], bytes] | None):
    """Spoil git's index and record; None: a folder stands in its place."""
    index = place.path / ".git/index"
    before = index.read_bytes()
    index.unlink()
    if content is None:
        index.mkdir()
    else:
        index.write_bytes(content(before))
    place.args = RECORD


entries(
    3,
    "git-failed",
    {
        "an-index-of-garbage": lambda before: bytes(range(256)),
        "an-empty-index": lambda before: b"",
        "an-index-of-the-future": lambda before: before[:4] + b"\0\0\0\x09" + before[8:],
        "an-index-that-is-a-folder": None,
    },
    spoilt_index,
)


@case(1, "dirty", finding=True)
def the_index_is_gone(place):
    place.commit("src/alpha.py", "another = 1\n")
    (place.path / ".git/index").unlink()
    place.shell = "{} record --shard alpha && {} verify --json"


@case(0)
def the_index_is_locked_by_another_git(place):
    place.write(".git/index.lock", "")
    place.undo.append((place.path / ".git/index.lock").unlink)
    place.args = RECORD


@case(0)
def the_ledger_is_locked_and_stays_so(place):
    place.write(f".git/{RECORDS}.lock", "")
    place.undo.append((place.path / f".git/{RECORDS}.lock").unlink)
    place.args = RECORD


@case(3, "ref-conflict")
def s43_refs_stand_where_the_ledger_and_its_inbox_must_be(place):
    place.git("update-ref", "refs/gitledger", "HEAD")
    before = place.git("rev-parse", RECORDS)
    place.undo.append(lambda: place.git("update-ref", RECORDS, before))
    place.undo.append(lambda: place.git("update-ref", "-d", "refs/notes/gitledger"))
    place.git("update-ref", "-d", RECORDS)
    place.git("update-ref", "-d", BODIES)
    place.git("update-ref", "refs/notes/gitledger", "HEAD")
    place.args = RECORD


@case(3, "ref-unreadable")
def the_ledgers_ref_is_garbage(place):
    path = place.path / ".git" / RECORDS
    before = path.read_text()
    path.write_text("garbage\n")
    place.undo.append(lambda: path.write_text(before))
    place.args = ["verify"]


@case(3, "object-missing")
def the_ledgers_ref_points_at_nothing(place):
    path = place.path / ".git" / RECORDS
    before = path.read_text()
    path.write_text("1" * 40 + "\n")
    place.undo.append(lambda: path.write_text(before))
    place.args = ["verify"]


def mount(place, *args: str, on: Path) -> None:
    """Mount something, or skip loudly where this machine does not let us."""
    done = subprocess.run(["mount", *args, str(on)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"can't mount here: {done.stderr.strip()}")
    place.undo.append(lambda: subprocess.run(["umount", "-l", str(on)], check=True))


def read_only(place):
    mount(place, "--bind", str(place.path), on=place.path)
    mount(place, "-o", "remount,ro,bind", on=place.path)
    place.undo.pop()


@case(3, "store-unwritable")
def a_read_only_repository_is_not_recorded_in(place):
    read_only(place)
    place.args = RECORD


@case(3, "store-unwritable")
def a_read_only_repository_is_not_merged_in(place):
    place.args = RECORD  # what was merged already needs no writing
    assert place.run().returncode == 0
    read_only(place)
    place.args = ["merge"]


@case(0)
def a_read_only_repository_is_verified(place):
    read_only(place)
    place.args = ["verify"]


@case(3, "file-unwritable")
def a_read_only_repository_is_not_set_up(place):
    place.git("rm", "-rq", ".gitledger")
    place.git("commit", "-qm", "without a configuration")
    read_only(place)
    place.args = ["init"]


@case(3, "store-unwritable")
def a_full_disk(place):
    full = place.path.parent / "small"
    full.mkdir()
    mount(place, "-t", "tmpfs", "-o", "size=4m", "tmpfs", on=full)
    shutil.copytree(place.path, full / "repo", symlinks=True)
    file = os.open(full / "filler", os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while True:
            os.write(file, bytes(4096))
    os.close(file)
    original = place.path
    place.path = full / "repo"
    place.undo.append(lambda: setattr(place, "path", original))
    place.args = RECORD


@case(2, "no-room")
def a_full_disk_of_temporary_files(place):
    """git is asked with a copy of the index where a flag may hide an edit."""
    full = place.path.parent / "small"
    full.mkdir()
    mount(place, "-t", "tmpfs", "-o", "size=8k", "tmpfs", on=full)
    names = "".join(f"100644 {'1' * 40} 0\tlib/{number:04}.txt\n" for number in range(200))
    place.git("update-index", "--add", "--index-info", input=names.encode())
    place.git("update-index", "--assume-unchanged", "src/alpha.py")
    place.env["TMPDIR"] = str(full)
    place.undo.append(lambda: place.env.pop("TMPDIR"))
    place.args = ["plan"]


# --- tools and environment --------------------------------------------------------------------------------------


def tool(place, name: str, script: str) -> None:
    folder = place.path.parent / "tools"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    before = place.env["PATH"]
    place.env["PATH"] = f"{folder}{os.pathsep}{before}"
    place.undo.append(lambda: place.env.update(PATH=before))


@case(2, "git-missing")
def no_git_on_path(place):
    before = place.env["PATH"]
    (place.path.parent / "empty").mkdir()
    place.env["PATH"] = str(place.path.parent / "empty")
    place.undo.append(lambda: place.env.update(PATH=before))
    place.args = ["plan"]


@case(2, "repository-unsupported")
def an_old_git_that_lacks_newer_options(place):
    git = shutil.which("git")
    tool(
        place,
        "git",
        'case " $* " in *" --version "*) echo "git version 2.17.1"; exit 0;; '
        '*--show-object-format*|*--path-format*|*--end-of-options*) echo "fatal: unknown option" >&2; exit 129;; esac\n'
        f'exec {git} "$@"',
    )
    place.args = ["plan"]


@case(2, "repository-unsupported")
def a_git_that_says_nothing_and_fails(place):
    tool(place, "git", "exit 1")
    place.args = ["plan"]


@case(2, "repository-unsupported")
def a_git_that_talks_nonsense(place):
    tool(place, "git", "echo nonsense; exit 0")
    place.args = ["plan"]


@case(2, "git-missing")
def a_git_that_can_not_be_executed(place):
    (place.path.parent / "tools").mkdir()
    (place.path.parent / "tools/git").write_text("")
    before = place.env["PATH"]
    place.env["PATH"] = str(place.path.parent / "tools")
    place.undo.append(lambda: place.env.update(PATH=before))
    place.args = ["plan"]


@case(2, "no-identity")
def nobody_knows_who_we_are(place):
    for name in [name for name in place.env if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))]:
        del place.env[name]
    place.args = RECORD


@case(0)
def no_home(place):
    del place.env["HOME"], place.env["GIT_CONFIG_GLOBAL"]
    place.args = RECORD


@case(0)
def a_home_that_is_not_there(place):
    place.env["HOME"] = "/nonexistent"
    place.args = RECORD


@case(2, "not-a-repository")
def a_git_dir_variable_that_points_nowhere(place):
    place.env["GIT_DIR"] = "/nonexistent"
    place.undo.append(lambda: place.env.pop("GIT_DIR"))
    place.args = ["verify"]


LOCALES = {
    "locale-c": {"LC_ALL": "C"},
    "locale-unknown": {"LC_ALL": "tlh_QO.KLINGON"},
    "locale-ascii-only": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "output-is-latin-1": {"PYTHONIOENCODING": "latin-1:strict"},
}
for _name in ("plan", "verify", "log", "help"):
    entries(
        0,
        None,
        {f"{_name}-{key}": value for key, value in LOCALES.items()},
        lambda p, v, _name=_name: (p.env.update(v), setattr(p, "args", [_name])),
    )


# --- the three streams ------------------------------------------------------------------------------------------


def shell(place, line):
    place.shell = line


entries(
    0,
    None,
    {
        "stdin-closed": "{} record --shard alpha <&-",
        "stderr-closed": "{} record --shard alpha 2>&-",
        "all-closed": "{} record --shard alpha <&- >&- 2>&-",
        "stdout-closed-record": "{} record --shard alpha >&-",
        "a-reader-that-goes-away": "{} explain --all | true; test ${PIPESTATUS[0]} -eq 141",
        "errors-to-nobody": "{} plan nowhere 2>&-; test $? -eq 2",
        "errors-to-a-full-disk": "{} plan nowhere 2>/dev/full; test $? -eq 2",
        "messages-to-a-full-disk": "{} record --shard alpha 2>/dev/full",
        "a-reader-of-the-command-that-goes-away": "{} record --shard x --paths src -- seq 300000 | head -1 >/dev/null; "
        "test ${PIPESTATUS[0]} -eq 0",
    },
    shell,
)
entries(
    2,
    "output-unwritable",
    {
        "stdout-closed-plan": "{} plan >&-",
        "stdout-closed-json": "{} verify --json >&-",
        "stdout-full": "{} verify >/dev/full",
        "stdout-full-help": "{} help >/dev/full",
    },
    shell,
)


# --- words on the command line ----------------------------------------------------------------------------------


def args(place, words):
    place.args = words


entries(
    2,
    "usage",
    {
        "no-such-command": ["verfy"],
        "no-such-option": ["verify", "--frobnicate"],
        "a-word-too-many": ["plan", "HEAD", "HEAD"],
        "record-without-a-shard": ["record"],
        "no-such-mode": ["record", "--shard", "alpha", "--mode", "cloud"],
        "no-such-hook": ["hook", "post-coffee"],
        "a-limit-of-none": ["log", "-n", "0"],
        "a-limit-that-is-no-number": ["log", "-n", "many"],
        "an-option-without-its-value": ["verify", "--at"],
        "a-command-of-bytes": [b"\xff\xfe"],
    },
    args,
)


@case(2, "usage")
def a_mode_in_the_environment_that_is_none(place):
    place.env["GITLEDGER_MODE"] = "cloud"
    place.args = RECORD


entries(
    2,
    "unknown-commit",
    {
        "no-such-commit": ["verify", "nowhere"],
        "an-empty-commit": ["verify", ""],
        "a-tree-for-a-commit": ["plan", "HEAD^{tree}"],
        "an-option-for-a-commit": ["plan", "--", "--all"],
        "an-option-for-a-range": ["log", "--", "--all"],
        "a-commit-with-newlines": ["show", "HEAD\nHEAD"],
        "a-commit-of-bytes": ["show", b"\xff\xfe"],
        "a-commit-of-a-hundred-thousand-letters": ["verify", "a" * 100_000],
        "a-commit-that-drives-a-terminal": ["verify", "\x1b[2J\u202e"],
        "a-range-of-nothing": ["log", "nowhere..HEAD"],
        "no-such-policy-ref": ["verify", "--policy-from", "origin/main"],
    },
    args,
)
entries(2, "unknown-record", {"no-such-record": ["show", "0123456789ab"]}, args)
entries(
    2,
    "bad-time",
    {
        f"time-{i}": ["verify", "--at", text]
        for i, text in enumerate(["yesterday", "2026-13-01T00:00:00Z", "2026-01-01", "", "9" * 5000])
    },
    args,
)
entries(
    2,
    "bad-duration",
    {
        f"duration-{i}": [*RECORD, "--timeout", text]
        for i, text in enumerate(["soon", "-5s", "0s", "5", "nan", "1h1h"])
    },
    args,
)
entries(
    2,
    "bad-shard-name",
    {
        "a-shard-with-blanks": ["record", "--shard", "al pha"],
        "a-shard-without-letters": ["record", "--shard", ""],
        "a-shard-of-bytes": ["record", "--shard", b"\xff"],
        "a-shard-that-climbs": ["record", "--shard", "../alpha"],
        "a-shard-of-a-hundred-thousand-letters": ["record", "--shard", "a" * 100_000],
    },
    args,
)
entries(
    2,
    "unknown-shard",
    {"no-such-shard": ["record", "--shard", "alfa"], "no-such-variant": ["record", "--shard", "alpha@a100"]},
    args,
)
entries(2, "shard-declared", {"paths-for-a-declared-shard": [*RECORD, "--paths", "src"]}, args)
entries(2, "command-not-found", {"no-such-program": [*RECORD, "--", "nowhere-to-be-found"]}, args)
entries(2, "command-not-found", {"a-program-of-bytes": [*RECORD, "--", b"\xff\xfe"]}, args)
entries(2, "command-not-executable", {"a-program-that-is-a-folder": [*RECORD, "--", "/"]}, args)
entries(
    2, "no-command", {"an-undeclared-shard-without-a-command": ["record", "--shard", "x", "--paths", "src"]}, args
)
entries(2, "no-remote", {"no-remote-at-all": ["sync"], "no-such-remote": ["sync", "nowhere"]}, args)
entries(2, "unknown-code", {"no-such-code": ["explain", "nonsense"]}, args)
entries(2, "unknown-topic", {"no-such-page": ["help", "nonsense"]}, args)
entries(
    2,
    "report-missing",
    {
        f"a-report-that-is-not-there-{kind}": ["record", "--shard", "x", "--paths", "src", f"--{kind}", "none"]
        for kind in ("junit", "reportlog", "ctrf")
    }
    | {"a-report-of-a-declared-shard-that-is-not-there": [*RECORD, "--junit", "none.xml"]},
    args,
)


def scoped(place, patterns):
    place.args = [
        "record",
        "--shard",
        "x",
        *(word for item in patterns for word in ("--paths", item)),
        "--",
        "true",
    ]


entries(2, "path-outside", {"a-path-that-climbs": ["../x"], "an-absolute-path": ["/etc"]}, scoped)
entries(2, "pattern-unmatched", {"a-path-that-is-not-there": ["nowhere"], "a-path-of-bytes": [b"\xff"]}, scoped)
entries(2, "pattern-negated", {"a-negated-path": ["!src"]}, scoped)


@case(2, "scope-empty")
def an_empty_scope(place):
    place.args = ["record", "--shard", "x", "--paths", "src", "--exclude-paths", "src", "--", "true"]


@case(2, "symlinked-component")
def a_path_through_a_symlink(place):
    (place.path / "link").symlink_to("src")
    place.git("add", "link")
    place.git("commit", "-qm", "link")
    place.args = ["record", "--shard", "x", "--paths", "link/alpha.py", "--", "true"]


def with_report(place, content):
    if callable(content):
        content(place.path / "report.xml")
    else:
        place.write("report.xml", content)
    place.args = ["record", "--shard", "x", "--paths", "src", "--junit", "report.xml", "--json"]


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9)
)
entries(
    1,
    "report-malformed",
    {
        "a-report-that-is-empty": b"",
        "a-report-of-binary": bytes(range(256)),
        "a-report-that-was-cut-short": '<testsuite><testcase name="x"',
        "a-report-that-laughs-a-billion-times": LAUGHS + "]><testsuite>&j;</testsuite>",
        "a-report-that-reads-a-file": '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><testsuite>&f;</testsuite>',
        "a-report-that-is-something-else": "<html/>",
    },
    with_report,
    finding=True,
)
entries(
    2,
    "report-missing",
    {"a-report-that-is-a-folder": Path.mkdir, "a-report-that-is-a-pipe": os.mkfifo},
    with_report,
)


# --- the configuration ------------------------------------------------------------------------------------------


def configured(place, text):
    place.commit(CONFIG, text if isinstance(text, bytes) else HEAD + text)
    place.args = ["verify"]


entries(
    2,
    "config-syntax",
    {
        "config-empty": b"",
        "config-of-binary": bytes(range(256)) * 8,
        "config-not-utf-8": HEAD.encode() + b"notes: {message: \xff}\n",
        "config-with-nul": HEAD.encode() + b'notes: {message: "a\\0b"}\n',
        "config-with-aliases": "shards: {a: &x {command: pytest}, b: *x}\n",
        "config-that-laughs-a-billion-times": "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n",
        "config-with-a-tag": "shards: !!python/object/apply:os.system [id]\n",
        "config-with-duplicate-keys": "policy: {}\npolicy: {}\n",
        "config-with-tabs": "shards:\n\talpha: {command: pytest}\n",
        "config-cut-short": "shards: {alpha: {command: pytest",
        "config-with-two-documents": "---\nversion: 1\n",
        "config-with-a-number-for-a-key": "shards: {1: {command: pytest}}\n",
        "config-nested-without-end": "shards: " + "[" * 5000 + "\n",
        "config-with-a-number-of-a-thousand-digits": "policy: {max_age_days: " + "9" * 1000 + "}\n",
        "config-with-conflict-marks": "<<<<<<< HEAD\nshards: {}\n=======\n>>>>>>> other\n",
    },
    configured,
)
entries(2, "config-too-large", {"config-of-two-megabytes": "# " + "x" * (2 << 20) + "\n"}, configured)
entries(
    2,
    "config-value",
    {
        "config-that-is-a-list": b"- version: 1\n",
        "config-without-a-repository": b"version: 1\n",
        "shards-that-are-a-list": "shards: [alpha]\n",
        "a-shard-that-is-a-word": "shards: {alpha: pytest}\n",
        "a-yes-that-is-text": "policy: {allow_dirty: yes}\n",
        "an-age-below-zero": "policy: {max_age_days: -1}\n",
        "an-age-that-is-text": 'policy: {max_age_days: "30"}\n',
        "a-mode-that-is-none": "policy: {require_mode: cloud}\n",
        "a-fingerprint-that-is-none": "policy: {allowed_key_fingerprints: [abc]}\n",
        "a-timeout-that-is-none": "shards: {alpha: {command: pytest, timeout: soon}}\n",
        "a-memory-of-12G": "shards: {alpha: {command: pytest, memory: 12G}}\n",
        "a-command-that-never-closes-its-quote": 'shards: {alpha: {command: "pytest \'x"}}\n',
        "a-command-of-numbers": "shards: {alpha: {command: [1, 2]}}\n",
        "a-shard-called-like-an-option": "shards: {-x: {command: pytest}}\n",
        "a-shard-twice-in-its-variants": "shards: {alpha: {command: pytest, variants: [a, a]}}\n",
        "a-split-of-none": "shards: {alpha: {command: pytest, split: 0}}\n",
        "a-threshold-of-zero": "coverage: {fail_under: 0}\n",
        "a-report-outside": "shards: {alpha: {command: make, results: {junit: ../x.xml}}}\n",
        "a-forge-over-http": 'forges: {x: "http://example.org/{user}.keys"}\n',
        "a-message-with-another-placeholder": 'notes: {message: "{m}"}\n',
    },
    configured,
)
entries(
    2,
    "config-version",
    {"config-of-the-future": b"version: 2\n", "config-without-a-version": b"repository: demo\n"},
    configured,
)
entries(
    2,
    "unknown-key",
    {"a-misspelt-policy": "policy: {alow_carried: true}\n", "a-misspelt-shard": "shards: {a: {comand: pytest}}\n"},
    configured,
)
entries(2, "reserved-name", {"a-shard-called-like-a-part": "shards: {a-1-of-3: {command: pytest}}\n"}, configured)
entries(2, "results-unclear", {"a-command-that-is-not-pytest": "shards: {a: {command: make}}\n"}, configured)
entries(
    2,
    "split-unsupported",
    {"a-split-of-lint": "shards: {a: {command: x, results: exit-status, split: 2}}\n"},
    configured,
)
entries(
    2,
    "no-signers",
    {"nobody-may-sign": "policy: {allowed_signers: []}\nshards: {a: {command: pytest}}\n"},
    configured,
)
entries(
    2,
    "file-missing",
    {"a-list-of-skips-that-is-not-there": "shards: {a: {command: pytest}}\npolicy: {expected_skips: none.txt}\n"},
    configured,
)
entries(
    1,
    "no-shards",
    {"no-shards-at-all": "shards: {}\n"},
    lambda p, t: (configured(p, t), p.args.append("--json")),
    finding=True,
)


@case(2, "no-config")
def no_configuration(place):
    place.git("rm", "-rq", ".gitledger")
    place.git("commit", "-qm", "none")
    place.args = ["verify"]


@case(2, "no-config")
def a_configuration_that_was_never_committed(place):
    place.git("rm", "-rq", "--cached", ".gitledger")
    place.git("commit", "-qm", "none")
    place.args = RECORD


@case(2, "file-malformed")
def a_configuration_that_is_a_symlink(place):
    (place.path / CONFIG).unlink()
    (place.path / CONFIG).symlink_to("/etc/passwd")
    place.git("commit", "-qam", "link")
    place.args = ["verify"]


@case(2, "file-malformed")
def a_configuration_that_is_a_folder(place):
    (place.path / CONFIG).unlink()
    place.commit(f"{CONFIG}/file", "")
    place.args = ["verify"]


@case(2, "file-malformed")
def a_list_of_tests_that_is_not_text(place):
    place.commit("skips.txt", b"\xff\xfe\n")
    configured(place, "shards: {a: {command: pytest}}\npolicy: {expected_skips: skips.txt}\n")


@case(2, "no-config")
def a_policy_ref_without_configuration(place):
    tree = place.git("mktree", input=b"")
    place.git("update-ref", "refs/heads/policy", place.git("commit-tree", tree, "-m", "empty"))
    place.args = ["verify", "--policy-from", "policy"]


# --- keys and signers -------------------------------------------------------------------------------------------


def signers(place, text):
    place.commit(SIGNERS, text)
    place.args = ["verify"]


entries(
    2,
    "bad-allowed-signers",
    {
        "signers-of-binary": bytes(range(256)),
        "signers-with-nul": b"alice\0 ssh-ed25519 AAAA\n",
        "signers-without-a-key": "alice@example.org\n",
        "signers-with-a-broken-key": "alice@example.org ssh-ed25519 AAAAnonsense\n",
        "signers-with-an-unknown-option": "alice@example.org frobnicate ssh-ed25519 AAAA\n",
        "signers-with-a-line-of-a-megabyte": "alice@example.org " + "x" * (1 << 20) + "\n",
        "signers-with-local-time": 'alice valid-after="20260101" ssh-ed25519 '
        "AAAAC3NzaC1lZDI1NTE5AAAAIHpJFAHe8ifCjFci6se3pS4Lv9SzMPPOUh2XA+mvLCK8\n",
    },
    signers,
)
entries(2, "no-signers", {"signers-empty": "", "signers-of-comments": "# nobody\n"}, signers)


@case(2, "bad-revoked-keys")
def revoked_keys_of_garbage(place):
    place.commit(REVOKED, "garbage\n")
    place.args = ["verify"]


@case(2, "bad-revoked-keys")
def revoked_keys_of_binary(place):
    place.commit(REVOKED, b"SSHKRL\n\0" + bytes(range(256)))
    place.args = ["verify"]


def key(place, name: str, content: bytes | None, mode: int = 0o600) -> None:
    path = place.keys / name
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    place.env["GITLEDGER_SIGNING_KEY"] = str(path)
    place.args = RECORD


@case(2, "no-key")
def no_key_at_all(place):
    del place.env["GITLEDGER_SIGNING_KEY"]
    place.args = RECORD


@case(2, "key-unreadable")
def a_key_that_is_not_there(place):
    key(place, "none", None)


@case(2, "key-unreadable")
def a_key_of_garbage(place):
    key(place, "garbage", b"garbage\n")


@case(2, "key-unreadable")
def a_key_that_is_a_folder(place):
    (place.keys / "folder").mkdir()
    key(place, "folder", None)


@case(2, "key-unreadable")
def a_key_that_was_cut_short(place):
    key(place, "short", (place.keys / "alice").read_bytes()[:150])


@case(2, "key-permissions")
def a_key_that_others_can_read(place):
    key(place, "open", (place.keys / "alice").read_bytes(), 0o644)


@case(2, "passphrase-needed")
def a_locked_key_and_no_terminal(place):
    key(place, "locked", None)


@case(2, "key-refused")
def a_key_that_is_too_short(place):
    command = ["ssh-keygen", "-q", "-t", "rsa", "-b", "1024", "-N", "", "-f", str(place.keys / "short")]
    subprocess.run(command, check=True)
    key(place, "short", None)


@case(3, "not-recorded")
def a_key_in_an_agent_that_is_not_there(place):
    del place.env["GITLEDGER_SIGNING_KEY"]
    place.git("config", "gpg.format", "ssh")
    place.git("config", "user.signingKey", "key::" + (place.keys / "alice.pub").read_text().strip())
    place.args = RECORD


# --- hooks, remotes ---------------------------------------------------------------------------------------------


def hook(place, text):
    place.args, place.stdin = ["hook", "pre-push", "origin", "url"], text


entries(
    2,
    "bad-hook-input",
    {
        "hook-input-of-words": b"garbage\n",
        "hook-input-of-binary": bytes(range(256)),
        "hook-input-without-end": b"x" * 1_000_000,
    },
    hook,
)
entries(0, None, {"hook-input-of-nothing": b""}, hook)


@case(2, "bad-hook-mode")
def a_hook_mode_that_is_none(place):
    place.git("config", "gitledger.prePush", "maybe")
    hook(place, f"refs/heads/main {place.git('rev-parse', 'HEAD')} refs/heads/main {'0' * 40}\n".encode())


@case(3, "publish-failed")
def a_remote_that_is_not_there(place):
    place.git("remote", "add", "origin", "../nowhere.git")
    place.args = ["sync"]


@case(3, "fetch-failed")
def a_remote_that_is_no_repository(place):
    place.git("remote", "add", "origin", "../keys")
    place.args = ["sync", "--fetch-only"]


# --- records of others ------------------------------------------------------------------------------------------


def note(place, content: bytes) -> None:
    """Add lines to HEAD's note, with nothing but git."""
    before = place.git("notes", f"--ref={RECORDS}", "show", "HEAD").encode()
    blob = place.git("hash-object", "-w", "--stdin", input=before + b"\n" + content)
    place.git("notes", f"--ref={RECORDS}", "add", "-f", "-C", blob, "HEAD")
    place.args = ["verify", "--json"]


NOTES = {
    "a-line-of-garbage": b"garbage\n",
    "garbage-by-the-thousand": b"".join(b"garbage %d\n" % i for i in range(5_000)),
    "a-line-of-binary": bytes(range(1, 10)) + bytes(range(11, 256)) + b"\n",
    "half-an-envelope": b'{"payload":"eyJfdHlwZSI6',
    "an-envelope-of-nothing": b'{"payload":"","payloadType":"application/vnd.in-toto+json","signatures":[]}\n',
    "json-without-end": b"[" * 100_000 + b"\n",
    "a-line-of-half-a-megabyte": b"x" * (1 << 19) + b"\n",
}
entries(0, "malformed", NOTES, note, finding=True)


@case(0, "bad-signature", finding=True)
def a_record_with_another_signature(place):
    line = place.git("notes", f"--ref={RECORDS}", "show", "HEAD").splitlines()[0]
    envelope = json.loads(line)
    payload = base64.b64decode(envelope["payload"]).replace(b'"demo"', b'"demi"')
    envelope["payload"] = base64.b64encode(payload).decode()
    note(place, json.dumps(envelope, separators=(",", ":")).encode())


@case(1, "undecodable", finding=True)
def a_record_of_the_future_by_a_trusted_key(place):
    line = signed(place, lambda text: text.replace('"record_version":1', '"record_version":99'))
    note(place, line)


@case(0, "unknown-signer", finding=True)
def a_record_of_a_stranger(place):
    note(place, signed(place, lambda text: text, key="locked"))


def signed(place, change: Callable[[str], str], key: str = "alice") -> bytes:
    """Return the first record of HEAD, changed and signed anew by ssh-keygen alone."""
    line = place.git("notes", f"--ref={RECORDS}", "show", "HEAD").splitlines()[0]
    text = base64.b64decode(json.loads(line)["payload"]).decode()
    if key == "locked":
        command = ["ssh-keygen", "-q", "-p", "-P", "secret", "-N", "", "-f", str(place.keys / key)]
        subprocess.run(command, check=True, capture_output=True)
    listed = subprocess.run(
        ["ssh-keygen", "-lf", str(place.keys / f"{key}.pub")], check=True, capture_output=True, text=True
    ).stdout.split()[1]
    text = re.sub(r'"key_fingerprint":"[^"]+"', f'"key_fingerprint":"{listed}"', change(text))
    payload = text.encode()
    signed_bytes = b"DSSEv1 28 application/vnd.in-toto+json %d " % len(payload) + payload
    done = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-q", "-n", "gitledger", "-f", str(place.keys / key)],
        input=signed_bytes,
        check=True,
        capture_output=True,
    )
    sig = "".join(done.stdout.decode().splitlines()[1:-1])
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": "application/vnd.in-toto+json",
        "signatures": [{"keyid": listed, "sig": sig}],
    }
    return json.dumps(envelope, separators=(",", ":")).encode() + b"\n"


@case(1, "malformed", finding=True)
def a_body_that_is_missing(place):
    place.git("update-ref", "-d", BODIES)
    place.args = ["verify", "--json"]


@case(0, None)
def a_note_on_a_blob(place):
    place.git("notes", f"--ref={RECORDS}", "add", "-m", "garbage", f"HEAD:{CONFIG}")
    place.args = ["verify"]


@case(0, None)
def a_file_in_the_notes_tree_that_is_no_note(place):
    blob = place.git("hash-object", "-w", "--stdin", input=b"README\n")
    listed = place.git("ls-tree", RECORDS) + f"\n100644 blob {blob}\tREADME\n120000 blob {blob}\tab\n"
    tree = place.git("mktree", input=listed.encode())
    commit = place.git("commit-tree", tree, "-p", RECORDS, "-m", "clutter")
    place.git("update-ref", RECORDS, commit)
    place.args = ["verify"]


@case(0, None)
def an_empty_notes_tree(place):
    tree = place.git("mktree", input=b"")
    place.git("update-ref", "refs/notes/gitledger/bodies-of-mine", place.git("commit-tree", tree, "-m", "empty"))
    place.args = ["verify"]


# --- odd files --------------------------------------------------------------------------------------------------


def odd_file(place, name: bytes):
    (place.path / "src").joinpath("x").touch()
    os.rename(os.fsencode(place.path / "src/x"), os.path.join(os.fsencode(place.path / "src"), name))
    place.args = ["plan"]


entries(
    0,
    None,
    {
        "a-file-with-a-newline": b"a\nb",
        "a-file-that-is-not-utf-8": b"\xff\xfe",
        "a-file-that-drives-a-terminal": b"\x1b[2J",
        "a-file-that-runs-right-to-left": "\u202egnp.exe".encode(),
        "a-file-called-like-an-option": b"-rf",
    },
    odd_file,
)


# --- and what must come of it -----------------------------------------------------------------------------------

ERROR = re.compile(
    r"\Aerror: (?P<text>[^\n]+) \[(?P<code>[a-z0-9-]+)\](?:; (?:try: |(?=did you mean |known: ))(?P<hint>[^\n]+))?\n\Z"
)


@pytest.fixture(scope="module")
def held_before(template):
    """The records that every place starts with."""
    lines = subprocess.run(
        ["git", "grep", "-ah", "-e", "", RECORDS, "--"],
        cwd=template / "repo",
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert len(lines) == 3
    return set(lines)


@pytest.mark.parametrize("bad", TABLE, ids=[item.name for item in TABLE])
def test_bad_input(bad, place, held_before):
    bad.arrange(place)
    done = place.run()
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    assert "Traceback" not in out + err
    assert done.returncode == bad.status, (out, err)
    if bad.finding:
        document = json.loads(out)
        found = {item["code"] for item in document.get("findings", [])} | set(document.get("reasons", []))
        found |= {item["reason"].partition(":")[0] for item in document.get("ignored", [])}
        found |= {shard["reason"] for shard in document.get("shards", [])}
        assert bad.code in found, document
    elif bad.code is not None:
        last = err.splitlines(keepends=True)
        said = [line for line in last if line.startswith("error: ")]
        assert len(said) == 1, err
        match = ERROR.match(said[0])
        assert match, err
        assert match["code"] == bad.code, err
        assert len(said[0]) < 2_000, len(said[0])
        if bad.status == 2:
            assert last == said, "an error before anything ran is one line"
    for text in (out, err):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", text), ascii(text)
    while place.undo:
        place.undo.pop()()
    assert held_before <= place.lines(), "a record is gone"


def test_the_table_is_long_and_names_each_case_once():
    names = [item.name for item in TABLE]
    assert len(set(names)) == len(names) >= 150
    assert stat.S_ISREG((ROOM / "conftest.py").stat().st_mode)
