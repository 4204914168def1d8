"""The programs that are compared, each in a virtual environment of its own: pytest alone, with us, with the peer."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

__all__ = ["PEER", "PEER_USER", "ROOT", "Tools", "make_tools"]

ROOT = Path(__file__).resolve().parents[2]
PEER = "pytest-gpu-proof==0.4.1"
PEER_USER = "bench"
IDENTITY = (
    "[user]\n\tname = Bench\n\temail = bench@example.org\n[gc]\n\tauto = 0\n[init]\n\tdefaultBranch = main\n"
)


@dataclass(frozen=True, slots=True)
class Tools:
    """Where everything lies: one folder that git ignores."""

    folder: Path

    @property
    def key(self) -> Path:
        return self.folder / "key"

    @property
    def public_line(self) -> str:
        return " ".join(self.key.with_suffix(".pub").read_text().split()[:2])

    def bin(self, tool: str) -> Path:
        """Return the folder of programs of `plain`, `ours` or `peer`."""
        return self.folder / "venv" / tool / "bin"

    def env(self, tool: str) -> dict[str, str]:
        """Return the environment in which that tool's programs come first; nothing of the user's is in it."""
        env = {
            "PATH": f"{self.bin(tool)}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "GIT_CONFIG_GLOBAL": str(self.folder / "home" / ".gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GITLEDGER_SIGNING_KEY": str(self.key),
        }
        if tool == "forge":
            env["PATH"] = f"{self.bin('peer')}{os.pathsep}{os.environ['PATH']}"
            env["PYTHONPATH"] = str(ROOT / "tests" / "bench" / "stand_in")
            env["BENCH_FORGE_KEYS"] = str(self.key.with_suffix(".pub"))
        return env


def make_tools(folder: Path) -> Tools:
    """Return the tools, made where they are missing; needs the package index then."""
    tools = Tools(folder)
    (folder / "home").mkdir(parents=True, exist_ok=True)
    (folder / "home" / ".gitconfig").write_text(IDENTITY)
    if not tools.key.exists():
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(tools.key)]
        subprocess.run(command, check=True)
    pytest = f"pytest=={version('pytest')}"
    _venv(folder, "plain", [pytest])
    _venv(folder, "ours", [pytest, "-e", str(ROOT)])
    _venv(folder, "peer", [pytest, PEER])
    return tools


def _venv(folder: Path, name: str, requirements: list[str]) -> None:
    home = folder / "venv" / name
    stamp = home / "requirements"
    wanted = "\n".join(requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *requirements], check=True)
    stamp.write_text(wanted)
