"""Writes docs/reference/schemas/: what is said here once stands in every document that uses it.

    python tests/schemas/make.py

Each schema is a file of its own that refers to no other, so that any validator takes it as it is. Objects are closed.
What a document of another version may add to a stored statement is for its readers to ignore, so those are open.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs/reference/schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
WHOLE: Schema = {"type": "integer"}
SECONDS: Schema = {"type": "number", "minimum": 0}
NUMBER: Schema = {"type": "number"}


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def maybe(schema: Schema) -> Schema:
    """What may be null as well."""
    if "type" in schema and isinstance(schema["type"], str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def several(schema: Schema, *, least: int = 0) -> Schema:
    return {"type": "array", "items": schema, **({"minItems": least} if least else {})}


def one_of(*words: str) -> Schema:
    return {"enum": list(words)}


def table(value: Schema) -> Schema:
    """An object whose keys are data."""
    return {"type": "object", "additionalProperties": value}


def obj(fields: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None, *, about: str = "") -> Schema:
    """A closed object; all `fields` are there."""
    return {
        "type": "object",
        **({"description": about} if about else {}),
        "properties": {**fields, **(optional or {})},
        "required": sorted(fields),
        "additionalProperties": False,
    }


def said(schema: Schema, about: str) -> Schema:
    return {**schema, "description": about}


TEXTS = several(TEXT)
OID, DIGEST, TIME, SHARD, VARIANT = (ref(name) for name in ("oid", "digest", "time", "word", "variant"))
SHARD_OUTCOME = one_of("passed", "failed", "error", "incomplete")
TEST_OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
MODE = one_of("local", "ci", "ci-gpu")
NAMED = {"name": SHARD, "variant": VARIANT}

DEFS: dict[str, Schema] = {
    "oid": {"type": "string", "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$", "description": "A git object id."},
    "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256 in hex; a record's id."},
    "fingerprint": {"type": "string", "pattern": "^SHA256:[A-Za-z0-9+/]{43}$"},
    "time": {
        "type": "string",
        "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$",
        "description": "RFC 3339, UTC.",
    },
    "word": {
        "type": "string",
        "pattern": r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$",
        "description": "Names a shard, a variant, a lane or a recipe.",
    },
    "variant": said(maybe({"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$"}), "null: none."),
    "code": {
        "type": "string",
        "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$",
        "description": "`git ledger explain CODE` says what it means.",
    },
    "error": obj(
        {
            "error": obj(
                {
                    "code": ref("code"),
                    "exit_status": WHOLE,
                    "hint": said(TEXT, "What to try; may be empty."),
                    "message": TEXT,
                }
            )
        },
        about="What every command prints instead where it can't answer.",
    ),
    "counts": obj(dict.fromkeys(("collected", "deselected", *TEST_OUTCOMES), COUNT), about="Numbers of tests."),
    "finding": obj(
        {
            "blocks": said(FLAG, "Keeps the verdict from passing."),
            "code": ref("code"),
            "expected": TEXT,
            "found": TEXT,
            "remedy": said(TEXT, "What to type; may be empty."),
            "rule": TEXT,
            "subject": TEXT,
        },
        about="One reason for or against a verdict.",
    ),
    "ignored": obj(
        {"reason": TEXT, "record": maybe(DIGEST)},
        about="A record that counts for nothing, and why; null: unreadable.",
    ),
    "policy": obj(
        {"commit": OID, "digest": DIGEST, "from": said(TEXT, "`self`, or the ref that was named.")},
        about="Where policy came from.",
    ),
    "coverage": obj(
        {
            "covered": COUNT,
            "passed": maybe(FLAG),
            "precision": COUNT,
            "threshold": said(maybe(TEXT), "As it was spelled."),
            "total": COUNT,
        }
    ),
    "choice": obj(
        {
            **NAMED,
            "attempts": several(DIGEST),
            "changed_paths": TEXTS,
            "detail": TEXT,
            "distance": said(maybe(COUNT), "The least number of parent edges."),
            "ended_at": maybe(TIME),
            "from_commit": maybe(OID),
            "outcome": maybe(SHARD_OUTCOME),
            "reason": said(ref("code"), "Of the closed list of plan reasons."),
            "record": maybe(DIGEST),
            "verdict": one_of("fresh", "carryable", "stale"),
        },
        about="What stands for one shard. Commit, record and time are those of the receipt that the reason is about.",
    ),
    "summary": obj(dict.fromkeys(("fresh", "carryable", "stale"), COUNT)),
    "layers": obj(
        {"end": maybe(COUNT), "end_inclusive": {"const": True}, "start": COUNT, "total": maybe(COUNT)},
        about="Layers start to end, both included.",
    ),
    "device": obj(
        {
            "arch": maybe(TEXT),
            "count": maybe(COUNT),
            "index": maybe(COUNT),
            "kind": maybe(one_of("cpu", "cuda", "hip")),
            "name": maybe(TEXT),
            "requested": one_of("auto", "cpu", "gpu"),
            "total_memory_bytes": maybe(COUNT),
            "used": maybe(TEXT),
        }
    ),
    "torch": obj({name: maybe(TEXT) for name in ("cuda", "git", "hip", "version")}),
    "os": obj({"kernel": TEXT, "machine": TEXT, "name": TEXT, "version": maybe(TEXT)}),
    "recipe": obj({"digest": DIGEST, "id": SHARD, "version": SHARD}),
    "quantization": obj({"compute_dtype": maybe(TEXT), "requested": TEXT, "resolved": maybe(TEXT)}),
    "cell": obj(
        {
            "detail": TEXT,
            "evidence": maybe(
                obj(
                    {
                        "commit": OID,
                        "device": ref("device"),
                        "driver": maybe(TEXT),
                        "duration_ms": maybe(NUMBER),
                        "finished_at": TIME,
                        "layers": ref("layers"),
                        "model": obj({"digest": maybe(DIGEST), "resolved": maybe(TEXT)}),
                        "os": ref("os"),
                        "quantization": ref("quantization"),
                        "recipe": ref("recipe"),
                        "signer": maybe(TEXT),
                        "torch": ref("torch"),
                    }
                )
            ),
            "lane": SHARD,
            "layers": maybe(several(COUNT, least=2)),
            "model": TEXT,
            "quantization": maybe(TEXT),
            "recipe": SHARD,
            "record": maybe(DIGEST),
            "required": FLAG,
            "status": one_of("passed", "failed", "inconclusive", "skipped", "missing", "stale", "mismatched"),
        },
        about="One recipe on one model on one lane.",
    ),
    "merge": obj(
        {
            "commit": OID,
            "coverage": maybe(ref("coverage")),
            "findings": several(ref("finding")),
            "outcome": one_of("passed", "failed", "refused"),
            "record": said(maybe(DIGEST), "null where nothing was written."),
            "shards": several(obj({**NAMED, "carried": FLAG, "outcome": SHARD_OUTCOME, "record": DIGEST})),
        }
    ),
    "body": obj({"oid": OID, "sha256": DIGEST, "size": COUNT}, about="Names a body."),
    "signer": maybe(
        obj({"algorithm": TEXT, "backend": TEXT, "key_fingerprint": ref("fingerprint"), "user": TEXT})
    ),
    "repo": obj(
        {"branch": maybe(TEXT), "commit": OID, "dirty": FLAG, "remote": maybe(TEXT), "tree": OID},
        {"created": TEXTS, "dirty_paths": TEXTS},
    ),
    "environment": obj(
        {
            "coverage": maybe(TEXT),
            "gitledger": TEXT,
            "gpu": maybe(
                obj(
                    {
                        "driver": maybe(TEXT),
                        "memory_bytes": several(COUNT),
                        "names": TEXTS,
                        "runtime": maybe(TEXT),
                        "source": TEXT,
                        "uuids": TEXTS,
                        "vendor": TEXT,
                    }
                )
            ),
            "platform": obj({"libc": maybe(TEXT), "machine": TEXT, "system": TEXT}),
            "pytest": maybe(TEXT),
            "python": maybe(TEXT),
        }
    ),
    "merged_shard": obj(
        {
            **NAMED,
            "carried": maybe(
                obj(
                    {
                        "distance": maybe(COUNT),
                        "original_commit": OID,
                        "original_dirty": FLAG,
                        "original_ended_at": TIME,
                        "original_signer": maybe(TEXT),
                    }
                )
            ),
            "commit": OID,
            "counts": ref("counts"),
            "dirty": FLAG,
            "ended_at": TIME,
            "key_fingerprint": maybe(ref("fingerprint")),
            "outcome": SHARD_OUTCOME,
            "record": DIGEST,
            "signer": maybe(TEXT),
            "started_at": TIME,
        },
        about="One input of a merged receipt.",
    ),
    "origin": obj(
        {
            "schema": TEXT,
            "sha256": DIGEST,
            "signed_by": said(maybe(TEXT), "Not checked."),
            "size": COUNT,
            "tool": TEXT,
            "tool_version": maybe(TEXT),
        }
    ),
}

REPORT = obj(
    {
        "content_digest": DIGEST,
        "device": ref("device"),
        "driver": maybe(TEXT),
        "execution": one_of("complete", "error", "skipped"),
        "forward": obj(
            {
                "executed": FLAG,
                "finite": maybe(FLAG),
                "output_device": maybe(TEXT),
                "output_digest": maybe(DIGEST),
                "output_dtype": maybe(TEXT),
                "output_shape": maybe(several(COUNT)),
                "reference": maybe(
                    obj(
                        {
                            "device": {"const": "cpu"},
                            "dtype": {"const": "float32"},
                            "error": maybe(NUMBER),
                            "inputs_digest": DIGEST,
                            "metric": {"const": "relative-l2"},
                            "output_digest": DIGEST,
                            "seed": COUNT,
                            "tolerance": NUMBER,
                        }
                    )
                ),
            }
        ),
        "lane": obj({"declared": table(TEXT), "id": VARIANT, "observed": table(maybe(TEXT))}),
        "layers": ref("layers"),
        "log_excerpt": TEXT,
        "model": obj(
            {
                "digest": maybe(DIGEST),
                "files": several(obj({"name": TEXT, "sha256": DIGEST, "size": COUNT})),
                "requested": maybe(TEXT),
                "resolved": maybe(TEXT),
            }
        ),
        "os": ref("os"),
        "overrides": table(TEXT),
        "quantization": ref("quantization"),
        "reason": maybe(obj({"code": ref("code"), "message": TEXT, "stage": TEXT})),
        "recipe": ref("recipe"),
        "repo": obj(
            {
                "branch": maybe(TEXT),
                "commit": OID,
                "dirty": FLAG,
                "dirty_paths": TEXTS,
                "remote": maybe(TEXT),
                "tree": OID,
            }
        ),
        "result": one_of("pass", "fail", "not_applicable"),
        "runtime": obj({"libc": maybe(TEXT), "python": maybe(TEXT)}),
        "schema": {"const": "gitledger-capability/1"},
        "status": one_of("passed", "failed", "inconclusive", "skipped"),
        "timing": obj(
            {
                "duration_ms": maybe(NUMBER),
                "finished_at": TIME,
                "stages": table(NUMBER),
                "started_at": TIME,
            }
        ),
        "tool": obj({"name": TEXT, "version": TEXT}),
        "torch": ref("torch"),
    },
    about="What one recipe could really execute on one lane.",
)
DEFS["report"] = REPORT

_CLAIMS = {"record_version": {"type": "integer", "minimum": 1}, "repository": TEXT, "signer": ref("signer")}
PREDICATES: dict[str, Schema] = {
    "urn:gitledger:receipt:shard:v1": obj(
        {
            **_CLAIMS,
            "bodies": obj({}, {name: ref("body") for name in ("tests", "coverage", "inputs", "log")}),
            "collection": obj({"full_count": COUNT, "full_digest": DIGEST, "selected_digest": DIGEST}),
            "counts": ref("counts"),
            "environment": ref("environment"),
            "manifest": obj(
                {"digest": DIGEST, "excluded_paths": TEXTS, "extra_paths": TEXTS, "paths": TEXTS},
                {"extra": several(obj({"mode": COUNT, "path": TEXT, "sha256": DIGEST})), "outside": maybe(TEXTS)},
            ),
            "outcome": SHARD_OUTCOME,
            "reasons": several(ref("code")),
            "repo": ref("repo"),
            "session": obj(
                {
                    "argv": TEXTS,
                    "ended_at": TIME,
                    "exit_status": maybe(WHOLE),
                    "finished": FLAG,
                    "mode": MODE,
                    "signal": maybe(COUNT),
                    "started_at": TIME,
                    "witnessed": FLAG,
                    "workers": maybe(COUNT),
                }
            ),
            "shard": obj(
                {
                    **NAMED,
                    "attempt": {"type": "integer", "minimum": 1},
                    "definition_digest": DIGEST,
                    "split": maybe(obj({"index": COUNT, "total": COUNT})),
                }
            ),
        }
    ),
    "urn:gitledger:receipt:merged:v1": obj(
        {
            **_CLAIMS,
            "counts": ref("counts"),
            "coverage": maybe(ref("coverage")),
            "environment": ref("environment"),
            "inputs_verified": FLAG,
            "merged_at": TIME,
            "outcome": SHARD_OUTCOME,
            "repo": ref("repo"),
            "session": obj({"ended_at": TIME, "started_at": TIME}),
            "shards": several(ref("merged_shard"), least=1),
        }
    ),
    "urn:gitledger:capability:v1": obj({**_CLAIMS, "report": ref("report")}),
    "urn:gitledger:revocation:v1": obj({**_CLAIMS, "reason": TEXT, "record": DIGEST, "revoked_at": TIME}),
    "urn:gitledger:imported:v1": obj(
        {
            **_CLAIMS,
            "bodies": obj({}, {"tests": ref("body")}),
            "counts": ref("counts"),
            "dirty": FLAG,
            "imported_at": TIME,
            "mode": TEXT,
            "origin": ref("origin"),
            "outcome": SHARD_OUTCOME,
            "session": obj({"ended_at": TIME, "started_at": TIME}),
            "shards": TEXTS,
        }
    ),
}


def _is_nullable(schema: Schema) -> bool:
    wanted = schema.get("type", "")
    return schema == VARIANT or {"type": "null"} in schema.get("anyOf", ()) or "null" in wanted


def _open(schema: Any) -> Any:
    """The same as readers take it: with further fields, and without those that may be null."""
    if isinstance(schema, list):
        return [_open(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    fields = schema.get("properties", {})
    there = {"required": [name for name in schema.get("required", ()) if not _is_nullable(fields[name])]}
    kept = {key: _open(item) for key, item in schema.items() if key != "additionalProperties" or item is not False}
    return kept | there if "required" in schema and fields else kept


STATEMENT = {
    **obj(
        {
            "_type": {"const": "https://in-toto.io/Statement/v1"},
            "predicate": {"type": "object"},
            "predicateType": one_of(*PREDICATES),
            "subject": {
                **several(obj({"digest": obj({"gitCommit": OID, "gitTree": OID})}, {"name": TEXT}), least=1),
                "maxItems": 1,
            },
        }
    ),
    "allOf": [
        {
            "if": {"properties": {"predicateType": {"const": kind}}},
            "then": {"properties": {"predicate": predicate}},
        }
        for kind, predicate in PREDICATES.items()
    ],
}

_ENTRY = {"fault": maybe(TEXT), "key": maybe(ref("fingerprint")), "record": maybe(DIGEST), "signer": maybe(TEXT)}
_SHOWN = {
    "coverage": said(several(obj({"covered": COUNT, "path": TEXT, "total": COUNT})), "With --coverage."),
    "statement": said({"type": "object"}, "What was signed: see statement.json."),
    "tests": several(
        obj(
            {
                "attempts": COUNT,
                "duration_ns": COUNT,
                "node_id": TEXT,
                "outcome": one_of(*TEST_OUTCOMES),
                "phase": maybe(TEXT),
            }
        )
    ),
}


def record_entry(more: Mapping[str, Schema], *, only: Sequence[str] = ()) -> Schema:
    """One record as `log` and `show` say it, told apart by its kind; `only` of these kinds, where any are named."""
    kinds: dict[str, dict[str, Schema]] = {
        "shard": {
            **NAMED,
            "counts": ref("counts"),
            "dirty": FLAG,
            "ended_at": TIME,
            "outcome": SHARD_OUTCOME,
            "reasons": several(ref("code")),
        },
        "merged": {
            "counts": ref("counts"),
            "ended_at": TIME,
            "merged_at": TIME,
            "outcome": SHARD_OUTCOME,
            "shards": several(ref("merged_shard")),
        },
        "revocation": {"reason": TEXT, "revokes": DIGEST},
        "imported": {
            "counts": ref("counts"),
            "dirty": FLAG,
            "ended_at": TIME,
            "origin": ref("origin"),
            "outcome": SHARD_OUTCOME,
            "shards": TEXTS,
        },
        "capability": {
            "ended_at": TIME,
            "lane": VARIANT,
            "layers": ref("layers"),
            "model": maybe(TEXT),
            "reason": maybe(ref("code")),
            "recipe": SHARD,
            "status": one_of("passed", "failed", "inconclusive", "skipped"),
        },
        "unknown": {},
    }
    kinds = {kind: fields for kind, fields in kinds.items() if kind in only or not only}
    return {
        "type": "object",
        "properties": {"kind": one_of(*kinds)},
        "required": ["kind"],
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}},
                "then": obj({**_ENTRY, "kind": {"const": kind}, **fields}, more),
            }
            for kind, fields in kinds.items()
        ],
    }


DEFS["input"] = said(
    record_entry(
        {"commit": OID, "coverage": _SHOWN["coverage"], "tests": _SHOWN["tests"]}, only=("shard", "unknown")
    ),
    "A receipt that a merge names; `unknown` where it is not here.",
)
_INPUTS = said(
    several(ref("input")), "With --tests or --coverage, of a merge: what it names and is not listed here."
)


def commit_entry(more: Mapping[str, Schema]) -> Schema:
    return obj(
        {
            "commit": OID,
            "committed_at": TIME,
            "records": several(record_entry(more)),
            "summary": TEXT,
            "tree": OID,
        }
    )


VERDICT = one_of("passed", "failed")
VERIFY: dict[str, Schema] = {
    "commit": OID,
    "coverage": maybe(ref("coverage")),
    "findings": several(ref("finding")),
    "ignored": several(ref("ignored")),
    "policy": ref("policy"),
    "shards": several(ref("choice")),
    "verdict": VERDICT,
}
PUBLISHED = obj(
    {
        "bodies": COUNT,
        "folded": said(COUNT, "Inbox refs that were folded into the notes."),
        "lines": COUNT,
        "remote": TEXT,
        "via": one_of("notes", "inbox", "nothing"),
    }
)
FETCHED = obj({"remote": TEXT, "via": {"const": "fetch"}})
RECEIVED = obj(
    {
        "from": TEXT,
        "known": COUNT,
        "policy": obj({"commit": OID}),
        "refused": several(obj({"commit": OID, "reason": TEXT, "record": maybe(DIGEST)})),
        "taken": several(DIGEST),
    }
)
PLAN = {
    "commit": OID,
    "policy": ref("policy"),
    "shards": several(ref("choice")),
    "summary": ref("summary"),
    "uncommitted": said(
        several(obj({**NAMED, "paths": TEXTS})), "Shards that uncommitted edits would make stale, once committed."
    ),
    "unpublished": said(table(COUNT), "Records of this clone that each remote was not seen to have."),
}
EXPLAINED = obj(
    {
        "code": ref("code"),
        "exit_statuses": several(WHOLE),
        "kinds": TEXTS,
        "meaning": TEXT,
        "remedy": TEXT,
        "section": TEXT,
    }
)

COMMANDS: dict[str, tuple[str, Schema]] = {
    "record": (
        "What became of a run, or of the reports of a doctor",
        {
            "anyOf": [
                obj(
                    {
                        "exit_status": WHOLE,
                        "outcome": SHARD_OUTCOME,
                        "reasons": several(ref("code")),
                        "record": DIGEST,
                        "signal": maybe(COUNT),
                        "stored": FLAG,
                    }
                ),
                obj(
                    {
                        "exit_status": WHOLE,
                        "findings": said(several(ref("finding")), "Why a report counts for nothing."),
                        "records": several(DIGEST),
                        "stored": {"const": True},
                    },
                    about="--capability",
                ),
            ]
        },
    ),
    "run": (
        "What ran, what stands now, and the merge",
        {
            "anyOf": [
                obj(
                    {
                        "commit": OID,
                        "exit_status": WHOLE,
                        "interrupted": said(maybe(COUNT), "The number of the signal."),
                        "merge": maybe(ref("merge")),
                        "not_run": several(obj({**NAMED, "code": ref("code"), "reason": TEXT})),
                        "not_started": several(obj(NAMED)),
                        "ran": several(
                            obj(
                                {
                                    **NAMED,
                                    "attempt": COUNT,
                                    "outcome": SHARD_OUTCOME,
                                    "reasons": several(ref("code")),
                                    "record": DIGEST,
                                    "seconds": SECONDS,
                                    "stored": FLAG,
                                }
                            )
                        ),
                        "shards": several(ref("choice")),
                        "stopped": maybe(obj({"code": ref("code"), "reason": TEXT})),
                        "too_many_attempts": several(obj(NAMED)),
                        "uncovered": several(obj(NAMED)),
                    }
                ),
                obj(
                    {"exit_status": WHOLE, "spooled": several(obj({"name": TEXT, "outcome": SHARD_OUTCOME}))},
                    about="On a node: --spool without --on.",
                ),
            ]
        },
    ),
    "plan": ("What is fresh, what carries, what must run", obj(PLAN)),
    "merge": ("What the merged receipt says, or why there is none", ref("merge")),
    "verify": (
        "The verdict on a commit",
        obj(VERIFY, {"lanes": said(several(ref("cell")), "With --lanes.")}),
    ),
    "gate": (
        "The verdict, and what was done around it",
        {
            "anyOf": [
                obj(
                    {
                        **VERIFY,
                        "judged": TEXT,
                        "merge": maybe(
                            obj({"outcome": one_of("passed", "failed", "refused"), "record": maybe(DIGEST)})
                        ),
                        "plan": ref("summary"),
                        "published": maybe({"anyOf": [PUBLISHED, FETCHED]}),
                        "received": several(RECEIVED),
                        "remote": maybe(TEXT),
                    }
                ),
                obj(
                    {
                        "file": TEXT,
                        "findings": several(ref("finding")),
                        "kind": one_of("GitHub", "GitLab"),
                        "verdict": VERDICT,
                    },
                    about="--check-workflow",
                ),
            ]
        },
    ),
    "status": ("The plan of HEAD, and what is not published", obj(PLAN)),
    "log": ("Commits that carry evidence, newest first", several(commit_entry({}))),
    "show": ("The records of a commit, or one record", commit_entry({**_SHOWN, "inputs": _INPUTS})),
    "scope": (
        "What a shard declares, and what its runs read",
        obj(
            {
                **NAMED,
                "commit": OID,
                "declared": obj({"excluded_paths": TEXTS, "extra_paths": TEXTS, "paths": TEXTS}),
                "outside": said(TEXTS, "Read, and not declared."),
                "proposed": obj({"extra_paths": TEXTS, "paths": TEXTS}),
                "records": said(several(DIGEST), "The runs that were looked at."),
                "roots_known": FLAG,
                "unread": TEXTS,
                "vanished": TEXTS,
            }
        ),
    ),
    "split": (
        "The partition, the refreshed durations, or advice",
        {
            "anyOf": [
                obj(
                    {
                        "findings": several(ref("finding")),
                        "orphan_count": COUNT,
                        "orphans": said(TEXTS, "Tests that belong to no shard; cut where there are many."),
                        "parts": several(obj({"files": TEXTS, "name": SHARD, "seconds": SECONDS, "tests": COUNT})),
                        "verdict": VERDICT,
                    },
                    about="--check",
                ),
                obj({"file": TEXT, "refreshed": COUNT, "tests": COUNT}, about="--write"),
                {
                    **table(
                        obj(
                            {
                                "divisible_seconds": NUMBER,
                                "fixed_seconds": NUMBER,
                                "longest_seconds": said(table(NUMBER), "By number of parts."),
                                "parts": COUNT,
                                "runs": COUNT,
                            }
                        )
                    ),
                    "description": "--advise, by shard",
                },
            ]
        },
    ),
    "flaky": (
        "Tests whose outcome changed while their inputs did not",
        several(
            obj(
                {
                    **NAMED,
                    "last_seen": maybe(TIME),
                    "node_id": TEXT,
                    "outcomes": said({**table(COUNT), "propertyNames": one_of(*TEST_OUTCOMES)}, "How often each."),
                    "reruns": COUNT,
                }
            )
        ),
    ),
    "doctor": (
        "What was executed, in a report for each recipe",
        obj(
            {
                "exit_status": WHOLE,
                "lacking": said(
                    several(obj({"recipe": TEXT, "why": TEXT})), "Recipes asked for that can't be used."
                ),
                "records": several(DIGEST),
                "reports": several(ref("report")),
            }
        ),
    ),
    "lanes": (
        "The release check",
        obj(
            {
                "cells": several(ref("cell")),
                "commit": OID,
                "findings": several(ref("finding")),
                "ignored": several(ref("ignored")),
                "policy": ref("policy"),
                "verdict": VERDICT,
            }
        ),
    ),
    "sync": ("What was united and published", {"anyOf": [PUBLISHED, FETCHED, said(RECEIVED, "--from")]}),
    "import": (
        "What became of each file",
        several(
            obj(
                {
                    "commit": OID,
                    "file": TEXT,
                    "outcome": VERDICT,
                    "record": said(maybe(DIGEST), "null: imported before."),
                    "shards": TEXTS,
                    "tests": COUNT,
                }
            )
        ),
    ),
    "revoke": (
        "The revocation",
        obj({"commit": OID, "new": FLAG, "reason": TEXT, "record": DIGEST, "revokes": DIGEST}),
    ),
    "fsck": (
        "What is damaged, and what is only unfinished",
        obj(
            {
                "checked": obj(dict.fromkeys(("bodies", "commits", "records"), COUNT)),
                "problems": several(
                    obj({"damage": FLAG, "detail": TEXT, "kind": ref("code"), "remedy": TEXT, "subject": TEXT})
                ),
                "verdict": one_of("clean", "damaged"),
            }
        ),
    ),
    "explain": ("A code, or all of them", {"anyOf": [EXPLAINED, several(EXPLAINED)]}),
}
"""Each command that takes `--json`: what its document is, and its schema."""


def columns(*kinds: Schema) -> Schema:
    """Lists of one length, a list for each field of a row."""
    return {
        "type": "array",
        "prefixItems": [several(kind) for kind in kinds],
        "items": False,
        "minItems": len(kinds),
    }


BYTES: Schema = {"description": "A byte string of msgpack."}
BODY: Schema = {
    "anyOf": [
        obj(
            {
                "kind": {"const": "tests"},
                "unit_ns": {"enum": [1, 1000]},
                "columns": columns(
                    said(TEXT, "Node id."),
                    {"type": "integer", "minimum": 0, "maximum": 5, "description": "Place in passed, failed, …"},
                    {"type": "integer", "minimum": 0, "maximum": 4, "description": "Place in null, setup, …"},
                    said(COUNT, "Duration in unit_ns nanoseconds."),
                    {"type": "integer", "minimum": 1, "description": "Attempts."},
                    several({"type": "array", "prefixItems": [TEXT, FLAG, TEXT], "items": False, "minItems": 3}),
                ),
            }
        ),
        obj({"kind": {"const": "inputs"}, "paths": TEXTS, "roots": maybe(TEXTS)}),
        obj({"kind": {"const": "log"}, "text": TEXT}),
        obj(
            {
                "kind": {"const": "coverage"},
                "branch": FLAG,
                "columns": columns(
                    said(TEXT, "Path."),
                    said(BYTES, "Blob id."),
                    said(BYTES, "Statements, a bit a line."),
                    said(BYTES, "Executed lines, a bit a line."),
                    said(COUNT, "Branches."),
                    several(WHOLE),
                    several(WHOLE),
                ),
                "core": maybe(TEXT),
                "outside": TEXTS,
                "outside_count": COUNT,
                "version": TEXT,
            }
        ),
    ]
}

FILES: dict[str, tuple[str, Schema]] = {
    "body": ("A body, as its msgpack spells it", BODY),
    "envelope": (
        "A record: one line of a note",
        obj(
            {
                "payload": {"type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$"},
                "payloadType": {"const": "application/vnd.in-toto+json"},
                "signatures": {
                    **several(
                        obj(
                            {
                                "keyid": ref("fingerprint"),
                                "sig": {"type": "string", "pattern": "^[A-Za-z0-9+/]+={0,2}$"},
                            }
                        )
                    ),
                    "maxItems": 1,
                },
            }
        ),
    ),
    "statement": ("What a record's payload says", _open(STATEMENT)),
    "capability-report": (
        "What doctor --report writes",
        {"anyOf": [REPORT, obj({"reports": several(ref("report"))})]},
    ),
    "durations": (
        ".gitledger/durations.json",
        obj(
            {
                "fixed_per_file": SECONDS,
                "tests": said(table(SECONDS), "Seconds by node id."),
                "version": {"const": 1},
                "workers": TEXTS,
            }
        ),
    ),
    "error": ("What every command prints where it can't answer", ref("error")),
}
"""Each kind of file that is no command's document."""


def _used(schema: Any) -> set[str]:
    """Return the definitions that a schema refers to, those of definitions included."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            name = str(item.get("$ref", "")).removeprefix("#/$defs/")
            if name and name not in found:
                found.add(name)
                waiting.append(DEFS[name])
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return found


def schemas() -> dict[str, Schema]:
    """Return every schema by the name of its file."""
    made: dict[str, Schema] = {}
    for name, (title, schema) in COMMANDS.items():
        answer = {"if": {"type": "object", "required": ["error"]}, "then": ref("error"), "else": schema}
        made[name] = {"title": f"git ledger {name} --json: {title}", **answer}
    for name, (title, schema) in FILES.items():
        made[name] = {"title": title, **schema}
    for name, schema in made.items():
        used = {key: DEFS[key] for key in sorted(_used(schema))}
        defs = {key: _open(value) for key, value in used.items()} if name == "statement" else used
        if name == "statement":  # a report is closed wherever it stands
            defs["report"] = REPORT
        made[name] = {"$schema": DRAFT, "$id": f"urn:gitledger:schema:{name}:v1", **schema, "$defs": defs}
    return made


def text(schema: Schema) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, schema in schemas().items():
        (FOLDER / f"{name}.json").write_text(text(schema), "utf-8")
