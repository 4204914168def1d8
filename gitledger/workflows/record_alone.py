"""Record, as a command of its own: what died before is settled first, and the run is noted down while it lasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gitledger.errors import MachineError
from gitledger.trust.signer import Signer
from gitledger.workflows.flight import Flight, take_off
from gitledger.workflows.record import Recorded, record
from gitledger.workflows.request import RecordRequest
from gitledger.workflows.session import Session
from gitledger.workflows.settle import settle
from gitledger.workflows.target import head_of

__all__ = ["record_alone"]


def record_alone(
    session: Session, request: RecordRequest, signer: Signer | None, *, tell: Callable[[str], None]
) -> Recorded:
    """Return what `record` returns; `tell` hears what was settled before. Raises what `record` raises.

    Where the run can't be noted down, it is recorded all the same, and lost only if its recorder is killed.
    """
    for sentence in settle(session, signer, head_of(session), user=request.user):
        tell(sentence)
    if not request.declared or not request.command:
        return record(session, request, signer)
    try:
        with take_off(session.repo.git_dir / "gitledger" / "flight", request.key, is_needed=False) as flight:
            return _noted(session, request, signer, flight)
    except MachineError as error:
        if error.code != "flight-unwritable":
            raise
    return record(session, request, signer)


def _noted(session: Session, request: RecordRequest, signer: Signer | None, flight: Flight) -> Recorded:
    done = record(session, replace(request, flight=flight), signer)
    if done.stored or not flight.note.exists():
        flight.clear()
    return done
