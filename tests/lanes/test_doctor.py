"""The doctor without a torch: what it refuses, what it supervises, and what it leaves behind.

A torch that crashes, hangs or is missing is an everyday thing on the machines that lanes are made of; each test
starts a real process that does so. What needs a torch that works is in test_real_doctor.py.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gitledger.config.schema import Config, LaneConfig, LaneRun
from gitledger.errors import LedgerError
from gitledger.lanes.supervise import World
from gitledger.records.capability import CapabilityReport, decode_reports, encode_reports
from gitledger.records.capability_place import LaneClaim
from gitledger.records.capability_work import LayersClaim
from gitledger.suites import lane_check
from gitledger.workflows.doctor_tasks import AskedOfDoctor, tasks_of


def one(lab, *args, expect, env=None):
    """Return the one report of a doctor that exits as expected."""
    done = lab.ledger("doctor", "--json", *args, expect=expect, env=env)
    document = done.document
    assert document["exit_status"] == expect
    (report,) = document["reports"]
    return CapabilityReport.decode(report)


def test_l01_without_a_model_it_is_skipped_and_says_so(lab):
    report = one(lab, expect=77)
    assert (report.status, report.reason.code) == ("skipped", "model-not-configured")
    assert report.model.requested is None
    done = lab.ledger("doctor", expect=77)
    assert "0 passed, 0 failed, 0 inconclusive, 1 skipped" in done.err
    lanes = lab.ledger("lanes", expect=1)
    assert "cpu  tiny  0-1  auto  torch-eager  missing  required  no report on this commit" in lanes.out
    assert "try: git ledger doctor --lane cpu --record" in lanes.out


def test_without_torch_it_comes_to_no_answer(lab, torch_that):
    missing = torch_that("raise ModuleNotFoundError(\"No module named 'torch'\")")
    report = one(lab, "--model", "tiny", expect=99, env=missing)
    assert (report.status, report.reason.code) == ("inconclusive", "dependency-missing")
    assert "pip install 'git-ledger[lanes]'" in report.reason.message
    assert report.runtime.python == sys.version.split()[0]
    assert [file.name for file in report.model.files] == ["config.json", "model.safetensors"]


CRASHES = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "crashed", "ended by SIGKILL"),
    "exit": ("os._exit(3)", "crashed", "ended with status 3"),
    "silent exit": ("os._exit(0)", "crashed", "without a result"),
    "no memory": ("raise MemoryError()", "out-of-memory", "MemoryError"),
}


@pytest.mark.parametrize("name", list(CRASHES))
def test_l05_however_its_process_ends_there_is_a_report(lab, torch_that, name):
    code, reason, words = CRASHES[name]
    report = one(lab, "--model", "tiny", expect=1, env=torch_that(code))
    assert report.reason.code == reason
    assert words in report.reason.message
    assert report.reason.stage == "import"


def test_l05_a_recipe_that_hangs_is_ended_in_time(lab, torch_that):
    hang = torch_that("print('stuck', flush=True)\ntime.sleep(600)")
    began = time.monotonic()
    report = one(lab, "--model", "tiny", "--timeout", "1s", expect=1, env=hang)
    assert time.monotonic() - began < 60
    assert report.reason.code == "timeout"
    assert "stuck" in report.log_excerpt


def test_l05_one_that_crashes_disturbs_no_other_and_each_leaves_its_report(lab, torch_that, tmp_path):
    file = tmp_path / "capability.json"
    env = torch_that("sys.stderr.write('torch says no\\n')\nos._exit(9)")
    lab.ledger("doctor", "--lane", "cpu", "--all-recipes", "--report", str(file), expect=1, env=env)
    reports = decode_reports(file.read_bytes())
    assert [report.recipe.id for report in reports] == [
        "torch-eager",
        "torch-compile",
        "torch-bf16-autocast",
        "torch-int8-dynamic",
    ]
    assert {report.reason.code for report in reports} == {"crashed"}
    assert all("torch says no" in report.log_excerpt for report in reports)
    assert all(report.lane.id == "cpu" and report.device.requested == "cpu" for report in reports)


HOUSE = """
ID, VERSION, TAKES, AUTO = "house", "1", {}, None
def refuses(subject, target): return ""
def prepare(subject, target, quantization): raise NotImplementedError
"""
BAD = {
    "raises": ("raise RuntimeError('half installed')", "RuntimeError: half installed"),
    "exits": ("import sys; sys.exit('no GPU here')", "SystemExit: no GPU here"),
    "crashes": ("import os; os._exit(11)", "its process ended with 11"),
    "forgets": ("ID = 'forgets'", "is no recipe 'forgets': VERSION"),
    "torch-eager": ("", "a built-in recipe has this id"),
}


@pytest.fixture
def installed(torch_that):
    """The environment of an interpreter with a package of recipes, one good and each other bad in its own way.

    Its torch crashes: a recipe that is really begun leaves a report that says so.
    """
    env = torch_that("os._exit(9)")
    folder = Path(env["PYTHONPATH"])
    info = folder / "house_recipes-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-recipes\nVersion: 1\n")
    points = {"house": HOUSE} | {name: code for name, (code, _) in BAD.items()}
    for name, code in points.items():
        (folder / f"recipe_{name.replace('-', '_')}.py").write_text(code)
    lines = "\n".join(f"{name} = recipe_{name.replace('-', '_')}" for name in points)
    (info / "entry_points.txt").write_text(f"[gitledger.recipes]\n{lines}\n")
    return env


def test_recipes_that_can_not_be_used_are_named_and_keep_no_other_from_being_run(lab, installed):
    done = lab.ledger("doctor", "--model", "tiny", "--all-recipes", "--json", expect=1, env=installed)
    ran = [report["recipe"]["id"] for report in done.document["reports"]]
    assert ran == ["torch-eager", "torch-compile", "torch-bf16-autocast", "torch-int8-dynamic", "house"]
    for name, (_, why) in BAD.items():
        assert f"the recipe '{name}' can't be used: " in done.err
        assert why in done.err
    assert done.document["lacking"] == []  # nobody asked for them


def test_a_lane_that_needs_a_recipe_that_can_not_be_used_runs_the_others_and_is_not_certified(
    make_lab, tmp_path, installed
):
    lab = make_lab(LANES_OF_CPU.replace("[0, 1]", "[0, 1], recipes: [raises, torch-eager]"))
    (tmp_path / "models" / "tiny").mkdir()
    (tmp_path / "models" / "tiny" / "config.json").write_text("{}")
    (tmp_path / "models" / "tiny" / "model.safetensors").write_bytes(b"no tensors")
    done = lab.ledger("doctor", "--lane", "cpu", "--record", "--json", expect=1, env=installed)
    assert [report["recipe"]["id"] for report in done.document["reports"]] == ["torch-eager"]
    assert [item["recipe"] for item in done.document["lacking"]] == ["raises"]
    assert "so the lane is not certified by this run" in done.err
    cells = lab.ledger("lanes", "--json", expect=1).document["cells"]
    assert [cell["status"] for cell in cells] == ["missing", "failed"]
    alone = lab.ledger("doctor", "--lane", "cpu", "--recipe", "raises", expect=2, env=installed)
    assert "[bad-recipe]" in alone.err


def test_l05_a_doctor_that_is_killed_leaves_no_older_pass_behind(lab, torch_that, tmp_path, on_cpu):
    file = tmp_path / "capability.json"
    file.write_text(on_cpu.to_json())
    env = dict(lab.repo.env) | torch_that("time.sleep(600)")
    doctor = subprocess.Popen(
        ["git-ledger", "doctor", "--model", "tiny", "--report", str(file)],
        cwd=lab.path,
        env=env,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while file.read_text() == on_cpu.to_json() and time.monotonic() < deadline:
            time.sleep(0.05)
        doctor.send_signal(signal.SIGKILL)
        doctor.wait(30)
    finally:
        doctor.kill()
    (report,) = decode_reports(file.read_bytes())
    assert (report.status, report.reason.code) == ("inconclusive", "interrupted")


def test_l05_ctrl_c_ends_the_recipe_and_says_so(lab, torch_that, tmp_path):
    file, started = tmp_path / "capability.json", tmp_path / "started"
    env = dict(lab.repo.env) | torch_that(f"open({str(started)!r}, 'w')\ntime.sleep(600)")
    command = ["git-ledger", "doctor", "--lane", "cpu", "--report", str(file)]
    doctor = subprocess.Popen(command, cwd=lab.path, env=env, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        doctor.send_signal(signal.SIGINT)
        said = doctor.communicate(timeout=30)[1]
    finally:
        doctor.kill()
    assert doctor.returncode == 99
    assert "interrupted: interrupted after" in said
    (report,) = decode_reports(file.read_bytes())
    assert (report.reason.code, report.reason.stage) == ("interrupted", "import")


def test_a_model_that_is_not_there_is_named_and_nothing_is_downloaded(lab):
    report = one(lab, "--model", "absent", expect=99)
    assert report.reason.code == "artifact-unavailable"
    assert "nothing is downloaded" in report.reason.message


def test_a_pinned_model_must_have_its_digest(lab):
    report = one(lab, "--model", "tiny@sha256:" + "0" * 64, expect=1)
    assert report.reason.code == "artifact-mismatch"


def test_a_machine_on_which_nothing_may_run_skips(lab):
    lab.repo.git("config", "gitledger.doctor", "off")
    assert one(lab, "--lane", "cpu", expect=77).reason.code == "disabled-by-policy"


CPU_LANE = LaneConfig(name="cpu", match={"device.kind": "cpu"}, runs=(LaneRun(model="tiny", layers=(0, 1)),))


@pytest.mark.parametrize(
    ("asked", "code", "hint"),
    [
        ({"lane": "cpuu"}, "unknown-lane", "did you mean cpu?"),
        ({"lane": "cpu", "model": "other"}, "no-such-run", "known: tiny"),
        ({"lane": "cpu", "layers": "0-2"}, "no-such-run", "known: tiny"),
        ({"model": "tiny", "layers": "0:6"}, "bad-layers", "--layers 0-15"),
        ({"model": "tiny", "layers": "0..6"}, "bad-layers", "--layers 0-15"),
        ({"model": "tiny", "layers": "5-2"}, "bad-layers", "--layers 0-15"),
        ({"model": "tiny", "layers": "-1"}, "bad-layers", "--layers 0-15"),
        ({"model": "tiny", "recipe": "torch-eager", "all_recipes": True}, "usage", "leave"),
    ],
)
def test_l07_what_cannot_be_meant_is_refused_before_anything_runs(asked, code, hint):
    config = Config(version=1, repository="demo", lanes={"cpu": CPU_LANE})
    with pytest.raises(LedgerError) as caught:
        tasks_of(AskedOfDoctor(**asked), config, {}, nobody())
    assert caught.value.code == code
    assert caught.value.exit_status == 2
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({"SHARD_START": "3", "SHARD_END": "2"}, "bad-layers"),
        ({"SHARD_END": "six"}, "bad-layers"),
        ({"CPU": "maybe"}, "bad-flag"),
    ],
)
def test_variables_that_cannot_be_meant_are_refused(variables, code):
    environ = {f"GITLEDGER_DOCTOR_{name}": value for name, value in variables.items()}
    with pytest.raises(LedgerError) as caught:
        tasks_of(AskedOfDoctor(model="tiny"), None, environ, nobody())
    assert caught.value.code == code


def test_a_lane_that_does_not_call_itself_a_cpus_runs_on_a_gpu_or_not_at_all():
    lanes = {"cpu": CPU_LANE, "any": replace(CPU_LANE, name="any", match={})}
    config = Config(version=1, repository="demo", lanes=lanes)
    chosen = {}
    for lane in lanes:
        (task,) = tasks_of(AskedOfDoctor(lane=lane), config, {}, nobody()).tasks
        chosen[lane] = task.device
    assert chosen == {"cpu": "cpu", "any": "gpu"}
    assert tasks_of(AskedOfDoctor(lane="any", cpu=True), config, {}, nobody()).tasks[0].device == "cpu"
    assert tasks_of(AskedOfDoctor(model="tiny"), None, {}, nobody()).tasks[0].device == "auto"


def nobody() -> World:
    """Return a world in which no process can be started: nothing here needs one."""
    return World(python="/nonexistent", environ={}, clock=lambda: datetime.now(UTC), home=Path("/"))


def test_what_is_not_there_is_named_with_what_is(lab):
    done = lab.ledger("doctor", "--model", "tiny", "--recipe", "torch-eagre", expect=2)
    assert "[unknown-recipe]" in done.err
    assert "known: torch-eager, torch-compile, torch-bf16-autocast, torch-int8-dynamic" in done.err
    assert "[report-unwritable]" in lab.ledger("doctor", "--report", "nowhere/x.json", expect=2).err


def test_a_lane_that_matches_no_field_is_refused(make_lab):
    lab = make_lab(
        "version: 1\nrepository: demo\nlanes:\n  a: {match: {device.arhc: gfx1151}, runs: [{model: m}]}\n"
    )
    for command in ("lanes", "doctor --lane a"):
        assert "did you mean device.arch?" in lab.ledger(*command.split(), expect=2).err


def test_the_variables_of_the_environment_choose_model_layers_and_device(lab, torch_that):
    env = torch_that("os._exit(1)") | {
        "GITLEDGER_DOCTOR_MODEL": "tiny",
        "GITLEDGER_DOCTOR_SHARD_START": "1",
        "GITLEDGER_DOCTOR_SHARD_END": "3",
        "GITLEDGER_DOCTOR_QUANTIZATION": "bfloat16",
        "GITLEDGER_DOCTOR_CPU": "1",
        "HSA_OVERRIDE_GFX_VERSION": "11.0.0",
    }
    report = one(lab, expect=1, env=env)
    assert (report.model.requested, report.layers.start, report.layers.end) == ("tiny", 1, 3)
    assert (report.quantization.requested, report.device.requested) == ("bfloat16", "cpu")
    assert report.overrides["HSA_OVERRIDE_GFX_VERSION"] == "11.0.0"
    meshnet = {name.replace("GITLEDGER", "MESHNET"): value for name, value in env.items()}
    meshnet["MESHNET_DOWNLOAD_DIR"] = lab.repo.env["GITLEDGER_DOWNLOAD_DIR"]
    again = one(lab, expect=1, env=meshnet | {"GITLEDGER_DOWNLOAD_DIR": ""})
    assert (again.model, again.layers, again.device.requested) == (report.model, report.layers, "cpu")


def test_the_probe_sees_no_key_and_its_words_are_redacted(lab, torch_that):
    code = (
        "print('TOKEN=' + os.environ['MY_TOKEN'], sorted(os.environ), os.getcwd(), os.environ['HOME'], flush=True)"
    )
    env = torch_that(f"{code}\nos._exit(1)") | {"MY_TOKEN": "hunter2hunter2"}
    text = one(lab, "--model", "tiny", expect=1, env=env).log_excerpt
    assert "PATH" in text
    assert "hunter2" not in text
    assert "GITLEDGER_SIGNING_KEY" not in text
    assert lab.repo.env["HOME"] not in text


# Records.


def test_a_failure_is_recorded_and_shown_and_blocks_the_release(lab, torch_that):
    done = lab.ledger(
        "doctor",
        "--lane",
        "cpu",
        "--record",
        "--json",
        expect=1,
        env=torch_that("print('torch says no', flush=True)\nos._exit(9)"),
    )
    (record,) = done.document["records"]
    assert "lane cpu" in lab.ledger("log").out
    shown = lab.ledger("show", record, "--json").document["records"][0]
    assert (shown["kind"], shown["status"], shown["reason"]) == ("capability", "failed", "crashed")
    assert shown["signer"] == "alice@example.org"
    told = lab.ledger("show", record).out
    assert "crashed in import: its process ended with status 9" in told
    assert "| torch says no" in told
    cells = lab.ledger("lanes", "--json", expect=1).document["cells"]
    assert [(cell["status"], cell["record"]) for cell in cells] == [("failed", record)]
    lab.ledger("fsck")


def test_a_dirty_work_tree_is_said_and_does_not_count(lab, torch_that):
    lab.repo.write("README", "changed\n")
    done = lab.ledger("doctor", "--lane", "cpu", "--record", "--json", expect=1, env=torch_that("os._exit(9)"))
    assert done.document["reports"][0]["repo"]["dirty_paths"] == ["README"]
    assert "don't count: README" in done.err
    document = lab.ledger("lanes", "--json", expect=1).document
    assert [cell["status"] for cell in document["cells"]] == ["missing"]
    assert [item["reason"] for item in document["ignored"]] == ["dirty"]


def report_here(lab, report):
    """Return a report as if it had been made on this project's commit."""
    head, tree = lab.repo.git("rev-parse", "HEAD"), lab.repo.git("rev-parse", "HEAD^{tree}")
    now = datetime.now(UTC).replace(microsecond=0)
    timing = replace(report.timing, started_at=now - timedelta(seconds=4), finished_at=now)
    return replace(report, repo=replace(report.repo, commit=head, tree=tree), timing=timing)


def tiny_pass(lab, make_cpu):
    match = {"device.kind": "cpu", "os.name": "linux"}
    base = make_cpu(
        lane=LaneClaim(id="cpu", declared=match, observed=dict(match)),
        layers=LayersClaim(start=0, end=1, total=2),
    )
    return report_here(lab, replace(base, model=replace(base.model, requested="tiny", resolved="tiny")))


def test_reports_of_a_runner_without_a_key_are_signed_by_whoever_vouches(lab, make_cpu, tmp_path):
    file = tmp_path / "capability.json"
    file.write_text(tiny_pass(lab, make_cpu).to_json())
    done = lab.ledger("record", "--capability", str(file), "--json")
    assert done.document["stored"]
    assert lab.ledger("lanes").out.endswith("lanes: passed\n")
    verified = lab.ledger("verify", "--lanes", "--json").document
    assert verified["verdict"] == "passed"
    assert [cell["status"] for cell in verified["lanes"]] == ["passed"]


def moved(report, **span):
    """Return a report of the same run, made at another time."""
    times = {name: getattr(report.timing, name) + timedelta(**span) for name in ("started_at", "finished_at")}
    return replace(report, timing=replace(report.timing, **times))


def elsewhere(report):
    place = replace(report.os, name="darwin")
    lane = replace(report.lane, observed={**report.lane.observed, "os.name": "darwin"})
    return replace(report, os=place, lane=lane)


UNCOUNTED = {
    "a key that no lane knows": (lambda report: report, "mallory", "unknown-signer"),
    "a date in the future": (lambda report: moved(report, hours=1), "alice", "future"),
    "a run from before its commit": (lambda report: moved(report, hours=-1), "alice", "before-commit"),
    "a recipe of another release": (
        lambda report: replace(report, recipe=replace(report.recipe, version="99")),
        "alice",
        "unknown-recipe-version",
    ),
    "uncommitted changes": (
        lambda report: replace(report, repo=replace(report.repo, dirty=True)),
        "alice",
        "dirty",
    ),
    "no lane": (
        lambda report: replace(report, lane=LaneClaim(id=None, declared={}, observed={})),
        "alice",
        "made under no lane",
    ),
    "a run that no lane declares": (
        lambda report: replace(report, model=replace(report.model, requested="huge")),
        "alice",
        "no lane declares such a run",
    ),
    "another machine": (elsewhere, "alice", "mismatched: os.name: declared linux, observed darwin"),
}


def test_what_can_not_count_is_stored_and_said_and_no_success(lab, make_cpu, tmp_path):
    """One after the other in one ledger: none of them makes the lane pass."""
    file = tmp_path / "capability.json"
    good = tiny_pass(lab, make_cpu)
    for name, (change, key, why) in UNCOUNTED.items():
        file.write_text(change(good).to_json())
        done = lab.ledger("record", "--capability", str(file), "--key", str(lab.key(key)), "--json", expect=1)
        assert done.document["stored"], name
        (finding,) = done.document["findings"]
        assert (finding["code"], finding["subject"]) == ("report-uncounted", done.document["records"][0][:12])
        assert finding["found"].startswith(why), name
        assert finding["found"] in done.err, name
    lab.ledger("lanes", expect=1)


def test_one_that_counts_among_others_is_a_success_and_the_others_are_said(lab, make_cpu, tmp_path):
    file = tmp_path / "capability.json"
    good = tiny_pass(lab, make_cpu)
    file.write_text(encode_reports([good, moved(good, hours=1)]))
    done = lab.ledger("record", "--capability", str(file), "--json")
    assert [finding["found"] for finding in done.document["findings"]] == ["future"]
    assert lab.ledger("lanes").out.endswith("lanes: passed\n")


def test_doctor_says_of_what_it_recorded_that_it_counts_for_nothing(lab, torch_that):
    args = ("--lane", "cpu", "--record", "--key", str(lab.key("mallory")))
    done = lab.ledger("doctor", *args, expect=1, env=torch_that("os._exit(9)"))
    assert "counts for nothing: unknown-signer" in done.err


def test_without_shards_verify_alone_is_still_no_pass(lab, make_cpu, tmp_path):
    file = tmp_path / "capability.json"
    file.write_text(tiny_pass(lab, make_cpu).to_json())
    lab.ledger("record", "--capability", str(file))
    assert "[no-shards]" in lab.ledger("verify", expect=1).out


def test_verify_lanes_asks_shards_and_lanes_alike(make_lab, make_cpu, tmp_path):
    shard = 'shards:\n  s: {paths: ["."], command: "true", results: exit-status}\n'
    lab = make_lab(LANES_OF_CPU + shard)
    file = tmp_path / "capability.json"
    file.write_text(tiny_pass(lab, make_cpu).to_json())
    lab.ledger("record", "--capability", str(file))
    assert "[never-recorded]" in lab.ledger("verify", "--lanes", expect=1).out
    lab.ledger("record", "--shard", "s")
    assert lab.ledger("verify", "--lanes").out.endswith("verdict: passed\n")
    lab.repo.commit({"README": "more\n"})
    lab.ledger("record", "--shard", "s")
    assert "[lane-stale]" in lab.ledger("verify", "--lanes", expect=1).out


def test_a_change_that_takes_all_shards_away_is_not_judged_by_lanes_alone(make_lab, make_cpu, tmp_path):
    """Where policy pins none, plain `verify` has nothing to judge; `--lanes` must not be greener than that."""
    shard = 'shards:\n  s: {paths: ["."], command: "true", results: exit-status}\npolicy: {pin_shards: false}\n'
    lab = make_lab(LANES_OF_CPU + shard)
    lab.repo.git("branch", "trusted")
    lab.repo.commit({".gitledger/config.yaml": LANES_OF_CPU})
    file = tmp_path / "capability.json"
    file.write_text(tiny_pass(lab, make_cpu).to_json())
    lab.ledger("record", "--capability", str(file))
    assert lab.ledger("verify", "--lanes").out.endswith("verdict: passed\n")
    assert "[no-shards]" in lab.ledger("verify", "--policy-from", "trusted", expect=1).out
    assert "[no-shards]" in lab.ledger("verify", "--lanes", "--policy-from", "trusted", expect=1).out


LANES_OF_CPU = (
    "version: 1\nrepository: demo\n"
    "lanes:\n  cpu: {match: {device.kind: cpu, os.name: linux}, runs: [{model: tiny, layers: [0, 1]}]}\n"
)


def test_l06_another_declaration_is_mismatched_and_a_new_commit_stale(lab, make_cpu, tmp_path):
    file = tmp_path / "capability.json"
    file.write_text(tiny_pass(lab, make_cpu).to_json())
    lab.ledger("record", "--capability", str(file))
    lab.repo.commit({".gitledger/config.yaml": LANES_OF_CPU.replace("linux", '"linux", torch.version: "2.14"')})
    lab.repo.git("tag", "upgraded")
    lab.repo.git("reset", "-q", "--hard", "HEAD~1")
    found = lab.ledger("lanes", "--policy-from", "upgraded", "--json", expect=1).document["cells"][0]
    assert found["status"] == "mismatched"
    assert "torch.version: declared 2.14, observed 2.13.0+cpu" in found["detail"]
    lab.repo.commit({"README": "more\n"})
    assert lab.ledger("lanes", "--json", expect=1).document["cells"][0]["status"] == "stale"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{}", "capability-malformed"),
        ('{"reports": []}', "capability-malformed"),
        ("not json", "capability-malformed"),
        (None, "capability-unreadable"),
    ],
)
def test_a_file_that_holds_no_report_is_not_recorded(lab, tmp_path, text, code):
    file = tmp_path / "capability.json"
    if text is not None:
        file.write_text(text)
    assert f"[{code}]" in lab.ledger("record", "--capability", str(file), expect=2).err


def test_an_edited_report_is_not_signed(lab, make_cpu, tmp_path):
    file = tmp_path / "capability.json"
    document = json.loads(tiny_pass(lab, make_cpu).to_json())
    document["device"]["name"] = "NVIDIA H200"
    file.write_text(json.dumps(document))
    assert "a field was edited" in lab.ledger("record", "--capability", str(file), expect=2).err


def test_a_report_of_another_repository_is_not_recorded(lab, passed, tmp_path):
    file = tmp_path / "capability.json"
    file.write_text(passed.to_json())
    assert "[report-elsewhere]" in lab.ledger("record", "--capability", str(file), expect=2).err


def test_record_asks_for_a_shard_or_a_file_and_not_for_both(lab, tmp_path):
    assert "git ledger record --shard NAME  # or --capability FILE" in lab.ledger("record", expect=2).err
    done = lab.ledger("record", "--capability", "x", "--shard", "s", expect=2)
    assert "--capability stands alone" in done.err


def test_reports_are_taken_from_a_fork(lab, make_cpu, tmp_path):
    file = tmp_path / "capability.json"
    file.write_text(tiny_pass(lab, make_cpu).to_json())
    clone = tmp_path / "clone"
    lab.repo.git("clone", "-q", str(lab.path), str(clone))
    lab.ledger("record", "--capability", str(file))
    lab.ledger("-C", str(clone), "lanes", expect=1)
    taken = lab.ledger("-C", str(clone), "sync", "--from", str(lab.path), "--json").document
    assert (len(taken["taken"]), taken["refused"]) == (1, [])
    assert lab.ledger("-C", str(clone), "lanes").out.endswith("lanes: passed\n")


# The lane check as a pytest plugin.


def check(lab, *args, env=None):
    command = [sys.executable, "-m", "pytest", "-p", "gitledger.suites.lane_check", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(
        [*command, *args],
        cwd=lab.path,
        env=dict(lab.repo.env) | {"COLUMNS": "200"} | (env or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout


@pytest.fixture
def suite(make_lab, tmp_path):
    lab = make_lab(files={"test_unit.py": "def test_unit():\n    pass\n"})
    tiny = tmp_path / "models" / "tiny"
    tiny.mkdir()
    (tiny / "config.json").write_text('{"model_type": "bert"}')
    (tiny / "model.safetensors").write_bytes(b"no tensors")
    return lab


def test_l01_the_lane_check_that_skips_is_told_apart_by_the_exit_status(suite):
    status, out = check(suite, "-m", "integration", "--ledger-lane", "cpu")
    assert (status, "1 skipped" in out) == (77, True)
    status, out = check(suite, "--ledger-lane", "cpu")
    assert (status, "1 passed, 1 skipped" in out) == (77, True)
    assert check(suite)[0] == 0
    status, out = check(suite, "-n1", "--ledger-lane", "cpu")  # where it runs in a worker of xdist
    assert (status, "1 passed, 1 skipped" in out) == (77, True)


def test_the_lane_check_fails_with_doctors_own_words(suite, torch_that, tmp_path):
    kept = tmp_path / "capability.json"
    env = torch_that("os._exit(9)") | {"GITLEDGER_DOCTOR_MODEL": "tiny"}
    lane = ("-m", "integration", "--ledger-lane", "cpu", "--ledger-lane-report", str(kept))
    status, out = check(suite, *lane, env=env)
    assert status == 1
    assert "crashed: its process ended with status 9" in out
    (report,) = decode_reports(kept.read_bytes())
    assert report.lane.id == "cpu"
    env = torch_that("raise ImportError('none')") | {"MESHNET_DOCTOR_MODEL": "tiny"}
    for workers in ("-n0", "-n1"):
        assert check(suite, *lane, workers, env=env)[0] == 99


def test_the_lane_check_of_a_model_that_the_lane_does_not_declare_fails_and_its_summary_says_why(suite):
    status, out = check(suite, "--ledger-lane", "cpu", env={"GITLEDGER_DOCTOR_MODEL": "other"})
    assert status == 1
    (summary,) = [line for line in out.splitlines() if line.startswith("FAILED ")]
    assert "doctor could not run (exit 2): error: lane cpu declares no such run [no-such-run]" in summary


def test_the_lane_check_asserts_what_the_seed_of_lanes_asks_for(on_cpu):
    lane_check._assert_proof(on_cpu, lane="cpu", model="minilm")
    for asked, fault in (
        ({"lane": "gpu", "model": "minilm"}, "lane"),
        ({"lane": "cpu", "model": "tiny"}, "model"),
    ):
        with pytest.raises(lane_check.LaneCheckError, match=f"another {fault}"):
            lane_check._assert_proof(on_cpu, **asked)
