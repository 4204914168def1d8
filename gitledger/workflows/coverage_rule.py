"""The threshold on coverage and where it stands: the trusted commit's own files (DESIGN sections 4 and 8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitledger.config.schema import CONFIG_PATH, Config
from gitledger.errors import ConfigError
from gitledger.records.ids import CommitId
from gitledger.records.threshold import parse_threshold
from gitledger.store.repository import Repository
from gitledger.suites.coverage_settings import CoverageSettings, Read, coverage_settings, irregular
from gitledger.verdict.finding import Finding, blocking, note
from gitledger.verdict.pins import accepting
from gitledger.verdict.situation import CoverageRule

if TYPE_CHECKING:  # most repositories set no threshold
    from decimal import Decimal

__all__ = ["coverage_pin", "coverage_rule"]

MAX_PRECISION = 20


def coverage_rule(read: Read, config: Config) -> CoverageRule:
    """Return the one threshold of a commit: the ledger's configuration, else coverage's, else pytest-cov's option.

    `read` gives the content of its files; what the rule is rests on these and on `config` alone.
    Raises `ConfigError`: `thresholds-disagree`, `threshold-zero`, `threshold-malformed`, `coverage-config`.
    """
    settings = _settings(read, config)
    given = {
        f"coverage.fail_under of {CONFIG_PATH}": config.coverage.fail_under,
        "fail_under of coverage's configuration": settings.fail_under,
        "--cov-fail-under of pytest's addopts": settings.option_fail_under,
    }
    found = {where: (text, _threshold(where, text)) for where, text in given.items() if text is not None}
    if len({value for _, value in found.values()}) > 1:
        texts = ", ".join(f"{where} {text}" for where, (text, _) in found.items())
        raise ConfigError("thresholds-disagree", f"thresholds disagree: {texts}", "leave one of them")
    threshold = next((text for text, _ in found.values()), None)
    return CoverageRule(threshold=threshold, precision=_precision(config, settings))


def _threshold(where: str, text: str) -> Decimal:
    from decimal import Decimal, InvalidOperation

    try:
        if Decimal(text) == 0:
            raise ConfigError(
                "threshold-zero", f"{where} is 0, which everything meets", "raise it, or take it out"
            )
        return parse_threshold(text)
    except (ValueError, InvalidOperation) as error:
        raise ConfigError(
            "threshold-malformed", f"{where}: {text!a}: expected a number above 0, at most 100", f"mend {where}"
        ) from error


def _precision(config: Config, settings: CoverageSettings) -> int:
    if config.coverage.precision is not None:
        return config.coverage.precision
    text = settings.option_precision or settings.precision or "0"
    if not text.isascii() or not text.isdigit() or int(text) > MAX_PRECISION:
        raise ConfigError(
            "threshold-malformed",
            f"coverage's precision: {text!a}: expected 0 to {MAX_PRECISION}",
            "mend coverage's configuration",
        )
    return int(text)


def _settings(read: Read, config: Config) -> CoverageSettings:
    commands = [shard.command for shard in config.shards.values() if shard.command]
    return coverage_settings(read, commands)


def coverage_pin(
    repo: Repository,
    judged: tuple[CommitId, Config],
    trusted: tuple[CommitId, Config],
    *,
    accepted: bool,
    source: str,
) -> Iterator[Finding]:
    """Yield `coverage-redefined` where the judged commit counts coverage otherwise than the trusted one.

    What is measured, left out and excluded is told by the judged commit's files, which its runs obeyed; the
    threshold is the trusted one in any case. `source` is the trusted ref as a person would type it.

    Raises `ConfigError` `coverage-config` where one of these is no regular file in either commit: what a link
    leads to is not compared, and could change unseen.
    """
    was, now = _digest(repo, *trusted), _digest(repo, *judged)
    if was == now:
        return
    make = note if accepted else blocking
    yield make(
        "coverage-redefined",
        "4",
        "coverage",
        expected="the coverage configuration of the policy's commit",
        found="another threshold, source, omission, exclusion or option",
        remedy=accepting(source),
    )


def _digest(repo: Repository, commit: CommitId, config: Config) -> tuple[object, ...]:
    try:
        digest = _settings(lambda name: repo.file_at(commit, name), config).digest
    except ConfigError as error:
        if irregular(error):
            raise
        return (error.message,)
    unmeasured = tuple(sorted(name for name, shard in config.shards.items() if shard.coverage == "none"))
    return digest, config.coverage, unmeasured
