"""What judgements of several commits need to find out but once.

A report judges each commit of a history, and most receipts bear on most of them. What is kept here depends on a
receipt and on nothing of the commit that is judged; it may be shared among situations that have the same policy,
signers, moment and coverage rule, and among no others.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gitledger.dataclass import dataclass
from gitledger.records.ids import BlobId, Digest, KeyFingerprint, RecordId

if TYPE_CHECKING:
    from gitledger.errors import DecodeError
    from gitledger.records.bodies import Results
    from gitledger.records.environment import Environment
    from gitledger.records.fragments import Fragment
    from gitledger.verdict.acceptance import Settled
    from gitledger.verdict.bars import Bar
    from gitledger.verdict.evidence import Held
    from gitledger.verdict.field import Reading
    from gitledger.verdict.results import ResultFault, Told
    from gitledger.verdict.standing import Standing

__all__ = ["Memory"]

Identity = tuple[RecordId, KeyFingerprint | None]


@dataclass(frozen=True, slots=True)
class Memory:
    """By record: its bars, on its commit and when carried, its results, whose it is; by body: fragments.

    `readings` are a receipt's agreement with a shard and its bars, by the identities of both, which stand beside;
    `standings` what a shard's receipts come to by themselves, by all that it rests on (see `standing`).
    """

    bars: dict[Identity, tuple[tuple[Bar, ...], tuple[Bar, ...]]] = field(default_factory=dict)
    results: dict[Identity, Results | ResultFault] = field(default_factory=dict)
    fragments: dict[tuple[BlobId, Digest, int], Fragment | DecodeError] = field(default_factory=dict)
    settled: Settled = field(default_factory=dict)
    readings: dict[tuple[int, int], Reading] = field(default_factory=dict)
    told: dict[int, Told] = field(default_factory=dict)
    standings: dict[tuple[object, ...], Standing] = field(default_factory=dict)
    environments: dict[Environment, Environment] = field(default_factory=dict)
    ran_in: dict[Identity, Environment] = field(default_factory=dict)

    def environment(self, held: Held) -> Environment:
        """Return the environment that a receipt ran in: one and the same value for all that are equal."""
        found = self.ran_in.get((held.id, held.key))
        if found is None:
            own = held.receipt.environment
            found = self.ran_in[held.id, held.key] = self.environments.setdefault(own, own)
        return found
