"""Whether policy will count what a key signs, told before anything runs: after the run it is late for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitledger.errors import ConfigError
from gitledger.workflows.session import Session
from gitledger.workflows.target import head_of
from gitledger.workflows.trusted import SIGNERS_PATH, read_config, read_signers

if TYPE_CHECKING:
    from gitledger.trust.keys import PublicKey

__all__ = ["why_it_will_not_count"]


def why_it_will_not_count(session: Session, key: PublicKey, *, policy_from: str | None = None) -> str:
    """Return why the policy in force won't count what `key` signs now; nothing where it will, or can't be told.

    The policy is that of `policy_from`, else of HEAD. No forge is asked whose a key is: where policy names users
    of one, or takes any (`signer_mode: open`), it may be theirs.
    """
    commit = head_of(session) if policy_from is None else session.repo.resolve(policy_from)
    try:
        policy = read_config(session.repo, commit).policy
        signers = read_signers(session.repo, commit)
    except ConfigError:
        return ""  # whoever judges says so; a run is recorded all the same
    whose = "this commit's own policy" if policy_from is None else f"the policy of {policy_from}"
    names = policy.allowed_signers
    listed = policy.allowed_key_fingerprints
    if signers.is_revoked(key):
        why = "is revoked"
    elif listed and key.fingerprint not in listed:
        why = "is not among policy.allowed_key_fingerprints"
    elif policy.signer_mode == "open" or any(":" in name for name in names or ()):
        return ""
    elif not signers.is_valid_now(key, session.now()):
        why = f"is not in {SIGNERS_PATH}, or not valid now"
    elif names is not None and not any(signers.speaks_for(key, name, session.now()) for name in names):
        why = "belongs to nobody whom policy.allowed_signers names"
    else:
        return ""
    mend = "give another: --key PATH"
    if policy_from is None and SIGNERS_PATH in why:
        mend = "`git ledger init` adds it, and somebody whose key counts reviews that"
    return f"your key {key.fingerprint} {why}, so {whose} won't count what you record; {mend}"
