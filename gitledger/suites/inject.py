"""The child's environment: where its journal goes, the plugin's copy, and nothing that can sign."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gitledger.suites.copies import copy_module, write_loader

__all__ = ["INJECTED_MODULE", "PLUGIN_MODULE", "WITHHELD", "child_environment", "with_observer"]

INJECTED_MODULE = "_gitledger_journal"
"""The name under which a child loads its copy of the plugin; no distribution's module has it."""
PLUGIN_MODULE = "_gitledger_plugin"
"""The name under which pytest loads that copy."""
COMPARE_MODULE = "_gitledger_compare"
"""The name of the copy of `compare.py` beside it."""
OBSERVE_MODULE = "_gitledger_observe"
"""The name of the copy of `observe.py`; it lies in a folder of its own, which the child's children see as well."""

WITHHELD = ("GITLEDGER_SIGNING_KEY", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "GIT_ASKPASS")
"""Variables that hold a key or ask for one. The agent's socket is withheld too, unless asked for."""
_AGENT = ("SSH_AUTH_SOCK", "SSH_AGENT_PID")


def child_environment(
    base: Mapping[str, str],
    *,
    journal: Path,
    nonce: str,
    folder: Path,
    pass_agent: bool = False,
    marker: str | None = None,
    dump_signal: int = 0,
) -> dict[str, str]:
    """Return the environment in which the first pytest run of a child writes `journal`.

    `folder` must be fresh and outside the tree: the plugin's copy is written into it. It loads as well where
    plugins don't load by themselves (`PYTEST_DISABLE_PLUGIN_AUTOLOAD`), and takes itself out of the environment
    that tests see. Key variables are withheld, the agent's socket unless `pass_agent`. With `marker` the suite is
    the tests that have it. At `dump_signal` pytest writes its stacks to stderr. Raises `OSError`.
    """
    copy_module("plugin.py", folder, INJECTED_MODULE)
    copy_module("compare.py", folder, COMPARE_MODULE)
    write_loader(folder, PLUGIN_MODULE, INJECTED_MODULE)
    env = without_keys(base, pass_agent=pass_agent)
    env["GITLEDGER_JOURNAL"] = str(journal)
    env["GITLEDGER_NONCE"] = nonce
    env["GITLEDGER_PLUGIN"] = INJECTED_MODULE
    if marker is not None:
        env["GITLEDGER_MARKER"] = marker
    if dump_signal:
        env["GITLEDGER_DUMP_SIGNAL"] = str(int(dump_signal))
    env["GITLEDGER_RECORDING"] = "1"
    env["PYTHONPATH"] = _joined(os.pathsep, str(folder), env.get("PYTHONPATH", ""))
    env["PYTEST_PLUGINS"] = _joined(",", env.get("PYTEST_PLUGINS", ""), PLUGIN_MODULE)
    return env


def with_observer(env: Mapping[str, str], *, folder: Path, root: Path) -> tuple[dict[str, str], Path]:
    """Return the environment in which Python processes tell which files below `root` they read, and where they do.

    `folder` must be fresh and outside the tree. Unlike the plugin, the observer stays in the environment: Python
    programs that tests start are to be observed too. Raises `OSError`.
    """
    copy_module("observe.py", folder, OBSERVE_MODULE)
    copy_module("sitecustomize.py", folder, "sitecustomize")
    log = folder / "observed"
    log.touch(mode=0o600)
    # The file's own change time: the clock that stamps files lags behind the one that processes read.
    began = log.stat().st_ctime_ns
    changed = dict(env)
    changed["GITLEDGER_OBSERVED"] = f"{began}\n{log}\n{root.resolve()}"
    changed["PYTHONPATH"] = _joined(os.pathsep, str(folder), env.get("PYTHONPATH", ""))
    return changed, log


def without_keys(base: Mapping[str, str], *, pass_agent: bool = False) -> dict[str, str]:
    """Return `base` without what could sign or ask for a passphrase."""
    withheld = WITHHELD if pass_agent else (*WITHHELD, *_AGENT)
    return {name: value for name, value in base.items() if name not in withheld}


def _joined(separator: str, *parts: str) -> str:
    return separator.join(part for part in parts if part)
