"""A call in a thread of its own."""

from __future__ import annotations

import threading

import pytest

from gitledger.store.meanwhile import Meanwhile


def test_it_goes_on_beside_us_and_gives_what_it_returned():
    there = threading.Event()
    with Meanwhile(lambda: there.wait(30)) as call:
        there.set()
    assert call.result() is True
    assert call.result() is True


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt()])
def test_what_it_raises_is_raised_where_its_result_is_asked_for(error):
    def fail() -> None:
        raise error

    with Meanwhile(fail) as call:
        pass
    with pytest.raises(type(error)):
        call.result()


def test_leaving_waits_for_its_end_whatever_is_raised_meanwhile():
    done = []
    go = threading.Event()

    def work() -> None:
        go.wait(30)
        done.append(True)

    def fail() -> None:
        go.set()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Meanwhile(work):
        fail()
    assert done == [True]


def test_one_that_may_be_left_is_awaited_only_where_nothing_is_raised():
    go, done = threading.Event(), []

    def work() -> None:
        go.wait(30)
        done.append(True)

    with pytest.raises(ZeroDivisionError), Meanwhile(work, may_be_left=True):
        raise ZeroDivisionError
    assert done == []
    with Meanwhile(work, may_be_left=True):
        go.set()
    assert True in done
