"""A configuration that was read once is not read again by plan; whoever records or judges reads its very text."""

from __future__ import annotations

import os

import pytest

from gitledger.config.load import config_of
from gitledger.workflows import kept_config
from gitledger.workflows.kept_config import MOST_KEPT, load_config_kept

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: test ! -e bad, results: exit-status}
policy: {allow_carried: true}
"""
FILES = {"src/a.py": "0\n", ".gitignore": "bad\n"}
NO_YAML = 'raise AssertionError("YAML was read")\n'


@pytest.fixture
def project(make_project):
    return make_project(CONFIG, FILES)


@pytest.fixture
def kept(project):
    """Where the project's configurations are kept."""
    return project.path / ".git" / "gitledger" / f"configurations-{os.geteuid()}"


@pytest.fixture
def no_yaml(tmp_path):
    """An environment in which YAML can't be read."""
    folder = tmp_path / "no-yaml"
    folder.mkdir()
    (folder / "yaml.py").write_text(NO_YAML)
    return {"PYTHONPATH": str(folder)}


def text(number: int) -> bytes:
    return CONFIG.replace("demo", f"demo-{number}").encode()


def test_plan_reads_yaml_once(project, kept, no_yaml):
    first = project.ledger("plan", "--json").out
    assert kept.exists()
    assert project.ledger("plan", "--json", env=no_yaml).out == first


def test_whoever_records_or_judges_reads_the_text_itself(project, no_yaml):
    project.ledger("plan")
    project.record("lint")
    for words in (["record", "--shard", "lint"], ["run"], ["verify"], ["merge"], ["export", "junit"]):
        done = project.ledger(*words, env=no_yaml, expect=None)
        assert "YAML was read" in done.err, words


def forge(kept, **changes: str) -> None:
    """Keep another configuration for the text that is committed, as whatever runs in a clone could."""
    text = CONFIG
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    document = kept_config.read_document(text.encode(), source="forged")
    kept_config._write(kept, next(iter(kept_config._read(kept))), document, {})


def test_what_is_kept_decides_no_verdict(project, kept):
    project.ledger("record", "--shard", "lint", "--unsigned")
    before = project.ledger("verify", "--json", expect=1).document
    project.ledger("plan")
    forge(kept, allow_carried="allow_unsigned: true, allow_carried")
    assert project.ledger("verify", "--json", expect=1).document == before


def test_what_is_kept_does_not_decide_in_whose_name_a_failure_is_signed(project, kept):
    """A failure that was recorded for another repository would be passed over, and what passed before it carried."""
    project.record("lint")
    project.plan()
    forge(kept, demo="another")
    project.repo.commit({"README.md": "x\n"})
    (project.path / "bad").touch()
    project.record("lint", expect=1)
    (project.path / "bad").unlink()
    assert project.verify() == ("failed", {"not-green"})


@pytest.mark.parametrize(
    "damage", ["cut", "flipped", "empty", "other version", "not JSON", "no document", "no number"]
)
def test_a_damaged_file_is_as_good_as_none(project, kept, damage):
    first = project.ledger("plan", "--json").out
    whole = kept.read_bytes()
    digest = next(iter(kept_config._read(kept)))
    if damage == "not JSON":
        rewrite(kept, digest, b"{")
    elif damage == "no number":
        rewrite(kept, digest, b'{"version":["fraction","one"]}')
    elif damage == "no document":
        rewrite(kept, digest, b'{"version":2}')
    else:
        kept.write_bytes(
            {
                "cut": whole[:-9],
                "flipped": whole.replace(b'"src"', b'"srd"'),
                "empty": b"",
                "other version": whole.replace(b" 1\n", b" 0\n", 1),
            }[damage]
        )
    assert project.ledger("plan", "--json").out == first
    assert kept.read_bytes() == whole


def rewrite(path, digest: bytes, line: bytes) -> None:
    import hashlib

    content = b"%b %b\n" % (digest, line)
    path.write_bytes(kept_config._MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def test_a_broken_configuration_is_not_kept_and_its_line_is_named_every_time(project, kept):
    project.repo.commit({".gitledger/config.yaml": CONFIG.replace("paths", "pahts")})
    for _ in range(2):
        done = project.ledger("plan", expect=2)
        assert ":4: unknown key shards.lint.pahts" in done.err
    assert not kept.exists()


def test_the_latest_texts_are_kept(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    for number in range(MOST_KEPT + 1):
        load_config_kept(text(number), source="c", path=path)
    monkeypatch.setattr(kept_config, "read_document", None)
    for number in range(1, MOST_KEPT + 1):
        assert load_config_kept(text(number), source="c", path=path).repository == f"demo-{number}"
    with pytest.raises(TypeError):
        load_config_kept(text(0), source="c", path=path)


def test_a_folder_that_takes_nothing_costs_nothing_but_time(tmp_path):
    config = load_config_kept(text(1), source="c", path=tmp_path / "missing" / "folder" / "kept")
    assert config == config_of(kept_config.read_document(text(1), source="c"))
