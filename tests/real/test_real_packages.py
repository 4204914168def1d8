"""Two packages that nobody here wrote, with their own tests, through the whole path (`make test-real`).

The source distributions come from the package index. What they bring is recorded as it is, failures and skips
included: the point is that the ledger says exactly what pytest said.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

PACKAGES = {
    "packaging": {
        "version": "packaging==25.0",
        "shards": {
            "version": ("src", "tests/test_version.py"),
            "markers": ("src", "tests/test_markers.py", "tests/test_requirements.py"),
            "tags": ("src", "tests/test_tags.py", "tests/test_manylinux.py", "tests/test_musllinux.py"),
        },
        "change": "tests/test_version.py",
        "stale": {"version"},
    },
    "more-itertools": {
        "version": "more-itertools==10.7.0",
        "shards": {
            "more": ("more_itertools", "tests/test_more.py"),
            "recipes": ("more_itertools", "tests/test_recipes.py"),
        },
        "change": "more_itertools/recipes.py",
        "stale": {"more", "recipes"},
    },
}


def plain_counts(project, paths: list[str]) -> dict[str, int]:
    """Return what pytest itself says of these files, without us."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]
    done = subprocess.run(
        command, cwd=project.path, env=dict(project.repo.env), capture_output=True, text=True, check=False
    )
    last = done.stdout.strip().splitlines()[-1]
    return {
        word: int(number)
        for number, word in re.findall(r"(\d+) (passed|failed|skipped|xfailed|xpassed|error)", last)
    }


@pytest.mark.parametrize("name", PACKAGES)
def test_a_real_suite_recorded_sharded_carried_and_verified(make_project, unpack, name, capsys, tmp_path: Path):
    about = PACKAGES[name]
    files = unpack(about["version"])
    shards = {
        shard: {"paths": list(paths), "command": ["pytest", "-q", "-p", "no:cacheprovider", *paths[1:]]}
        for shard, paths in about["shards"].items()
    }
    config = json.dumps(
        {
            "version": 1,
            "repository": name,
            "shards": shards,
            "policy": {"allow_carried": True, "expected_skips": "skips.txt"},
        }
    )
    files = {path: data for path, data in files.items() if path != ".gitignore"}
    files[".gitignore"] = b"__pycache__/\n.hypothesis/\n"
    files["skips.txt"] = b""
    project = make_project(config, files)
    project.repo.env["PYTHONPATH"] = str(project.path / ("src" if name == "packaging" else ""))

    figures, skips, bad = {}, [], {}
    for shard, paths in about["shards"].items():
        expected = plain_counts(project, list(paths[1:]))
        document = project.record(shard, expect=None)
        assert "record" in document, document
        counts = project.receipt(document["record"])["counts"]
        told = {key: value for key, value in counts.items() if value and key not in ("collected", "deselected")}
        assert told == expected, shard
        figures[shard] = counts
        tests = project.ledger("show", document["record"], "--tests", "--json").document["records"][0]["tests"]
        skips += [item["node_id"] for item in tests if item["outcome"] == "skipped"]
        if document["outcome"] != "passed":
            bad[shard] = [item["node_id"] for item in tests if item["outcome"] in ("failed", "error")]
    if bad:
        assert project.verify()[0] == "failed"
        assert project.ledger("merge", "--json", expect=1).document["outcome"] == "failed"

    project.repo.commit({"skips.txt": "\n".join(skips) + "\n"}, "Expect these skips")
    target = project.path / about["change"]
    target.write_text(target.read_text() + "\n# changed\n")
    project.repo.commit({}, "Change one file")
    plan = project.plan()
    assert {shard for shard, (verdict, _) in plan.items() if verdict == "stale"} == about["stale"] | set(bad)
    for shard in plan:
        if plan[shard][0] == "stale":
            project.record(shard, expect=None)
    merged = project.ledger("merge", "--json", expect=None).document
    verdict, codes = project.verify()
    assert (verdict == "passed") == (not bad), codes
    assert merged["outcome"] == ("failed" if bad else "passed")
    with capsys.disabled():
        print(
            f"\n{about['version']}: {json.dumps(figures)}; not green: {bad or 'none'}; plan after the change: {plan}"
        )


def test_a_real_failure_among_them_is_red_and_its_repair_is_green(make_project, unpack):
    """One line of the package is broken: its own tests say so, and the verdict with them."""
    files = unpack(PACKAGES["more-itertools"]["version"])
    config = json.dumps(
        {
            "version": 1,
            "repository": "more-itertools",
            "shards": {
                "recipes": {
                    "paths": ["more_itertools", "tests"],
                    "command": ["pytest", "-q", "tests/test_recipes.py"],
                }
            },
        }
    )
    files[".gitignore"] = b"__pycache__/\n.pytest_cache/\n"
    project = make_project(config, files)
    recipes = project.path / "more_itertools/recipes.py"
    good = recipes.read_text()
    broken = good.replace("def take(n, iterable):", "def take(n, iterable):\n    n = n + 1", 1)
    assert broken != good
    project.repo.commit({"more_itertools/recipes.py": broken}, "Break take")
    document = project.record("recipes", expect=1)
    counts = project.receipt(document["record"])["counts"]
    assert counts["failed"] > 0
    assert counts["passed"] > 0
    assert "not-green" in project.verify()[1]
    project.repo.commit({"more_itertools/recipes.py": good}, "Mend take")
    project.record("recipes")
    assert project.verify("--allow-skipped")[0] == "passed"
