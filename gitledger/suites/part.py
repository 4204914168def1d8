"""Parts of a split on the recorder's side: what the child needs to cut, and whether it ran just that part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gitledger.dataclass import replace
from gitledger.records.bodies import collection_digest
from gitledger.records.outcomes import Counts
from gitledger.records.receipt import Split
from gitledger.suites.copies import copy_module, write_loader
from gitledger.suites.cut import Durations, TooManyPartsError, file_of, files_of_part
from gitledger.suites.result import SuiteResult

__all__ = ["COMPANION_PLUGIN", "is_the_part", "of_part", "with_companion"]

COMPANION_MODULE = "_gitledger_companion"
"""The name under which a child loads its copy of the companion; no distribution's module has it."""
COMPANION_PLUGIN = "_gitledger_companion_plugin"
"""The name under which pytest loads it."""
CUT_MODULE = "_gitledger_cut"


def with_companion(
    env: Mapping[str, str], *, folder: Path, split: Split | None = None, durations: bytes | None = None
) -> dict[str, str]:
    """Return the child's environment with the companion beside the witness, whose folder is `folder`.

    With `split`, the child runs that part, cut by `durations` (the tracked file's content, None without one). What
    coverage measures stays in `folder`; how it measures, the child says in the file `measured`. Raises `OSError`.
    """
    copy_module("companion.py", folder, COMPANION_MODULE)
    copy_module("cut.py", folder, CUT_MODULE)
    write_loader(folder, COMPANION_PLUGIN, COMPANION_MODULE)
    data = folder / "coverage"
    data.mkdir()
    changed = dict(env)
    changed["PYTEST_PLUGINS"] = ",".join(filter(None, [env.get("PYTEST_PLUGINS"), COMPANION_PLUGIN]))
    changed["GITLEDGER_MEASURED"] = str(folder / "measured")
    changed["COVERAGE_FILE"] = str(data / "data")
    if split is not None:
        (folder / "durations").write_bytes(durations or b"")
        changed["GITLEDGER_DURATIONS"] = str(folder / "durations")
        changed["GITLEDGER_PART"] = f"{split.index}/{split.total}"
    return changed


def of_part(result: SuiteResult, split: Split) -> SuiteResult:
    """Return the result of a part without what every part sees.

    A file that was skipped or broke as a whole has no tests that could be cut; it counts in the first part.
    """
    whole = {item.node_id for item in result.results if item.phase == "collect"}
    if split.index == 1 or not whole:
        return result
    results = tuple(item for item in result.results if item.phase != "collect")
    selected = tuple(node_id for node_id in result.selected_ids if node_id not in whole)
    return replace(
        result,
        results=results,
        counts=Counts.of(
            (item.outcome for item in results),
            collected=len(selected),
            deselected=max(len(result.full_ids) - len(selected), 0),
        ),
        selected_ids=selected,
        selected_digest=collection_digest(selected),
    )


def is_the_part(result: SuiteResult, split: Split, durations: Durations) -> bool:
    """Tell whether the tests that a child chose are its part of what it collected: the cut, made once more."""
    whole = {item.node_id for item in result.results if item.phase == "collect"}
    collected = [node_id for node_id in result.full_ids if node_id not in whole]
    try:
        files = files_of_part(collected, split.index, split.total, durations)
    except TooManyPartsError:
        return False
    expected = sorted(node_id for node_id in collected if file_of(node_id) in files)
    return expected == sorted(node_id for node_id in result.selected_ids if node_id not in whole)
