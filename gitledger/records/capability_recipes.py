"""The closed registry of built-in recipes: what each version of each id executes, by digest.

The digest is the SHA-256 of the recipe's module in `gitledger/lanes/recipes`. A recipe that changes gets a new
version and a new line here; old lines stay, so that reports of older releases can be read. A test holds the newest
line against the module. Recipes of other installed packages have other ids, and no line here.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitledger.records.ids import Digest

__all__ = ["BUILT_IN", "MAX_TOLERANCE", "SEED", "TAKES"]

BUILT_IN: Mapping[str, Mapping[str, Digest]] = {
    "torch-eager": {"1": Digest("d03bcf63130dc5bb3b23a11381dc90b5dadfd35eb5bf7533ccf54065d875a79e")},
    "torch-compile": {"1": Digest("a1d446781e5e20af7df97778855eaff1e6e928298e5ce3dbfffc883fdc0cb03c")},
    "torch-bf16-autocast": {"1": Digest("48eba527aebb5539f6e3eaf2ce68b5b07743584b6366be9aa442e09538089167")},
    "torch-int8-dynamic": {"1": Digest("f2a9b321232b0279d846892a05676f9b7f5607489b27bfb15dbf07917d5715c7")},
}

SEED = 20_260_131
"""The seed of inputs; a report repeats it, so that whoever has the model can make the same ones."""

MAX_TOLERANCE = 1.0
"""What tolerances stay below, as relative L2 distances: an output of zeros has 1, and would pass."""

_FLOATS = {"float32": ("float32", 1e-4), "bfloat16": ("bfloat16", 5e-2), "float16": ("float16", 1e-2)}
TAKES: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "torch-eager": _FLOATS,
    "torch-compile": _FLOATS,
    "torch-bf16-autocast": {"bfloat16": ("bfloat16", 5e-2)},
    "torch-int8-dynamic": {"int8": ("int8", 5e-1)},
}
"""By built-in recipe, what each quantization is computed in, and the tolerance that its outputs are held to."""
