"""What makes loading cheaper, seen to before there is anything to load.

Some modules of the standard library are loaded by others at their start and hardly ever used: here they are loaded
once they are. Click loads `inspect`, with half a compiler behind it, and asks it to trim the help of each option;
`uuid`, which click loads for a type of options that we have none of, asks `platform` for the system's name;
`pathlib` and rooms of ours have a function of `urllib.parse` at hand for the few addresses there are; `shutil`
looks whether `bz2` and `lzma` can be loaded, for archives. They are a third of what it takes to load click.
"""

from __future__ import annotations

import gc
import os
import sys
from _thread import allocate_lock
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # as in `start`
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Deferred", "collect_seldom", "defer_seldom_used", "system_name", "trimmed"]

_LOCK = allocate_lock()


class Deferred(ModuleType):
    """Stands for a module, with something of it at hand, until anything else of it is asked for."""

    def __init__(self, name: str, at_hand: Mapping[str, Callable[..., object]]) -> None:
        super().__init__(name)
        self.__dict__.update(at_hand)

    def __getattr__(self, name: str) -> Any:
        """Return what the module has under a name; `from` asks each for `__path__`, and none is a package."""
        if name == "__path__":
            raise AttributeError(name)
        return getattr(_loaded(self.__name__), name)


def _loaded(name: str) -> Any:
    """Return the module itself; whoever loads it from now on has that one."""
    with _LOCK:
        if isinstance(sys.modules.get(name), Deferred):
            del sys.modules[name]
    return import_module(name)


def collect_seldom() -> None:
    """Look for cycles seldom: a command makes many values and hardly a cycle; so do the modules that it loads."""
    gc.set_threshold(200_000, 20, 20)


def defer_seldom_used() -> None:
    """Let whoever loads one of these modules from now on have what stands for it."""
    for name, at_hand in _SELDOM_USED.items():
        if name not in sys.modules:
            sys.modules[name] = stand_in = Deferred(name, at_hand)
            folder, _, rest = name.rpartition(".")
            if folder:
                setattr(import_module(folder), rest, stand_in)


def trimmed(text: str) -> str:
    """Return a text as `inspect.cleandoc` does, by itself unless there is a tab or another rare space in it."""
    words = text.replace("\n", "").replace(" ", "")
    if "".join(words.split()) != words:
        return str(_loaded("inspect").cleandoc(text))
    first, *others = text.split("\n")
    margin = min((len(line) - len(line.lstrip(" ")) for line in others if line.strip(" ")), default=0)
    return "\n".join([first.lstrip(" "), *(line[margin:] for line in others)]).strip("\n")


def system_name() -> str:
    """Return the system's name as `platform.system` does."""
    return os.uname().sysname


def _of(name: str, *functions: str) -> dict[str, Callable[..., object]]:
    """Return functions that load a module and call its own, for whoever takes them by name long before that."""

    def that_calls(function: str) -> Callable[..., object]:
        return lambda *words, **how: getattr(_loaded(name), function)(*words, **how)

    return {function: that_calls(function) for function in functions}


_SELDOM_USED: Mapping[str, Mapping[str, Callable[..., object]]] = {
    "bz2": {},
    "inspect": {"cleandoc": trimmed},
    "lzma": {},
    "platform": {"system": system_name},
    "urllib.parse": _of("urllib.parse", "quote_from_bytes", "urlsplit"),
}
