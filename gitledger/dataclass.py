"""`@dataclass` that writes no method of a class before it is called often.

The standard one compiles five functions for every class at its definition, 0.3 to 1 ms each. A command loads 140
classes and makes values of two thirds of them, many of few: that was most of what loading our modules cost. The
classes are the same: frozen and slotted as they are told to be; `field` works in them, `dataclasses.fields`,
`replace` and `asdict` on them, and type checkers take this for the standard decorator. What it does not do it
refuses, and the standard one is there for it: inheritance among dataclasses, `ClassVar`.

All classes share their methods, which go by the class's recipe. Only `__init__` is written for a class, as values
are made by the ten thousand; the first few are filled without it. `replace` goes by the recipe, too: the standard
one asks for fields that would have to be made first.
"""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, field
from functools import cache
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "replace"]

FEW = 4
"""So many values of a class are made before its `__init__` is written, which costs more than to fill these."""

_BadChange = TypeError if sys.version_info >= (3, 13) else ValueError
"""What `dataclasses.replace` refuses a change with, which it can't make."""

if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:

    def dataclass(
        *, slots: bool, frozen: bool = False, kw_only: bool = False, order: bool = False
    ) -> Callable[[type], type]:
        """Return the decorator that makes a class a dataclass, as `dataclasses.dataclass` does."""
        if slots is not True:
            raise TypeError("slots=True is what this is for; dataclasses.dataclass makes others")
        return lambda plain: _Recipe(plain, frozen=frozen, kw_only=kw_only).made(order=order)

    def replace(value: object, /, **changes: object) -> object:
        """Return `value` with other values in some fields, as `dataclasses.replace` does."""
        recipe = getattr(value, "__dataclass_fields__", None)
        if not isinstance(recipe, _Recipe):
            return dataclasses.replace(value, **changes)
        return value.__class__(**recipe.completed(value, changes))


class _Recipe(Mapping[str, Field[Any]]):
    """What a class was defined with, and its `__dataclass_fields__`, made when somebody asks for one of them."""

    def __init__(self, plain: type, *, frozen: bool, kw_only: bool) -> None:
        types: Mapping[str, Any] = vars(plain).get("__annotations__", {})
        if hasattr(plain, "__dataclass_fields__"):
            raise TypeError(f"{plain.__name__} inherits from a dataclass: use dataclasses.dataclass")
        spelt = " ".join(text if isinstance(text, str) else "ClassVar" for text in types.values())
        if "ClassVar" in spelt:
            raise TypeError(f"{plain.__name__} has more than plain fields: use dataclasses.dataclass")
        self._plain = plain
        self._frozen = frozen
        self._kw_only = kw_only
        self._types = types
        self._given = {name: plain.__dict__[name] for name in types if name in plain.__dict__}
        self._is_plain = not any(isinstance(given, Field) for given in self._given.values())
        self.names: tuple[str, ...] = tuple(types)
        self._passed: tuple[str, ...] = ()
        """What `__post_init__` is given and no value keeps."""
        if "InitVar" in spelt:
            self._passed = tuple(name for name, text in types.items() if "InitVar" in text)
            self.names = tuple(name for name in types if name not in self._passed)
            if not self._given.keys().isdisjoint(self._passed):
                raise TypeError(f"{plain.__name__} has an InitVar with a default: use dataclasses.dataclass")
        self.home: Any = plain
        self._fields: Mapping[str, Field[Any]] | None = None
        self._parts: list[tuple[str, Field[Any]]] | None = None
        self._taken: dict[str, None] = {}
        """The parameters of `__init__`, in order."""
        self._required: set[str] = set()
        self._is_checked = hasattr(plain, "__post_init__")
        self._filled = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def __getitem__(self, name: str) -> Field[Any]:
        if self._fields is None:
            self._fields = self._standard_fields()
        return self._fields[name]

    def made(self, *, order: bool) -> type:
        """Return the class."""
        plain = self._plain
        body = dict(plain.__dict__)
        for name in (*self._given, "__dict__", "__weakref__"):
            body.pop(name, None)
        has_eq = "__eq__" in body
        body["__slots__"] = self.names
        body["__dataclass_fields__"] = self
        body["__compared__"] = _key(self.that("compare"))
        body.setdefault("__init__", _init)
        body.setdefault("__repr__", _repr)
        body.setdefault("__eq__", _eq)
        if "__hash__" not in body or (body["__hash__"] is None and has_eq):
            body["__hash__"] = _hash if self._frozen else None
        body.setdefault("__match_args__", () if self._kw_only else (*self.that("init"), *self._passed))
        if self._frozen:
            body |= _FROZEN
        if order:
            body |= _ORDERED
        made = type(plain)(plain.__name__, plain.__bases__, body)
        made.__qualname__ = plain.__qualname__
        self.home = made
        return made

    def that(self, part: str) -> tuple[str, ...]:
        """Return the fields that take part in something; those without `field()` do in everything."""
        if self._is_plain:
            return self.names
        given = self._given
        return tuple(
            name
            for name in self.names
            if name not in given or not isinstance(given[name], Field) or getattr(given[name], part)
        )

    def fills(self, value: object, args: Sequence[object], words: dict[str, object]) -> bool:
        """Set the fields of `value` as the written `__init__` does.

        False where that one has to: it refuses what it is given, or has been wanted often enough.
        """
        self._filled += 1
        parts = self._read_parts()
        taken = self._taken
        if self._filled > FEW or len(args) > (0 if self._kw_only else len(taken)):
            return False
        given = {**dict(zip(taken, args, strict=False)), **words} if args else words
        if len(given) != len(args) + len(words):
            return False
        if given.keys() != taken.keys() and (given.keys() - taken.keys() or self._required - given.keys()):
            return False
        put = object.__setattr__ if self._frozen else setattr
        for name, part in parts:
            if name in given:
                put(value, name, given[name])
            elif part.default_factory is not MISSING:
                put(value, name, part.default_factory())
            elif part.default is not MISSING:
                put(value, name, part.default)
        if self._is_checked:
            value.__post_init__(*(given[name] for name in self._passed))  # type: ignore[attr-defined]
        return True

    def _read_parts(self) -> list[tuple[str, Field[Any]]]:
        """Return each field with what `field()` was told of it, and note which of them `__init__` takes."""
        if self._parts is not None:
            return self._parts
        parts: list[tuple[str, Field[Any]]] = []
        taken: dict[str, None] = {}
        required: set[str] = set()
        for name in self._types:
            given = self._given.get(name, MISSING)
            part = given if isinstance(given, Field) else field(default=given)
            is_required = part.default is MISSING and part.default_factory is MISSING
            if part.init:
                if is_required and not self._kw_only and len(required) < len(taken):
                    raise TypeError(f"non-default argument {name!r} follows default argument")
                taken[name] = None
                if is_required:
                    required.add(name)
            if name not in self._passed:
                parts.append((name, part))
        self._taken, self._required = taken, required
        self._parts = parts  # last: other threads go by it
        return parts

    def written_init(self) -> Callable[..., None]:
        """Return the class's own `__init__`, which it has from now on."""
        places = {name: f"p{number}" for number, name in enumerate(self._types)}
        space: dict[str, Any] = {"_unset": MISSING}
        lines = [
            line for name, part in self._read_parts() if (line := self._line(places[name], name, part, space))
        ]
        if self._is_checked:
            lines.append(f"self.__post_init__({', '.join(places[name] for name in self._passed)})")
        head = ", ".join(["self", *(places[name] for name in self._taken)])
        code = _renamed(_compiled(f"def __init__({head}):\n " + "\n ".join(lines or ["pass"])), places)
        if self._kw_only:
            code = code.replace(co_argcount=1, co_kwonlyargcount=len(self._taken))
        optional = {
            name: MISSING if part.default is MISSING else part.default
            for name, part in self._read_parts()
            if name in self._taken and name not in self._required
        }
        written = FunctionType(code, space, "__init__", None if self._kw_only else tuple(optional.values()))
        written.__kwdefaults__ = optional if self._kw_only else {}
        written.__qualname__ = f"{self._plain.__qualname__}.__init__"
        self.home.__init__ = written
        return written

    def _line(self, place: str, name: str, part: Field[Any], space: dict[str, Any]) -> str:
        """Return the line that sets the field at a place, empty for one that is left unset.

        What the line goes by is put into `space`. A frozen value is set by the slot's own setter, which takes half
        as long as `object.__setattr__`.
        """
        value = place
        if part.default_factory is not MISSING:
            space[f"_make_{place}"] = part.default_factory
            value = f"_make_{place}() if {place} is _unset else {place}" if part.init else f"_make_{place}()"
        elif part.default is not MISSING and not part.init:
            space[f"_of_{place}"] = part.default
            value = f"_of_{place}"
        elif not part.init:
            return ""
        if not self._frozen:
            return f"self.{place} = {value}"
        space[f"_set_{place}"] = vars(self.home)[name].__set__
        return f"_set_{place}(self, {value})"

    def completed(self, value: object, changes: dict[str, object]) -> dict[str, object]:
        """Return what a class is called with for a value as `value`, but for some changes."""
        parts = self._read_parts()
        for name in self._passed:
            if name not in changes:
                raise _BadChange(f"InitVar {name!r} must be specified with replace()")
        for name, part in parts:
            if not part.init:
                if name in changes:
                    raise _BadChange(
                        f"field {name} is declared with init=False, it cannot be specified with replace()"
                    )
            elif name not in changes:
                changes[name] = getattr(value, name)
        return changes

    def _standard_fields(self) -> dict[str, Field[Any]]:
        """Return the fields as the standard decorator makes them, of a class that has nothing else."""
        body = {"__annotations__": dict(self._types), "__module__": self._plain.__module__, **self._given}
        body["__doc__"] = "Described, lest its signature is: that takes `inspect`."
        decorate = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=self._kw_only)
        twin: Any = decorate(type(self._plain.__name__, (), body))
        found: dict[str, Field[Any]] = twin.__dataclass_fields__
        return found


@cache
def _compiled(text: str) -> CodeType:
    """Return the code of an `__init__`, compiled once for all classes that differ in their names alone."""
    space: dict[str, Any] = {}
    exec(text, space)  # noqa: S102  # of places alone
    code: CodeType = space["__init__"].__code__
    return code


def _renamed(code: CodeType, places: Mapping[str, str]) -> CodeType:
    """Return code with the names of fields in place of their `places`."""
    names = {place: name for name, place in places.items()}
    return code.replace(
        co_varnames=tuple(names.get(word, word) for word in code.co_varnames),
        co_names=tuple(names.get(word, word) for word in code.co_names),
    )


def _key(names: Sequence[str]) -> object:
    """Return the function from a value to the tuple that stands for it in comparisons, to be kept by the class."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return staticmethod(lambda value: tuple(getattr(value, name) for name in names))


def _init(self: Any, /, *args: object, **words: object) -> None:
    recipe: _Recipe = self.__dataclass_fields__
    if not recipe.fills(self, args, words):
        recipe.written_init()(self, *args, **words)


@recursive_repr()
def _repr(self: Any) -> str:
    recipe: _Recipe = self.__dataclass_fields__
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in recipe.that("repr"))
    return f"{self.__class__.__qualname__}({shown})"


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__compared__(self) == self.__compared__(other)


def _hash(self: Any) -> int:
    return hash(self.__compared__(self))


def _get_state(self: Any) -> list[object]:
    return [getattr(self, name) for name in self.__dataclass_fields__.names]


def _set_state(self: Any, state: Sequence[object]) -> None:
    for name, value in zip(self.__dataclass_fields__.names, state, strict=True):
        object.__setattr__(self, name, value)


def _set_attribute(self: Any, name: str, value: object) -> None:
    recipe: _Recipe = self.__dataclass_fields__
    if type(self) is recipe.home or name in recipe.names:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    super(recipe.home, self).__setattr__(name, value)


def _delete_attribute(self: Any, name: str) -> None:
    recipe: _Recipe = self.__dataclass_fields__
    if type(self) is recipe.home or name in recipe.names:
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    super(recipe.home, self).__delattr__(name)


def _compared_by(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method that compares two values of one class by their fields in order."""

    def compared(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compare(self.__compared__(self), self.__compared__(other))

    return compared


_FROZEN = {
    "__setattr__": _set_attribute,
    "__delattr__": _delete_attribute,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
_ORDERED = {
    "__lt__": _compared_by(operator.lt),
    "__le__": _compared_by(operator.le),
    "__gt__": _compared_by(operator.gt),
    "__ge__": _compared_by(operator.ge),
}
