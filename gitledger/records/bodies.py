"""Bodies: bulk data that a record names by digest, and the one encoding that they share.

A body is one byte of format version and zlib-compressed msgpack (DESIGN section 3). It is never a pickle, a SQL
dump or a coverage dump, since those execute what they carry. Encoding is deterministic: the same content is the
same blob, stored once.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NoReturn

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.decode import Reader, byte_length, fail
from gitledger.records.ids import BlobId, Digest, NodeId, digest, object_id
from gitledger.records.limits import (
    MAX_BODY_BYTES,
    MAX_BODY_ITEMS,
    MAX_BODY_LIST,
    MAX_BODY_UNPACKED_BYTES,
    MAX_INTEGER,
    MAX_NODE_ID_BYTES,
    MAX_TESTS,
    MAX_TEXT_BYTES,
)
from gitledger.records.outcomes import Counts, TestOutcome

__all__ = [
    "NO_RESULTS",
    "BodyRef",
    "Check",
    "Inputs",
    "Results",
    "TestResult",
    "check_body",
    "collection_digest",
    "decode_inputs",
    "decode_log",
    "decode_results",
    "decode_tests",
    "encode_inputs",
    "encode_log",
    "encode_tests",
    "pack",
    "unpack",
]

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyRef:
    """What a record says of a body: SHA-256 and size in bytes of the blob as stored, and its git object id."""

    sha256: Digest
    oid: BlobId
    size: int

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"oid": self.oid, "sha256": self.sha256, "size": self.size}

    @classmethod
    def decode(cls, reader: Reader) -> BodyRef:
        """Return the reference at `reader`; raises `DecodeError`."""
        return cls(
            sha256=reader.parsed("sha256", digest),
            oid=BlobId(reader.parsed("oid", object_id)),
            size=reader.integer("size", high=MAX_BODY_BYTES),
        )

    @classmethod
    def of(cls, blob: bytes, *, object_format: str = "sha1") -> BodyRef:
        """Return the reference of a blob in a repository of `object_format` (`sha1` or `sha256`)."""
        header = b"blob %d\x00" % len(blob)
        oid = hashlib.new(object_format, header + blob, usedforsecurity=False).hexdigest()
        return cls(sha256=Digest(hashlib.sha256(blob).hexdigest()), oid=BlobId(oid), size=len(blob))


def check_body(ref: BodyRef, blob: bytes) -> None:
    """Raise `DecodeError` unless `blob` is the very body that `ref` names."""
    if len(blob) != ref.size or hashlib.sha256(blob).hexdigest() != ref.sha256:
        raise DecodeError("body-corrupt", f"body {ref.oid} is not what its record names", "git ledger fsck")


def pack(value: Any) -> bytes:
    """Return the body that holds `value`, a tree of maps with string keys, lists, strings, bytes and numbers.

    Raises `DecodeError` where readers would refuse the result.
    """
    import msgpack

    raw: bytes = msgpack.packb(value, use_bin_type=True, unicode_errors="surrogatepass")
    if len(raw) > MAX_BODY_UNPACKED_BYTES:
        raise DecodeError("body-too-large", f"a body of {len(raw)} bytes exceeds the limit", "split the shard")
    blob = bytes([_VERSION]) + zlib.compress(raw, 9)
    unpack(blob)
    return blob


def unpack(blob: bytes) -> Any:
    """Return the value that a body holds; raises `DecodeError`, never another error.

    Refused: an unknown format version, anything but one complete zlib stream of one msgpack value, duplicate keys
    and keys that are not strings, extension types, and whatever exceeds the limits. (A timestamp, which msgpack
    decodes by itself, is left to the decoders of each kind: none takes one.)
    """
    import msgpack

    raw = _inflate(blob)
    items = 0

    def count(values: list[Any]) -> list[Any]:
        nonlocal items
        items += len(values)
        if items > MAX_BODY_ITEMS:
            raise DecodeError("body-too-large", f"a body holds more than {MAX_BODY_ITEMS} items")
        return values

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(count(pairs))
        if len(result) != len(pairs):
            raise ValueError("duplicate key")
        return result

    try:
        return msgpack.unpackb(
            raw,
            raw=False,
            strict_map_key=True,
            unicode_errors="surrogatepass",
            list_hook=count if len(raw) > MAX_BODY_ITEMS else None,  # an item takes a byte or more
            object_pairs_hook=unique,
            ext_hook=_no_extension,
            max_array_len=MAX_BODY_LIST,
            max_map_len=MAX_BODY_LIST,
        )
    except DecodeError:
        raise
    except Exception as error:  # msgpack raises a dozen types, ValueError and RecursionError among them
        raise DecodeError(
            "body-corrupt", f"a body is not msgpack as we write it: {type(error).__name__}"
        ) from error


def _inflate(blob: bytes) -> bytes:
    """Return the msgpack bytes of a body, never more than the limit, whatever the stream would expand to."""
    if len(blob) > MAX_BODY_BYTES:
        raise DecodeError("body-too-large", f"a body of {len(blob)} bytes exceeds the limit of {MAX_BODY_BYTES}")
    if not blob or blob[0] != _VERSION:
        raise DecodeError("body-corrupt", "a body of unknown format version", "upgrade git-ledger")
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(blob[1:], MAX_BODY_UNPACKED_BYTES + 1)
    except zlib.error as error:
        raise DecodeError("body-corrupt", f"a body can't be decompressed: {error}", "git ledger fsck") from error
    if len(raw) > MAX_BODY_UNPACKED_BYTES:
        raise DecodeError("body-too-large", f"a body unpacks to more than {MAX_BODY_UNPACKED_BYTES} bytes")
    if not inflate.eof or inflate.unused_data:
        raise DecodeError("body-corrupt", "a body is cut short or has trailing bytes", "git ledger fsck")
    return raw


def _no_extension(code: int, _data: bytes) -> NoReturn:
    raise ValueError(f"extension type {code}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One comparison check of a test (`ledger_check`): its name, whether it held, and bounded detail."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """How one test ended.

    `phase` is the phase that decided a bad outcome (`setup`, `call`, `teardown`, `collect`, or None); duration is
    in nanoseconds over all phases of the last attempt; `attempts` counts runs, reruns included.
    """

    __test__ = False

    node_id: NodeId
    outcome: TestOutcome
    phase: str | None = None
    duration_ns: int = 0
    attempts: int = 1
    checks: tuple[Check, ...] = ()


_OUTCOMES = tuple(TestOutcome)
_PHASES = (None, "setup", "call", "teardown", "collect")
_OUTCOME_PLACES, _PHASE_PLACES = frozenset(range(len(_OUTCOMES))), frozenset(range(len(_PHASES)))
_COLUMNS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Test results in collection order, a column of each field as a body stores them.

    Who judges asks for node ids, counts and what is not as it should be, of thousands that are as they should be.
    So a `TestResult` is made for those alone who go through them one by one. `checks` is empty where no test has
    any; outcomes and phases are places in the lists of those that a body may hold.
    """

    node_ids: tuple[NodeId, ...] = ()
    outcomes: bytes = b""
    phases: bytes = b""
    durations: tuple[int, ...] = ()
    attempts: tuple[int, ...] = ()
    checks: tuple[tuple[Check, ...], ...] = ()
    unit_ns: int = 1

    def __len__(self) -> int:
        return len(self.node_ids)

    def __iter__(self) -> Iterator[TestResult]:
        return iter(_rows(self))

    def counts(self, *, collected: int, deselected: int = 0) -> Counts:
        """Return what `Counts.of` returns of the outcomes."""
        numbers = {outcome.value: self.outcomes.count(place) for place, outcome in enumerate(_OUTCOMES)}
        return Counts(**numbers, collected=collected, deselected=deselected)

    def ended(self, *outcomes: TestOutcome) -> list[NodeId]:
        """Return the ids of the tests that ended in one of these ways."""
        places = [
            place for place, outcome in enumerate(_OUTCOMES) if outcome in outcomes and place in self.outcomes
        ]
        if not places:  # as for most outcomes of most runs
            return []
        return [node_id for node_id, place in zip(self.node_ids, self.outcomes, strict=True) if place in places]

    @property
    def failed_checks(self) -> tuple[str, ...]:
        """The comparison checks that did not hold, as `NODE ID: NAME`."""
        rows = zip(self.node_ids, self.checks, strict=True) if self.checks else ()
        return tuple(f"{node_id}: {one.name}" for node_id, checks in rows for one in checks if not one.passed)


NO_RESULTS = Results()


def encode_tests(results: Sequence[TestResult]) -> bytes:
    """Return the body of test results, in the order given (collection order).

    Durations that are all whole microseconds are written as such, which is where most of the bytes are. Raises
    `DecodeError` for what readers would refuse.
    """
    unit = 1 if any(result.duration_ns % 1000 for result in results) else 1000
    rows = [
        (
            result.node_id,
            _OUTCOMES.index(result.outcome),
            _PHASES.index(result.phase),
            result.duration_ns // unit,
            result.attempts,
            [[check.name, check.passed, check.detail] for check in result.checks],
        )
        for result in results
    ]
    for place, row in enumerate(rows):
        _result(place, row, unit)
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * _COLUMNS
    return pack({"columns": columns, "kind": "tests", "unit_ns": unit})


def decode_tests(blob: bytes) -> tuple[TestResult, ...]:
    """Return the results of a tests body one by one; raises `DecodeError`, never another error."""
    return tuple(decode_results(blob))


def decode_results(blob: bytes) -> Results:
    """Return the results of a tests body; raises `DecodeError`, never another error."""
    value = unpack(blob)
    if not isinstance(value, dict) or value.get("kind") != "tests":
        raise DecodeError("body-corrupt", "$.kind: not a body of test results")
    columns, unit = value.get("columns"), value.get("unit_ns")
    if type(unit) is not int or unit not in (1, 1000):
        raise DecodeError("body-corrupt", "$.unit_ns: expected 1 or 1000")
    if (
        not isinstance(columns, list)
        or len(columns) != _COLUMNS
        or not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns)
    ):
        raise DecodeError("body-corrupt", f"$.columns: expected {_COLUMNS} lists of one length")
    if len(columns[0]) > MAX_TESTS:
        raise DecodeError("body-too-large", f"$.columns: more than {MAX_TESTS} test results")
    checks: Iterable[tuple[Check, ...]] = ()
    if not _are_plain(columns, unit):
        checks = [_result(place, row, unit).checks for place, row in enumerate(zip(*columns, strict=True))]
    node_ids, outcomes, phases, durations, attempts, _ = columns
    return Results(
        node_ids=tuple(node_ids),
        outcomes=bytes(outcomes),
        phases=bytes(phases),
        durations=tuple(durations),
        attempts=tuple(attempts),
        checks=tuple(checks) if any(checks) else (),
        unit_ns=unit,
    )


def _are_plain(columns: list[list[Any]], unit: int) -> bool:
    """Tell, a column at a time, whether every row is one that `_result` takes, and none has checks."""
    node_ids, *numbers, checks = columns
    if any(set(map(type, column)) != {int} for column in numbers) or checks != [[]] * len(checks):
        return False
    outcomes, phases, durations, attempts = numbers
    tries = set(attempts)
    return (
        set(outcomes) <= _OUTCOME_PLACES
        and set(phases) <= _PHASE_PLACES
        and min(durations) >= 0
        and max(durations) <= MAX_INTEGER // unit
        and min(tries) >= 1
        and max(tries) <= MAX_INTEGER
        and _are_node_ids(node_ids)
    )


def _are_node_ids(values: list[Any]) -> bool:
    """Tell whether all are strings that are surely within their limit, with four bytes a character at most."""
    try:
        characters = len("".join(values))
    except TypeError:  # not all of them are strings
        return False
    return 4 * characters <= MAX_NODE_ID_BYTES or 4 * max(map(len, values)) <= MAX_NODE_ID_BYTES


def _rows(of: Results) -> tuple[TestResult, ...]:
    """Return results one by one, filled a field at a time.

    A frozen dataclass sets its fields one by one through `object.__setattr__`; over 100,000 results that is most
    of the time of a merge. The slots' own setters do the same from C.
    """
    rows = tuple(map(object.__new__, repeat(TestResult, len(of))))
    fields: dict[str, Iterable[Any]] = {
        "node_id": of.node_ids,
        "outcome": map(_OUTCOMES.__getitem__, of.outcomes),
        "phase": map(_PHASES.__getitem__, of.phases),
        "duration_ns": map(of.unit_ns.__mul__, of.durations),
        "attempts": of.attempts,
        "checks": of.checks or repeat(()),
    }
    for name, values in fields.items():
        deque(map(vars(TestResult)[name].__set__, rows, values), maxlen=0)
    return rows


def _result(place: int, row: tuple[Any, ...], unit: int) -> TestResult:
    """Return one result; `place` is its number in the columns, for the error's path."""
    node_id, outcome, phase, duration, attempts, checks = row
    if not isinstance(node_id, str) or byte_length(node_id) > MAX_NODE_ID_BYTES:
        fail(f"$.columns[0][{place}]", f"node id: expected a string of at most {MAX_NODE_ID_BYTES} bytes")
    if type(outcome) is not int or not 0 <= outcome < len(_OUTCOMES):
        fail(f"$.columns[1][{place}]", "unknown outcome")
    if type(phase) is not int or not 0 <= phase < len(_PHASES):
        fail(f"$.columns[2][{place}]", "unknown phase")
    if type(duration) is not int or not 0 <= duration * unit <= MAX_INTEGER:
        fail(f"$.columns[3][{place}]", "duration: expected an integer from 0")
    if type(attempts) is not int or not 1 <= attempts <= MAX_INTEGER:
        fail(f"$.columns[4][{place}]", "attempts: expected an integer from 1")
    if not isinstance(checks, list):
        fail(f"$.columns[5][{place}]", "checks: expected a list")
    return TestResult(
        node_id=NodeId(node_id),
        outcome=_OUTCOMES[outcome],
        phase=_PHASES[phase],
        duration_ns=duration * unit,
        attempts=attempts,
        checks=tuple(_check(f"$.columns[5][{place}]", item) for item in checks) if checks else (),
    )


def _check(path: str, item: Any) -> Check:
    match item:
        case [str(name), bool(passed), str(detail)]:
            if byte_length(name) > MAX_TEXT_BYTES or byte_length(detail) > MAX_TEXT_BYTES:
                fail(path, f"a check of more than {MAX_TEXT_BYTES} bytes")
            return Check(name=name, passed=passed, detail=detail)
    fail(path, "checks: expected [name, passed, detail]")


def encode_log(text: str) -> bytes:
    """Return the body of a log excerpt (already bounded and redacted)."""
    return pack({"kind": "log", "text": text})


def decode_log(blob: bytes) -> str:
    """Return the text of a log body; raises `DecodeError`."""
    match unpack(blob):
        case {"kind": "log", "text": str(text)}:
            return text
    raise DecodeError("body-corrupt", "$.kind: not a log body")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Files of the repository that a run was seen to read, and what its tests were collected from (None: unknown).

    Paths from the root, `.` for the root itself.
    """

    paths: tuple[str, ...]
    roots: tuple[str, ...] | None


def encode_inputs(inputs: Inputs) -> bytes:
    """Return the body of what a run read; raises `DecodeError` for what readers would refuse."""
    roots = None if inputs.roots is None else list(inputs.roots)
    blob = pack({"kind": "inputs", "paths": list(inputs.paths), "roots": roots})
    decode_inputs(blob)
    return blob


def decode_inputs(blob: bytes) -> Inputs:
    """Return what an inputs body says; raises `DecodeError`."""
    match unpack(blob):
        case {"kind": "inputs", "paths": [*paths], "roots": ([*_] | None) as roots}:
            for path in (*paths, *(roots or ())):
                if not isinstance(path, str) or byte_length(path) > MAX_TEXT_BYTES:
                    fail("$.paths", f"expected paths of at most {MAX_TEXT_BYTES} bytes")
            return Inputs(paths=tuple(paths), roots=None if roots is None else tuple(roots))
    raise DecodeError("body-corrupt", "$.kind: not a body of observed inputs")


def collection_digest(node_ids: Sequence[str]) -> Digest:
    """Return the digest of a collection as a multiset: SHA-256 over the sorted ids, each preceded by its length.

    The order in which a runner collected, or shuffled, is no part of it.
    """
    # Strings sort as their UTF-8 does, and where all is ASCII they are as long as it.
    text = "".join([f"{len(node_id)}:{node_id}" for node_id in sorted(node_ids)])
    if text.isascii():
        return Digest(hashlib.sha256(text.encode("ascii")).hexdigest())
    raws = sorted([node_id.encode("utf-8", "surrogatepass") for node_id in node_ids])
    return Digest(hashlib.sha256(b"".join([b"%d:%b" % (len(raw), raw) for raw in raws])).hexdigest())
