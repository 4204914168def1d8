"""`git ledger import`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, signer_of, user_name, with_json, with_key
from gitledger.errors import EXIT_YES, UsageError
from gitledger.wording import counted, shell_word


@click.command("import", short_help="Take over receipts or settings of pytest-gpu-proof")
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option("--config", "as_config", is_flag=True, help="Translate settings and policy; FILE is a policy file.")
@click.option("-o", "--output", "place", metavar="FILE", default=None, help="With --config: write it there.")
@with_key
@with_json
@click.pass_obj
def command(
    output: Output, files: tuple[str, ...], as_config: bool, place: str | None, key: str | None, as_json: bool
) -> int:
    r"""Take over what pytest-gpu-proof left: receipts (schema 3) as history, or its settings as a configuration.

    Imported receipts are shown by `log` and `show`. They are never carried and no verdict looks at them: their
    fingerprints are not our manifests, so what they cover has to be recorded once.

    \b
    git ledger import gpu-proof.json receipts/*.json
    git ledger import --config gpu-proof-policy.yaml -o .gitledger/config.yaml
    """
    if as_config and as_json:
        raise UsageError("usage", "--config prints a configuration, which is no JSON document", "leave --json out")
    if as_config:
        return _settings(output, files, place)
    if place is not None:
        raise UsageError("usage", "-o goes with --config; receipts go into the ledger", "leave -o out")
    if not files:
        raise UsageError("usage", "no receipt is given", "git ledger import gpu-proof.json")
    from gitledger.workflows.take_over import take_over

    session = enter(output)
    paths = [output.directory / name for name in files]
    done = take_over(session, paths, signer_of(output, session, key), user=user_name(session))
    if as_json:
        output.document([item.encode() for item in done])
        return EXIT_YES
    for item in done:
        name = Path(item.file).name
        what = "was imported before" if item.record is None else f"imported as record {item.record[:12]}"
        output.result(
            f"{name}: {what} (commit {item.commit[:12]}, {counted(len(item.receipt.results), 'test')})\n"
        )
    return EXIT_YES


def _settings(output: Output, files: tuple[str, ...], place: str | None) -> int:
    from gitledger.workflows.take_over_config import translate

    if len(files) > 1:
        raise UsageError("usage", "--config takes one policy file at most", "git ledger import --config POLICY")
    session = enter(output)
    found = translate(session, output.directory / files[0] if files else None)
    if place is None:
        output.result(found.text)
    else:
        _write(output.directory / place, found.text)
        output.message(f"git ledger: wrote {place}; look through it, then commit it")
    for sentence in found.notes:
        sys.stderr.write(f"note: {sentence}\n")
    return EXIT_YES


def _write(path: Path, text: str) -> None:
    if path.exists():
        raise UsageError(
            "unwritable", f"{path} is there already", f"rm {shell_word(path)} (or name another file by -o)"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError("unwritable", f"{path} can't be written: {error.strerror}", "-o FILE") from error
