"""What the fuzzer starts from: one honest input at least of everything that is read, made afresh."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    SSHCertificateBuilder,
    SSHCertificateType,
)
from decoders import MESSAGE, NONCE

from gitledger.records.bodies import Check, Inputs, TestResult, encode_inputs, encode_log, encode_tests
from gitledger.records.envelope import Envelope
from gitledger.records.fragments import FileCoverage, Fragment, encode_fragment
from gitledger.records.ids import BlobId, NodeId
from gitledger.records.outcomes import TestOutcome
from gitledger.records.statement import SHARD_RECEIPT, Subject, encode_statement
from gitledger.trust.certificates import parse_key_line
from gitledger.trust.private_keys import load_private_key
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import FileSigner
from gitledger.trust.wire import put_byte, put_string, put_uint32, put_uint64

__all__ = ["make_seeds"]

TESTS = Path(__file__).resolve().parent.parent
JUNIT = b"""<?xml version="1.0"?><testsuites><testsuite name="s" tests="3" failures="1" errors="0">
<testcase classname="a.b" name="one" time="0.1"/><testcase name="two" status="run"><failure message="x">y</failure>
</testcase><testcase classname="c" name="three"><skipped type="pytest.xfail" message="m"/><rerunFailure/>
<system-out><![CDATA[ <failure/> ]]></system-out></testcase></testsuite></testsuites>"""
REPORTLOG = [
    {"$report_type": "SessionStart", "pytest_version": "8.4"},
    {"$report_type": "CollectReport", "nodeid": "t.py", "outcome": "passed"},
    {"$report_type": "TestReport", "nodeid": "t.py::a", "outcome": "passed", "when": "call", "duration": 0.5},
    {"$report_type": "TestReport", "nodeid": "t.py::b", "outcome": "skipped", "when": "call", "wasxfail": "x"},
    {"_report_type": "SubTestReport", "nodeid": "t.py::a", "outcome": "failed", "when": "call"},
    {"$report_type": "SessionFinish", "exitstatus": 1},
]
JOURNAL = [
    ["journal", 1, NONCE, {"python": "3.12.1", "dist": "no", "narrowed": []}],
    ["ids", ["a", "b"]],
    ["selected", None],
    ["collected", 2],
    ["full", 2],
    ["s", 0],
    ["r", 0, "setup", "passed", 1, ""],
    ["r", 0, "call", "failed", 1, ""],
    ["r", 0, "teardown", "passed", 1, ""],
    ["s", 1],
    ["r", 1, "setup", "skipped", 1, "x"],
    ["finish", 0],
]
CTRF = {
    "results": {
        "tool": {"name": "x"},
        "summary": {"tests": 1, "passed": 1, "failed": 0, "skipped": 0, "pending": 0, "other": 0},
        "tests": [{"name": "n", "status": "passed", "duration": 3, "suite": ["s"], "filePath": "f", "retries": 1}],
    }
}
CONFIG = b"""version: 1
repository: demo
shards:
  l1: {paths: [src], command: pytest tests, variants: [a, b], gpus: 1, memory: 12GiB, timeout: 2h, split: 3}
  lint: {paths: [src, "*.cfg"], command: ruff check src, results: exit-status, coverage: none}
coverage: {fail_under: 55, precision: 0}
forges: {ghe: "https://ghe.example.org/{user}.keys"}
policy: {allowed_signers: [alice, "github:bob"], max_age_days: 30, require_mode: null}
lanes:
  g: {required: true, match: {device.arch: x}, runs: [{model: m, layers: [0, 15], recipes: [torch-eager]}]}
"""


def _lines(items: Sequence[object]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


def _bodies() -> dict[str, list[bytes]]:
    """Return bodies, whole and as they stand behind their version and compression."""
    import zlib

    results = [
        TestResult(node_id=NodeId("t.py::a"), outcome=TestOutcome.PASSED, duration_ns=1_000),
        TestResult(
            node_id=NodeId("t.py::\u202e\x00"),
            outcome=TestOutcome.FAILED,
            phase="call",
            duration_ns=17,
            attempts=2,
            checks=(Check(name="close", passed=False, detail="0.1"),),
        ),
    ]
    file = FileCoverage(
        path="src/a.py",
        blob=BlobId("4" * 40),
        statements=0b1110,
        executed=0b0110,
        branches=2,
        taken=frozenset({(1, 2)}),
        untaken=frozenset({(1, 3)}),
    )
    fragment = Fragment(version="7.10", core="ctrace", branch=True, files=(file,), outside=("x",), outside_count=1)
    inputs = Inputs(paths=("src/a.py", "."), roots=("tests",))
    blobs = {
        "body-tests": [encode_tests(results)],
        "body-coverage": [encode_fragment(fragment)],
        "body-others": [encode_log("said\n"), encode_inputs(inputs)],
    }
    packed = {name: [zlib.decompress(blob[1:]) for blob in found] for name, found in blobs.items()}
    return packed | {"body": [blob for found in blobs.values() for blob in found]}


def _payloads() -> list[bytes]:
    """Return the payloads of the vectors that readers accept: one of each kind of receipt at least."""
    vectors = json.loads((TESTS / "records" / "vectors" / "receipts.json").read_text())
    lines = [json.loads(vector["line"]) for vector in vectors if vector["expect"] == "accepted"]
    return [base64.b64decode(line["payload"]) for line in lines]


def make_seeds() -> tuple[dict[str, list[bytes]], FileSigner]:
    """Return the first inputs of each target, and the signer of some of the records among them."""
    authority = ed25519.Ed25519PrivateKey.generate()
    privates = [authority, ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)]
    files = [key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()) for key in privates]
    files.append(authority.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    signers = [FileSigner(load_private_key(file, where="seed")) for file in files]
    certificate = (
        SSHCertificateBuilder()
        .public_key(privates[1].public_key())
        .serial(3)
        .type(SSHCertificateType.USER)
        .key_id(b"id")
        .valid_principals([b"alice"])
        .valid_after(0)
        .valid_before(1 << 40)
        .add_extension(b"permit-pty", b"")
        .sign(authority)
        .public_bytes()
        .decode()
    )
    certified = parse_key_line(certificate).certificate
    assert certified is not None
    lines, blobs = [], []
    for signer in signers:
        payload = encode_statement(
            subject=Subject(commit="1" * 40, tree="2" * 40),
            predicate_type=SHARD_RECEIPT,
            predicate={"signer": claim_of(signer, user="a").encode(), "x": [1, 2.5, None, True, "é"]},
        )
        lines.append(sign_payload(payload, signer).encode())
        blobs.append(signer.sign(MESSAGE))
    unsigned = encode_statement(
        subject=Subject(commit="1" * 40, tree="2" * 40),
        predicate_type=SHARD_RECEIPT,
        predicate={"signer": None},
    )
    lines.append(Envelope(payload=unsigned, signature=None).encode())
    keys = [signer.key.blob for signer in signers] + [certified.blob]
    allowed = "\n".join(
        [
            "# comment",
            f"alice,*@x {signers[0].key.line} comment",
            f'"a b" cert-authority,namespaces="git*,!x",valid-after="20260101Z" {signers[1].key.line}',
            f'!bob,* valid-before="202601011200Z",valid-after="20200101010101Z" {signers[2].key.line}\r',
        ]
    )
    serials = put_byte(0x20) + put_string(put_uint64(1) + put_uint64(9))
    serials += put_byte(0x21) + put_string(put_uint64(20) + put_uint64(30))
    serials += put_byte(0x22) + put_string(put_uint64(40) + put_string(b"\x81\x01"))
    serials += put_byte(0x23) + put_string(put_string("id") + put_string("other"))
    extension = put_string("x") + b"\0" + put_string(b"")
    krl = b"SSHKRL\n\x00" + put_uint32(1) + put_uint64(1) * 3 + put_string(b"") + put_string("comment")
    krl += put_byte(1) + put_string(put_string(keys[0]) + put_string(b"") + serials)
    krl += put_byte(2) + put_string(put_string(keys[1])) + put_byte(3) + put_string(put_string(b"s" * 20))
    krl += put_byte(5) + put_string(put_string(b"s" * 32)) + put_byte(255) + put_string(extension)
    revoked = f"# gone\n{signers[0].key.line}\n{signers[1].fingerprint}\r\n".encode()
    receipts = sorted((TESTS / "workflows" / "gpu_proof").glob("*.json"))
    seeds = {
        "envelope": lines,
        "record": lines,
        "signed": [base64.b64decode(line.split(b'"')[3]) for line in lines] + _payloads(),
        "statement": _payloads(),
        **_bodies(),
        "journal": [_lines(JOURNAL)],
        "sshsig": blobs,
        "armour": [b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"],
        "key": keys,
        "krl": [krl],
        "allowed_signers": [allowed.encode()],
        "revoked_keys": [revoked, krl],
        "private_key": files,
        "junit": [JUNIT],
        "reportlog": [_lines(REPORTLOG)],
        "ctrf": [json.dumps(CTRF).encode()],
        "gpu_proof": [path.read_bytes() for path in receipts],
        "capability": [b'{"reports":[]}'],
        "config": [CONFIG],
    }
    return seeds, signers[0]
