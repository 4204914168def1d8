"""`@dataclass` that writes a class's methods when they are first called.

The standard one compiles five functions for every class at its definition, 0.3 to 1 ms each. A command loads 140
classes and makes values of half of them, so that was most of what loading our own modules cost. The classes are
the same: frozen and slotted as they are told to be; `field` works in them, `dataclasses.fields`, `replace` and
`asdict` on them, and type checkers take this for the standard decorator. What it does not do it refuses, and the
standard one is there for it: inheritance among dataclasses, `InitVar`, `ClassVar`, ordering.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, slots: bool, frozen: bool = False, kw_only: bool = False) -> Callable[[type], type]:
        """Return the decorator that makes a class a dataclass, as `dataclasses.dataclass` does."""
        if slots is not True:
            raise TypeError("slots=True is what this is for; dataclasses.dataclass makes others")
        return lambda plain: _Recipe(plain, frozen=frozen, kw_only=kw_only).made()


class _Recipe:
    """What a class was defined with, until its methods are written."""

    def __init__(self, plain: type, *, frozen: bool, kw_only: bool) -> None:
        types: Mapping[str, object] = vars(plain).get("__annotations__", {})
        if any("__dataclass_fields__" in base.__dict__ for base in plain.__mro__):
            raise TypeError(f"{plain.__name__} inherits from a dataclass: use dataclasses.dataclass")
        if any(not isinstance(text, str) or "InitVar" in text or "ClassVar" in text for text in types.values()):
            raise TypeError(f"{plain.__name__} has more than plain fields: use dataclasses.dataclass")
        self._plain = plain
        self._frozen = frozen
        self._kw_only = kw_only
        self._types = types
        self._names = tuple(types)
        self._given = {name: plain.__dict__[name] for name in types if name in plain.__dict__}

    def made(self) -> type:
        """Return the class."""
        plain, frozen = self._plain, self._frozen
        body = {name: value for name, value in plain.__dict__.items() if name not in self._given}
        body.pop("__dict__", None)
        body.pop("__weakref__", None)
        has_eq = "__eq__" in body
        key = _key(self._that("compare"))
        body["__slots__"] = self._names
        body["__dataclass_fields__"] = _Fields(self)
        body.setdefault("__init__", self._first_init())
        body.setdefault("__repr__", _repr(self._that("repr")))
        body.setdefault("__eq__", _eq(key))
        if "__hash__" not in body or (body["__hash__"] is None and has_eq):
            body["__hash__"] = _hash(key) if frozen else None
        body.setdefault("__match_args__", () if self._kw_only else self._that("init"))
        if frozen:
            body |= {"__getstate__": _get_state, "__setstate__": _set_state}
        made = type(plain)(plain.__name__, plain.__bases__, body)
        made.__qualname__ = plain.__qualname__
        if frozen:
            _freeze(made, self._names)
        self._home = made
        return made

    def _that(self, part: str) -> tuple[str, ...]:
        """Return the fields that take part in something; those without `field()` do in everything."""
        given = self._given
        return tuple(
            name
            for name in self._names
            if name not in given or not isinstance(given[name], Field) or getattr(given[name], part)
        )

    def _first_init(self) -> Callable[..., None]:
        def __init__(self: object, *args: object, **kwargs: object) -> None:  # noqa: N807
            written = recipe._written_init()
            recipe._home.__init__ = written  # type: ignore[misc]
            written(self, *args, **kwargs)

        recipe = self
        return __init__

    def _written_init(self) -> Callable[..., None]:
        space: dict[str, Any] = {"_set": object.__setattr__, "_unset": MISSING}
        required: list[str] = []
        optional: list[str] = []
        lines = [line for name in self._names if (line := self._line(name, space, required, optional))]
        if hasattr(self._plain, "__post_init__"):
            lines.append("self.__post_init__()")
        star = ["*"] if self._kw_only and (required or optional) else []
        head = ", ".join(["self", *star, *required, *optional])
        exec(f"def __init__({head}):\n " + "\n ".join(lines or ["pass"]), space)  # noqa: S102  # of names alone
        written: Callable[..., None] = space["__init__"]
        written.__qualname__ = f"{self._plain.__qualname__}.__init__"
        return written

    def _line(self, name: str, space: dict[str, Any], required: list[str], optional: list[str]) -> str:
        """Return the line that sets a field, empty for one that is left unset; its parameter goes into a list."""
        given = self._given.get(name, MISSING)
        part = given if isinstance(given, Field) else dataclasses.field(default=given)
        value = name
        if part.default_factory is not MISSING:
            space[f"_make_{name}"] = part.default_factory
            value = f"_make_{name}() if {name} is _unset else {name}" if part.init else f"_make_{name}()"
        elif part.default is not MISSING:
            space[f"_of_{name}"] = part.default
            value = name if part.init else f"_of_{name}"
        elif not part.init:
            return ""
        if part.init and value == name and part.default is MISSING:
            if optional and not self._kw_only:
                raise TypeError(f"non-default argument {name!r} follows default argument")
            required.append(name)
        elif part.init:
            optional.append(f"{name}=_of_{name}" if value == name else f"{name}=_unset")
        return f"_set(self, {name!r}, {value})" if self._frozen else f"self.{name} = {value}"

    def fields(self) -> dict[str, Field[Any]]:
        """Return the fields as the standard decorator makes them."""
        body = {"__annotations__": dict(self._types), "__module__": self._plain.__module__, **self._given}
        decorate = dataclasses.dataclass(kw_only=self._kw_only)
        twin: Any = decorate(type(self._plain.__name__, (), body))
        found: dict[str, Field[Any]] = twin.__dataclass_fields__
        return found


class _Fields:
    """`__dataclass_fields__`, made when somebody asks for it."""

    def __init__(self, recipe: _Recipe) -> None:
        self._recipe = recipe
        self._made: dict[str, Field[Any]] | None = None

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        if self._made is None:
            self._made = self._recipe.fields()
        return self._made


def _key(names: Sequence[str]) -> Callable[[object], tuple[object, ...]]:
    """Return the function from a value to the tuple that stands for it in comparisons."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _eq(key: Callable[[object], tuple[object, ...]]) -> Callable[[object, object], bool]:
    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(key: Callable[[object], tuple[object, ...]]) -> Callable[[object], int]:
    def __hash__(self: object) -> int:  # noqa: N807
        return hash(key(self))

    return __hash__


def _repr(names: Sequence[str]) -> Callable[[object], str]:
    @recursive_repr()
    def __repr__(self: object) -> str:  # noqa: N807
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__


def _get_state(self: Any) -> list[object]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _set_state(self: Any, state: Sequence[object]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)


def _freeze(made: Any, names: Sequence[str]) -> None:
    def __setattr__(self: object, name: str, value: object) -> None:  # noqa: N807
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:  # noqa: N807
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    made.__setattr__ = __setattr__
    made.__delattr__ = __delattr__
