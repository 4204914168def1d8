"""What a node of a cluster does: run shards as they are named, and put their receipts into a spool, unsigned."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from gitledger.dataclass import replace
from gitledger.errors import EXIT_NO, EXIT_YES, LedgerError
from gitledger.machine.interrupts import Interrupts
from gitledger.records.ids import ShardKey
from gitledger.workflows.asked import Asked, request_of
from gitledger.workflows.record import Recorded, record
from gitledger.workflows.request import nearer
from gitledger.workflows.session import Session
from gitledger.workflows.target import head_of
from gitledger.workflows.trusted import read_config

__all__ = ["FAULT", "fault_of", "run_into_spool"]

FAULT = ".fault"
"""The file in which a node says why it could not run a shard."""


def run_into_spool(
    session: Session,
    names: Sequence[str],
    spool: Path,
    *,
    stall_s: float | None,
    timeout_s: float | None,
    mode: str,
    user: str,
    echo: Callable[[bytes], None] | None,
    interrupts: Interrupts,
) -> tuple[list[Recorded], int]:
    """Return what ran, and the exit status: 0 where all of it is green.

    Nothing is planned: whoever submitted did. A shard that can't be run leaves a file that says why, and raises.
    """
    config = read_config(session.repo, head_of(session))
    spool.mkdir(mode=0o700, parents=True, exist_ok=True)
    done: list[Recorded] = []
    for key in (key for name in names for key in config.keys_named(name)):
        if interrupts.received:
            break
        request = request_of(config, Asked(shard=str(key)))
        request = replace(
            request,
            stall_s=stall_s,
            timeout_s=nearer(request.timeout_s, timeout_s),
            mode=mode,
            user=user,
            echo=echo,
            interrupts=interrupts,
        )
        fault = spool / f"{key}{FAULT}"
        fault.unlink(missing_ok=True)
        try:
            done.append(record(session, request, None, spool=spool))
        except LedgerError as error:
            fault.write_text(json.dumps({"code": error.code, "message": error.message}), "utf-8")
            raise
    if interrupts.received:
        return done, 128 + interrupts.received[0]
    failed = [item for item in done if not (item.stored and item.receipt.is_green)]
    return done, max((item.exit_status or EXIT_NO for item in failed), default=EXIT_YES)


def fault_of(spool: Path, key: ShardKey) -> str:
    """Return in words why a node could not run a shard, or ""; what it wrote is shown, and no more."""
    try:
        said = json.loads((spool / f"{key}{FAULT}").read_bytes()[:65536])
        return f"{said['message']} [{said['code']}]"
    except (OSError, ValueError, TypeError, KeyError):
        return ""
