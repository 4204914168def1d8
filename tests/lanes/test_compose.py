"""What a probe writes is a claim: held against how its process ended, and against what a report can say."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gitledger.lanes.compose import Place, report_of, system_facts
from gitledger.lanes.journal import read_journal
from gitledger.lanes.model import ModelError, find_model
from gitledger.lanes.supervise import ProbeRun
from gitledger.lanes.task import LaneTask
from gitledger.machine.child import ChildExit
from gitledger.records.capability_work import RecipeClaim
from gitledger.records.ids import CommitId, Digest, TreeId
from gitledger.records.receipt import RepoClaim

NONCE = "5" * 32
BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)
ENDED = ChildExit(
    status=0,
    signal=None,
    timed_out=False,
    interrupted=False,
    stalled=False,
    oom=False,
    started_at=BEGAN,
    ended_at=BEGAN + timedelta(seconds=9),
    duration_ns=9_000_000_000,
    max_rss_bytes=None,
    leftovers=0,
)
DEVICE = {
    "kind": "cpu",
    "name": "x",
    "arch": platform.machine(),
    "index": None,
    "count": 1,
    "total_memory_bytes": 1,
    "used": "cpu",
}
END = {
    "code": None,
    "message": "",
    "stage": "check",
    "stages": {"import": 900.0, "load": 5.5, "reference": 4.0, "prepare": 8.0, "forward": 3.5},
    "duration_ms": 3.25,
    "forward": {
        "executed": True,
        "output_shape": [1, 4],
        "output_dtype": "float32",
        "output_device": "cpu",
        "finite": True,
        "output_digest": "a" * 64,
        "reference": {
            "seed": 1,
            "inputs_digest": "b" * 64,
            "output_digest": "a" * 64,
            "error": 0.0,
            "tolerance": 0.0001,
        },
    },
}


def event(name, **fields):
    return {"nonce": NONCE, "event": name, **fields}


def good_events():
    return [
        event("stage", stage="import"),
        event("python", python="3.12.4"),
        event("torch", torch={"version": "2.13.0", "git": None, "cuda": None, "hip": None}),
        event("device", device=DEVICE),
        event("layers", layers={"start": 0, "end": 5, "total": 6}),
        event("quantization", resolved="float32", compute_dtype="float32"),
        event("stage", stage="check"),
        event("end", **END),
    ]


@pytest.fixture
def probed(tmp_path):
    """Return the report of a probe that wrote these events and ended so; `probed(events, status=1)`."""
    model = tmp_path / "m"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "w.safetensors").write_bytes(b"w")
    found = find_model("m", [tmp_path], Path("/nowhere"))
    place = Place.here(
        repo=RepoClaim(commit=CommitId("1" * 40), tree=TreeId("2" * 40), branch=None, remote=None, dirty=False),
        overrides={},
        environ={"MY_TOKEN": "hunter2hunter2"},
        home=Path("/home/lab"),
        driver=lambda kind: f"570.1 for {kind}",
    )
    task = LaneTask(recipe=RecipeClaim(id="own", version="1", digest=Digest("c" * 64)), model="m", device="cpu")

    def report(events, *, raw=None, touch=False, task=task, **ended):
        journal = tmp_path / "journal"
        text = "".join(json.dumps(item) + "\n" for item in events)
        journal.write_bytes(text.encode() if raw is None else raw)
        if touch:
            (model / "w.safetensors").write_bytes(b"another")
        run = ProbeRun(
            journal=read_journal(journal, NONCE), ended=replace(ENDED, **ended), log_excerpt="what it said\n"
        )
        return report_of(task, place, found, run)

    return report


def test_a_probe_that_ends_well_with_a_pass_passes(probed):
    report = probed(good_events())
    assert report.status == "passed"
    assert (report.layers.end, report.quantization.resolved, report.timing.duration_ms) == (5, "float32", 3.25)
    assert report.driver is None  # nobody asks for one on a CPU
    assert report.log_excerpt == ""


@pytest.mark.parametrize(
    ("ended", "code", "words"),
    [
        ({"status": 1}, "crashed", "status 1"),
        ({"status": None, "signal": 9}, "crashed", "SIGKILL"),
        ({"status": None, "signal": 11}, "crashed", "SIGSEGV"),
        ({"status": None, "signal": 9, "oom": True}, "out-of-memory", "out-of-memory killer"),
        ({"status": None, "signal": 15, "timed_out": True}, "timeout", "after 9 s"),
        ({"status": None, "signal": 15, "stalled": True}, "timeout", "without progress"),
        ({"status": None, "signal": 15, "interrupted": True}, "interrupted", "interrupted"),
    ],
)
def test_l05_a_claimed_pass_is_never_better_than_the_end_of_its_process(probed, ended, code, words):
    report = probed(good_events(), **ended)
    assert (report.status, report.reason.code) == (report.reason.code.status, code)
    assert report.status != "passed"
    assert words in report.reason.message
    assert report.log_excerpt == "what it said\n"


def test_a_probe_that_breaks_off_says_how_far_it_came(probed):
    report = probed(good_events()[:4])
    assert (report.reason.code, report.reason.stage) == ("crashed", "import")
    assert (report.device.kind, report.torch.version) == ("cpu", "2.13.0")


LIES = {
    "a pass without a forward": {"forward": None},
    "a pass that took no time": {"duration_ms": 0.0},
    "a pass longer than its process": {"duration_ms": 9e6},
    "a duration that is a word": {"duration_ms": "fast"},
    "NaN": {"forward": END["forward"] | {"finite": False}},
    "output elsewhere": {"forward": END["forward"] | {"output_device": "cuda:0"}},
    "error above the tolerance": {
        "forward": END["forward"] | {"reference": END["forward"]["reference"] | {"error": 1.0}}
    },
    "no reference": {"forward": END["forward"] | {"reference": None}},
    "more than a forward holds": {"forward": END["forward"] | {"passed": True}},
    "stages that are no numbers": {"stages": {"forward": "long"}},
    "a reason that is none": {"code": "bad-luck"},
}


@pytest.mark.parametrize("name", list(LIES))
def test_a_probe_that_claims_what_no_report_can_say_passes_nothing(probed, name):
    events = good_events()
    events[-1] |= LIES[name]
    report = probed(events)
    assert (report.status, report.reason.code) == ("inconclusive", "internal-error")


@pytest.mark.parametrize("number", range(8))
def test_events_of_another_run_are_not_believed(probed, number):
    events = good_events()
    events[number]["nonce"] = "6" * 32
    assert probed(events).reason.code == "crashed"


def test_nothing_is_believed_after_the_end(probed):
    failed = event("end", **(END | {"code": "output-mismatch", "message": "no", "forward": None}))
    assert probed([*good_events(), failed]).reason.code == "crashed"
    assert probed([*good_events()[:-1], failed, good_events()[-1]]).status != "passed"


@pytest.mark.parametrize(
    "raw", [b"", b"\xff\xfe\n", b"[]\n", b'{"nonce": 1}\n', b"{" * 5000 + b"\n", b"x" * (1 << 21)]
)
def test_a_journal_of_garbage_is_a_crash_and_no_error_of_ours(probed, raw):
    assert probed([], raw=raw).reason.code == "crashed"


def test_a_last_line_that_was_cut_is_no_end(probed):
    whole = "".join(json.dumps(item) + "\n" for item in good_events()).encode()
    assert probed([], raw=whole).status == "passed"
    assert probed([], raw=whole[:-1]).reason.code == "crashed"


def test_a_model_that_changed_while_it_ran_proves_nothing(probed):
    report = probed(good_events(), touch=True)
    assert report.reason.code == "artifact-mismatch"


def test_a_message_holds_neither_secrets_nor_the_users_home(probed):
    events = good_events()[:4]
    events.append(event("end", **(END | {"code": "load-failed", "message": "no /home/lab/x hunter2hunter2 here"})))
    message = probed(events).reason.message
    assert message == "no ~/x [redacted] here"


def test_a_pass_on_the_cpu_is_none_where_a_gpu_was_asked_for(probed):
    task = LaneTask(
        recipe=RecipeClaim(id="own", version="1", digest=Digest("c" * 64)), model="m", device="gpu", lane="big"
    )
    assert probed(good_events(), task=task).status == "inconclusive"


def test_the_system_is_named_as_uname_and_os_release_do(tmp_path):
    file = tmp_path / "os-release"
    file.write_text('NAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n')
    facts = system_facts(file)
    assert (facts.name, facts.version, facts.machine) == ("linux", "debian 12", os.uname().machine)
    assert system_facts(tmp_path / "absent").version is None


# Where a model lies.


@pytest.fixture
def shelf(tmp_path):
    """A folder of models."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    return folder


def hugging(folder, **files):
    folder.mkdir(parents=True)
    for name, text in ({"config.json": "{}", "model.safetensors": "w"} | files).items():
        (folder / name).write_text(text)


def test_a_model_is_found_by_path_by_name_and_in_the_hubs_cache(shelf, tmp_path):
    hugging(shelf / "m")
    hugging(shelf / "models--org--m" / "snapshots" / "abc123")
    (shelf / "models--org--m" / "refs").mkdir()
    (shelf / "models--org--m" / "refs" / "main").write_text("abc123\n")
    by_name = find_model("m", [shelf], tmp_path)
    by_path = find_model(str(shelf / "m"), [], tmp_path)
    cached, pinned = find_model("org/m", [shelf], tmp_path), find_model("org/m@abc123", [shelf], tmp_path)
    assert by_name.claim.digest == by_path.claim.digest == cached.claim.digest
    assert (by_name.claim.resolved, by_path.claim.resolved) == ("m", "m")
    assert (cached.claim.resolved, pinned.claim.resolved) == ("org/m@abc123", "org/m@abc123")
    assert find_model(f"m@sha256:{by_name.claim.digest}", [shelf], tmp_path).claim.requested.startswith(
        "m@sha256:"
    )


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("absent", "artifact-unavailable", "nothing is downloaded"),
        ("../shelf/m", "artifact-unavailable", "nothing is downloaded"),
        ("org/m@other", "artifact-unavailable", "nothing is downloaded"),
        ("pickled", "artifact-unavailable", "pickled weights are not read"),
        ("empty", "artifact-unavailable", "neither a config.json nor"),
        ("text.txt", "artifact-unavailable", "no model that can be loaded"),
        ("cut", "artifact-unavailable", "lacks model-2.safetensors"),
        ("badly-indexed", "artifact-mismatch", "can't be read"),
        ("m@sha256:" + "0" * 64, "artifact-mismatch", "not the pinned"),
    ],
)
def test_a_model_that_cannot_be_used_is_refused_for_its_own_reason(shelf, tmp_path, name, code, words):
    hugging(shelf / "m")
    hugging(shelf / "models--org--m" / "snapshots" / "abc123")
    (shelf / "pickled").mkdir()
    (shelf / "pickled" / "config.json").write_text("{}")
    (shelf / "pickled" / "pytorch_model.bin").write_text("pickle")
    (shelf / "empty").mkdir()
    (shelf / "text.txt").write_text("")
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    hugging(shelf / "cut", **{"model.safetensors.index.json": json.dumps(index)})
    hugging(shelf / "badly-indexed", **{"model.safetensors.index.json": "[]"})
    with pytest.raises(ModelError, match=words) as caught:
        find_model(name, [shelf], tmp_path / "elsewhere")
    assert caught.value.code == code


def test_a_program_is_one_file_and_its_inputs_belong_to_it(shelf, tmp_path):
    (shelf / "p.jit").write_text("code")
    alone = find_model("p.jit", [shelf], tmp_path)
    (shelf / "p.jit.inputs.json").write_text("{}")
    described = find_model("p.jit", [shelf], tmp_path)
    assert (alone.form, alone.names) == ("script", ["p.jit"])
    assert described.names == ["p.jit", "p.jit.inputs.json"]
    assert alone.claim.digest != described.claim.digest
    folder = shelf / "folder"
    folder.mkdir()
    (folder / "x.pt2").write_text("code")
    assert find_model("folder", [shelf], tmp_path).main == "x.pt2"
