"""A receipt's test results, checked against what the receipt says of them."""

from __future__ import annotations

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.bodies import Results, check_body, collection_digest, decode_results
from gitledger.records.ids import NodeId
from gitledger.records.outcomes import TestOutcome
from gitledger.verdict.evidence import Held
from gitledger.verdict.memory import Memory
from gitledger.verdict.situation import Facts, Situation

__all__ = ["ResultFault", "Told", "load_results", "remembered_results", "told"]


@dataclass(frozen=True, slots=True)
class ResultFault:
    """Why the results of a receipt can't be believed: a finding code and what was found."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Told:
    """What every judgement asks of a receipt's results: their ids, which were skipped, and which checks failed."""

    results: Results
    node_ids: frozenset[NodeId]
    skipped: tuple[NodeId, ...]
    failed_checks: tuple[str, ...]


def told(results: Results, memory: Memory) -> Told:
    """Return what some results say, found once for all that share the memory, which keeps them."""
    found = memory.told.get(id(results))
    if found is None:
        found = Told(
            results,
            frozenset(results.node_ids),
            tuple(results.ended(TestOutcome.SKIPPED)),
            results.failed_checks,
        )
        memory.told[id(results)] = found
    return found


def load_results(held: Held, facts: Facts) -> Results | ResultFault:
    """Return the results that `held` names, once every claim that the receipt makes of them has been checked.

    Each selected id must be among them exactly once, outcomes must add up to the counts (DESIGN section 6: every
    id that it claims is in its own results).
    """
    ref = held.receipt.bodies.get("tests")
    if ref is None:
        return ResultFault("body-missing", "the receipt names no test results")
    blob = facts.body(ref)
    if blob is None:
        return ResultFault("body-missing", f"the test results {ref.oid[:12]} are not here")
    try:
        check_body(ref, blob)
        results = decode_results(blob)
    except DecodeError as error:
        return ResultFault("body-corrupt", error.message)
    counts, claimed = held.receipt.counts, held.receipt.collection
    recount = results.counts(collected=counts.collected, deselected=counts.deselected)
    if recount != counts:
        return ResultFault("results-disagree", "the outcomes do not add up to the receipt's counts")
    ids = results.node_ids
    if len(set(ids)) != len(ids):
        return ResultFault("duplicate-tests", "a node id stands twice in the results")
    if held.is_green and collection_digest(ids) != claimed.selected_digest:
        return ResultFault("results-disagree", "the results are not those of the selected tests")
    return results


def remembered_results(held: Held, situation: Situation) -> Results | ResultFault:
    """Return what `load_results` returns, found once for all that share the situation's memory."""
    known = situation.memory.results
    identity = (held.id, held.key)
    if identity not in known:
        known[identity] = load_results(held, situation.facts)
    return known[identity]
