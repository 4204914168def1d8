"""The configuration that `init` writes: small, working, with the rest shown as comments."""

from __future__ import annotations

import json

__all__ = ["example_config"]

_TEXT = """\
# What `git ledger` asks of this repository. `git ledger help config` explains every key.
version: 1
repository: {repository}

# A shard is a part of the test suite that runs, and is recorded, on its own.
shards:
  tests:
    command: pytest
    # paths: [src, tests, pyproject.toml]  # what the result depends on; the default is the whole tree
    # extra_paths: [build/kernels.so]      # ignored or generated files, by content
    # timeout: 30m
  # gpu:
  #   paths: [src/gpu, tests/gpu]
  #   command: pytest tests/gpu
  #   variants: [a100, mi300]              # one result for each
  #   gpus: 1
  # slow: {{command: pytest tests/slow, split: 3}}
  # lint: {{command: ruff check, results: exit-status, coverage: none}}

# coverage: {{fail_under: 80}}               # one threshold, for the union of all shards

policy:
  allowed_signers: [{principal}]
  # allow_carried: true                    # let results of unchanged shards stand
  # require_mode: ci                       # with the runners' keys in ci_key_fingerprints

# hooks: {{pre_push: block, protect: [main]}}
"""


def example_config(repository: str, principal: str) -> str:
    """Return the text of a new configuration that loads as it stands.

    `repository` is its id; `principal` is the one of `allowed_signers` whose records count.
    """
    return _TEXT.format(repository=_quoted(repository), principal=_quoted(principal))


def _quoted(text: str) -> str:
    """Return a YAML double-quoted scalar: JSON strings are such."""
    return json.dumps(text)
