"""Starts the observer in whatever Python process finds this file first, then hands on to the one it hides.

Copied beside `_gitledger_observe.py`. Any Python may meet it, so the syntax is that of all of them.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120


def _hand_on():
    # type: () -> None
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    import _gitledger_observe  # type: ignore[import-not-found, unused-ignore]

    _gitledger_observe.start()
except Exception:  # noqa: S110 - a process that can't be observed runs all the same
    pass
# Imports of the observed process find nothing here; its children find this folder by PYTHONPATH.
sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _HERE]  # noqa: PTH100
_hand_on()
