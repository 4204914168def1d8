"""Why a stage did not come through, as a code of the closed list of reasons (DESIGN section 9)."""

from __future__ import annotations

import re

__all__ = ["ProbeError", "classify"]

MAX_MESSAGE = 600

_BUSY = re.compile(r"busy or unavailable|devices? (?:is|are) busy|DevicesUnavailable|EXCLUSIVE_PROCESS", re.I)
_MEMORY = re.compile(r"out of memory|can't allocate memory|OutOfMemory|hipErrorOutOfMemory", re.I)
_ARCH = re.compile(
    r"no kernel image|invalid device function|InvalidDeviceFunction|NoBinaryForGpu|not compatible with the current"
    r" PyTorch installation",
    re.I,
)
_DTYPE = re.compile(r"not implemented for '?\"?(?:Half|BFloat16|Char|QInt8|Float8)", re.I)
_DENIED = re.compile(r"permission denied|operation not permitted|hipErrorNotPermitted", re.I)
_COMPILER = re.compile(r"InvalidCxxCompiler|No working C\+\+ compiler|Cannot find a working triton|TritonMissing")
_BY_STAGE = {
    "import": "dependency-missing",
    "recipe": "internal-error",
    "device": "forward-failed",
    "load": "load-failed",
    "reference": "load-failed",
    "prepare": "forward-failed",
    "warm-up": "forward-failed",
    "forward": "forward-failed",
    "check": "output-invalid",
}
"""What a failure is called whose message says nothing more."""


class ProbeError(Exception):
    """A reason of the closed list, raised by whoever knows it best."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def classify(error: BaseException, stage: str) -> tuple[str, str]:
    """Return the reason code and the message of an exception that ended `stage`.

    Contention is not the hardware's fault: a device that is busy, or so full that not even the first few bytes
    are to be had, is `device-busy`. Messages are those of the CUDA and HIP runtimes and of torch's allocators.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    message = f"{type(error).__name__}: {text}"[:MAX_MESSAGE]
    if isinstance(error, ProbeError):
        return error.code, text[:MAX_MESSAGE]
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", "interrupted"
    is_memory = isinstance(error, MemoryError) or _MEMORY.search(message) is not None
    patterns = (
        (_BUSY.search(message) is not None, "device-busy"),
        (is_memory, "device-busy" if stage == "device" else "out-of-memory"),
        (_ARCH.search(message) is not None, "arch-unsupported"),
        (_DTYPE.search(message) is not None, "quantization-unsupported"),
        (_COMPILER.search(message) is not None, "dependency-missing"),
        (isinstance(error, PermissionError) or _DENIED.search(message) is not None, "permission-denied"),
        (isinstance(error, ImportError), "dependency-missing"),
    )
    for holds, code in patterns:
        if holds:
            return code, message
    return _BY_STAGE.get(stage, "internal-error"), message
