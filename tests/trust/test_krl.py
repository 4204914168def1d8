"""Key revocation lists, held against `ssh-keygen -Q` certificate by certificate."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gitledger.errors import ConfigError, DecodeError
from gitledger.trust.certificates import parse_key_line
from gitledger.trust.krl import parse_krl
from gitledger.trust.revoked import parse_revoked_keys
from gitledger.trust.wire import put_byte, put_string, put_uint32, put_uint64

HEAD = b"SSHKRL\n\x00" + put_uint32(1) + put_uint64(1) + put_uint64(0) + put_uint64(0) + put_string(b"") * 2

SPECS = {
    "list": "serial: 3\n",
    "range": "serial: 2-4\n",
    "bitmap": "serial: 1\nserial: 3\nserial: 4\nserial: 6\nserial: 9\nserial: 11\nserial: 12\n",
    "large": "serial: 9223372036854775807\nserial: 2\n",
    "ids": "id: person 1\nid: person 5\n",
    "both": "serial: 1\nid: person 2\n",
}


@pytest.fixture
def certificates(ssh, key_files, load_signer):
    """Certificates with serials 0 to 6 of one authority, and 3 of another."""
    made = {}
    for authority, serials in (("ed25519", range(7)), ("ecdsa384", [3])):
        for serial in serials:
            path = ssh.make_key(name=f"{authority}-{serial}")
            ssh.certify(key_files[authority], path, "-I", f"person {serial}", "-n", "alice", "-z", str(serial))
            made[f"{path}-cert.pub"] = parse_key_line(Path(f"{path}-cert.pub").read_text())
    return made


@pytest.mark.parametrize("name", SPECS)
def test_certificates_are_revoked_as_ssh_keygen_revokes_them(name, ssh, key_files, certificates):
    spec, file = ssh.folder / "spec", ssh.folder / "krl"
    spec.write_text(SPECS[name])
    done = ssh.run("ssh-keygen", "-q", "-k", "-f", file, "-s", f"{key_files['ed25519']}.pub", spec)
    assert done.returncode == 0, done.stderr
    revoked = parse_revoked_keys(file.read_bytes())
    answers = {}
    for path, key in certificates.items():
        said = ssh.run("ssh-keygen", "-Q", "-f", file, path)
        answers[path] = said.returncode != 0
        assert revoked.holds(key) is answers[path], (path, said.stdout)
    assert set(answers.values()) == {True, False}


SERIALS_WITH_ZERO = {
    "list": put_byte(0x20) + put_string(put_uint64(1) + put_uint64(0)),
    "range": put_byte(0x21) + put_string(put_uint64(0) + put_uint64(1)),
    "bitmap": put_byte(0x22) + put_string(put_uint64(0) + put_string(b"\x03")),
}


@pytest.mark.parametrize("name", SERIALS_WITH_ZERO)
def test_serial_zero_means_no_serial_so_a_list_that_holds_it_is_broken(name, ssh, key_files):
    """As for ssh-keygen, which says "Invalid KRL file"."""
    public = key_files["ed25519"].with_suffix(".pub")
    body = put_string(parse_key_line(public.read_text()).blob) + put_string(b"") + SERIALS_WITH_ZERO[name]
    file = ssh.folder / "krl"
    file.write_bytes(HEAD + put_byte(1) + put_string(body))
    assert b"Invalid KRL" in ssh.run("ssh-keygen", "-Q", "-f", file, public).stderr
    with pytest.raises(ConfigError):
        parse_revoked_keys(file.read_bytes())


@pytest.mark.parametrize("form", ["key", "sha1", "sha256", "plain argument"])
def test_keys_are_revoked_as_ssh_keygen_revokes_them(form, ssh, key_files, signers_by_kind):
    spec, file = ssh.folder / "spec.pub", ssh.folder / "krl"
    line = signers_by_kind["rsa"].key.line
    spec.write_text(f"{line}\n" if form == "plain argument" else f"{form}: {line}\n")
    assert ssh.run("ssh-keygen", "-q", "-k", "-f", file, spec).returncode == 0
    revoked = parse_revoked_keys(file.read_bytes())
    for kind, path in key_files.items():
        shutil.copy(f"{path}.pub", ssh.folder / f"{kind}.pub")
        said = ssh.run("ssh-keygen", "-Q", "-f", file, ssh.folder / f"{kind}.pub")
        assert revoked.holds(signers_by_kind[kind].key) is (said.returncode != 0) is (kind == "rsa")


def test_an_empty_list_revokes_nobody(signers_by_kind):
    assert not parse_revoked_keys(HEAD).holds(signers_by_kind["rsa"].key)


BROKEN = {
    "version": HEAD[:8] + put_uint32(2) + HEAD[12:],
    "cut": HEAD[:-1],
    "unknown section": HEAD + put_byte(9) + put_string(b""),
    "section cut": HEAD + put_byte(2) + put_uint32(50),
    "critical extension": HEAD + put_byte(255) + put_string(put_string("x") + b"\x01" + put_string(b"")),
    "unknown part": HEAD + put_byte(1) + put_string(put_string(b"") * 2 + put_byte(0x30) + put_string(b"")),
    "range backwards": HEAD
    + put_byte(1)
    + put_string(put_string(b"") * 2 + put_byte(0x21) + put_string(put_uint64(5) + put_uint64(4))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_list_that_cannot_be_read_whole_is_an_error(name):
    with pytest.raises(DecodeError):
        parse_krl(BROKEN[name])
    with pytest.raises(ConfigError) as caught:
        parse_revoked_keys(BROKEN[name], source="FILE")
    assert caught.value.code == "bad-revoked-keys"
    assert caught.value.message.startswith("FILE: ")


def test_an_extension_that_is_not_critical_is_passed_over(signers_by_kind):
    extension = put_byte(255) + put_string(put_string("x") + b"\x00" + put_string(b"data"))
    keys = put_byte(2) + put_string(put_string(signers_by_kind["rsa"].key.blob))
    assert parse_revoked_keys(HEAD + extension + keys).holds(signers_by_kind["rsa"].key)
