"""The release check: silence, age, another machine or another commit never pass for evidence."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gitledger.config.schema import LaneConfig, LaneRun
from gitledger.errors import ConfigError
from gitledger.records.capability_match import agrees
from gitledger.records.capability_place import LaneClaim
from gitledger.records.capability_status import ReasonCode
from gitledger.records.capability_work import LayersClaim, QuantizationClaim, model_digest


def codes(world, *, blocking=True):
    return [item.code for item in world.judge().verdict.findings if item.blocks is blocking]


def later(report, **span):
    """Return the same report, made later."""
    timing = report.timing
    move = timedelta(**span)
    times = {"started_at": timing.started_at + move, "finished_at": timing.finished_at + move}
    return replace(report, timing=replace(timing, **times))


def test_a_passed_report_by_the_lanes_signer_passes_its_cell(world, passed):
    record = world.put(passed)
    release = world.judge()
    assert release.verdict.passed
    assert [cell.encode()["record"] for cell in release.cells] == [record]
    assert release.ignored == ()


def test_l01_a_lane_without_a_report_is_missing_and_named(world):
    assert world.cell() == ("missing", "no report on this commit")
    finding = world.judge().verdict.findings[0]
    assert (finding.code, finding.blocks) == ("lane-missing", True)
    assert finding.subject == "gfx1151: m7b layers 0-15 bfloat16 by torch-eager"
    assert finding.remedy == "git ledger doctor --lane gfx1151 --record"


@pytest.mark.parametrize("code", [ReasonCode.DEVICE_BUSY, ReasonCode.DEVICE_ABSENT, ReasonCode.FORWARD_FAILED])
def test_what_did_not_pass_is_said_by_its_own_name_and_blocks(world, reasoned, code):
    world.put(reasoned(code))
    status, detail = world.cell()
    assert status == code.status.value
    assert detail.startswith(code.value)
    assert codes(world) == [f"lane-{status}"]


def test_no_lane_is_no_pass(world):
    world.lanes = {}
    assert codes(world) == ["no-lanes"]
    assert not world.judge().verdict.passed


def test_advisory_lanes_alone_are_no_pass_even_if_green(world, passed):
    world.lanes = {"gfx1151": replace(world.lanes["gfx1151"], required=False)}
    world.put(passed)
    assert world.cell()[0] == "passed"
    assert codes(world) == ["no-lanes"]


def test_an_advisory_lane_is_shown_and_blocks_nothing(world, passed):
    spare = LaneConfig(name="spare", required=False, runs=(LaneRun(model="m7b"),))
    world.lanes = {**world.lanes, "spare": spare}
    world.put(passed)
    assert world.judge().verdict.passed
    assert codes(world, blocking=False) == ["lane-missing"]


# Which report decides.


def test_a_later_pass_decides_and_removes_no_failure(world, passed, reasoned):
    failed = world.put(reasoned(ReasonCode.CRASHED))
    world.put(later(passed, minutes=5))
    assert world.cell()[0] == "passed"
    assert failed in {held.id for held in world.evidence("head").reports}


def test_a_later_failure_takes_an_earlier_pass_away(world, passed, reasoned):
    world.put(passed)
    world.put(later(reasoned(ReasonCode.OUTPUT_MISMATCH), minutes=5))
    assert world.cell()[0] == "failed"


def test_a_tie_fails(world, passed, reasoned):
    world.put(passed)
    world.put(reasoned(ReasonCode.CRASHED))
    assert world.cell()[0] == "failed"


@pytest.mark.parametrize("code", [ReasonCode.DEVICE_BUSY, ReasonCode.DEVICE_ABSENT])
def test_l04_what_came_to_no_answer_takes_nothing_away(world, passed, reasoned, code):
    world.put(passed)
    world.put(later(reasoned(code), minutes=5))
    assert world.cell()[0] == "passed"


def test_a_revoked_pass_fails_and_makes_room_for_no_older_one(world, passed):
    world.put(passed)
    newest = world.put(later(passed, minutes=5))
    world.revoke(newest)
    assert world.cell() == ("failed", "its pass was revoked")


@pytest.mark.parametrize("first", [True, False])
def test_a_revoked_pass_that_another_signer_signed_again_fails(world, passed, first):
    """One run, two records, of which one is revoked: whichever id is the greater, the tie fails."""
    world.lanes = {"gfx1151": replace(world.lanes["gfx1151"], signers=("lab-runner", "alice"))}
    by = ("lab-runner", "alice") if first else ("alice", "lab-runner")
    revoked, _ = (world.put(passed, key=key) for key in by)
    world.revoke(revoked, key=by[0])
    assert world.cell() == ("failed", "its pass was revoked")
    world.put(later(passed, minutes=1), key=by[1])
    assert world.cell()[0] == "passed"


def test_a_revoked_failure_still_blocks(world, reasoned):
    world.revoke(world.put(reasoned(ReasonCode.CRASHED)))
    assert world.cell()[0] == "failed"


def test_a_revocation_by_somebody_else_is_none(world, passed):
    world.revoke(world.put(passed), key="alice")
    assert world.cell()[0] == "passed"


# Whose report counts.


def test_only_the_lanes_signers_certify_it(world, passed):
    record = world.put(passed, key="alice")
    assert world.cell()[0] == "missing"
    assert world.ignored() == {record: "unknown-signer"}


def test_without_signers_of_its_own_a_lane_takes_policys(world, passed):
    world.lanes = {"gfx1151": replace(world.lanes["gfx1151"], signers=None)}
    world.put(passed)
    assert world.cell()[0] == "missing"
    world.put(passed, key="alice")
    assert world.cell()[0] == "passed"


@pytest.mark.parametrize("mode", ["open", "restricted"])
def test_a_lane_that_names_its_signers_takes_no_other_whatever_policy_is_open_to(world, passed, mode):
    """Neither an unsigned report nor one of a forge user who names himself, though policy would take both."""
    world.policy = {"allowed_signers": ("alice",), "signer_mode": mode, "allow_unsigned": mode == "open"}
    record = world.put(passed, key=None)
    assert world.cell()[0] == "missing"
    assert world.ignored() == {record: "unsigned"}


def test_an_unsigned_report_counts_for_nothing(world, passed):
    record = world.put(passed, key=None)
    assert world.cell()[0] == "missing"
    assert world.ignored() == {record: "unsigned"}


def test_a_dirty_run_counts_for_nothing_unless_policy_allows_it(world, passed, reasoned):
    dirty = replace(passed, repo=replace(passed.repo, dirty=True, dirty_paths=("a.py",)))
    record = world.put(dirty)
    assert world.cell()[0] == "missing"
    assert world.ignored() == {record: "dirty"}
    world.policy["allow_dirty"] = True
    assert world.cell()[0] == "passed"


# When and where.


def test_l06_a_pass_on_another_commit_is_stale(world, passed):
    world.put(passed, on="old")
    status, detail = world.cell()
    assert status == "stale"
    assert detail.startswith("passed only on ")
    assert codes(world) == ["lane-stale"]


def test_a_failure_on_another_commit_says_nothing_here(world, reasoned):
    world.put(reasoned(ReasonCode.CRASHED), on="old")
    assert world.cell()[0] == "missing"


def test_a_pass_that_is_too_old_is_stale(world, passed):
    world.policy["max_age_days"] = 7
    world.put(passed)
    world.now = passed.timing.finished_at + timedelta(days=7)
    assert world.cell()[0] == "passed"
    world.now += timedelta(seconds=1)
    assert world.cell() == ("stale", "older than 7 days")


@pytest.mark.parametrize(
    ("field", "declared"),
    [
        ("torch.hip", "6.5"),
        ("torch.version", "2.9.2"),
        ("driver", "6.13"),
        ("device.arch", "gfx1100"),
        ("os.name", "windows"),
        ("runtime.python", "3.13"),
        ("device.colour", "red"),
    ],
)
def test_l06_another_driver_torch_or_card_than_declared_is_mismatched(world, passed, field, declared):
    lane = world.lanes["gfx1151"]
    world.lanes = {"gfx1151": replace(lane, match={**lane.match, field: declared})}
    world.put(passed)
    status, detail = world.cell()
    assert status == "mismatched"
    assert detail.startswith(f"{field}: ")


def test_a_version_stands_for_what_it_begins_and_a_name_only_for_itself():
    assert agrees("torch.hip", "6.4", "6.4.43482-0f2d60242")
    assert agrees("torch.version", "2.9.1", "2.9.1+rocm6.4")
    assert not agrees("torch.hip", "6.4", "6.40.1")
    assert not agrees("torch.hip", "", "6.4")
    assert not agrees("torch.hip", "6.4", None)
    assert not agrees("device.name", "NVIDIA H100", "NVIDIA H100-PCIE")
    assert not agrees("made.up", "x", "x")


def test_l03_a_cpu_run_never_certifies_a_gpu_lane(world, make_cpu):
    """Not even where the lane's declaration would let it: only a lane that says it is a CPU's is one."""
    cpu = {"device.kind": "cpu"}
    report = make_cpu(lane=LaneClaim(id="any", declared=cpu, observed=cpu))
    world.lanes = {"any": LaneConfig(name="any", signers=("lab-runner",), runs=(LaneRun(model="minilm"),))}
    world.put(report)
    assert world.cell() == ("mismatched", "a CPU run, and the lane does not declare device.kind: cpu")
    world.lanes = {"any": replace(world.lanes["any"], match={"device.kind": "cpu"})}
    assert world.cell()[0] == "passed"


def test_a_report_that_repeats_nothing_of_its_lane_was_made_under_no_such_lane(world, passed):
    world.put(replace(passed, lane=LaneClaim(id="gfx1151", declared={}, observed={})))
    status, detail = world.cell()
    assert status == "mismatched"
    assert "repeats nothing of what the lane declares (device.arch, torch.hip, os.name)" in detail


@pytest.mark.parametrize("name", ["HSA_OVERRIDE_GFX_VERSION", "HSA_OVERRIDE_GFX_VERSION_0"])
def test_an_architecture_that_a_variable_told_the_device_to_have_is_none_that_was_observed(world, passed, name):
    """Any card of AMD's passes for gfx1151 by it; a lane that has to live with that is told by the card's name."""
    world.put(replace(passed, overrides={name: "11.5.1"}))
    assert world.cell() == ("mismatched", f"device.arch: declared gfx1151, told by {name}=11.5.1 and by no device")
    lane = world.lanes["gfx1151"]
    world.lanes = {"gfx1151": replace(lane, match={"device.name": "AMD Radeon 8060S"})}
    assert world.cell()[0] == "passed"


def test_a_lane_that_names_an_empty_list_of_signers_is_named(world, passed):
    world.lanes = {"gfx1151": replace(world.lanes["gfx1151"], signers=())}
    world.put(passed)
    with pytest.raises(ConfigError, match=r"lanes\.gfx1151\.signers is empty") as caught:
        world.judge()
    assert caught.value.code == "no-signers"
    assert "leave it out for policy's" in caught.value.hint


# Which cell a report answers: by what was asked for.


@pytest.mark.parametrize(
    "changes",
    [
        {"layers": LayersClaim(start=0, end=14, total=32)},
        {"layers": LayersClaim(start=1, end=15, total=32)},
        {"layers": LayersClaim(start=0, end=31, total=32)},
        {"quantization": QuantizationClaim(requested="auto", resolved="bfloat16", compute_dtype="bfloat16")},
    ],
)
def test_l07_a_report_of_other_layers_or_another_quantization_answers_nothing(world, passed, changes):
    world.put(replace(passed, **changes))
    assert world.cell()[0] == "missing"
    assert codes(world, blocking=False) == ["lane-unexpected"]


def test_another_model_recipe_or_lane_answers_nothing(world, passed):
    model = replace(passed.model, requested="m13b")
    recipe = replace(passed.recipe, id="other-recipe")
    for changed in ({"model": model}, {"recipe": recipe}, {"lane": replace(passed.lane, id="gfx1100")}):
        world.put(replace(passed, **changed))
    assert world.cell()[0] == "missing"
    assert codes(world, blocking=False) == ["lane-unexpected"] * 3


def test_l07_the_whole_model_is_every_layer_and_no_less(world, passed):
    lane = world.lanes["gfx1151"]
    run = LaneRun(model="m7b", quantization="bfloat16")
    world.lanes = {"gfx1151": replace(lane, runs=(run,))}
    world.put(replace(passed, layers=LayersClaim(start=0, end=30, total=32)))
    assert world.cell()[0] == "missing"
    world.put(replace(passed, layers=LayersClaim(start=0, end=31, total=32)))
    assert world.cell()[0] == "passed"


def test_a_failure_before_the_layers_were_known_answers_for_the_whole_model(world, reasoned):
    lane = world.lanes["gfx1151"]
    world.lanes = {"gfx1151": replace(lane, runs=(LaneRun(model="m7b", quantization="bfloat16"),))}
    unresolved = LayersClaim(start=0, end=None, total=None)
    world.put(reasoned(ReasonCode.LOAD_FAILED, layers=unresolved))
    assert world.cell()[0] == "failed"


def test_every_cell_of_a_lane_is_asked_by_itself(world, passed):
    lane = world.lanes["gfx1151"]
    first = lane.runs[0]
    runs = (replace(first, recipes=("torch-eager", "torch-compile")), replace(first, layers=(16, 31)))
    world.lanes = {"gfx1151": replace(lane, runs=runs)}
    world.put(passed)
    shown = [(cell.cell.layers, cell.cell.recipe, cell.status.value) for cell in world.judge().cells]
    assert shown == [
        ((0, 15), "torch-eager", "passed"),
        ((0, 15), "torch-compile", "missing"),
        ((16, 31), "torch-eager", "missing"),
    ]
    assert not world.judge().verdict.passed


@pytest.mark.parametrize("difference", ["weights", "depth"])
def test_two_models_under_one_name_certify_no_lane(world, passed, difference):
    """Layers 0-15 of one model and 16-31 of another are no model, though each cell passes by itself."""
    lane = world.lanes["gfx1151"]
    runs = (lane.runs[0], replace(lane.runs[0], layers=(16, 31)))
    world.lanes = {"gfx1151": replace(lane, runs=runs)}
    second = replace(passed, layers=LayersClaim(start=16, end=31, total=32))
    if difference == "weights":
        files = (replace(passed.model.files[0], size=613), *passed.model.files[1:])
        second = replace(second, model=replace(passed.model, files=files, digest=model_digest(files)))
    else:
        second = replace(second, layers=LayersClaim(start=16, end=31, total=48))
    world.put(passed)
    world.put(second)
    assert [cell.status.value for cell in world.judge().cells] == ["passed", "passed"]
    assert codes(world) == ["lane-model-differs"]
    world.lanes = {"gfx1151": replace(world.lanes["gfx1151"], required=False)}
    assert codes(world, blocking=False) == ["lane-model-differs"]


def test_two_models_under_one_name_certify_no_two_lanes(world, passed):
    """The second lab has something smaller under that name, and each lane passes by itself."""
    lane = world.lanes["gfx1151"]
    world.lanes = {"gfx1151": lane, "other": replace(lane, name="other")}
    files = (replace(passed.model.files[0], size=613), *passed.model.files[1:])
    other = replace(passed.model, files=files, digest=model_digest(files))
    world.put(passed)
    second = replace(passed, lane=replace(passed.lane, id="other"))
    world.put(second)
    assert codes(world) == []
    world.put(later(replace(second, model=other), minutes=1))
    assert [cell.status.value for cell in world.judge().cells] == ["passed", "passed"]
    (finding,) = world.judge().verdict.findings
    assert (finding.code, finding.subject, finding.blocks) == ("lane-model-differs", "gfx1151, other: m7b", True)
    assert finding.remedy == "git ledger doctor --lane other --record"
    world.lanes["other"] = replace(world.lanes["other"], required=False)
    assert codes(world) == []
    assert codes(world, blocking=False) == ["lane-model-differs"]


def test_the_lanes_record_is_made_of_evidence(world, passed):
    world.put(passed)
    evidence = world.judge().cells[0].encode()["evidence"]
    assert evidence["device"]["arch"] == "gfx1151"
    assert evidence["torch"]["version"] == "2.9.1+rocm6.4"
    assert evidence["finished_at"] == "2026-01-31T12:00:04.250000Z"
    assert evidence["signer"] == "lab-runner"
    assert evidence["model"]["digest"] == passed.model.digest


# What can't be read.


def test_what_the_lanes_signer_signed_and_we_cannot_read_blocks(world, passed):
    world.put(passed)
    world.put_predicate({"report": {"schema": "gitledger-capability/9"}})
    assert codes(world) == ["undecodable"]


def test_what_nobody_trusted_signed_and_we_cannot_read_blocks_nobody(world, passed):
    world.put(passed)
    world.put_predicate({"report": {}}, key="mallory")
    assert world.judge().verdict.passed
