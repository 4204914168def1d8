"""The page of a report: a document of plain values, put into the page's own files.

Whatever a record holds may stand in the document. It can't leave the element that carries it: `<`, `>`, `&` and
all that is not ASCII are escaped as JSON escapes them, and the script puts every text of it into the page as text.
A content security policy allows this one script and this one style, by their digests, and no request at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

__all__ = ["MARKS", "embedded", "html_page"]

MARKS = ("@POLICY@", "@STYLE@", "@DATA@", "@SCRIPT@")
"""What is replaced in `page.html`, in this order."""
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def html_page(document: Mapping[str, Any]) -> str:
    """Return a page that needs nothing but itself; the same document gives the same bytes."""
    style, script = _file("page.css"), _file("page.js")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    values = (policy, style, embedded(document), script)
    rest, parts = _file("page.html"), []
    for mark, value in zip(MARKS, values, strict=True):  # never in what was put in: a document may spell a mark
        before, _, rest = rest.partition(mark)
        parts += [before, value]
    return "".join([*parts, rest])


def embedded(document: Mapping[str, Any]) -> str:
    """Return a document as JSON that can't end a script element, nor be anything but data in it."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for char, escape in _ESCAPES.items():
        text = text.replace(char, escape)
    return text


def _file(name: str) -> str:
    return (files("gitledger.report.html") / name).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
