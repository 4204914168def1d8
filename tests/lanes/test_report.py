"""A capability report: byte for byte the same when read and written, and nothing else is one."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitledger.errors import DecodeError
from gitledger.records.capability import CapabilityReport, decode_reports, encode_reports
from gitledger.records.capability_place import OsClaim
from gitledger.records.capability_record import CapabilityRecord
from gitledger.records.capability_status import (
    REASONS,
    Execution,
    ReasonCode,
    Result,
    Status,
    status_of,
)
from gitledger.records.capability_work import FileClaim, ForwardClaim, ReasonClaim, TimingClaim, model_digest
from gitledger.records.ids import digest
from gitledger.records.statement import Statement
from gitledger.report.codes import read_codes


def test_a_pass_and_every_reason_come_back_byte_for_byte(passed, on_cpu, reasoned):
    for report in (passed, on_cpu, *(reasoned(code) for code in ReasonCode)):
        text = report.to_json()
        again = CapabilityReport.from_json(text)
        assert again == report
        assert again.to_json() == text
        assert CapabilityReport.from_json(json.dumps(json.loads(text), indent=2)) == report


def test_every_field_of_the_contract_is_in_the_report(passed):
    document = json.loads(passed.to_json())
    assert {key: set(document[key]) for key in ("device", "torch", "layers", "timing", "quantization")} == {
        "device": {"kind", "name", "arch", "index", "count", "total_memory_bytes", "requested", "used"},
        "torch": {"version", "git", "cuda", "hip"},
        "layers": {"start", "end", "end_inclusive", "total"},
        "timing": {"started_at", "finished_at", "duration_ms", "stages"},
        "quantization": {"requested", "resolved", "compute_dtype"},
    }
    assert document["layers"]["end_inclusive"] is True
    assert set(document["forward"]) == {
        "executed",
        "output_shape",
        "output_dtype",
        "output_device",
        "finite",
        "output_digest",
        "reference",
    }
    assert set(document["model"]) == {"requested", "resolved", "files", "digest"}
    assert set(document["lane"]) == {"id", "declared", "observed"}
    assert document["status"] == "passed"


def test_four_pairs_of_execution_and_result_are_legal_and_five_are_not():
    legal = {}
    for execution in Execution:
        for result in Result:
            try:
                legal[execution.value, result.value] = status_of(execution, result).value
            except ValueError:
                continue
    assert legal == {
        ("complete", "pass"): "passed",
        ("complete", "fail"): "failed",
        ("error", "not_applicable"): "inconclusive",
        ("skipped", "not_applicable"): "skipped",
    }


FAILED = {
    *("forward-failed", "load-failed", "out-of-memory", "output-invalid", "output-mismatch", "device-mismatch"),
    *("arch-unsupported", "quantization-unsupported", "layers-out-of-range", "artifact-mismatch"),
    *("model-mismatch", "timeout", "crashed"),
}
INCONCLUSIVE = {
    *("device-busy", "artifact-unavailable", "dependency-missing"),
    *("permission-denied", "interrupted", "internal-error"),
}
SKIPPED = {"model-not-configured", "device-absent", "recipe-not-applicable", "disabled-by-policy"}


def test_the_reason_codes_are_the_closed_list_of_the_design():
    assert {status.value: sorted(codes) for status, codes in REASONS.items()} == {
        "passed": [],
        "failed": sorted(FAILED),
        "inconclusive": sorted(INCONCLUSIVE),
        "skipped": sorted(SKIPPED),
    }
    for code in ReasonCode:
        assert status_of(*code.pair) is code.status


@pytest.mark.parametrize("code", list(ReasonCode))
def test_a_reason_stands_beside_its_own_status_and_no_other(reasoned, code):
    report = reasoned(code)
    assert report.status is code.status
    for other in ReasonCode:
        if other.status is not code.status:
            execution, result = other.pair
            with pytest.raises(DecodeError, match=r"\$\.reason"):
                replace(report, execution=execution, result=result)


# Whatever is legal comes back; whatever is not is refused, and nothing but a DecodeError comes of it.

texts = st.text(max_size=20)
maybe = st.none() | texts


@st.composite
def reports(draw: st.DrawFn, base: CapabilityReport) -> CapabilityReport:
    """Any report: strings with every character, times to the microsecond, floats of any size."""
    started = draw(
        st.integers(0, 10**17).map(
            lambda number: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=number % (3 * 10**15))
        )
    )
    span = timedelta(microseconds=draw(st.integers(10_000_000, 10_000_000_000)))
    positive = st.floats(min_value=1e-9, max_value=1_000, allow_nan=False)
    duration, others = draw(positive), draw(st.dictionaries(texts, positive, max_size=4))
    passed = {"import": draw(positive), "load": 1.5, "reference": draw(positive)}
    files = tuple(
        FileClaim(name=name, sha256=digest(f"{len(name):064x}"), size=draw(st.integers(1, 1 << 50)))
        for name in sorted(draw(st.sets(st.text(min_size=1, max_size=8), min_size=1, max_size=4)))
    )
    report = replace(
        base,
        timing=TimingClaim(
            started_at=started,
            finished_at=started + span,
            duration_ms=duration,
            stages=others | passed | {"forward": duration * 1.25, "prepare": duration * 2.5},
        ),
        model=replace(base.model, files=files, digest=model_digest(files), resolved=draw(texts)),
        overrides=draw(st.dictionaries(texts, texts, max_size=3)),
        log_excerpt=draw(st.text(max_size=200)),
    )
    code = draw(st.none() | st.sampled_from(list(ReasonCode)))
    if code in (None, ReasonCode.MODEL_NOT_CONFIGURED, ReasonCode.LAYERS_OUT_OF_RANGE):
        return report
    execution, result = code.pair
    return replace(
        report,
        execution=execution,
        result=result,
        reason=ReasonClaim(code=code, message=draw(texts), stage=draw(texts)),
        forward=ForwardClaim.none(),
        driver=draw(maybe),
        os=OsClaim(name="linux", version=draw(maybe), kernel=draw(texts), machine=draw(texts)),
    )


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_report_comes_back_byte_for_byte(passed, data):
    report = data.draw(reports(passed))
    text = report.to_json()
    assert CapabilityReport.from_json(text) == report
    assert CapabilityReport.from_json(text.encode()).to_json() == text


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every object, list and leaf of a document."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        found += leaves(child, (*path, key))
    return found


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a document with one value replaced; `...` takes it out."""
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


def test_every_single_field_is_needed_and_none_may_be_edited(passed):
    document = json.loads(passed.to_json())
    for path in leaves(document):
        if not isinstance(path[-1], int):
            with pytest.raises(DecodeError):
                CapabilityReport.from_json(json.dumps(changed(document, path, ...)))
        for value in ("edited", 7, 7.5, True, None, [], {}):
            edited = changed(document, path, value)
            if edited != document:
                with pytest.raises(DecodeError):
                    CapabilityReport.from_json(json.dumps(edited))


def test_a_key_that_is_not_known_is_refused_wherever_it_stands(passed, redigested):
    document = json.loads(passed.to_json())
    objects = [(), *(path for path in leaves(document) if isinstance(at(document, path), dict))]
    free = {("overrides",), ("timing", "stages")}
    for path in objects:
        if path in free:
            continue
        copy = json.loads(json.dumps(document))
        at(copy, path)["extra"] = "x"
        with pytest.raises(DecodeError, match=r"unknown key 'extra'|extra: missing"):
            CapabilityReport.from_json(redigested(copy))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nothing_but_a_decode_error_comes_of_a_report_with_one_value_replaced(passed, redigested, data):
    document = json.loads(passed.to_json())
    path = data.draw(st.sampled_from(leaves(document)))
    value = data.draw(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | texts,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
            max_leaves=4,
        )
    )
    text = redigested(changed(document, path, value))
    with suppress(DecodeError):
        report = CapabilityReport.from_json(text)
        assert CapabilityReport.from_json(report.to_json()) == report


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_bytes_that_are_no_report_are_refused_in_one_way(data):
    for read in (CapabilityReport.from_json, decode_reports):
        with pytest.raises(DecodeError):
            read(data)


def test_a_file_holds_one_report_as_an_object_and_several_as_a_list(passed, on_cpu):
    assert json.loads(encode_reports([passed])) == json.loads(passed.to_json())
    assert decode_reports(encode_reports([passed]).encode()) == (passed,)
    assert list(json.loads(encode_reports([passed, on_cpu]))) == ["reports"]
    assert decode_reports(encode_reports([passed, on_cpu]).encode()) == (passed, on_cpu)


def test_a_file_without_a_report_is_no_evidence():
    assert json.loads(encode_reports([])) == {"reports": []}
    with pytest.raises(DecodeError, match="no report"):
        decode_reports(encode_reports([]).encode())


def test_a_record_is_about_the_commit_that_its_report_names(passed):
    record = CapabilityRecord(repository="demo", report=passed, signer=None)
    statement = Statement.decode(record.encode())
    assert CapabilityRecord.decode(statement) == record
    elsewhere = replace(statement, subject=replace(statement.subject, commit="0" * 40))
    with pytest.raises(DecodeError, match="not the subject's"):
        CapabilityRecord.decode(elsewhere)


def test_status_words_are_those_of_the_release_view():
    assert [status.value for status in Status] == ["passed", "failed", "inconclusive", "skipped"]
    assert [status.value for status in Status if status.is_conclusive] == ["passed", "failed"]


def test_every_reason_is_explained():
    explained = {code for code, entry in read_codes().items() if "report" in entry.kinds}
    assert explained == {code.value for code in ReasonCode}
