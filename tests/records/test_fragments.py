"""Coverage fragments: exact sets, one spelling, and no way in for what contradicts itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.errors import DecodeError
from gitledger.records.bodies import pack, unpack
from gitledger.records.fragments import (
    FileCoverage,
    Fragment,
    bits_of,
    decode_fragment,
    encode_fragment,
    lines_of,
)

LINES = st.frozensets(st.integers(1, 300), max_size=30)
ARCS = st.frozensets(st.tuples(st.integers(1, 99), st.integers(-99, 99)), max_size=8)
PATHS = st.text("abé\udcff \n*", min_size=1, max_size=6).filter(lambda text: text not in (".", ".."))


@st.composite
def files(draw, path, *, branch):
    statements = draw(LINES)
    executed = statements & draw(LINES)
    taken = draw(ARCS) if branch else frozenset()
    untaken = (draw(ARCS) if branch else frozenset()) - taken
    return FileCoverage(
        path=path,
        blob=f"{draw(st.integers(0, 2**160 - 1)):040x}",
        statements=bits_of(statements),
        executed=bits_of(executed),
        branches=len(taken) + len(untaken) if branch else 0,
        taken=taken,
        untaken=untaken,
    )


@st.composite
def fragments(draw):
    branch = draw(st.booleans())
    paths = sorted(draw(st.sets(PATHS, max_size=5)))
    return Fragment(
        version="7.17.5",
        core=draw(st.sampled_from([None, "CTracer"])),
        branch=branch,
        files=tuple(draw(files(path, branch=branch)) for path in paths),
        outside=("/tmp/x.py",),
        outside_count=9,
    )


@given(fragments())
def test_a_fragment_comes_back_and_has_one_spelling(fragment):
    blob = encode_fragment(fragment)
    assert decode_fragment(blob) == fragment
    assert encode_fragment(decode_fragment(blob)) == blob


@given(LINES, LINES)
def test_a_union_of_bit_sets_is_the_union_of_the_lines(one, other):
    assert set(lines_of(bits_of(one) | bits_of(other))) == one | other
    assert bits_of(one).bit_count() == len(one)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_fragment_or_a_decode_error(data):
    for blob in (data, b"\x01" + data):
        try:
            decode_fragment(blob)
        except DecodeError:
            continue


PLAIN = FileCoverage(path="a.py", blob="a" * 40, statements=bits_of([1, 2, 3]), executed=bits_of([1]))
BRANCHY = replace(PLAIN, branches=2, taken=frozenset({(1, 2)}), untaken=frozenset({(1, 3)}))
WHOLE = Fragment(version="7.17.5", core="CTracer", branch=True, files=(BRANCHY,))


def test_covered_and_total_count_statements_and_branches():
    assert (PLAIN.covered, PLAIN.total) == (1, 3)
    assert (BRANCHY.covered, BRANCHY.total) == (2, 5)


CHANGES = {
    "executed lines that are no statements": lambda: replace(PLAIN, executed=bits_of([4])),
    "lines outside": lambda: replace(PLAIN, statements=PLAIN.statements | 1),
    "both taken and not": lambda: replace(BRANCHY, taken=frozenset({(1, 3)})),
    "more branches not taken": lambda: replace(BRANCHY, branches=0),
    "not a path": lambda: replace(PLAIN, path="../a.py"),
    "not sorted and unique": lambda: replace(WHOLE, files=(BRANCHY, BRANCHY)),
    "without branches": lambda: replace(WHOLE, branch=False),
}


@pytest.mark.parametrize(("message", "change"), CHANGES.items(), ids=CHANGES.keys())
def test_a_fragment_that_contradicts_itself_can_not_be_made(message, change):
    with pytest.raises(ValueError, match=message):
        change()


@pytest.mark.parametrize("path", ["/a.py", "a//b.py", "./a.py", "a/../b.py", "", "a/"])
def test_a_path_leads_from_the_root_and_nowhere_else(path):
    with pytest.raises(ValueError, match="not a path"):
        replace(PLAIN, path=path)


TAMPERED = {
    "statements cut": lambda columns: columns[2].__setitem__(0, b""),
    "a trailing zero": lambda columns: columns[2].__setitem__(0, columns[2][0] + b"\0"),
    "a line of text": lambda columns: columns[3].__setitem__(0, "x"),
    "too many lines": lambda columns: columns[2].__setitem__(0, b"\xff" * (1 << 18)),
    "half a branch": lambda columns: columns[5].__setitem__(0, [1]),
    "unsorted branches": lambda columns: columns[5].__setitem__(0, [2, 3, 1, 2]),
    "a branch of words": lambda columns: columns[5].__setitem__(0, ["a", "b"]),
    "true branches": lambda columns: columns[4].__setitem__(0, True),
    "a short blob": lambda columns: columns[1].__setitem__(0, b"x"),
    "a number for a path": lambda columns: columns[0].__setitem__(0, 1),
    "a file more": lambda columns: columns[0].append("b.py"),
    "a column less": lambda columns: columns.pop(),
}


LINES_ONLY = replace(
    WHOLE,
    branch=False,
    files=tuple(replace(file, branches=0, taken=frozenset(), untaken=frozenset()) for file in WHOLE.files),
)
TAMPERED_LINES = {
    "the first line is no line": lambda columns: columns[2].__setitem__(
        0, bytes([columns[2][0][0] | 1]) + columns[2][0][1:]
    ),
    "executed, and no statement": lambda columns: columns[3].__setitem__(0, columns[2][0] + b"\x01"),
    "a path that leaves": lambda columns: columns[0].__setitem__(0, "../a.py"),
    "a path too long": lambda columns: columns[0].__setitem__(0, "a" * 70_000),
    "a line too far": lambda columns: columns[2].__setitem__(0, columns[2][0].ljust((1 << 17), b"\0") + b"\x02"),
    "no list of branches": lambda columns: columns[6].__setitem__(0, ""),
}


@pytest.mark.parametrize("whole", [WHOLE, LINES_ONLY], ids=["branches", "lines"])
@pytest.mark.parametrize(
    "change", [*TAMPERED.values(), *TAMPERED_LINES.values()], ids=[*TAMPERED, *TAMPERED_LINES]
)
def test_a_body_that_is_no_fragment_is_refused(change, whole):
    value = unpack(encode_fragment(whole))
    change(value["columns"])
    with pytest.raises(DecodeError):
        decode_fragment(pack(value))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "tests"),
        ("version", 7),
        ("core", 1),
        ("branch", 1),
        ("columns", {}),
        ("outside_count", -1),
        ("outside", [1]),
    ],
)
def test_a_field_of_another_kind_is_refused(field, value):
    with pytest.raises(DecodeError):
        decode_fragment(pack({**unpack(encode_fragment(WHOLE)), field: value}))
