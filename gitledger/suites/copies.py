"""Copies of our modules for a child's Python, which may have no git-ledger and be another one than ours."""

from __future__ import annotations

import os
import shutil
import struct
import sys
from contextlib import suppress
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

__all__ = ["copy_module", "write_loader"]

_HEADER = struct.Struct("<4sIII")
_LOADER = '"""PYTEST_DONT_REWRITE."""\n\nfrom {name} import *  # noqa: F403\n'


def copy_module(source: str, folder: Path, name: str) -> None:
    """Copy the module in our file `source` to `folder` as `name`; raises `OSError`.

    It comes with the time of its source and with the byte code that an interpreter like ours made of that, so that
    not every run has to compile it, which takes ten times as long. Python itself checks that they belong together.
    """
    original = Path(__file__).with_name(source)
    copy = folder / f"{name}.py"
    status = original.stat()
    shutil.copyfile(original, copy)
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    with suppress(OSError, NotImplementedError):  # an installation that can't be written to, or keeps no byte code
        code = Path(cache_from_source(str(copy)))
        code.parent.mkdir(exist_ok=True)
        shutil.copyfile(_byte_code(original), code)


def _byte_code(original: Path) -> Path:
    """Return the file of a module's byte code, made as an import would make it where there is none of its like."""
    kept = Path(cache_from_source(str(original)))
    if not sys.dont_write_bytecode and not _is_current(kept, original.stat()):
        import py_compile  # what a child loads is not loaded here

        py_compile.compile(str(original), doraise=True)
    return kept


def _is_current(code: Path, source: os.stat_result) -> bool:
    """Tell whether byte code names its source's time and size (PEP 552), as Python asks before it takes it."""
    try:
        with code.open("rb") as file:
            magic, flags, made_s, size = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error):
        return False
    of_source = (int(source.st_mtime) & 0xFFFF_FFFF, source.st_size & 0xFFFF_FFFF)
    return bool(magic == MAGIC_NUMBER and (flags or (made_s, size) == of_source))


def write_loader(folder: Path, name: str, module: str) -> None:
    """Write the plugin `name` that is nothing but the module `module`; raises `OSError`.

    pytest reads the source of whatever it takes for a plugin, to rewrite its assertions, and keeps no byte code of
    it but its own: of these two lines, then, and not of the module.
    """
    (folder / f"{name}.py").write_text(_LOADER.format(name=module), encoding="ascii")
