"""`git ledger revoke`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, signer_of, user_name, with_json, with_key, with_offline, with_policy
from gitledger.errors import EXIT_YES


@click.command("revoke", short_help="Take a record's green away, for good")
@click.argument("record")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept with the record.")
@with_policy
@with_key
@with_offline
@with_json
@click.pass_obj
def command(
    output: Output,
    record: str,
    reason: str,
    policy_from: str | None,
    key: str | None,
    offline: bool,
    as_json: bool,
) -> int:
    r"""Revoke a record by its id (8 digits or more), as its own signer or as one of policy's revokers.

    Nothing is deleted: the revocation is one more signed record on the same commit. It only turns green into red:
    a revoked failure still blocks, whatever leans on a revoked green fails, and only a new receipt mends that.

    \b
    git ledger revoke 1f3a9c0b --reason "driver 570 gives wrong results"
    git ledger sync                       lets others know
    """
    from gitledger.workflows.revoke import revoke

    session = enter(output, offline=offline)
    signer = signer_of(output, session, key)
    done = revoke(session, record, signer, reason=reason, user=user_name(session), policy_from=policy_from)
    if as_json:
        output.document(done.encode())
    else:
        word = "revoked" if done.is_new else "was revoked before:"
        output.result(
            f"{word} record {done.revokes[:12]} of commit {done.commit[:12]}; record {done.record[:12]}\n"
        )
    return EXIT_YES
