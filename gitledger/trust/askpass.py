"""Asking for a passphrase as OpenSSH asks: on the terminal, or through the program in SSH_ASKPASS (ssh(1))."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from gitledger.trust.private_keys import Passphrase

__all__ = ["asker"]

ASK_TIMEOUT_S = 300


def asker(environ: Mapping[str, str], *, has_terminal: bool) -> Passphrase:
    """Return a function that asks once for a passphrase, and returns None where nobody can be asked.

    `SSH_ASKPASS_REQUIRE` is honoured: `never` keeps to the terminal, `prefer` and `force` go to the program.
    """
    require = environ.get("SSH_ASKPASS_REQUIRE", "")
    program = environ.get("SSH_ASKPASS", "") if require != "never" else ""

    def ask(where: str) -> bytes | None:
        prompt = f"Enter passphrase for key '{where}': "
        if program and (require in ("prefer", "force") or not has_terminal):
            return _ask_program(program, prompt, environ)
        import getpass  # most keys need no passphrase

        return getpass.getpass(prompt).encode() if has_terminal and require != "force" else None

    return ask


def _ask_program(program: str, prompt: str, environ: Mapping[str, str]) -> bytes | None:
    try:
        done = subprocess.run(
            [str(Path(program).expanduser()), prompt],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.removesuffix(b"\n").removesuffix(b"\r") if done.returncode == 0 else None
