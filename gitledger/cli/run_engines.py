"""`git ledger run` on nodes of a cluster, and for them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gitledger.cli.output import Output
from gitledger.cli.streams import OutputError, abandon_stdout
from gitledger.cli.world import signer_of

if TYPE_CHECKING:
    from gitledger.cli.run_screen import Screen
    from gitledger.machine.interrupts import Interrupts
    from gitledger.trust.signer import Signer
    from gitledger.workflows.run import RunRequest
    from gitledger.workflows.run_result import RunResult
    from gitledger.workflows.session import Session

__all__ = ["be_a_node", "collect_spool", "node_command", "on_slurm"]


def node_command() -> tuple[str, ...]:
    """Return how this very command is called on a node, whatever its PATH there."""
    return (sys.executable, "-P", "-m", "gitledger")


def on_slurm(
    session: Session,
    request: RunRequest,
    signer: Signer | None,
    spool: Path | None,
    options: Sequence[str],
    screen: Screen,
    interrupts: Interrupts,
) -> RunResult:
    """Return what became of the shards as jobs of Slurm. What could sign stays here: jobs inherit no key."""
    from gitledger.machine.slurm import Slurm
    from gitledger.suites.inject import without_keys
    from gitledger.workflows.run_slurm import SlurmRequest, run_on_slurm

    slurm = Slurm(env=without_keys(session.environ, pass_agent=request.pass_agent))
    place = SlurmRequest(spool=spool, options=tuple(options), command=node_command())
    return run_on_slurm(session, request, place, signer, slurm, watch=screen, interrupts=interrupts)


def be_a_node(output: Output, session: Session, request: RunRequest, spool: Path, *, as_json: bool) -> int:
    """Run the named shards, stale or not, and leave their receipts in the spool; return the exit status."""
    from gitledger.errors import UsageError
    from gitledger.machine.interrupts import Interrupts
    from gitledger.report.text import record_lines
    from gitledger.workflows.run_node import run_into_spool

    if not request.shards:
        raise UsageError("usage", "--spool DIR without --on is for nodes: name their shards", "--on slurm")
    stream = sys.stderr if as_json else sys.stdout

    def echo(data: bytes) -> None:
        try:
            stream.buffer.write(data)
            stream.buffer.flush()
        except OutputError as error:
            abandon_stdout()
            raise OSError(str(error)) from error

    with Interrupts() as interrupts:
        done, status = run_into_spool(
            session,
            request.shards,
            spool,
            stall_s=request.stall_s,
            timeout_s=request.timeout_s,
            mode=request.mode,
            user=request.user,
            echo=echo,
            interrupts=interrupts,
        )
    for item in done:
        for line in record_lines(item.receipt, item.result.missing, item.result.last_started, item.result.notes):
            output.message(line)
        word = "spooled" if item.stored else "NOT STORED"
        output.message(f"git ledger: {word} {item.receipt.key}: {item.receipt.outcome.value}")
        if item.error is not None:
            output.message(f"error: {item.error.message} [{item.error.code}]")
    if as_json:
        ran = [{"name": str(item.receipt.key), "outcome": item.receipt.outcome.value} for item in done]
        output.document({"exit_status": status, "spooled": ran})
    return status


def collect_spool(
    output: Output, session: Session, request: RunRequest, spool: Path, key: str | None, *, unsigned: bool
) -> RunResult:
    """Return what a spool held, signed and stored, and the merge of what stands then."""
    from gitledger.workflows.run_collect import collect_and_merge

    signer = None if unsigned else signer_of(output, session, key)
    result, refused = collect_and_merge(session, request, spool, signer)
    for error in refused:
        output.message(f"git ledger: left in the spool: {error.message} [{error.code}]")
    return result
