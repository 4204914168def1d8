"""The room as a whole: what importing it costs, and what verification opens."""

from __future__ import annotations

import subprocess
import sys

import pytest

JUDGING = "gitledger.trust.verified, gitledger.trust.signers, gitledger.trust.revoked, gitledger.trust.find_key"


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    )


def test_cryptography_is_loaded_where_a_key_is_first_used_and_not_before():
    every = "gitledger.trust.open_signer, gitledger.trust.sign, gitledger.trust.askpass"
    assert "cryptography" not in loaded_after(f"import {JUDGING}, {every}")


@pytest.mark.parametrize("module", ["subprocess", "socket", "urllib.request"])
def test_judging_opens_neither_process_nor_network(module):
    assert module not in loaded_after(f"import {JUDGING}")


def test_verifying_signatures_starts_no_process(signers_by_kind, make_line):
    """S39's other half: a record costs no child process, so their number does not depend on the ledger's size."""
    line = make_line(signers_by_kind["ed25519"])
    code = (
        "import sys\n"
        "def no(*a): raise SystemExit('a process was started')\n"
        "sys.addaudithook(lambda e, a: no() if e in ('subprocess.Popen', 'os.fork', 'os.posix_spawn') else None)\n"
        "from gitledger.trust.verified import Verified, open_record\n"
        "line = sys.stdin.buffer.read()\n"
        "assert all(isinstance(open_record(line), Verified) for _ in range(1000))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=line, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
