"""Plays the documented verify and merge rules of the peer on both tools, and writes what came of it to docs/."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import rules_carry
import rules_merge
import rules_verify
from bench_tools import PEER, ROOT, make_tools
from rules_stage import Situation, Stages

PAGE = ROOT / "docs" / "reference" / "compared-with-pytest-gpu-proof.md"
HEAD = """\
# Compared with pytest-gpu-proof, rule by rule

pytest-gpu-proof ({version}) documents what it refuses to merge, to
carry forward and to verify. Each of those rules, and what it leaves open, was played on both tools in the same
situation: two shards, real repositories, real runs, real signatures. *takes* means that the command exited with 0,
*refuses* that it didn't; behind it stand the codes of our findings and of ignored records. `tests/bench/compare_rules.py` plays it all again and writes this page.

{summary}

"""
SECTIONS = {
    "merge": "## Merging\n\n`gpu-proof merge` beside `git ledger merge`.\n\n",
    "carry": "## Carrying forward\n\n`gpu-proof merge --carry-from` beside `git ledger merge --carry`; "
    "a shard is to stand for a later commit, where the other was run anew.\n\n",
    "verify": "## Verifying\n\n`gpu-proof verify` with a restricted signer policy beside `git ledger verify`.\n\n",
}
ROWS = "| situation | pytest-gpu-proof | git-ledger | | why |\n|---|---|---|---|---|\n"
Played = tuple[Situation, bool, bool, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", metavar="WORDS", default="", help="situations whose text holds this; writes nothing"
    )
    options = parser.parse_args()
    tools = make_tools(ROOT / ".bench")
    stages = Stages(tools)
    stages.clear()
    every = [*rules_merge.SITUATIONS, *rules_carry.SITUATIONS, *rules_verify.SITUATIONS]
    played = []
    for number, situation in enumerate(every):
        if options.only in situation.rule:
            peer = situation.peer(stages.copy(situation.policy, f"{number:02}-peer"))
            stage = stages.copy(situation.policy, f"{number:02}-ours")
            ours = situation.ours(stage)
            reasons = "" if ours else ", ".join(f"`{reason}`" for reason in stage.reasons)
            played.append((situation, peer, ours, reasons))
            print(
                f"{number:02} {situation.area}: {situation.rule}: peer {_word(peer)}, ours {_word(ours)} {reasons}",
                flush=True,
            )
    if not options.only:
        PAGE.write_text(page(played))
    unexplained = [situation.rule for situation, peer, ours, _ in played if peer != ours and not situation.why]
    for rule in unexplained:
        print(f"differs, and nothing says why: {rule}", file=sys.stderr)
    return 1 if unexplained else 0


def page(played: Sequence[Played]) -> str:
    counts = {word: sum(_standing(one) == word for one in played) for word in ("agree", "stricter", "laxer")}
    summary = (
        f"Of {len(played)} situations both answer alike in {counts['agree']}, git-ledger alone refuses "
        f"{counts['stricter']}, and pytest-gpu-proof alone refuses {counts['laxer']}."
    )
    text = HEAD.format(version=PEER.partition("==")[2], summary=summary)
    for area, section in SECTIONS.items():
        text += section + ROWS + "".join(_row(one) for one in played if one[0].area == area) + "\n"
    return text.rstrip("\n") + "\n"


def _row(one: Played) -> str:
    situation, peer, ours, reasons = one
    standing = {"agree": "agree", "stricter": "**stricter**", "laxer": "*they refuse*"}[_standing(one)]
    why = situation.why if peer != ours else ""
    word = f"{_word(ours)}: {reasons}" if reasons else _word(ours)
    return f"| {situation.rule} | {_word(peer)} | {word} | {standing} | {why} |\n"


def _standing(one: Played) -> str:
    _, peer, ours, _ = one
    return "agree" if peer == ours else "stricter" if peer else "laxer"


def _word(taken: bool) -> str:
    return "takes" if taken else "refuses"


if __name__ == "__main__":
    sys.exit(main())
