"""What runs left behind whose driver was killed: processes are ended, and what they had come to is recorded."""

from __future__ import annotations

from collections.abc import Iterator

from gitledger.records.ids import CommitId
from gitledger.trust.signer import Signer
from gitledger.workflows.session import Session

__all__ = ["settle"]


def settle(
    session: Session, signer: Signer | None, target: CommitId, *, user: str, is_driver: bool
) -> Iterator[str]:
    """End and record what dead runs of this work tree left; yield a sentence for each that had anything.

    `is_driver`: the caller holds the lock of the one that drives here.
    Never raises for what they left: what has to run now is not held up by what has died.
    """
    folder = session.repo.git_dir / "gitledger"
    if not any((folder / "flight").glob("*")):
        return
    from gitledger.workflows.flight import sweep_halves
    from gitledger.workflows.orphans import end_orphans
    from gitledger.workflows.recover import recover

    sweep_halves(folder / "flight", session.now())
    yield from end_orphans(session, folder / "flight", logs=folder / "logs" if is_driver else None)
    for done, was_killed in recover(
        session, target, signer, notes=folder / "flight", logs=folder / "logs", user=user
    ):
        counts, receipt = done.receipt.counts, done.receipt
        what = f"{counts.passed} passed and {counts.failed + counts.error} failed of {counts.collected}"
        why = f" ({', '.join(receipt.reasons)})" if receipt.reasons else ""
        when = " when its driver was killed" if was_killed else ", which was not stored then"
        yield f"recorded what {receipt.key} had come to{when}: {what}{why}"
