"""Markers: `ledger`, `gpu_required`, and suites that are selected by a marker."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from gitledger.suites.plugin import gpu_is_visible

SUITE = """
    import pytest

    @pytest.mark.ledger
    def test_own(): pass

    class TestIt:
        pytestmark = pytest.mark.ledger
        def test_by_class(self): pass

    def test_by_conftest(): pass

    def test_other(): raise OSError
"""
CONFTEST = """
    import pytest
    def pytest_collection_modifyitems(items):
        for item in items:
            if item.name == "test_by_conftest":
                item.add_marker(pytest.mark.ledger)
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_a_marker_makes_the_suite(run_suite, workers):
    files = {"test_it.py": SUITE, "conftest.py": CONFTEST}
    plugins = ("xdist",) if workers else ()
    run = run_suite(files, "--strict-markers", *workers, marker="ledger", plugins=plugins)
    assert run.result.outcome == "passed", run.output
    assert run.outcomes == {"test_own": "passed", "TestIt::test_by_class": "passed", "test_by_conftest": "passed"}
    assert (run.result.full_count, run.result.counts.deselected) == (3, 0)
    cut = run_suite({}, "-k", "own", *workers, marker="ledger", plugins=plugins)
    assert (cut.result.full_count, cut.result.counts.deselected) == (3, 2)
    assert cut.result.full_digest == run.result.full_digest


def test_a_marker_that_no_test_has_leaves_an_empty_suite(run_suite):
    run = run_suite(SUITE, marker="nobody")
    assert (run.result.outcome, run.result.reasons) == ("incomplete", ("no-tests",))


def test_the_marker_is_not_passed_on(run_suite):
    run = run_suite("import os\ndef test_it(): assert 'GITLEDGER_MARKER' not in os.environ\n")
    assert run.result.outcome == "passed"


GPU = """
    import pytest
    ran = []
    @pytest.fixture
    def device(): ran.append("device")
    @pytest.mark.gpu_required
    def test_gpu(device): ran.append("test")
    def test_cpu(): assert bool(ran) is SEEN
"""


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["plain", "xdist"])
def test_gpu_required_skips_before_any_fixture_where_there_is_no_gpu(run_suite, workers):
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": ""}
    text = GPU.replace("SEEN", "False")
    run = run_suite(text, "-rs", "--strict-markers", *workers, env=hidden, plugins=("xdist",) if workers else ())
    assert run.outcomes == {"test_gpu": "skipped", "test_cpu": "passed"}
    assert "gpu_required: no GPU is visible here" in run.output


def test_gpu_required_counts_on_modules_classes_and_single_parameters_and_nowhere_else(run_suite):
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": ""}
    files = {
        "conftest.py": "def pytest_collection_modifyitems(items): items.sort(key=lambda item: item.name)\n",
        "test_a.py": "import pytest\npytestmark = pytest.mark.gpu_required\ndef test_module_1(): pass\n",
        "test_b.py": """
            import pytest
            def test_module_2(gpu_required=None): pass
            @pytest.mark.gpu_required
            class TestMarked:
                def test_in_class_1(self): pass
                def test_in_class_3(self): pass
            class TestOther:
                def test_in_class_2(self): pass
            @pytest.mark.parametrize("n", [0, pytest.param(1, marks=pytest.mark.gpu_required)])
            def test_one(n): pass
            @pytest.mark.skipif(False, reason="gpu_required")
            def test_other_mark(): pass
        """,
    }
    run = run_suite(files, env=hidden)
    skipped = {name.rpartition("::")[2] for name, outcome in run.outcomes.items() if outcome == "skipped"}
    assert skipped == {"test_module_1", "test_in_class_1", "test_in_class_3", "test_one[1]"}
    assert len(run.outcomes) == 8


def test_torch_that_the_suite_has_loaded_is_asked(run_suite):
    device = "is_available = staticmethod(lambda: True)\n"
    files = {
        "torch.py": f"class cuda:\n    {device}",
        "conftest.py": "import torch\n",
        "test_it.py": GPU.replace("SEEN", "True"),
    }
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": ""}
    run = run_suite(files, env=hidden)
    assert run.outcomes == {"test_gpu": "passed", "test_cpu": "passed"}, run.output


@pytest.mark.parametrize(
    ("environ", "nodes", "seen"),
    [
        ({}, set(), False),
        ({}, {"/dev/nvidiactl"}, True),
        ({}, {"/dev/kfd"}, True),
        ({}, {"/dev/dxg"}, True),
        ({"CUDA_VISIBLE_DEVICES": ""}, {"/dev/nvidiactl"}, False),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, {"/dev/nvidiactl"}, False),
        ({"CUDA_VISIBLE_DEVICES": "1"}, {"/dev/nvidiactl"}, True),
        ({"CUDA_VISIBLE_DEVICES": ""}, {"/dev/nvidiactl", "/dev/kfd"}, True),
        ({"HIP_VISIBLE_DEVICES": ""}, {"/dev/kfd"}, False),
        ({"ROCR_VISIBLE_DEVICES": ""}, {"/dev/kfd"}, False),
    ],
)
def test_a_gpu_is_seen_by_its_device_node_unless_it_is_hidden(environ, nodes, seen):
    assert gpu_is_visible(environ, None, nodes.__contains__) is seen
    without = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))
    assert gpu_is_visible(environ, without, nodes.__contains__) is seen


def test_markers_are_declared_without_the_ledger_too(tmp_path, suite_env):
    command = [sys.executable, "-m", "pytest", "--markers", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=suite_env, capture_output=True, text=True)
    assert done.stdout.count("@pytest.mark.ledger:") == 1
    assert done.stdout.count("@pytest.mark.gpu_required:") == 1
