"""A model's name to the files that it is: found on this machine, hashed, never fetched.

A name is looked for as a path, then below each download folder as it stands, then there in the layout of the
Hugging Face cache (`models--ORG--NAME/snapshots/REVISION`). `NAME@sha256:DIGEST` pins what has to be found,
`ORG/NAME@REVISION` a snapshot. What is recorded of it is the name as asked for, never a path of this machine.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.records.capability_status import ReasonCode
from gitledger.records.capability_work import MAX_MODEL_FILES, FileClaim, ModelClaim, model_digest
from gitledger.records.ids import Digest

__all__ = ["FoundModel", "ModelError", "find_model"]

_PIN = re.compile(r"\A(?P<name>.+)@sha256:(?P<digest>[0-9a-f]{64})\Z")
_REVISION = re.compile(r"\A(?P<name>[^@]+)@(?P<revision>[0-9A-Za-z._-]{1,100})\Z")
SCRIPT_SUFFIXES = (".jit", ".ts", ".torchscript")
PROGRAM_SUFFIXES = (".pt2",)
INPUTS_SUFFIX = ".inputs.json"
_READ = (".safetensors", ".json", ".txt", ".model")
"""Of a folder in the Hugging Face layout: weights, configuration, tokenizer."""
_BLOCK = 1 << 20


class ModelError(Exception):
    """A model that can't be used, by the code of the closed list of reasons."""

    def __init__(self, code: ReasonCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundModel:
    """A model on this machine. `form` is `folder`, `script` or `program`; `main` is its file where it is one.

    `stamps` are the files' sizes and times when they were hashed: what changes while it runs proves nothing.
    """

    claim: ModelClaim
    root: Path
    form: str
    main: str
    stamps: tuple[tuple[str, int, int], ...]

    @property
    def names(self) -> list[str]:
        """The files that it consists of."""
        return [file.name for file in self.claim.files]

    def has_changed(self) -> bool:
        """Tell whether a file is another one by now than when it was hashed."""
        try:
            return _stamps(self.root, self.names) != self.stamps
        except OSError:
            return True


def find_model(requested: str, folders: Sequence[Path], base: Path) -> FoundModel:
    """Return the model that a name stands for; relative paths are taken from `base`.

    Raises `ModelError`: `artifact-unavailable`, `permission-denied`, `artifact-mismatch` where the digest is not
    the pinned one.
    """
    pin = _PIN.match(requested)
    name = pin["name"] if pin else requested
    place = _place(name, folders, base)
    try:
        form, root, main, names = _form(place, name)
        before = _stamps(root, names)
        files = tuple(_hashed(root, item) for item in names)
        if _stamps(root, names) != before:
            raise ModelError(ReasonCode.ARTIFACT_MISMATCH, f"{name} changed while it was read")
    except PermissionError as error:
        text = f"{name} can't be read: {error.strerror}"
        raise ModelError(ReasonCode.PERMISSION_DENIED, text) from error
    except OSError as error:
        text = f"{name} can't be read: {error.strerror}"
        raise ModelError(ReasonCode.ARTIFACT_UNAVAILABLE, text) from error
    found = model_digest(files)
    if pin and found != pin["digest"]:
        text = f"{name} has digest {found}, not the pinned {pin['digest']}"
        raise ModelError(ReasonCode.ARTIFACT_MISMATCH, text)
    revision = f"@{root.name}" if root.parent.name == "snapshots" and "@" not in name else ""
    resolved = (name if not Path(name).is_absolute() else Path(name).name) + revision
    claim = ModelClaim(requested=requested, resolved=resolved, files=files, digest=found)
    return FoundModel(claim=claim, root=root, form=form, main=main, stamps=before)


def _place(name: str, folders: Sequence[Path], base: Path) -> Path:
    candidates = [base / name, *(folder / name for folder in folders if ".." not in Path(name).parts)]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    for folder in folders:
        snapshot = _snapshot(folder, name)
        if snapshot is not None:
            return snapshot
    where = "nor in GITLEDGER_DOWNLOAD_DIR" if folders else "and GITLEDGER_DOWNLOAD_DIR names no folder"
    raise ModelError(ReasonCode.ARTIFACT_UNAVAILABLE, f"{name} is not a path here, {where}; nothing is downloaded")


def _snapshot(folder: Path, name: str) -> Path | None:
    """Return a snapshot of the Hugging Face cache: the revision that is named, else the one of `refs/main`."""
    match = _REVISION.match(name)
    plain, revision = (match["name"], match["revision"]) if match else (name, "")
    cached = folder / f"models--{plain.replace('/', '--')}"
    if not revision:
        try:
            revision = (cached / "refs" / "main").read_text("ascii").strip()
        except (OSError, ValueError):
            return None
    snapshot = cached / "snapshots" / revision
    return snapshot if revision and snapshot.is_dir() else None


def _form(place: Path, name: str) -> tuple[str, Path, str, list[str]]:
    """Return form, root, main file, and the names of all files that are read of a model."""
    if not place.is_dir():
        return _single(place.parent, place.name, name)
    listed = sorted(item.name for item in place.iterdir() if item.is_file())
    if "config.json" in listed:
        return "folder", place, "", _weights(place, listed, name)
    programs = [item for item in listed if item.endswith((*SCRIPT_SUFFIXES, *PROGRAM_SUFFIXES))]
    if len(programs) == 1:
        return _single(place, programs[0], name)
    text = f"{name} holds neither a config.json nor exactly one of *.pt2, *.jit, *.ts or *.torchscript"
    raise ModelError(ReasonCode.ARTIFACT_UNAVAILABLE, text)


def _single(root: Path, main: str, name: str) -> tuple[str, Path, str, list[str]]:
    if not main.endswith((*SCRIPT_SUFFIXES, *PROGRAM_SUFFIXES)):
        text = f"{name} is no model that can be loaded: a folder with config.json, *.pt2, *.jit, *.ts"
        raise ModelError(ReasonCode.ARTIFACT_UNAVAILABLE, text)
    form = "program" if main.endswith(PROGRAM_SUFFIXES) else "script"
    inputs = main + INPUTS_SUFFIX
    return form, root, main, [main, inputs] if (root / inputs).is_file() else [main]


def _weights(root: Path, listed: list[str], name: str) -> list[str]:
    """Return the files of a folder in the Hugging Face layout; pickled weights are never read."""
    index = root / "model.safetensors.index.json"
    if index.is_file():
        wanted = _indexed(index, name)
        lacking = sorted(wanted - set(listed))
        if lacking:
            text = f"{name} lacks {lacking[0]}, which its index names"
            raise ModelError(ReasonCode.ARTIFACT_UNAVAILABLE, text)
    if not any(item.endswith(".safetensors") for item in listed):
        text = f"{name} has no *.safetensors; pickled weights are not read"
        raise ModelError(ReasonCode.ARTIFACT_UNAVAILABLE, text)
    names = [item for item in listed if item.endswith(_READ)]
    if len(names) > MAX_MODEL_FILES:
        raise ModelError(ReasonCode.ARTIFACT_UNAVAILABLE, f"{name} has more than {MAX_MODEL_FILES} files")
    return names


def _indexed(index: Path, name: str) -> set[str]:
    try:
        value = json.loads(index.read_text("utf-8"))
        return set(map(str, value["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(ReasonCode.ARTIFACT_MISMATCH, f"{name}: {index.name} can't be read") from error


def _stamps(root: Path, names: Sequence[str]) -> tuple[tuple[str, int, int], ...]:
    found = []
    for name in names:
        stat = (root / name).stat()
        found.append((name, stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _hashed(root: Path, name: str) -> FileClaim:
    hasher, size = hashlib.sha256(), 0
    with (root / name).open("rb") as file:
        while block := file.read(_BLOCK):
            hasher.update(block)
            size += len(block)
    return FileClaim(name=name, sha256=Digest(hasher.hexdigest()), size=size)
