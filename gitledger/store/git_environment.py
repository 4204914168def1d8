"""The environment that git is run with: what points at other repositories, and keys, stay out of it.

It loads next to nothing, so that git can be started before all else.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AGENT_VARIABLES", "REPOSITORY_VARIABLES", "scrubbed", "without_repository"]

REPOSITORY_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_DIR",
        "GIT_GLOB_PATHSPECS",
        "GIT_GRAFT_FILE",
        "GIT_ICASE_PATHSPECS",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_LITERAL_PATHSPECS",
        "GIT_NAMESPACE",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""What a hook inherits and what would point git at another repository, index or object store.

After `git rev-parse --local-env-vars`; configuration given by `git -c` (GIT_CONFIG_PARAMETERS, GIT_CONFIG_COUNT)
is left alone, since credentials and proxies travel in it.
"""

KEY_VARIABLE = "GITLEDGER_SIGNING_KEY"
"""May hold a private key: git never needs it, and git runs hooks, filters and helpers that anybody configured."""
AGENT_VARIABLES = ("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "GIT_ASKPASS")
"""What can sign or ask for a passphrase: git needs it to reach remotes, and for nothing else."""


def without_repository(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` without the variables that point git at a certain repository."""
    return {name: value for name, value in env.items() if name not in REPOSITORY_VARIABLES}


def scrubbed(env: Mapping[str, str], *, interactive: bool = False) -> dict[str, str]:
    """Return what git sees of `env`; unless `interactive`, it never asks on the terminal."""
    found = without_repository(env)
    found.pop(KEY_VARIABLE, None)
    found |= {"LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
    found.pop("LANGUAGE", None)
    if not interactive:
        found["GIT_TERMINAL_PROMPT"] = "0"
    return found
