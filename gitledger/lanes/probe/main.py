"""The probe: one recipe, one model, one process. Load, forward, synchronise, check; and say so as it goes.

It is started by `gitledger.lanes.supervise` with the path of a request (JSON). What it writes is a claim: the
parent holds it against how the process really ended, and a report that contradicts itself can't be made.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gitledger.lanes.probe.faults import ProbeError, classify
from gitledger.lanes.probe.journal import Journal
from gitledger.lanes.probe.snapshot import snapshot

__all__ = ["main"]

KNOWN_QUANTIZATIONS = ("float32", "bfloat16", "float16", "int8")


def main(request_path: str) -> None:
    """Run what the request asks for, and write the journal; exits with 0 whatever came of it."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        faulthandler.register(signal.SIGUSR1)
    request = json.loads(Path(request_path).read_text("utf-8"))
    journal = Journal(request["journal"], request["nonce"])
    if request["ask"] in ("names", "recipe"):
        from gitledger.lanes.probe.registry import names, offered

        found = names() if request["ask"] == "names" else [offered(request["recipe"])]
        journal.write("recipes", python=platform.python_version(), recipes=found)
        return
    run = _Run(request, journal)
    try:
        run.go()
    except Exception as error:  # every failure is a result; the traceback goes to the log
        _print_traceback(error)
        code, message = classify(error, run.stage)
        run.end(code, message)
    except KeyboardInterrupt:
        run.end("interrupted", "interrupted")


def _print_traceback(error: Exception) -> None:
    import traceback

    if not isinstance(error, ProbeError):
        traceback.print_exception(error)


class _Run:
    """One run of one recipe, and what is known of it so far."""

    def __init__(self, request: dict[str, Any], journal: Journal) -> None:
        self.request = request
        self.journal = journal
        self.stage = "start"
        self.stages: dict[str, float] = {}
        self.forward: dict[str, Any] | None = None
        self.duration_ms: float | None = None

    @contextmanager
    def stages_of(self, name: str) -> Iterator[None]:
        """Run a stage: its beginning is written before anything can go wrong, its milliseconds are kept."""
        self.stage = name
        self.journal.write("stage", stage=name)
        began = time.perf_counter()
        yield
        self.stages[name] = (time.perf_counter() - began) * 1000

    def end(self, code: str | None, message: str = "") -> None:
        """Write the last event: a pass (`code` None), or the reason for none."""
        self.journal.write(
            "end",
            code=code,
            message=message,
            stage=self.stage,
            stages=self.stages,
            forward=self.forward,
            duration_ms=self.duration_ms,
        )

    def go(self) -> None:
        """Go through the stages; raises whatever keeps the recipe from passing."""
        request = self.request
        with self.stages_of("import"):
            self.journal.write("python", python=platform.python_version())
            _import_torch()
            from gitledger.lanes.probe import check, device

            self.journal.write("torch", torch=device.describe_torch())
        with self.stages_of("recipe"):
            recipe = _recipe(request)
        with self.stages_of("device"):
            target = device.choose(request["device"])
            self.journal.write("device", device={**device.describe(target), "used": str(target.device)})
        with self.stages_of("load"):
            subject = _load(request)
            layers = {"start": subject.start, "end": subject.end, "total": subject.total}
            self.journal.write("layers", layers=layers)
        resolved, tolerance = self._quantization(recipe, subject, target)
        with self.stages_of("reference"):
            reference = self._reference(subject)
        with self.stages_of("prepare"):
            output, module = self._measured(recipe, subject, target, resolved)
        with self.stages_of("check"):
            self._check(check, target, module, (output, reference, subject), tolerance)
        self.end(None)

    def _quantization(self, recipe: Any, subject: Any, target: Any) -> tuple[str, float]:
        """Return what the quantization comes to, and the tolerance that the recipe states for it."""
        self.stage = "recipe"
        asked = self.request["quantization"]
        if asked != "auto" and asked not in KNOWN_QUANTIZATIONS and asked not in recipe.TAKES:
            raise ProbeError("quantization-unsupported", f"no recipe here takes {asked}")
        why = recipe.refuses(subject, target)
        if why:
            raise ProbeError("recipe-not-applicable", f"{recipe.ID}: {why}")
        resolved = (recipe.AUTO or subject.stored) if asked == "auto" else asked
        if resolved not in recipe.TAKES:
            takes = ", ".join(recipe.TAKES)
            raise ProbeError("recipe-not-applicable", f"{recipe.ID} takes {takes}, not {resolved}")
        compute, tolerance = recipe.TAKES[resolved]
        _check_support(target, resolved)
        self.journal.write("quantization", resolved=resolved, compute_dtype=compute)
        return resolved, float(tolerance)

    def _reference(self, subject: Any) -> Any:
        """Return the output of the same layers and inputs on the CPU in float32."""
        import torch

        from gitledger.lanes.probe.subject import first_tensor, moved

        torch.manual_seed(self.request["seed"])
        module = subject.build().float()
        with torch.no_grad():
            output = first_tensor(module(*moved(subject.inputs, dtype=torch.float32)))
        if output is None:
            raise ProbeError("output-invalid", "the model's output holds no floating tensor")
        return output.detach().float().clone()

    def _measured(self, recipe: Any, subject: Any, target: Any, resolved: str) -> tuple[Any, Any]:
        """Return the output of the measured forward and the module; a first, unmeasured one warms up."""
        import torch

        from gitledger.lanes.probe.subject import first_tensor

        with torch.no_grad():
            torch.manual_seed(self.request["seed"])
            call, module = recipe.prepare(subject, target, resolved)
            with self.stages_of("warm-up"):
                call()
                target.synchronise()
            with self.stages_of("forward"):
                target.synchronise()
                began = time.perf_counter()
                made = call()
                target.synchronise()
                self.duration_ms = (time.perf_counter() - began) * 1000
        output = first_tensor(made)
        if output is None:
            raise ProbeError("output-invalid", "the output holds no floating tensor")
        return output.detach(), module

    def _check(self, check: Any, target: Any, module: Any, made: tuple[Any, Any, Any], tolerance: float) -> None:
        """Note what came out; raises `ProbeError` where it is not what a pass needs."""
        output, reference, subject = made
        self.forward = check.outline(output)
        check.check_device(target, module, output)
        error, finite = check.distance(output, reference), check.is_finite(output)
        self.forward |= {
            "finite": finite,
            "output_digest": check.tensor_digest(output),
            "reference": {
                "seed": self.request["seed"],
                "inputs_digest": check.inputs_digest(subject.inputs),
                "output_digest": check.tensor_digest(reference),
                "error": error,
                "tolerance": tolerance,
            },
        }
        if not finite or output.numel() == 0:
            raise ProbeError("output-invalid", "the output is empty, or holds numbers that are not finite")
        if not reference.count_nonzero():
            text = "the reference is zero throughout: a device that computes nothing would agree with it"
            raise ProbeError("output-invalid", text)
        if tuple(output.shape) != tuple(reference.shape):
            raise ProbeError(
                "output-mismatch", f"shape {list(output.shape)}, the reference has {list(reference.shape)}"
            )
        if error is None or error > tolerance:
            raise ProbeError("output-mismatch", f"error {error}, above the tolerance {tolerance}")


def _import_torch() -> None:
    """Import torch; raises `ProbeError` `dependency-missing` where it is not there or its libraries don't load."""
    try:
        import torch  # noqa: F401
    except (ImportError, OSError) as error:
        text = " ".join(str(error).split())
        raise ProbeError(
            "dependency-missing", f"torch can't be imported: {text}; pip install 'git-ledger[lanes]'"
        ) from error


def _recipe(request: dict[str, Any]) -> Any:
    from gitledger.lanes.probe.registry import digest_of, find

    recipe = find(request["recipe"])
    found = str(recipe.VERSION), digest_of(recipe)
    if found != (request["recipe_version"], request["recipe_digest"]):
        raise ProbeError(
            "internal-error", f"recipe {recipe.ID} is another one here: version {found[0]}, {found[1][:12]}"
        )
    return recipe


def _load(request: dict[str, Any]) -> Any:
    """Return the layers that are asked for, by the form of the model's files: of their sealed copies, that is."""
    files, seed = [file["name"] for file in request["files"]], request["seed"]
    root = snapshot(Path(request["root"]), request["files"], Path("model").absolute())
    layers = request["start"], request["end"]
    if request["form"] == "folder":
        from gitledger.lanes.probe.encoder import is_plain, load_encoder, read_config

        config = read_config(root)
        if is_plain(config):
            _import_safetensors()
            return load_encoder(root, config, files, layers, seed)
        from gitledger.lanes.probe.hugging_face import load_hugging_face

        return load_hugging_face(root, config, layers, seed)
    from gitledger.lanes.probe.programs import load_program, load_script

    load = load_script if request["form"] == "script" else load_program
    return load(root / request["main"], layers, seed)


def _import_safetensors() -> None:
    try:
        import safetensors  # noqa: F401
    except ImportError as error:
        raise ProbeError(
            "dependency-missing", "safetensors can't be imported: pip install 'git-ledger[lanes]'"
        ) from error


def _check_support(target: Any, quantization: str) -> None:
    """Raise `ProbeError` `quantization-unsupported` where the device itself says that it lacks the type."""
    if target.is_cpu or quantization != "bfloat16":
        return
    import torch

    if not torch.cuda.is_bf16_supported():
        raise ProbeError("quantization-unsupported", f"{target.device} has no bfloat16")
