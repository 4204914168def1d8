"""`git ledger completion`: prints what makes a shell complete `git ledger` and `git-ledger`, and answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.cli.completion_scripts import SCRIPTS
from gitledger.cli.output import Output

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:  # click 8.1 knows no choices but of texts
    _Choice = click.Choice


class _Shells(_Choice):
    """The shells that there are scripts for; the scripts themselves also ask for `words`, which nobody types."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word; another is refused by naming the shells."""
        if value not in self.choices:
            self.fail(f"{value!r} is not one of {', '.join(SCRIPTS)}", param, ctx)
        return str(value)


@click.command(
    "completion",
    short_help="What makes bash, zsh or fish complete `git ledger <TAB>`",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("shell", type=_Shells([*SCRIPTS, "words"]), metavar="bash|zsh|fish")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.pass_context
def command(ctx: click.Context, shell: str, words: tuple[str, ...]) -> int:
    r"""Print a script that completes commands, options, and this repository's shards, variants and lanes.

    `git ledger` is completed by git's own completion, which finds what this defines.

    \b
    eval "$(git ledger completion bash)"                       in ~/.bashrc, after git's completion
    eval "$(git ledger completion zsh)"                        in ~/.zshrc, after compinit
    git ledger completion fish | source                        in ~/.config/fish/config.fish
    """
    output: Output = ctx.obj
    if shell in SCRIPTS:
        if words:
            raise click.UsageError(f"nothing goes behind {shell}", ctx)
        output.result(SCRIPTS[shell])
        return 0
    from gitledger.cli.completion_words import candidates

    found = candidates(ctx.find_root(), output, words or ("",))
    output.result("".join(f"{value}\t{about}\n" for value, about in found))
    return 0
