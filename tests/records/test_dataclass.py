"""Our own `@dataclass` is the standard one, but for when its methods are written."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import operator
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import InitVar, field
from typing import Any, ClassVar

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import gitledger.dataclass as room
from gitledger.dataclass import dataclass, replace


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


@pytest.mark.parametrize("few", [0, 1000], ids=["written", "filled"])
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
def test_agrees_with_the_standard_one(types, given, frozen, kw_only, few, monkeypatch) -> None:
    monkeypatch.setattr(room, "FEW", few)

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
                    _told(lambda: repr((replace if kind is ours else dataclasses.replace)(value, a=9))),
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


PLAIN, DEFAULT, FACTORY, UNSET, FIXED, PASSED = "plain", "default", "factory", "unset", "fixed", "passed"
KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    PLAIN: dict,
    DEFAULT: lambda: {"is": 7},
    FACTORY: lambda: {"is": field(default_factory=list)},
    UNSET: lambda: {"is": field(init=False)},
    FIXED: lambda: {"is": field(default=5, init=False, repr=False)},
    PASSED: dict,
}
"""What a field may be, and what stands in the class's body for it."""


@settings(max_examples=500, deadline=None)
@drawn(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), max_size=3),
    how=st.fixed_dictionaries({"frozen": st.booleans(), "kw_only": st.booleans(), "order": st.booleans()}),
    places=st.integers(0, 4),
    named=st.sets(st.sampled_from("abcx")),
    changed=st.sets(st.sampled_from("abcx")),
)
def test_filled_written_and_standard_take_and_refuse_the_same(kinds, how, places, named, changed) -> None:
    """Whatever the fields are and however the class is called: the first value, the twentieth, the standard one's."""

    def body() -> dict[str, Any]:
        names = dict(zip("abc", kinds, strict=False))
        types = {name: "InitVar[int]" if kind is PASSED else "int" for name, kind in names.items()}
        given = {name: one for name, kind in names.items() for one in KINDS[kind]().values()}
        passed = [name for name, kind in names.items() if kind is PASSED]

        def post_init(self: Any, *words: object) -> None:
            seen.append((passed, words))

        return {"__annotations__": types, "__module__": __name__, **given, "__post_init__": post_init}

    seen: list[object] = []

    def outcome(kind: Any, copied: Any) -> object:
        seen.clear()
        value = kind(*range(places), **dict.fromkeys(named, 9))
        other = kind(*range(places), **dict.fromkeys(named, 8))
        return (
            _told(lambda: repr(value)),
            _told(lambda: value == other),
            [_told(lambda test=test: test(value, other)) for test in (operator.lt, operator.le)],
            [_told(lambda test=test: test(value, other)) for test in (operator.gt, operator.ge)],
            _told(lambda: repr(copied(value, **dict.fromkeys(changed, 3)))),
            list(seen),
        )

    def without_place(told: object) -> object:
        """A class with slots forgets, in one wording, which of its classes a word was for."""
        return told if not isinstance(told, tuple) or told[0] != "TypeError" else "TypeError"

    def standard() -> object:
        kind = dataclasses.dataclass(slots=True, **how)(type("Made", (), body()))
        return outcome(kind, dataclasses.replace)

    ours = dataclass(slots=True, **how)(type("Made", (), body()))
    wanted = _told(standard)
    for _ in range(20):
        assert without_place(_told(lambda: outcome(ours, replace))) == without_place(wanted)


def test_order_is_by_the_fields_that_are_compared_and_among_its_own() -> None:
    @dataclass(frozen=True, slots=True, order=True)
    class Ranked:
        first: int
        second: str
        note: str = field(default="", compare=False)

    assert sorted([Ranked(2, "a"), Ranked(1, "b", "z"), Ranked(1, "a")])[1].note == "z"
    assert Ranked(1, "a", "x") <= Ranked(1, "a", "y") >= Ranked(1, "a", "x")
    with pytest.raises(TypeError, match="not supported"):
        Ranked(1, "a") < Point(1)  # type: ignore[operator]  # noqa: B015


def test_what_is_only_passed_on_is_kept_nowhere_and_not_copied() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Sealed:
        value: int
        seal: InitVar[object]

        def __post_init__(self, seal: object) -> None:
            if seal != "wax":
                raise ValueError("unsealed")

    for _ in range(20):
        one = Sealed(value=1, seal="wax")
        assert (repr(one).endswith("Sealed(value=1)"), one.__slots__) == (True, ("value",))
        assert [part.name for part in dataclasses.fields(one)] == ["value"]
        assert copy.deepcopy(one) == one
        for copied in (replace, dataclasses.replace):
            with pytest.raises((TypeError, ValueError), match="'seal' must be specified"):
                copied(one, value=2)
            assert copied(one, value=2, seal="wax").value == 2
        with pytest.raises(ValueError, match="unsealed"):
            Sealed(value=1, seal=None)
        with pytest.raises(TypeError, match="seal"):
            Sealed(value=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="InitVar with a default"):
        dataclass(slots=True)(type("Odd", (), {"__annotations__": {"a": "InitVar[int]"}, "a": 1}))


def test_a_class_may_watch_what_is_set() -> None:
    @dataclass(slots=True)
    class Watched:
        number: int

        def __setattr__(self, name: str, value: object) -> None:
            object.__setattr__(self, name, (name, value))

    assert {str(Watched(1).number) for _ in range(20)} == {"('number', 1)"}


def test_copies_of_standard_values_are_the_standard_ones() -> None:
    kind = dataclasses.make_dataclass("Kind", [("a", int), ("b", int)])
    assert replace(kind(1, 2), b=3) == kind(1, 3)


def test_refuses_what_it_does_not_do() -> None:
    with pytest.raises(TypeError, match="slots=True"):
        dataclass(slots=False)
    for types, bases in (
        ({"a": "ClassVar[int]"}, ()),
        ({"a": InitVar[int]}, ()),
        ({"a": ClassVar[int]}, ()),
        ({"a": "int"}, (Point,)),
    ):
        with pytest.raises(TypeError, match=r"use dataclasses\.dataclass"):
            dataclass(slots=True)(type("Odd", bases, {"__annotations__": types}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    first: int
    second: str = "b"
    third: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    one: int
    two: str = "c"
    three: dict[str, int] = field(default_factory=dict)


def test_classes_that_differ_in_their_names_alone_share_code_and_nothing_else(monkeypatch) -> None:
    monkeypatch.setattr(room, "FEW", 0)
    named, twin = Named(first=1), Twin(one=1)
    assert Named.__init__.__code__.co_code == Twin.__init__.__code__.co_code
    assert (named.first, named.second, named.third) == (1, "b", [])
    assert (twin.one, twin.two, twin.three) == (1, "c", {})
    for kind, names in ((Named, ("first", "second", "third")), (Twin, ("one", "two", "three"))):
        taken = inspect.signature(kind).parameters
        assert tuple(taken) == names
        assert {one.kind for one in taken.values()} == {inspect.Parameter.KEYWORD_ONLY}
        assert kind(**dict.fromkeys(names, 7)) != kind(**dict.fromkeys(names, 8))
        with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{names[0]}'"):
            kind()
    with pytest.raises(TypeError, match="unexpected keyword argument 'one'"):
        Named(first=1, one=2)  # type: ignore[call-arg]


def test_no_method_is_written_before_it_is_called_often() -> None:
    code = (
        "import gitledger.dataclass as room; written = []; real = room._Recipe.written_init\n"
        "room._Recipe.written_init = lambda recipe: (written.append(recipe.home.__name__), real(recipe))[1]\n"
        "import gitledger.workflows.judge\n"
        "from gitledger.records.ids import ShardKey\n"
        "at_import = len(written)\n"
        "assert at_import < 3, written  # of some 130 classes: those of which there are many from the start\n"
        "keys = [ShardKey('a') for _ in range(room.FEW)]\n"
        "assert len(written) == at_import, written\n"
        "keys += [ShardKey('b') for _ in range(room.FEW)]\n"
        "assert written[at_import:] == ['ShardKey'], written\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_threads_that_make_the_first_values_of_a_class_at_once_make_the_same():
    """What is found out of a class at its first value is there for all threads or for none."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    made: list[object] = []
    try:
        for _ in range(200):
            namespace = {"__annotations__": dict.fromkeys("abcd", "int"), "c": 3, "d": 4}
            kind = dataclass(slots=True, frozen=True)(type("Made", (), namespace))
            begin = threading.Barrier(6)

            def make(kind: Any = kind, begin: threading.Barrier = begin) -> None:
                begin.wait(10)
                value = kind(1, 2)
                made.append((value.a, value.b, value.c, value.d))

            threads = [threading.Thread(target=make) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
    finally:
        sys.setswitchinterval(interval)
    assert made == [(1, 2, 3, 4)] * 1200
