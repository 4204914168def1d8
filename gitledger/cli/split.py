"""`git ledger split`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json
from gitledger.errors import EXIT_NO, EXIT_YES, UsageError
from gitledger.wording import counted


@click.command("split", short_help="Prove, refresh and judge how suites are cut into parts")
@click.option("--check", is_flag=True, help="Prove the partition on the real collection (the default).")
@click.option("--write", is_flag=True, help="Refresh .gitledger/durations.json from the ledger.")
@click.option("--advise", is_flag=True, help="Say what one part more or less would bring.")
@with_json
@click.pass_obj
def command(output: Output, check: bool, write: bool, advise: bool, as_json: bool) -> int:
    r"""Look at the shards that `split: K` cuts into parts.

    The check collects the tests with the declared commands, without running them, and exits with 1 where a test
    belongs to two shards or to none, with 2 where that is not so and no shard is split: nothing was proved.

    \b
    git ledger split --check
    git ledger split --write && git add :/.gitledger/durations.json
    git ledger split --advise
    """
    if check + write + advise > 1:
        raise UsageError("usage", "--check, --write and --advise are three questions", "ask one at a time")
    if write:
        return _write(output, as_json=as_json)
    return _advise(output, as_json=as_json) if advise else _check(output, as_json=as_json)


def _check(output: Output, *, as_json: bool) -> int:
    from gitledger.report.split import check_text
    from gitledger.workflows.split import check_splits

    found = check_splits(enter(output))
    if as_json:
        output.document(found.encode())
    else:
        rows = [part.encode() for part in found.parts]
        output.result(
            check_text(
                [(row["name"], len(row["files"]), row["tests"], row["seconds"]) for row in rows],
                found.findings,
                found.orphans,
                passed=found.is_partition,
                color=output.color,
            )
        )
    return EXIT_YES if found.is_partition else EXIT_NO


def _write(output: Output, *, as_json: bool) -> int:
    from gitledger.config.schema import DURATIONS_PATH
    from gitledger.workflows.split import write_durations

    refreshed, total = write_durations(enter(output))
    if as_json:
        output.document({"file": DURATIONS_PATH, "refreshed": refreshed, "tests": total})
    else:
        output.result(
            f"{DURATIONS_PATH}: {counted(refreshed, 'duration')} from the ledger, {total} in all; commit it"
        )
    return EXIT_YES


def _advise(output: Output, *, as_json: bool) -> int:
    from gitledger.report.split import advice_text
    from gitledger.workflows.split import advise_splits
    from gitledger.workflows.target import head_of
    from gitledger.workflows.trusted import read_config

    session = enter(output)
    head = head_of(session)
    found = advise_splits(session, head)
    parts = {name: shard.split or 1 for name, shard in read_config(session.repo, head).shards.items()}
    if as_json:
        output.document(
            {
                name: {
                    "divisible_seconds": advice.divisible_us / 10**6,
                    "fixed_seconds": advice.fit.fixed_us / 10**6,
                    "longest_seconds": {str(n): us / 10**6 for n, us in sorted(advice.longest_us.items())},
                    "parts": parts[name],
                    "runs": advice.runs,
                }
                for name, advice in found.items()
            }
        )
    else:
        output.result(advice_text(found, parts))
    return EXIT_YES
