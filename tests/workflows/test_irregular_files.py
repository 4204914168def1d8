"""A symbolic link or a folder where a file decides: it is refused, and never read as a file that isn't there."""

from __future__ import annotations

import shutil

import pytest


def put(stage, path: str, kind: str, text: str) -> None:
    """Commit on the trusted branch a link to a file with that text, or a folder, or the file itself."""
    place = stage.repo.path / path
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        stage.repo.write("sec/real", text)
        place.symlink_to("../" * path.count("/") + "sec/real")
    elif kind == "folder":
        stage.repo.write(f"{path}/one", text)
    elif kind == "linked folder":
        shutil.move(place.parent, stage.repo.path / "moved")
        stage.repo.write(f"moved/{place.name}", text)
        place.parent.symlink_to("moved")
    else:
        stage.repo.write(path, text)
    stage.trust()


@pytest.mark.parametrize("kind", ["link", "folder"])
@pytest.mark.parametrize("policy_from", ["trusted", None])
def test_revoked_keys_that_are_no_regular_file_are_not_taken_for_none(stage, kind, policy_from):
    put(stage, ".gitledger/revoked_keys", kind, stage.project.public("alice") + "\n")
    stage.record()
    passed, said = stage.verdict(policy_from=policy_from)
    assert not passed
    assert "error file-malformed" in said
    assert "'.gitledger/revoked_keys' is a " in said


def test_revoked_keys_as_a_plain_file_revoke(stage):
    put(stage, ".gitledger/revoked_keys", "file", stage.project.public("alice") + "\n")
    stage.record()
    passed, said = stage.verdict()
    assert not passed
    assert "key-revoked" in said


@pytest.mark.parametrize("path", [".gitledger/config.yaml", ".gitledger/allowed_signers"])
@pytest.mark.parametrize("kind", ["link", "linked folder"])
def test_configuration_and_signers_that_are_no_regular_file_are_named(stage, path, kind):
    stage.record()
    put(stage, path, kind, (stage.repo.path / path).read_text())
    passed, said = stage.verdict()
    assert not passed
    named = path if kind == "link" else ".gitledger"
    assert f"'{named}' is a symbolic link and no regular file" in said


@pytest.mark.parametrize("key", ["expected_skips", "required_tests"])
@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_list_that_policy_names_and_that_is_no_regular_file_is_named(stage, key, kind):
    stage.policy(f"{{{key}: ci/list.txt}}")
    put(stage, "ci/list.txt", kind, "")
    stage.record()
    passed, said = stage.verdict()
    assert not passed
    assert "error file-malformed" in said
    assert "'ci/list.txt' is a " in said


FILES = {
    ".coveragerc": "[run]\n%s\n[report]\nfail_under = 90\n",
    "pyproject.toml": '[tool.coverage.run]\nomit = "%s"\n[tool.coverage.report]\nfail_under = 90\n',
    "setup.cfg": "[coverage:run]\n%s\n[coverage:report]\nfail_under = 90\n",
    "tox.ini": "[coverage:run]\n%s\n[coverage:report]\nfail_under = 90\n",
    "pytest.ini": "[pytest]\naddopts = --cov-fail-under=90\n# %s\n",
}
NAMED = '{paths: [src, "*.cfg"], command: "true --cov-config=ci/rc"'


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("policy_from", ["trusted", None])
def test_a_link_to_what_coverage_would_read_is_not_taken_for_no_threshold(stage, path, policy_from):
    put(stage, path, "link", FILES[path] % "")
    stage.record()
    passed, said = stage.verdict(policy_from=policy_from)
    assert not passed
    assert "error coverage-config" in said
    assert f"'{path}' is a symbolic link and no regular file" in said


@pytest.mark.parametrize("path", FILES)
def test_a_change_that_turns_coverages_file_into_a_link_is_refused_and_cant_be_accepted(stage, path):
    put(stage, path, "file", FILES[path] % "")
    (stage.repo.path / path).unlink()
    (stage.repo.path / path).symlink_to("sec/real")
    stage.repo.commit({"sec/real": FILES[path] % "omit = src/alpha.py"})
    stage.record()
    for accepted in (False, True):
        passed, said = stage.verdict(accept_shards=accepted)
        assert not passed
        assert "error coverage-config" in said


@pytest.mark.parametrize("kind", ["link", "linked folder"])
def test_a_file_named_to_coverage_that_is_a_link_is_refused(stage, kind):
    text = (stage.repo.path / ".gitledger/config.yaml").read_text()
    stage.repo.write(".gitledger/config.yaml", text.replace('{paths: [src, "*.cfg"], command: "true"', NAMED))
    stage.repo.write("ci/other", "")
    put(stage, "ci/rc", kind, "[run]\n")
    stage.record()
    passed, said = stage.verdict()
    assert not passed
    assert "error coverage-config" in said


def test_a_file_named_to_coverage_with_dots_that_a_link_may_lead_elsewhere_is_refused(stage):
    text = (stage.repo.path / ".gitledger/config.yaml").read_text()
    named = NAMED.replace("ci/rc", "lnk/../rc")
    stage.repo.write("deep/ci/one", "")
    (stage.repo.path / "lnk").symlink_to("deep/ci")
    stage.repo.write(".gitledger/config.yaml", text.replace('{paths: [src, "*.cfg"], command: "true"', named))
    stage.repo.write("rc", "[run]\n")
    put(stage, "deep/rc", "file", "[run]\n")
    stage.repo.commit({"deep/rc": "[run]\nomit = src/alpha.py\n"})
    stage.record()
    passed, said = stage.verdict()
    assert not passed
    assert "error coverage-config: 'lnk/../rc' holds `..`" in said


@pytest.mark.parametrize("spelt", ["ci/rc", "./ci/rc", "ci//rc"])
def test_a_change_of_a_file_named_to_coverage_is_seen_however_its_path_is_spelt(stage, spelt):
    text = (stage.repo.path / ".gitledger/config.yaml").read_text()
    named = NAMED.replace("ci/rc", spelt)
    stage.repo.write(".gitledger/config.yaml", text.replace('{paths: [src, "*.cfg"], command: "true"', named))
    put(stage, "ci/rc", "file", "[run]\n")
    stage.repo.commit({"ci/rc": "[run]\nomit = src/alpha.py\n"})
    stage.record()
    passed, said = stage.verdict()
    assert not passed
    assert "coverage-redefined" in said
