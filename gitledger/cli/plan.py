"""`git ledger plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.cli.output import Output
from gitledger.cli.world import (
    BegunLook,
    beside_edits,
    enter,
    opened,
    say_what_is_missing,
    with_json,
    with_offline,
    with_policy,
)
from gitledger.errors import EXIT_NO, EXIT_YES, UsageError
from gitledger.wording import counted

if TYPE_CHECKING:
    from gitledger.workflows.judge import Plan
    from gitledger.workflows.session import Session

FORMATS = ("github", "gitlab", "slurm")


@click.command("plan", short_help="Say what is fresh, what carries, what must run")
@click.argument("commit", default="HEAD")
@with_policy
@click.option("--carry/--no-carry", default=None, help="Carry unchanged shards, or don't, whatever policy says.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default=None, help="What is stale, as jobs of an engine."
)
@click.option("--max-jobs", type=click.IntRange(1), default=None, help="At most so many jobs, filled evenly.")
@click.option("--include", metavar="FILE", default=None, help="gitlab: the file that defines `.git-ledger`.")
@click.option("--sbatch", multiple=True, metavar="OPTION", help="slurm: an option for sbatch.")
@click.option("--spool", metavar="DIR", default=None, help="slurm: where nodes leave receipts.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 where something has to run.")
@with_offline
@with_json
@click.pass_obj
def command(
    output: Output,
    commit: str,
    policy_from: str | None,
    carry: bool | None,
    form: str | None,
    max_jobs: int | None,
    include: str | None,
    sbatch: tuple[str, ...],
    spool: str | None,
    exit_code: bool,
    offline: bool,
    as_json: bool,
) -> int:
    r"""Say for each shard whether its evidence is fresh, carries from an older commit, or must be made anew.

    Of the commit that is checked out it also names the shards that uncommitted edits would make stale, once they
    are committed. A run beside any such edit, of whichever shard, is recorded as dirty.

    \b
    git ledger plan                     what would a merge of HEAD take?
    git ledger plan --exit-code         1 where a shard has to run
    git ledger plan --format github >> "$GITHUB_OUTPUT"
    git ledger plan --json | jq -r '.shards[] | select(.verdict == "stale").name'
    """
    if form is not None and as_json:
        raise UsageError("usage", "--format and --json are two documents, and stdout takes one", "leave one out")
    repo = opened(output)
    # git looks at every file while we load what judges.
    look = BegunLook(output, repo) if commit == "HEAD" else None

    from gitledger.workflows.target import target_of
    from gitledger.workflows.uncommitted import edits_of

    session = enter(output, offline=offline, repo=repo, keeps=True)
    target = target_of(session, commit)
    with edits_of(session, target, begun=look.taken() if look else None) as edits:
        from gitledger.workflows.judge import planned
        from gitledger.workflows.unpublished import unpublished

        waiting = {} if form is not None else unpublished(session)
        with beside_edits(output, session, target):
            found = planned(session, target, edits, policy_from=policy_from, carry=carry)
    if form is not None:
        text = _formatted(output, session, found, form, max_jobs, include, sbatch, spool)
        output.result(text)
        return EXIT_NO if exit_code and not found.is_covered else EXIT_YES
    if as_json:
        output.document({**found.encode(), "unpublished": waiting})
    else:
        from gitledger.report.shards import plan_text

        changes = [(str(item.key), item.paths) for item in found.uncommitted]
        commit = found.case.situation.commit
        output.result(plan_text(found.union, changes, commit=commit, color=output.color, width=output.width))
    if not found.is_covered:
        say_what_is_missing(output, session)
        _say_dirt(output, session, found)
    for remote, number in waiting.items():
        if number:
            them = "it" if number == 1 else "them"
            waits = f"{counted(number, 'record')} not published to {remote}"
            output.message(f"{waits}; `git ledger sync {remote}` publishes {them}")
    return EXIT_NO if exit_code and not found.is_covered else EXIT_YES


def _say_dirt(output: Output, session: Session, found: Plan) -> None:
    """Say what makes every run dirty though no shard stands on it; where policy takes dirty runs, nothing."""
    from gitledger.config.schema import CONFIG_PATH

    seen = found.beside
    if seen is None or not seen.dirty or found.case.trusted.config.policy.allow_dirty:
        return
    told = {
        CONFIG_PATH,
        *(path for item in found.uncommitted for path in item.paths),
    }  # an edit of that is said anyway
    changed, untracked = ([path for path in paths if path not in told] for paths in (seen.changed, seen.untracked))
    if changed or untracked:
        from gitledger.workflows.dirt import named
        from gitledger.workflows.mend import to_mend_dirt

        mend = to_mend_dirt(session.repo, changed, untracked)
        output.message(f"git ledger: beside {named(session.repo, [*changed, *untracked])} a run is dirty; {mend}")


def _formatted(
    output: Output,
    session: Session,
    found: Plan,
    form: str,
    max_jobs: int | None,
    include: str | None,
    sbatch: tuple[str, ...],
    spool: str | None,
) -> str:
    """Return what is stale as jobs of an engine."""
    from gitledger.report.ci_plan import MAX_MATRIX_JOBS, github_text, gitlab_text
    from gitledger.workflows.plan_jobs import planned_jobs, slurm_text
    from gitledger.workflows.run_slurm import SlurmRequest

    if form == "github":
        return github_text(planned_jobs(found, max_jobs=max_jobs, limit=MAX_MATRIX_JOBS))
    if form == "gitlab":
        commit = found.case.situation.commit
        return gitlab_text(planned_jobs(found, max_jobs=max_jobs), commit=commit, include=include)
    folder = None if spool is None else output.directory / spool
    return slurm_text(session, found, SlurmRequest(spool=folder, options=sbatch))
