"""`git ledger fsck`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json
from gitledger.errors import EXIT_NO, EXIT_YES
from gitledger.wording import counted


@click.command("fsck", short_help="Look at every record, body and ref, and name what is damaged")
@with_json
@click.pass_obj
def command(output: Output, as_json: bool) -> int:
    r"""Check every record, body and ref of the ledger, and name each kind of damage. Repairs nothing.

    Exits with 1 for damage. What is only not published yet, or a leftover that harms nobody, exits with 0.

    \b
    git ledger fsck
    git ledger -v fsck                  with what mends each
    """
    from gitledger.report.text import escaped
    from gitledger.workflows.fsck import fsck

    done = fsck(enter(output))
    if as_json:
        output.document(done.encode())
        return EXIT_YES if done.is_clean else EXIT_NO
    for problem in done.problems:
        mark = "✗" if problem.is_damage else "·"
        output.result(f"{mark} {problem.kind}: {escaped(problem.subject)}: {escaped(problem.detail)}")
        if problem.remedy and (problem.is_damage or output.verbose):
            output.result(f"    {escaped(problem.remedy)}")
    word = "clean" if done.is_clean else "damaged"
    bodies = counted(done.bodies, "body", "bodies")
    output.result(f"{word}: {counted(done.records, 'record')} on {counted(done.commits, 'commit')}, {bodies}")
    return EXIT_YES if done.is_clean else EXIT_NO
