"""The end of `git ledger status`: what is not published yet, and the one thing to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitledger.verdict.select import Choice
from gitledger.verdict.way_out import record_again, way_out
from gitledger.wording import counted, to_paste

__all__ = ["status_text"]


def status_text(
    stale: Sequence[Choice],
    waiting: Mapping[str, int],
    *,
    passed: bool = False,
    dirt: str = "",
    unfetched: str = "",
    absent: Mapping[str, tuple[str, str]] | None = None,
    push: str = "",
    broken: str = "",
) -> str:
    """Return what is not published yet, and the next command to type.

    Beside `dirt` no run would count: it says what is dirty, and what mends it. A failed test comes before any run.
    `passed`: what a verdict says where nothing is stale. `unfetched` is a remote whose ledger, if it has one, was
    never fetched. `absent`: by shard, the program that its command starts and that is not here, and how it comes.
    `push` is the remote to which plain `git push` would publish the ledger with the branch.
    `broken` is what mends an edited configuration that can't be read: to commit it as it is would be worse.
    """
    absent = absent or {}
    dirt = broken or dirt
    lines = [
        f"{counted(number, 'record')} not published to {remote}" for remote, number in waiting.items() if number
    ]
    lines += [f"{shard}: its command {program!a} is not found here" for shard, (program, _) in absent.items()]
    if stale:
        step = _of_stale(stale, dirt, unfetched, absent)
    elif any(waiting.values()):
        remote = next(name for name, number in waiting.items() if number)
        step = "git push (it publishes the ledger too)" if remote == push else f"git ledger sync {remote}"
    elif not passed:
        step = "git ledger verify"
    else:
        step = broken or (f"HEAD's evidence passes; what is not committed needs its own: {dirt}" if dirt else "")
    return "\n".join([*lines, f"next: {to_paste(step) or 'nothing, the evidence passes'}"]) + "\n"


def _of_stale(stale: Sequence[Choice], dirt: str, unfetched: str, absent: Mapping[str, tuple[str, str]]) -> str:
    """Return what comes first where shards are stale; a shard that can't be run at all holds up every run."""
    ways = {
        choice.shard.key: record_again(choice) if choice.reason == "dirty" else way_out(choice) for choice in stale
    }
    faulty = next((choice for choice in stale if choice.shard.fault), None)
    if faulty is not None:
        return f"{faulty.shard.key}: {ways[faulty.shard.key]}"
    failed = next((way for way in ways.values() if "--failed" in way), "")
    if failed:
        return failed
    if dirt:
        return f"{dirt}; then git ledger run"
    to_run = [choice for choice in stale if ways[choice.shard.key].startswith(record_again(choice))]
    ready = [choice for choice in to_run if str(choice.shard.key) not in absent]
    if ready:
        run = f"git ledger run ({counted(len(stale), 'shard')})" if len(stale) > 1 else ways[ready[0].shard.key]
        fetch = f"git ledger sync --fetch-only {unfetched}; where nobody has recorded yet, " if unfetched else ""
        return f"{fetch}{run}"
    first = (to_run or stale)[0]
    if not to_run:
        return f"{first.shard.key}: {ways[first.shard.key]}"
    return f"{absent[str(first.shard.key)][1]}; then {record_again(first)}"
