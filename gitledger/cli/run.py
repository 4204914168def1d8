"""`git ledger run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.cli.output import Output
from gitledger.cli.world import (
    beside_edits,
    enter,
    signer_of,
    user_name,
    warn_of_stranger,
    with_json,
    with_key,
    with_offline,
    with_policy,
)
from gitledger.wording import suggested

if TYPE_CHECKING:
    from pathlib import Path

    from gitledger.workflows.run_result import RunResult

MODES = ("local", "ci", "ci-gpu")
SHOWN_LINES = 15
MAX_NAMED = 5


@click.command("run", short_help="Run what is stale, record each, merge when all is covered")
@click.argument("shards", nargs=-1, metavar="[SHARD[@VARIANT]]…")
@click.option("--all", "everything", is_flag=True, help="Run what is fresh too.")
@click.option("-j", "--jobs", type=click.IntRange(1, 1024), default=1, help="Shards at the same time (1).")
@click.option(
    "--timeout", metavar="TIME", default=None, help="End a shard after this long (30m); its own, if shorter."
)
@click.option("--stall", metavar="TIME", default=None, help="End a shard that shows no progress for this long.")
@click.option(
    "--retries", type=click.IntRange(0, 100), default=0, help="Further attempts at what is not green (0)."
)
@click.option("--wait", metavar="TIME", default="2m", help="Wait so long for memory and GPUs of others (2m).")
@click.option("--tail", is_flag=True, help="Show what the shards print.")
@click.option("--carry/--no-carry", default=None, help="Carry unchanged shards, or don't, whatever policy says.")
@click.option("--mode", type=click.Choice(MODES), default=None, help="local (default), ci or ci-gpu.")
@click.option(
    "--on", "engine", type=click.Choice(["slurm"]), default=None, help="Run the shards as jobs of Slurm."
)
@click.option("--sbatch", multiple=True, metavar="OPTION", help="An option for sbatch, as --partition=gpu.")
@click.option("--spool", metavar="DIR", default=None, help="Where nodes leave receipts; without --on: be a node.")
@click.option("--collect", metavar="DIR", default=None, help="Sign and store what nodes left there, then merge.")
@click.option("--unsigned", is_flag=True, help="Don't sign (counts only where policy allows it).")
@click.option("--pass-agent", is_flag=True, help="Let the commands reach the SSH agent.")
@with_policy
@with_key
@with_offline
@with_json
@click.pass_obj
def command(
    output: Output,
    shards: tuple[str, ...],
    everything: bool,
    jobs: int,
    timeout: str | None,
    stall: str | None,
    retries: int,
    wait: str,
    tail: bool,
    carry: bool | None,
    mode: str | None,
    engine: str | None,
    sbatch: tuple[str, ...],
    spool: str | None,
    collect: str | None,
    unsigned: bool,
    pass_agent: bool,
    policy_from: str | None,
    key: str | None,
    offline: bool,
    as_json: bool,
) -> int:
    r"""Run the shards that `git ledger plan` calls stale, the longest first, and record each as it ends.

    Once every shard is covered, the receipts are merged. What is recorded is not run again: an interrupted or
    killed run is resumed by the same command. A shard that declares `memory` or `gpus` starts when they are free.
    Their output is in .git/gitledger/logs while they run.

    \b
    git ledger run                      everything that is stale
    git ledger run --jobs 4 --stall 15m --retries 1
    git ledger run l1 --all --tail      one shard, whether stale or not, with its output
    git ledger run --on slurm --sbatch=--partition=gpu
    """
    from gitledger.cli.run_engines import be_a_node, collect_spool, on_slurm
    from gitledger.cli.run_screen import Screen
    from gitledger.errors import UsageError
    from gitledger.machine.interrupts import Interrupts
    from gitledger.workflows.run import RunRequest, run
    from gitledger.workflows.target import head_of

    if collect is not None and (engine or spool or shards):
        raise UsageError("usage", "--collect stands alone: it runs nothing", "git ledger run --collect DIR")
    if sbatch and engine is None:
        raise UsageError("usage", "--sbatch is for --on slurm", "--on slurm")
    session = enter(output, offline=offline)
    logs = session.repo.git_dir / "gitledger" / "logs"
    screen = Screen.of(output, slots=jobs, logs=logs, tail_to_stderr=as_json)
    request = RunRequest(
        shards=shards,
        everything=everything,
        jobs=jobs,
        retries=retries,
        stall_s=_seconds(stall, "--stall"),
        timeout_s=_seconds(timeout, "--timeout"),
        wait_s=_seconds(wait, "--wait") or 0.0,
        mode=mode or output.environ.get("GITLEDGER_MODE") or "local",
        pass_agent=pass_agent,
        policy_from=policy_from,
        carry=carry,
        user=user_name(session),
        echo=screen.echo if tail else None,
    )
    if spool is not None and engine is None:
        return be_a_node(output, session, request, output.directory / spool, as_json=as_json)
    if collect is not None:
        result = collect_spool(output, session, request, output.directory / collect, key, unsigned=unsigned)
    else:
        signer = None if unsigned else signer_of(output, session, key)
        warn_of_stranger(output, session, signer, policy_from=policy_from)
        with beside_edits(output, session, head_of(session), shards), Interrupts() as interrupts:
            try:
                if engine == "slurm":
                    place = None if spool is None else output.directory / spool
                    result = on_slurm(session, request, signer, place, sbatch, screen, interrupts)
                else:
                    result = run(session, request, signer, watch=screen, interrupts=interrupts)
            finally:
                screen.close()
    if as_json:
        output.document(result.encode())
    else:
        _show(output, result, logs)
    return result.exit_status


def _seconds(text: str | None, option: str) -> float | None:
    """Return the seconds that an option spells; raises `UsageError` `bad-duration`."""
    from gitledger.config.quantities import parse_duration
    from gitledger.errors import UsageError

    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError("bad-duration", f"{option} {text!a}: {error}", f"give {option} 30m") from error


def _show(output: Output, result: RunResult, logs: Path) -> None:
    """Write what came of it: the ends of red logs first, then the shards, and the answer last."""
    from gitledger.report.progress import last_lines
    from gitledger.report.run import run_text

    for key, items in result.results.items():
        last = items[-1]
        if not last.receipt.is_green and last.log_text:
            output.message(f"git ledger: the end of what {key} printed ({logs / f'{key}.log'}):")
            for line in last_lines(last.log_text, count=SHOWN_LINES):
                output.message(f"  {line}")
    output.result(
        run_text(
            result.union,
            asked=result.asked,
            commit=result.commit,
            ran={str(key): len(items) for key, items in result.results.items()},
            faults={str(key): (fault.code, fault.message) for key, fault in result.faults.items()},
            ending=_ending(result),
            findings=() if result.merge is None or result.uncovered else result.merge.findings,
            color=output.color,
            width=output.width,
        )
    )


def _ending(result: RunResult) -> str:
    """Return in words what the run came to as a whole."""
    if result.interrupted is not None:
        return "interrupted; `git ledger run` resumes"
    if result.stopped is not None:
        error = result.stopped
        return f"stopped: {error.message} [{error.code}]{suggested(error.hint)}"
    if result.merge_error is not None and not result.uncovered:
        return f"not merged: {result.merge_error.message} [{result.merge_error.code}]"
    if result.uncovered:
        names = ", ".join(str(key) for key in result.uncovered[:MAX_NAMED])
        more = f" and {len(result.uncovered) - MAX_NAMED} more" if len(result.uncovered) > MAX_NAMED else ""
        return f"not merged: nothing stands yet for {names}{more}"
    if result.merge is None:
        return "merged before, and nothing has changed since"
    record = f", merged receipt {result.merge.record[:12]}" if result.merge.record else ", nothing was written"
    return f"merge: {result.merge.outcome}{record}"
