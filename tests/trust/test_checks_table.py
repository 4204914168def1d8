"""Each check between a stranger's bytes and `Verified`, inverted once, with the tests that turn red for it.

`python tests/mutate.py --table` on this file tries them all, in a copy. It spans what the attack tables attack: this
room, the decoders of records, and where the store and the workflows refuse. What judgement refuses is tabled with
the verdict room. The tests here see to it that the table doesn't rot.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ATTACK = "test_each_attack_is_refused_for_its_own_reason"


@dataclass(frozen=True)
class Check:
    """One check, the change that lets through what it stops, and the tests that notice (relative to this folder)."""

    check: str
    tests: tuple[str, ...]
    file: str
    old: str
    new: str


def _check(check: str, test: str, module: str, old: str, new: str) -> Check:
    """Spell a row. Tests: `a:NAME` an attack on this room, `w:NAME` one on the whole path, else `FILE:NAME`."""
    tests = []
    for one in test.split():
        where, _, name = one.rpartition(":")
        if where in ("a", "w"):
            folder = "" if where == "a" else "../workflows/"
            tests.append(f"{folder}test_attacks.py::{ATTACK}[{name}]")
        else:
            folder, _, file = where.rpartition("/")
            tests.append(f"{folder and f'../{folder}/'}test_{file}.py::test_{name}")
    return Check(check, tuple(tests), f"gitledger/{module}.py", old, new)


RULES = (
    # What opens a record (trust/verified.py)
    _check(
        "an envelope without signature may not name a signer",
        "a:a_stripped_signature w:a_stripped_signature",
        "trust/verified",
        "if statement.signer is not None:",
        "if False:",
    ),
    _check(
        "a signed payload names its signer",
        "a:a_signature_over_a_payload_that_says_nobody_signs",
        "trust/verified",
        "    if statement.signer is None:\n"
        '        return rejected("malformed", "it is signed, but its payload says that nobody signs")\n'
        "    if statement.signer.key_fingerprint",
        "    if statement.signer and statement.signer.key_fingerprint",
    ),
    _check(
        "the payload's fingerprint is the verifying key's",
        "a:alices_payload_signed_again_by_a_stranger w:alices_payload_under_a_strangers_signature",
        "trust/verified",
        "if statement.signer.key_fingerprint != key.fingerprint:",
        "if False:",
    ),
    _check(
        "keyid names the verifying key",
        "a:a_strangers_signature_under_alices_keyid",
        "trust/verified",
        "if signature.keyid != key.fingerprint:",
        "if False:",
    ),
    _check(
        "the subject is the commit that the record stands on",
        "a:a_record_stolen_from_another_commit",
        "trust/verified",
        "commit is None or opened.statement.subject.commit == commit",
        "commit is None or opened.statement.subject.commit",
    ),
    _check(
        "only a checked signature becomes Verified",
        "verified:verified_is_made_here_and_nowhere_else",
        "trust/verified",
        "if seal is not _SEAL:",
        "if seal is None:",
    ),
    _check(
        "the namespace is ours",
        "a:a_signature_that_alice_made_for_a_commit w:a_signature_made_for_a_git_commit",
        "trust/verified",
        "if signature.namespace != namespace:",
        "if False:",
    ),
    _check(
        "the signature covers the namespace that it names",
        "a:a_namespace_that_was_changed_afterwards",
        "trust/verified",
        "signed_data(message, namespace=namespace, hash_name",
        "signed_data(message, namespace='git', hash_name",
    ),
    _check(
        "what is signed is the payload under its type, not the bare payload",
        "a:a_signature_over_the_bare_payload",
        "trust/verified",
        "_signed_by(signature.blob, envelope.signed_bytes(), was_good=was_good)",
        "_signed_by(signature.blob, envelope.payload, was_good=was_good)",
    ),
    # The signature's blob (trust/sshsig.py, trust/wire.py)
    _check(
        "message hash: sha512 alone",
        "a:a_weaker_message_hash",
        "trust/sshsig",
        "if hash_name not in _HASHES or hash_name not in hashes:",
        "if hash_name not in _HASHES:",
    ),
    _check(
        "the reserved field is empty",
        "a:words_in_the_reserved_field",
        "trust/sshsig",
        "if reader.string():",
        "if reader.string() and False:",
    ),
    _check(
        "the blob's version is known",
        "a:an_unknown_signature_version",
        "trust/sshsig",
        "if reader.uint32() != _VERSION:",
        "if not reader.uint32():",
    ),
    _check(
        "no bytes behind a structure",
        "a:bytes_behind_the_signature codecs:trailing_bytes_are_refused",
        "trust/wire",
        "if not self.is_done:",
        "if False:",
    ),
    _check(
        "no short reads of a string",
        "codecs:short_and_second_spellings_are_refused",
        "trust/wire",
        "if end > len(self._data) or start > len(self._data):",
        "if False:",
    ),
    _check(
        "no short reads of a fixed size",
        "codecs:short_and_second_spellings_are_refused",
        "trust/wire",
        "        if end > len(self._data):\n",
        "        if False:\n",
    ),
    _check(
        "numbers have one spelling",
        "a:a_revoked_rsa_key_spelled_with_another_fingerprint",
        "trust/wire",
        "if put_mpint(number)[4:] != raw:",
        "if False:",
    ),
    _check(
        "names are printable ASCII without blanks",
        "a:a_namespace_with_a_blank_behind_it",
        "trust/wire",
        'name.isprintable() and " " not in name else None',
        "name.isprintable() else None",
    ),
    # Keys and algorithms (trust/keys.py)
    _check(
        "a signature that does not match is refused",
        "a:alices_key_before_a_strangers_signature verified:t05_any_changed_byte_of_the_payload_is_a_bad_signature",
        "trust/keys",
        '        raise DecodeError("bad-signature", "the signature does not match the signed bytes") from None\n',
        "        pass\n",
    ),
    _check(
        "DSA keys are refused as weak",
        "a:a_dsa_key",
        "trust/keys",
        "if algorithm in _WEAK_TYPES:",
        "if False:",
    ),
    _check(
        "short RSA keys are refused",
        "a:a_short_rsa_key",
        "trust/keys",
        "if modulus.bit_length() < MIN_RSA_BITS:",
        "if False:",
    ),
    _check(
        "absurd RSA keys are refused",
        "codecs:weak_and_broken_keys_are_refused",
        "trust/keys",
        "if modulus.bit_length() > MAX_RSA_BITS or exponent.bit_length() > MAX_RSA_EXPONENT_BITS:",
        "if False:",
    ),
    _check(
        "SHA-1 signatures are refused",
        "a:an_rsa_signature_with_sha1 codecs:sha1_signatures_are_refused",
        "trust/keys",
        'if algorithm in ("ssh-rsa", "rsa-sha2-256", "ssh-dss"):',
        'if algorithm in ("ssh-dss",):',
    ),
    _check(
        "the signature's algorithm is its key's",
        "a:a_signature_of_another_algorithm_than_its_key",
        "trust/keys",
        "    if algorithm not in expected:\n",
        "    if False:\n",
    ),
    _check(
        "points are uncompressed: one key, one fingerprint",
        "codecs:a_key_has_one_spelling_so_a_compressed_point_is_refused",
        "trust/keys",
        "if len(point) != 1 + 2 * size or point[0] != 4:",
        "if False:",
    ),
    _check(
        "the curve is the one that the key type names",
        "codecs:weak_and_broken_keys_are_refused",
        "trust/keys",
        "if reader.string() != name.encode():",
        "if not reader.string():",
    ),
    _check(
        "touch is read from the signed flags",
        "a:a_security_key_that_nobody_touched w:a_security_key_that_nobody_touched",
        "trust/keys",
        "touched=bool(flags & _USER_PRESENT)",
        "touched=True",
    ),
    _check(
        "flags are signed",
        "a:a_security_key_whose_touch_was_written_in_afterwards",
        "trust/keys",
        "hashlib.sha256(application).digest() + bytes([flags])",
        "hashlib.sha256(application).digest() + bytes([0])",
    ),
    _check(
        "the application is signed",
        "security_keys:t02_a_signature_made_for_another_application_is_bad",
        "trust/keys",
        "signed = hashlib.sha256(application).digest()",
        'signed = hashlib.sha256(b"ssh:").digest()',
    ),
    # Certificates (trust/certificates.py)
    _check(
        "the authority signed the certificate",
        "a:a_certificate_that_only_names_the_authority a:a_certificate_with_its_principals_changed",
        "trust/certificates",
        "    _check_authority(authority, signed, signature)\n",
        "",
    ),
    _check(
        "the authority is a plain key",
        "a:a_certificate_signed_by_a_certificate",
        "trust/certificates",
        "authority = decode_plain_key(reader.string())",
        "authority = decode_key(reader.string())",
    ),
    _check(
        "hosts' certificates vouch for nobody",
        "a:a_certificate_for_a_host",
        "trust/certificates",
        "return self.is_user and in_force",
        "return in_force",
    ),
    _check(
        "a certificate is in force at the time",
        "a:an_expired_certificate signers:a_certificate_ends_just_before_the_instant_that_it_names",
        "trust/certificates",
        "return self.is_user and in_force",
        "return self.is_user",
    ),
    _check(
        "a certificate for everybody is for nobody",
        "signers:a_certificate_that_does_not_vouch_grants_nothing",
        "trust/certificates",
        "in_force and bool(self.principals) and not",
        "in_force and not",
    ),
    _check(
        "a certificate tied to one use is refused",
        "a:a_certificate_tied_to_one_command",
        "trust/certificates",
        "bool(self.principals) and not self.critical_options",
        "bool(self.principals)",
    ),
    # Who is who (trust/allowed_signers.py, signers.py, patterns.py, revoked.py, krl.py)
    _check(
        "a line's namespaces are obeyed",
        "a:a_key_listed_for_commits_alone",
        "trust/allowed_signers",
        "if self.namespaces is not None and not list_matches(namespace, self.namespaces):",
        "if False:",
    ),
    _check(
        "valid-after is obeyed",
        "a:a_key_whose_time_has_not_come w:a_key_that_was_not_valid_yet",
        "trust/allowed_signers",
        "if self.valid_after is not None and at < self.valid_after:",
        "if False:",
    ),
    _check(
        "valid-before is obeyed",
        "a:an_expired_key w:an_expired_key_that_dates_its_receipt_back",
        "trust/allowed_signers",
        "if self.valid_before is not None and at > self.valid_before:",
        "if False:",
    ),
    _check(
        "a line speaks for its very key",
        "a:a_strangers_key w:a_strangers_key",
        "trust/allowed_signers",
        "return key.certificate is None and key.blob == self.key.blob",
        "return key.certificate is None",
    ),
    _check(
        "a plain line admits no certificate of its key",
        "signers:an_authority_is_no_signer_and_a_signer_is_no_authority",
        "trust/allowed_signers",
        "return key.certificate is None and key.blob == self.key.blob",
        "return key.blob == self.key.blob",
    ),
    _check(
        "an authority is no signer",
        "a:the_authoritys_own_key",
        "trust/allowed_signers",
        "is_authority, rest = True, rest[14:]",
        "rest = rest[14:]",
    ),
    _check(
        "the certificate is by the line's authority",
        "a:a_certificate_by_the_attackers_own_authority",
        "trust/allowed_signers",
        "certificate and certificate.authority.blob == authority.blob and certificate",
        "certificate and certificate",
    ),
    _check(
        "a certificate speaks for the names that it holds",
        "a:a_certificate_for_somebody_else",
        "trust/allowed_signers",
        "granted = frozenset(name for name in vouched if list_matches(name, self.principals))",
        "granted = listed",
    ),
    _check(
        "a date without Z is refused",
        "signers:t03_a_date_without_z_is_refused_with_the_remedy w:a_file_of_signers_that_reads_one_way_here_and_another_there",
        "trust/allowed_signers",
        "if not match[7]:",
        "if False:",
    ),
    _check(
        "a line that can't be read is an error",
        "signers:t03_a_line_that_cannot_be_read_is_named",
        "trust/allowed_signers",
        'if error.code != "weak-key":',
        "if False:",
    ),
    _check(
        "comments grant nothing",
        "a:a_key_in_a_comment_of_the_file",
        "trust/allowed_signers",
        'if line and not line.startswith("#"):\n            found.append((where, line))',
        'if line:\n            found.append((where, line.lstrip("# ")))',
    ),
    _check(
        "a negated pattern takes away",
        "signers:pattern_lists_match_as_in_openssh",
        "trust/patterns",
        "            if negated:\n                return False\n",
        "            if negated:\n                continue\n",
    ),
    _check(
        "patterns match whole names",
        "signers:pattern_lists_match_as_in_openssh",
        "trust/patterns",
        "_compiled(pattern).fullmatch(name)",
        "_compiled(pattern).match(name)",
    ),
    _check(
        "a revoked key has no principals",
        "signers:t01_a_revoked_key_has_no_principals_at_any_time",
        "trust/signers",
        "        if self.is_revoked(key):\n            return []\n",
        "",
    ),
    _check(
        "revoked_keys hold what they list",
        "a:a_revoked_key w:a_revoked_key",
        "trust/revoked",
        "if key.fingerprint in self.fingerprints or (self.krl",
        "if (self.krl",
    ),
    _check(
        "a KRL holds what it lists",
        "krl:keys_are_revoked_as_ssh_keygen_revokes_them w:a_key_in_a_revocation_list_that_the_change_empties",
        "trust/revoked",
        "or (self.krl and self.krl.revokes_key(key.blob))",
        "or False",
    ),
    _check(
        "a revoked authority takes its certificates along",
        "a:a_certificate_of_a_revoked_authority",
        "trust/revoked",
        "return self.holds(key.certificate.authority)",
        "return False",
    ),
    _check(
        "a KRL revokes certificates by serial and id",
        "krl:certificates_are_revoked_as_ssh_keygen_revokes_them",
        "trust/revoked",
        "if self.krl and self.krl.revokes_certificate(key.certificate):",
        "if False:",
    ),
    _check(
        "an unreadable line of revoked_keys is an error",
        "signers:t01_an_unreadable_line_of_revoked_keys_is_an_error_since_it_may_be_the_one",
        "trust/revoked",
        'if isinstance(error, DecodeError) and error.code == "weak-key":',
        "if error:",
    ),
    _check(
        "unknown sections of a KRL are refused",
        "krl:a_list_that_cannot_be_read_whole_is_an_error",
        "trust/krl",
        "elif kind != _SIGNATURE:",
        "elif False:",
    ),
    _check(
        "critical extensions of a KRL are refused",
        "krl:a_list_that_cannot_be_read_whole_is_an_error",
        "trust/krl",
        "if is_critical:",
        "if False:",
    ),
    _check(
        "serial 0 is in no KRL",
        "krl:serial_zero_means_no_serial_so_a_list_that_holds_it_is_broken",
        "trust/krl",
        "if low == 0 or low > high:",
        "if False:",
    ),
    # Forges (trust/fetch.py, forges.py)
    _check(
        "https, or loopback",
        "forges:http_is_for_loopback_alone",
        "trust/fetch",
        'return parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)',
        'return parts.scheme in ("http", "https")',
    ),
    _check(
        "no credentials in a forge's address",
        "forges:a_template_is_https_with_one_user_behind_the_host",
        "trust/fetch",
        "if not host or parts.username is not None or parts.fragment:",
        "if not host or parts.fragment:",
    ),
    _check(
        "no redirect to another place",
        "forges:a_redirect_to_another_host_is_refused w:a_forge_that_sends_us_elsewhere",
        "trust/fetch",
        "if _place(urlsplit(newurl)) != _place(urlsplit(req.full_url)):",
        "if False:",
    ),
    _check(
        "no redirects without end",
        "forges:a_redirect_within_the_host_is_followed_but_not_for_ever",
        "trust/fetch",
        "max_redirections = MAX_REDIRECTS",
        "max_redirections = 100",
    ),
    _check(
        "a deadline for the whole answer",
        "forges:a_stalling_server_ends_at_the_deadline",
        "trust/fetch",
        "thread.join(timeout_s)",
        "thread.join(60)",
    ),
    _check(
        "a cap on the answer",
        "forges:an_endless_answer_is_cut_off_and_refused w:a_forge_that_floods_us",
        "trust/fetch",
        "    if len(body) > MAX_ANSWER_BYTES:\n",
        "    if False:\n",
    ),
    _check(
        "an answer that breaks off is none",
        "forges:an_answer_that_breaks_off_is_refused",
        "trust/fetch",
        "    if is_cut:\n",
        "    if False:\n",
    ),
    _check(
        "an old answer does not stand for a live one",
        "forges:one_command_asks_once_and_the_next_within_the_age_not_at_all",
        "trust/forges",
        "and self._now - kept[0] <= self._max_age:",
        "and kept[0] <= self._now:",
    ),
    _check(
        "offline has an end",
        "forges:offline_uses_what_was_fetched_for_a_while_and_asks_nobody",
        "trust/forges",
        "if self._now - kept[0] > self._offline_max_age:",
        "if False:",
    ),
    _check(
        "an answer of the future is none",
        "forges:an_answer_from_the_future_or_a_damaged_one_is_no_answer",
        "trust/forges",
        "if is_ours and when <= self._now else None",
        "if is_ours else None",
    ),
    _check(
        "a cache that others may write says nothing",
        "forges:a_kept_answer_that_others_may_write_is_no_answer",
        "trust/forges",
        "raw = path.read_bytes() if path and _is_own(path) else b",
        "raw = path.read_bytes() if path else b",
    ),
    _check(
        "a user's name stays in its place of the address",
        "forges:names_that_could_leave_their_place_in_the_url_are_no_users",
        "trust/forges",
        "if not colon or not re.match(_NAME, forge) or not re.match(_USER, user):",
        "if not colon or not re.match(_NAME, forge):",
    ),
    # Signing (trust/sign.py, open_signer.py, keygen.py)
    _check(
        "a fresh signature is verified before it is stored",
        "verified:a_broken_signer_writes_nothing",
        "trust/sign",
        "        key, _ = check_sshsig(blob, message)\n",
        "        key = signer.key\n",
    ),
    _check(
        "the asked key signed",
        "verified:an_agent_that_signs_with_another_key_than_asked_for_is_found_out",
        "trust/sign",
        "if key.blob != signer.key.blob:",
        "if False:",
    ),
    _check(
        "a key that others can read is refused",
        "open_signer:t07_a_key_file_that_others_can_read_is_refused_with_the_chmod",
        "trust/open_signer",
        "    _check_mode(path)\n",
        "",
    ),
    _check(
        "private and public file are one pair",
        "open_signer:t07_a_public_file_of_another_pair_is_refused",
        "trust/open_signer",
        "if public and public.blob != private.public.blob:",
        "if False:",
    ),
    _check(
        "what signs sees no variable of a run",
        "open_signer:the_signing_child_sees_neither_the_key_variable_nor_what_could_bend_it",
        "trust/keygen",
        "if not name.startswith(_WITHHELD)}",
        "if name}",
    ),
    # Records (records/envelope.py, decode.py, statement.py, receipt.py, bodies.py)
    _check(
        "one spelling of an envelope, its end included",
        "a:an_envelope_with_one_field_more a:a_second_signature",
        "records/envelope",
        r'"sig":"([^"]*)"\})?\]\}\Z',
        r'"sig":"([^"]*)"\})?',
    ),
    _check(
        "a line has a limit",
        "records/envelope:the_limits_hold_for_writing_and_reading",
        "records/envelope",
        '    if len(line) > MAX_LINE_BYTES:\n        fail("$"',
        '    if False:\n        fail("$"',
    ),
    _check(
        "a payload has a limit",
        "records/envelope:the_limits_hold_for_writing_and_reading",
        "records/envelope",
        "    if len(payload) > MAX_PAYLOAD_BYTES:\n",
        "    if False:\n",
    ),
    _check(
        "base64 holds no other letters",
        "records/decode:every_short_text_is_read_exactly_where_encoding_again_spells_it",
        "records/decode",
        "if len(text) != (len(data) + 2) // 3 * 4 or binascii",
        "if binascii",
    ),
    _check(
        "base64 has no spare bits",
        "records/decode:every_short_text_is_read_exactly_where_encoding_again_spells_it a:base64_with_stray_bits",
        "records/decode",
        " or binascii.b2a_base64(last, newline=False) != text[-4:]:",
        ":",
    ),
    _check(
        "no key twice",
        "a:a_signed_payload_with_duplicate_keys w:one_field_twice_inside_a_signed_payload",
        "records/decode",
        "if len(result) == len(pairs):",
        "if result is not None:",
    ),
    _check(
        "no NaN",
        "a:a_signed_payload_with_nan",
        "records/decode",
        'parse_constant=lambda text: refuse(f"{text} is not JSON"),',
        "parse_constant=float,",
    ),
    _check(
        "no absurd nesting",
        "records/decode:nesting_is_read_up_to_its_limit_and_refused_beyond",
        "records/decode",
        'if kinds.count(b"{") > MAX_JSON_DEPTH and _depth(value) > MAX_JSON_DEPTH:',
        "if False:",
    ),
    _check(
        "no absurd integers, whichever parser reads them",
        "a:a_signed_payload_with_a_number_of_a_million_digits records/decode:what_pythons_parser_would_take_is_refused_with_its_path",
        "records/decode",
        "decoder = _STRICT if _MANY_DIGITS in kinds else _QUICK",
        "decoder = _QUICK",
    ),
    _check(
        "no infinite or absurd reals",
        "records/decode:what_pythons_parser_would_take_is_refused_with_its_path",
        "records/decode",
        "return value if math.isfinite(value) else refuse(",
        "return value if value else refuse(",
    ),
    _check(
        "unknown major versions are refused",
        "a:a_signed_payload_of_an_unknown_major_version",
        "records/statement",
        "if predicate_type not in PREDICATE_TYPES:",
        "if False:",
    ),
    _check(
        "exactly one subject",
        "records/claims:a_subject_is_one_commit_by_both_digests",
        "records/statement",
        "if len(subjects) != 1:",
        "if False:",
    ),
    _check(
        "both digests of the subject are of one format",
        "records/claims:a_subject_is_one_commit_by_both_digests",
        "records/statement",
        "if len(subject.commit) != len(subject.tree):",
        "if False:",
    ),
    _check(
        "the receipt's commit is the subject's",
        "records/contradictions:a_receipt_is_about_the_commit_that_its_statement_names",
        "records/receipt",
        "if (claim.commit, claim.tree) != (subject.commit, subject.tree):",
        "if False:",
    ),
    _check(
        "no green beside failures",
        "w:a_green_word_over_red_counts",
        "records/receipt",
        '"failed tests": counts.failed + counts.error > 0,',
        '"failed tests": False,',
    ),
    _check(
        "no green over nothing",
        "w:a_green_word_over_nothing",
        "records/receipt",
        '"no tests": counts.collected == 0,',
        '"no tests": False,',
    ),
    _check(
        "no green beside a reason against it",
        "records/contradictions:a_green_receipt_without_grounds_is_not_read_whoever_signed_it",
        "records/receipt",
        '"a reason against it": bool(receipt.reasons),',
        '"a reason against it": False,',
    ),
    _check(
        "no green of a session that did not finish",
        "records/contradictions:a_green_receipt_without_grounds_is_not_read_whoever_signed_it",
        "records/receipt",
        '"an unfinished session": not session.finished,',
        '"an unfinished session": False,',
    ),
    _check(
        "a body is the one that its record names",
        "w:a_body_whose_digest_is_another records/bodies:t05_a_body_with_any_byte_changed_is_not_the_one_named_and_never_a_crash",
        "records/bodies",
        "if len(blob) != ref.size or hashlib.sha256(blob).hexdigest() != ref.sha256:",
        "if False:",
    ),
    _check(
        "a bomb is not unpacked",
        "records/bodies:a_decompression_bomb_is_refused",
        "records/bodies",
        'if len(raw) > MAX_BODY_UNPACKED_BYTES:\n        raise DecodeError("body-too-large", f"a body unpacks',
        'if False:\n        raise DecodeError("body-too-large", f"a body unpacks',
    ),
    _check(
        "a body is one whole stream",
        "records/bodies:what_is_no_body_is_refused",
        "records/bodies",
        "if not inflate.eof or inflate.unused_data:",
        "if not inflate.eof:",
    ),
    _check(
        "no key twice in a body",
        "records/bodies:what_is_no_body_is_refused",
        "records/bodies",
        "if len(result) != len(pairs):",
        "if False:",
    ),
    # The store and the workflows, along the attacks on the whole path
    _check(
        "a tree without end or with hidden entries is refused: names of two components",
        "w:a_file_beside_the_folder_that_it_hides",
        "store/encoding",
        'if len(set(names)) == len(names) and not any("/" in name or name in _NO_NAMES for name in names):',
        "if len(set(names)) == len(names):",
    ),
    _check(
        "a name stands once in a tree",
        "w:an_input_that_stands_twice_in_its_tree",
        "store/encoding",
        'if len(set(names)) == len(names) and not any("/" in name or name in _NO_NAMES for name in names):',
        'if not any("/" in name or name in _NO_NAMES for name in names):',
    ),
    _check(
        "a mode is one that git writes",
        "workflows/odd_modes:what_stands_in_a_tree_with_a_mode_that_git_never_writes_is_given_no_verdict",
        "store/encoding",
        "if odd is not None:",
        "if False:",
    ),
    _check(
        "an ambiguous name is no trusted ref",
        "w:a_tag_that_is_named_as_the_trusted_branch w:a_tag_that_is_named_as_a_remotes_branch",
        "store/repository",
        "if len({*found.values(), *others}) > 1 or (others and not found):",
        "if False:",
    ),
    _check(
        "configuration and signers are regular files",
        "w:a_configuration_behind_a_symlink w:signers_behind_a_symlink",
        "store/repository",
        "if entry.mode not in FILE_MODES:",
        "if entry.mode == MODE_FOLDER:",
    ),
    _check(
        "git is told to honour no replacement and no graft",
        "store/git_runner:replace_refs_and_grafts_are_switched_off",
        "store/git_environment",
        '{"LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}',
        '{"LC_ALL": "C"}',
    ),
    _check(
        "a note that is too large to be read blocks",
        "w:a_note_so_large_that_a_failure_could_hide_in_it",
        "workflows/gather",
        'make = blocking if fault.code == "note-too-large" else note',
        "make = note",
    ),
    _check(
        "a body stands under its own id",
        "w:a_swapped_body",
        "store/view",
        "if not any(oid in self._trees.find(root, oid) for root in self._roots.bodies):",
        "if not any(self._trees.find(root, oid) for root in self._roots.bodies):",
    ),
    _check(
        "the tree of the subject is the commit's",
        "w:a_receipt_that_names_this_commit_and_another_tree",
        "workflows/known",
        "if isinstance(opened, Rejected) or opened.statement.subject.tree == tree:",
        "if True:",
    ),
    _check(
        "policy and signers come from the trusted commit",
        "w:policy_loosened_in_the_change w:a_signer_who_adds_themselves_in_the_change",
        "workflows/trusted",
        "commit = target if policy_from is None else repo.resolve(policy_from)",
        "commit = target",
    ),
    _check(
        "lists of tests come from the trusted commit",
        "w:required_tests_cut_in_the_change w:skips_expected_in_the_change",
        "workflows/judge",
        "read_lists(session.repo, case.trusted, ",
        'read_lists(session.repo, __import__("dataclasses").replace(case.trusted, commit=target), ',
    ),
    _check(
        "required tests count from shards of the trusted commit",
        "w:a_required_test_in_a_shard_that_the_change_adds",
        "workflows/judge",
        "    if _is_pinned(case) and not accept_shards:\n",
        "    if False:\n",
    ),
    _check(
        "the threshold comes from the trusted commit",
        "w:a_threshold_lowered_in_the_change",
        "workflows/gather",
        "rule = known.coverage_rule(trusted.commit, trusted.config)",
        "rule = known.coverage_rule(target, own)",
    ),
    _check(
        "another way to count coverage blocks",
        "w:coverage_that_leaves_out_more_in_the_change w:a_threshold_lowered_in_the_change",
        "workflows/gather",
        "            *_coverage_pin(repo, trusted, (target, own), accepted=accept_shards),\n",
        "",
    ),
    _check(
        "the forges of the trusted commit are asked",
        "w:a_forge_account_taken_over_by_a_change_of_forges",
        "workflows/gather",
        "keys = ask_forges(session, trusted.config, trusted.signers, now",
        "keys = ask_forges(session, own, trusted.signers, now",
    ),
    _check(
        "records of another repository are foreign",
        "w:a_receipt_of_another_repository w:a_change_of_the_repositorys_id",
        "workflows/gather",
        "known.evidence(commit, trusted.config.repository)",
        'known.evidence(commit, "elsewhere")',
    ),
)


@cache
def functions(file: str) -> frozenset[str]:
    """Return the names of a test file's functions; an attack is one of them, and so is its test."""
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.check)
def test_every_check_names_tests_that_exist_and_a_text_that_stands_once(rule):
    for test in rule.tests:
        file, name = test.split("::")
        name, _, case = name.partition("[")
        assert {name, *filter(None, [case.rstrip("]")])} <= functions(file), test
    assert (ROOT / rule.file).read_text(encoding="utf-8").count(rule.old) == 1
    assert rule.old != rule.new


def test_there_are_as_many_as_were_tried():
    assert len(RULES) > 100
