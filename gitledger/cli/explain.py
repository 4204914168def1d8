"""`git ledger explain`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json

WIDTH = 80
"""Columns of a list that goes into a pipe."""
MAX_WIDTH = 120


@click.command("explain", short_help="What a code means, and what to do")
@click.argument("code", required=False)
@click.option("--all", "everything", is_flag=True, help="Every code, as Markdown (docs/reference/codes.md).")
@with_json
@click.pass_obj
def command(output: Output, code: str | None, everything: bool, as_json: bool) -> int:
    r"""Explain a word in brackets: what it means, why it is asked for, and what to do. Needs no repository.

    Without a CODE it lists them all, by section, with the first words of what they mean.

    \b
    git ledger explain inputs-changed
    git ledger explain | grep key
    git ledger explain --all
    """
    from gitledger.errors import UsageError
    from gitledger.report.codes import Entry, entry_text, listing, nearest_codes, read_codes
    from gitledger.report.codes import page as page_of_codes

    codes = read_codes()

    def document(entry: Entry) -> dict[str, object]:
        return {
            "code": entry.code,
            "exit_statuses": list(entry.statuses),
            "kinds": list(entry.kinds),
            "meaning": entry.meaning,
            "remedy": entry.remedy,
            "section": entry.chapter,
        }

    if everything or code is None:
        if as_json:
            output.document([document(entry) for entry in codes.values()])
        elif everything:
            output.result(page_of_codes())
        else:
            _list(output, listing(codes, width=min(output.width or WIDTH, MAX_WIDTH), color=output.color))
        return 0
    entry = codes.get(code.strip("[]"))
    if entry is None:
        near = nearest_codes(code, codes)
        nearest = f"; the nearest are {', '.join(near)}" if near else ""
        hint = f"git ledger explain {near[0]}" if near else "git ledger explain"
        raise UsageError("unknown-code", f"no code {code!a}{nearest}", hint)
    if as_json:
        output.document(document(entry))
    else:
        output.result(entry_text(entry))
    return 0


def _list(output: Output, text: str) -> None:
    """Write what is longer than a screen, on a terminal through the pager that git would take here."""
    from gitledger.cli.pager import page
    from gitledger.errors import LedgerError

    try:
        session = enter(output)
    except LedgerError:  # no repository, or none that can be read: codes need none
        session = None
    page(output, session, text)
