"""Comparison checks: whether a candidate's value is the reference's, and in one line why it isn't.

Like the plugin it is copied into environments that have no git-ledger: standard library only, Python 3.8 and
later. numpy and torch are used only where a value is theirs, so they are loaded already.

One rule for all: shapes must agree, NaN equals NaN, floating point agrees within `atol + rtol * |expected|`, where
the coarser of the two types gives the tolerances of `TOLERANCES` (those of `torch.testing.assert_close`), and
everything else agrees exactly.
"""

from __future__ import annotations

import reprlib
import sys
from importlib import import_module
from typing import Any

__all__ = ["MAX_DETAIL_CHARACTERS", "MAX_NAME_CHARACTERS", "TOLERANCES", "cleaned", "find_difference", "try_check"]

MAX_NAME_CHARACTERS = 200
MAX_DETAIL_CHARACTERS = 1_000

TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
    "float128": (1e-7, 1e-7),
    "complex256": (1e-7, 1e-7),
    "longdouble": (1e-7, 1e-7),
    "clongdouble": (1e-7, 1e-7),
}
"""Relative and absolute tolerance by floating-point type; other types agree exactly."""
_PLAIN_RTOL, _PLAIN_ATOL = TOLERANCES["float64"]
_HINT = "give compare= to say how such values agree"


def try_check(
    reference: Any, candidate: Any, args: Any, kwargs: Any, compare: Any
) -> tuple[str, BaseException | None]:
    """Return why the candidate isn't the reference ("" where it is), and the exception behind it.

    Each of the two is called with `args` and `kwargs` where it can be called, the reference first, and is a value
    otherwise. `compare(expected, actual)` decides where it is given: by raising, or by a result other than None
    that is not true.
    """
    values = []
    for role, given in (("reference", reference), ("candidate", candidate)):
        try:
            values.append(given(*args, **(kwargs or {})) if callable(given) else given)
        except Exception as error:
            return f"the {role} raised {type(error).__name__}: {error}", error
    try:
        if compare is None:
            return find_difference(values[0], values[1]), None
        verdict = compare(values[0], values[1])
        if verdict is None or bool(verdict):
            return "", None
        return f"compare said {_shown(verdict)} of {_shown(values[0])} and {_shown(values[1])}", None
    except AssertionError as error:
        return str(error).strip() or "compare raised AssertionError", error
    except Exception as error:
        return f"comparing raised {type(error).__name__}: {error}", error


def find_difference(expected: Any, actual: Any, at: str = "") -> str:
    """Return where and how `actual` differs from `expected`, "" where it doesn't; raises what comparing raises."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and _is_any(torch, ("Tensor",), expected, actual):
        return _named(at, _tensors(torch, expected, actual))
    if numpy is not None and (
        _is_any(numpy, ("ndarray", "generic"), expected, actual)
        or all(hasattr(value, "__array_namespace__") for value in (expected, actual))
    ):
        return _named(at, _arrays(numpy, expected, actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _mappings(expected, actual, at)
    if isinstance(expected, (list, tuple)) and type(actual) is type(expected):
        if len(expected) != len(actual):
            return _named(
                at, f"expected {len(expected)} item{'' if len(expected) == 1 else 's'}, found {len(actual)}"
            )
        pairs = enumerate(zip(expected, actual))  # noqa: B905 - Python 3.8, and of one length
        found = (find_difference(left, right, f"{at}[{index}]") for index, (left, right) in pairs)
        return next((text for text in found if text), "")
    if _agree(expected, actual):
        return ""
    return _named(at, f"expected {_shown(expected)}, found {_shown(actual)}")


def _is_any(module: Any, names: tuple[str, ...], *values: Any) -> bool:
    types = tuple(kind for kind in (getattr(module, name, None) for name in names) if isinstance(kind, type))
    return any(isinstance(value, types) for value in values)


def _named(at: str, text: str) -> str:
    return f"at {at}: {text}" if at and text else text


def _mappings(expected: dict[Any, Any], actual: dict[Any, Any], at: str) -> str:
    lacking = [key for key in expected if key not in actual]
    extra = [key for key in actual if key not in expected]
    if lacking or extra:
        return _named(at, f"keys that are missing: {_shown(lacking)}; in excess: {_shown(extra)}")
    found = (find_difference(expected[key], actual[key], f"{at}[{_shown(key)}]") for key in expected)
    return next((text for text in found if text), "")


def _agree(expected: Any, actual: Any) -> bool:
    pair = (expected, actual)
    numbers = all(isinstance(value, (int, float, complex)) and not isinstance(value, bool) for value in pair)
    if not numbers or not any(isinstance(value, (float, complex)) for value in pair):
        try:
            return bool(expected == actual)
        except ValueError as error:  # an array of several truth values
            raise ValueError(f"{error}; {_HINT}") from error
    if expected == actual or (expected != expected and actual != actual):
        return True
    try:
        return bool(abs(actual - expected) <= _PLAIN_ATOL + _PLAIN_RTOL * abs(expected) < float("inf"))
    except OverflowError:
        return False


def _tensors(torch: Any, expected: Any, actual: Any) -> str:
    """Compare wherever the tensors lie: a reference on the CPU beside a candidate on the GPU is the usual case."""
    left = _tensor(torch, expected, actual)
    right = _tensor(torch, actual, expected)
    for role, value in (("expected", left), ("found", right)):
        if value.is_meta:  # torch takes two such for alike, whatever they would hold
            return f"{role} a tensor on the meta device, which holds no values"
    try:
        import_module("torch.testing").assert_close(right, left, equal_nan=True, check_device=False)
    except AssertionError as error:
        return str(error)
    return ""


def _tensor(torch: Any, value: Any, other: Any) -> Any:
    """Return a value as a tensor. Python's own fractions have no precision of torch's: they take the other's."""
    if isinstance(value, torch.Tensor):
        return value
    found = torch.as_tensor(value)
    has_type = hasattr(value, "dtype") or hasattr(value, "__array_interface__")
    if has_type or not (found.is_floating_point() and other.is_floating_point()):
        return found
    return torch.as_tensor(value, dtype=other.dtype)


def _arrays(numpy: Any, expected: Any, actual: Any) -> str:
    left, right = numpy.asanyarray(expected), numpy.asanyarray(actual)
    if left.shape != right.shape:  # numpy itself would broadcast a scalar
        return f"expected shape {left.shape}, found {right.shape}"
    testing = import_module("numpy.testing")
    try:
        if any(isinstance(value, numpy.ma.MaskedArray) for value in (left, right)):
            masks = [numpy.ma.getmaskarray(value) for value in (left, right)]
            testing.assert_array_equal(masks[1], masks[0], err_msg="masks differ")
            left, right = (numpy.asarray(value)[~masks[0]] for value in (left, right))
        known = [TOLERANCES[value.dtype.name] for value in (left, right) if value.dtype.name in TOLERANCES]
        if known:
            rtol, atol = max(known)
            testing.assert_allclose(right, left, rtol=rtol, atol=atol, equal_nan=True)
        else:
            testing.assert_array_equal(right, left)
    except AssertionError as error:
        return str(error)
    return ""


def _shown(value: Any) -> str:
    try:
        return reprlib.repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def cleaned(text: str, limit: int) -> str:
    """Return `text` on one line, printable, of at most `limit` characters: it will stand in a signed record."""
    joined = "; ".join(filter(None, (line.strip() for line in text[: 8 * limit].splitlines())))
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in joined)
    return plain if len(plain) <= limit else plain[: limit - 3] + "..."
