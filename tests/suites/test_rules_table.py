"""The checks of completeness, of partitions and of coverage (DESIGN section 8), each with a test that holds it.

Every entry breaks one check: `python tests/mutate.py --table` on this file tries them all, in a copy, and each must
turn one of its tests red. The tests here see to it that the table doesn't rot.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@dataclass(frozen=True)
class Rule:
    """One check, the tests that hold it (relative to this folder), and the change that they notice."""

    area: str
    rule: str
    tests: tuple[str, ...]
    file: str
    old: str
    new: str


def _rule(area: str, rule: str, test: str, module: str, old: str, new: str) -> Rule:
    tests = tuple(f"{place}.py::test_{name}" for place, name in (one.split(":") for one in test.split()))
    return Rule(area, rule, tests, f"gitledger/{module}.py", old, new)


JOURNAL, OUTCOMES, BREAKING = "test_journal", "test_outcomes", "test_breaking_off"
CHOICES, CUT, PART = "test_ids_and_choices", "test_cut", "test_part"
COVERAGE, FAULTS = "../verdict/test_coverage", "../verdict/test_union"
RULES_OF_COMPLETENESS = f"{JOURNAL}:the_rules_of_completeness"

RULES = (
    # Completeness: what keeps a run from `passed`
    _rule(
        "complete",
        "a collection was recorded",
        f"{JOURNAL}:without_any_one_of_its_events_a_journal_is_not_green",
        "suites/recorder",
        "if not journal.is_collected:",
        "if False:",
    ),
    _rule(
        "complete",
        "something was collected",
        f"{BREAKING}:no_tests_is_no_pass_even_where_a_plugin_makes_the_status_0",
        "suites/recorder",
        "elif not journal.selected:",
        "elif False:",
    ),
    _rule(
        "complete",
        "what was deselected is known",
        RULES_OF_COMPLETENESS,
        "suites/recorder",
        "if journal.is_collected and not journal.is_full:",
        "if False:",
    ),
    _rule(
        "complete",
        "every collected id has an end",
        f"{BREAKING}:tests_that_were_only_listed_or_set_up_have_no_end",
        "suites/recorder",
        "    if missing:\n",
        "    if False:\n",
    ),
    _rule(
        "complete",
        "nothing ran that was not collected",
        RULES_OF_COMPLETENESS,
        "suites/recorder",
        "    if strangers:\n",
        "    if False:\n",
    ),
    _rule(
        "complete",
        "the session was seen to finish",
        RULES_OF_COMPLETENESS,
        "suites/recorder",
        '"not-finished": not journal.is_finished,',
        '"not-finished": False,',
    ),
    _rule(
        "complete",
        "a journal that can't be trusted",
        RULES_OF_COMPLETENESS,
        "suites/recorder",
        '"journal-mistrusted": journal.distrust is not None,',
        '"journal-mistrusted": False,',
    ),
    _rule(
        "complete",
        "a worker that died between tests",
        f"{BREAKING}:u03_a_worker_that_dies_between_tests_is_no_pass_even_if_all_tests_pass",
        "suites/recorder",
        "bool(journal.dead_workers) or any(",
        "any(",
    ),
    _rule(
        "complete",
        "workers that collected different tests",
        RULES_OF_COMPLETENESS,
        "suites/recorder",
        '"workers-disagree": not journal.workers_agree,',
        '"workers-disagree": False,',
    ),
    _rule(
        "complete",
        "every worker ran every test",
        f"{BREAKING}:every_worker_runs_every_test_is_no_pass",
        "suites/recorder",
        '"duplicate-id": journal.facts.dist == "each",',
        '"duplicate-id": False,',
    ),
    _rule(
        "complete",
        "an internal error of pytest",
        f"{BREAKING}:an_internal_error_of_pytest_is_an_error",
        "suites/recorder",
        '"internal-error": bool(journal.internal_errors),',
        '"internal-error": False,',
    ),
    _rule(
        "complete",
        "a file that broke while it was collected",
        f"{OUTCOMES}:a_collection_error_that_pytest_goes_on_after_stays_an_error",
        "suites/recorder",
        '        if outcome != "skipped":\n            found[node_id] = TestOutcome.ERROR',
        "        if False:\n            found[node_id] = TestOutcome.ERROR",
    ),
    _rule(
        "complete",
        "a run cut by an earlier one (--lf)",
        f"{CHOICES}:u05_a_run_that_depends_on_an_earlier_one_is_incomplete",
        "suites/recorder",
        "if any(name in facts.narrowed for name in _CUT_BY_CACHE):",
        "if False:",
    ),
    _rule(
        "complete",
        "an ini file outside the repository",
        f"{CHOICES}:an_ini_file_outside_the_repository_makes_a_run_incomplete",
        "suites/recorder",
        "if repository and not all(",
        "if False and not all(",
    ),
    _rule(
        "complete",
        "one id for two items",
        f"{BREAKING}:one_id_for_two_items_fails",
        "suites/recorder",
        "if any(count > 1 for count in Counter([*chosen, *whole]).values()):",
        "if False:",
    ),
    _rule(
        "complete",
        "one id that ends twice, differently",
        f"{BREAKING}:an_id_that_ends_twice_differently_fails",
        "suites/recorder",
        "if len(ends) > 1:",
        "if False:",
    ),
    _rule(
        "complete",
        "any failed report counts, whatever follows it",
        f"{OUTCOMES}:u02_a_failed_subtest_fails_its_test_whatever_its_last_report_says",
        "suites/recorder",
        'elif event.outcome == "failed":\n            self.failed.append(event.when)',
        'elif event.outcome == "failed":\n            self.failed = []',
    ),
    _rule(
        "complete",
        "a failed setup or teardown is an error",
        f"{OUTCOMES}:u04_an_error_alone_is_an_error",
        "suites/recorder",
        "        if self.failed:\n            return TestOutcome.ERROR, self.failed[0]",
        "        if False:\n            return TestOutcome.ERROR, self.failed[0]",
    ),
    _rule(
        "complete",
        "a test without its teardown has no end",
        f"{BREAKING}:u01_a_teardown_that_ends_the_process_leaves_its_test_without_an_end",
        "suites/recorder",
        'if self.phases.get("teardown") is None:',
        "if False:",
    ),
    _rule(
        "complete",
        "a rerun is an attempt and no end",
        f"{OUTCOMES}:u06_fail_then_pass_is_a_pass_with_its_attempts",
        "suites/recorder",
        "self.is_superseded = True",
        "self.is_superseded = False",
    ),
    _rule(
        "complete",
        "of several ends the worst counts",
        f"{BREAKING}:an_id_that_ends_twice_differently_fails",
        "suites/recorder",
        "outcome, phase = min(known",
        "outcome, phase = max(known",
    ),
    _rule(
        "complete",
        "the session's own status counts, not only the shell's",
        f"{BREAKING}:a_plugin_that_fails_a_green_session_is_an_error_even_behind_a_shell",
        "suites/recorder",
        "for status in (end.status, journal.exit_status):",
        "for status in (end.status,):",
    ),
    _rule(
        "complete",
        "a failed test is no pass",
        RULES_OF_COMPLETENESS,
        "suites/result",
        'found.add("test-failed")',
        "found.discard(None)",
    ),
    _rule(
        "complete",
        "a test with an error is no pass",
        RULES_OF_COMPLETENESS,
        "suites/result",
        'found.add("test-error")',
        "found.discard(None)",
    ),
    _rule(
        "complete",
        "a comparison check that did not hold",
        "test_checks:a_swallowed_check_alone_keeps_the_run_from_green",
        "suites/result",
        'found.add("check-failed")',
        "found.discard(None)",
    ),
    _rule(
        "complete",
        "a signal is no pass",
        f"{BREAKING}:r17_a_signal_after_every_test_passed_is_not_green_and_said_to_be_at_exit",
        "suites/result",
        'found.add("signal-at-exit" if finished else "signal")',
        "found.discard(None)",
    ),
    _rule(
        "complete",
        "a status that nothing explains",
        f"{BREAKING}:a_status_that_nothing_explains_is_an_error",
        "suites/result",
        'return {"exit-status"}',
        "return set()",
    ),
    _rule(
        "complete",
        "no journal is no pass",
        f"{BREAKING}:a_command_that_runs_no_pytest_has_no_journal",
        "suites/recorder",
        'lacking = {"no-journal"} | child_reasons(end, finished=False)',
        "lacking = child_reasons(end, finished=False)",
    ),
    _rule(
        "complete",
        "a report of nothing is no pass",
        "test_junit:of_nothing_is_not_a_pass",
        "suites/report_file",
        '"no-tests"',
        '"test-error"',
    ),
    # Partitions
    _rule(
        "partition",
        "the longest part is as short as it can be",
        f"{CUT}:the_cut_is_the_optimum_of_all_cuts",
        "suites/cut",
        "            high = middle\n        else:\n            low = middle + 1",
        "            high = middle\n        else:\n            low = middle + 2",
    ),
    _rule(
        "partition",
        "the rest is even",
        f"{CUT}:u09_longest_part_is_the_shortest_possible_and_the_rest_is_even",
        "suites/cut",
        "return length * length + (penalty",
        "return length + (penalty",
    ),
    _rule(
        "partition",
        "no part longer than it must be",
        f"{CUT}:the_cut_is_the_optimum_of_all_cuts",
        "suites/cut",
        "(penalty * (length - limit) if length > limit else 0)",
        "0",
    ),
    _rule(
        "partition",
        "no part is empty",
        f"{CUT}:u09_more_parts_than_files_is_an_error",
        "suites/cut",
        "if not 1 <= total <= len(costs):",
        "if not 1 <= total:",
    ),
    _rule(
        "partition",
        "the same cut in every order",
        f"{CUT}:u10_every_order_gives_the_same_partition",
        "suites/cut",
        'in sorted(files.items(), key=lambda item: item[0].split("/")):',
        "in files.items():",
    ),
    _rule(
        "partition",
        "files in the order in which pytest collects folders",
        f"{CUT}:files_stand_in_the_order_of_their_folders_as_pytest_collects_them",
        "suites/cut",
        'key=lambda item: item[0].split("/")',
        "key=lambda item: item[0]",
    ),
    _rule(
        "partition",
        "new tests count as the mean of their file",
        f"{CUT}:u11_new_tests_count_as_the_mean_of_their_file_else_of_the_suite",
        "suites/cut",
        "if known else suite_mean",
        "if not known else suite_mean",
    ),
    _rule(
        "partition",
        "negative, endless and absurd durations are none",
        f"{CUT}:u09_durations_that_are_none_leave_a_partition_without_empty_parts",
        "suites/cut",
        "if not math.isfinite(seconds) or not 0 <= seconds * 10**6 <= MAX_DURATION_US:",
        "if not math.isfinite(seconds):",
    ),
    _rule(
        "partition",
        "what is ignored is said",
        f"{CUT}:u09_durations_that_are_none_leave_a_partition_without_empty_parts",
        "suites/cut",
        "if len(good) < len(known):",
        "if False:",
    ),
    _rule(
        "partition",
        "durations under different numbers of workers are marked",
        f"{CUT}:u11_durations_of_several_worker_counts_are_warned_of",
        "suites/cut",
        'len(set(map(str, found.get("workers") or ()))) > 1',
        "False",
    ),
    _rule(
        "partition",
        "what ran is the part that was asked for",
        f"{PART}:whatever_else_ran_is_not_the_part",
        "suites/part",
        "return expected == sorted(",
        "return [] != sorted(",
    ),
    _rule(
        "partition",
        "a part is cut from the whole collection",
        f"{PART}:whatever_else_ran_is_not_the_part",
        "suites/part",
        "for node_id in result.full_ids if node_id not in whole]",
        "for node_id in result.selected_ids if node_id not in whole]",
    ),
    _rule(
        "partition",
        "more parts than files are nobody's part",
        f"{PART}:more_parts_than_files_are_nobodys_part",
        "suites/part",
        "        return False\n",
        "        return True\n",
    ),
    _rule(
        "partition",
        "a file that skips as a whole counts once",
        f"{PART}:a_file_that_was_skipped_as_a_whole_counts_in_the_first_part_alone",
        "suites/part",
        "if split.index == 1 or not whole:",
        "if True:",
    ),
    _rule(
        "partition",
        "the part's tests are held to the cut",
        "../workflows/test_split:a_plugin_that_drops_tests_after_the_cut_is_found_out",
        "workflows/execute",
        "if not is_the_part(",
        "if False and not is_the_part(",
    ),
    _rule(
        "partition",
        "tests of no shard are named",
        "../workflows/test_split_command:the_check_collects_for_real_and_names_tests_of_no_shard",
        "workflows/split",
        "    if orphans:\n",
        "    if False:\n",
    ),
    _rule(
        "partition",
        "tests of two shards are named",
        "../workflows/test_split_command:the_check_collects_for_real_and_names_tests_of_no_shard",
        "workflows/split",
        "            if shared:\n",
        "            if False:\n",
    ),
    _rule(
        "partition",
        "each test in one shard of a variant",
        f"{FAULTS}:u08_two_shards_of_one_variant_with_the_same_node_id_are_refused",
        "verdict/faults",
        "if first != choice.shard.key:\n                clashes",
        "if False:\n                clashes",
    ),
    _rule(
        "partition",
        "parts of different collections",
        f"{FAULTS}:parts_of_different_collections_are_refused",
        "verdict/faults",
        "if len(collections) > 1:",
        "if False:",
    ),
    _rule(
        "partition",
        "the union of the parts is the full collection",
        f"{FAULTS}:parts_that_lose_a_test_are_refused",
        "verdict/faults",
        "if len(parts) == total and ended and collection_digest(ids) != full_digest:",
        "if False:",
    ),
    # Coverage: reading what a run measured
    _rule(
        "coverage",
        "one data file that can't be read leaves no fragment",
        "../verdict/test_against_combine:c01_a_damaged_data_file",
        "suites/coverage_read",
        "if os.path.getsize(one) == 0:  # noqa: PTH202",
        "if False:",
    ),
    _rule(
        "coverage",
        "files that are none of the commit's are out of the total",
        "../workflows/test_coverage:c07_a_childs_files_that_are_no_source_are_out_of_the_total_and_said",
        "suites/coverage_read",
        "if path in tracked and os.path.isfile(real):",
        "if os.path.isfile(real):",
    ),
    _rule(
        "coverage",
        "a data file that earlier runs may have written",
        "test_measured:a_data_file_that_earlier_runs_may_have_written_is_not_taken",
        "suites/measured",
        'if Path(found.data_file).parent != folder / "coverage":',
        "if False:",
    ),
    _rule(
        "coverage",
        "a run that saved nothing",
        "test_measured:nothing_saved_is_nothing_read",
        "suites/measured",
        "if not any(data.iterdir()):",
        "if False:",
    ),
    _rule(
        "coverage",
        "an answer with an error is none",
        "test_measured:an_answer_that_is_none_is_a_named_error",
        "suites/measured",
        'if not isinstance(found, dict) or "error" in found:',
        "if not isinstance(found, dict):",
    ),
    _rule(
        "coverage",
        "the version that measured is the version that reads",
        "test_measured:an_answer_that_contradicts_itself_is_a_named_error",
        "suites/measured",
        'if answer["version"] != found.version or answer',
        "if answer",
    ),
    _rule(
        "coverage",
        "branches where the run said branches",
        "test_measured:an_answer_that_contradicts_itself_is_a_named_error",
        "suites/measured",
        'or answer["branch"] not in (None, found.branch)',
        "or False",
    ),
    _rule(
        "coverage",
        "a line is executed or missing",
        "test_measured:an_answer_that_contradicts_itself_is_a_named_error",
        "suites/measured",
        "if executed & missing:",
        "if False:",
    ),
    _rule(
        "coverage",
        "our count is coverage's own",
        "test_measured:an_answer_that_contradicts_itself_is_a_named_error",
        "suites/measured",
        'if item["covered"] != [',
        "if [] == [",
    ),
    _rule(
        "coverage",
        "one file under two names is one file",
        "test_measured:one_file_under_two_names_is_one_file",
        "suites/measured",
        "self.executed | other.executed, self.branches",
        "self.executed, self.branches",
    ),
    # Coverage: a fragment that contradicts itself
    _rule(
        "coverage",
        "no executed line that is no statement",
        "../records/test_fragments:a_fragment_that_contradicts_itself_can_not_be_made",
        "records/fragments",
        "if self.executed & ~self.statements:",
        "if False:",
    ),
    _rule(
        "coverage",
        "no branch both taken and not",
        "../records/test_fragments:a_fragment_that_contradicts_itself_can_not_be_made",
        "records/fragments",
        "if self.taken & self.untaken:",
        "if False:",
    ),
    _rule(
        "coverage",
        "no more branches untaken than there are",
        "../records/test_fragments:a_fragment_that_contradicts_itself_can_not_be_made",
        "records/fragments",
        "if len(self.untaken) > self.branches:",
        "if False:",
    ),
    _rule(
        "coverage",
        "each file once",
        "../records/test_fragments:a_fragment_that_contradicts_itself_can_not_be_made",
        "records/fragments",
        "if paths != sorted(set(paths)):",
        "if False:",
    ),
    # Coverage: the union
    _rule(
        "coverage",
        "a missing fragment is named",
        f"{COVERAGE}:c01_a_missing_fragment_is_named_whatever_the_others_add_up_to",
        "verdict/coverage",
        "*(part for part in found if isinstance(part, Finding)),",
        "",
    ),
    _rule(
        "coverage",
        "no number where a fragment is missing",
        f"{COVERAGE}:without_a_threshold_faults_are_notes_and_there_is_no_number",
        "verdict/coverage",
        "if faults or not is_whole:",
        "if False:",
    ),
    _rule(
        "coverage",
        "a fragment that is not here",
        f"{COVERAGE}:c01_a_fragment_that_is_not_here_is_refused",
        "verdict/coverage",
        "    if blob is None:\n",
        "    if False:\n",
    ),
    _rule(
        "coverage",
        "a fragment is the one that the receipt names",
        f"{COVERAGE}:c01_an_unreadable_fragment_is_refused",
        "verdict/coverage",
        "        check_body(ref, blob)\n",
        "",
    ),
    _rule(
        "coverage",
        "versions and branch flags agree",
        f"{COVERAGE}:c03_branches_in_one_shard_only_are_refused "
        f"{COVERAGE}:versions_of_coverage_that_differ_are_refused_and_cores_are_said",
        "verdict/coverage",
        "if mine != theirs:",
        "if False:",
    ),
    _rule(
        "coverage",
        "the commit's own sources were measured",
        f"{COVERAGE}:c06_another_source_than_the_commits_is_refused_where_it_was_measured_here",
        "verdict/coverage",
        "other = [] if part.carried else _changed(part, situation)",
        "other: list[str] = []",
    ),
    _rule(
        "coverage",
        "a carried fragment is cut to unchanged files",
        f"{COVERAGE}:c06_and_dropped_and_said_where_it_was_carried",
        "verdict/coverage",
        "if file.path not in dropped)",
        ")",
    ),
    _rule(
        "coverage",
        "what was dropped is said",
        f"{COVERAGE}:c06_and_dropped_and_said_where_it_was_carried",
        "verdict/coverage",
        "if dropped and part.carried:",
        "if False:",
    ),
    _rule(
        "coverage",
        "a changed file does not vanish from the total",
        f"{COVERAGE}:a_changed_file_that_nobody_measured_anew_does_not_vanish_from_the_total",
        "verdict/coverage",
        "        if gone:\n",
        "        if False:\n",
    ),
    _rule(
        "coverage",
        "one source is analysed in one way",
        f"{COVERAGE}:one_source_analysed_in_two_ways_is_refused",
        "verdict/coverage",
        "!= (other.statements, other.branches) and not may_differ:",
        "!= (other.statements, other.branches) and False:",
    ),
    _rule(
        "coverage",
        "one file is measured against one source",
        f"{COVERAGE}:one_source_analysed_in_two_ways_is_refused",
        "verdict/coverage",
        "    if one.blob != other.blob:\n        return None\n",
        "",
    ),
    _rule(
        "coverage",
        "nothing measured is no number",
        f"{COVERAGE}:c04_nothing_measured_meets_no_threshold",
        "verdict/coverage",
        "if is_whole and not faults and not any(file.total for file in files):",
        "if False:",
    ),
    _rule(
        "coverage",
        "a threshold over shards of which none measures",
        f"{COVERAGE}:a_threshold_over_shards_of_which_none_measures_is_not_a_pass",
        "verdict/coverage",
        "if not parts and not wanted:",
        "if not parts:",
    ),
    _rule(
        "coverage",
        "lines are united",
        f"{COVERAGE}:law_the_union_is_that_of_the_sets_in_any_order",
        "verdict/coverage",
        "executed=one.executed | other.executed,",
        "executed=one.executed,",
    ),
    _rule(
        "coverage",
        "branches are united",
        f"{COVERAGE}:law_the_union_is_that_of_the_sets_in_any_order",
        "verdict/coverage",
        "untaken = (one.untaken | other.untaken) - taken\n    branches",
        "untaken = one.untaken | other.untaken\n    branches",
    ),
    _rule(
        "coverage",
        "a percentage is never rounded up",
        f"{COVERAGE}:the_percentage_is_never_rounded_up",
        "verdict/coverage",
        "100 * 10**decimals * claim.covered // claim.total",
        "round(100 * 10**decimals * claim.covered / claim.total)",
    ),
    _rule(
        "coverage",
        "coverage under its threshold fails the verdict",
        f"{COVERAGE}:under_the_threshold_the_verdict_fails_and_a_merge_is_written_as_failed",
        "verdict/verify",
        "        *_coverage(union),\n",
        "",
    ),
    _rule(
        "coverage",
        "and the merged receipt",
        f"{COVERAGE}:under_the_threshold_the_verdict_fails_and_a_merge_is_written_as_failed",
        "verdict/merge",
        "if is_enough and _all_passed(shards)",
        "if _all_passed(shards)",
    ),
    _rule(
        "coverage",
        "an older green without a fragment is not carried",
        f"{COVERAGE}:an_older_green_without_a_fragment_is_not_carried",
        "verdict/field",
        'return (Bar("coverage-missing", "the receipt has no coverage fragment"),)',
        "return ()",
    ),
    # Coverage: the one threshold
    _rule(
        "coverage",
        "the threshold's decimals count",
        "../records/test_threshold:c04_the_rule_at_its_edges",
        "records/threshold",
        "max(precision, decimals_of(value))",
        "precision",
    ),
    _rule(
        "coverage",
        "only all of it meets 100",
        "../records/test_threshold:c04_the_rule_at_its_edges",
        "records/threshold",
        "    if value == 100:\n        return covered == total\n",
        "",
    ),
    _rule(
        "coverage",
        "nothing of nothing meets no threshold",
        "../records/test_threshold:c04_the_rule_at_its_edges",
        "records/threshold",
        "    if total == 0:\n        return False\n",
        "    if total == 0:\n        return True\n",
    ),
    _rule(
        "coverage",
        "what is no threshold is refused",
        "../records/test_threshold:what_is_no_threshold_is_refused",
        "records/threshold",
        "if not value.is_finite() or not 0 < value <= 100:",
        "if not value.is_finite():",
    ),
    _rule(
        "coverage",
        "thresholds that disagree",
        "../workflows/test_coverage_rule:thresholds_that_disagree_are_zero_or_none_are_errors",
        "workflows/coverage_rule",
        "if len({value for _, value in found.values()}) > 1:",
        "if False:",
    ),
    _rule(
        "coverage",
        "a threshold of 0",
        "../workflows/test_coverage_rule:thresholds_that_disagree_are_zero_or_none_are_errors",
        "workflows/coverage_rule",
        "if Decimal(text) == 0:",
        "if False:",
    ),
    _rule(
        "coverage",
        "another way to count than the ref's",
        "../workflows/test_coverage_rule:another_way_to_count_than_the_refs_is_redefined",
        "workflows/coverage_rule",
        "    if was == now:\n",
        "    if True:\n",
    ),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.area}: {rule.rule}")
def test_every_rule_names_tests_that_exist_and_a_text_that_stands_once(rule):
    for test in rule.tests:
        file, name = test.split("::")
        tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test
    assert (ROOT / rule.file).read_text(encoding="utf-8").count(rule.old) == 1
    assert rule.old != rule.new


def test_the_table_holds_completeness_partitions_and_coverage():
    areas = [rule.area for rule in RULES]
    assert {area: areas.count(area) >= 20 for area in set(areas)} == dict.fromkeys(
        ("complete", "partition", "coverage"), True
    )
