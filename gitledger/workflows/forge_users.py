"""Forge users in force: which accounts a judgement needs, and the keys that their forges publish for them.

A forge is asked only where the answer can matter: for users that policy names, once there is a signature that
`allowed_signers` alone does not account for; and in open mode for the users that such records name themselves.
Judgement gets the answers as values (`verdict.acceptance.Keyring`) and opens no connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from datetime import datetime
from pathlib import Path

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass
from gitledger.errors import TrustError, UsageError
from gitledger.trust.forges import BUILT_IN, ForgeAnswer, Forges, ForgeUser, proxies_from
from gitledger.trust.signers import Signers
from gitledger.trust.verified import Verified
from gitledger.verdict.acceptance import Signatories, signatories
from gitledger.verdict.evidence import Evidence, Opened
from gitledger.verdict.finding import Finding, note
from gitledger.workflows.forge_names import named_forge_users
from gitledger.workflows.session import Session

__all__ = ["MAX_NAMED_USERS", "ForgeKeys", "ask_forges"]

MAX_NAMED_USERS = 50
"""How many users records may name of themselves (`signer_mode: open`) in one judgement: each is a request."""
_WHOEVER = frozenset({"key-revoked", "key-not-allowed", "no-touch"})
"""Why a signature does not count whoever made it: no forge can change that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeKeys:
    """What forges published, by `FORGE:USER`, and what a person should know of it."""

    answers: dict[str, ForgeAnswer] = field(default_factory=dict)
    notes: tuple[Finding, ...] = ()


def ask_forges(
    session: Session,
    config: Config,
    signers: Signers,
    now: datetime,
    evidence: Iterable[Evidence],
    *,
    current: bool = False,
    reports: bool = False,
) -> ForgeKeys:
    """Return the keys of the forge users that a judgement of `evidence` needs.

    `current`: no kept answer will do (`merge --verify-inputs`). `reports`: capability reports are judged as well.
    A user that the forge does not know has no keys. Raises `TrustError` `forge-unreachable`, `forge-offline`,
    `forge-users-too-many`: an account that can't be looked up may have signed a failure, so there is no verdict
    then; and `UsageError` `offline-current`.
    """
    piles = list(evidence)
    is_open = config.policy.signer_mode == "open"
    named = [name for _, name in named_forge_users(config)]
    if not named and not is_open:
        return ForgeKeys()
    notes = _mode_note(config)
    bare = signatories(config.policy, signers, now, piles)
    strangers = list(_strangers(bare, piles))
    if reports:
        strangers += _strange_reports(bare, piles)
    if not strangers:
        return ForgeKeys(notes=notes)
    if current and session.offline:
        raise UsageError(
            "offline-current",
            "--verify-inputs asks forges for their present keys, and this is offline",
            "git ledger merge",
        )
    users = [
        ForgeUser.parse(name)
        for name in dict.fromkeys([*named, *(_claimed(config, strangers) if is_open else ())])
    ]
    forges = Forges(
        config.forges,
        now=session.now(),
        cache=_cache(session),
        offline=session.offline,
        proxies=proxies_from(session.environ),
    )
    return _asked(forges, users, current=current, notes=notes)


def _strangers(bare: Signatories, piles: Iterable[Evidence]) -> Iterator[str]:
    """Yield, for each record that `allowed_signers` alone does not account for, the user that it names ("")."""
    for pile in piles:
        dated: list[tuple[Opened, datetime]] = [(held.opened, held.ended_at) for held in pile.shards]
        dated += [(held.opened, held.receipt.merged_at) for held in pile.merged]
        for opened, at in dated:
            found = bare.judge(opened, at)
            settled = (found.accepted and not found.withdrawn) or found.reason in _WHOEVER
            if isinstance(opened, Verified) and not settled:
                yield opened.statement.signer.user if opened.statement.signer else ""
        for revocation in pile.revocations:
            if revocation.key and not bare.is_revoker(revocation.opened, revocation.revocation.revoked_at):
                yield ""
        for item in pile.undecodable:
            if item.key is not None and not bare.trusts(item):
                yield ""


def _strange_reports(bare: Signatories, piles: Iterable[Evidence]) -> Iterator[str]:
    """Yield, for each report by a key that policy's own signers do not account for, the user that it names."""
    for held in (held for pile in piles for held in pile.reports):
        found = bare.judge(held.opened, held.report.timing.finished_at)
        if isinstance(held.opened, Verified) and not found.accepted and found.reason not in _WHOEVER:
            yield held.opened.statement.signer.user if held.opened.statement.signer else ""


def _claimed(config: Config, strangers: Iterable[str]) -> list[str]:
    """Return the users of known forges that records name of themselves; raises `TrustError` for too many."""
    known = {**BUILT_IN, **config.forges}
    found = [name for name in dict.fromkeys(strangers) if _forge_of(name) in known]
    if len(found) > MAX_NAMED_USERS:
        raise TrustError(
            "forge-users-too-many",
            f"records name {len(found)} forge users, more than {MAX_NAMED_USERS}; none is looked up",
            "use signer_mode: restricted, and list the users in policy.allowed_signers",
        )
    return found


def _forge_of(text: str) -> str:
    try:
        return ForgeUser.parse(text).forge
    except ValueError:
        return ""


def _asked(forges: Forges, users: Iterable[ForgeUser], *, current: bool, notes: tuple[Finding, ...]) -> ForgeKeys:
    answers = {}
    for user in users:
        try:
            answers[str(user)] = forges.keys(user, current=current)
        except TrustError as error:
            if error.code != "forge-user-unknown":
                raise
            notes = (*notes, _unknown_note(user, error))
    return ForgeKeys(answers=answers, notes=notes)


def _unknown_note(user: ForgeUser, error: TrustError) -> Finding:
    return note(
        "forge-user-unknown",
        "4",
        user,
        expected="an account of that name",
        found=error.message,
        remedy="check the name in policy",
    )


def _mode_note(config: Config) -> tuple[Finding, ...]:
    if config.policy.signer_mode != "open":
        return ()
    found = note(
        "signer-mode-open",
        "4",
        "policy.signer_mode",
        expected="restricted: signers that policy lists",
        found="open: a record counts by any key of the forge user that it names itself",
    )
    return (found,)


def _cache(session: Session) -> Path:
    """Return where answers are kept: with the person's other caches, outside of any repository."""
    kept = session.environ.get("XDG_CACHE_HOME", "")
    base = Path(kept) if kept.startswith("/") else session.home / ".cache"
    return base / "gitledger" / "forges"
