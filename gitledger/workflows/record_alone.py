"""Record, as a command of its own: what died before is settled first, and the run is noted down while it lasts."""

from __future__ import annotations

from collections.abc import Callable

from gitledger.dataclass import replace
from gitledger.errors import MachineError
from gitledger.store.edits import Edits
from gitledger.trust.signer import Signer
from gitledger.workflows.flight import Flight, take_off
from gitledger.workflows.record import Recorded, record
from gitledger.workflows.request import Before, RecordRequest
from gitledger.workflows.session import Session
from gitledger.workflows.settle import settle
from gitledger.workflows.target import head_of

__all__ = ["record_alone"]


def record_alone(
    session: Session,
    request: RecordRequest,
    signer: Signer | None,
    *,
    tell: Callable[[str], None],
    begun: Callable[[], Edits | None] | None = None,
    looked: Callable[[Before], None] | None = None,
) -> Recorded:
    """Return what `record` returns; `tell` hears what was settled before. Raises what `record` raises.

    `begun` returns a look at the work tree that the caller began, None where that is too old by now. `looked`
    is given the repository as it stands before anything runs.

    Where the run can't be noted down, it is recorded all the same, and lost only if its recorder is killed.
    """
    for sentence in settle(session, signer, head_of(session), user=request.user, is_driver=False):
        tell(sentence)
    if not request.declared or not request.command:
        return record(session, request, signer, begun=begun, looked=looked)
    try:
        with take_off(session.repo.git_dir / "gitledger" / "flight", request.key, is_needed=False) as flight:
            return _noted(session, request, signer, flight, begun, looked)
    except MachineError as error:
        if error.code != "flight-unwritable":
            raise
    return record(
        session, request, signer, looked=looked
    )  # without a note nothing dates what came after an early look


def _noted(
    session: Session,
    request: RecordRequest,
    signer: Signer | None,
    flight: Flight,
    begun: Callable[[], Edits | None] | None,
    looked: Callable[[Before], None] | None,
) -> Recorded:
    begun = begun if flight.lock >= 0 else None
    done = record(session, replace(request, flight=flight), signer, begun=begun, looked=looked)
    if done.stored or not flight.note.exists():
        flight.clear()
    return done
