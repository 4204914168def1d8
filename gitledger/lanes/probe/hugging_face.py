"""Models in the Hugging Face layout through `transformers`: any family, whole or by layers. Never from a hub.

Layers are taken out of the module and called with the very arguments that the model itself calls each of them
with; these are overheard during a run of the whole on the CPU, so no family's masks and positions have to be
known here.

transformers makes up what the weights lack, and passes over what they have too much: by the seed, the reference
and the measured model would have the same made-up layers, and agree. So what was loaded is held against what is
there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gitledger.lanes.probe.encoder import SEQUENCE, resolve_range
from gitledger.lanes.probe.faults import ProbeError
from gitledger.lanes.probe.subject import Subject, first_tensor, moved

__all__ = ["load_hugging_face"]

_POOLER = re.compile(r"(?:^|\.)pooler\.")
"""What a model adds behind its layers, and weights of another task lack; nothing compared comes from it."""


def load_hugging_face(root: Path, config: dict[str, Any], layers: tuple[int, int | None], seed: int) -> Subject:
    """Return the layers `start` to `end`, or the whole model; raises `ProbeError` as `load_encoder` does."""
    import torch

    try:
        import transformers
    except ImportError as error:
        text = f"this model of type {config['model_type']} needs transformers: pip install 'git-ledger[lanes-hf]'"
        raise ProbeError("dependency-missing", text) from error

    dtype = "dtype" if int(transformers.__version__.partition(".")[0]) >= 5 else "torch_dtype"

    def whole() -> Any:
        offline: dict[str, Any] = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
        model, loaded = transformers.AutoModel.from_pretrained(
            str(root), **offline, **{dtype: "auto"}, output_loading_info=True
        )
        _check_loaded(model, loaded)
        return model.eval()

    model = whole()
    stored = str(next(model.parameters()).dtype).removeprefix("torch.")
    blocks = _blocks(model)
    start, end = resolve_range(layers, len(blocks))
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, int(model.config.vocab_size), (1, SEQUENCE), generator=generator)
    if (start, end) == (0, len(blocks) - 1):
        return Subject(
            form="module",
            total=len(blocks),
            start=start,
            end=end,
            stored=stored,
            build=lambda: _whole(whole()),
            inputs=(tokens,),
        )
    heard = _overhear(model.float(), blocks, tokens)
    del model, blocks
    calls = [(args, kwargs) for _, args, kwargs in heard[start : end + 1]]
    return Subject(
        form="module",
        total=len(heard),
        start=start,
        end=end,
        stored=stored,
        build=lambda: _stack(list(_blocks(whole()))[start : end + 1], calls),
        inputs=(heard[start][0],),
    )


def _check_loaded(model: Any, loaded: dict[str, Any]) -> None:
    """Raise `model-mismatch` where a model has tensors that its weights lack, or they have layers more than it."""
    lacking = sorted(key for key in map(str, loaded["missing_keys"]) if not _POOLER.search(key))
    lacking += sorted(str(item) for item in loaded.get("mismatched_keys", ()))
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        text = f"the configuration asks for {lacking[0]}{more}, which the weights lack"
        raise ProbeError("model-mismatch", text)
    blocks = _blocks(model)
    name = next(name for name, module in model.named_modules() if module is blocks)
    layer = re.compile(rf"(?:^|\.){re.escape(name)}\.(\d+)\.")
    found = {int(match[1]) for key in loaded["unexpected_keys"] if (match := layer.search(str(key)))}
    if found and max(found) >= len(blocks):
        raise ProbeError(
            "model-mismatch", f"layers: {len(blocks)} in the configuration, {max(found) + 1} in the weights"
        )


def _blocks(model: Any) -> Any:
    """Return the list of a model's layers: its one module list of as many as the configuration says."""
    from torch import nn

    count = getattr(model.config, "num_hidden_layers", None)
    found = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module) == count]
    if not found:
        raise ProbeError(
            "model-mismatch", f"the model has no list of layers of the length that it declares: {count}"
        )
    return found[0]


def _overhear(model: Any, blocks: Any, tokens: Any) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Return, for each layer, its hidden input and the other arguments, in a run of the whole."""
    import torch

    heard: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def hear(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if args:
            heard.append((args[0], args[1:], kwargs))
        else:
            rest = {key: value for key, value in kwargs.items() if key != "hidden_states"}
            heard.append((kwargs["hidden_states"], (), rest))

    hooks = [block.register_forward_pre_hook(hear, with_kwargs=True) for block in blocks]
    try:
        with torch.no_grad():
            model(input_ids=tokens, use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    if len(heard) != len(blocks):
        raise ProbeError("load-failed", f"of its layers, {len(blocks)}, the model called {len(heard)}")
    return heard


def _whole(model: Any) -> Any:
    from torch import nn

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens: Any) -> Any:
            return first_tensor(self.model(input_ids=tokens, use_cache=False))

    return Whole().eval()


def _stack(blocks: list[Any], calls: list[tuple[tuple[Any, ...], dict[str, Any]]]) -> Any:
    from torch import nn

    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(blocks)

        def forward(self, hidden: Any) -> Any:
            for block, (args, kwargs) in zip(self.blocks, calls, strict=True):
                rest = moved((args, kwargs), device=hidden.device, dtype=hidden.dtype)
                hidden = first_tensor(block(hidden, *rest[0], **rest[1]))
            return hidden

    return Stack().eval()
