"""What a run may have: memory within limits, devices that are clean; ours is waited for, others' within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.machine.admission import Admission, Blocked, Grant, Need
from gitledger.machine.devices import DevicePool, find_devices
from gitledger.machine.memory import Memory, memory_now

GIB = 1 << 30


# --- memory -----------------------------------------------------------------------------------------------------


def proc(root: Path, *, total_gib: int, free_gib: int, cgroups: str, mounts: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    kib = GIB >> 10
    (root / "proc/meminfo").write_text(f"MemTotal: {total_gib * kib} kB\nMemAvailable: {free_gib * kib} kB\n")
    (root / "proc/self/cgroup").write_text(cgroups)
    (root / "proc/self/mountinfo").write_text(mounts)
    return root / "proc"


def test_the_tightest_cgroup_above_decides_in_both_versions(tmp_path):
    v2 = tmp_path / "v2"
    for folder, limit, used, spare in (
        ("", "max", 9, 0),
        ("/job", str(4 * GIB), 3 * GIB, GIB),
        ("/job/step", "max", 1, 0),
    ):
        place = Path(f"{v2}{folder}")
        place.mkdir(parents=True, exist_ok=True)
        (place / "memory.max").write_text(limit)
        (place / "memory.current").write_text(str(used))
        (place / "memory.stat").write_text(f"anon 1\ninactive_file {spare}\n")
    v1 = tmp_path / "v1/box"
    v1.mkdir(parents=True)
    (v1 / "memory.limit_in_bytes").write_text(str(2 * GIB))
    (v1 / "memory.usage_in_bytes").write_text(str(GIB))
    (v1 / "memory.stat").write_text("total_inactive_file 0\n")
    new = proc(
        tmp_path / "a",
        total_gib=64,
        free_gib=32,
        cgroups="0::/job/step\n",
        mounts=f"1 1 0:1 / {v2} rw - cgroup2 c rw\n",
    )
    old = proc(
        tmp_path / "b",
        total_gib=64,
        free_gib=32,
        cgroups="4:memory:/box\n",
        mounts=f"1 1 0:1 / {v1.parent} rw - cgroup c rw,memory\n",
    )

    assert memory_now(new) == Memory(total_bytes=4 * GIB, free_bytes=2 * GIB)
    assert memory_now(old) == Memory(total_bytes=2 * GIB, free_bytes=GIB)


def test_a_machine_without_limits_has_what_it_has_and_an_unknown_one_nothing_to_hold_against(tmp_path):
    free = proc(tmp_path / "a", total_gib=8, free_gib=5, cgroups="0::/\n", mounts="")
    assert memory_now(free) == Memory(total_bytes=8 * GIB, free_bytes=5 * GIB)
    assert memory_now(tmp_path / "none") is None
    here = memory_now()
    assert here is not None
    assert 0 < here.free_bytes <= here.total_bytes


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def admission(free_gib: float, *, devices: DevicePool | None = None, wait_s: float = 10.0, env=None):
    clock = Clock()
    memory = Memory(total_bytes=16 * GIB, free_bytes=int(free_gib * GIB))
    return clock, Admission(env=env or {}, memory=lambda: memory, devices=devices, wait_s=wait_s, clock=clock)


def test_what_runs_have_declared_is_not_free_even_before_they_take_it():
    _, room = admission(10)
    first = room.ask("a", Need(memory_bytes=6 * GIB))
    assert isinstance(first, Grant)

    waits = room.ask("b", Need(memory_bytes=5 * GIB))
    assert isinstance(waits, Blocked)
    assert not waits.is_final
    assert isinstance(room.ask("c", Need(memory_bytes=4 * GIB)), Grant), "a smaller one passes"

    room.take_back(first)
    assert isinstance(room.ask("b", Need(memory_bytes=5 * GIB)), Grant)


def test_ours_is_waited_for_as_long_as_it_takes_and_others_within_bounds():
    clock, room = admission(10, wait_s=10)
    held = room.ask("a", Need(memory_bytes=8 * GIB))
    for clock.now in (0.0, 1000.0):
        assert not room.ask("b", Need(memory_bytes=8 * GIB)).is_final
    room.take_back(held)

    clock, room = admission(3, wait_s=10)
    for clock.now, is_final in ((0.0, False), (9.9, False), (10.0, True)):
        assert room.ask("b", Need(memory_bytes=8 * GIB)).is_final is is_final


def test_what_the_machine_never_has_is_said_at_once():
    _, room = admission(10, wait_s=1000)
    more_memory = room.ask("a", Need(memory_bytes=17 * GIB))
    more_devices = room.ask("a", Need(gpus=1))
    assert (more_memory.is_final, more_devices.is_final) == (True, True)
    assert "17.0 GiB of memory, and 16.0 GiB can be had here" in more_memory.why


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(0, 16))
def test_grants_together_never_exceed_what_was_free(needs, free):
    _, room = admission(free)
    held: list[Grant] = []
    for number, need in enumerate(needs):
        answer = room.ask(str(number), Need(memory_bytes=need * GIB))
        if isinstance(answer, Grant):
            held.append(answer)
        elif held and number % 2:
            room.take_back(held.pop(0))
        assert sum(grant.need.memory_bytes for grant in held) <= free * GIB


# --- devices ----------------------------------------------------------------------------------------------------

A, B = "GPU-aaaaaaaa-1", "GPU-bbbbbbbb-2"


@pytest.fixture
def nvidia(tmp_path):
    """A stand-in for `nvidia-smi`; the test writes what it prints: `state` and `apps`."""
    folder = tmp_path / "tools"
    folder.mkdir()
    cases = "--query-gpu=*) cat state;; --query-compute*) cat apps;; *) exit 2;;"
    (folder / "nvidia-smi").write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin\ncd {folder}; case "$1" in {cases} esac\n')
    (folder / "nvidia-smi").chmod(0o755)
    (folder / "state").write_text(f"0, {A}, 100, 80000\n1, {B}, 100, 80000\n")
    (folder / "apps").write_text("")
    return folder


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (None, ("0", "1")),
        ("1", ("1",)),
        (f"{B},0", (B, "0")),
        ("GPU-bbbb", ("GPU-bbbb",)),
        ("0,7,1", ("0",)),
        ("", ()),
        ("-1", ()),
        ("MIG-c6d4", ("MIG-c6d4",)),
    ],
)
def test_a_variable_that_is_set_narrows_the_choice_and_its_words_are_handed_on(nvidia, value, tokens):
    env = {"PATH": str(nvidia)} | ({} if value is None else {"CUDA_VISIBLE_DEVICES": value})
    pool = find_devices(env)
    assert (pool.tokens if pool else ()) == tokens


def test_without_a_tool_the_variable_alone_tells_and_without_both_there_are_none(tmp_path):
    assert find_devices({"PATH": str(tmp_path)}) is None
    pool = find_devices({"PATH": str(tmp_path), "HIP_VISIBLE_DEVICES": "2,3"})
    assert (pool.tokens, pool.variables(("3",))) == (("2", "3"), {"HIP_VISIBLE_DEVICES": "3"})
    assert pool.unclean("2", {}) == ""


def test_cuda_is_told_to_count_as_the_tools_do(nvidia):
    pool = find_devices({"PATH": str(nvidia)})
    assert pool.variables(("1", "0")) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,0"}


def test_r12_a_device_is_clean_when_nobody_computes_on_it_and_its_memory_is_back(nvidia):
    env = {"PATH": str(nvidia)}
    pool = find_devices(env)
    assert pool.unclean("0", env) == ""

    (nvidia / "apps").write_text(f"{A}, 4711\n{A}, 4712\n")
    assert "2 processes" in pool.unclean("0", env)
    assert pool.unclean("1", env) == ""

    (nvidia / "apps").write_text("")
    (nvidia / "state").write_text(f"0, {A}, 600, 80000\n1, {B}, 700, 80000\n")
    assert pool.unclean("0", env) == "", "within the slack of 512 MiB"
    assert "700 MiB" in pool.unclean("1", env)

    (nvidia / "state").write_text("")
    assert "does not tell" in pool.unclean("0", env), "a card that fell off the bus is not handed out"


def test_amd_devices_are_told_by_rocm_smi(tmp_path):
    (tmp_path / "rocm-smi").write_text(
        """#!/bin/sh
echo 'WARNING: odd'; echo '{"card1": {"Unique ID": "0xb", "VRAM Total Memory (B)": "68702699520",
"VRAM Total Used Memory (B)": "10000000"}, "card0": {"Unique ID": "0xa", "VRAM Total Memory (B)": "68702699520",
"VRAM Total Used Memory (B)": "20000000000"}, "system": {}}'
"""
    )
    (tmp_path / "rocm-smi").chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    pool = find_devices(env)
    assert (pool.vendor, pool.tokens, pool.variables(("0",))) == ("amd", ("0", "1"), {"HIP_VISIBLE_DEVICES": "0"})
    assert pool.unclean("1", env) == ""


def test_devices_are_given_once_and_the_machine_is_blamed_only_for_what_is_not_ours(nvidia):
    env = {"PATH": str(nvidia)}
    clock, room = admission(1, devices=find_devices(env), env=env, wait_s=10)
    one, two = room.ask("a", Need(gpus=1)), room.ask("b", Need(gpus=1))
    assert {one.devices, two.devices} == {("0",), ("1",)}
    for clock.now in (0.0, 1000.0):
        assert not room.ask("c", Need(gpus=2)).is_final

    room.take_back(one)
    (nvidia / "apps").write_text(f"{A}, 4711\n")
    for clock.now in (2000.0, 3000.0):
        assert not room.ask("d", Need(gpus=1)).is_final, "ours gives one back"
    room.take_back(two)
    clock.now = 4000.0
    assert not room.ask("c", Need(gpus=2)).is_final
    clock.now = 4020.0
    gone = room.ask("c", Need(gpus=2))
    assert gone.is_final
    assert "GPU 0: computed on by 1 process, after 20 s" in gone.why
