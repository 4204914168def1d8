"""What is exported of a verdict: never greener than `verify`, and nobody's text does anything."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from importlib.resources import files
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from gitledger.report.html.page import embedded, html_page
from gitledger.report.junit import junit_xml
from gitledger.suites.junit import read_junit
from gitledger.verdict.finding import blocking, note
from gitledger.workflows.export_html import history_document
from gitledger.workflows.export_matrix import _codes
from gitledger.workflows.judge import verify

GREEN = {"passed", "carried"}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory, make_world, ledger_in):
    """A world whose newest commit does not pass, with what each command says of it."""
    world = make_world(
        tmp_path_factory.mktemp("mixed"), shards=12, commits=9, seed=22, touched=5, policy="max_attempts: 1"
    )
    return SimpleNamespace(world=world, run=lambda *args: ledger_in(world, *args))


@pytest.fixture(scope="module")
def said(mixed):
    """What `verify --json` says of the newest commit."""
    return json.loads(mixed.run("verify", "--json").stdout)


@pytest.fixture(scope="module")
def page(mixed):
    """The data of its page."""
    return page_data(mixed.run("export", "html").stdout.decode())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, make_world, ledger_in):
    world = make_world(tmp_path_factory.mktemp("hostile"), shards=6, commits=8, seed=2, hostile=True, lanes=False)
    return SimpleNamespace(world=world, run=lambda *args: ledger_in(world, *args))


def page_data(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def rows_of(document: dict, place: int) -> dict[str, dict]:
    """Return what the page says of each shard at one commit."""
    found = {}
    for shard, cells, distances in zip(document["shards"], document["cells"], document["distances"], strict=True):
        name = shard["name"] + (f"@{shard['variant']}" if shard["variant"] else "")
        if cells[place] >= 0:
            found[name] = {**document["kinds"][cells[place]], "distance": distances[place]}
    return found


def holds_what_verify_says(document: dict, session, policy_from: str | None = None) -> tuple[set[str], int]:
    """Hold each cell of each commit against `verify`, asked of that commit alone.

    Return the states that occur, and how many receipts stand that a finding speaks against.
    """
    seen, barred = set(), 0
    for place, column in enumerate(document["columns"]):
        found = verify(session, column["commit"], policy_from=policy_from)
        said = found.encode()
        assert column["verdict"] == said["verdict"]
        assert column["findings"] == _codes(found.verdict.findings)
        covered = said["coverage"] and [said["coverage"][name] for name in ("covered", "total", "passed")]
        assert column["coverage"] == covered
        shown = rows_of(document, place)
        blocked = {finding["subject"] for finding in said["findings"] if finding["blocks"]}
        for row in said["shards"]:
            name = row["name"] + (f"@{row['variant']}" if row["variant"] else "")
            cell = shown.pop(name)
            record = document["records"][cell["record"]]["id"] if cell["record"] is not None else None
            assert (cell["verdict"], cell["reason"], cell["detail"], cell["distance"], record) == (
                row["verdict"],
                row["reason"],
                row["detail"],
                row["distance"],
                row["record"],
            )
            assert cell["changed"] == row["changed_paths"][: len(cell["changed"])]
            assert [document["records"][run]["id"] for run in cell["attempts"]] == row["attempts"]
            assert (cell["state"] in GREEN) == (row["verdict"] != "stale" and name not in blocked)
            seen.add(cell["state"])
            barred += row["verdict"] != "stale" and name in blocked
        assert not shown
    return seen, barred


def test_every_cell_of_every_commit_says_what_verify_says_of_that_commit(mixed, page):
    assert len(page["columns"]) > 6
    seen, barred = holds_what_verify_says(page, mixed.world.session())
    assert len(seen) > 5, "the world holds few states"
    assert barred, "no receipt that stands has a finding against it"


WORLDS = {
    "green": {"touched": 1, "seed": 7},
    "merges": {"merges": True, "seed": 3},
    "beyond ancestry": {"merges": True, "seed": 4, "more": "carry: {from: same-manifest}\n"},
    "a policy's ref": {"merges": True, "seed": 5, "more": "carry: {from: policy-ref}\n", "policy_from": "main~3"},
    "nothing carried": {"seed": 6, "policy": "max_age_days: 1", "allow_carried": False},
    "strict": {
        "seed": 8,
        "touched": 3,
        "more": "merge: {environment: strict}\n",
        "policy": "require_merged: true",
    },
}


@pytest.mark.parametrize("kind", WORLDS)
def test_what_commits_share_makes_no_cell_another_than_verify_says(kind, tmp_path, make_world):
    """All commits of a report are judged with one memory; of any kind of history each is what it is alone."""
    options = dict(WORLDS[kind])
    policy_from, allow_carried = options.pop("policy_from", None), options.pop("allow_carried", True)
    world = make_world(
        tmp_path, **{"shards": 7, "commits": 11, "lanes": False, "allow_carried": allow_carried, **options}
    )
    session = world.session()
    document = history_document(session, session.repo.head(), limit=50, policy_from=policy_from)
    assert len(document["columns"]) > 6
    seen, _ = holds_what_verify_says(document, session, policy_from)
    assert ("carried" in seen) is allow_carried
    assert len(seen) > 2


def test_the_newest_commits_receipts_are_those_of_log(mixed, page):
    document = page
    (logged, *_) = json.loads(mixed.run("log", "--json", "-n", "1").stdout)
    receipts = {item["record"]: item for item in logged["records"] if item["kind"] == "shard"}
    shown = {item["id"]: item for item in document["records"] if item["commit"] == logged["commit"]}
    assert receipts
    assert set(shown) == set(receipts)
    for record, item in shown.items():
        counts = receipts[record]["counts"]
        assert item["outcome"] == receipts[record]["outcome"]
        assert item["counts"][:2] == [counts["passed"], counts["collected"]]


def test_a_commit_that_cannot_be_judged_is_unknown_and_hides_no_other(mixed, tmp_path):
    world = mixed.world
    broken = tmp_path / "broken"
    world_git = lambda *args: world.git("-C", str(broken), *args)  # noqa: E731
    world.git("clone", "-q", str(world.path), str(broken))
    world_git("fetch", "-q", "origin", "refs/notes/gitledger/*:refs/notes/gitledger/*")
    config = broken / ".gitledger/config.yaml"
    good = config.read_text()
    config.write_text(good.replace("version: 1", "version: 99"))
    world_git("commit", "-qam", "break the configuration")
    middle = world_git("rev-parse", "HEAD").strip()
    world_git("notes", "--ref=gitledger/records", "add", "-m", "no record", middle)
    config.write_text(good)
    world_git("commit", "-qam", "mend it")
    done = mixed.run("-C", str(broken), "export", "html")
    document = page_data(done.stdout.decode())
    column = next(column for column in document["columns"] if column["commit"] == middle)
    assert column["verdict"] == "unknown"
    assert "version" in column["fault"]
    place = document["columns"].index(column)
    assert all(cells[place] == -1 for cells in document["cells"]), "no cell says anything"
    assert document["columns"][0]["verdict"] in ("passed", "failed")


TWICE = """
import json, sys
from datetime import UTC, datetime
from pathlib import Path
from gitledger.workflows.export_draw import draw
from gitledger.workflows.history import look_along
from gitledger.workflows.session import open_session
import os
now = datetime.now(UTC)
session = open_session(Path(), environ=os.environ, home=Path(os.environ["HOME"]), now=lambda: now)
history = lambda: look_along(session, session.repo.head(), limit=100)
one, two = (draw(history(), processes=number).encode() for number in (1, 2))
print(json.dumps([one == two, len(one["columns"])]))
"""


def test_several_processes_draw_what_one_would(tmp_path, make_world):
    """Values come and go there in another order, so whatever is known by its identity must be kept."""
    more = "carry: {from: policy-ref}\n"
    world = make_world(tmp_path, shards=25, commits=70, merges=True, seed=13, lanes=False, more=more)
    command = [sys.executable, "-c", TWICE]
    done = subprocess.run(command, cwd=world.path, env=world.env, capture_output=True, check=True)
    same, columns = json.loads(done.stdout)
    assert same
    assert columns > 40


def test_the_page_names_its_script_and_style_by_their_digests_and_allows_nothing_else():
    text = html_page({"title": "x"})
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)[1]
    for element, directive in (("script", "script-src"), ("style", "style-src")):
        content = re.search(rf"<{element}>(.*?)</{element}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "text", ["</script><script>x", "<!--<script>", "]]>", "\u2028", "&lt;", "@SCRIPT@ @DATA@ @STYLE@"]
)
def test_no_text_ends_the_element_that_holds_it_or_stands_for_a_part_of_the_page(text):
    page = html_page({"title": text})
    assert page_data(page) == {"title": text}
    assert page.count("<script") == 2
    assert not set(embedded({"title": text})) & set("<>&\u2028")


MARKUP = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "DOMParser",
    "setHTML",
    "createContextual",
)


def test_the_script_never_reads_text_as_markup_or_as_code():
    script = (files("gitledger.report.html") / "page.js").read_text("utf-8")
    for way in (*MARKUP, "eval(", "Function("):
        assert way not in script


def test_the_same_ledger_gives_the_same_page_at_the_same_moment(mixed):
    session = mixed.world.session()
    first, second = (html_page(history_document(session, session.repo.head(), limit=5)) for _ in range(2))
    assert first == second


def test_junit_has_a_suite_a_shard_and_our_own_reader_reads_the_same_counts(mixed, said):
    content = mixed.run("export", "junit").stdout
    root = ElementTree.fromstring(content)
    suites = {suite.get("name"): suite for suite in root}
    names = [row["name"] + (f"@{row['variant']}" if row["variant"] else "") for row in said["shards"]]
    assert list(suites)[: len(names)] == names
    report = read_junit(content)
    assert not report.duplicates
    assert not report.strange
    assert len(report.results) == int(root.get("tests"))
    bad = [item for item in report.results if item.outcome.is_bad]
    assert len(bad) == int(root.get("failures")) + int(root.get("errors"))
    skipped = [item for item in report.results if item.outcome.value in ("skipped", "xfailed")]
    assert len(skipped) == int(root.get("skipped"))


def test_junit_is_red_wherever_verify_is(mixed, said):
    assert said["verdict"] == "failed"
    root = ElementTree.fromstring(mixed.run("export", "junit").stdout)
    blocked = {finding["subject"] for finding in said["findings"] if finding["blocks"]}
    red = {suite.get("name") for suite in root if int(suite.get("failures")) + int(suite.get("errors"))}
    assert blocked
    assert blocked - {"coverage"} <= red
    assert ("git ledger verify" in red) == ("coverage" in blocked)


def test_junit_is_red_for_what_is_about_no_shard():
    found = blocking("coverage-under", "8", "coverage", expected="80%", found="79%")
    hint = note("coverage-core", "8", "coverage", expected="one", found="two")
    root = ElementTree.fromstring(junit_xml("c" * 40, [], [found, hint]))
    assert (root.get("tests"), root.get("errors")) == ("1", "1")
    (case,) = root.iter("testcase")
    assert case.get("name") == "coverage-under"
    assert "79%" in case.find("error").get("message")


ALLOWED = {
    "testsuites": ({"testsuite"}, {"name", "time", "tests", "failures", "errors", "disabled"} | {"skipped"}),
    "testsuite": (
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
        {
            "name",
            "tests",
            "failures",
            "errors",
            "time",
            "skipped",
            "timestamp",
            "hostname",
            "id",
            "package",
            "file",
        },
    ),
    "properties": ({"property"}, set()),
    "property": (set(), {"name", "value"}),
    "testcase": (
        {"skipped", "error", "failure", "rerunFailure", "flakyFailure", "system-out", "system-err"},
        {"name", "time", "classname", "group"},
    ),
    "failure": (set(), {"type", "message"}),
    "error": (set(), {"type", "message"}),
    "skipped": (set(), {"type", "message"}),
    "flakyFailure": (set(), {"type", "message"}),
    "rerunFailure": (set(), {"type", "message"}),
}
"""What junit-10.xsd allows in each element, and which attributes it has (`skipped` of the root is ours and pytest's)."""


@pytest.mark.parametrize("which", ["mixed", "hostile"])
def test_junit_keeps_to_the_schema(which, request):
    root = ElementTree.fromstring(request.getfixturevalue(which).run("export", "junit").stdout)
    for node in root.iter():
        children, attributes = ALLOWED[node.tag]
        assert {child.tag for child in node} <= children
        assert set(node.attrib) <= attributes
        assert all(text.isprintable() for text in node.attrib.values())
    cases = list(root.iter("testcase"))
    assert cases
    assert all(case.get("name") for case in cases)


def test_markdown_says_the_verdict_first_and_all_that_blocks(mixed, said):
    text = mixed.run("export", "markdown").stdout.decode()
    assert text.startswith("## ❌ git ledger: failed\n")
    for finding in said["findings"]:
        if finding["blocks"]:
            assert f"- **{finding['code']}** " in text
    assert text.count("\n| ") >= len(said["shards"])
    assert "slowest tests" in text


def test_hostile_texts_are_text_in_every_format(hostile):
    page = hostile.run("export", "html").stdout.decode()
    assert "<img" not in page
    assert page.count("</script>") == 2
    markdown = hostile.run("export", "markdown").stdout.decode()
    assert "<img" not in markdown
    assert "@everyone" not in markdown
    assert "&#64;&#8203;everyone" in markdown, "nobody is mentioned either"
    assert "\u202e" not in markdown
    table = [line for line in markdown.splitlines() if line.startswith("| ") and "everyone" in line]
    assert len({line.count("|") for line in table}) <= 1
    junit = hostile.run("export", "junit").stdout.decode()
    assert "\x1b" not in junit
    ElementTree.fromstring(junit)
