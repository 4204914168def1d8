"""What `log` and `show` paint green is what policy would count by itself; marks and words say it without colour."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger.report.listing import RecordRow, cut_remarks, record_lines

COMMAND = str(Path(sys.executable).parent / "git-ledger")
GREEN = "\x1b[32m"
CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src], command: [sh, src/check.sh], results: exit-status}
  late: {paths: [src], command: pytest src}
policy: {max_age_days: 30}
"""
REPORT = """\
<testsuites><testsuite name="p" tests="1">
<testcase classname="src.test_it" name="test_it" time="0.1"/>
</testsuite></testsuites>
"""


@pytest.fixture
def told(make_project):
    """A commit for each way in which a pass may count or not, and one that failed; its summary names the way."""
    project = make_project(CONFIG, {"src/check.sh": "exit 0\n", "src/test_it.py": "def test_it():\n    pass\n"})
    report = project.path.parent / "report.xml"
    report.write_text(REPORT)
    ways = {
        "clean": (),
        "dirty": (),
        "other-command": ("--", "sh", "src/check.sh", "again"),
        "unknown-signer": ("--key", str(project.key("mallory"))),
        "unsigned": ("--unsigned",),
        "revoked": (),
        "unwitnessed": ("--junit", str(report)),
        "broken": (),
    }
    for way, options in ways.items():
        files = {"src/check.sh": "exit 1\n"} if way == "broken" else {"README": way}
        project.repo.commit(files, way)
        if way == "dirty":
            project.repo.write("README", "edited")
        project.ledger("record", "--shard", "late" if way == "unwitnessed" else "it", *options, expect=None)
        project.repo.git("checkout", "-q", ".")
        if way == "revoked":
            (entry,) = project.ledger("show", "--json").document["records"]
            project.ledger("revoke", entry["record"], "--reason", "the fan was broken")
    return project


def rows_of(project) -> dict[str, str]:
    """Return the row of each commit's receipt, in colour, by the commit's summary."""
    found, way = {}, ""
    for line in project.ledger("log", env={"FORCE_COLOR": "1"}).out.splitlines():
        if re.search(r"  (it|late) ", line):
            found[way] = line
        elif line.startswith("\x1b[33m") and not line.startswith("\x1b[33m  "):
            way = line.rpartition(" ")[2]
    return found


def test_a_record_is_green_where_nothing_bars_it_and_else_says_what_does(told):
    rows = rows_of(told)
    lines = told.ledger("log", "--oneline", env={"FORCE_COLOR": "1"}).out.splitlines()
    one = {line.split("m ")[1].split(" (")[0]: line for line in lines}
    assert (
        list(rows)
        == list(one)
        == [*("broken", "unwitnessed", "revoked", "unsigned", "unknown-signer", "other-command", "dirty", "clean")]
    )
    assert rows.pop("clean").startswith(f"{GREEN}  ✓ ")
    assert f"({GREEN}✓ 1 passed\x1b[0m)" in one.pop("clean")
    assert not any(GREEN in line for line in [*rows.values(), *one.values()])
    assert rows.pop("broken").startswith("\x1b[31m  ✗ ")
    assert "\x1b[31m✗ 1 failed\x1b[0m" in one.pop("broken")
    assert rows.pop("other-command").startswith("\x1b[33m  ◐ ")
    assert "◐ 1 incomplete" in one.pop("other-command")
    assert {way for way, row in rows.items() if f"does not count: {way}" in row and "  ⊘ " in row} == set(rows)
    assert {way for way, line in one.items() if f"⊘ 1 passed but {way}" in line} == {
        "dirty",
        "revoked",
        "unwitnessed",
    }
    assert all("⊘ 1 by no signer" in one[way] for way in ("unsigned", "unknown-signer"))
    shown = told.ledger("show", "HEAD~6", env={"FORCE_COLOR": "1"}).out
    assert rows["dirty"] in shown, "as in `log`"


def test_what_policy_allows_is_green_and_what_it_demands_is_said_and_without_one_nothing_is(told):
    """It is HEAD's policy, for all commits."""
    config = CONFIG.replace("max_age_days: 30", "allow_dirty: true, allow_unwitnessed: true")
    told.repo.commit({".gitledger/config.yaml": config}, "allow")
    rows = rows_of(told)
    assert {way for way, row in rows.items() if row.startswith(GREEN)} == {"clean", "dirty", "unwitnessed"}
    assert "  dirty; alice@example.org" in rows["dirty"], "it is said all the same"
    told.repo.commit({".gitledger/config.yaml": CONFIG.replace("max_age_days: 30", "require_mode: ci")}, "demand")
    rows = rows_of(told)
    assert "does not count: require_mode" in rows["clean"]
    assert not any(row.startswith(GREEN) for row in rows.values())
    told.repo.git("rm", "-q", ".gitledger/config.yaml")
    told.repo.commit({"README": "none"}, "none")
    rows = rows_of(told)
    assert "does not count: no-config" in rows["clean"]
    assert not any(row.startswith(GREEN) for row in rows.values())


# --- windows ---------------------------------------------------------------------------------------------------------

KEY = "SHA256:hKUZpbHue8EPaStT6U5D7+P4K/U6nSGc5B/zUmMVPJM"


def row(name: str, remark: str) -> RecordRow:
    return RecordRow("⊘", "stale", ("0123456789ab", name, "passed", "12/12", "2026-01-31T12:00:00Z", remark))


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("name", ["it", "integration-slow-3-of-8@a100"])
def test_a_row_is_as_wide_as_the_window_at_most_and_keeps_what_bars_it(width, name):
    rows = [row(name, f"does not count: unknown-signer; {KEY} (no signer)"), row("it", "alice@example.org")]
    lines = record_lines(rows, color=False, width=width)
    assert max(map(len, lines)) <= max(width, 64)
    assert lines[0].startswith("  ⊘ 01234567"), "eight digits name a record"
    assert "does not co" in lines[0]
    assert ("T12:00:00Z" in lines[0]) == (width == 200 or (width == 100 and name == "it")), "else the day alone"
    assert cut_remarks(rows, width)[0] == ("" if width == 200 else rows[0].cells[-1])
    assert cut_remarks(rows, width)[1] in ("", "alice@example.org")
    assert record_lines(rows, color=False)[0].endswith(rows[0].cells[-1]), "a pipe gets all of it"


def read_terminal(args: list[str], project, columns: int) -> list[str]:
    """Return the lines that a terminal of so many columns is given."""
    ours, theirs = pty.openpty()
    env = {**project.repo.env, "TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"}
    child = subprocess.Popen(
        [COMMAND, *args], cwd=project.path, env=env, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL
    )
    os.close(theirs)
    found = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            found += chunk
    except OSError:  # the terminal is closed: how Linux says that nobody writes any more
        pass
    os.close(ours)
    assert child.wait(60) == 0
    return found.decode().splitlines()


def test_log_and_show_fit_the_terminal_and_show_tells_the_rest_below(make_project):
    config = CONFIG.replace("  it:", "  integration-of-everything-slow:")
    project = make_project(config, {"src/check.sh": "exit 0\n"})
    project.repo.commit(
        {"README": "x"}, "Say in many words what was changed here, why, and what else might have been done"
    )
    name = "integration-of-everything-slow"
    project.ledger("record", "--shard", name, "--key", str(project.key("mallory")), expect=None)
    for args in (["log"], ["log", "--oneline"]):
        assert max(map(len, read_terminal([*args, "--no-pager"], project, 80))) <= 80
    lines = read_terminal(["show", "--no-pager"], project, 80)
    (at,) = (number for number, line in enumerate(lines) if "  ⊘ " in line)
    assert len(lines[at]) <= 80
    assert re.fullmatch(r"    does not count: unknown-signer; SHA256:\S+ \(no signer\)", lines[at + 1])
    assert name in project.ledger("log").out
    assert re.search(r"T\d\d:\d\d:\d\dZ .*\(no signer\)$", project.ledger("log").out, re.M)
