"""The configuration as it lies in the work tree, where it is not the commit's: it counts once it is committed."""

from __future__ import annotations

from collections.abc import Sequence

from gitledger.config.schema import CONFIG_PATH, Config
from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError
from gitledger.records.ids import CommitId
from gitledger.store.repository import Repository
from gitledger.wording import from_top, suggested

__all__ = ["ConfigAtHand", "config_at_hand"]

COMMIT = f"git commit {from_top(CONFIG_PATH)}"
BRING_BACK = f"git checkout HEAD -- {from_top(CONFIG_PATH)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigAtHand:
    """An edited configuration: what it declares, or what is wrong with it; neither where it was deleted."""

    config: Config | None
    error: ConfigError | None

    @property
    def sentence(self) -> str:
        """Return what somebody who has edited it should know before they wonder why nothing changes."""
        if self.error is not None:
            why = f"{self.error.message} [{self.error.code}]{suggested(self.error.hint)}"
            return f"the configuration is edited and not committed, and broken: {why}"
        if self.config is None:
            return f"the configuration is deleted and not committed; HEAD's counts until that is: {BRING_BACK}"
        return f"the configuration is edited and not committed; it counts once it is: {COMMIT}"

    def mends(self, error: ConfigError, shards: Sequence[str]) -> bool:
        """Tell whether committing it would do away with an error of the committed one.

        `shards` are those that were asked for.
        """
        if self.config is None or error.code == "no-config":
            return False
        try:
            for name in shards:
                self.config.keys_named(name)
        except ConfigError:
            return False
        return True

    def hint(self, error: ConfigError, shards: Sequence[str]) -> str:
        """Return what mends an error of the committed configuration: the commit, where that does."""
        if not self.mends(error, shards):
            return error.hint
        return f"{COMMIT} (the configuration is edited and not committed; it counts once it is)"


def config_at_hand(repo: Repository, commit: CommitId) -> ConfigAtHand | None:
    """Return the edited or deleted configuration beside a commit that is checked out; None where there is no edit.

    What lies there must differ for git as well: a filter or other line ends alone are no edit.
    """
    if repo.worktree is None or commit != repo.head():
        return None
    text: bytes | None = None
    try:
        text = (repo.worktree / CONFIG_PATH).read_bytes()
    except FileNotFoundError:
        pass  # deleted, or beyond a sparse checkout, which is no edit for git
    except OSError:
        return None
    committed = repo.file_at(commit, CONFIG_PATH)
    if committed is None or text == committed or not _differs(repo):
        return None
    if text is None:
        return ConfigAtHand(config=None, error=None)

    from gitledger.config.load import load_config

    try:
        return ConfigAtHand(config=load_config(text, source=CONFIG_PATH), error=None)
    except ConfigError as error:
        return ConfigAtHand(config=None, error=error)


def _differs(repo: Repository) -> bool:
    asked = ("diff", "--no-ext-diff", "--quiet", "HEAD", "--", f":/{CONFIG_PATH}")
    return repo.git.run(*asked, statuses=frozenset({0, 1})).status == 1
