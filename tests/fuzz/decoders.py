"""The decoders that read what others wrote, each as a function of bytes that must raise nothing but `LedgerError`.

Where something holds of whatever a decoder accepts, the function asserts it: one spelling, one value, no record
that nobody signed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import UTC, datetime

from gitledger.config.load import load_config
from gitledger.records.bodies import decode_inputs, decode_log, decode_tests, encode_tests, unpack
from gitledger.records.capability import decode_reports
from gitledger.records.capability_record import CapabilityRecord
from gitledger.records.envelope import decode_line
from gitledger.records.fragments import decode_fragment, encode_fragment
from gitledger.records.imported import ImportedReceipt
from gitledger.records.merged import MergedReceipt
from gitledger.records.receipt import ShardReceipt
from gitledger.records.revocation import Revocation
from gitledger.records.statement import (
    CAPABILITY,
    IMPORTED,
    MERGED_RECEIPT,
    REVOCATION,
    SHARD_RECEIPT,
    Statement,
)
from gitledger.suites.ctrf import read_ctrf
from gitledger.suites.gpu_proof import read_gpu_proof
from gitledger.suites.journal import read_journal
from gitledger.suites.junit import read_junit
from gitledger.suites.reportlog import read_reportlog
from gitledger.trust.allowed_signers import parse_allowed_signers
from gitledger.trust.certificates import decode_key
from gitledger.trust.krl import parse_krl
from gitledger.trust.private_keys import load_private_key, peek_private_key
from gitledger.trust.revoked import parse_revoked_keys
from gitledger.trust.sign import sign_payload
from gitledger.trust.signer import FileSigner
from gitledger.trust.sshsig import SshSig, dearmor
from gitledger.trust.verified import Rejected, Verified, check_sshsig, open_record

__all__ = ["MESSAGE", "NONCE", "targets"]

NOW = datetime(2026, 6, 15, tzinfo=UTC)
MESSAGE = b"message"
NONCE = "0123456789abcdef0123456789abcdef"
_KINDS: dict[str, Callable[[Statement], object]] = {
    CAPABILITY: CapabilityRecord.decode,
    IMPORTED: ImportedReceipt.decode,
    MERGED_RECEIPT: MergedReceipt.decode,
    REVOCATION: Revocation.decode,
    SHARD_RECEIPT: ShardReceipt.decode,
}


def _envelope(data: bytes) -> None:
    assert decode_line(data).encode() == data, "a second spelling"


def _record(data: bytes, originals: frozenset[bytes]) -> None:
    opened = open_record(data)
    assert data in originals or not isinstance(opened, Verified), "a changed line was verified"
    assert not isinstance(opened, Rejected) or opened.detail, "a rejection without words"


def _signed(payload: bytes, signer: FileSigner) -> None:
    """Open what a trusted key signed: whatever it is, the signature is good."""
    opened = open_record(sign_payload(payload, signer).encode())
    assert not isinstance(opened, Rejected) or opened.key is not None, "a good signature was not seen"


def _statement(data: bytes) -> None:
    statement = Statement.decode(data)
    _KINDS[statement.predicate_type](statement)


def _packed(read: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """Let a fuzzer change what is packed: it would never find its way through the compression."""
    return lambda data: (read(b"\x01" + zlib.compress(data, 1)), None)[1]


def _tests(blob: bytes) -> None:
    results = decode_tests(blob)
    assert decode_tests(encode_tests(results)) == results, "results that can't be written as they were read"


def _coverage(blob: bytes) -> None:
    fragment = decode_fragment(blob)
    assert decode_fragment(encode_fragment(fragment)) == fragment, "coverage that can't be written as it was read"


def _others(blob: bytes) -> None:
    unpack(blob)
    for read in (decode_log, decode_inputs):
        read(blob)


def _sshsig(data: bytes) -> None:
    assert SshSig.decode(data, hashes=("sha256", "sha512")).encode() == data, "a second spelling"
    check_sshsig(data, MESSAGE)


def _allowed_signers(data: bytes) -> None:
    for entry in parse_allowed_signers(data).entries:
        entry.admits(entry.key, NOW, "gitledger")
        entry.speaks_for(entry.key, "alice")
        entry.names(entry.key)


def _private_key(data: bytes) -> None:
    peek_private_key(data)
    load_private_key(data, where="fuzz")


def targets(originals: frozenset[bytes], signer: FileSigner) -> dict[str, Callable[[bytes], object]]:
    """Return what is fuzzed, by name. `originals` are lines that verify; `signer` signs payloads for one of them."""
    return {
        "envelope": _envelope,
        "record": lambda data: _record(data, originals),
        "signed": lambda data: _signed(data, signer),
        "statement": _statement,
        "body": unpack,
        "body-tests": _packed(_tests),
        "body-coverage": _packed(_coverage),
        "body-others": _packed(_others),
        "journal": lambda data: read_journal(data, NONCE),
        "sshsig": _sshsig,
        "armour": lambda data: dearmor(data.decode("latin-1")),
        "key": decode_key,
        "krl": parse_krl,
        "allowed_signers": _allowed_signers,
        "revoked_keys": parse_revoked_keys,
        "private_key": _private_key,
        "junit": read_junit,
        "reportlog": read_reportlog,
        "ctrf": read_ctrf,
        "gpu_proof": read_gpu_proof,
        "capability": decode_reports,
        "config": lambda data: load_config(data, source="fuzz"),
    }
