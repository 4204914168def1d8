"""Runs a probe in a process of its own, under the machine room's keeper: whatever it does, there is an answer.

The probe's interpreter may be another one than ours (`python`), with its own torch; it needs none of our
packages: a folder that holds nothing but this package comes first on its path.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.lanes.journal import ProbeJournal, read_journal
from gitledger.lanes.model import FoundModel
from gitledger.lanes.task import LaneTask
from gitledger.machine.child import ChildExit, run_child
from gitledger.machine.interrupts import Interrupts
from gitledger.machine.redact import excerpt, secret_values
from gitledger.records.capability import MAX_EXCERPT_BYTES
from gitledger.records.capability_recipes import SEED

__all__ = ["Limits", "ProbeRun", "World", "ask_names", "ask_recipe", "run_probe"]

_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from gitledger.lanes.probe.main import main; main(sys.argv[2])"
)
_SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONUNBUFFERED": "1",
    "PYTHONHASHSEED": "0",
    # One process compiles, none is left behind, and no header is compiled ahead for a cache that is thrown away.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}
"""Offline, and reproducible: a probe downloads nothing, and a killed one leaves no lock behind."""
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
ASK_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a probe is started with: interpreter, environment (without keys), clock."""

    python: str
    environ: Mapping[str, str]
    clock: Callable[[], datetime]
    home: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a recipe may take in all, and how long it may say nothing; seconds, None for no limit."""

    timeout_s: float | None = 1800.0
    stall_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRun:
    """What a probe wrote, how its process ended, and the excerpt of its log."""

    journal: ProbeJournal
    ended: ChildExit
    log_excerpt: str


def run_probe(
    task: LaneTask, model: FoundModel, world: World, limits: Limits, interrupts: Interrupts | None = None
) -> ProbeRun:
    """Return how one recipe went; raises `MachineError` where its process can't be started at all."""
    start, end = task.layers or (0, None)
    request = {
        "ask": "forward",
        "recipe": task.recipe.id,
        "recipe_version": task.recipe.version,
        "recipe_digest": task.recipe.digest,
        "form": model.form,
        "root": str(model.root.resolve()),
        "main": model.main,
        "files": [file.encode() for file in model.claim.files],
        "start": start,
        "end": end,
        "quantization": task.quantization,
        "device": task.device,
        "seed": SEED,
    }
    return _run(request, world, limits, interrupts)


def ask_names(world: World) -> ProbeRun:
    """Return the ids of what the interpreter's packages offer; `journal.recipes` holds them, unchecked."""
    return _run({"ask": "names"}, world, Limits(timeout_s=ASK_TIMEOUT_S), None)


def ask_recipe(recipe: str, world: World) -> ProbeRun:
    """Return what one offered recipe is; `journal.recipes` holds it, unchecked."""
    return _run({"ask": "recipe", "recipe": recipe}, world, Limits(timeout_s=ASK_TIMEOUT_S), None)


def _run(request: dict[str, Any], world: World, limits: Limits, interrupts: Interrupts | None) -> ProbeRun:
    with _folder() as folder:
        journal, log, nonce = folder / "journal", folder / "log", secrets.token_hex(16)
        journal.touch(mode=0o600)
        asked = folder / "request.json"
        asked.write_text(json.dumps({**request, "journal": str(journal), "nonce": nonce}), "utf-8")
        work = folder / "work"
        work.mkdir()
        path = folder / "path"
        path.mkdir()
        (path / "gitledger").symlink_to(Path(__file__).resolve().parents[1], target_is_directory=True)
        ended = run_child(
            [world.python, "-c", _BOOT, str(path), str(asked)],
            cwd=work,
            env=_environment(world.environ, folder),
            log=log,
            clock=world.clock,
            timeout_s=limits.timeout_s,
            stall_s=limits.stall_s,
            progress=lambda: journal.stat().st_size,
            dump_signal=signal.SIGUSR1,
            interrupts=interrupts,
        )
        return ProbeRun(
            journal=read_journal(journal, nonce),
            ended=ended,
            log_excerpt=_excerpt(log, folder, world),
        )


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gitledger-lane-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _environment(base: Mapping[str, str], folder: Path) -> dict[str, str]:
    caches = {name: str(folder / "work" / name.lower()) for name in _CACHES}
    return {**base, **_SETTINGS, **caches, "TMPDIR": str(folder / "work")}


def _excerpt(log: Path, folder: Path, world: World) -> str:
    """Return the log's excerpt, without secrets and without the paths that say whose machine it is."""
    text = excerpt(log, MAX_EXCERPT_BYTES, secret_values(world.environ))
    for place, word in ((str(folder), "."), (os.fspath(world.home), "~")):
        if len(place) > 1:
            text = text.replace(place, word)
    return text
