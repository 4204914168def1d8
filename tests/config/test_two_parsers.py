"""A configuration says the same wherever git-ledger runs: with libyaml, or with PyYAML's own parser alone.

The two disagree on odd texts (each of `ODD` is one); those are read by PyYAML's parser everywhere. Everything else
libyaml may read, and then nobody may be able to tell: same value and lines, or both refuse.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gitledger.config.document import read_document
from gitledger.config.example import example_config
from gitledger.errors import ConfigError

pytestmark = pytest.mark.skipif(not hasattr(yaml, "CSafeLoader"), reason="this PyYAML was built without libyaml")

ODD = [
    "a: {paths:[src], b: c}\n",
    "a: {b: c:{}}\n",
    "a: [1? 2]\n",
    "a: {comma?: b}\n",
    ">#",
    "a: >\t\n  b\n",
    "a: 0\t\n",
    "a: 0\t# said\n",
    "|-\n\n  \t",
    "---",
    "---\n",
    "a: 1\n\ufeff",
    "a: 1\n\ufeffb: 2\n",
    "\n\ufeffa: 1\n",
    "\u2028\ufeff",
    "\x85\ufeff`-",
    " \r\ufeff\n  'a'",
    "a: 1\r\nb: 2\r\n",
    "%YAML 1.1\n---\na: 1\n",
    "a: 1\n...\n",
    "a: 1\n---\nb: 2\n",
    "? a\n: b\n",
]
PLAIN = [
    example_config("5d3c", "alice@example.org"),
    "a: [1, 2, {b: c}]\nd: {e: [], f: {}}\n",
    "- a\n-\n  - b\n  -\n- c: d\n  e: f\n",
    "a: 'it''s'\nb: \"x\\ty\\u00e9\\\n  z\"\n",
    "a: one\n  two\n\n  three\nb:\n",
    "a: # said\n  b # too\n# all\n",
    "a: 1\na: 2\n",
    "a: &x 1\nb: *x\n",
    "a: !!str 1\n",
    "a: b: c\n",
    "a:\n - b\n  - c\n",
    "[a, b",
    "{a: b}}",
    "'a",
    '"a\\q"',
    "a: " + "x" * 1_100 + ": b\n",
    "é: \U0001f600\n",
    "a: \x7f\n",
    "a: \x07\n",
    "a: \x00\n",
    "a: \ufffe\n",
    "",
    "# nothing\n",
]
PIECES = [
    *("a", "b", "key", ": ", ":\n", ", ", ",", "- ", "-", "\n", "\n  ", "\n    ", " ", "  ", "{", "}", "[", "]"),
    *(
        "'",
        '"',
        "''",
        " #",
        "#",
        "&a ",
        "*a",
        "!t ",
        "!!str ",
        "\\",
        "\\n",
        "\\x41",
        "\\u0041",
        "\\/",
        "\\\n",
        "@",
    ),
    *("`", "0", "-1.5", "~", "null", "true", "<<", "é", "\U0001f600", "\x07", "x" * 1_100, "=", "$", "(", "~/"),
]
"""What configurations are made of; nothing that PyYAML's parser is asked for anyway."""
ANY_PIECES = [
    *PIECES,
    "\t",
    "\r\n",
    "\x85",
    "\u2028",
    "\ufeff",
    "?",
    "? ",
    "%",
    "|\n",
    ">-\n",
    ":",
    "---\n",
    "...\n",
]


def read(text: str, loader: str) -> tuple[Any, ...]:
    """Return the value and the line of each path, or that the text was refused."""
    with pytest.MonkeyPatch.context() as patch:
        if loader == "pure":
            patch.delattr(yaml, "CSafeLoader")
        try:
            found = read_document(text.encode("utf-8", "surrogatepass"), source="config.yaml")
        except ConfigError as error:
            return (error.code,)
    return found.root, found.lines


@pytest.mark.parametrize("text", [*ODD, *PLAIN], ids=ascii)
def test_both_parsers_read_the_same_of_what_people_and_attackers_write(text):
    assert read(text, "libyaml") == read(text, "pure")


@settings(max_examples=400, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12))
@example(pieces=["a", ": ", "{", "b", ": ", "[", "]", "}", "\n"])
def test_whatever_libyaml_reads_the_other_reads_alike(pieces):
    text = "".join(pieces)
    assert read(text, "libyaml") == read(text, "pure")


@settings(max_examples=300, deadline=None)
@given(
    seed=st.sampled_from([*PLAIN[:6], *ODD]),
    changes=st.lists(
        st.tuples(st.integers(0, 200), st.integers(0, 2), st.sampled_from(ANY_PIECES)), min_size=1, max_size=4
    ),
)
def test_changed_documents_are_read_alike(seed, changes):
    text = seed
    for place, cut, piece in changes:
        at = place % (len(text) + 1)
        text = text[:at] + piece + text[at + cut :]
    assert read(text, "libyaml") == read(text, "pure")


def test_what_configurations_look_like_is_read_by_libyaml(monkeypatch):
    """Else all of this would hold of one parser alone, and a hundred shards take a tenth of a second to read."""
    monkeypatch.setattr(yaml.SafeLoader, "__init__", None)
    read_document(b"shards:\n  unit: {paths: [src, tests/unit], command: pytest -q tests}\n", source="config.yaml")
