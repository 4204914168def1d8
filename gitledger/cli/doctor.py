"""`git ledger doctor`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, signer_of, user_name, with_json, with_key
from gitledger.dataclass import replace

if TYPE_CHECKING:
    from gitledger.config.schema import Config
    from gitledger.lanes.supervise import Limits
    from gitledger.workflows.session import Session

PYTHON_VARIABLE = "GITLEDGER_DOCTOR_PYTHON"


@click.command("doctor", short_help="Execute a model for real, and report what worked")
@click.option("--lane", metavar="L", default=None, help="Run what this declared lane is to prove.")
@click.option("--model", metavar="M", default=None, help="The model: a path, or a name in GITLEDGER_DOWNLOAD_DIR.")
@click.option("--layers", metavar="A-B", default=None, help="Its layers, both ends included (default: all).")
@click.option(
    "--quantization", metavar="Q", default=None, help="auto (default), float32, bfloat16, float16, int8."
)
@click.option("--cpu", is_flag=True, help="On the CPU, whatever else there is.")
@click.option("--recipe", metavar="R", default=None, help="How to execute it (default: torch-eager).")
@click.option("--all-recipes", is_flag=True, help="By every recipe, a report each.")
@click.option("--report", metavar="FILE", default=None, help="Write the reports to FILE, failures too.")
@click.option("--record", is_flag=True, help="Sign the reports and store them in the ledger.")
@click.option("--timeout", metavar="TIME", default=None, help="End a recipe after this long (default: 30m).")
@click.option("--stall", metavar="TIME", default=None, help="End a recipe that says nothing for this long.")
@click.option("--python", metavar="PATH", default=None, help="The interpreter whose torch is to be proven.")
@with_key
@with_json
@click.pass_obj
def command(
    output: Output,
    lane: str | None,
    model: str | None,
    layers: str | None,
    quantization: str | None,
    cpu: bool,
    recipe: str | None,
    all_recipes: bool,
    report: str | None,
    record: bool,
    timeout: str | None,
    stall: str | None,
    python: str | None,
    key: str | None,
    as_json: bool,
) -> int:
    r"""Load a model, run a forward, wait for the device, and hold the output against the CPU in float32.

    Each recipe runs in a process of its own; one that crashes, hangs or runs out of memory leaves its report and
    disturbs no other. Nothing is downloaded or installed. Without a lane the model is --model, else that of
    GITLEDGER_DOCTOR_MODEL; there is no default.

    Exits with 0 for passed, 1 for failed, 77 for skipped, 99 for inconclusive (also where a recipe of the lane
    can't be used), 2 where nothing could be started.

    \b
    git ledger doctor --lane gfx1151 --record
    git ledger doctor --model tiny --layers 0-2 --cpu --all-recipes --report capability.json
    """
    from gitledger.report.lanes import doctor_lines, doctor_summary
    from gitledger.report.text import escaped
    from gitledger.workflows.doctor import DoctorRequest, doctor, world_of
    from gitledger.workflows.doctor_tasks import AskedOfDoctor, tasks_of
    from gitledger.workflows.lane_standing import standing_of

    session = enter(output)
    config = _config(session, is_needed=record or lane is not None)
    interpreter = python or output.environ.get(PYTHON_VARIABLE) or sys.executable
    asked = AskedOfDoctor(
        lane=lane,
        model=model,
        layers=layers,
        quantization=quantization,
        cpu=cpu,
        recipe=recipe,
        all_recipes=all_recipes,
    )
    chosen = tasks_of(asked, config, output.environ, world_of(session, interpreter))
    for item in (*chosen.lacking, *chosen.passed_over):
        left = "so the lane is not certified by this run" if item in chosen.lacking else "it is passed over"
        output.message(f"warning: {item.error.message} [{item.error.code}]; {left}")
    request = DoctorRequest(
        tasks=chosen.tasks,
        lacking=chosen.lacking,
        base=output.directory,
        lenient=all_recipes,
        limits=_limits(timeout, stall),
        python=interpreter,
        report=None if report is None else output.directory / Path(report),
        user=user_name(session),
        tell=lambda made: output.message("\n".join(doctor_lines(made, color=output.color))),
    )
    if config is not None:
        request = replace(request, repository=config.repository, notes=config.notes)
    done = doctor(session, request, signer_of(output, session, key) if record else None)
    if as_json:
        output.document(done.encode())
    if done.error is not None:
        sys.stderr.write(f"error: a report was not stored: {done.error.message} [{done.error.code}]\n")
    dirt = sorted({path for made in done.reports if record for path in made.repo.dirty_paths})
    if dirt and config is not None and not config.policy.allow_dirty:
        named = ", ".join(ascii(path)[1:-1] for path in dirt[:3])
        output.message(f"warning: reports on uncommitted changes don't count: {named}; commit or ignore them")
    for finding in standing_of(session, done.stored).findings:
        if finding.found != "dirty":  # said above, with the paths
            output.message(f"warning: report {finding.subject} counts for nothing: {escaped(finding.found, 400)}")
            output.message(f"  try: {finding.remedy}")
    stored = f"; {len(done.stored)} recorded" if record else ""
    output.message(f"doctor: {doctor_summary(done.reports)}{stored}")
    return done.exit_status


def _config(session: Session, *, is_needed: bool) -> Config | None:
    """Return the configuration of HEAD; None where there is none, and none is needed."""
    from gitledger.errors import ConfigError
    from gitledger.workflows.target import head_of
    from gitledger.workflows.trusted import read_config

    try:
        return read_config(session.repo, head_of(session))
    except ConfigError as error:
        if is_needed or error.code != "no-config":
            raise
        return None


def _limits(timeout: str | None, stall: str | None) -> Limits:
    from gitledger.lanes.supervise import Limits

    limits = Limits()
    if timeout is not None:
        limits = replace(limits, timeout_s=_seconds("--timeout", timeout))
    if stall is not None:
        limits = replace(limits, stall_s=_seconds("--stall", stall))
    return limits


def _seconds(option: str, text: str) -> float:
    from gitledger.config.quantities import parse_duration
    from gitledger.errors import UsageError

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError("bad-duration", f"{option} {text!a}: {error}", f"give {option} 30m") from error
