"""GPUs are facts from the vendors' tools, whatever those tools do; the tools here are scripts on PATH."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.machine.environment import environment_facts, libc_version, platform_facts
from gitledger.machine.gpu import Device, chosen, visible_gpus
from gitledger.machine.tool import ask_tool
from gitledger.records.environment import Gpu

A, B = "GPU-11111111-aaaa-bbbb-cccc-000000000001", "GPU-22222222-aaaa-bbbb-cccc-000000000002"
TWO_CARDS = f"{A}, 81559, 550.54.15, NVIDIA H100 80GB HBM3\n{B}, 81559, 550.54.15, NVIDIA H100 80GB HBM3\n"
VERSION = "NVIDIA-SMI version  : 550.54.15\nDRIVER version      : 550.54.15\nCUDA Version        : 12.4\n"
MIGS = f"""GPU 0: NVIDIA H100 80GB HBM3 (UUID: {A})
  MIG 1g.10gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 3g.40gb     Device  1: (UUID: MIG-0c757cd7-e942-5726-a0b8-0e8fb7067135)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: {B})
"""
ROCM = {
    "card1": {
        "Card Series": "AMD Instinct MI250X",
        "GFX Version": "gfx90a",
        "Unique ID": "0x9f3c",
        "VRAM Total Memory (B)": "68702699520",
    },
    "card0": {
        "Card Series": "AMD Instinct MI210",
        "GFX Version": "gfx90a",
        "Unique ID": "0x77ab",
        "VRAM Total Memory (B)": "68702699521",
    },
    "system": {"Driver version": "6.7.0"},
}
AMD = [
    {
        "gpu": 0,
        "asic": {
            "market_name": "AMD Instinct MI300X",
            "asic_serial": "0x3FA5C1",
            "target_graphics_version": "gfx942",
        },
        "vram": {"type": "HBM3", "size": {"value": 196592, "unit": "MB"}},
        "driver": {"name": "amdgpu", "version": "6.8.5"},
    }
]


class Tools:
    """A PATH that holds the tools that a test puts there, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {"PATH": str(folder)}

    def sh(self, name: str, body: str) -> None:
        self.add(name, f"#!/bin/sh\nPATH=/usr/bin:/bin\n{body}\n")

    def add(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def prints(self, name: str, text: str | bytes) -> None:
        (self.folder / f"{name}.out").write_bytes(text if isinstance(text, bytes) else text.encode())
        self.sh(name, f"cat {self.folder}/{name}.out")

    def nvidia(self, query: str = TWO_CARDS, version: str = VERSION, listing: str = MIGS) -> None:
        for name, text in (("q", query), ("v", version), ("l", listing)):
            (self.folder / name).write_text(text)
        cases = "--query*) cat q;; --version) cat v;; -L) cat l;; *) exit 2;;"
        self.sh("nvidia-smi", f'cd {self.folder}; case "$1" in {cases} esac')

    def ask(self, *, uuids: bool = True, timeout_s: float = 10.0, **variables: str) -> Gpu | None:
        return visible_gpus({**self.env, **variables}, uuids=uuids, timeout_s=timeout_s)


@pytest.fixture
def tools(tmp_path) -> Tools:
    folder = tmp_path / "tools"
    folder.mkdir()
    return Tools(folder)


def test_a_machine_without_tools_has_no_gpus(tools):
    assert tools.ask() is None


def test_nvidia_gpus_are_told_by_nvidia_smi(tools):
    tools.nvidia()

    assert tools.ask() == Gpu(
        vendor="nvidia",
        names=("NVIDIA H100 80GB HBM3",) * 2,
        uuids=(A, B),
        memory_bytes=(81559 << 20,) * 2,
        driver="550.54.15",
        runtime="cuda 12.4",
        source="nvidia-smi",
    )


def test_uuids_are_left_out_where_they_are_not_wanted(tools):
    tools.nvidia()
    gpu = tools.ask(uuids=False)

    assert gpu.uuids == ()
    assert A[4:12] not in json.dumps(gpu.encode())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", (A,)),
        ("1,0", (B, A)),
        ("1", (B,)),
        (B, (B,)),
        ("GPU-2222", (B,)),
        ("0,7,1", (A,)),
        (" 1 , 0 ", (B, A)),
    ],
)
def test_cuda_visible_devices_selects(tools, value, expected):
    tools.nvidia()

    assert tools.ask(CUDA_VISIBLE_DEVICES=value).uuids == expected


@pytest.mark.parametrize("value", ["", "-1", "none", "NoDevFiles", "7", "0,0", "GPU-", "GPU-ffff", "²", "1_0"])
def test_a_value_that_hides_all_gpus_hides_them(tools, value):
    tools.nvidia()

    assert tools.ask(CUDA_VISIBLE_DEVICES=value) is None


def test_mig_instances_are_named_after_their_profile(tools):
    tools.nvidia()
    gpu = tools.ask(CUDA_VISIBLE_DEVICES="MIG-0c757cd7-e942-5726-a0b8-0e8fb7067135")

    assert gpu.names == ("NVIDIA H100 80GB HBM3 MIG 3g.40gb",)
    assert gpu.uuids == ("MIG-0c757cd7-e942-5726-a0b8-0e8fb7067135",)


def test_what_the_tool_does_not_know_is_left_out(tools):
    tools.nvidia(query=f"{A}, [N/A], [N/A], NVIDIA GB10, odd name\n", version="")
    gpu = tools.ask()

    assert (gpu.names, gpu.memory_bytes, gpu.driver, gpu.runtime) == (("NVIDIA GB10, odd name",), (), None, None)


def test_amd_gpus_are_told_by_rocm_smi(tools):
    tools.prints("rocm-smi", "WARNING: AMD GPU device(s) is/are in a low-power state.\n\n" + json.dumps(ROCM))
    tools.prints("hipconfig", "6.2.41133-dd7f95766")

    assert tools.ask() == Gpu(
        vendor="amd",
        names=("AMD Instinct MI210 (gfx90a)", "AMD Instinct MI250X (gfx90a)"),
        uuids=("GPU-00000000000077ab", "GPU-0000000000009f3c"),
        memory_bytes=(68702699521, 68702699520),
        driver="6.7.0",
        runtime="hip 6.2.41133-dd7f95766",
        source="rocm-smi",
    )


@pytest.mark.parametrize("document", [AMD, {"gpu_data": AMD}])
def test_amd_gpus_are_told_by_amd_smi(tools, document):
    tools.prints("amd-smi", json.dumps(document))
    gpu = tools.ask()

    assert (gpu.names, gpu.memory_bytes) == (("AMD Instinct MI300X (gfx942)",), (196592 << 20,))
    assert (gpu.uuids, gpu.driver, gpu.source) == (("GPU-00000000003fa5c1",), "6.8.5", "amd-smi")


@pytest.mark.parametrize(
    ("variables", "first"),
    [
        ({"HIP_VISIBLE_DEVICES": "1"}, "AMD Instinct MI250X (gfx90a)"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, "AMD Instinct MI250X (gfx90a)"),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, "AMD Instinct MI210 (gfx90a)"),
        ({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}, "AMD Instinct MI250X (gfx90a)"),
        ({"ROCR_VISIBLE_DEVICES": "GPU-0000000000009f3c"}, "AMD Instinct MI250X (gfx90a)"),
    ],
)
def test_rocm_filters_twice(tools, variables, first):
    tools.prints("rocm-smi", json.dumps(ROCM))

    assert tools.ask(**variables).names[0] == first


def test_rocm_gpus_that_are_hidden_are_none(tools):
    tools.prints("rocm-smi", json.dumps(ROCM))

    assert tools.ask(ROCR_VISIBLE_DEVICES="1", HIP_VISIBLE_DEVICES="1") is None


BAD = {
    "fails": "echo boom >&2; exit 9",
    "fails after a good answer": f"printf '{TWO_CARDS}'; exit 15",
    "crashes": "kill -SEGV $$",
    "says nothing": "exit 0",
    "has no devices": "echo 'No devices were found'",
    "prints binary": "head -c 3000 /dev/urandom",
    "prints no UTF-8": r"printf '\377\376, 1, 2, \200\n'",
    "prints too much": "yes 'GPU-1, 2, 3, x' | head -c 10000000",
    "prints deep JSON": "head -c 900000 /dev/zero | tr '\\0' '['",
    "prints odd JSON": """echo '{"card0": [], "card1": {"Card Series": {}}, "gpu_data": [3, {"asic": 1}]}'""",
}


@pytest.mark.parametrize("name", ["nvidia-smi", "rocm-smi", "amd-smi", "hipconfig"])
@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_a_tool_that_misbehaves_tells_of_no_gpus(tools, name, body):
    tools.sh(name, body)

    assert tools.ask() is None


def test_a_broken_tool_does_not_hide_the_other_vendors(tools):
    tools.sh("nvidia-smi", "exit 9")
    tools.prints("rocm-smi", json.dumps(ROCM))

    assert tools.ask().vendor == "amd"


def test_names_are_bounded_and_free_of_control_characters(tools):
    tools.nvidia(query=f"{A}, 1, 2, \x1b[31mred\x00\x07 {'x' * 1000}\n")
    gpu = tools.ask()

    assert gpu.names[0].startswith("[31mred xxx")
    assert len(gpu.names[0]) == 200


def test_a_tool_that_hangs_is_waited_for_no_longer_than_allowed(tools):
    tools.sh("nvidia-smi", "trap '' TERM; sleep 300")
    begin = time.monotonic()

    assert tools.ask(timeout_s=0.5) is None
    assert time.monotonic() - begin < 3


def test_a_child_that_holds_the_tools_output_open_holds_nobody_up(tools):
    tools.sh("nvidia-smi", f"(exec sleep 3) & printf '{TWO_CARDS}'")
    begin = time.monotonic()

    assert tools.ask().names
    assert time.monotonic() - begin < 2


def test_tools_of_the_current_folder_are_not_the_machines(tools, monkeypatch):
    tools.nvidia()
    monkeypatch.chdir(tools.folder)

    for path in ("", ".", ":"):
        assert visible_gpus({"PATH": path}, uuids=True) is None


def test_a_tool_gets_the_environment_given_and_no_input(tools):
    tools.sh("ask", 'cat; echo "$LC_ALL $ODD"')

    assert ask_tool(["ask"], env={**tools.env, "ODD": "x"}, timeout_s=5) == "C x\n"
    assert ask_tool(["missing"], env=tools.env, timeout_s=5) is None


def test_torch_is_asked_only_where_an_interpreter_is_given(tools):
    answer = {"hip": None, "cuda": "12.4", "devices": [["NVIDIA L4", 23034 << 20]]}
    tools.prints("python-with-torch", json.dumps(answer))

    assert tools.ask() is None
    gpu = visible_gpus(tools.env, uuids=True, torch_python="python-with-torch")
    assert (gpu.vendor, gpu.names, gpu.runtime, gpu.source) == ("nvidia", ("NVIDIA L4",), "cuda 12.4", "torch")


def test_an_interpreter_without_torch_tells_of_no_gpus(tools):
    assert visible_gpus(tools.env, uuids=True, torch_python=sys.executable) is None


@given(st.text(alphabet="0123456789,-GPU abcMIG", max_size=30))
def test_a_selection_never_invents_or_repeats_a_device(value):
    devices = [Device(name=str(number), uuid=f"GPU-{number}{number}aa") for number in range(3)]
    picked = chosen(devices, value)

    assert len({device.name for device in picked}) == len(picked)
    assert set(picked) <= set(devices)


def test_environment_facts_name_the_platform_and_no_person_or_host(tools, hermetic_env):
    tools.nvidia()
    facts = environment_facts(
        env=tools.env, python="3.12.1", pytest="8.2", coverage=None, gitledger="1.0", gpu_uuid=False
    )

    text = json.dumps(facts.encode())
    assert (facts.platform.system, facts.platform.machine) == (os.uname().sysname, os.uname().machine)
    assert (facts.python, facts.pytest, facts.coverage, facts.gitledger) == ("3.12.1", "8.2", None, "1.0")
    assert facts.gpu.names
    assert f'"{os.uname().nodename}"' not in text
    assert A not in text


@pytest.mark.skipif(sys.platform != "linux", reason="confstr names glibc on Linux")
def test_the_c_library_is_named_with_its_version():
    assert platform_facts({}).libc == os.confstr("CS_GNU_LIBC_VERSION")


def test_musl_is_asked_through_its_loader(tools, monkeypatch):
    def no_glibc(_name: str) -> str:
        raise ValueError

    monkeypatch.setattr(os, "confstr", no_glibc)
    tools.sh(
        "ld-musl-x86_64.so.1",
        "printf 'musl libc (x86_64)\\nVersion 1.2.4\\nDynamic Program Loader\\n' >&2; exit 1",
    )
    env = {"PATH": os.environ["PATH"]}

    assert libc_version(env, loaders=tools.folder) == "musl 1.2.4"
    assert libc_version(env, loaders=tools.folder / "none") is None
