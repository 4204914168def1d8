"""Observed inputs from the command to the verdict: leaks are named, refused on demand, and mended by `scope`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  alpha: {{paths: {paths}, extra_paths: {extra}, command: pytest -q {args} tests/alpha}}
  lint: {{paths: [src], command: python -c pass, results: exit-status}}
policy:
  allow_carried: true
{more}"""
FILES = {
    "src/alpha.py": "from src.shared import SHARED\n\ndef alpha():\n    return open('data/alpha.txt').read()\n",
    "src/shared.py": "SHARED = 1\n",
    "src/beta.py": "BETA = 1\n",
    "src/unread.py": "",
    "src/full/__init__.py": "",
    "src/full/deep/__init__.py": "",
    "data/alpha.txt": "1",
    "data/other.txt": "2",
    "tests/alpha/test_alpha.py": (
        "import subprocess, sys\n"
        "from src.alpha import alpha\n"
        "import src.full.deep\n\n"
        "def test_alpha():\n    assert alpha()\n\n"
        "def test_child():\n    subprocess.run([sys.executable, '-c', 'import src.beta'], check=True)\n"
    ),
    "tests/alpha/notes.md": "",
    "tests/beta/test_beta.py": "def test_beta():\n    pass\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    ".gitignore": "__pycache__/\n.pytest_cache/\n*.so\n",
}
TIGHT = "[src/alpha.py, src/full, tests/alpha]"
ENOUGH = "[src/alpha.py, src/shared.py, src/beta.py, src/full, data/alpha.txt, tests/alpha]"
READ_BESIDE = ["data/alpha.txt", "src/beta.py", "src/shared.py"]
REQUIRED = "  require_observed_scope: true\n"


def config(paths: str = TIGHT, *, extra: str = "[]", args: str = "", more: str = "") -> str:
    return CONFIG.format(paths=paths, extra=extra, args=args, more=more)


@pytest.fixture
def leaky(make_project):
    return make_project(config(), FILES)


@pytest.mark.parametrize("args", ["", "-n2"], ids=["plain", "xdist"])
def test_f01_a_leak_is_named_and_stands_in_the_receipt(make_project, args):
    project = make_project(config(args=args), FILES)
    for _ in range(2):  # the second time from bytecode
        done = project.ledger("record", "--shard", "alpha", "--json")
        assert "leaky: read outside the declared scope: data/alpha.txt, src/beta.py, src/shared.py" in done.err
        assert "git ledger scope alpha" in done.err
        receipt = project.receipt(done.document["record"])
        assert receipt["manifest"]["outside"] == READ_BESIDE
        assert receipt["session"]["workers"] == (2 if args else None)


def test_f01_an_input_outside_the_scope_changes(leaky):
    """Without the demand the stale result is carried, as declared; with it the leaky receipt is none at all."""
    leaky.record("alpha")
    leaky.record("lint")
    leaky.repo.commit({"src/shared.py": "raise ImportError\n"})
    assert leaky.plan()["alpha"] == ("carryable", "unchanged")
    leaky.repo.commit({".gitledger/config.yaml": config(more=REQUIRED)})
    assert leaky.plan()["alpha"] == ("stale", "leaky")
    verdict, codes = leaky.verify()
    assert verdict == "failed"
    assert "leaky" in codes


def test_a_shard_that_could_not_be_observed_is_leaky_on_demand(make_project):
    project = make_project(config(ENOUGH, more=REQUIRED), FILES)
    project.record("alpha")
    project.record("lint")
    assert project.plan() == {"alpha": ("fresh", "recorded"), "lint": ("stale", "leaky")}


def test_an_ignored_file_in_a_declared_folder_is_bound_by_extra_paths_alone(make_project):
    files = {**FILES, "tests/alpha/test_alpha.py": "def test_it():\n    assert open('src/full/built.so').read()\n"}
    project = make_project(config("[src, tests/alpha]"), files)
    project.repo.write("src/full/built.so", "one")
    receipt = project.receipt(project.record("alpha")["record"])
    assert receipt["manifest"]["outside"] == ["src/full/built.so"]
    text = config("[src, tests/alpha]", extra="[src/full/built.so]")
    project.repo.commit({".gitledger/config.yaml": text})
    assert project.receipt(project.record("alpha")["record"])["manifest"]["outside"] == []


def test_scope_proposes_what_was_read_and_the_proposal_holds(leaky):
    leaky.record("alpha")
    document = leaky.ledger("scope", "alpha", "--json").document
    assert document["proposed"] == {
        "extra_paths": [],
        "paths": [
            "data/alpha.txt",
            "src/alpha.py",
            "src/beta.py",
            "src/full",
            "src/shared.py",
            "tests/alpha",
        ],
    }
    assert document["outside"] == READ_BESIDE
    assert (document["unread"], document["roots_known"], len(document["records"])) == ([], True, 1)
    text = leaky.ledger("scope", "alpha").out
    assert "      - data/alpha.txt\n" in text
    assert "read outside the declared scope: data/alpha.txt, src/beta.py, src/shared.py" in text
    leaky.repo.commit({".gitledger/config.yaml": config(json.dumps(document["proposed"]["paths"]), more=REQUIRED)})
    leaky.record("alpha")
    assert leaky.plan()["alpha"] == ("fresh", "recorded")
    assert leaky.ledger("scope", "alpha").out.endswith("the declared scope binds all that was read\n")


def test_scope_covers_what_several_runs_read_and_names_what_none_did(make_project):
    files = {
        **FILES,
        "tests/alpha/test_alpha.py": (
            "import os\n\ndef test_it():\n    assert open(os.environ.get('WHICH', 'data/alpha.txt')).read()\n"
        ),
    }
    project = make_project(config("[src, data, tests/alpha, tests/beta]"), files)
    project.record("alpha")
    project.record("alpha", env={"WHICH": "data/other.txt"})
    document = project.ledger("scope", "alpha", "--json").document
    assert document["proposed"]["paths"] == ["data", "tests/alpha"]
    assert document["unread"] == ["src", "tests/beta"]
    assert len(document["records"]) == 2
    assert project.ledger("scope", "alpha", "--runs", "1", "--json").document["proposed"]["paths"] == [
        "data/other.txt",
        "tests/alpha",
    ]


def test_names_with_wildcards_and_quotes_are_proposed_as_they_are(make_project):
    name = "data/[a] *'\".txt"
    test = f"def test_it():\n    assert open({name!r}).read()\n"
    project = make_project(config(), {**FILES, name: "x", "tests/alpha/test_alpha.py": test})
    project.record("alpha")
    proposed = project.ledger("scope", "alpha", "--json").document["proposed"]["paths"]
    assert proposed == ["data/\\[a] \\*'\".txt", "tests/alpha"]
    assert f"      - {json.dumps(proposed[0])}\n" in project.ledger("scope", "alpha").out
    project.repo.commit({".gitledger/config.yaml": config(json.dumps(proposed), more=REQUIRED)})
    project.record("alpha")
    assert project.plan()["alpha"] == ("fresh", "recorded")


def test_scope_without_a_run_that_counts_says_what_makes_one(leaky):
    done = leaky.ledger("scope", "alpha", expect=2)
    assert "[never-observed]" in done.err
    assert "git ledger record --shard alpha" in done.err
    leaky.record("alpha", "--unsigned")
    assert "[never-observed]" in leaky.ledger("scope", "alpha", expect=2).err
    assert "[unknown-shard]" in leaky.ledger("scope", "alhpa", expect=2).err
    assert "[bad-shard-name]" in leaky.ledger("scope", "a b", expect=2).err


def test_the_environment_and_the_runners_caches_are_no_inputs(make_project):
    """A virtual environment inside the repository, with the package under test installed into it."""
    files = {
        **FILES,
        "tests/alpha/test_alpha.py": "import installed\n\ndef test_it():\n    assert installed.VALUE\n",
        "tests/alpha/conftest.py": (
            "import pathlib, sys\nroot = pathlib.Path(__file__).parents[2]\n"
            "sys.path.append(str(root / 'env/lib'))\n"
        ),
        ".gitignore": "env/\n__pycache__/\n.pytest_cache/\n",
    }
    project = make_project(config("[tests/alpha]"), files)
    project.repo.write("env/pyvenv.cfg", "home = /usr/bin\n")
    project.repo.write("env/lib/installed.py", "VALUE = 1\n")
    for _ in range(2):  # the second time pytest reads its own cache
        assert (
            project.receipt(project.record("alpha", "--", "pytest", "tests/alpha")["record"])["manifest"][
                "outside"
            ]
            == []
        )


def test_a_run_that_removes_python_path_records_all_the_same(make_project):
    """A wrapper that clears the environment keeps its children from being seen, not from being recorded."""
    files = {
        **FILES,
        "tests/alpha/test_alpha.py": (
            "import subprocess, sys\n\ndef test_it():\n"
            "    subprocess.run([sys.executable, '-I', '-c', 'pass'], env={}, check=True)\n"
        ),
    }
    project = make_project(config(), files)
    assert project.receipt(project.record("alpha")["record"])["manifest"]["outside"] == []


@pytest.mark.parametrize(
    "flags", [["-m", "pytest"], ["-m", "coverage", "run", "-m", "pytest"]], ids=["pytest", "coverage"]
)
def test_interpreters_that_run_pytest_are_observed(make_project, flags):
    command = " ".join([sys.executable, *flags, "-q"])
    project = make_project(
        config().replace("pytest -q ", command), {**FILES, ".gitignore": FILES[".gitignore"] + ".coverage\n"}
    )
    assert project.receipt(project.record("alpha")["record"])["manifest"]["outside"] == READ_BESIDE


def test_what_was_read_stands_in_a_body_that_plain_git_gives_back(leaky):
    receipt = leaky.receipt(leaky.record("alpha")["record"])
    oid = receipt["bodies"]["inputs"]["oid"]
    blob = subprocess.run(
        ["git", "cat-file", "blob", oid], cwd=leaky.path, env=dict(leaky.repo.env), capture_output=True, check=True
    ).stdout
    from gitledger.records.bodies import decode_inputs

    inputs = decode_inputs(blob)
    assert inputs.roots == ("tests/alpha",)
    assert set(READ_BESIDE) < set(inputs.paths)
    assert "tests/alpha/test_alpha.py" in inputs.paths
