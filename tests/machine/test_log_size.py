"""A command that prints without end fills no disk."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from gitledger.machine.child import run_child
from gitledger.machine.tail import KEPT_BYTES, RELEASE_BYTES

PRINTED = 6 * RELEASE_BYTES


def run(tmp_path: Path, echo) -> os.stat_result:
    log = tmp_path / "log"
    command = ["sh", "-c", f"echo first; head -c {PRINTED} /dev/zero | tr '\\0' x; echo; echo last"]
    ended = run_child(
        command,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        log=log,
        clock=lambda: datetime.now(UTC),
        echo=echo,
    )
    assert ended.status == 0
    with log.open("rb") as file:
        assert file.read(6) == b"first\n"
        file.seek(-5, os.SEEK_END)
        assert file.read() == b"last\n"
    return log.stat()


def test_what_lies_between_beginning_and_end_is_given_back(tmp_path: Path):
    found = run(tmp_path, None)
    assert found.st_size > PRINTED
    assert found.st_blocks * 512 < 3 * RELEASE_BYTES + 4 * KEPT_BYTES


def test_whoever_reads_along_misses_nothing(tmp_path: Path):
    read = bytearray()
    run(tmp_path, read.extend)
    assert len(read) == PRINTED + len("first\n\nlast\n")
    assert b"\0" not in read
