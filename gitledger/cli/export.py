"""`git ledger export`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_offline, with_policy
from gitledger.errors import EXIT_YES

FORMATS = ("html", "markdown", "junit", "coverage", "coverage-xml", "lcov", "durations", "in-toto", "bundle")


@click.command("export", short_help="Write a commit's evidence as a report, or for another tool")
@click.argument("format_", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("commit", default="HEAD")
@click.option(
    "-o", "--output", "file", metavar="FILE", default=None, help="Where to write; `-` is stdout, whatever it is."
)
@click.option(
    "-n",
    "commits",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="html: at most this many commits, the newest first.",
)
@with_policy
@with_offline
@click.pass_obj
def command(
    output: Output,
    format_: str,
    commit: str,
    file: str | None,
    commits: int,
    policy_from: str | None,
    offline: bool,
) -> int:
    r"""Write what a commit's evidence says for people, and in the formats of other tools.

    \b
    html            a page for people, complete in one file
    markdown        what `gate` writes into a job's summary
    junit           JUnit XML for dashboards; what verify rejects is red
    coverage        coverage's data file, all shards united (default: .coverage)
    coverage-xml    Cobertura XML
    lcov            lcov's tracefile
    durations       seconds by test, as pytest-split keeps them
    in-toto         the signed statements, one JSON document a line
    bundle          a git bundle of the ledger, for `git ledger sync --from FILE`

    Text goes to stdout where no file is named, unless that is a terminal. A bundle needs -o.

    \b
    git ledger export html -o report.html -n 200
    git ledger export junit -o junit.xml
    git ledger export coverage-xml -o coverage.xml
    git ledger export coverage -o .coverage && coverage html
    """
    from gitledger.workflows.export import export
    from gitledger.workflows.target import target_of

    place = file or _default(format_)
    session = enter(output, offline=offline)
    target = target_of(session, commit)
    found = export(session, target, format_, policy_from=policy_from, commits=commits)
    for note in found.notes:
        output.message(f"git ledger: {note}")
    if place == "-":
        sys.stdout.buffer.write(found.content)
        return EXIT_YES
    path = output.directory / Path(place)
    _write(path, found.content)
    output.message(f"git ledger: wrote {place}")
    return EXIT_YES


def _default(format_: str) -> str:
    """Return where an export goes that names no file; raises `UsageError` where it had better name one."""
    from gitledger.errors import UsageError
    from gitledger.workflows.export import FILES

    hint = f"git ledger export {format_} -o {FILES[format_]}"
    if format_ == "coverage":
        return FILES[format_]
    if format_ == "bundle":
        raise UsageError("usage", "a bundle is a file, and -o FILE says which", hint)
    if sys.stdout.isatty():
        raise UsageError("usage", f"stdout is a terminal: {format_} goes into a file (-o FILE) or a pipe", hint)
    return "-"


def _write(path: Path, content: bytes) -> None:
    from gitledger.errors import UsageError

    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError("unwritable", f"{path} can't be written: {error.strerror}", "-o FILE") from error
