"""From what was asked for to what is to be recorded: declared shards, and those that a command line declares."""

from __future__ import annotations

from collections.abc import Sequence

from gitledger.config.command import pytest_arguments
from gitledger.config.schema import Config, ResultsConfig
from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError, UsageError
from gitledger.manifest.definition import Definition
from gitledger.records.ids import ShardKey
from gitledger.workflows.request import RecordRequest

__all__ = ["Asked", "request_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The words of a `record` command. `paths` empty: a declared shard. `report`: its kind and file."""

    shard: str
    variant: str | None = None
    command: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    extra_paths: tuple[str, ...] = ()
    excluded_paths: tuple[str, ...] = ()
    report: ResultsConfig | None = None


def request_of(config: Config, asked: Asked) -> RecordRequest:
    """Return what is to be recorded, without the choices of the person and the machine.

    Raises `ConfigError` `unknown-shard`, `variant-needed`, and `UsageError` where words contradict each other.
    """
    key = _key(asked)
    if asked.paths or asked.extra_paths or asked.excluded_paths:
        return _undeclared(config, asked, key)
    return _declared(config, asked, _resolved(config, key, asked.command))


def _key(asked: Asked) -> ShardKey:
    try:
        key = ShardKey.parse(asked.shard)
        if asked.variant is not None:
            key = ShardKey(key.name, asked.variant)
    except ValueError as error:
        raise UsageError("bad-shard-name", f"--shard {asked.shard!a}: {error}", "git ledger plan") from error
    return key


def _resolved(config: Config, key: ShardKey, command: Sequence[str]) -> ShardKey:
    """Return the declared identity; one without a variant where variants are declared is refused."""
    if key in config.shard_keys():
        return key
    try:
        named = config.keys_named(str(key))
    except ConfigError as error:
        if command:  # a command of one's own is mostly of a shard of one's own
            error.message += "; one that is not declared needs --paths"
        raise
    if len(named) == 1 and key.variant is None and named[0].name == key.name:
        return named[0]
    choices = ", ".join(str(item) for item in named[:8])
    raise ConfigError(
        "variant-needed",
        f"shard {key} is declared as {choices}",
        f"git ledger record --shard {named[0]}",
    )


def _declared(config: Config, asked: Asked, key: ShardKey) -> RecordRequest:
    shard = config.shard(key)
    definition = Definition.of(config, key)
    if asked.report is not None and asked.command and asked.report != definition.results:
        raise UsageError(
            "results-differ",
            f"shard {key} declares results: {definition.results.kind}, not {asked.report.kind}",
            "leave the option out; the declared results are read",
        )
    is_over = asked.report is not None and not asked.command
    return RecordRequest(
        repository=config.repository,
        key=key,
        definition=definition,
        command=None if is_over else asked.command or shard.command or (),
        declared=True,
        report=asked.report,
        timeout_s=shard.timeout,
        gpu_uuid=config.record.gpu_uuid,
        notes=config.notes,
    )


def _undeclared(config: Config, asked: Asked, key: ShardKey) -> RecordRequest:
    if key.name in {item.name for item in config.shard_keys()}:
        raise UsageError(
            "shard-declared",
            f"shard {key.name} is declared; --paths, --extra-paths and --exclude-paths are for shards that aren't",
            f"git ledger record --shard {key}",
        )
    results = asked.report or _results_of(asked.command)
    definition = Definition.undeclared(
        key,
        command=asked.command or None,
        paths=asked.paths or (".",),
        extra_paths=asked.extra_paths,
        excluded_paths=asked.excluded_paths,
        results=results,
        marker=config.record.marker,
    )
    return RecordRequest(
        repository=config.repository,
        key=key,
        definition=definition,
        command=asked.command or (None if asked.report is not None else ()),
        declared=False,
        report=asked.report,
        gpu_uuid=config.record.gpu_uuid,
        notes=config.notes,
    )


def _results_of(command: Sequence[str]) -> ResultsConfig:
    is_pytest = not command or pytest_arguments(command) is not None
    return ResultsConfig("pytest" if is_pytest else "exit-status")
