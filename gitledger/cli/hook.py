"""`git ledger hook`."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, run_by, signer_of, user_name
from gitledger.dataclass import replace
from gitledger.errors import EXIT_NO, EXIT_YES, UsageError

if TYPE_CHECKING:
    from gitledger.workflows.session import Session


@click.command("hook", short_help="What installed hooks call")
@click.argument("name", type=click.Choice(["pre-push"]))
@click.argument("arguments", nargs=-1)
@click.pass_obj
def command(output: Output, name: str, arguments: tuple[str, ...]) -> int:  # noqa: ARG001
    r"""Do what a git hook does; git hands it the remote's name and URL, and the refs on standard input.

    Hook managers that pass less on are known: of pre-commit's variables the first ref is read.

    \b
    git ledger hook pre-push "$@"       in a pre-push hook of your own
    """
    from gitledger.cli.run_screen import Screen
    from gitledger.machine.parents import commands_above
    from gitledger.report.text import finding_lines
    from gitledger.workflows.dry_push import is_dry_push
    from gitledger.workflows.pre_push import pre_push
    from gitledger.workflows.pushed_refs import seen_push
    from gitledger.workflows.run_hook import PushRun

    if output.environ.get("GITLEDGER_SKIP", "0") not in ("", "0"):
        output.message("git ledger: skipped by GITLEDGER_SKIP")
        return EXIT_YES
    text = sys.stdin.read()
    output, session = _pushing(output)
    seen = seen_push(session.repo, text, arguments, output.environ)
    runs = PushRun(
        signer=functools.cache(lambda: signer_of(output, session, None)),  # one passphrase, however many refs
        user=user_name(session),
        watch=Screen.of(output, slots=1, logs=session.repo.git_dir / "gitledger" / "logs", tail_to_stderr=True),
    )
    is_dry = is_dry_push(commands_above())
    done = pre_push(session, seen.remote, seen.lines, url=seen.url, runs=runs, is_dry=is_dry)
    for ref, verdict in done.judged:
        if not verdict.verdict.passed:
            output.message(f"git ledger: {ref}")
            trusted = verdict.case.trusted
            run = run_by(None if trusted.is_self else trusted.source)
            for line in finding_lines(verdict.verdict.findings, color=False, run=run):
                output.message(line)
    is_worth_saying = bool(done.messages) or not seen.lines
    for text in (*(seen.messages if is_worth_saying else ()), *done.messages):
        output.message(f"git ledger: {text}")
    if not done.allowed:
        output.message("git ledger: record what is missing and push again; `git push --no-verify` skips this hook")
    return EXIT_YES if done.allowed else EXIT_NO


def _pushing(output: Output) -> tuple[Output, Session]:
    """Return the session of the repository that is pushed from, and the command's world without git's pointers.

    It is the one that the hook's folder lies in, unless git was told of another (`git --git-dir=…`, GIT_DIR), of
    which the folder knows nothing: it may lie in a third one, whose remotes and evidence are not this push's.
    """
    from gitledger.store.git_environment import without_repository

    inner = replace(output, environ=without_repository(output.environ))
    told = output.environ.get("GIT_DIR")
    try:
        session = enter(inner)
    except UsageError:
        if not told:
            raise
    else:
        if not told or session.repo.git_dir == (output.directory / told).resolve():
            return inner, session
    return inner, replace(enter(output), environ=inner.environ)
