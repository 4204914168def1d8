"""Our own `@dataclass` is the standard one, but for when its methods are written."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import InitVar, field
from typing import Any, ClassVar

import pytest

from gitledger.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: int = 0
    names: list[str] = field(default_factory=list, compare=False)
    secret: str = field(default="s", repr=False)

    @property
    def sum(self) -> int:
        return self.x + self.y


@dataclass(slots=True)
class Counter:
    number: int = 0
    seen: set[int] = field(default_factory=set)
    started: float = field(default=1.5, init=False)


@dataclass(frozen=True, slots=True)
class One:
    value: float


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


def _both(body: Callable[[], dict[str, Any]], **how: bool) -> tuple[Any, Any]:
    """Return the class that ours makes of a body, and the standard one's."""
    ours = dataclass(slots=True, **how)(type("Made", (), body()))
    standard = dataclasses.dataclass(slots=True, **how)(type("Made", (), body()))
    return ours, standard


def _told(call: Callable[[], object]) -> object:
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("kw_only", [True, False])
@pytest.mark.parametrize(
    ("types", "given"),
    [
        ({}, dict),
        ({"a": "int"}, dict),
        ({"a": "int", "b": "str"}, lambda: {"b": "x"}),
        ({"a": "int", "b": "list"}, lambda: {"b": field(default_factory=list)}),
        (
            {"a": "int", "b": "int", "c": "int"},
            lambda: {"b": field(repr=False, compare=False), "c": field(default=3)},
        ),
        ({"a": "int", "b": "int"}, lambda: {"b": field(default=7, init=False)}),
        ({"a": "int", "b": "list"}, lambda: {"b": field(default_factory=list, init=False)}),
        ({"a": "float"}, lambda: {"__hash__": lambda self: 5}),
        ({"a": "int"}, lambda: {"__eq__": lambda self, other: True}),
        ({"a": "int"}, lambda: {"__repr__": lambda self: "mine"}),
    ],
)
def test_agrees_with_the_standard_one(types, given, frozen, kw_only) -> None:
    def body() -> dict[str, Any]:
        return {"__annotations__": dict(types), "__module__": __name__, "__doc__": "d", **given()}

    ours, standard = _both(body, frozen=frozen, kw_only=kw_only)
    assert ours.__slots__ == standard.__slots__
    assert ours.__match_args__ == standard.__match_args__
    assert (ours.__hash__ is None) == (standard.__hash__ is None)
    shown = [
        (one.name, one.type, one.init, one.repr, one.compare, one.kw_only) for one in dataclasses.fields(ours)
    ]
    assert shown == [
        (one.name, one.type, one.init, one.repr, one.compare, one.kw_only) for one in dataclasses.fields(standard)
    ]
    for words in ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)):
        for names in ({}, {"a": 1}, {"a": 1, "b": 2}, {"a": 1, "c": 2}, {"z": 1}):

            def outcome(kind: Any, words: Any = words, names: Any = names) -> object:
                value = kind(*words, **names)
                again = kind(*words, **names)
                return (
                    repr(value),
                    value == again,
                    value == object(),
                    _told(lambda: hash(value) == hash(again)),
                    _told(lambda: dataclasses.asdict(value)),
                    _told(lambda: repr(dataclasses.replace(value, a=9))),
                    # (the standard one, slotted, forgets its own error for what is no field)
                    _told(lambda: setattr(value, "a", 2)) is None,
                    _told(lambda: setattr(value, "unheard", 2)) is None,
                    _told(lambda: delattr(value, "a")) is None,
                    _told(lambda: repr(copy.copy(value))),
                )

            assert _told(lambda: outcome(ours)) == _told(lambda: outcome(standard))


def test_values_are_frozen_slotted_and_told_apart() -> None:
    point = Point(1, 2)
    assert repr(point) == "Point(x=1, y=2, names=[])"
    assert point == Point(1, 2, ["other"])
    assert point != Point(1, 2, secret="t")
    assert len({point, Point(1, 2), Point(2, 1)}) == 2
    assert point.sum == 3
    assert not hasattr(point, "__dict__")
    for act in (lambda: setattr(point, "x", 5), lambda: setattr(point, "z", 5), lambda: delattr(point, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            act()
    assert pickle.loads(pickle.dumps(point)) == point == copy.deepcopy(point)
    assert Point.__doc__ == "A point."
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_each_value_has_a_list_of_its_own() -> None:
    first, second = Counter(), Counter()
    first.seen.add(1)
    first.number += 1
    assert (second.seen, second.number, second.started) == (set(), 0, 1.5)


def test_standard_functions_take_it_for_a_dataclass() -> None:
    assert dataclasses.is_dataclass(Point)
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 0, "names": [], "secret": "s"}
    assert dataclasses.replace(Point(1), y=4) == Point(1, 4)
    assert [one.name for one in dataclasses.fields(Counter())] == ["number", "seen", "started"]


def test_post_init_can_refuse() -> None:
    @dataclass(frozen=True, slots=True)
    class Even:
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("odd")

    for _ in range(2):
        with pytest.raises(ValueError, match="odd"):
            Even(1)
    assert Even(2).number == 2


def test_a_subclass_inherits_and_may_have_attributes_of_its_own() -> None:
    class More(Point):
        def __init__(self) -> None:
            super().__init__(1, 2)
            self.note = "kept"

    assert (More().x, More().note, dataclasses.fields(More)[0].name) == (1, "kept", "x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        More().x = 2


@pytest.mark.parametrize("number", [float("nan"), 0.0])
def test_one_field_is_compared_as_the_standard_one_compares_it(number: float) -> None:
    """As it compares before Python 3.13, which holds a number that isn't one against itself and finds it unequal."""
    standard = dataclasses.make_dataclass("One", [("value", float)], frozen=True, slots=True)
    same, kept = One(number), standard(number)
    if sys.version_info < (3, 13) or number == number:
        assert (same == same, same == One(number)) == (kept == kept, kept == standard(number))
    assert same == same
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(())


def test_refuses_what_it_does_not_do() -> None:
    with pytest.raises(TypeError, match="slots=True"):
        dataclass(slots=False)
    for types, bases in (
        ({"a": "InitVar[int]"}, ()),
        ({"a": "ClassVar[int]"}, ()),
        ({"a": InitVar[int]}, ()),
        ({"a": ClassVar[int]}, ()),
        ({"a": "int"}, (Point,)),
    ):
        with pytest.raises(TypeError, match=r"use dataclasses\.dataclass"):
            dataclass(slots=True)(type("Odd", bases, {"__annotations__": types}))


def test_no_method_is_written_before_it_is_called() -> None:
    code = (
        "import builtins, sys; written = []; real = builtins.exec\n"
        "builtins.exec = lambda *words: (written.append(str(words[0])[:40]), real(*words))[1]\n"
        "import gitledger.workflows.judge\n"
        "from gitledger.records.ids import ShardKey\n"
        "ours = lambda: [one for one in written if one.startswith('def __init__')]\n"
        "at_import = len(ours())\n"
        "assert at_import < 20, ours()  # of some 130 classes: those whose values are defaults\n"
        "ShardKey('a'); ShardKey('b')\n"
        "assert len(ours()) == at_import + 1, ours()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
