"""Every stable code has its entry, every entry its code, and the page is what `explain --all` prints."""

from __future__ import annotations

from pathlib import Path

from gitledger.report.codes import KINDS, page, read_codes
from gitledger.suites.result import REASONS as RECEIPT_REASONS
from gitledger.trust.verified import REASONS as REJECTIONS
from gitledger.verdict.select import REASONS as PLAN_REASONS

ROOT = Path(__file__).parents[2]


def test_every_code_that_the_source_emits_has_an_entry(emitted):
    missing = {code: sorted(places) for code, places in emitted.places.items() if code not in read_codes()}
    assert not missing, "add these to gitledger/report/codes.md"
    assert len(emitted.places) > 190


def test_every_entry_is_of_a_code_that_the_source_emits(emitted):
    assert not set(read_codes()) - set(emitted.places), "nothing emits these; take them out of codes.md"


def test_no_code_is_made_where_looking_does_not_find_it(emitted):
    assert not emitted.unclear, "spell the code where the error is raised, or list it in PASSED_ON with its origin"


def test_an_error_exits_with_the_status_that_its_entry_says(emitted):
    codes = read_codes()
    said = {code: set(codes[code].statuses) for code in emitted.statuses if code in codes}
    assert {code: statuses for code, statuses in said.items() if not emitted.statuses[code] <= statuses} == {}


def test_closed_lists_are_named_as_what_they_are():
    codes = read_codes()
    by_kind = {kind: {code for code, entry in codes.items() if kind in entry.kinds} for kind in KINDS}
    assert by_kind["plan reason"] == PLAN_REASONS
    assert not set(RECEIPT_REASONS) - by_kind["receipt"]
    assert not REJECTIONS - by_kind["ignored"]


def test_the_page_is_what_explain_prints():
    shown = (ROOT / "docs/reference/codes.md").read_text("utf-8")
    assert shown == page(), "git ledger explain --all > docs/reference/codes.md"


def test_every_entry_says_what_to_do_in_a_few_words():
    for entry in read_codes().values():
        assert set(entry.kinds) <= set(KINDS)
        assert 10 < len(entry.meaning) < 600, entry.code
        assert len(entry.remedy) > 4, entry.code


def test_the_collector_sees_each_way_of_emitting_a_code(tmp_path, collect_codes):
    (tmp_path / "room").mkdir()
    (tmp_path / "room/module.py").write_text(
        "REASONS = frozenset({'of-a-list'})\n"
        "_HINTS = {'of-a-map': 'remedy'}\n"
        "def _error(code, path): return StoreError(code, path)\n"
        "def _or_default(path, code='by-default'): raise UsageError(code, path)\n"
        "def f(x):\n"
        "    raise ConfigError('said-outright', f'{x}')\n"
        "    raise UsageError('one-of' if x else 'two-others', 'text')\n"
        "    _error('handed-over', x)\n"
        "    code = 'chosen' if x else 'before'\n"
        "    raise TrustError(code, 'text')\n"
        "    yield blocking('found', '6', x)\n"
        "    reasons.append('appended')\n"
        "    Rejected(line=x, reason='rejected-so')\n"
        "    Ignored(x, f'prefixed: {x}')\n"
        "    raise StoreError(x.whatever, 'text')\n"
    )
    found = collect_codes(tmp_path)
    wanted = (
        "of-a-list of-a-map by-default said-outright one-of two-others handed-over chosen before found appended"
    )
    assert set(found.places) == {*wanted.split(), "rejected-so", "prefixed"}
    assert found.statuses["handed-over"] == {3}
    assert found.statuses["by-default"] == {2}
    assert [item.partition(": ")[2] for item in found.unclear] == ["StoreError(x.whatever, …)"]
