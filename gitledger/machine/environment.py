"""What a run stands on, as the record keeps it: no host name, no user name, no path of the machine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from gitledger.machine.gpu import visible_gpus
from gitledger.machine.tool import ask_tool
from gitledger.records.environment import Environment, Platform

__all__ = ["environment_facts", "host_name", "libc_version", "platform_facts"]

LOADER_TIMEOUT_S = 5.0


def environment_facts(
    *,
    env: Mapping[str, str],
    python: str | None,
    pytest: str | None,
    coverage: str | None,
    gitledger: str,
    gpu_uuid: bool,
    torch_python: str | None = None,
) -> Environment:
    """Return the facts of a run with this environment; versions are handed in by whoever learnt them from the run.

    `torch_python` names an interpreter whose torch may be asked for GPUs that no vendor's tool tells of. Never
    raises.
    """
    return Environment(
        python=python,
        platform=platform_facts(env),
        pytest=pytest,
        gitledger=gitledger,
        coverage=coverage,
        gpu=visible_gpus(env, uuids=gpu_uuid, torch_python=torch_python),
    )


def host_name() -> str:
    """Return this machine's name, to tell it from others that work on the same disk; no record keeps it."""
    return os.uname().nodename


def platform_facts(env: Mapping[str, str]) -> Platform:
    """Return the system and machine as uname(1) prints them, and the C library."""
    names = os.uname()
    return Platform(system=names.sysname, machine=names.machine, libc=libc_version(env))


def libc_version(env: Mapping[str, str], *, loaders: Path = Path("/lib")) -> str | None:
    """Return the C library and its version (`glibc 2.36`, `musl 1.2.4`); None where there is no way to ask.

    glibc answers confstr(3); musl only prints its version where its loader is run without arguments.
    """
    try:
        answer = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError, AttributeError):
        answer = None
    if answer:
        return answer.strip()[:64]
    for loader in sorted(loaders.glob("ld-musl-*.so.1"))[:1]:
        question = ["sh", "-c", '"$1" 2>&1 || :', "sh", str(loader)]
        said = ask_tool(question, env=env, timeout_s=LOADER_TIMEOUT_S) or ""
        if match := re.search(r"musl libc.*?^Version ([0-9][\w.-]{0,30})", said, re.DOTALL | re.MULTILINE):
            return f"musl {match[1]}"
    return None
