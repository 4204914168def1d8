"""The matrix of a report, commit by commit: plain values, each said once and then called by its number.

Plain, so that parts of it can be made by several processes; what they saw is then numbered as if one had seen it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.records.decode import format_time
from gitledger.report.states import GLYPHS, blocking_codes, cell_state
from gitledger.report.text import escaped
from gitledger.verdict.evidence import Held
from gitledger.verdict.field import Field
from gitledger.verdict.finding import Finding
from gitledger.verdict.select import Choice
from gitledger.workflows.history import Column
from gitledger.workflows.judge import Verified

__all__ = ["Matrix"]

MAX_CHANGED = 5
"""Changed paths that a cell names."""
_TEXT = 300
Row = dict[tuple[str, str | None], tuple[int, int | None]]
"""By shard: the number of what its cell says, and how far away the receipt lies."""
Values = list[tuple[Any, dict[str, Any]]]
"""What stands for a value (plain tuples), and the value."""


@dataclass(slots=True)
class _Numbered:
    """Values in the order in which they came."""

    values: Values = field(default_factory=list)
    _places: dict[Any, int] = field(default_factory=dict)

    def place(self, key: object) -> int | None:
        return self._places.get(key)

    def add(self, key: object, value: dict[str, Any]) -> int:
        self._places[key] = len(self.values)
        self.values.append((key, value))
        return self._places[key]


@dataclass(slots=True)
class Matrix:
    """The commits so far, and what was met on them."""

    columns: list[dict[str, Any]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    shards: dict[tuple[str, str | None], int] = field(default_factory=dict)
    kinds: _Numbered = field(default_factory=_Numbered)
    records: _Numbered = field(default_factory=_Numbered)
    signers: _Numbered = field(default_factory=_Numbered)
    _fields: dict[int, Field] = field(default_factory=dict)

    def add(self, column: Column) -> None:
        """Add a commit."""
        found = column.found
        self.columns.append(
            {
                "at": format_time(column.commit.committed_at),
                "commit": column.commit.id,
                "coverage": _percentage(found),
                "fault": escaped(column.fault, _TEXT),
                "findings": [] if found is None else _codes(found.verdict.findings),
                "summary": escaped(column.commit.summary, 120),
                "verdict": "unknown" if found is None else "passed" if found.verdict.passed else "failed",
            }
        )
        self.rows.append({} if found is None else self._row(found))

    def _row(self, found: Verified) -> Row:
        """Return the cells of a commit. What its neighbour has as well, the very same value, is known already."""
        row: Row = {}
        union = found.union
        against = blocking_codes(union.choices, found.verdict.findings)
        for choice in union.choices:
            shard, codes = choice.shard.key, against.get(choice.shard.key, ())
            key = (shard.name, shard.variant)
            self.shards.setdefault(key, len(self.shards))
            row[key] = (self._kind(key, choice, codes), choice.distance)
        for one in union.fields:
            if id(one) not in self._fields:
                self._records_of(one)
        self._fields = {id(one): one for one in union.fields}
        return row

    def _records_of(self, one: Field) -> None:
        for candidate in one.candidates:
            self._record(candidate.held, candidate.acceptance.principal, "")
        for held, why in one.untrusted:
            self._record(held, None, why)

    def _kind(self, shard: tuple[str, str | None], choice: Choice, against: Sequence[str]) -> int:
        about = choice.result or choice.about
        attempts = tuple((item.held.id, item.held.key) for item in choice.attempts)
        record = (about.held.id, about.held.key) if about else None
        said = (choice.verdict, choice.reason, choice.detail, choice.changed_paths)
        key = (shard, said, attempts, record, tuple(against))
        place = self.kinds.place(key)
        if place is not None:
            return place
        value = {
            "against": list(against),
            "attempts": [self._record(item.held, item.acceptance.principal, "") for item in choice.attempts],
            "changed": [escaped(path, _TEXT) for path in choice.changed_paths[:MAX_CHANGED]],
            "detail": escaped(choice.detail, _TEXT),
            "reason": choice.reason,
            "record": self._record(about.held, about.acceptance.principal, "") if about else None,
            "state": cell_state(choice, against),
            "verdict": choice.verdict,
        }
        return self.kinds.add(key, value)

    def _record(self, held: Held, principal: str | None, why: str) -> int:
        """Return the number of a receipt; `why` its signature does not count, "" where it does."""
        identity = (held.id, held.key)
        place = self.records.place(identity)
        if place is not None:
            return place
        receipt = held.receipt
        counts, claim = receipt.counts, receipt.signer
        ended_at, name = format_time(held.ended_at), escaped(principal or "", 100)
        says = escaped(claim.user, 100) if claim else ""
        signer = {"key": held.key, "last": "", "name": name, "records": 0, "says": says, "why": escaped(why, 60)}
        value = {
            "commit": held.commit,
            "counts": [counts.passed, counts.collected, counts.failed + counts.error, counts.skipped],
            "dirty": receipt.repo.dirty,
            "ended_at": ended_at,
            "id": held.id,
            "mode": receipt.session.mode,
            "outcome": receipt.outcome.value,
            "reasons": [escaped(reason, 60) for reason in receipt.reasons],
            "seconds": round((held.ended_at - held.started_at).total_seconds(), 3),
            "shard": str(receipt.key),
            "signer": self._signer((held.key, name), signer, ended_at),
        }
        return self.records.add(identity, value)

    def _signer(self, identity: object, signer: dict[str, Any], ended_at: str) -> int:
        """Return the number of a signer, who signed one receipt more."""
        place = self.signers.place(identity)
        if place is None:
            place = self.signers.add(identity, {**signer, "last": "", "records": 0})
        known = self.signers.values[place][1]
        known["records"] += 1
        known["last"] = max(known["last"], ended_at)
        known["why"] = known["why"] or signer["why"]
        return place

    # --- parts that other processes made ---

    def plain(self) -> dict[str, Any]:
        """Return all of it as values that can be handed from process to process."""
        return {
            "columns": self.columns,
            "kinds": self.kinds.values,
            "records": self.records.values,
            "rows": self.rows,
            "shards": list(self.shards),
            "signers": self.signers.values,
        }

    def absorb(self, part: dict[str, Any]) -> None:
        """Add the commits of a part (`plain`), which come after those that are here."""
        for shard in part["shards"]:
            self.shards.setdefault(shard, len(self.shards))
        records = [self._absorb_record(part, identity, value) for identity, value in part["records"]]
        kinds = []
        for key, value in part["kinds"]:
            place = self.kinds.place(key)
            if place is None:
                record = value["record"]
                value = {
                    **value,
                    "attempts": [records[number] for number in value["attempts"]],
                    "record": None if record is None else records[record],
                }
                place = self.kinds.add(key, value)
            kinds.append(place)
        self.columns += part["columns"]
        self.rows += [
            {shard: (kinds[kind], distance) for shard, (kind, distance) in row.items()} for row in part["rows"]
        ]

    def _absorb_record(self, part: dict[str, Any], identity: object, value: dict[str, Any]) -> int:
        place = self.records.place(identity)
        if place is not None:
            return place
        key, signer = part["signers"][value["signer"]]
        return self.records.add(identity, {**value, "signer": self._signer(key, signer, value["ended_at"])})

    def encode(self) -> dict[str, Any]:
        """Return the matrix: for each shard a number and a distance a commit, -1 where it is not declared."""
        return {
            "cells": [[row[shard][0] if shard in row else -1 for row in self.rows] for shard in self.shards],
            "columns": self.columns,
            "distances": [[row[shard][1] if shard in row else None for row in self.rows] for shard in self.shards],
            "glyphs": GLYPHS,
            "kinds": [value for _, value in self.kinds.values],
            "records": [value for _, value in self.records.values],
            "shards": [{"name": name, "variant": variant} for name, variant in self.shards],
            "signers": [value for _, value in self.signers.values],
        }


def _percentage(found: Verified | None) -> list[Any] | None:
    claim = found.union.coverage.claim if found is not None else None
    return None if claim is None else [claim.covered, claim.total, claim.passed]


def _codes(findings: Iterable[Finding]) -> list[str]:
    """Return what blocks, by code, each with the number of times."""
    counts: dict[str, int] = {}
    for finding in findings:
        if finding.blocks:
            counts[finding.code] = counts.get(finding.code, 0) + 1
    return [code if number == 1 else f"{code} ×{number}" for code, number in counts.items()]
