"""Coverage of many shards over many sources: our fragments, and coverage's own data files of the same lines."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from coverage import CoverageData
from coverage.version import __version__ as coverage_version

from gitledger.records.fragments import FileCoverage, Fragment, bits_of
from gitledger.records.ids import BlobId

__all__ = ["source", "write_shard"]

LINES = 200


def source(number: int) -> str:
    """Return a module of `LINES` statements, each on its line."""
    return "".join(f"value_{line:03} = {number * 1000 + line}\n" for line in range(1, LINES + 1))


def write_shard(shard: int, sources: list[str], root: Path, data_file: Path) -> Fragment:
    """Return what a shard executed of `sources`, and write the same as coverage's data file, absolute paths in it."""
    dice = random.Random(shard)
    files, lines = [], {}
    for path in sources:
        executed = sorted(dice.sample(range(1, LINES + 1), LINES // 20))
        lines[str(root / path)] = executed
        files.append(
            FileCoverage(
                path=path,
                blob=_blob(root / path),
                statements=bits_of(range(1, LINES + 1)),
                executed=bits_of(executed),
            )
        )
    data = CoverageData(basename=str(data_file))
    data.add_lines(lines)
    data.write()
    data.close()
    return Fragment(version=coverage_version, core="CTracer", branch=False, files=tuple(files))


def _blob(path: Path) -> BlobId:
    content = path.read_bytes()
    return BlobId(hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest())
