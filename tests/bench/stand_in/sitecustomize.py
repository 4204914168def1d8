"""Loaded by the peer's processes only: answers its questions to its forge from a file, so that no network counts.

The peer's time for the network is thereby zero, which is to its advantage.
"""

import io
import os
import urllib.request

_ask = urllib.request.urlopen


def _answer(url, *args, **kwargs):
    if str(url).startswith("https://github.com/") and str(url).endswith(".keys"):
        with open(os.environ["BENCH_FORGE_KEYS"], "rb") as file:
            return io.BytesIO(file.read())
    return _ask(url, *args, **kwargs)


urllib.request.urlopen = _answer
