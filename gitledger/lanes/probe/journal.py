"""What the probe writes while it goes along, a line of JSON each: nothing is lost of a process that is killed."""

from __future__ import annotations

import json
import os
from typing import Any

__all__ = ["Journal"]


class Journal:
    """Appends events to a file; each carries the nonce that its reader gave."""

    def __init__(self, path: str, nonce: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._nonce = nonce

    def write(self, event: str, **fields: Any) -> None:
        """Write one event, at once."""
        line = json.dumps({"nonce": self._nonce, "event": event, **fields}, allow_nan=False)
        os.write(self._fd, line.encode("ascii") + b"\n")
