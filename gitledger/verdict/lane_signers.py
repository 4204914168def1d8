"""Whose signature counts for a lane: its own signers where it names any, else policy's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from gitledger.config.schema import Config
from gitledger.dataclass import replace
from gitledger.errors import ConfigError
from gitledger.trust.signers import Signers
from gitledger.verdict.acceptance import Keyring, Signatories, signatories
from gitledger.verdict.evidence import Evidence

__all__ = ["signatories_by_lane"]


def signatories_by_lane(
    config: Config,
    signers: Signers,
    now: datetime,
    evidence: Iterable[Evidence],
    *,
    forges: Mapping[str, Keyring] | None = None,
) -> dict[str, Signatories]:
    """Return the view of keys for each declared lane, by name; raises `ConfigError` where nobody may sign.

    A lane whose own list of signers is empty could never be certified: `no-signers`, which names the lane.
    """
    piles = list(evidence)
    found = {}
    for name, lane in config.lanes.items():
        policy = config.policy
        if lane.signers is not None and not lane.signers:
            raise ConfigError(
                "no-signers",
                f"lanes.{name}.signers is empty: nobody could ever certify the lane",
                f"name a principal in lanes.{name}.signers, or leave it out for policy's signers",
            )
        if lane.signers is not None:
            # Who is named is named: policy's open mode, in which records name their own users, is not the lane's.
            policy = replace(policy, allowed_signers=lane.signers, signer_mode="restricted", allow_unsigned=False)
        found[name] = signatories(policy, signers, now, piles, forges=forges)
    return found
