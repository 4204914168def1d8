"""Dishonest and broken reports, each refused for its own reason.

The first table is what no report can say: its JSON is signed by the lane's own runner, with a content digest that
is right, and still the release check can't be made to read it as a pass. The second is what a report may well say
and that does not count where it was put.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from dataclasses import replace
from datetime import timedelta

import pytest

from gitledger.errors import DecodeError
from gitledger.records.capability import CapabilityReport
from gitledger.records.capability_work import FileClaim, LayersClaim, ModelClaim, model_digest


def put(document, path, value):
    *parents, last = path.split(".")
    for key in parents:
        document = document[key]
    if value is ...:
        del document[last]
    else:
        document[last] = value


def weights(sha256, size):
    """A model of one file, with a digest that is right."""
    files = (FileClaim(name="model.safetensors", sha256=sha256, size=size),)
    return ModelClaim(requested="m7b", resolved="m7b", files=files, digest=model_digest(files)).encode()


IMPOSSIBLE = {
    "pass without a forward": ({"forward.executed": False}, "a pass without an executed forward"),
    "pass with NaN in the output": ({"forward.finite": False}, "output is not finite"),
    "pass that never looked at its output": ({"forward.finite": None}, "output is not finite"),
    "pass with an empty output": ({"forward.output_shape": [1, 0, 384]}, "a pass without output"),
    "pass without an output's digest": ({"forward.output_digest": None}, r"output_digest.*does not say"),
    "a tolerance of its own": ({"forward.reference.tolerance": 0.9}, "is held to 0.05"),
    "a recipe of others that zeros would pass": (
        {"recipe.id": "liar", "forward.reference.tolerance": 1e9, "forward.reference.error": 1.0},
        "zeros would pass",
    ),
    "computed in another type than the recipe's": (
        {"quantization.compute_dtype": "float32"},
        "where torch-eager computes bfloat16 in bfloat16",
    ),
    "a quantization that the recipe does not take": (
        {"quantization.requested": "int8", "quantization.resolved": "int8"},
        "which torch-eager does not take",
    ),
    "another seed": ({"forward.reference.seed": 1}, "is always drawn from"),
    "a torch for the CPU under a GPU claim": ({"torch.version": "2.13.0+cpu"}, "computes on no hip"),
    "duration 0": ({"timing.duration_ms": 0.0}, "a forward takes time"),
    "duration negative": ({"timing.duration_ms": -3.5}, "expected at least 0"),
    "duration as an integer": ({"timing.duration_ms": 5}, "expected a real number"),
    "duration absent": ({"timing.duration_ms": None}, "a forward takes time"),
    "forward longer than the run": ({"timing.duration_ms": 9e9}, "ms of a run that took"),
    "no stage at all": ({"timing.stages": {}}, "no import: a pass goes through"),
    "a stage that took no time": ({"timing.stages.reference": 0.0}, "no reference: a pass goes through"),
    "a duration beyond its stage": ({"timing.duration_ms": 80.5}, "ms of a forward stage that took 71.75"),
    "a duration of another forward": (
        {"timing.duration_ms": 0.001, "timing.stages.forward": 1200.5, "timing.stages.prepare": 1300.5},
        "ms, of which 0.001 are told of",
    ),
    "a forward that preparing had no time for": (
        {"timing.stages.prepare": 12.5},
        "which it is the end of, took 12.5",
    ),
    "stages longer than the run": ({"timing.stages.load": 4000.5}, "ms one after the other, in a run that took"),
    "finished before it started": (
        {"timing.finished_at": "2026-01-31T11:00:00Z"},
        "lies before started_at",
    ),
    "output on the CPU under a GPU claim": ({"forward.output_device": "cpu"}, "where device.used is cuda:0"),
    "everything on the CPU under a GPU claim": (
        {"forward.output_device": "cpu", "device.used": "cpu"},
        "on a device that is called hip",
    ),
    "a CPU lane's kind, asked for as a GPU": (
        {
            "forward.output_device": "cpu",
            "device.used": "cpu",
            "device.kind": "cpu",
        },
        "where gpu was asked for",
    ),
    "a ROCm device under a CUDA build": (
        {"torch.hip": None, "torch.cuda": "12.4", "lane.declared": {}, "lane.observed": {}},
        "none, on a device that is called hip",
    ),
    "observed values that are not its own": (
        {"lane.observed.device.arch": "gfx1100"},
        "not what this very report",
    ),
    "a lane's declaration under no lane": ({"lane.id": None}, "under no lane"),
    "the processor's architecture under a GPU claim": (
        {"device.arch": "x86_64", "lane.declared": {}, "lane.observed": {}},
        "that is the machine's processor",
    ),
    "an architecture of another maker": (
        {"device.arch": "sm_90", "lane.declared": {}, "lane.observed": {}},
        "no architecture of hip",
    ),
    "no driver under a GPU claim": ({"driver": None}, "none, beside a pass on hip"),
    "another device than the one that was used": ({"device.index": 1}, "1, where device.used is cuda:0"),
    "no device of that number": (
        {"device.index": 3, "device.used": "cuda:3", "forward.output_device": "cuda:3"},
        "1, with a device of index 3",
    ),
    "a GPU without memory": ({"device.total_memory_bytes": None}, "without name or memory"),
    "an output's digest of zeros": ({"forward.output_digest": "0" * 64}, "output_digest: 00000000…"),
    "a reference's digest of zeros": ({"forward.reference.output_digest": "0" * 64}, "reference.output_digest: 0"),
    "inputs of zeros": ({"forward.reference.inputs_digest": "0" * 64}, "inputs_digest: 00000000…"),
    "an output's digest of no bytes": (
        {"forward.output_digest": hashlib.sha256().hexdigest()},
        "output_digest: e3b0c442…",
    ),
    "a recipe of others with a digest of zeros": (
        {"recipe.id": "house", "recipe.digest": "0" * 64},
        "recipe.digest: 00000000…",
    ),
    "an output narrower than what was computed in": (
        {
            "quantization": {"requested": "float32", "resolved": "float32", "compute_dtype": "float32"},
            "forward.reference.tolerance": 1e-4,
            "forward.reference.error": 4.2e-05,
        },
        "bfloat16, where torch-eager computes in float32",
    ),
    "an output that is no number with a point": ({"forward.output_dtype": "int64"}, "only floating outputs"),
    "outputs of one digest and two types": (
        {"forward.output_digest": hashlib.sha256(b"reference").hexdigest()},
        "the reference's, which is float32",
    ),
    "an error between outputs of one digest": (
        {"forward.output_digest": hashlib.sha256(b"reference").hexdigest(), "forward.output_dtype": "float32"},
        "0.0042, between outputs of one digest",
    ),
    "no error between outputs of two digests": (
        {"forward.reference.error": 0.0, "forward.output_dtype": "float32"},
        "0.0, between outputs of two digests",
    ),
    "half-open layers": ({"layers.end_inclusive": False}, "half-open"),
    "one layer too many": ({"layers.end": 32}, "layer 32 of 32"),
    "layers backwards": ({"layers.start": 9, "layers.end": 8}, "lies before start"),
    "layers never resolved": ({"layers.end": None}, r"layers\.end.*does not say"),
    "a layer that is true": ({"layers.start": True}, "expected an integer"),
    "quantization never resolved": ({"quantization.resolved": "auto"}, "auto is a question"),
    "another quantization than asked for": ({"quantization.resolved": "float16"}, "where bfloat16 was asked for"),
    "held against nothing": ({"forward.reference": None}, "held against nothing"),
    "error above the tolerance": ({"forward.reference.error": 0.06}, "above the tolerance"),
    "reference on the device itself": ({"forward.reference.device": "cuda"}, "expected one of cpu"),
    "status that does not follow": ({"status": "skipped"}, "complete and pass are passed"),
    "skipped and passed at once": ({"execution": "skipped"}, "can't come with result pass"),
    "a reason beside a pass": (
        {"reason": {"code": "timeout", "message": "", "stage": "forward"}},
        "timeout, beside a pass",
    ),
    "failed without a reason": ({"result": "fail", "status": "failed"}, "expected a reason for failed"),
    "failed for a reason to skip": (
        {
            "result": "fail",
            "status": "failed",
            "reason": {"code": "device-absent", "message": "", "stage": "device"},
        },
        "expected a reason for failed; found device-absent",
    ),
    "a reason that is none": (
        {"result": "fail", "status": "failed", "reason": {"code": "bad-luck", "message": "", "stage": ""}},
        "expected one of forward-failed",
    ),
    "an unknown key": ({"passed": True}, "unknown key 'passed'"),
    "an unknown key below": ({"device.serial": "123"}, "unknown key 'serial'"),
    "a key left out": ({"driver": ...}, "driver: missing"),
    "another schema": ({"schema": "gitledger-capability/2"}, "expected gitledger-capability/1"),
    "weights with a digest of zeros": ({"model": weights("0" * 64, 9)}, "not the digest of 9 bytes"),
    "weights with the digest of no bytes": (
        {"model": weights(hashlib.sha256().hexdigest(), 9)},
        "e3b0c442…: not the digest of 9 bytes",
    ),
    "a model without a byte": ({"model": weights(hashlib.sha256().hexdigest(), 0)}, "a model without a byte"),
    "another model than the pinned one": (
        {"model.requested": "m7b@sha256:" + "7" * 64},
        "not the 77777777… that was asked for",
    ),
    "model files of another digest": ({"model.digest": "0" * 64}, "not the digest of the files"),
    "a model nobody named": ({"model.requested": None}, "a model is named"),
    "a time that is none": ({"timing.started_at": "yesterday"}, "RFC 3339"),
    "a time in a second spelling": ({"timing.started_at": "2026-01-31T12:00:00.2500Z"}, "written differently"),
    "dirty paths on a clean tree": ({"repo.dirty_paths": ["a.py"]}, "false, beside dirty paths"),
    "an excerpt beyond its bound": ({"log_excerpt": "x" * 8193}, "8193 bytes, more than the limit"),
}


def told(passed, changes):
    document = json.loads(passed.to_json())
    for path, value in changes.items():
        if path.startswith("lane.observed."):
            document["lane"]["observed"][path.removeprefix("lane.observed.")] = value
        else:
            put(document, path, value)
    return document


@pytest.mark.parametrize("name", list(IMPOSSIBLE))
def test_no_report_can_say(passed, world, redigested, name):
    changes, reason = IMPOSSIBLE[name]
    text = redigested(told(passed, changes))
    with pytest.raises(DecodeError, match=reason):
        CapabilityReport.from_json(text)
    world.put_predicate({"report": json.loads(text)})
    release = world.judge()
    assert not release.verdict.passed
    assert "undecodable" in {finding.code for finding in release.verdict.findings}


ON_THE_PROCESSOR = {
    "another architecture than the machine's": ({"device.arch": "sm_90"}, "on the processor of a machine"),
    "a GPU's driver": ({"driver": "570.86"}, "for a run on the processor"),
    "a GPU's number": ({"device.index": 0}, "0, of a processor"),
}


@pytest.mark.parametrize("name", list(ON_THE_PROCESSOR))
def test_no_report_of_a_cpu_can_say(on_cpu, redigested, name):
    changes, reason = ON_THE_PROCESSOR[name]
    with pytest.raises(DecodeError, match=reason):
        CapabilityReport.from_json(redigested(told(on_cpu, changes)))


def test_outputs_without_a_difference_are_an_honest_pass(on_cpu):
    reference = replace(on_cpu.forward.reference, output_digest=on_cpu.forward.output_digest, error=0.0)
    report = replace(on_cpu, forward=replace(on_cpu.forward, reference=reference))
    assert CapabilityReport.from_json(report.to_json()) == report


def test_there_are_enough_of_them_and_each_has_a_reason_of_its_own(passed, redigested):
    reasons = set()
    for changes, _ in IMPOSSIBLE.values():
        with pytest.raises(DecodeError) as caught:
            CapabilityReport.from_json(redigested(told(passed, changes)))
        reasons.add(caught.value.message)
    assert len(IMPOSSIBLE) >= 25
    assert len(reasons) >= len(IMPOSSIBLE) - 3  # a few differ only in the value that they lie about


def test_an_edited_field_shows_in_the_digest_of_the_content(passed):
    document = json.loads(passed.to_json())
    document["driver"] = "6.12.13"
    with pytest.raises(DecodeError, match="a field was edited"):
        CapabilityReport.from_json(json.dumps(document))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_duration_that_is_no_number(passed, word):
    text = passed.to_json().replace("71.625", word)
    with pytest.raises(DecodeError, match=r"duration_ms: .*(is not JSON|out of range)"):
        CapabilityReport.from_json(text)
    assert math.isfinite(passed.timing.duration_ms)


def test_a_key_that_stands_there_twice(passed):
    text = passed.to_json().replace('"status":"passed"', '"status":"failed","status":"passed"')
    with pytest.raises(DecodeError, match="duplicate key 'status'"):
        CapabilityReport.from_json(text)


# What a report may say, and where it does not count. Each is signed as it stands.


def test_another_commits_report_pasted_here_is_misplaced(world, passed):
    record = world.put(passed, on="old", at="head")
    assert world.cell()[0] == "missing"
    assert world.ignored()[record].startswith("misplaced: it is about commit")


def test_another_trees_report_is_misplaced(world, passed):
    record = world.put(passed, tree=hashlib.sha1(b"other").hexdigest())
    assert world.cell()[0] == "missing"
    assert world.ignored() == {record: "misplaced"}


def test_a_report_of_another_tree_than_its_statement_is_unreadable(world, passed, redigested):
    document = json.loads(passed.to_json())
    document["repo"]["tree"] = hashlib.sha1(b"other").hexdigest()
    world.put_predicate({"report": json.loads(redigested(document))})
    assert [finding.code for finding in world.judge().verdict.findings] == ["lane-missing", "undecodable"]


def test_an_edited_record_is_a_bad_signature(world, passed):
    world.put(passed)
    line = json.loads(world.lines["head"].pop())
    line["payload"] = line["payload"][:-8] + "AAAAfX0="
    world.lines["head"].append(json.dumps(line, separators=(",", ":"), sort_keys=True).encode())
    assert world.cell()[0] == "missing"


def test_a_report_of_another_repository_is_foreign(world, passed):
    record = world.put_predicate({"report": passed.fields(), "repository": "theirs"})
    assert world.ignored()[record] == "other-repository"
    assert world.cell()[0] == "missing"


def test_a_future_date_is_refused(world, passed):
    moved = replace(
        passed.timing,
        started_at=world.now + timedelta(hours=1),
        finished_at=world.now + timedelta(hours=2),
    )
    record = world.put(replace(passed, timing=moved))
    assert world.ignored() == {record: "future"}
    assert world.cell()[0] == "missing"


def test_a_run_from_before_its_commit_existed_is_refused(world, passed):
    moved = replace(passed.timing, started_at=passed.timing.started_at - timedelta(hours=1))
    record = world.put(replace(passed, timing=moved))
    assert world.ignored() == {record: "before-commit"}
    assert world.cell()[0] == "missing"


def test_a_signer_who_is_not_the_lanes_is_refused(world, passed):
    record = world.put(passed, key="alice")
    assert world.ignored() == {record: "unknown-signer"}


def test_another_model_under_the_lanes_name_answers_nothing(world, passed):
    world.put(replace(passed, model=replace(passed.model, requested="tiny")))
    assert world.cell()[0] == "missing"


def test_fewer_layers_than_declared_answer_nothing(world, passed):
    world.put(replace(passed, layers=LayersClaim(start=0, end=0, total=32)))
    assert world.cell()[0] == "missing"


def test_a_failure_with_an_odd_date_still_blocks(world, reasoned):
    from gitledger.records.capability_status import ReasonCode

    failed = reasoned(ReasonCode.CRASHED)
    moved = replace(
        failed.timing,
        started_at=world.now + timedelta(hours=1),
        finished_at=world.now + timedelta(hours=2),
    )
    world.put(replace(failed, timing=moved))
    assert world.cell()[0] == "failed"


def test_two_copies_of_one_report_are_one(world, passed):
    world.put(passed)
    world.lines["head"].append(copy.copy(world.lines["head"][0]))
    assert world.cell()[0] == "passed"
