"""pytest's configuration belongs to every manifest, wherever it stands."""

from __future__ import annotations

from typing import Any

import pytest

from gitledger.config.schema import ResultsConfig
from gitledger.errors import ManifestError
from gitledger.manifest.chain import CHAIN_FILES


@pytest.fixture
def repo(git_repo: Any) -> Any:
    git_repo.commit({"src/a.py": "a", "tests/gpu/l1/test_a.py": "t", "cfg/p.ini": "[pytest]", "other/x": "x"})
    return git_repo


COMMAND = ["pytest", "tests/gpu/l1"]


@pytest.mark.parametrize("folder", ["", "tests/", "tests/gpu/", "tests/gpu/l1/", "src/"])
@pytest.mark.parametrize("name", CHAIN_FILES)
def test_each_file_of_the_chain_binds_appearing_changing_and_vanishing(
    repo: Any, manifest_at: Any, folder: str, name: str
) -> None:
    before = manifest_at(repo, ["src/a.py"], command=COMMAND).digest
    repo.commit({folder + name: "1"})
    there = manifest_at(repo, ["src/a.py"], command=COMMAND).digest
    repo.commit({folder + name: "2"})
    changed = manifest_at(repo, ["src/a.py"], command=COMMAND).digest
    (repo.path / folder / name).unlink()
    repo.commit()
    assert len({before, there, changed}) == 3
    assert manifest_at(repo, ["src/a.py"], command=COMMAND).digest == before


def test_what_stands_beside_the_chain_binds_nothing(repo: Any, manifest_at: Any) -> None:
    before = manifest_at(repo, ["src"], command=COMMAND).digest
    repo.commit({"other/conftest.py": "x", "tests/other/conftest.py": "x", "tests/gpu/l2/pytest.ini": "x"})
    assert manifest_at(repo, ["src"], command=COMMAND).digest == before


def test_f09_a_weakened_and_restored_conftest_gives_three_manifests_of_which_two_agree(
    repo: Any, manifest_at: Any
) -> None:
    """The receipt made while conftest.py was weak is none for the commit that restored it."""
    digests = []
    for text in ("strict", "weak", "strict"):
        repo.commit({"tests/conftest.py": text})
        digests.append(manifest_at(repo, ["tests/gpu"], command=["pytest", "tests/gpu"]).digest)
    assert digests[0] == digests[2] != digests[1]


def test_matched_files_of_a_glob_bring_the_chain_of_their_folders(repo: Any, manifest_at: Any) -> None:
    before = manifest_at(repo, ["tests/**/test_*.py"], command=["pytest"]).digest
    repo.commit({"tests/gpu/conftest.py": "x"})
    assert manifest_at(repo, ["tests/**/test_*.py"], command=["pytest"]).digest != before


def test_an_excluded_conftest_of_a_declared_folder_is_bound_all_the_same(repo: Any, manifest_at: Any) -> None:
    digests = set()
    for text in "12":
        repo.commit({"tests/gpu/conftest.py": text})
        manifest = manifest_at(
            repo, ["tests/gpu"], excluded_paths=["tests/gpu/conftest.py"], command=["pytest", "tests/gpu"]
        )
        digests.add(manifest.digest)
    assert len(digests) == 2


@pytest.mark.parametrize(
    "command",
    [
        ["pytest", "-c", "cfg/p.ini"],
        ["pytest", "-ccfg/p.ini"],
        ["pytest", "--config-file", "cfg/p.ini"],
        ["pytest", "--config-file=cfg/p.ini"],
        ["uv", "run", "pytest", "-c", "./cfg/p.ini"],
        ["env", "PYTEST_ADDOPTS=-c cfg/p.ini", "pytest"],
        ["env", "-C", "cfg", "pytest", "-c", "p.ini"],
        ["pytest", "@args.txt"],
    ],
)
def test_a_named_configuration_file_is_bound(repo: Any, manifest_at: Any, command: list[str]) -> None:
    repo.commit({"args.txt": "-c\ncfg/p.ini\n"})
    before = manifest_at(repo, ["src"], command=command).digest
    repo.commit({"cfg/p.ini": "[pytest]\naddopts = -k nothing"})
    assert manifest_at(repo, ["src"], command=command).digest != before


@pytest.mark.parametrize("kind", ["pytest", "junit"])
@pytest.mark.parametrize(
    "command",
    [
        ["pytest", "-qc", "cfg/p.ini", "--rootdir=.", "tests"],
        ["pytest", "-xvqccfg/p.ini"],
        ["pytest", "-qc=cfg/p.ini"],
        ["pytest", "-Sc", "cfg/p.ini"],
        ["env", "PYTEST_ADDOPTS=-qc cfg/p.ini", "pytest"],
        ["timeout", "60", "pytest", "-c", "cfg/p.ini", "tests"],
        ["nice", "-n", "5", "python", "-m", "pytest", "-qc", "cfg/p.ini"],
        ["python", "-mpytest", "-c", "cfg/p.ini"],
        ["python", "-Impytest", "--config-file", "cfg/p.ini"],
        ["python", "-um", "pytest", "--config-file=cfg/p.ini"],
        ["srun", "-J", "pytest", "-c", "8", "pytest", "-c", "cfg/p.ini"],
        ["xvfb-run", "-a", "pytest-3", "@args.txt"],
        ["conda", "run", "-n", "pytest", "py.test", "-c=cfg/p.ini"],
        ["timeout", "60", "env", "-C", "cfg", "pytest", "-cp.ini"],
        ["timeout", "60", "env", "PYTEST_ADDOPTS=-c cfg/p.ini", "pytest"],
        ["env", "PYTEST_ADDOPTS=-c cfg/p.ini", "make", "test"],
        ["srun", "--export=ALL,PYTEST_ADDOPTS=-c cfg/p.ini", "pytest"],
        ["./run-tests", "-qc", "cfg/p.ini"],
        ["./run-tests", "--config-file=cfg/p.ini"],
        ["./run-tests", "@args.txt"],
        ["sh", "-c", "pytest -qc cfg/p.ini tests && true"],
        ["bash", "-lc", "cd cfg; pytest -c 'p.ini'"],
        ["sh", "-c", "PYTEST_ADDOPTS=-ccfg/p.ini pytest"],
        ["env", "-S", "pytest -c cfg/p.ini"],
    ],
)
def test_a_configuration_file_is_bound_in_clusters_of_options_and_behind_wrappers(
    repo: Any, manifest_at: Any, command: list[str], kind: str
) -> None:
    rest = {"command": command, "results": ResultsConfig(kind, None if kind == "pytest" else "j.xml")}
    repo.commit({"args.txt": "-qc\ncfg/p.ini\n"})
    before = manifest_at(repo, ["src"], **rest).digest
    repo.commit({"cfg/p.ini": "[pytest]\naddopts = -k nothing_at_all"})
    assert manifest_at(repo, ["src"], **rest).digest != before


@pytest.mark.parametrize(
    "command",
    [
        ["pytest", "-kc", "cfg/p.ini"],
        ["timeout", "60", "pytest", "-mc", "tests"],
        ["srun", "-c", "8", "pytest", "tests"],
        ["srun", "-J", "pytest", "-c", "8", "pytest", "tests"],
        ["sh", "-c", "make test"],
        ["python", "-c", "import pytest; pytest.main()"],
        ["./run-tests", "-c", "none.ini", "@none"],
    ],
)
def test_what_names_no_configuration_binds_none(repo: Any, manifest_at: Any, command: list[str]) -> None:
    entries = manifest_at(repo, ["src"], command=command).entries
    assert not {entry.path for entry in entries if entry.kind == "blob"}


def test_what_a_wrapped_pytest_is_given_in_a_file_is_read(repo: Any, manifest_at: Any) -> None:
    command = ["timeout", "60", "pytest", "@args.txt"]
    repo.commit({"args.txt": "tests/gpu/l1\n-q\n"})
    before = manifest_at(repo, ["src"], command=command).digest
    repo.commit({"tests/gpu/l1/conftest.py": "x"})
    assert manifest_at(repo, ["src"], command=command).digest != before


@pytest.mark.parametrize(
    "command", [["pytest", "@link.txt"], ["timeout", "9", "pytest", "@link.txt"], ["t", "@link.txt"]]
)
def test_a_symlinked_file_of_arguments_is_read_where_it_points_to(
    repo: Any, manifest_at: Any, command: list[str]
) -> None:
    """The link's own text would else be the arguments: here a file that changes nothing."""
    (repo.path / "again.txt").symlink_to("cfg/args.txt")
    (repo.path / "link.txt").symlink_to("again.txt")
    digests = []
    for text in ("[pytest]", "[pytest]\naddopts = -k nothing"):
        repo.commit({"cfg/args.txt": "-c\ncfg/p.ini\n", "cfg/p.ini": text})
        digests.append(manifest_at(repo, ["src"], command=command).digest)
    repo.commit({"cfg/args.txt": "-c\ncfg/p.ini\n-knothing\n"})
    digests.append(manifest_at(repo, ["src"], command=command).digest)
    assert len(set(digests)) == 3
    (repo.path / "cfg/args.txt").unlink()
    repo.commit()
    with pytest.raises(ManifestError) as caught:
        manifest_at(repo, ["src"], command=command)
    assert caught.value.code == "chain-unbound"


def test_a_file_of_arguments_is_read_in_every_folder_that_the_command_may_run_in(
    repo: Any, manifest_at: Any
) -> None:
    command = ["env", "-C", "cfg", "pytest", "@args.txt"]
    repo.commit({"args.txt": "-q\n", "cfg/args.txt": "-c\np.ini\n"})
    before = manifest_at(repo, ["src"], command=command).digest
    repo.commit({"cfg/p.ini": "[pytest]\naddopts = -k nothing"})
    assert manifest_at(repo, ["src"], command=command).digest != before


@pytest.mark.parametrize(
    "command",
    [
        ["pytest", "tests/gpu/l1/test_a.py::test_x[1]"],
        ["pytest", "./tests//gpu/l1/"],
        ["python", "-m", "pytest", "-x", "tests/gpu/l1"],
        ["pytest", "--rootdir=tests/gpu/l1"],
        ["env", "-C", "tests", "pytest", "gpu/l1"],
        ["uv", "run", "--directory", "tests/gpu", "pytest", "l1"],
        ["sh", "run.sh", "tests/gpu/l1"],
        ["pytest", "@args.txt"],
    ],
)
def test_path_arguments_bring_their_chain_however_they_are_spelled(
    repo: Any, manifest_at: Any, command: list[str]
) -> None:
    repo.commit({"args.txt": "tests/gpu/l1"})
    rest = {"command": command, "results": ResultsConfig("junit", "j.xml")}
    before = manifest_at(repo, ["src"], **rest).digest
    repo.commit({"tests/gpu/l1/conftest.py": "x"})
    assert manifest_at(repo, ["src"], **rest).digest != before


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["pytest", "-c", "../p.ini"], "path-outside"),
        (["pytest", "-c", "/etc/p.ini"], "path-outside"),
        (["pytest", "-c", "cfg/none.ini"], "chain-unbound"),
        (["pytest", "@none.txt"], "chain-unbound"),
        (["pytest", "-qc", "cfg/none.ini"], "chain-unbound"),
        (["timeout", "60", "pytest", "-c", "cfg/none.ini"], "chain-unbound"),
        (["timeout", "60", "pytest", "-qc", "/etc/p.ini"], "path-outside"),
        (["./run-tests", "@loop.txt"], "chain-unbound"),
        (["./run-tests", "-clink/l1/test_a.py"], "symlinked-component"),
        (["pytest", "@loop.txt"], "chain-unbound"),
        (["env", "PYTEST_ADDOPTS='", "pytest"], "chain-unbound"),
        (["pytest", "link/l1"], "symlinked-component"),
        (["pytest", "link"], "symlinked-component"),
        (["pytest", "link/../../cfg"], "symlinked-component"),
        (["pytest", "@link/../args.txt"], "symlinked-component"),
        (["timeout", "9", "pytest", "-c", "./link/../cfg/p.ini"], "symlinked-component"),
        (["./run-tests", "-qclink/../cfg/p.ini"], "symlinked-component"),
        (["env", "-C", "link/../", "pytest", "-c", "p.ini"], "symlinked-component"),
    ],
)
def test_configuration_that_no_commit_holds_is_an_error(
    repo: Any, manifest_at: Any, command: list[str], code: str
) -> None:
    (repo.path / "link").symlink_to("tests/gpu")
    repo.commit({"loop.txt": "@loop.txt", "args.txt": "-q"})
    with pytest.raises(ManifestError) as caught:
        manifest_at(repo, ["src"], command=command)
    assert caught.value.code == code


def test_a_generated_configuration_file_may_be_an_extra_path(repo: Any, manifest_at: Any) -> None:
    repo.commit({".gitignore": "gen.ini"})
    digests = set()
    for text in "12":
        repo.write("gen.ini", text)
        digests.add(
            manifest_at(repo, ["src"], extra_paths=["gen.ini"], command=["pytest", "-c", "gen.ini"]).digest
        )
    assert len(digests) == 2


def test_a_symlinked_conftest_binds_what_it_points_to(repo: Any, manifest_at: Any) -> None:
    (repo.path / "tests/conftest.py").symlink_to("../other/shared.py")
    digests = set()
    for text in "12":
        repo.commit({"other/shared.py": text})
        digests.add(manifest_at(repo, ["tests/gpu"], command=["pytest"]).digest)
    assert len(digests) == 2
    (repo.path / "other/shared.py").unlink()
    repo.commit()
    with pytest.raises(ManifestError, match="which the tree does not hold"):
        manifest_at(repo, ["tests/gpu"], command=["pytest"])


@pytest.mark.parametrize(
    "target",
    ["../lnk/../real/conf.py", "../lnk/./../real/conf.py", "../lnk/inner.py", "gpu/../../lnk/../real/conf.py"],
)
def test_a_chain_link_past_another_symlink_is_refused(repo: Any, manifest_at: Any, target: str) -> None:
    """The system would open other/real/conf.py, where `lnk` points, and not real/conf.py."""
    (repo.path / "lnk").symlink_to("other/dir")
    (repo.path / "tests/conftest.py").symlink_to(target)
    repo.commit({"real/conf.py": "1", "other/real/conf.py": "1", "other/dir/inner.py": "1"})
    with pytest.raises(ManifestError) as caught:
        manifest_at(repo, ["tests/gpu"], command=["pytest"])
    assert caught.value.code == "chain-unbound"


@pytest.mark.parametrize(
    "target", ["none/../real/conf.py", "../../../real/conf.py", "../other/x/../../real/conf.py"]
)
def test_a_chain_link_past_what_is_no_tracked_folder_is_refused(repo: Any, manifest_at: Any, target: str) -> None:
    (repo.path / "tests/conftest.py").symlink_to(target)
    repo.commit({"real/conf.py": "1"})
    with pytest.raises(ManifestError, match="which the tree does not hold"):
        manifest_at(repo, ["tests/gpu"], command=["pytest"])


def test_a_chain_link_through_tracked_folders_binds_each_link_and_the_file(repo: Any, manifest_at: Any) -> None:
    (repo.path / "tests/conftest.py").symlink_to("gpu/.././/gpu/l1/../../../other/link.py")
    (repo.path / "other/link.py").symlink_to("../real/conf.py")
    repo.commit({"real/conf.py": "1"})
    bound = {entry.path for entry in manifest_at(repo, ["src"], command=COMMAND).entries if entry.mode}
    assert {"tests/conftest.py", "other/link.py", "real/conf.py"} <= bound


def test_exit_status_shards_declare_their_configuration(repo: Any, manifest_at: Any) -> None:
    before = manifest_at(repo, ["src"], command=["ruff", "check"], results=ResultsConfig("exit-status")).digest
    repo.commit({"pyproject.toml": "x"})
    after = manifest_at(repo, ["src"], command=["ruff", "check"], results=ResultsConfig("exit-status")).digest
    assert before == after
