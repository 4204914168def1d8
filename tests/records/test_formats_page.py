"""docs/reference/formats.md says what the code does: limits, fields, examples, and the recipe to check by hand."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
from pathlib import Path

import pytest

from gitledger.records import limits
from gitledger.records.bodies import _OUTCOMES, _PHASES
from gitledger.records.envelope import PAYLOAD_TYPE, decode_line, pae
from gitledger.records.merged import MergedReceipt
from gitledger.records.receipt import ShardReceipt
from gitledger.records.revocation import Revocation
from gitledger.records.statement import PREDICATE_TYPES, Statement

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/formats.md").read_text(encoding="utf-8")
SECTIONS = {"shard": "Shard receipt", "merged": "Merged receipt", "revocation": "Revocation"}


def section(title: str) -> str:
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)[1]


def block(kind: str) -> str:
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.S | re.M)
    return text


def test_the_limits_on_the_page_are_those_of_the_code():
    rows = dict(re.findall(r"^\| `(MAX_\w+)` \| (\d+) \| .+ \|$", section("Limits"), re.M))
    code = {name: str(value) for name, value in vars(limits).items() if name.startswith("MAX_")}
    assert rows == code
    assert len(rows) > 10


def test_what_a_limit_is_of_reads_the_same_in_both_places():
    body = ast.parse(Path(limits.__file__).read_text(encoding="utf-8")).body
    said = {
        node.targets[0].id: after.value.value.rstrip(".")
        for node, after in itertools.pairwise(body)
        if isinstance(node, ast.Assign)
    }
    assert dict(re.findall(r"^\| `(MAX_\w+)` \| \d+ \| (.+) \|$", section("Limits"), re.M)) == said


def test_every_field_that_is_written_stands_on_the_page(claims, surgery):
    for claim in claims:
        text = section(SECTIONS[claim.name]) + section("Statement")
        if claim.name == "merged":
            text += section("Shard receipt")
        words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
        fields = {step for path in surgery.places(claim.document()["predicate"]) for step in path}
        missing = {field for field in fields if isinstance(field, str)} - words
        assert not missing, claim.name


def test_the_predicate_types_stand_on_the_page():
    assert set(re.findall(r"`(urn:[\w:]+)`", section("Statement"))) == PREDICATE_TYPES


def test_the_orders_of_outcomes_and_phases_stand_on_the_page():
    text = " ".join(section("Bodies").split())
    assert f"`{', '.join(_OUTCOMES)}`" in text
    assert f"`{', '.join(phase or 'null' for phase in _PHASES)}`" in text


def test_the_example_payload_is_a_green_receipt():
    receipt = ShardReceipt.decode(Statement.decode(block("json payload").encode()))
    assert receipt.is_green
    assert receipt.counts.passed == 2


def test_the_example_line_is_a_revocation():
    envelope = decode_line(block("json line").rstrip("\n").encode())
    revocation = Revocation.decode(Statement.decode(envelope.payload))
    assert revocation.signer.key_fingerprint == envelope.signature.keyid
    with pytest.raises(Exception, match="not a merged receipt"):
        MergedReceipt.decode(Statement.decode(envelope.payload))


def test_the_header_of_what_is_signed_has_the_right_length():
    assert pae(PAYLOAD_TYPE, b"x").startswith(b"DSSEv1 28 application/vnd.in-toto+json 1 ")


def check_by_hand(repo, line: str, ref: str = "refs/notes/gitledger/records") -> subprocess.CompletedProcess[str]:
    """Put `line` into the note of HEAD, move the notes to `ref` and run the page's recipe."""
    repo.write(".gitledger/allowed_signers", block("text signers"))
    repo.commit()
    repo.git("notes", "--ref=gitledger/records", "add", "-F", "-", input=line.encode())
    notes = repo.git("rev-parse", "refs/notes/gitledger/records")
    repo.git("update-ref", "-d", "refs/notes/gitledger/records")
    repo.git("update-ref", ref, notes)
    return subprocess.run(
        ["sh", "-e", "-c", block("sh")],
        cwd=repo.path,
        env=dict(repo.env),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("ref", ["refs/notes/gitledger/records", "refs/gitledger/remotes/origin/records"])
def test_the_example_checks_by_hand_with_ssh_keygen_alone(git_repo, ref):
    done = check_by_hand(git_repo, block("json line"), ref)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('Good "gitledger" signature for alice@example.org')
    line = block("json line").rstrip("\n").encode()
    assert (git_repo.path / "payload").read_bytes() == decode_line(line).payload


def test_t05_the_check_by_hand_refuses_a_changed_payload(git_repo):
    line = block("json line")
    done = check_by_hand(git_repo, line.replace('"payload":"eyJf', '"payload":"eyJg'))
    assert done.returncode != 0
    assert "Good" not in done.stdout
