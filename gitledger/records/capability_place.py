"""Where a recipe ran, as a capability report says it: lane, device, torch build, system, interpreter, commit."""

from __future__ import annotations

from typing import Any

from gitledger.dataclass import dataclass
from gitledger.records.closed import child, word
from gitledger.records.decode import Reader, fail
from gitledger.records.ids import CommitId, TreeId, object_id, shard_word
from gitledger.records.receipt import RepoClaim

__all__ = [
    "DeviceClaim",
    "LaneClaim",
    "OsClaim",
    "RuntimeClaim",
    "ToolClaim",
    "TorchClaim",
    "decode_repo",
    "encode_repo",
]

DEVICE_KINDS = ("cpu", "cuda", "hip")
REQUESTED_DEVICES = ("auto", "cpu", "gpu")
MAX_DECLARED = 50
MAX_DEVICES = 1024
_PATHS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneClaim:
    """Under which lane it ran, None for none; what the lane declares, and what was found in its place."""

    id: str | None
    declared: dict[str, str]
    observed: dict[str, str | None]

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"declared": dict(self.declared), "id": self.id, "observed": dict(self.observed)}

    @classmethod
    def decode(cls, parent: Reader, key: str = "lane") -> LaneClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        reader = child(parent, key, ("declared", "id", "observed"))
        declared = reader.text_map("declared", limit=MAX_DECLARED)
        seen = child(reader, "observed", declared)
        return cls(
            id=reader.opt_parsed("id", shard_word),
            declared=declared,
            observed={name: seen.opt_text(name) for name in declared},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClaim:
    """Where it ran. `requested`: `auto`, `cpu` or `gpu`; `used` is torch's name of where the output lay.

    `kind` is `cpu`, `cuda` or `hip` (torch calls both of the latter cuda). What could not be learnt is None.
    """

    kind: str | None
    name: str | None
    arch: str | None
    index: int | None
    count: int | None
    total_memory_bytes: int | None
    requested: str
    used: str | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "arch": self.arch,
            "count": self.count,
            "index": self.index,
            "kind": self.kind,
            "name": self.name,
            "requested": self.requested,
            "total_memory_bytes": self.total_memory_bytes,
            "used": self.used,
        }

    @classmethod
    def decode(cls, parent: Reader, key: str = "device") -> DeviceClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        reader = child(
            parent, key, ("arch", "count", "index", "kind", "name", "requested", "total_memory_bytes", "used")
        )
        return cls(
            kind=word(reader, "kind", DEVICE_KINDS) if reader.has("kind") else None,
            name=reader.opt_text("name"),
            arch=reader.opt_text("arch"),
            index=reader.opt_integer("index", high=MAX_DEVICES),
            count=reader.opt_integer("count", high=MAX_DEVICES),
            total_memory_bytes=reader.opt_integer("total_memory_bytes"),
            requested=word(reader, "requested", REQUESTED_DEVICES),
            used=reader.opt_text("used"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchClaim:
    """The torch build that was imported: version with its local tag, git commit, compiled CUDA or HIP."""

    version: str | None
    git: str | None
    cuda: str | None
    hip: str | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"cuda": self.cuda, "git": self.git, "hip": self.hip, "version": self.version}

    @classmethod
    def decode(cls, parent: Reader, key: str = "torch") -> TorchClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        reader = child(parent, key, ("cuda", "git", "hip", "version"))
        return cls(
            version=reader.opt_text("version"),
            git=reader.opt_text("git"),
            cuda=reader.opt_text("cuda"),
            hip=reader.opt_text("hip"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OsClaim:
    """`name` in lower case (`linux`), `version` of the distribution (`debian 12`), kernel and machine by uname."""

    name: str
    version: str | None
    kernel: str
    machine: str

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"kernel": self.kernel, "machine": self.machine, "name": self.name, "version": self.version}

    @classmethod
    def decode(cls, parent: Reader, key: str = "os") -> OsClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        reader = child(parent, key, ("kernel", "machine", "name", "version"))
        return cls(
            name=reader.text("name"),
            version=reader.opt_text("version"),
            kernel=reader.text("kernel"),
            machine=reader.text("machine"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeClaim:
    """The interpreter that ran the recipe, and its C library."""

    python: str | None
    libc: str | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"libc": self.libc, "python": self.python}

    @classmethod
    def decode(cls, parent: Reader, key: str = "runtime") -> RuntimeClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        reader = child(parent, key, ("libc", "python"))
        return cls(python=reader.opt_text("python"), libc=reader.opt_text("libc"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolClaim:
    """What wrote the report."""

    name: str
    version: str

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"name": self.name, "version": self.version}

    @classmethod
    def decode(cls, parent: Reader, key: str = "tool") -> ToolClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        reader = child(parent, key, ("name", "version"))
        return cls(name=reader.text("name"), version=reader.text("version"))


def encode_repo(repo: RepoClaim) -> dict[str, Any]:
    """Return the JSON object of where it ran, with every key."""
    return {
        "branch": repo.branch,
        "commit": repo.commit,
        "dirty": repo.dirty,
        "dirty_paths": list(repo.dirty_paths),
        "remote": repo.remote,
        "tree": repo.tree,
    }


def decode_repo(parent: Reader, key: str = "repo") -> RepoClaim:
    """Return the claim at `key`; raises `DecodeError`."""
    reader = child(parent, key, ("branch", "commit", "dirty", "dirty_paths", "remote", "tree"))
    claim = RepoClaim(
        commit=CommitId(reader.parsed("commit", object_id)),
        tree=TreeId(reader.parsed("tree", object_id)),
        branch=reader.opt_text("branch"),
        remote=reader.opt_text("remote"),
        dirty=reader.boolean("dirty"),
        dirty_paths=reader.texts("dirty_paths", limit=_PATHS),
    )
    if len(claim.commit) != len(claim.tree):
        fail(reader.path, "commit and tree are of different object formats")
    if claim.dirty_paths and not claim.dirty:
        fail(f"{reader.path}.dirty", "false, beside dirty paths")
    return claim
