"""`git ledger record`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from gitledger.cli.output import Output
from gitledger.cli.streams import OutputError, abandon_stdout
from gitledger.cli.world import (
    BegunLook,
    beside_edits,
    enter,
    opened,
    signer_of,
    user_name,
    warn_of_stranger,
    with_json,
    with_key,
)
from gitledger.dataclass import replace
from gitledger.errors import UsageError
from gitledger.wording import counted, suggested

if TYPE_CHECKING:
    from collections.abc import Callable

    from gitledger.config.schema import Config, PolicyConfig, ResultsConfig
    from gitledger.trust.signer import Signer
    from gitledger.workflows.record import Recorded
    from gitledger.workflows.request import Before, RecordRequest
    from gitledger.workflows.session import Session

MODES = ("local", "ci", "ci-gpu")


@click.command("record", short_help="Run a shard and leave its signed receipt")
@click.option("--shard", default=None, metavar="NAME[@VARIANT]", help="The shard to record.")
@click.option("--capability", metavar="FILE", default=None, help="Sign and store the reports that doctor wrote.")
@click.option("--variant", metavar="V", default=None, help="Which variant of it.")
@click.option("--paths", multiple=True, metavar="PATH", help="Inputs of a shard that is not declared.")
@click.option("--extra-paths", multiple=True, metavar="PATH", help="Its ignored or generated inputs.")
@click.option("--exclude-paths", multiple=True, metavar="PATH", help="What its paths leave out.")
@click.option("--junit", metavar="FILE", default=None, help="Read results from a JUnit XML report.")
@click.option("--reportlog", metavar="FILE", default=None, help="Read results from pytest-reportlog's log.")
@click.option("--ctrf", metavar="FILE", default=None, help="Read results from a CTRF report.")
@click.option("--mode", type=click.Choice(MODES), default=None, help="local (default), ci or ci-gpu.")
@click.option(
    "--timeout",
    metavar="TIME",
    default=None,
    help="End the command after this long (30m); the shard's own, if shorter.",
)
@click.option("--unsigned", is_flag=True, help="Don't sign (counts only where policy allows it).")
@click.option("--best-effort", is_flag=True, help="Exit as the command did, even if nothing could be stored.")
@click.option("--pass-agent", is_flag=True, help="Let the command reach the SSH agent.")
@click.option("--trace", is_flag=True, help="Observe what it opens by strace too, whatever it is written in.")
@with_key
@with_json
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
@click.pass_obj
def command(
    output: Output,
    shard: str | None,
    capability: str | None,
    variant: str | None,
    paths: tuple[str, ...],
    extra_paths: tuple[str, ...],
    exclude_paths: tuple[str, ...],
    junit: str | None,
    reportlog: str | None,
    ctrf: str | None,
    mode: str | None,
    timeout: str | None,
    unsigned: bool,
    best_effort: bool,
    pass_agent: bool,
    trace: bool,
    key: str | None,
    as_json: bool,
    words: tuple[str, ...],
) -> int:
    r"""Run a shard's command and leave a signed receipt of it, whatever happens to it.

    Exits as the command does (128+N for a signal, 124 for a time-out), with 1 where the command says 0 but the
    receipt is not green, and with 3 where the receipt could not be stored. In modes ci and ci-gpu it does
    not begin (2) beside what is neither committed nor ignored, unless policy takes dirty receipts.

    \b
    git ledger record --shard unit                        the declared command
    git ledger record --shard l1 --variant a100
    git ledger record --shard adhoc --paths src -- pytest tests/test_one.py
    git ledger record --shard build --junit report.xml    what has already happened
    git ledger record --capability capability.json        what doctor has already reported
    """
    repo = opened(output)
    look = None if capability is not None else BegunLook(output, repo)
    session = enter(output, repo=repo)

    from gitledger.config.quantities import parse_duration
    from gitledger.workflows.asked import Asked, request_of
    from gitledger.workflows.record_alone import record_alone
    from gitledger.workflows.request import nearer
    from gitledger.workflows.target import head_of
    from gitledger.workflows.trusted import read_config

    head = head_of(session)
    named = () if shard is None else (shard if variant is None else f"{shard}@{variant}",)
    with beside_edits(output, session, head, named):
        config = read_config(session.repo, head)
        if capability is not None:
            others = (
                shard,
                variant,
                junit,
                reportlog,
                ctrf,
                mode,
                timeout,
                paths,
                extra_paths,
                exclude_paths,
                words,
            )
            if any(others) or unsigned or best_effort or trace:
                raise UsageError(
                    "usage", "--capability stands alone, with --key and --json", "leave the others out"
                )
            return _record_capability(output, session, config, capability, key=key, as_json=as_json)
        if shard is None:
            raise _what(config, words)
        asked = Asked(
            shard=shard,
            variant=variant,
            command=words,
            paths=paths,
            extra_paths=extra_paths,
            excluded_paths=exclude_paths,
            report=_report_of({"junit": junit, "reportlog": reportlog, "ctrf": ctrf}),
        )
        request = request_of(config, asked)
        if trace and request.command is None:
            raise UsageError("usage", "--trace watches a command, and none is to run", "leave --trace out")
        if request.command is None and request.report is not None:
            from gitledger.workflows.reports import expect_leftover

            expect_leftover(request.report, session.repo.worktree or output.directory)
        if timeout is not None:
            try:
                request = replace(request, timeout_s=nearer(request.timeout_s, parse_duration(timeout)))
            except ValueError as error:
                raise UsageError("bad-duration", f"--timeout {timeout!a}: {error}", "--timeout 30m") from error
    signer = None if unsigned else signer_of(output, session, key)
    mode = mode or _mode_of(output.environ.get("GITLEDGER_MODE") or "local")
    _warn_of_mode(output, mode, config.policy, signer)
    warn_of_stranger(output, session, signer)
    stream = sys.stderr if as_json else sys.stdout

    def echo(data: bytes) -> None:
        try:
            stream.buffer.write(data)
            stream.buffer.flush()
        except OutputError as error:  # nobody can read it, which is no reason not to record
            abandon_stdout()
            raise OSError(str(error)) from error

    request = replace(
        request,
        mode=mode,
        best_effort=best_effort,
        pass_agent=pass_agent,
        trace=trace,
        user=user_name(session),
        echo=echo,
    )
    done = record_alone(
        session,
        request,
        signer,
        tell=lambda text: output.message(f"git ledger: {text}"),
        begun=None if look is None else look.taken,
        looked=None if config.policy.allow_dirty else _minding_dirt(output, session, request),
    )
    _report(output, session, done, as_json=as_json)
    return done.exit_status


def _what(config: Config, words: tuple[str, ...]) -> UsageError:
    """Return the question which shard is meant, with the one that was named by itself, else the first declared."""
    declared = list(map(str, config.shard_keys()))
    named = next((word for word in words[:1] if word in (*declared, *config.shards)), None)
    if named is not None:
        hint = f"git ledger record --shard {named}"
        return UsageError("usage", f"a shard is named by --shard, not by {named!a} alone", hint)
    hint = (
        f"git ledger record --shard {declared[0]}"
        if declared
        else "git ledger record --shard NAME (or --capability FILE)"
    )
    return UsageError("usage", "what is to be recorded?", hint)


def _mode_of(word: str) -> str:
    """Return the mode that the environment names; raises `UsageError` where there is none of that name."""
    if word in MODES:
        return word

    raise UsageError("usage", f"GITLEDGER_MODE: {word!a} is not one of {', '.join(MODES)}", "GITLEDGER_MODE=ci")


def _warn_of_mode(output: Output, mode: str, policy: PolicyConfig, signer: Signer | None) -> None:
    """Say before anything runs that this commit's own policy won't take the mode from this key."""
    key = signer.fingerprint if signer else None
    if mode in MODES[1:] and key not in policy.ci_key_fingerprints:
        from gitledger.verdict.bars import unlisted

        output.message(f"warning: {unlisted(mode, key)}")


def _minding_dirt(output: Output, session: Session, request: RecordRequest) -> Callable[[Before], None]:
    """Return what says of the repository, before anything runs, that the receipt will be dirty."""

    def looked(before: Before) -> None:
        if before.state.dirty or before.shadows:
            from gitledger.workflows.mend import before_a_dirty_run

            before_a_dirty_run(session, request, before, warn=output.message)

    return looked


def _record_capability(
    output: Output, session: Session, config: Config, capability: str, *, key: str | None, as_json: bool
) -> int:
    """Store the reports of a file, failures too, and exit as the doctor that made them; 1 where none counts."""
    from gitledger.report.lanes import doctor_lines, doctor_summary
    from gitledger.report.text import finding_lines
    from gitledger.workflows.doctor import DoctorRequest
    from gitledger.workflows.lane_record import record_reports

    request = DoctorRequest(
        tasks=(),
        base=output.directory,
        repository=config.repository,
        notes=config.notes,
        user=user_name(session),
    )
    done = record_reports(session, output.directory / capability, request, signer_of(output, session, key))
    for report in done.reports:
        output.message("\n".join(doctor_lines(report, color=output.color)))
    for line in finding_lines(done.findings, color=output.color):
        output.message(line)
    if as_json:
        output.document(
            {
                "exit_status": done.exit_status,
                "findings": [finding.encode() for finding in done.findings],
                "records": list(done.records),
                "stored": True,
            }
        )
    output.message(f"git ledger: recorded {counted(len(done.records), 'report')}: {doctor_summary(done.reports)}")
    return done.exit_status


def _report_of(given: dict[Literal["junit", "reportlog", "ctrf"], str | None]) -> ResultsConfig | None:
    """Return the report that was named; raises `UsageError` where several were."""
    from gitledger.config.schema import ResultsConfig

    named = [(kind, file) for kind, file in given.items() if file]
    if len(named) > 1:
        raise UsageError("usage", "one report at a time: --junit, --reportlog or --ctrf", "leave the others out")
    return ResultsConfig(*named[0]) if named else None


def _report(output: Output, session: Session, done: Recorded, *, as_json: bool) -> None:
    """Say what came of it: findings first, and the last line tells whether it was stored."""
    from gitledger.report.text import record_lines

    mend = ""
    if dirty := done.receipt.repo.dirty_paths:
        from gitledger.workflows.mend import to_mend_dirt, tracked_among

        edited = tracked_among(session.repo, dirty)
        mend = to_mend_dirt(session.repo, edited, [path for path in dirty if path not in edited])
    told = (done.result.missing, done.result.last_started, done.result.notes)
    for line in record_lines(done.receipt, *told, mend=mend):
        output.message(line)
    if done.error is not None:
        hint = suggested(done.error.hint)
        sys.stderr.write(f"error: the receipt was not stored: {done.error.message} [{done.error.code}]{hint}\n")
    if as_json:
        output.document(
            {
                "exit_status": done.exit_status,
                "outcome": done.receipt.outcome.value,
                "reasons": list(done.receipt.reasons),
                "record": done.record,
                "signal": done.receipt.session.signal,
                "stored": done.stored,
            }
        )
    word = "recorded" if done.stored else "NOT STORED"
    counts = done.receipt.counts
    caveat = ", but dirty: it counts for nothing unless policy says allow_dirty" if done.receipt.repo.dirty else ""
    sys.stderr.write(
        f"git ledger: {word} {done.receipt.key}: {done.receipt.outcome.value}, "
        f"{counts.passed} of {counts.collected} passed, record {done.record[:12]}{caveat}\n"
    )
