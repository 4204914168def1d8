"""One call that goes on in a thread of its own (`concurrent.futures` for it would load logging and more, 5 ms)."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Generic, Self, TypeVar

__all__ = ["Meanwhile"]

T = TypeVar("T")


class Meanwhile(Generic[T]):
    """Makes the call at once; leaving `with` waits for its end, and `result` gives what it returned or raised.

    One that `may_be_left` only reads: where something is raised meanwhile, nobody waits for it any more, nor does
    the process before it ends.
    """

    def __init__(self, call: Callable[[], T], *, may_be_left: bool = False) -> None:
        self._call = call
        self._found: list[T] = []
        self._error: BaseException | None = None
        self._may_be_left = may_be_left
        self._thread = Thread(target=self._run, daemon=may_be_left)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found.append(self._call())
        except BaseException as error:
            self._error = error

    def result(self) -> T:
        """Return what the call returned, once it has; raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not self._may_be_left:
            self._thread.join()
