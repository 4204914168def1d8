"""The envelope: one record, one line, one spelling."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.errors import DecodeError
from gitledger.records.envelope import PAYLOAD_TYPE, Envelope, Signature, decode_line, pae, record_id
from gitledger.records.ids import KeyFingerprint
from gitledger.records.limits import MAX_LINE_BYTES, MAX_PAYLOAD_BYTES, MAX_SIGNATURE_BYTES

KEY = KeyFingerprint("SHA256:" + "k" * 43)
SIGNATURES = st.none() | st.builds(Signature, keyid=st.just(KEY), blob=st.binary(max_size=60))
ENVELOPES = st.builds(Envelope, payload=st.binary(max_size=60), signature=SIGNATURES)
LINE = Envelope(payload=b'{"a":1}', signature=Signature(keyid=KEY, blob=b"SSHSIG")).encode()


def respell(change) -> bytes:
    document = json.loads(LINE)
    change(document)
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def test_what_is_signed_counts_bytes_and_not_characters():
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"  # the example of DSSE's protocol.md
    )
    assert pae("é", "ü".encode()) == b"DSSEv1 2 \xc3\xa9 2 \xc3\xbc"
    assert pae("", b"") == b"DSSEv1 0  0 "


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_two_payloads_never_have_the_same_signed_bytes(one, other):
    assert (pae(PAYLOAD_TYPE, one) == pae(PAYLOAD_TYPE, other)) == (one == other)


@given(ENVELOPES)
def test_a_line_is_read_back(envelope):
    line = envelope.encode()
    assert b"\n" not in line
    assert decode_line(line) == envelope
    assert decode_line(line).encode() == line


def test_a_record_id_is_the_hash_of_its_payload():
    envelope = Envelope(payload=b"{}", signature=None)
    assert envelope.id == record_id(b"{}") == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert record_id(b"{}\n") != record_id(b"{}")


def test_t05_a_line_with_any_byte_changed_is_refused_or_is_another_envelope(signed_line):
    original = decode_line(signed_line)
    for place in range(len(signed_line)):
        for flip in (1, 0x20, 0x80):
            changed = bytearray(signed_line)
            changed[place] ^= flip
            try:
                envelope = decode_line(bytes(changed))
            except DecodeError:
                continue
            assert envelope != original
            assert envelope.encode() == changed


def test_t05_a_line_with_a_byte_removed_or_doubled_is_refused_or_is_another_envelope(signed_line):
    original = decode_line(signed_line)
    for place in range(len(signed_line)):
        for changed in (
            signed_line[:place] + signed_line[place + 1 :],
            signed_line[: place + 1] + signed_line[place:],
        ):
            try:
                envelope = decode_line(changed)
            except DecodeError:
                continue
            assert envelope.encode() == changed
            assert changed == signed_line or envelope != original


@given(st.binary(max_size=120))
def test_bytes_are_a_line_or_refused_and_nothing_else(result_of, data):
    assert "\n" not in getattr(result_of(decode_line, data), "message", "")


OTHER_SPELLINGS = {
    "a newline": LINE + b"\n",
    "a carriage return": LINE + b"\r",
    "a space before": b" " + LINE,
    "white space inside": json.dumps(json.loads(LINE), sort_keys=True).encode(),
    "another order of keys": json.dumps(dict(reversed(json.loads(LINE).items())), separators=(",", ":")).encode(),
    "an escape": LINE.replace(b"payloadType", b"payload\\u0054ype"),
    "an escaped slash": LINE.replace(b"/vnd", b"\\/vnd"),
    "a field more": respell(lambda document: document.update(extra=1)),
    "a field more in the signature": respell(lambda document: document["signatures"][0].update(extra=1)),
    "a second signature": respell(lambda document: document["signatures"].append(document["signatures"][0])),
    "a key twice": LINE.replace(b'{"payload"', b'{"payload":"e30=","payload"'),
    "base64 without padding": LINE.replace(b"==", b"", 1),
    "base64 with spare bits": LINE.replace(b"eyJhIjoxfQ==", b"eyJhIjoxfR=="),
    "base64 of the URL alphabet": respell(lambda document: document.update(payload="_w==")),
    "a newline in base64": respell(lambda document: document.update(payload="eyJhIjoxfQ==\n")),
    "a byte order mark": b"\xef\xbb\xbf" + LINE,
}


@pytest.mark.parametrize("line", OTHER_SPELLINGS.values(), ids=OTHER_SPELLINGS.keys())
def test_another_spelling_of_an_envelope_is_refused(refused, line):
    assert line != LINE
    assert refused(decode_line, line).code == "malformed"


FAULTS = {
    "$.payloadType: expected application/vnd.in-toto+json": lambda document: document.update(
        payloadType="text/plain"
    ),
    "$.payloadType: missing": lambda document: document.pop("payloadType"),
    "$.payload: missing": lambda document: document.pop("payload"),
    "$.payload: expected a string, found null": lambda document: document.update(payload=None),
    "$.payload: not base64": lambda document: document.update(payload="A"),
    "$.signatures: missing": lambda document: document.pop("signatures"),
    "$.signatures: expected a list, found null": lambda document: document.update(signatures=None),
    "$.signatures: 2 items, more than the limit of 1": lambda document: document.update(signatures=[{}, {}]),
    "$.signatures[0]: expected an object": lambda document: document.update(signatures=["x"]),
    "$.signatures[0].keyid: missing": lambda document: document["signatures"][0].pop("keyid"),
    "$.signatures[0].keyid: expected SHA256": lambda document: document["signatures"][0].update(keyid="SHA256:x"),
    "$.signatures[0].sig: missing": lambda document: document["signatures"][0].pop("sig"),
    "$.signatures[0].sig: base64 is not in its canonical": lambda document: document["signatures"][0].update(
        sig="QR=="
    ),
}


@pytest.mark.parametrize(("message", "change"), FAULTS.items(), ids=FAULTS.keys())
def test_a_faulty_field_is_named(refused, message, change):
    assert refused(decode_line, respell(change)).message.startswith(message)


def test_the_limits_hold_for_writing_and_reading(refused):
    signed = Signature(keyid=KEY, blob=b"x" * MAX_SIGNATURE_BYTES)
    largest = Envelope(payload=b"x" * MAX_PAYLOAD_BYTES, signature=signed)
    assert decode_line(largest.encode()) == largest

    big = Envelope(payload=b"x" * (MAX_PAYLOAD_BYTES + 1), signature=None)
    assert refused(big.encode).code == "record-too-large"
    template = Envelope(payload=b"", signature=None).encode()
    line = template.replace(b'"payload":""', b'"payload":"%s"' % base64.b64encode(big.payload))
    assert refused(decode_line, line).message.startswith(f"$.payload: {MAX_PAYLOAD_BYTES + 1} bytes")

    sig = Signature(keyid=KEY, blob=b"x" * (MAX_SIGNATURE_BYTES + 1))
    long_signature = Envelope(payload=b"", signature=sig)
    assert refused(long_signature.encode).code == "record-too-large"
    sig64 = base64.b64encode(sig.blob)
    line = LINE.replace(b'"sig":"%s"' % base64.b64encode(b"SSHSIG"), b'"sig":"%s"' % sig64)
    assert refused(decode_line, line).message.startswith(f"$.signatures[0].sig: {MAX_SIGNATURE_BYTES + 1} bytes")

    assert f"more than the limit of {MAX_LINE_BYTES}" in refused(decode_line, b" " * (MAX_LINE_BYTES + 1)).message
    line = template.replace(b'"payload":""', b'"payload":"%s"' % base64.b64encode(b"x" * MAX_LINE_BYTES))
    assert refused(decode_line, line).message == f"$: {len(line)} bytes, more than the limit of {MAX_LINE_BYTES}"
