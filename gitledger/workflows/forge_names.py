"""The forge users that a configuration names; nobody is asked here."""

from __future__ import annotations

from collections.abc import Iterator

from gitledger.config.schema import CONFIG_PATH, Config
from gitledger.errors import ConfigError

__all__ = ["check_forge_users", "named_forge_users"]


def check_forge_users(config: Config) -> None:
    """Raise `ConfigError` `bad-forge-user` where policy or a lane names a forge user that can't be one."""
    named = tuple(named_forge_users(config))
    if not named:
        return
    from gitledger.trust.forges import BUILT_IN, ForgeUser

    known = {**BUILT_IN, **config.forges}
    for key, name in named:
        try:
            user = ForgeUser.parse(name)
        except ValueError as error:
            raise ConfigError("bad-forge-user", f"{CONFIG_PATH}: {key}: {name!a}: {error}", "mend it") from error
        if user.forge not in known:
            raise ConfigError(
                "bad-forge-user",
                f"{CONFIG_PATH}: {key}: {name!a}: no forge {user.forge!a} (known: {', '.join(sorted(known))})",
                "add it under forges: in the configuration",
            )


def named_forge_users(config: Config) -> Iterator[tuple[str, str]]:
    """Yield each forge user that a configuration names, behind the key that does."""
    yield from (("policy.allowed_signers", name) for name in config.policy.allowed_signers or () if ":" in name)
    yield from (("policy.revokers", name) for name in config.policy.revokers if ":" in name)
    for lane in config.lanes.values():
        yield from ((f"lanes.{lane.name}.signers", name) for name in lane.signers or () if ":" in name)
