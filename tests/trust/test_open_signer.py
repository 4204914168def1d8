"""Keys as people hold them: files, locked files, agents, security keys, programs in ssh-keygen's place (T07).

Real `ssh-keygen`, `ssh-add` and `ssh-agent`; the security key alone is software, behind a real agent socket.
"""

from __future__ import annotations

import base64
import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitledger.errors import TrustError
from gitledger.trust.askpass import asker
from gitledger.trust.find_key import KeyChoice
from gitledger.trust.keygen import Keygen
from gitledger.trust.open_signer import open_signer
from gitledger.trust.sign import sign_payload
from gitledger.trust.verified import Verified, open_record
from gitledger.trust.wire import WireReader, put_byte, put_string, put_uint32

SECRET = "correct horse"


@contextlib.contextmanager
def real_agent(folder: Path, env: dict[str, str]) -> Iterator[dict[str, str]]:
    """Run a real, empty ssh-agent; yields the environment that reaches it."""
    path = folder / "agent.sock"
    process = subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(path)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 10
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    yield env | {"SSH_AUTH_SOCK": str(path)}
    process.terminate()
    process.wait(10)


@pytest.fixture
def agent(ssh):
    """The environment of a real, empty ssh-agent."""
    with real_agent(ssh.folder, ssh.env) as environ:
        yield environ


def signs(choice: KeyChoice, environ: dict[str, str], make_payload, **options):
    """Return the signer of a choice, having signed and verified one record with it."""
    signer = open_signer(choice, environ=environ, **options)
    opened = open_record(sign_payload(make_payload(signer), signer).encode())
    assert isinstance(opened, Verified), opened
    assert opened.statement.signer.backend == signer.backend
    return signer


def refused(choice: KeyChoice, environ: dict[str, str], **options) -> TrustError:
    with pytest.raises(TrustError) as caught:
        open_signer(choice, environ=environ, **options).sign(b"message")
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    return caught.value


def at(path: Path) -> KeyChoice:
    return KeyChoice(origin="--key", path=path)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa256", "ecdsa384", "ecdsa521", "rsa"])
def test_t07_a_key_file_signs_in_process(kind, key_files, hermetic_env, make_payload):
    signer = signs(at(key_files[kind]), hermetic_env, make_payload)
    assert signer.backend == "file"
    assert signer.algorithm == ("rsa-sha2-512" if kind == "rsa" else signer.key.algorithm)


@pytest.mark.parametrize("form", ["PEM", "PKCS8"])
def test_t07_pem_files_sign_as_well(form, ssh, make_payload):
    path = ssh.make_key("ecdsa256")
    assert ssh.run("ssh-keygen", "-q", "-p", "-N", "", "-m", form, "-f", path).returncode == 0
    assert b"OPENSSH" not in path.read_bytes()
    assert signs(at(path), ssh.env, make_payload).backend == "file"


def test_t07_a_public_file_signs_with_the_private_file_beside_it(key_files, hermetic_env, make_payload):
    path = Path(f"{key_files['ed25519']}.pub")
    assert signs(at(path), hermetic_env, make_payload).backend == "file"


def test_t07_a_certificate_file_signs_with_its_private_file(ssh, key_files, make_payload):
    path = ssh.make_key()
    made = ssh.certify(key_files["rsa"], path, "-I", "id", "-n", "alice")
    signer = signs(at(path.with_name("ed25519-cert.pub")), ssh.env, make_payload)
    assert signer.key.certificate == made.certificate


def test_t07_a_key_handed_over_as_text_signs_even_if_a_form_mangled_its_line_ends(
    key_files, hermetic_env, make_payload
):
    text = key_files["ed25519"].read_text()
    for spelling in (text, text.replace("\n", "\r\n"), text.strip(), f"\n{text}\n"):
        choice = KeyChoice(origin="GITLEDGER_SIGNING_KEY", private_text=spelling)
        assert signs(choice, hermetic_env, make_payload).backend == "file"


# locked keys


def test_t07_a_passphrase_is_asked_for_once_however_many_records_are_signed(ssh, make_payload):
    path = ssh.make_key(passphrase=SECRET)
    asked = []

    def ask(where: str) -> bytes:
        asked.append(where)
        return SECRET.encode()

    signer = open_signer(at(path), environ=ssh.env, passphrase=ask)
    for number in range(20):
        assert isinstance(open_record(sign_payload(make_payload(signer, n=number), signer).encode()), Verified)
    assert asked == [str(path)]


@pytest.mark.parametrize("form", ["RFC4716", "PKCS8", "PEM"])
def test_t07_locked_files_of_each_format_open_with_the_passphrase_alone(form, ssh, make_payload):
    path = ssh.make_key("rsa")
    assert ssh.run("ssh-keygen", "-q", "-p", "-N", SECRET, "-m", form, "-f", path).returncode == 0
    assert signs(at(path), ssh.env, make_payload, passphrase=lambda _: SECRET.encode()).backend == "file"
    assert refused(at(path), ssh.env, passphrase=lambda _: b"wrong").code == "passphrase-wrong"
    assert refused(at(path), ssh.env, passphrase=lambda _: None).code == "passphrase-needed"
    error = refused(at(path), ssh.env)
    assert error.code == "passphrase-needed"
    assert "ssh-add" in error.hint


def test_t07_a_locked_key_that_the_agent_holds_asks_nobody(ssh, agent, make_payload):
    path = ssh.make_key(passphrase=SECRET)
    askpass = ssh.folder / "askpass"
    askpass.write_text(f"#!/bin/sh\necho '{SECRET}'\n")
    askpass.chmod(0o700)
    forced = {"SSH_ASKPASS": str(askpass), "SSH_ASKPASS_REQUIRE": "force"}
    assert ssh.run("ssh-add", path, env=agent | forced).returncode == 0

    def never(where: str) -> bytes:
        raise AssertionError(f"asked for {where}")

    assert signs(at(path), agent, make_payload, passphrase=never).backend == "agent"


def test_t07_a_passphrase_comes_from_ssh_askpass_once(ssh, make_payload):
    path = ssh.make_key(passphrase=SECRET)
    askpass, log = ssh.folder / "askpass", ssh.folder / "asked"
    askpass.write_text(f"#!/bin/sh\necho \"$1\" >> {log}\necho '{SECRET}'\n")
    askpass.chmod(0o700)
    environ = ssh.env | {"SSH_ASKPASS": str(askpass)}
    signer = signs(at(path), environ, make_payload, passphrase=asker(environ, has_terminal=False))
    signer.sign(b"again")
    assert log.read_text().count(str(path)) == 1
    askpass.write_text("#!/bin/sh\nexit 1\n")  # the person pressed cancel
    assert refused(at(path), environ, passphrase=asker(environ, has_terminal=False)).code == "passphrase-needed"
    assert asker(ssh.env, has_terminal=False)("key") is None
    assert asker(environ | {"SSH_ASKPASS_REQUIRE": "never"}, has_terminal=False)("key") is None


# agents


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa384", "rsa"])
def test_t07_a_key_that_exists_in_the_agent_alone(kind, ssh, agent, make_payload):
    path = ssh.make_key(kind)
    assert ssh.run("ssh-add", path, env=agent).returncode == 0
    path.unlink()
    line = Path(f"{path}.pub").read_text().strip()
    by_literal = KeyChoice(origin="user.signingKey", public_line=line)
    for choice in (at(Path(f"{path}.pub")), by_literal):
        signer = signs(choice, agent, make_payload)
        assert signer.backend == "agent"
        assert signer.algorithm == ("rsa-sha2-512" if kind == "rsa" else signer.key.algorithm)


def test_t07_an_agent_that_lacks_the_key_and_no_agent_say_so(ssh, agent, key_files):
    line = Path(f"{key_files['ed25519']}.pub").read_text().strip()
    choice = KeyChoice(origin="user.signingKey", public_line=line)
    for environ in (agent, ssh.env, ssh.env | {"SSH_AUTH_SOCK": "/nonexistent"}):
        error = refused(choice, environ)
        assert error.code == "agent-lacks-key"
        assert "ssh-add" in error.hint


def test_the_signing_child_sees_neither_the_key_variable_nor_what_could_bend_it():
    environ = {"GITLEDGER_SIGNING_KEY": "x", "LD_PRELOAD": "x", "PYTHONPATH": "x", "GIT_DIR": "x", "HOME": "/h"}
    child = Keygen(environ=environ | {"SSH_AUTH_SOCK": "/s"}).child_environment()
    assert child == {"HOME": "/h", "SSH_AUTH_SOCK": "/s", "LC_ALL": "C"}


class SecurityKeyAgent(threading.Thread):
    """Speaks the agent protocol (draft-miller-ssh-agent) for software security keys, and counts signatures."""

    def __init__(self, path: Path, keys) -> None:
        super().__init__(daemon=True)
        self.keys = keys
        self.signed = 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                while size := stream.read(4):
                    answer = self.answer(stream.read(int.from_bytes(size, "big")))
                    connection.sendall(put_string(answer))

    def stop(self) -> None:
        """End the thread. Closed alone, the socket's number would go to another one while `accept` waits on it, and
        a wait that the kernel restarts (after a freeze of the machine) takes the other's connections."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.join(30)
        assert not self.is_alive()
        self.socket.close()

    def answer(self, request: bytes) -> bytes:
        reader = WireReader(request, "request")
        kind = reader.byte()
        if kind == 11:
            keys = b"".join(put_string(key.key.blob) + put_string("") for key in self.keys)
            return put_byte(12) + put_uint32(len(self.keys)) + keys
        if kind == 13:
            blob, data = reader.string(), reader.string()
            for key in self.keys:
                if key.key.blob == blob:
                    self.signed += 1
                    return put_byte(14) + put_string(key.sign_raw(data))
        return put_byte(5)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa"])
def test_t02_a_security_key_signs_through_ssh_keygen_and_says_whether_it_was_touched(
    kind, ssh, make_security_key, make_payload
):
    for flags, touched in ((0, False), (1, True), (5, True)):
        held = make_security_key(kind, flags=flags)
        path = ssh.folder / f"sk{flags}.sock"
        served = SecurityKeyAgent(path, [held])
        served.start()
        choice = KeyChoice(origin="user.signingKey", public_line=held.key.line)
        signer = open_signer(choice, environ=ssh.env | {"SSH_AUTH_SOCK": str(path)})
        opened = open_record(sign_payload(make_payload(signer), signer).encode())
        served.stop()
        assert isinstance(opened, Verified)
        assert served.signed == 1
        assert opened.touched is touched
        assert opened.user_verified is (flags == 5)


# refusals


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_t07_a_key_file_that_others_can_read_is_refused_with_the_chmod(mode, ssh):
    path = ssh.make_key()
    path.chmod(mode)
    error = refused(at(path), ssh.env)
    assert error.code == "key-permissions"
    assert error.hint == f"chmod 600 {path}"
    assert ssh.run("ssh-keygen", "-y", "-P", "", "-f", path).returncode != 0  # as ssh itself does


def test_t07_a_file_that_is_no_key_or_is_not_there_is_named(ssh):
    wrong = ssh.folder / "wrong"
    texts = [
        "",
        "hello",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n!\n-----END OPENSSH PRIVATE KEY-----\n",
        "x" * 70_000,
    ]
    texts.append("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    texts.append("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n")
    unsupported = b"openssh-key-v1\0" + put_string("none") * 2 + put_string(b"") + put_uint32(1)
    compressed = put_string("ecdsa-sha2-nistp256") + put_string("nistp256") + put_string(b"\2" + b"\1" * 32)
    body = base64.b64encode(unsupported + put_string(compressed) + put_string(b"\0" * 64)).decode()
    texts.append(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n")
    for text in texts:
        handed_over = KeyChoice(origin="GITLEDGER_SIGNING_KEY", private_text=text)
        assert refused(handed_over, ssh.env).code in ("key-unreadable", "key-refused")
        wrong.write_text(text)
        wrong.chmod(0o600)
        assert refused(at(wrong), ssh.env).code in ("key-unreadable", "key-refused")
    assert refused(at(ssh.folder / "absent"), ssh.env).code == "key-unreadable"
    assert refused(at(ssh.folder), ssh.env).code == "key-unreadable"


def test_t07_dsa_and_short_rsa_keys_are_refused(ssh):
    short = ssh.folder / "short"
    assert ssh.run("ssh-keygen", "-q", "-t", "rsa", "-b", "1024", "-N", "", "-f", short).returncode == 0
    made = ssh.run("ssh-keygen", "-q", "-t", "dsa", "-N", "", "-f", ssh.folder / "dsa")
    paths = [short, *([ssh.folder / "dsa"] if made.returncode == 0 else [])]  # newer OpenSSH knows no DSA
    for path in paths:
        for spelling in (path, Path(f"{path}.pub")):
            assert refused(at(spelling), ssh.env).code == "key-refused"
        text = KeyChoice(origin="GITLEDGER_SIGNING_KEY", private_text=path.read_text())
        assert refused(text, ssh.env).code == "key-refused"


def test_t07_a_public_file_of_another_pair_is_refused(ssh, key_files):
    path = ssh.make_key()
    Path(f"{path}.pub").write_text(Path(f"{key_files['rsa']}.pub").read_text())
    assert refused(at(Path(f"{path}.pub")), ssh.env).code == "key-refused"


# programs in ssh-keygen's place (git's gpg.ssh.program)


def test_t07_a_program_in_place_of_ssh_keygen_is_called_as_git_calls_it(ssh, agent, make_payload):
    path = ssh.make_key()
    assert ssh.run("ssh-add", path, env=agent).returncode == 0
    path.unlink()
    program, log = ssh.folder / "op-ssh-sign", ssh.folder / "called"
    program.write_text(f'#!/bin/sh\necho "$@" > {log}\nexec ssh-keygen "$@"\n')
    program.chmod(0o700)
    signs(at(Path(f"{path}.pub")), agent, make_payload, program=str(program))
    assert log.read_text().startswith("-Y sign -n gitledger -f ")


def test_a_program_that_is_missing_fails_or_lies_is_one_error(ssh, key_files):
    choice = at(ssh.folder / "only.pub")
    choice.path.write_text(Path(f"{key_files['ed25519']}.pub").read_text())
    assert "can't be run" in refused(choice, ssh.env, program="/nonexistent/program").message
    program = ssh.folder / "program"
    for body, code in (("exit 1", "agent-lacks-key"), ("exit 0", "signing-failed")):
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o700)
        assert refused(choice, ssh.env, program=str(program)).code == code


@pytest.mark.skipif(
    not any(
        Path(root, "libsofthsm2.so").exists() for root in ("/usr/lib/softhsm", "/usr/lib/x86_64-linux-gnu/softhsm")
    ),
    reason="softhsm2 is not installed",
)
def test_t07_a_pkcs11_key_signs_through_the_agent(ssh, make_payload):
    library = next(Path("/usr/lib").rglob("libsofthsm2.so")).resolve()
    (ssh.folder / "tokens").mkdir()
    config = ssh.folder / "softhsm2.conf"
    config.write_text(f"directories.tokendir = {ssh.folder / 'tokens'}\nobjectstore.backend = file\n")
    environ = ssh.env | {"SOFTHSM2_CONF": str(config)}
    token = ("--pin", "1234")
    ssh.run("softhsm2-util", "--init-token", "--free", "--label", "t", *token, "--so-pin", "1234", env=environ)
    path = ssh.make_key("rsa")
    assert ssh.run("ssh-keygen", "-q", "-p", "-N", "", "-m", "PKCS8", "-f", path).returncode == 0
    names = ("--token", "t", "--label", "k", "--id", "01")
    done = ssh.run("softhsm2-util", "--import", path, *names, *token, env=environ)
    assert done.returncode == 0, done.stderr
    line = Path(f"{path}.pub").read_text().strip()
    path.unlink()
    askpass = ssh.folder / "askpass"
    askpass.write_text("#!/bin/sh\necho 1234\n")
    askpass.chmod(0o700)
    with real_agent(ssh.folder, environ) as reached:
        forced = reached | {"SSH_ASKPASS": str(askpass), "SSH_ASKPASS_REQUIRE": "force"}
        added = ssh.run("ssh-add", "-s", library, env=forced)
        assert added.returncode == 0, added.stderr
        choice = KeyChoice(origin="user.signingKey", public_line=line)
        assert signs(choice, reached, make_payload).backend == "agent"
