"""The `git-ledger` command: finds the subcommand, and turns errors into one line and an exit status."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gitledger import __version__
from gitledger.cli.loading import collect_seldom
from gitledger.cli.output import Output, show_error
from gitledger.cli.streams import OutputError, abandon_stdout, open_streams
from gitledger.dataclass import replace
from gitledger.errors import EXIT_FAULT, EXIT_USAGE, LedgerError

if TYPE_CHECKING:
    from gitledger.store.early_look import EarlyLook

__all__ = ["app", "main"]

EXIT_READER_GONE = 141
"""128 and SIGPIPE, as a shell would say it."""

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "Set up configuration, signer, fetch refspecs and hooks"),
    "record": ("record", "Run a shard and leave its signed receipt"),
    "run": ("run", "Run what is stale, record each, merge when all is covered"),
    "plan": ("plan", "Say what is fresh, what carries, what must run"),
    "merge": ("merge", "Sign a snapshot of the receipts that cover a commit"),
    "verify": ("verify", "Judge a commit's evidence by policy"),
    "gate": ("gate", "The one command for CI: sync, merge, verify, and say so"),
    "status": ("status", "One screen: recorded, unpublished, stale, what next"),
    "log": ("log", "Evidence along the history"),
    "show": ("show", "Evidence of one commit, or one record"),
    "scope": ("scope", "Propose a scope from what runs were seen to read"),
    "split": ("split", "Prove, refresh and judge how suites are cut into parts"),
    "flaky": ("flaky", "Tests whose outcome changed while their inputs did not"),
    "doctor": ("doctor", "Execute a model for real, and report what worked"),
    "lanes": ("lanes", "What each hardware lane has been shown to do"),
    "sync": ("sync", "Unite the ledger with a remote's"),
    "export": ("export", "Write a commit's evidence as a report, or for another tool"),
    "import": ("import_", "Take over receipts or settings of pytest-gpu-proof"),
    "revoke": ("revoke", "Take a record's green away, for good"),
    "fsck": ("fsck", "Look at every record, body and ref, and name what is damaged"),
    "hook": ("hook", "What installed hooks call"),
    "explain": ("explain", "What a code means, and what to do"),
    "help": ("help", "The manual: a command, or a page"),
    "completion": ("completion", "What makes bash, zsh or fish complete `git ledger <TAB>`"),
}
"""Each command by name: its module in this room, and its line of help."""
GROUPS: dict[str, tuple[str, ...]] = {
    "Set up": ("init", "completion", "hook"),
    "Run and record": ("record", "run", "doctor", "import"),
    "Judge": ("plan", "merge", "verify", "gate", "lanes"),
    "Look": ("status", "log", "show", "export"),
    "Keep in order": ("scope", "split", "flaky", "revoke", "fsck", "sync"),
    "Ask": ("explain", "help"),
}
"""What each command is for, as the help lists them."""


def _everywhere() -> list[click.Option]:
    """Return the options that may also stand behind a command's name."""

    def work_in(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.obj = replace(ctx.obj, directory=(ctx.obj.directory / value).resolve())

    def speak(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and parameter.name == "no_color":
            ctx.obj = replace(ctx.obj, color=False)
        elif value:
            ctx.obj = replace(ctx.obj, **{str(parameter.name): True})

    texts = {"-q/--quiet": "Say only what was asked for.", "-v/--verbose": "Say more.", "--no-color": "No colour."}
    options = [
        click.Option(names.split("/"), is_flag=True, expose_value=False, callback=speak, help=text)
        for names, text in texts.items()
    ]
    folder = click.Option(
        ["-C", "directory"], metavar="DIR", expose_value=False, callback=work_in, help="Work as if started in DIR."
    )
    return [folder, *options]


def _with_breaks(text: str | None) -> str:
    r"""Return a help text in which the two characters `\b`, as raw docstrings spell it, keep lines as they are."""
    return (text or "").replace("\\b\n", "\b\n")


class _Context(click.Context):
    """A context whose help fits the window, in signs that standard output can spell: click heeds neither."""

    def make_formatter(self) -> click.HelpFormatter:
        """Return what writes help, loaded when there is some to be written."""
        from gitledger.cli.narrow import Formatter

        return Formatter(width=self.terminal_width, max_width=self.max_content_width)

    def get_help(self) -> str:
        """Return the help, by the signs that there are."""
        encoding = sys.stdout.encoding
        return super().get_help().encode(encoding, sys.stdout.errors or "strict").decode(encoding)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for: start-up stays short."""

    context_class = _Context

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands in the order of the day's work, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command, imported now; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"gitledger.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        command.help = _with_breaks(command.help)
        command.context_class = _Context
        known = {parameter.name for parameter in command.params}
        command.params += [option for option in _everywhere() if option.name not in known]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` name; an unknown one is refused with the nearest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            if args[0] == "version":
                near = ["--version"]
            hint = f"did you mean `git ledger {near[0]}`?" if near else "`git ledger help` lists the commands"
            raise click.UsageError(f"no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands with their lines by what they are for, without importing them."""
        width = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", COMMANDS[name][1]) for name in names])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.option("-C", "directory", metavar="DIR", default=None, help="Work as if started in DIR.")
@click.option("-q", "--quiet", is_flag=True, help="Say only what was asked for.")
@click.option("-v", "--verbose", is_flag=True, help="Say more.")
@click.option("--no-color", is_flag=True, help="No colour (also: NO_COLOR).")
@click.version_option(__version__, "--version", prog_name="git-ledger", message="%(prog)s %(version)s")
@click.pass_context
def app(ctx: click.Context, directory: str | None, quiet: bool, verbose: bool, no_color: bool) -> None:
    r"""Keep signed test evidence in the repository itself, as git notes.

    \b
    git ledger init                     once in a repository
    git ledger record --shard unit      run a shard, leave its receipt
    git ledger plan                     what is fresh, carries, is stale
    git ledger run                      run what is stale, merge when all is covered
    git ledger merge                    sign what covers the commit
    git ledger verify --policy-from origin/main
    """
    output = Output.of(os.environ, directory=directory, quiet=quiet, verbose=verbose, no_color=no_color)
    ctx.obj = replace(output, early=ctx.obj)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


app.help = _with_breaks(app.help)


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
SWITCH_S = 0.0002
"""A thread that only starts git and reads what it says waits for no more than this, while we load and decode."""


def main(argv: Sequence[str] | None = None, *, early: EarlyLook | None = None) -> NoReturn:
    """Run the command line and exit; a traceback is a bug and shows only with GITLEDGER_DEBUG.

    `early` is a look at the work tree of the current folder that has begun already.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    collect_seldom()
    sys.setswitchinterval(SWITCH_S)
    if hasattr(signal, "SIGCHLD"):  # ignored, as some launchers hand it down, every child would seem to end with 0
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    open_streams()
    as_json = "--json" in arguments
    try:
        status = _run(arguments, early=early, as_json=as_json)
        sys.stdout.flush()
    except OutputError as error:
        abandon_stdout()
        status = EXIT_READER_GONE
        if not error.is_reader_gone:
            text = f"standard output can't be written: {error}"
            status = show_error("output-unwritable", text, "give it a file or a pipe", EXIT_USAGE, as_json=False)
    gc.freeze()  # the interpreter looks for cycles as it ends: in all that was loaded, to free what ends anyway
    sys.exit(status)


def _run(arguments: list[str], *, early: EarlyLook | None, as_json: bool) -> int:
    """Return the exit status; raises only where standard output can't be written."""
    try:
        result: Any = app.main(args=arguments, prog_name="git ledger", standalone_mode=False, obj=early)
        return result if isinstance(result, int) else 0
    except LedgerError as error:
        return show_error(error.code, error.message, error.hint, error.exit_status, as_json=as_json)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.NoSuchOption as error:
        from gitledger.cli.misspelt import no_such_option

        return show_error("usage", *no_such_option(error), EXIT_USAGE, as_json=as_json)
    except click.UsageError as error:
        within = error.ctx.info_name if error.ctx is not None and error.ctx.parent is not None else ""
        hint = f"git ledger help {within or next((word for word in arguments if word in COMMANDS), '')}".rstrip()
        text = error.format_message().rstrip(".").replace("is not a valid integer range", "is no whole number")
        return show_error("usage", text, hint, EXIT_USAGE, as_json=as_json)
    except click.ClickException as error:
        return show_error("usage", error.format_message().rstrip("."), "", EXIT_USAGE, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return show_error("interrupted", "interrupted", "", 130, as_json=as_json)
    except OutputError:
        raise
    except Exception as error:
        if os.environ.get("GITLEDGER_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            where = ascii(os.fsdecode(error.filename2 or error.filename or "a file"))[1:-1]
            text = f"{where} can't be written: {error.strerror}"
            hint = "make room there (TMPDIR names another folder for temporary files)"
            return show_error("no-room", text, hint, EXIT_USAGE, as_json=as_json)
        text = f"our own fault: {type(error).__name__}: {error}".splitlines()[0]
        hint = "run it again with GITLEDGER_DEBUG=1 and report what it prints"
        return show_error("internal", text, hint, EXIT_FAULT, as_json=as_json)
