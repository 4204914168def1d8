"""Write the vectors beside this file: lines and payloads, each with the outcome that every reader must reach.

    python tests/records/vectors/make.py

One scenario each. `expect` is `accepted`, or the start of the refusal's message. Nothing here is random, and no
code of the ledger is used but to compare: the bytes are spelled out by hand or by Python's own json and base64.
"""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

FINGERPRINT = "SHA256:" + "Ab9+" * 10 + "xyz"
COMMIT, TREE, OLDER = "1" * 40, "2" * 40, "3" * 40
TIMES = {"started_at": "2026-01-31T12:00:00.25Z", "ended_at": "2026-01-31T12:05:07Z"}
ZERO = dict.fromkeys(("failed", "error", "skipped", "xfailed", "xpassed", "deselected"), 0)
SIGNER = {
    "algorithm": "ssh-ed25519",
    "backend": "file",
    "key_fingerprint": FINGERPRINT,
    "user": "alice@example.org",
}
ENVIRONMENT = {
    "coverage": None,
    "gitledger": "0.1.0",
    "gpu": None,
    "platform": {"libc": "glibc 2.36", "machine": "x86_64", "system": "Linux"},
    "pytest": "8.3.2",
    "python": "3.12.4",
}
REPO = {"branch": "main", "commit": COMMIT, "dirty": False, "remote": None, "tree": TREE}
SHARD: dict[str, Any] = {
    "bodies": {"tests": {"oid": "4" * 40, "sha256": "5" * 64, "size": 77}},
    "collection": {"full_count": 2, "full_digest": "6" * 64, "selected_digest": "6" * 64},
    "counts": {"collected": 2, "passed": 2, **ZERO},
    "environment": ENVIRONMENT,
    "manifest": {"digest": "7" * 64, "excluded_paths": [], "extra_paths": [], "paths": ["src", "tests"]},
    "outcome": "passed",
    "reasons": [],
    "record_version": 1,
    "repo": REPO,
    "repository": "example",
    "session": {
        **TIMES,
        "argv": ["pytest", "tests"],
        "exit_status": 0,
        "finished": True,
        "mode": "local",
        "signal": None,
        "witnessed": True,
        "workers": None,
    },
    "shard": {"attempt": 1, "definition_digest": "8" * 64, "name": "unit", "split": None, "variant": None},
    "signer": SIGNER,
}
MERGED: dict[str, Any] = {
    "counts": {"collected": 2, "passed": 2, **ZERO},
    "coverage": {"covered": 4, "passed": True, "precision": 0, "threshold": "80", "total": 5},
    "environment": ENVIRONMENT,
    "inputs_verified": True,
    "merged_at": "2026-01-31T13:00:00Z",
    "outcome": "passed",
    "record_version": 1,
    "repo": REPO,
    "repository": "example",
    "session": TIMES,
    "shards": [
        {
            **TIMES,
            "carried": {
                "distance": 1,
                "original_commit": OLDER,
                "original_dirty": False,
                "original_ended_at": TIMES["ended_at"],
                "original_signer": "alice",
            },
            "commit": OLDER,
            "counts": {"collected": 2, "passed": 2, **ZERO},
            "dirty": False,
            "key_fingerprint": FINGERPRINT,
            "name": "unit",
            "outcome": "passed",
            "record": "9" * 64,
            "signer": "alice",
            "variant": None,
        }
    ],
    "signer": SIGNER,
}
REVOCATION: dict[str, Any] = {
    "reason": "the clock was wrong",
    "record": "9" * 64,
    "record_version": 1,
    "repository": "example",
    "revoked_at": "2026-02-01T00:00:00Z",
    "signer": SIGNER,
}
KINDS = {
    "shard": ("urn:gitledger:receipt:shard:v1", SHARD),
    "merged": ("urn:gitledger:receipt:merged:v1", MERGED),
    "revocation": ("urn:gitledger:revocation:v1", REVOCATION),
}


def spell(value: Any) -> str:
    """Return the one spelling: sorted keys, no white space, ASCII."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def payload(kind: str, changes: dict[str, Any] | None = None) -> str:
    """Return a statement's payload; `changes` maps dotted paths below the document to values, `...` removes."""
    predicate_type, predicate = KINDS[kind]
    document: Any = {
        "_type": "https://in-toto.io/Statement/v1",
        "predicate": copy.deepcopy(predicate),
        "predicateType": predicate_type,
        "subject": [{"digest": {"gitCommit": COMMIT, "gitTree": TREE}, "name": "commit"}],
    }
    for path, value in (changes or {}).items():
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        node = document
        for step in steps:
            node = node[step]
        if value is ...:
            del node[last]
        else:
            node[last] = value
    return spell(document)


def line(text: str, *, sig: bytes | None = b"SSHSIG") -> str:
    """Return the line of a payload; `sig` stands for a signature, which these vectors don't judge."""
    signatures = [] if sig is None else [{"keyid": FINGERPRINT, "sig": base64.b64encode(sig).decode()}]
    encoded = base64.b64encode(text.encode()).decode()
    return spell({"payload": encoded, "payloadType": "application/vnd.in-toto+json", "signatures": signatures})


def vector(name: str, expect: str, text: str) -> dict[str, str]:
    """Return one vector."""
    return {"name": name, "expect": expect, "line": text}


def envelopes() -> list[dict[str, str]]:
    """Return lines for `decode_line`."""
    good = line("{}")
    other = "$: the envelope is not in its canonical spelling"
    return [
        vector("signed", "accepted", good),
        vector("unsigned", "accepted", line("{}", sig=None)),
        vector("payload is not looked into", "accepted", line("no statement")),
        vector("white space", other, good.replace(",", ", ")),
        vector("trailing newline", other, good + "\n"),
        vector("other key order", other, "{" + ",".join(reversed(good[1:-1].split(",", 2))) + "}"),
        vector("additional field", other, good[:-1] + ',"x":1}'),
        vector("escaped slash", other, good.replace("/vnd", "\\/vnd")),
        vector("duplicate key", "$: duplicate key 'payload'", good.replace("{", '{"payload":"",', 1)),
        vector("two signatures", "$.signatures: 2 items", good.replace("}]", "},{}]")),
        vector("no padding", "$.payload: not base64", good.replace("e30=", "e30")),
        vector("spare bits", "$.payload: base64 is not in its canonical", good.replace("e30=", "e31=")),
        vector("URL alphabet", "$.payload: ", good.replace("e30=", "e-_=")),
        vector("other payload type", "$.payloadType: expected", good.replace("in-toto+json", "other+json")),
        vector(
            "signature is null", "$.signatures: expected a list", spell({**json.loads(good), "signatures": None})
        ),
        vector("keyid of another hash", "$.signatures[0].keyid: expected", good.replace("SHA256:", "MD5:")),
        vector("not JSON", "$: not JSON", good[:-1]),
        vector("a list", "$: expected an object", "[]"),
        vector("an empty line", "$: not JSON", ""),
    ]


def receipts() -> list[dict[str, str]]:
    """Return lines whose payload `Statement.decode` and its kind's decoder judge."""

    def of(name: str, expect: str, kind: str, **changes: Any) -> dict[str, str]:
        dotted = {path.replace("__", "."): value for path, value in changes.items()}
        return vector(name, expect, line(payload(kind, dotted)))

    def raw(name: str, expect: str, text: str) -> dict[str, str]:
        return vector(name, expect, line(text))

    good = payload("shard")
    green = "$.predicate.outcome: passed, with "
    failed = {"predicate__outcome": "failed", "predicate__counts__passed": 1, "predicate__counts__failed": 1}
    return [
        of("green shard", "accepted", "shard"),
        vector("unsigned shard", "accepted", line(payload("shard", {"predicate.signer": None}), sig=None)),
        of("failed shard", "accepted", "shard", **failed),
        of("unknown field", "accepted", "shard", predicate__later={"deep": [1, 2]}),
        of(
            "null fields absent",
            "accepted",
            "shard",
            predicate__shard__variant=...,
            predicate__session__signal=...,
        ),
        raw("white space in the payload", "accepted", json.dumps(json.loads(good))),
        of("merged", "accepted", "merged"),
        of("revocation", "accepted", "revocation"),
        of("signer absent", "$.predicate.signer: missing", "shard", predicate__signer=...),
        of("count absent", "$.predicate.counts.failed: missing", "shard", predicate__counts__failed=...),
        of(
            "count is text",
            "$.predicate.counts.passed: expected an integer",
            "shard",
            predicate__counts__passed="2",
        ),
        of("count is a float", "$.predicate.counts.passed: expected", "shard", predicate__counts__passed=2.0),
        of("flag is a number", "$.predicate.session.finished: expected", "shard", predicate__session__finished=1),
        of("outcome unknown", "$.predicate.outcome: expected one of", "shard", predicate__outcome="PASSED"),
        of(
            "24:00", "$.predicate.session.ended_at: ", "shard", predicate__session__ended_at="2026-01-31T24:00:00Z"
        ),
        of(
            "offset",
            "$.predicate.session.ended_at: ",
            "shard",
            predicate__session__ended_at="2026-01-31T13:00:00+01:00",
        ),
        of(
            "leap second",
            "$.predicate.session.ended_at: ",
            "shard",
            predicate__session__ended_at="2026-06-30T23:59:60Z",
        ),
        of(
            "ends before it starts",
            "$.predicate.session.ended_at: lies",
            "shard",
            predicate__session__ended_at="2026-01-30T00:00:00Z",
        ),
        of(
            "later major version",
            "$.predicateType: unknown",
            "shard",
            predicateType="urn:gitledger:receipt:shard:v2",
        ),
        of("later record version", "$.predicate.record_version: expected 1", "shard", predicate__record_version=2),
        of("other statement type", "$._type: expected", "shard", _type="https://in-toto.io/Statement/v0.1"),
        of("no subject", "$.subject: expected exactly one", "shard", subject=[]),
        of(
            "another commit than its subject",
            "$.predicate.repo: commit and tree",
            "shard",
            predicate__repo__commit="a" * 40,
        ),
        of("short commit", "$.subject[0].digest.gitCommit: ", "shard", subject__0__digest__gitCommit="1" * 12),
        of("name with @", "$.predicate.shard.name: expected", "shard", predicate__shard__name="unit@py312"),
        of(
            "green with a failure",
            green + "failed tests",
            "shard",
            predicate__counts__passed=1,
            predicate__counts__failed=1,
        ),
        of(
            "green of nothing",
            green + "no tests",
            "shard",
            predicate__counts__collected=0,
            predicate__counts__passed=0,
        ),
        of("green, one test never ended", green + "tests that never", "shard", predicate__counts__passed=1),
        of("green without an end", green + "an unfinished", "shard", predicate__session__finished=False),
        of("green by signal", green + "a signal", "shard", predicate__session__signal=11),
        of("green with exit status 1", green + "an exit status", "shard", predicate__session__exit_status=1),
        of("green with a reason", green + "a reason", "shard", predicate__reasons=["timeout"]),
        of("green without results", green + "no test results", "shard", predicate__bodies={}),
        of("merge of nothing", "$.predicate.shards: no shards", "merged", predicate__shards=[]),
        of(
            "merge of a red shard",
            "$.predicate.outcome: passed, with a shard",
            "merged",
            predicate__shards__0__outcome="failed",
        ),
        of(
            "merge with other counts", "$.predicate.counts: not the sum", "merged", predicate__counts__deselected=1
        ),
        of(
            "merge under its threshold",
            "$.predicate.outcome: passed, with cov",
            "merged",
            predicate__coverage__passed=False,
            predicate__coverage__covered=3,
        ),
        of(
            "coverage that its integers deny",
            "$.predicate.coverage.passed: not what",
            "merged",
            predicate__coverage__covered=3,
        ),
        of(
            "covered more than there is",
            "$.predicate.coverage.covered: ",
            "merged",
            predicate__coverage__covered=6,
        ),
        of("revokes no record", "$.predicate.record: expected 64", "revocation", predicate__record="1" * 40),
        raw(
            "duplicate key",
            "$.predicate.counts: duplicate key 'failed'",
            good.replace('"failed":0', '"failed":9,"failed":0'),
        ),
        raw(
            "duplicate key by escape",
            "$.predicate.counts: duplicate key 'failed'",
            good.replace('"failed":0', '"f\\u0061iled":9,"failed":0'),
        ),
        raw("NaN", "$.predicate.counts.failed: NaN", good.replace('"failed":0', '"failed":NaN')),
        raw(
            "overflow",
            "$.predicate.later: a number is out of range",
            good.replace('"outcome"', '"later":1e999,"outcome"'),
        ),
        raw(
            "a hundred deep",
            "$: nested deeper",
            good.replace('"outcome"', '"later":' + "[" * 100 + "]" * 100 + ',"outcome"'),
        ),
        raw("byte order mark", "$: not JSON", "\ufeff" + good),
        raw("cut short", "$: not JSON", good[:-1]),
    ]


VECTORS = {"envelopes.json": envelopes, "receipts.json": receipts}


def main(folder: Path) -> None:
    """Write every file of vectors into `folder`."""
    for name, vectors in VECTORS.items():
        (folder / name).write_text(json.dumps(vectors(), indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(Path(__file__).parent)
