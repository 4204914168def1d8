"""What a failure is called: by the words of the CUDA and HIP runtimes and of torch, else by the stage it ended."""

from __future__ import annotations

import pytest

from gitledger.lanes.probe.faults import ProbeError, classify
from gitledger.lanes.probe.main import KNOWN_QUANTIZATIONS
from gitledger.lanes.settings import overrides_of
from gitledger.records.capability_status import ReasonCode


@pytest.mark.parametrize(
    ("error", "stage", "code"),
    [
        (RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable"), "device", "device-busy"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 MiB"), "device", "device-busy"),
        (RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"), "load", "out-of-memory"),
        (RuntimeError("HIP out of memory. Tried to allocate 20.00 GiB"), "forward", "out-of-memory"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9"),
            "load",
            "out-of-memory",
        ),
        (MemoryError(), "reference", "out-of-memory"),
        (RuntimeError("HIP error: invalid device function"), "device", "arch-unsupported"),
        (RuntimeError("CUDA error: no kernel image is available for execution"), "forward", "arch-unsupported"),
        (RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Half'"), "forward", "quantization-unsupported"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "forward", "forward-failed"),
        (RuntimeError("CUDA error: operation not permitted"), "device", "permission-denied"),
        (PermissionError(13, "Permission denied"), "load", "permission-denied"),
        (ImportError("libcudart.so.12"), "prepare", "dependency-missing"),
        (RuntimeError("InvalidCxxCompiler: No working C++ compiler found"), "prepare", "dependency-missing"),
        (ValueError("bad header"), "load", "load-failed"),
        (ValueError("anything"), "somewhere", "internal-error"),
        (KeyboardInterrupt(), "forward", "interrupted"),
        (ProbeError("layers-out-of-range", "7 of 6"), "load", "layers-out-of-range"),
    ],
)
def test_a_failure_is_called_what_it_is(error, stage, code):
    found, message = classify(error, stage)
    assert found == code
    assert message
    assert ReasonCode(found)


def test_a_message_is_one_line_and_bounded():
    _, message = classify(RuntimeError("a\n" * 5000), "load")
    assert "\n" not in message
    assert len(message) <= 600


def test_devices_are_counted_in_the_environment_and_not_named():
    found = overrides_of(
        {
            "CUDA_VISIBLE_DEVICES": "GPU-5f2a1c9e-88d1-4c1e-9c52-0d6a1d3c7b10,1",
            "HSA_OVERRIDE_GFX_VERSION": "11.0.0",
            "HSA_OVERRIDE_GFX_VERSION_1": "10.3.0",
            "HSA_OVERRIDE_GFX_VERSION_SECRET": "x",
            "SECRET_TOKEN": "x",
            "OMP_NUM_THREADS": "",
        }
    )
    assert found == {
        "CUDA_VISIBLE_DEVICES": "GPU-…,1",
        "HSA_OVERRIDE_GFX_VERSION": "11.0.0",
        "HSA_OVERRIDE_GFX_VERSION_1": "10.3.0",
    }


def test_the_quantizations_that_are_known_are_those_that_recipes_take():
    import importlib

    from gitledger.lanes.probe.registry import BUILT_IN_IDS, module_name

    modules = [importlib.import_module(f"gitledger.lanes.recipes.{module_name(name)}") for name in BUILT_IN_IDS]
    assert {word for module in modules for word in module.TAKES} == set(KNOWN_QUANTIZATIONS)
