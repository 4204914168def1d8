"""Whether the push that a hook belongs to is a dry run: git tells its hooks nothing of `--dry-run`.

What can be seen is git's own command line. In doubt the push is taken for a real one: an alias that a shell runs,
or a system that shows no command lines, hides the word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["is_dry_push"]

_GIT_VALUES = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source", "--super-prefix"}
)
"""Options of git itself whose value is the next word: git(1)."""
_PUSH_VALUES = frozenset({"-o", "--push-option", "--receive-pack", "--exec", "--repo", "--recurse-submodules"})
"""Options of `git push` whose value may be the next word: git-push(1)."""
_SHORTEST = "dr"
"""git takes options by their unambiguous beginnings; `--d` may be `--delete`."""


def is_dry_push(commands: Iterable[Sequence[str]]) -> bool:
    """Tell it from the command lines above a hook, nearest first: the nearest `git push` is the one."""
    for words in commands:
        arguments = _push_arguments(words)
        if arguments is not None:
            return _is_dry(arguments)
    return False


def _push_arguments(words: Sequence[str]) -> Sequence[str] | None:
    """Return the words behind `git push`, None for any other command."""
    program = words[0].rpartition("/")[2].removesuffix(".exe")
    if program == "git-push":
        return words[1:]
    if program != "git":
        return None
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _GIT_VALUES else 1
    is_push = place < len(words) and words[place] == "push"
    return words[place + 1 :] if is_push else None


def _is_dry(arguments: Sequence[str]) -> bool:
    """Tell whether the options say so, the last of them where they contradict each other."""
    dry, rest = False, iter(arguments)
    for word in rest:
        if word == "--":
            break
        if word in _PUSH_VALUES:
            next(rest, None)
        elif word.startswith("--"):
            name = word[2:].removeprefix("no-")
            if name.startswith(_SHORTEST) and "dry-run".startswith(name):
                dry = not word.startswith("--no-")
        elif word.startswith("-") and "n" in word[1:].partition("o")[0]:
            dry = True
    return dry
