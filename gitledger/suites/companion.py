"""Beside the witness inside pytest: runs one part of a split, and leaves coverage's threshold to the merge.

PYTEST_DONT_REWRITE. Copied with `cut.py` into environments that have no git-ledger, so it needs nothing but the
standard library and pytest (Python 3.8, pytest 7.0 and later). It acts in the one run that the witness
(`plugin.py`) journals, in its xdist workers, and in no other.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

PART_VARIABLE = "GITLEDGER_PART"
DURATIONS_VARIABLE = "GITLEDGER_DURATIONS"
MEASURED_VARIABLE = "GITLEDGER_MEASURED"
COVERAGE_VARIABLE = "COVERAGE_FILE"
CUT_MODULE = "_gitledger_cut"
_LOADER = "_gitledger_companion_plugin"
"""The two lines by which pytest loads this copy."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Join the run that is journaled, once its witness is there."""
    manager = config.pluginmanager
    worker = manager.getplugin("gitledger-worker")
    witness = worker or manager.getplugin("gitledger-recorder")
    if witness is None or manager.hasplugin("gitledger-companion"):
        return
    part = os.environ.get(PART_VARIABLE)
    if part:
        index, total = (int(number) for number in part.split("/"))
        with open(os.environ[DURATIONS_VARIABLE], "rb") as file:  # noqa: PTH123
            durations = file.read()
        manager.register(_Part(witness, index, total, durations or None), "gitledger-part")
    manager.register(_Companion(config, os.environ.get(MEASURED_VARIABLE)), "gitledger-companion")
    if worker is not None:
        _withdraw()


def _withdraw() -> None:
    """Take this copy out of the environment, so that pytest runs started by tests don't load it."""
    for variable in (PART_VARIABLE, DURATIONS_VARIABLE, MEASURED_VARIABLE):
        os.environ.pop(variable, None)
    names = [name for name in os.environ.get("PYTEST_PLUGINS", "").split(",") if name not in ("", _LOADER)]
    if names:
        os.environ["PYTEST_PLUGINS"] = ",".join(names)
    else:
        os.environ.pop("PYTEST_PLUGINS", None)


class _Part:
    """Keeps the tests of one part and deselects the others, after every other choice was made."""

    def __init__(self, witness: Any, index: int, total: int, durations: bytes | None) -> None:
        self._witness = witness
        self._index, self._total = index, total
        self._durations = durations
        self._lines: list[str] = []

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        yield
        self._witness.cut_from(items)
        cut: Any = __import__(CUT_MODULE)
        durations = cut.read_durations(self._durations)
        try:
            ids = [item.nodeid for item in items]
            files = cut.files_of_part(ids, self._index, self._total, durations)
        except cut.TooManyPartsError as error:
            self._lines.append(f"git ledger: ERROR: part {self._index} of {self._total}: {error}")
            files = frozenset()
        rest = [item for item in items if cut.file_of(item.nodeid) not in files]
        items[:] = [item for item in items if cut.file_of(item.nodeid) in files]
        if rest:
            config.hook.pytest_deselected(items=rest)
        self._lines += [f"git ledger: warning: {text}" for text in durations.warnings]
        counts = f"{_count(len(files), 'file')}, {_count(len(items), 'test')}"
        self._lines.append(f"git ledger: part {self._index} of {self._total}: {counts}")

    def pytest_report_collectionfinish(self) -> list[str]:
        return self._lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


class _Companion:
    """Says how coverage measures here, keeps its data file to this run, and switches its threshold off."""

    def __init__(self, config: pytest.Config, path: str | None) -> None:
        self._config = config
        self._path = path

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Note the facts, once whatever measures has started: pytest-cov does by the session's start."""
        if self._path is not None and not hasattr(self._config, "workerinput"):
            facts = _facts(self._config)
            if facts is not None:
                with open(self._path, "w", encoding="ascii") as file:  # noqa: PTH123
                    json.dump(facts, file)
        if self._config.pluginmanager.hasplugin("dsession"):
            return  # no test runs here, and workers that replace others still have to find it all
        _withdraw()
        if "COVERAGE_PROCESS_START" not in os.environ:
            os.environ.pop(COVERAGE_VARIABLE, None)  # a nested run's data would overwrite ours

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, None, None]:
        """Let no part of a suite be judged by the whole suite's threshold; the merge applies it, once."""
        plugin = self._config.pluginmanager.getplugin("_cov")
        if plugin is not None:
            if getattr(getattr(plugin, "options", None), "cov_fail_under", None) is not None:
                plugin.options.cov_fail_under = 0
            _keep_paths(getattr(plugin, "cov_controller", None))
        yield


def _keep_paths(controller: Any) -> None:
    """Keep pytest-cov, when it unites the data of this one run, from taking `pkg/a/x.py` for `a/x.py`.

    With `relative_files` coverage guesses that the one is the other (coveragepy issue 2072).
    """
    combining = getattr(controller, "combining_cov", None)
    if combining is not None and combining.get_option("run:relative_files"):
        combining.get_data()  # only the union shall not guess; the report names files as it always does
        combining.set_option("run:relative_files", False)


def _facts(config: pytest.Config) -> dict[str, Any] | None:
    """Return how coverage measures in this process, None where it does not."""
    module = sys.modules.get("coverage")
    plugin = config.pluginmanager.getplugin("_cov")
    controller = getattr(plugin, "cov_controller", None)
    active = getattr(controller, "cov", None)
    if active is None and module is not None:
        active = module.Coverage.current()
    if module is None or active is None:
        return None
    settings = active.config
    collector: Any = getattr(active, "_collector", None)
    config_file = getattr(settings, "config_file", None)
    return {
        "branch": bool(active.get_option("run:branch")),
        "config_file": os.path.abspath(config_file) if config_file else None,  # noqa: PTH100
        "core": str(collector.tracer_name()) if hasattr(collector, "tracer_name") else None,
        "cwd": str(getattr(controller, "topdir", None) or os.getcwd()),  # noqa: PTH109
        "data_file": os.path.abspath(settings.data_file),  # noqa: PTH100
        "executable": sys.executable,
        "version": str(module.__version__),
    }
