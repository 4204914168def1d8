"""Models that bring their own code: TorchScript files and `torch.export` programs. Each is one layer.

A program of `torch.export` carries example inputs. A TorchScript file says only how many there are, so a file
`NAME.inputs.json` beside it must say which: `{"inputs": [{"shape": [1, 512], "dtype": "float32"}, 16000]}`. It is
one of the model's files, and bound by its digest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gitledger.lanes.probe.encoder import resolve_range
from gitledger.lanes.probe.faults import ProbeError
from gitledger.lanes.probe.subject import Subject, moved

__all__ = ["INPUTS_SUFFIX", "load_program", "load_script"]

INPUTS_SUFFIX = ".inputs.json"
MAX_ELEMENTS = 1 << 28


def load_script(file: Path, layers: tuple[int, int | None], seed: int) -> Subject:
    """Return a TorchScript model; raises `ProbeError` where nothing says what inputs it takes."""
    import torch

    start, end = resolve_range(layers, 1)
    described = _described_inputs(file)
    if described is None:
        raise ProbeError("artifact-unavailable", f"{file.name} needs {file.name}{INPUTS_SUFFIX} to say its inputs")

    def build() -> Any:
        return _Script(torch.jit.load(str(file), map_location="cpu").eval())

    stored = _stored(build().script)
    return Subject(
        form="script",
        total=1,
        start=start,
        end=end,
        stored=stored,
        build=build,
        inputs=_seeded(described, seed),
    )


def load_program(file: Path, layers: tuple[int, int | None], seed: int) -> Subject:
    """Return a `torch.export` program with its example inputs, unless a file beside it says others."""
    import torch

    start, end = resolve_range(layers, 1)
    program = torch.export.load(str(file))
    described = _described_inputs(file)
    inputs = _seeded(described, seed) if described is not None else tuple(program.example_inputs[0])

    def build() -> Any:
        return _Program(torch.export.load(str(file)))

    state = [tensor for tensor in program.state_dict.values() if tensor.is_floating_point()]
    stored = str(state[0].dtype).removeprefix("torch.") if state else "float32"
    return Subject(
        form="program",
        total=1,
        start=start,
        end=end,
        stored=stored,
        build=build,
        inputs=moved(inputs, device="cpu"),
    )


class _Script:
    """A TorchScript module as a callable; one that keeps state between calls begins each anew."""

    def __init__(self, script: Any) -> None:
        self.script = script

    def __call__(self, *inputs: Any) -> Any:
        if hasattr(self.script, "reset_states"):
            self.script.reset_states()
        return self.script(*inputs)

    def float(self) -> _Script:
        return self.to(dtype_name="float32")

    def eval(self) -> _Script:
        return self

    def to(self, *, device: Any = None, dtype_name: str = "") -> _Script:
        import torch

        if device is not None:
            self.script = self.script.to(device)
        if dtype_name:
            self.script = self.script.to(getattr(torch, dtype_name))
        return self

    def parameters(self) -> Any:
        return self.script.parameters()


class _Program:
    """A `torch.export` program as a callable; constants inside of it are moved along."""

    def __init__(self, program: Any) -> None:
        self.program = program
        self.module = program.module()

    def __call__(self, *inputs: Any) -> Any:
        return self.module(*inputs)

    def float(self) -> _Program:
        return self

    def eval(self) -> _Program:
        return self

    def to(self, *, device: Any = None, dtype_name: str = "") -> _Program:
        if device is not None and str(device) != "cpu":
            from torch.export.passes import move_to_device_pass

            self.program = move_to_device_pass(self.program, device)
            self.module = self.program.module()
        if dtype_name:
            import torch

            self.module = self.module.to(dtype=getattr(torch, dtype_name))
        return self

    def parameters(self) -> Any:
        return self.module.parameters()


def _described_inputs(file: Path) -> list[Any] | None:
    described = file.with_name(file.name + INPUTS_SUFFIX)
    if not described.exists():
        return None
    try:
        value = json.loads(described.read_text("utf-8"))
    except ValueError as error:
        raise ProbeError("load-failed", f"{described.name} is not JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("inputs"), list) or not value["inputs"]:
        raise ProbeError("load-failed", f'{described.name}: expected {{"inputs": [...]}}')
    return list(value["inputs"])


def _seeded(described: list[Any], seed: int) -> tuple[Any, ...]:
    import torch

    generator = torch.Generator().manual_seed(seed)
    return tuple(_input(item, generator) for item in described)


def _input(item: Any, generator: Any) -> Any:
    """Return one input: a tensor of normal numbers, of integers below `high`, or the number that stands there."""
    import torch

    if not isinstance(item, dict):
        return item
    shape, name = item.get("shape"), item.get("dtype", "float32")
    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(shape, list) or not all(isinstance(n, int) and n > 0 for n in shape):
        raise ProbeError("load-failed", f"an input's shape is {shape!r}")
    size = 1
    for number in shape:
        size *= number
    if not isinstance(dtype, torch.dtype) or size > MAX_ELEMENTS:
        raise ProbeError("load-failed", f"an input of {size} elements of type {name!r}")
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, int(item.get("high", 100)), shape, generator=generator).to(dtype)


def _stored(script: Any) -> str:
    for tensor in script.parameters():
        if tensor.is_floating_point():
            return str(tensor.dtype).removeprefix("torch.")
    return "float32"
