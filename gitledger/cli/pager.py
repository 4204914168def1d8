"""A pager as git chooses it, for what is longer than a screen."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitledger.cli.output import Output

if TYPE_CHECKING:
    from gitledger.workflows.session import Session

__all__ = ["find_pager", "page"]

_NOT_STARTED = (126, 127)
_OFF = frozenset({"false", "no", "off", "0"})
_DEFAULTS = {"LESS": "FRX", "LV": "-c"}
"""What git sets where the person has not: colours, no pager for what fits, and the text stays on the screen."""


def find_pager(session: Session | None, environ: Mapping[str, str]) -> str | None:
    """Return the pager's command, None where there is to be none. Outside of a repository the environment says it.

    It is what git says (`git var GIT_PAGER`: GIT_PAGER, `core.pager`, PAGER, its own default), so that
    `git --no-pager ledger` pages nothing either; `pager.ledger` switches it off.
    """
    if session is None:
        found = environ.get("GIT_PAGER") or environ.get("PAGER") or "less"
        return None if found == "cat" else found
    if (session.repo.config("pager.ledger") or "").strip().lower() in _OFF:
        return None
    found = session.repo.git.run("var", "GIT_PAGER", statuses=frozenset({0, 1, 128})).text.strip()
    return None if found in ("", "cat") else found


def page(output: Output, session: Session | None, text: str, *, no_pager: bool = False) -> None:
    """Write a text to stdout; where that is a terminal, through the pager."""
    pager = None if no_pager or not sys.stdout.isatty() else find_pager(session, output.environ)
    if pager is None or not _shown(pager, text, output.environ):
        output.result(text)


def _shown(pager: str, text: str, environ: Mapping[str, str]) -> bool:
    """Tell whether the pager took the text; one that can't be started did not."""
    sys.stdout.flush()
    content = text if text.endswith("\n") else text + "\n"
    # Ctrl-C is the pager's while it runs. A handler, and not to be ignored: that the pager would inherit.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        done = subprocess.run(
            ["sh", "-c", pager],
            input=content.encode(sys.stdout.encoding, sys.stdout.errors or "backslashreplace"),
            env={**_DEFAULTS, **environ},
            check=False,
        )
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return done.returncode not in _NOT_STARTED
