"""The closed registry of built-in recipes: what each version of each id executes, by digest.

The digest is the SHA-256 of the recipe's module in `gitledger/lanes/recipes`. A recipe that changes gets a new
version and a new line here; old lines stay, so that reports of older releases can be read. A test holds the newest
line against the module. Recipes of other installed packages have other ids, and no line here.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitledger.records.ids import Digest

__all__ = ["BUILT_IN"]

BUILT_IN: Mapping[str, Mapping[str, Digest]] = {}
