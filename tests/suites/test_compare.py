"""What counts as the same value: one rule for plain Python, numpy and torch."""

from __future__ import annotations

import math

import pytest

from gitledger.suites.compare import cleaned, find_difference, try_check

NAN = float("nan")
SAME = [
    (1.0, 1.0 + 1e-8),
    (1, 1.0),
    (0.0, 5e-8),
    (NAN, NAN),
    (math.inf, math.inf),
    (1 + 2j, 1 + 2.00000001j),
    (10**400, 10**400),
    ({"a": [1.0, (2.0,)]}, {"a": [1.00000001, (2.0,)]}),
    ("text", "text"),
    ([], []),
    (True, True),
    (2, pytest.approx(2.1, abs=0.2)),
]
DIFFERENT = [
    (1.0, 1.0 + 1e-6),
    (1, 2),
    (0.0, 1e-6),
    (NAN, 1.0),
    (1.0, NAN),
    (math.inf, -math.inf),
    (math.inf, 1e308),
    (1.0, math.inf),
    (10**400, 1.5),
    (10**400, 10**400 + 1),
    ([1.0], [1.0, 1.0]),
    ([1.0], (1.0,)),
    ({"a": 1}, {"b": 1}),
    ({"a": 1}, {"a": 1, "b": 1}),
    ("1.0", 1.0),
    (None, 0),
    (True, 1.5),
]


@pytest.mark.parametrize(("expected", "actual"), SAME)
def test_what_agrees(expected, actual):
    assert find_difference(expected, actual) == ""


@pytest.mark.parametrize(("expected", "actual"), DIFFERENT)
def test_what_differs(expected, actual):
    assert find_difference(expected, actual)


def test_a_difference_says_where_it_is():
    found = find_difference({"loss": [1.0, 2.0]}, {"loss": [1.0, 2.5]})
    assert found == "at ['loss'][1]: expected 2.0, found 2.5"


def test_callables_get_the_arguments_the_reference_first():
    order = []

    def called(name):
        return lambda *args, **kwargs: order.append(name) or (args, kwargs)

    assert try_check(called("reference"), called("candidate"), (1, 2), {"c": 3}, None) == ("", None)
    assert order == ["reference", "candidate"]
    assert try_check(6, lambda a, b: a * b, (2, 3), None, None) == ("", None)


@pytest.mark.parametrize(
    ("compare", "holds"),
    [
        (lambda _e, _a: None, True),
        (lambda _e, _a: True, True),
        (lambda _e, _a: False, False),
        (lambda _e, _a: 0, False),
        (lambda e, a: abs(e - a) < 5, True),
        (lambda _e, _a: [][0], False),
        (lambda _e, _a: pytest.fail.Exception, True),
    ],
)
def test_compare_decides_alone(compare, holds):
    detail, _ = try_check(1, 2, (), None, compare)
    assert (detail == "") is holds, detail


def test_whatever_raises_did_not_hold():
    def broken():
        raise OSError("no device")

    def refuses(_expected, _actual):
        raise AssertionError

    assert try_check(broken, 1, (), None, None)[0] == "the reference raised OSError: no device"
    assert try_check(1, broken, (), None, None)[0] == "the candidate raised OSError: no device"
    assert try_check(1, 1, (), None, refuses)[0] == "compare raised AssertionError"

    class Odd:
        def __eq__(self, other):
            raise ValueError("several truth values")

        __hash__ = None

        def __repr__(self):
            raise TypeError

    assert "give compare=" in try_check(Odd(), Odd(), (), None, None)[0]


def test_skips_and_interrupts_are_no_outcome_of_a_check():
    def skips():
        pytest.skip("no device")

    with pytest.raises(pytest.skip.Exception):
        try_check(1, skips, (), None, None)


def test_details_are_one_printable_bounded_line():
    text = cleaned("one\n  two\x1b[31m\u202e\udc80" + "x" * 5_000, 100)
    assert text.startswith("one; two\\x1b[31m\\u202e\\udc80xxx")
    assert text.isprintable()
    assert len(text) == 100


def test_numpy_arrays_agree_by_their_coarser_type():
    numpy = pytest.importorskip("numpy")
    single = numpy.array([1.0, NAN], dtype="float32")
    same = [
        (single, single * numpy.float32(1 + 1e-6)),
        (single.astype("float64"), single),
        (numpy.arange(3), [0, 1, 2]),
        (numpy.float32(0.1), 0.1),
        ([numpy.zeros(2)], [numpy.zeros(2)]),
        (numpy.ma.masked_array([1.0, 2.0], [0, 1]), numpy.ma.masked_array([1.0, 9.0], [0, 1])),
        (numpy.array(["a"]), numpy.array(["a"])),
    ]
    different = [
        (numpy.zeros(3), 0.0),
        (numpy.zeros((1, 3)), numpy.zeros(3)),
        (single, single * numpy.float32(1.001)),
        (numpy.ones(2), numpy.ones(2) + 1e-6),
        (numpy.arange(3), numpy.arange(3) + 1),
        (numpy.array([1.0, 2.0]), numpy.ma.masked_array([1.0, 9.0], [0, 1])),
        (numpy.zeros(2), None),
    ]
    for expected, actual in same:
        assert try_check(expected, actual, (), None, None) == ("", None), (expected, actual)
    for expected, actual in different:
        assert try_check(expected, actual, (), None, None)[0], (expected, actual)


def test_torch_tensors_agree_as_torch_says_wherever_they_lie():
    torch = pytest.importorskip("torch")
    ones = torch.ones(3)
    assert try_check(ones, ones * (1 + 1e-6), (), None, None) == ("", None)
    assert try_check(ones * NAN, ones * NAN, (), None, None) == ("", None)
    for other in (ones * 1.001, ones.double(), torch.ones(1, 3), 1.0, None, "ones", ones.to_sparse()):
        assert try_check(ones, other, (), None, None)[0], other
        assert try_check(other, ones, (), None, None)[0], other


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "complex64", "int64", "bool"])
def test_torch_tensors_agree_with_what_python_and_numpy_hold(kind):
    torch = pytest.importorskip("torch")
    tensor = torch.ones(2, dtype=getattr(torch, kind))
    plain = {"complex64": [1 + 0j] * 2, "int64": [1, 1], "bool": [True, True]}.get(kind, [1.0, 1.0])
    same = [
        (tensor, plain),
        ([tensor], [plain]),
        (tensor[0], plain[0]),
        (tensor, torch.nn.Parameter(tensor, False)),
    ]
    if kind != "bfloat16":
        same.append((tensor, tensor.numpy()))
    for expected, actual in same:
        assert try_check(expected, actual, (), None, None) == ("", None), (expected, actual)
        assert try_check(actual, expected, (), None, None) == ("", None), (actual, expected)
    other = [1.5, 1.5] if kind in ("int64", "bool") else [plain[0] * 1.5] * 2
    for expected, actual in [(tensor, other), (other, tensor), (tensor, plain[:1]), (plain[0], tensor)]:
        assert try_check(expected, actual, (), None, None)[0], (expected, actual)


def test_a_torch_tensor_that_holds_no_values_agrees_with_nothing():
    """torch itself takes one on the meta device for equal to whatever has its shape and type."""
    torch = pytest.importorskip("torch")
    ones, empty = torch.ones(3), torch.empty(3, device="meta")
    torch.testing.assert_close(empty, ones, check_device=False)
    for expected, actual in [(ones, empty), (empty, ones), (empty, empty), ([1.0, 1.0, 1.0], empty)]:
        assert "holds no values" in try_check(expected, actual, (), None, None)[0]
