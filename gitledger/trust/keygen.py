"""Signing through `ssh-keygen -Y sign`, as git does: agents, FIDO, PKCS#11, and programs that stand in for it.

The private half never enters this process. Signatures are made over a file, not over stdin, since replacements of
ssh-keygen (git's `gpg.ssh.program`) know git's way of calling alone.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError, TrustError
from gitledger.records.envelope import SIGNATURE_NAMESPACE
from gitledger.records.ids import KeyFingerprint
from gitledger.trust.certificates import parse_key_line
from gitledger.trust.keys import PublicKey
from gitledger.trust.sshsig import dearmor

__all__ = ["Keygen", "KeygenSigner"]

SIGN_TIMEOUT_S = 120
"""How long a touch, a PIN or an agent's confirmation may take."""
AGENT_TIMEOUT_S = 10
_WITHHELD = ("LD_", "DYLD_", "PYTHON", "PYTEST", "COV_", "COVERAGE_", "GIT_", "GITLEDGER_")
"""Variables by which a test run could reach into the process that signs, and the key variable itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keygen:
    """OpenSSH's programs and the environment that they run in."""

    environ: Mapping[str, str]
    program: str = "ssh-keygen"

    def child_environment(self) -> dict[str, str]:
        """Return what the child sees: English messages, the agent, and nothing that could bend it."""
        kept = {name: value for name, value in self.environ.items() if not name.startswith(_WITHHELD)}
        return kept | {"LC_ALL": "C"}

    def agent_holds(self, key: PublicKey) -> bool:
        """Tell whether the agent, if there is one, holds the private half of `key`."""
        if not self.environ.get("SSH_AUTH_SOCK"):
            return False
        try:
            done = subprocess.run(
                ["ssh-add", "-L"],
                env=self.child_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=AGENT_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return any(_holds(line, key) for line in done.stdout.decode("utf-8", "replace").splitlines())


def _holds(line: str, key: PublicKey) -> bool:
    try:
        return parse_key_line(line).blob == key.blob
    except DecodeError:
        return False


class KeygenSigner:
    """Signs by running `ssh-keygen -Y sign` once per record."""

    __slots__ = ("_backend", "_keygen", "_line", "_path", "key")

    def __init__(
        self, key: PublicKey, keygen: Keygen, *, backend: str, path: Path | None = None, line: str | None = None
    ) -> None:
        self.key = key
        self._keygen = keygen
        self._backend = backend
        self._path = path
        self._line = line

    @property
    def fingerprint(self) -> KeyFingerprint:
        """Return the key's `SHA256:` fingerprint."""
        return self.key.fingerprint

    @property
    def algorithm(self) -> str:
        """Return the signature algorithm's name."""
        return "rsa-sha2-512" if self.key.algorithm == "ssh-rsa" else self.key.algorithm

    @property
    def backend(self) -> str:
        """Return `agent` or `ssh-keygen`."""
        return self._backend

    def sign(self, message: bytes) -> bytes:
        """Return an SSHSIG blob over `message`; raises `TrustError` with what ssh-keygen said."""
        with tempfile.TemporaryDirectory(prefix="gitledger-sign-") as folder:
            target = Path(folder) / "message"
            target.write_bytes(message)
            key_file = self._path
            if self._line is not None:
                key_file = Path(folder) / "key.pub"
                key_file.write_text(self._line + "\n", encoding="utf-8")
            # -U keeps a public key given as text from being looked for on disk: the agent must hold it.
            from_agent = ["-U"] if self._line is not None else []
            command = [self._keygen.program, "-Y", "sign", "-n", SIGNATURE_NAMESPACE, "-f", str(key_file)]
            self._run([*command, *from_agent, str(target)])
            return self._read_signature(target.with_name("message.sig"))

    def _run(self, command: list[str]) -> None:
        # A security key's "confirm user presence" must reach the person, so stderr is theirs then.
        stderr = None if self.key.is_fido and self._backend == "ssh-keygen" else subprocess.PIPE
        try:
            done = subprocess.run(
                command,
                env=self._keygen.child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                timeout=SIGN_TIMEOUT_S,
                check=False,
            )
        except OSError as error:
            raise TrustError(
                "signing-failed", f"{command[0]} can't be run: {error.strerror}", "install OpenSSH's client"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise TrustError(
                "signing-failed", f"{command[0]} did not sign within {SIGN_TIMEOUT_S} s", "ssh-add -l"
            ) from error
        if done.returncode:
            raise self._failure(done.returncode, (done.stderr or b"").decode("utf-8", "replace"))

    def _failure(self, status: int, stderr: str) -> TrustError:
        said = [line.strip() for line in stderr.splitlines() if line.strip()]
        text = ascii(said[-1])[1:-1][:200] if said else f"exit status {status}"
        if self._backend == "agent":
            start = "" if self._keygen.environ.get("SSH_AUTH_SOCK") else 'eval "$(ssh-agent)" && '
            return TrustError(
                "agent-lacks-key",
                f"the agent could not sign with {self.fingerprint}: {text}",
                f"{start}ssh-add PATH",
            )
        return TrustError("signing-failed", f"signing with {self.fingerprint} failed: {text}", "ssh-add -l")

    def _read_signature(self, path: Path) -> bytes:
        try:
            return dearmor(path.read_text(encoding="ascii"))
        except (OSError, UnicodeDecodeError, DecodeError) as error:
            raise TrustError(
                "signing-failed", f"{self._keygen.program} wrote no signature", "git config gpg.ssh.program"
            ) from error
