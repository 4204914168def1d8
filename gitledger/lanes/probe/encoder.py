"""A BERT-like encoder out of a folder in the Hugging Face layout, with torch and safetensors alone.

Names and arithmetic are those of the published BERT checkpoints (Devlin et al., 2018): post-norm blocks, absolute
positions, the exact GELU. Held against `transformers`, outputs agree to 2e-6; a test does so where it is there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gitledger.lanes.probe.faults import ProbeError
from gitledger.lanes.probe.subject import Subject

__all__ = ["is_plain", "load_encoder", "read_config"]

_MODEL_TYPES = ("bert",)
SEQUENCE = 32
"""Tokens of the seeded input."""
_PREFIXES = ("", "bert.")
_OF_A_LAYER = frozenset(
    f"{part}.{kind}"
    for part in (
        *("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
        *("attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"),
    )
    for kind in ("weight", "bias")
)
"""The tensors of one layer, all of which are computed with."""


def is_plain(config: dict[str, Any]) -> bool:
    """Tell whether a model's arithmetic is the one that stands here.

    Any other would be computed wrongly twice, as the reference and as what is measured, and they would agree.
    """
    return (
        config["model_type"] in _MODEL_TYPES
        and config.get("hidden_act", "gelu") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not any(config.get(key) for key in ("is_decoder", "add_cross_attention", "quantization_config"))
    )


def load_encoder(
    root: Path, config: dict[str, Any], files: list[str], layers: tuple[int, int | None], seed: int
) -> Subject:
    """Return the layers `start` to `end` of the encoder; the whole model begins with its embeddings.

    A range that starts later is given what the layers before it make of the seeded tokens, computed on the CPU in
    float32; so the last layers of a model end where the whole of it does. Raises `ProbeError`:
    `layers-out-of-range`, `quantization-unsupported` for a type that is no float, `model-mismatch` where the
    weights are not those of the configuration.
    """
    import torch

    weights = Weights(root, [name for name in files if name.endswith(".safetensors")])
    total = weights.check_layers(int(config["num_hidden_layers"]))
    start, end = resolve_range(layers, total)
    whole = (start, end) == (0, total - 1)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, int(config["vocab_size"]), (1, SEQUENCE), generator=generator)

    def build() -> Any:
        return encoder_module(config, weights, range(start, end + 1), embeds=whole)

    inputs: Any = tokens
    if not whole:
        before = encoder_module(config, weights, range(start), embeds=True).float().eval()
        with torch.no_grad():
            inputs = before(tokens)
    return Subject(
        form="module",
        total=total,
        start=start,
        end=end,
        stored=weights.dtype_name(),
        build=build,
        inputs=(inputs,),
    )


def resolve_range(layers: tuple[int, int | None], total: int) -> tuple[int, int]:
    """Return first and last layer, both inclusive; raises `ProbeError` `layers-out-of-range`."""
    start, end = layers[0], total - 1 if layers[1] is None else layers[1]
    if not 0 <= start <= end < total:
        raise ProbeError("layers-out-of-range", f"layers {start}-{end} of a model whose last layer is {total - 1}")
    return start, end


class Weights:
    """The tensors of a folder's safetensors files, read when they are asked for."""

    def __init__(self, root: Path, names: list[str]) -> None:
        from safetensors import safe_open

        self._handles: dict[str, Any] = {}
        for name in names:
            handle = safe_open(str(root / name), framework="pt", device="cpu")
            self._handles.update(dict.fromkeys(handle.keys(), handle))
        if not self._handles:
            raise ProbeError("load-failed", "the weights hold no tensors")
        self._prefix = next((p for p in _PREFIXES if f"{p}embeddings.word_embeddings.weight" in self._handles), "")

    def tensor(self, name: str) -> Any:
        """Return a tensor by its name; raises `ProbeError` `model-mismatch` where there is none."""
        full = self._prefix + name
        if full not in self._handles:
            raise ProbeError("model-mismatch", f"the configuration asks for {full}, which the weights lack")
        return self._handles[full].get_tensor(full)

    def check_layers(self, declared: int) -> int:
        """Return the number of layers; raises `model-mismatch` where configuration and weights disagree.

        So it is where a layer has tensors that nothing here computes with.
        """
        head = f"{self._prefix}encoder.layer."
        parts = [name[len(head) :].partition(".") for name in self._handles if name.startswith(head)]
        found = {int(number) for number, _, _ in parts}
        if found != set(range(declared)):
            raise ProbeError(
                "model-mismatch", f"layers: {declared} in the configuration, {len(found)} in the weights"
            )
        unknown = sorted({tensor for _, _, tensor in parts} - _OF_A_LAYER)
        if unknown:
            raise ProbeError("model-mismatch", f"the weights have {unknown[0]}, which no layer of BERT has")
        return declared

    def dtype_name(self) -> str:
        """Return torch's name for the type of the weights (`float32`); one that is no float is refused."""
        dtype = self.tensor("embeddings.LayerNorm.weight").dtype
        if not dtype.is_floating_point:
            raise ProbeError("quantization-unsupported", f"weights of type {dtype}")
        return str(dtype).removeprefix("torch.")


def encoder_module(config: dict[str, Any], weights: Weights, numbers: range, *, embeds: bool) -> Any:
    """Return the module of some layers, with the embeddings before them where `embeds`."""
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embeddings = _embeddings(config, weights) if embeds else nn.Identity()
            self.layers = nn.ModuleList(_layer(config, weights, number) for number in numbers)

        def forward(self, value: Any) -> Any:
            value = self.embeddings(value)
            for layer in self.layers:
                value = layer(value)
            return value

    return Model().eval()


def _linear(weights: Weights, name: str) -> Any:
    from torch import nn

    weight, bias = weights.tensor(f"{name}.weight"), weights.tensor(f"{name}.bias")
    module = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
    module.weight, module.bias = nn.Parameter(weight), nn.Parameter(bias)
    return module


def _norm(config: dict[str, Any], weights: Weights, name: str) -> Any:
    from torch import nn

    weight, bias = weights.tensor(f"{name}.weight"), weights.tensor(f"{name}.bias")
    module = nn.LayerNorm(weight.shape[0], eps=float(config.get("layer_norm_eps", 1e-12)), dtype=weight.dtype)
    module.weight, module.bias = nn.Parameter(weight), nn.Parameter(bias)
    return module


def _embeddings(config: dict[str, Any], weights: Weights) -> Any:
    import torch
    from torch import nn

    class Embeddings(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name in ("word", "position", "token_type"):
                table = weights.tensor(f"embeddings.{name}_embeddings.weight")
                self.register_parameter(name, nn.Parameter(table))
            self.norm = _norm(config, weights, "embeddings.LayerNorm")

        def forward(self, tokens: Any) -> Any:
            positions = torch.arange(tokens.shape[1], device=tokens.device)
            looked_up = nn.functional.embedding(tokens, self.word)
            return self.norm(looked_up + self.token_type[0] + self.position[positions])

    return Embeddings()


def _layer(config: dict[str, Any], weights: Weights, number: int) -> Any:
    from torch import nn

    heads = int(config["num_attention_heads"])
    at = f"encoder.layer.{number}"

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query = _linear(weights, f"{at}.attention.self.query")
            self.key = _linear(weights, f"{at}.attention.self.key")
            self.value = _linear(weights, f"{at}.attention.self.value")
            self.attended = _linear(weights, f"{at}.attention.output.dense")
            self.attended_norm = _norm(config, weights, f"{at}.attention.output.LayerNorm")
            self.wide = _linear(weights, f"{at}.intermediate.dense")
            self.narrow = _linear(weights, f"{at}.output.dense")
            self.norm = _norm(config, weights, f"{at}.output.LayerNorm")

        def forward(self, hidden: Any) -> Any:
            batch, length, width = hidden.shape

            def split(value: Any) -> Any:
                return value.view(batch, length, heads, width // heads).transpose(1, 2)

            context = nn.functional.scaled_dot_product_attention(
                split(self.query(hidden)), split(self.key(hidden)), split(self.value(hidden))
            )
            context = context.transpose(1, 2).reshape(batch, length, width)
            hidden = self.attended_norm(self.attended(context) + hidden)
            return self.norm(self.narrow(nn.functional.gelu(self.wide(hidden))) + hidden)

    return Layer()


def read_config(root: Path) -> dict[str, Any]:
    """Return a folder's `config.json`; raises `ProbeError` `load-failed` where it is none."""
    try:
        value = json.loads((root / "config.json").read_text("utf-8"))
    except ValueError as error:
        raise ProbeError("load-failed", f"config.json is not JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("model_type"), str):
        raise ProbeError("load-failed", "config.json names no model_type")
    return value
