"""`git ledger explain`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import with_json


@click.command("explain", short_help="What a code means, and what to do")
@click.argument("code", required=False)
@click.option("--all", "everything", is_flag=True, help="Every code, as Markdown (docs/reference/codes.md).")
@with_json
@click.pass_obj
def command(output: Output, code: str | None, everything: bool, as_json: bool) -> int:
    r"""Explain a word in brackets: what it means, why it is asked for, and what to do. Needs no repository.

    \b
    git ledger explain inputs-changed
    git ledger explain --all
    """
    from gitledger.errors import UsageError
    from gitledger.report.codes import Entry, entry_text, nearest_codes, page, read_codes

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
        else:
            output.result(page() if everything else "\n".join(codes))
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
