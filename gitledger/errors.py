"""The one root of every error that the ledger raises on purpose.

An error says what is wrong, where, and what mends it. The command line maps it to one line on stderr and to
the exit status it carries (DESIGN section 10); nothing else decides exit codes.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "EXIT_FAULT",
    "EXIT_INCONCLUSIVE",
    "EXIT_NO",
    "EXIT_NOT_STORED",
    "EXIT_SKIPPED",
    "EXIT_USAGE",
    "EXIT_YES",
    "ConfigError",
    "DecodeError",
    "InconclusiveError",
    "InternalError",
    "LedgerError",
    "MachineError",
    "ManifestError",
    "PolicyError",
    "StoreError",
    "TrustError",
    "UsageError",
]

EXIT_YES = 0
EXIT_NO = 1
EXIT_USAGE = 2
EXIT_NOT_STORED = 3
EXIT_FAULT = 70
EXIT_SKIPPED = 77
EXIT_INCONCLUSIVE = 99


class LedgerError(Exception):
    """What was wrong, where, and the command that mends it.

    Attributes:
        code: stable word for machines and for ``git ledger explain`` (kebab-case).
        message: one sentence: what is wrong and where; no trailing stop, no newline.
        hint: the next step, a command where there is one; empty only where nothing can be done.
        exit_status: the process exit status that this error stands for.

    """

    exit_status: ClassVar[int] = EXIT_FAULT

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(LedgerError):
    """The command was called in a way that can't be answered."""

    exit_status = EXIT_USAGE


class ConfigError(LedgerError):
    """The configuration (`.gitledger/`, policy, signers' files) can't be used as it stands."""

    exit_status = EXIT_USAGE


class ManifestError(LedgerError):
    """A declared scope can't be resolved to inputs."""

    exit_status = EXIT_USAGE


class PolicyError(LedgerError):
    """Policy does not allow what was asked for, and nothing was done."""

    exit_status = EXIT_NO


class TrustError(LedgerError):
    """A key can't be found, read or used."""

    exit_status = EXIT_USAGE


class MachineError(LedgerError):
    """A child process, device or fact of the machine could not be handled."""

    exit_status = EXIT_USAGE


class InconclusiveError(MachineError):
    """The machine could not run what was asked for, which says nothing of what would have come of it."""

    exit_status = EXIT_INCONCLUSIVE


class DecodeError(LedgerError):
    """Bytes that should be a record, body, journal or signature are not.

    `message` names the path of the field (`$.predicate.counts.passed`) and what stood there.
    """

    exit_status = EXIT_NO


class StoreError(LedgerError):
    """The ledger could not be read, written or published; nothing was lost locally."""

    exit_status = EXIT_NOT_STORED


class InternalError(LedgerError):
    """Our own fault."""

    exit_status = EXIT_FAULT
