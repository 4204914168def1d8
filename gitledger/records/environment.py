"""What a run stood on: interpreter, platform, tools, GPUs (DESIGN section 3, `environment`)."""

from __future__ import annotations

from typing import Any

from gitledger.dataclass import dataclass
from gitledger.records.decode import Reader

__all__ = ["Environment", "Gpu", "Platform"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """`system` as `uname -s` (`Linux`), `machine` as `uname -m`, `libc` by name and version (`glibc 2.36`)."""

    system: str
    machine: str
    libc: str | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"libc": self.libc, "machine": self.machine, "system": self.system}

    @classmethod
    def decode(cls, reader: Reader) -> Platform:
        """Return the platform at `reader`; raises `DecodeError`."""
        return cls(system=reader.text("system"), machine=reader.text("machine"), libc=reader.opt_text("libc"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The GPUs that were visible: vendor (`nvidia`, `amd`, `other`), a name per device, driver and runtime.

    `uuids` is empty where the configuration says `record.gpu_uuid: false`.
    """

    vendor: str
    names: tuple[str, ...]
    uuids: tuple[str, ...] = ()
    memory_bytes: tuple[int, ...] = ()
    driver: str | None = None
    runtime: str | None = None
    source: str = ""

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "driver": self.driver,
            "memory_bytes": list(self.memory_bytes),
            "names": list(self.names),
            "runtime": self.runtime,
            "source": self.source,
            "uuids": list(self.uuids),
            "vendor": self.vendor,
        }

    @classmethod
    def decode(cls, reader: Reader) -> Gpu:
        """Return the GPUs at `reader`; raises `DecodeError`."""
        return cls(
            vendor=reader.text("vendor"),
            names=reader.texts("names", limit=1024),
            uuids=reader.texts("uuids", limit=1024),
            memory_bytes=reader.integers("memory_bytes", limit=1024),
            driver=reader.opt_text("driver"),
            runtime=reader.opt_text("runtime"),
            source=reader.text("source"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Versions are texts as their tools print them; None where the tool took no part in the run."""

    python: str | None
    platform: Platform
    pytest: str | None
    gitledger: str
    coverage: str | None
    gpu: Gpu | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "coverage": self.coverage,
            "gitledger": self.gitledger,
            "gpu": self.gpu.encode() if self.gpu else None,
            "platform": self.platform.encode(),
            "pytest": self.pytest,
            "python": self.python,
        }

    @classmethod
    def decode(cls, reader: Reader) -> Environment:
        """Return the environment at `reader`; raises `DecodeError`."""
        gpu = reader.opt_child("gpu")
        return cls(
            python=reader.opt_text("python"),
            platform=Platform.decode(reader.child("platform")),
            pytest=reader.opt_text("pytest"),
            gitledger=reader.text("gitledger"),
            coverage=reader.opt_text("coverage"),
            gpu=Gpu.decode(gpu) if gpu else None,
        )
