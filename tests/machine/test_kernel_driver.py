"""The GPU's driver without a vendor's tool, as the kernel tells it."""

from __future__ import annotations

import os

import pytest

from gitledger.machine.kernel_driver import kernel_driver

NVIDIA = """NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U16-A24)
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""


@pytest.mark.parametrize(
    ("kind", "file", "text", "expected"),
    [
        ("cuda", "proc/driver/nvidia/version", NVIDIA, "570.86.15"),
        ("cuda", "proc/driver/nvidia/version", "garbage\n", None),
        ("cuda", "sys/module/amdgpu/version", "6.12.12\n", None),
        ("hip", "sys/module/amdgpu/version", "6.12.12\n", "6.12.12"),
        ("hip", "sys/module/amdgpu/srcversion", "533BB7E5866E52F63B9ACCB\n", f"amdgpu of {os.uname().release}"),
        ("hip", "proc/driver/nvidia/version", NVIDIA, None),
        ("cpu", "proc/driver/nvidia/version", NVIDIA, None),
    ],
)
def test_the_driver_is_that_of_the_kind(tmp_path, kind, file, text, expected):
    place = tmp_path / file
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert kernel_driver(kind, tmp_path) == expected
