"""The rules of DESIGN section 5, what counts as dirt and what as an input, each with a test that holds it.

Every entry breaks one rule: `python tests/mutate.py --table` on this file tries them all, in a copy, and each must
turn one of its tests red. The tests here see to it that the table doesn't rot. What `record` makes of dirt at the start and
the end, of files that a run makes and of a HEAD that moves is tried on the installed command (`test_record.py`).
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
    """One rule, the tests that hold it (relative to this folder), and the change that they notice."""

    area: str
    rule: str
    tests: tuple[str, ...]
    file: str
    old: str
    new: str


def _rule(area: str, rule: str, test: str, module: str, old: str, new: str) -> Rule:
    tests = tuple(f"{place}.py::test_{name}" for place, name in (one.split(":") for one in test.split()))
    return Rule(area, rule, tests, f"gitledger/{module}.py", old, new)


WORKTREE, INDEX = "test_worktree", "test_index_file"
SCOPE, CHAIN, EXTRA = "../manifest/test_scope", "../manifest/test_chain", "../manifest/test_extra"

RULES = (
    _rule(
        "dirt",
        "untracked files count by the tree's .gitignore alone",
        f"{WORKTREE}:untracked_files_count_by_the_trees_gitignore_alone",
        "store/worktree",
        'return _paths(git, "ls-files", "--others", "--exclude-per-directory=.gitignore")',
        'return _paths(git, "ls-files", "--others", "--exclude-standard")',
    ),
    _rule(
        "dirt",
        "assume-unchanged and skip-worktree hide no edit",
        f"{WORKTREE}:flags_on_index_entries_hide_no_edit",
        "store/index_file",
        "if flags & (_ASSUME_VALID | _EXTENDED) or changed_s >= written_s or changed_s != modified_s:",
        "if changed_s > written_s or changed_s != modified_s:",
    ),
    _rule(
        "dirt",
        "nor a deletion",
        f"{WORKTREE}:a_deleted_file_that_is_assumed_unchanged_counts",
        "store/worktree",
        'return entry.tag == "h"',
        "return False",
    ),
    _rule(
        "dirt",
        "a file whose mtime was set, and can be set again, is compared by content",
        f"{INDEX}:an_edit_in_the_second_of_the_index_is_seen_however_the_index_is_written",
        "store/worktree",
        "return found.st_ctime_ns // _SECOND_NS == noted_s and not is_the_same",
        "return False",
    ),
    _rule(
        "dirt",
        "an index whose mtime lies ahead tells nothing of what was touched since",
        f"{WORKTREE}:an_index_whose_mtime_lies_ahead_hides_no_edit_made_at_once",
        "store/worktree",
        "return index.st_mtime_ns if index.st_mtime_ns <= index.st_ctime_ns else 0",
        "return index.st_mtime_ns",
    ),
    _rule(
        "dirt",
        "an index that can't be read at a glance is left to git",
        f"{INDEX}:an_extension_that_must_be_understood_is_left_to_git",
        "store/index_file",
        "if not name[:1].isupper():",
        "if False:",
    ),
    _rule(
        "dirt",
        "a submodule that moved counts, whatever its settings say",
        f"{WORKTREE}:a_moved_submodule_counts_though_gitmodules_says_to_ignore_it",
        "store/status_words",
        '"--ignore-submodules=dirty"',
        '"--ignore-submodules=all"',
    ),
    _rule(
        "dirt",
        "a tracked edit inside a submodule counts",
        f"{WORKTREE}:a_tracked_edit_inside_a_submodule_counts",
        "store/worktree",
        'found.changed.extend(f"{path}/{changed}" for changed in below.changed)',
        "found.changed.extend([])",
    ),
    _rule(
        "dirt",
        "an input that is not checked out is dirt",
        f"{WORKTREE}:an_input_that_a_sparse_checkout_left_out_counts",
        "store/worktree",
        'if found is None and entry.tag in "Ss":',
        'if False and entry.tag in "Ss":',
    ),
    _rule(
        "dirt",
        "and so is a file of the configuration chain, wherever it lies",
        f"{WORKTREE}:an_input_that_a_sparse_checkout_left_out_counts",
        "store/worktree",
        'if path.rpartition("/")[2] in names or _reaches(scope_paths, path)]',
        "if _reaches(scope_paths, path)]",
    ),
    _rule(
        "dirt",
        "a submodule that was never fetched is an input that is not here",
        f"{WORKTREE}:a_submodule_that_was_never_fetched_counts_where_it_is_an_input",
        "store/worktree",
        'found.absent.append(f"{path}/")',
        "pass",
    ),
    _rule(
        "dirt",
        "a rule that hides itself and sources is dirt",
        f"{WORKTREE}:a_rule_outside_the_tree_that_hides_itself_and_sources_is_dirt",
        "store/worktree",
        "if not folder or folder in tracked or not _ignores_everything(git.folder / rule):",
        "if not folder:",
    ),
    _rule(
        "dirt",
        "a folder that ignores itself is none outside declared scopes",
        f"{WORKTREE}:a_folder_that_ignores_itself_is_no_dirt_outside_declared_scopes",
        "store/worktree",
        "if _in_scope(self.root, folder, scope_paths)]",
        "]",
    ),
    _rule(
        "dirt",
        "…and dirt inside of one",
        f"{WORKTREE}:a_folder_that_ignores_itself_is_dirt_inside_a_declared_scope",
        "store/worktree",
        "if _in_scope(self.root, folder, scope_paths)]",
        "if False]",
    ),
    _rule(
        "inputs",
        "an empty scope is none",
        f"{SCOPE}:an_empty_tree_is_no_scope",
        "manifest/scope",
        'if not entries or (set(entries) == {"."} and not facts.children("")):',
        "if not entries:",
    ),
    _rule(
        "inputs",
        "each pattern must match something",
        f"{SCOPE}:scopes_that_are_none_are_errors_that_name_the_path",
        "manifest/scope",
        "        if not matched:\n",
        "        if False:\n",
    ),
    _rule(
        "inputs",
        "…those that exclude as well",
        f"{SCOPE}:scopes_that_are_none_are_errors_that_name_the_path",
        "manifest/scope",
        "    exclusions.refuse_unmatched()\n",
        "",
    ),
    _rule(
        "inputs",
        "no path leads through a symlink or into a submodule",
        f"{SCOPE}:scopes_that_are_none_are_errors_that_name_the_path",
        "manifest/scope",
        "                refuse_detour(path, entry)\n",
        "                pass\n",
    ),
    _rule(
        "inputs",
        "what pytest takes for its configuration binds, present or absent",
        f"{CHAIN}:f09_a_weakened_and_restored_conftest_gives_three_manifests_of_which_two_agree",
        "manifest/chain",
        '    "conftest.py",\n',
        "",
    ),
    _rule(
        "inputs",
        "a conftest above the tests too (F09)",
        f"{CHAIN}:f09_a_weakened_and_restored_conftest_gives_three_manifests_of_which_two_agree",
        "manifest/chain",
        "asked.update((*parent_folders(folder), folder))",
        "asked.update((folder,))",
    ),
    _rule(
        "inputs",
        "a symlinked conftest binds what it points to",
        f"{CHAIN}:a_symlinked_conftest_binds_what_it_points_to",
        "manifest/chain",
        "        if found is None or found.mode != MODE_SYMLINK:\n            return found\n        path",
        "        return found\n        path",
    ),
    _rule(
        "inputs",
        "exit-status shards declare their configuration",
        f"{CHAIN}:exit_status_shards_declare_their_configuration",
        "manifest/resolve",
        'if definition.results.kind != "exit-status":',
        "if True:",
    ),
    _rule(
        "inputs",
        "the durations are an input of every part of a split",
        "../manifest/test_resolve:parts_of_a_split_stand_on_the_durations",
        "manifest/resolve",
        "if definition.split is not None:",
        "if False:",
    ),
    _rule(
        "inputs",
        "a claim of extra inputs is what the patterns ask for",
        f"{EXTRA}:claims_that_are_not_what_the_patterns_ask_for_give_no_digest",
        "manifest/extra",
        "or answered != set(patterns):",
        "or False:",
    ),
    _rule(
        "hints",
        "an edit is named to the shards whose patterns would take a new file",
        "../manifest/test_resolve:touched_says_of_each_file_old_or_new_what_the_rule_says",
        "manifest/touched",
        "or is_new_input(path)",
        "or False",
    ),
    _rule(
        "hints",
        "…and where a file of the chain would appear",
        "../manifest/test_resolve:a_file_of_the_test_configuration_chain_touches_even_where_there_was_none",
        "manifest/touched",
        "or path in absent",
        "or False",
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
