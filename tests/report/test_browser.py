"""The page of a report, opened from disk in a real Chromium that reaches no network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.browser
GREEN = {"passed", "carried"}
ROW = "[...document.querySelectorAll('#shards-table tbody tr')]"


def export(run, world, *args: str) -> Path:
    file = world.folder / "report.html"
    done = run(world, "export", "html", "-o", str(file), *args)
    assert done.returncode == 0, done.stderr.decode()
    return file


@pytest.fixture(scope="module")
def plain(tmp_path_factory, make_world, ledger_in):
    """A world of 30 shards and its page."""
    world = make_world(tmp_path_factory.mktemp("plain"), shards=30, commits=40, seed=3)
    return SimpleNamespace(world=world, file=export(ledger_in, world))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, make_world, ledger_in):
    """A world in which every text that somebody else may choose is an attack."""
    world = make_world(tmp_path_factory.mktemp("hostile"), shards=8, commits=12, seed=2, hostile=True)
    return SimpleNamespace(world=world, file=export(ledger_in, world))


def test_the_page_opens_from_disk_asks_for_nothing_and_complains_of_nothing(plain, new_page):
    page = new_page()
    assert page.open(plain.file) < 5
    asked = [url for url in page.requests() if not url.startswith("data:")]  # the browser's own icons
    assert asked == [f"file://{plain.file}"]
    assert page.complaints() == []
    text = plain.file.read_text("utf-8")
    assert not re.findall(r"""(?:src|href|url\(|@import)\s*=?\s*["']?(?:https?:)?//""", text)


def test_the_policy_of_the_page_lets_no_other_script_run_and_no_request_out(plain, new_page):
    page = new_page()
    page.open(plain.file)
    ran = page.js(
        """(async () => {
          const script = document.createElement("script"); script.textContent = "window.ran = 1"; document.body.append(script);
          const image = document.createElement("div"); image.innerHTML = "<img src=x onerror='window.ran = 2'>"; document.body.append(image);
          const sent = await fetch("data:,x").then(() => "sent", () => "refused");
          await new Promise(done => setTimeout(done, 50));
          return [window.ran ?? 0, sent];
        })()"""
    )
    assert ran == [0, "refused"]


def test_every_cell_of_the_newest_commit_is_what_verify_says(plain, new_page, ledger_in):
    document = json.loads(ledger_in(plain.world, "verify", "--json").stdout)
    page = new_page()
    page.open(plain.file)
    assert page.js("document.getElementById('verdict-word').textContent").lower() == document["verdict"]
    shown = dict(page.js(f"{ROW}.map(row => [row.dataset.shard, row.dataset.state])"))
    blocked = {finding["subject"] for finding in document["findings"] if finding["blocks"]}
    for row in document["shards"]:
        name = row["name"] + (f"@{row['variant']}" if row["variant"] else "")
        stands = row["verdict"] in ("fresh", "carryable") and name not in blocked
        assert (shown.pop(name) in GREEN) == stands, name
    assert not shown
    codes = page.js("[...document.querySelectorAll('.findings .blocks .what code')].map(code => code.textContent)")
    assert codes == [finding["code"] for finding in document["findings"] if finding["blocks"]]


def test_cells_of_older_commits_and_their_verdicts_are_what_verify_says_of_these_commits(
    plain, new_page, ledger_in
):
    page = new_page(width=2600, height=1600)
    page.open(plain.file)
    heads = page.js("[...document.querySelectorAll('#grid .head')].map(head => head.getAttribute('aria-label'))")
    assert len(heads) > 20
    for place in (3, 11, len(heads) - 1):
        commit = re.match(r"commit ([0-9a-f]{7}),", heads[place])[1]
        document = json.loads(ledger_in(plain.world, "verify", "--json", commit).stdout)
        assert heads[place].endswith(f", {document['verdict']}")
        states = page.js(
            f"[...document.querySelectorAll('#grid [role=gridcell][data-column=\"{place}\"]')].map(cell => cell.dataset.state)"
        )
        blocked = {finding["subject"] for finding in document["findings"] if finding["blocks"]}
        for row, state in zip(document["shards"], states, strict=True):
            name = row["name"] + (f"@{row['variant']}" if row["variant"] else "")
            assert (state in GREEN) == (row["verdict"] != "stale" and name not in blocked), (commit, name, state)
            if row["verdict"] == "carryable" and name not in blocked:
                assert state == "carried"


def test_filters_are_in_the_address_and_survive_being_opened_again(plain, new_page):
    page = new_page()
    page.open(plain.file)
    total = page.js("document.querySelectorAll('#grid [role=rowheader]').length")
    page.js(
        "(() => { const box = document.forms.filters.elements.shard; box.value = 'gemm'; box.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    kept = page.js("location.hash")
    assert kept == "#shard=gemm"
    names = page.js("[...document.querySelectorAll('#grid [role=rowheader]')].map(row => row.title)")
    assert 0 < len(names) < total
    assert all("gemm" in name for name in names)
    again = new_page()
    again.open(plain.file, kept[1:])
    assert again.js("[...document.querySelectorAll('#grid [role=rowheader]')].map(row => row.title)") == names
    assert again.js("document.forms.filters.elements.shard.value") == "gemm"
    again.open(plain.file, "state=carried&variant=a100")
    shown = again.js("[...document.querySelectorAll('#grid [role=rowheader]')].map(row => row.title)")
    assert shown
    assert all(name.endswith("@a100") for name in shown)
    newest = again.js(
        "[...document.querySelectorAll('#grid [role=gridcell][data-column=\"0\"]')].map(cell => cell.dataset.state)"
    )
    assert set(newest) == {"carried"}
    again.open(plain.file, "since=2999-01-01&state=nonsense")
    assert "Nothing matches" in again.js("document.getElementById('grid').textContent")


def test_a_filter_by_signer_dims_what_others_signed(plain, new_page):
    page = new_page()
    page.open(plain.file, "signer=alice@example.org")
    page.js("1")
    cells = page.js(
        "[...document.querySelectorAll('#grid [role=gridcell]')].map(cell => [cell.className.includes('dim'), cell.getAttribute('aria-label')])"
    )
    assert {dim for dim, _ in cells} == {True, False}


def test_the_keyboard_reaches_a_cell_opens_and_closes_it_and_comes_back(plain, new_page):
    page = new_page()
    page.open(plain.file)
    page.js("document.querySelector('#grid [tabindex=\"0\"]').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.press(key)
    where = "[document.activeElement.dataset.row, document.activeElement.dataset.column]"
    assert page.js(where) == ["2", "2"]
    label = page.js("document.activeElement.getAttribute('aria-label')")
    page.press("Enter")
    assert page.js("document.activeElement.id") == "details"
    assert (
        page.js("document.getElementById('details-title').textContent").split(": ")[0].lstrip("✓○✗!◐⊘~·?") in label
    )
    assert "cell=" in page.js("location.hash")
    page.press("Escape")
    assert page.js("document.getElementById('details').hidden") is True
    assert page.js(where) == ["2", "2"]
    page.press("End", ctrl=True)
    last = page.js(where)
    assert int(last[0]) == page.js("Number(document.getElementById('grid').getAttribute('aria-rowcount'))") - 2
    page.press("Home", ctrl=True)
    page.press("ArrowUp")
    assert page.js("document.activeElement.getAttribute('role')") == "columnheader"
    page.press("Enter")
    assert "git ledger show" in page.js("document.getElementById('details').textContent")


def test_an_address_with_a_cell_opens_it(plain, new_page):
    page = new_page()
    page.open(plain.file)
    page.js('document.querySelector(\'#grid [data-row="1"][data-column="4"]\').click()')
    kept, title = page.js("location.hash"), page.js("document.getElementById('details-title').textContent")
    again = new_page()
    again.open(plain.file, kept[1:])
    assert again.js("document.getElementById('details-title').textContent") == title


def test_a_reader_without_eyes_gets_tables_names_and_states(plain, new_page):
    page = new_page()
    page.open(plain.file)
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node.get("ignored")]
    for role in (
        "grid",
        "columnheader",
        "rowheader",
        "gridcell",
        "table",
        "heading",
        "navigation",
        "main",
        "status",
    ):
        assert role in roles, role
    unnamed = [
        node
        for node in nodes
        if not node.get("ignored")
        and node["role"]["value"] in ("gridcell", "button", "columnheader", "textbox", "combobox", "searchbox")
        and not node.get("name", {}).get("value")
    ]
    assert [node["role"]["value"] for node in unnamed if node["role"]["value"] != "columnheader"] == []
    states = page.js(
        "[...document.querySelectorAll('#grid [role=gridcell]')].every(cell => cell.getAttribute('aria-label').includes(cell.dataset.state))"
    )
    assert states


CONTRAST = """
(() => {
  const light = (text) => { const parts = text.match(/[\\d.]+/g).map(Number); return parts.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0); };
  const paper = (node) => { for (; node; node = node.parentElement) { const found = getComputedStyle(node).backgroundColor; if (!found.endsWith(", 0)")) return found; } return "rgb(255, 255, 255)"; };
  const poor = new Set();
  for (const node of document.querySelectorAll("p, td, th, b, code, dd, dt, h1, h2, h3, a, button, label, span.hash, span.day, .mark, li, summary")) {
    if (!node.textContent.trim() || node.closest("[hidden], :disabled") || !node.getClientRects().length) continue;
    const style = getComputedStyle(node); const a = light(style.color); const b = light(paper(node));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const wanted = node.matches(".mark") ? 3 : 4.5;
    if (ratio < wanted) poor.add(`${node.tagName}.${node.className} ${ratio.toFixed(2)}`);
  }
  return [...poor];
})()
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_paper_in_light_and_dark(plain, new_page, dark):
    page = new_page(dark=dark)
    page.open(plain.file)
    assert page.js("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    assert page.js(CONTRAST) == []


def test_the_switch_changes_the_colours_and_print_is_light(plain, new_page):
    page = new_page()
    page.open(plain.file)
    before = page.js("getComputedStyle(document.body).backgroundColor")
    page.js("document.getElementById('theme').click()")
    assert page.js("document.documentElement.dataset.theme") == "dark"
    assert page.js("getComputedStyle(document.body).backgroundColor") != before
    page.send("Emulation.setEmulatedMedia", media="print")
    assert page.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.send("Emulation.setEmulatedMedia", media="")


def test_a_narrow_window_scrolls_nothing_but_what_is_wide(plain, new_page):
    page = new_page(width=400, height=800)
    page.open(plain.file)
    assert page.js("document.documentElement.scrollWidth") <= 400


def test_it_prints(plain, new_page):
    page = new_page()
    page.open(plain.file)
    content = page.pdf()
    assert content.startswith(b"%PDF-")
    assert len(content) > 20_000
    if shutil.which("pdftotext"):
        text = subprocess.run(
            ["pdftotext", "-layout", "-", "-"], input=content, capture_output=True, check=True
        ).stdout.decode()
        assert "no evidence" in text
    assert page.js("document.querySelectorAll('#grid .head').length") > 0, "and is itself again afterwards"


def test_hostile_texts_are_shown_and_do_nothing(hostile, new_page):
    page = new_page()
    page.open(hostile.file)
    page.js("document.querySelectorAll('#grid [role=gridcell]').forEach(cell => cell.click())")
    page.js("document.querySelector('#grid .head').click()")
    assert page.js("document.title").endswith((": passed", ": failed"))
    assert page.complaints() == []
    assert page.js("document.querySelectorAll('img, svg[onload], iframe, object, embed, script[src]').length") == 0
    assert page.js("document.scripts.length") == 2
    text = page.js("document.body.innerText")
    assert "<img src=x onerror=" in text, "shown as what it is"
    assert "\\u202e" in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    raw = hostile.file.read_text("utf-8")
    assert raw.count("</script>") == 2
    assert "<img src=x" not in raw


def test_two_hundred_shards_and_five_hundred_commits_open_at_once(tmp_path, new_page):
    """The page alone: its data are composed here, as those of a ledger would be."""
    from gitledger.report.html.page import html_page

    file = tmp_path / "large.html"
    file.write_text(html_page(large_document(200, 500)), "utf-8")
    page = new_page()
    seconds = page.open(file)
    assert seconds < 6, "1.5 s on an idle machine; CI is none"
    scripting = page.js(
        "performance.now() && performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    )
    assert scripting < 4_000
    assert page.js("document.querySelectorAll('*').length") < 12_000, "only what is in sight is drawn"
    page.js("document.querySelector('#grid [tabindex=\"0\"]').focus()")
    page.press("End", ctrl=True)
    assert page.js("[document.activeElement.dataset.row, document.activeElement.dataset.column]") == ["199", "499"]
    assert page.complaints() == []


def large_document(shards: int, commits: int) -> dict:
    kinds, records, cells = [], [], []
    for shard in range(shards):
        row = []
        for commit in range(commits):
            if commit % 7 == shard % 7:
                records.append(
                    {
                        "commit": f"{commit:040x}",
                        "counts": [9, 9, 0, 0],
                        "dirty": False,
                        "ended_at": "2026-01-01T00:00:00Z",
                        "id": f"{len(records):064x}",
                        "mode": "ci",
                        "outcome": "passed",
                        "reasons": [],
                        "seconds": 12.5,
                        "shard": f"shard-{shard}",
                        "signer": 0,
                    }
                )
                kinds.append(
                    {
                        "against": [],
                        "attempts": [],
                        "changed": [],
                        "detail": "",
                        "reason": "recorded",
                        "record": len(records) - 1,
                        "state": "passed" if commit % 3 else "carried",
                        "verdict": "fresh",
                    }
                )
            row.append(len(kinds) - 1)
        cells.append(row)
    column = {
        "at": "2026-01-01T00:00:00Z",
        "coverage": [9, 10, True],
        "fault": "",
        "findings": [],
        "summary": "Change",
        "verdict": "passed",
    }
    return {
        "cells": cells,
        "columns": [{**column, "commit": f"{commit:040x}"} for commit in range(commits)],
        "commit": "0" * 40,
        "coverage": None,
        "coverage_text": [],
        "distances": [[0] * commits for _ in range(shards)],
        "findings": [],
        "flaky": [],
        "glyphs": {
            "passed": "✓",
            "carried": "○",
            "failed": "✗",
            "error": "!",
            "incomplete": "◐",
            "rejected": "⊘",
            "stale": "~",
            "missing": "·",
            "unknown": "?",
        },
        "ignored": [],
        "kinds": kinds,
        "lanes": None,
        "left_out": 0,
        "made": {"at": "2026-01-01T00:00:00Z", "by": "git-ledger", "verify": "git ledger verify"},
        "policy": {"commit": "0" * 40, "digest": "0" * 64, "from": "self"},
        "records": records,
        "shards": [{"name": f"shard-{shard}", "variant": None} for shard in range(shards)],
        "signers": [{"key": "SHA256:x", "last": "", "name": "ci", "records": 1, "says": "ci", "why": ""}],
        "slowest": [],
        "title": "large",
        "verdict": "passed",
    }


def test_a_column_of_words_is_never_squeezed_to_letters(plain, new_page):
    """In a narrow window the reason stood one letter a line, a screen high for each shard."""
    page = new_page(width=420, height=900)
    page.open(plain.file)
    assert page.js("Math.min(...[...document.querySelectorAll('td.wide')].map(cell => cell.clientWidth))") >= 150


def test_what_is_shown_as_code_is_what_can_be_typed(plain, new_page):
    """A command with the words about it in one box looked as if all of it were to be typed."""
    page = new_page()
    page.open(plain.file)
    shown = page.js(
        "[...document.querySelectorAll('#findings-list .blocks .why code')].map(node => node.textContent)"
    )
    assert any(text.startswith("git ledger show --tests --failed ") for text in shown)
    assert [text for text in shown if text.startswith("git ") and re.search(r"[,;(]", text)] == []
