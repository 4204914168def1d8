"""Where a run left its traces, and what it came to."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gitledger.dataclass import dataclass

if TYPE_CHECKING:  # who starts a command waits for none of these
    from gitledger.machine.child import ChildExit
    from gitledger.records.bodies import Inputs
    from gitledger.store.edits import Edits
    from gitledger.suites.report_file import FileStamp
    from gitledger.suites.result import SuiteResult

__all__ = ["Executed", "Scene"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """What ran and how it ended (`ended` None: nothing ran). `reasons` are the recorder's own against it.

    `coverage` is the body of its fragment, None where it measured nothing. `after` looks at the work tree as the
    command left it, None where nobody has begun to.
    """

    ended: ChildExit | None
    started_at: datetime
    ended_at: datetime
    result: SuiteResult
    argv: tuple[str, ...]
    reasons: tuple[str, ...]
    log_text: str = ""
    coverage: bytes | None = None
    inputs: Inputs | None = None
    after: Edits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where a run left its traces. `earlier` is its report file as it was before, `nonce` binds its journal.

    `as_declared`: its command line, and the variables that change what it runs, were the declared ones.
    """

    folder: Path
    log: Path
    nonce: str
    argv: tuple[str, ...]
    as_declared: bool
    earlier: FileStamp | None

    @property
    def journal(self) -> Path:
        """What our plugin writes."""
        return self.folder / "journal"

    @property
    def plugin(self) -> Path:
        """The folder of the plugin's companion, in which the coverage data lies."""
        return self.folder / "plugin"

    @property
    def observed(self) -> Path:
        """What the observer writes; the folder itself holds what it is loaded from."""
        return self.folder / "observer" / "observed"
