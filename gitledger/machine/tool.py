"""Asks a tool of the machine a question, and waits no longer than it may."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["MAX_ANSWER_BYTES", "ask_tool"]

MAX_ANSWER_BYTES = 1 << 20
KILLED_WITHIN_S = 1.0
_HUNG: list[subprocess.Popen[bytes]] = []  # processes stuck in the kernel: kept, since nobody can wait for them


def ask_tool(argv: Sequence[str], *, env: Mapping[str, str], timeout_s: float) -> str | None:
    """Return what a tool found on `env`'s PATH prints; None if it is missing, fails, hangs, or says too much.

    A tool that hangs in its driver, out of reach of KILL, is left behind and not waited for. Its output goes to a
    file, so that nothing that it starts can hold us up; undecodable bytes become U+FFFD.
    """
    program = shutil.which(argv[0], path=env.get("PATH", os.defpath))
    if program is None or not Path(program).is_absolute():  # the current folder's tools are not the machine's
        return None
    with tempfile.TemporaryFile() as answer:
        try:
            tool = subprocess.Popen(
                [program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=subprocess.DEVNULL,
                env={**env, "LC_ALL": "C"},
                cwd="/",
                start_new_session=True,
            )
        except (OSError, ValueError):
            return None
        try:
            status = tool.wait(timeout_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end_group(tool)
        size = os.fstat(answer.fileno()).st_size
        if status != 0 or size > MAX_ANSWER_BYTES:
            return None
        answer.seek(0)
        return answer.read(MAX_ANSWER_BYTES).decode("utf-8", "replace")


def _end_group(tool: subprocess.Popen[bytes]) -> None:
    """KILL the tool where it still runs; the bounded wait is for those that can't be killed."""
    if tool.returncode is not None:
        return
    with contextlib.suppress(OSError):
        os.killpg(tool.pid, signal.SIGKILL)
    try:
        tool.wait(KILLED_WITHIN_S)
    except subprocess.TimeoutExpired:
        _HUNG.append(tool)
