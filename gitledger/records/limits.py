"""Limits of every document that others may have written (DESIGN section 2, law 7).

They hold when writing and when reading. Exceeding one is a finding or an error, never a silent cut. The same
numbers stand in `docs/reference/formats.md`; a test compares the two.
"""

from __future__ import annotations

MAX_LINE_BYTES = 1 << 20
"""One line of a note: an envelope as JSON, without its newline."""
MAX_PAYLOAD_BYTES = 700 << 10
"""The decoded payload of one envelope; base64 of it fits a line."""
MAX_NOTE_BYTES = 64 << 20
"""One note (all lines of one commit)."""
MAX_NOTE_LINES = 20_000
"""Lines of one note."""
MAX_BODY_BYTES = 32 << 20
"""One body as it is stored (compressed)."""
MAX_BODY_UNPACKED_BYTES = 256 << 20
"""One body after decompression."""
MAX_BODY_LIST = 1_000_000
"""Items of one list or map in a body."""
MAX_BODY_ITEMS = 8_000_000
"""Items of all lists and maps of one body together; it bounds the memory that a reader needs."""
MAX_JSON_DEPTH = 32
"""Nesting of JSON documents."""
MAX_NUMBER_CHARACTERS = 40
"""One number in a JSON document, as it is spelled."""
MAX_INTEGER = (1 << 63) - 1
"""The largest integer in any field."""
MAX_SIGNATURE_BYTES = 32 << 10
"""One SSHSIG blob, certificates included."""
MAX_TESTS = 1_000_000
"""Test results in one body."""
MAX_NODE_ID_BYTES = 64 << 10
"""One node id in UTF-8."""
MAX_TEXT_BYTES = 16 << 10
"""Any other string in a payload."""
