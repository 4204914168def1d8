"""A repository with a server, and a runner that executes the shell of a real workflow file as GitHub would."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitledger.trust.private_keys import load_private_key
from gitledger.trust.signer import FileSigner
from gitledger.workflows.asked import Asked, request_of
from gitledger.workflows.record import record
from gitledger.workflows.session import Session, open_session
from gitledger.workflows.trusted import read_config

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "hooks/github/git-ledger.yml"
CONFIG = """\
version: 1
repository: demo
shards:
  one: {paths: [one], command: [sh, one/check.sh], results: exit-status}
  two: {paths: [two], command: [sh, two/check.sh], results: exit-status}
policy:
  allow_carried: true
  allowed_signers: [alice@example.org, runner@example.org]
  ci_key_fingerprints: ["RUNNER"]
"""
FILES = {"one/check.sh": "exit ${FAIL:-0}\n", "two/check.sh": "exit 0\n", ".gitignore": "*.bundle\n"}
RUNNER_VARIABLES = ("GITLEDGER_SIGNING_KEY", "GITLEDGER_MODE")


@dataclass
class Hosted:
    """A project whose `main` stands on a bare server, policy and signers with it; the clone is Alice's."""

    project: Any
    server: Path

    def __getattr__(self, name: str) -> Any:
        return getattr(self.project, name)

    def head(self, rev: str = "HEAD") -> str:
        return self.repo.git("rev-parse", rev)

    def topic(self, files: Mapping[str, str] | None = None, name: str = "topic") -> str:
        """Commit on a branch of its own, push that, and return the commit."""
        self.repo.git("checkout", "-q", "-B", name)
        commit = self.repo.commit(dict(files or {}), f"on {name}")
        self.repo.git("push", "-q", "--no-verify", "-f", "origin", name)
        return commit

    def clone(self, name: str) -> Hosted:
        """Return another clone, as a runner's checkout makes it."""
        path = self.path.parent / name
        subprocess.run(["git", "clone", "-q", str(self.server), str(path)], env=dict(self.repo.env), check=True)
        repo = type(self.repo)(path, self.repo.env)
        return Hosted(type(self.project)(repo, self.keys), self.server)

    def merge_ref(self, head: str) -> str:
        """Check out what GitHub checks out for a pull request: a merge of its head into main, made up for the run."""
        self.repo.git("checkout", "-q", "--detach", "origin/main")
        self.repo.git("merge", "-q", "--no-ff", "--no-edit", head)
        return self.head()

    def session(self) -> Session:
        env = dict(self.repo.env)
        return open_session(self.path, environ=env, home=Path(env["HOME"]), now=lambda: datetime.now(UTC))

    def record_all(self, by: str = "alice") -> None:
        """Run and record every shard, in this process, since a command each takes longer than the shards."""
        session = self.session()
        config = read_config(session.repo, session.repo.head())
        signer = FileSigner(load_private_key(self.key(by).read_bytes(), where=by))
        for key in config.shard_keys():
            assert record(session, request_of(config, Asked(shard=key.name)), signer).stored

    def gate(self, *args: str, expect: int | None = None, env: Mapping[str, str] | None = None) -> Any:
        """Return the document of `gate --json`, its exit status in agreement with the verdict."""
        done = self.ledger("gate", "--json", *args, expect=expect, env=env)
        if expect is None:
            assert done.status == {"passed": 0, "failed": 1}[done.document["verdict"]], done
        return done.document


def blocking(document: Any) -> list[tuple[str, str]]:
    return [(item["code"], item["subject"]) for item in document["findings"] if item["blocks"]]


@pytest.fixture(name="blocking")
def _blocking():
    """Code and subject of each finding that blocks."""
    return blocking


def fingerprint(key: Path) -> str:
    """Return a key's fingerprint, as policy spells it."""
    done = subprocess.run(["ssh-keygen", "-lf", str(key)], check=True, capture_output=True, text=True)
    return done.stdout.split()[1]


@pytest.fixture
def make_hosted(make_project, make_repo, tmp_path: Path):
    """Return a maker of hosted projects; Alice and a runner may sign."""

    def make(config: str = CONFIG, files: Mapping[str, str] = FILES) -> Hosted:
        project = make_project("version: 1\nrepository: demo\nshards: {}\n", {})
        project.repo.env.pop("GITLEDGER_SIGNING_KEY")
        config = config.replace("RUNNER", fingerprint(project.key("runner")))
        project.repo.git("config", "gitledger.signingKey", str(project.key("alice")))
        signers = project.path / ".gitledger/allowed_signers"
        line = f'runner@example.org namespaces="gitledger" {project.public("runner")}\n'
        said = {".gitledger/config.yaml": config, ".gitledger/allowed_signers": signers.read_text() + line}
        project.repo.commit({**files, **said}, "start")
        server = make_repo("server.git", "--bare")
        project.repo.git("remote", "add", "origin", str(server.path))
        project.repo.git("push", "-q", "-u", "origin", "main")
        return Hosted(project, server.path)

    return make


@pytest.fixture
def hosted(make_hosted) -> Hosted:
    """Two cheap shards on a server."""
    return make_hosted()


# --- a runner of GitHub's, emulated -------------------------------------------------------------------------------


class Null(dict[str, Any]):
    """An object of an expression: what it lacks is null, never an error."""

    def __missing__(self, key: str) -> Any:
        return None


def as_context(value: Any) -> Any:
    if isinstance(value, dict):
        return Null({key: as_context(item) for key, item in value.items()})
    return [as_context(item) for item in value] if isinstance(value, list) else value


TOKEN = re.compile(
    r"\s*(?:(?P<sign>\|\||&&|==|!=|!|[()\[\],])|'(?P<text>(?:[^']|'')*)'|(?P<word>[A-Za-z_][\w.-]*)|(?P<number>\d+))"
)


def evaluate(text: str, contexts: Mapping[str, Any], functions: Mapping[str, Any]) -> Any:
    """Return what an expression of a workflow comes to."""

    def at(path: str) -> Any:
        first, *rest = path.split(".")
        found = contexts[first]
        for key in rest:
            found = found[key] if isinstance(found, dict) else None
        return found

    python, place = [], 0
    while place < len(text.rstrip()):
        found = TOKEN.match(text, place)
        assert found, f"no expression: {text[place:]}"
        place = found.end()
        if found["sign"]:
            python.append({"||": " or ", "&&": " and ", "!": " not "}.get(found["sign"], found["sign"]))
        elif found["text"] is not None:
            python.append(repr(found["text"].replace("''", "'")))
        elif found["number"]:
            python.append(found["number"])
        elif found["word"] in ("true", "false", "null"):
            python.append({"true": "True", "false": "False", "null": "None"}[found["word"]])
        else:
            is_call = text[place:].lstrip().startswith("(")
            python.append(f"call[{found['word']!r}]" if is_call else f"at({found['word']!r})")
    return eval("".join(python), {"at": at, "call": functions, "__builtins__": {}})


def spelled(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


@dataclass
class GitHub:
    """Runs the jobs of a workflow file, one after another: real shell, real git, `actions/*` and pip stood in for.

    `event` is the payload. A job that is not run counts as skipped where its `if` says so, else as `broken` says: the
    names of jobs (or entries of a matrix) that never start.
    """

    hosted: Hosted
    folder: Path
    event: dict[str, Any]
    name: str = "pull_request"
    secrets: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    source: Path = WORKFLOW

    def __post_init__(self) -> None:
        self.flow = yaml.safe_load(self.source.read_text("utf-8"))
        tools = self.folder / "tools"
        tools.mkdir(parents=True)
        (tools / "pip").write_text('#!/bin/sh\necho "pip $*"\n')
        (tools / "pip").chmod(0o755)

    @property
    def sha(self) -> str:
        pull = self.event.get("pull_request")
        return pull["merge_sha"] if pull else self.event["after"]

    def contexts(self, job: str, **more: Any) -> dict[str, Any]:
        pull = self.event.get("pull_request")
        github = {
            "event": self.event,
            "event_name": self.name,
            "base_ref": pull["base"]["ref"] if pull else "",
            "sha": self.sha,
            "token": "a-token",
        }
        needs = {name: self.results[name] for name in self._needs(job) if name in self.results}
        found = {"github": github, "secrets": self.secrets, "inputs": self.inputs, "needs": needs, "steps": {}}
        return as_context(
            found | {"matrix": {}, "strategy": {}, "runner": {"temp": str(self.folder / "temp")}} | more
        )

    def _needs(self, job: str) -> list[str]:
        needs = self.flow["jobs"][job].get("needs", [])
        return [needs] if isinstance(needs, str) else needs

    def run(self, *, broken: tuple[str, ...] = ()) -> str:
        """Run every job; return the result of the gate."""
        for job in self.flow["jobs"]:
            self.run_job(job, broken=broken)
        return self.results["gate"]["result"]

    def run_job(self, job: str, *, broken: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> str:
        """Run one job, of a matrix all entries or `only` some; what is not run again keeps its result."""
        body = self.flow["jobs"][job]
        before = self.results.get(job, {}).get("entries", {})
        entries = dict(before) if only else {}
        outputs: dict[str, str] = {}
        good = all(self.results[name]["result"] == "success" for name in self._needs(job))
        if self._holds(body.get("if"), self.contexts(job), good=good):
            matrix = body.get("strategy", {}).get("matrix")
            rows = [{}] if matrix is None else self._value(matrix, self.contexts(job))["include"]
            assert rows, "Matrix must define at least one vector"
            for index, row in enumerate(rows):
                name = row.get("name", job)
                if only and name not in only:
                    continue
                if name in broken:
                    entries[name] = "cancelled"
                    continue
                context = self.contexts(job, matrix=row, strategy={"job-index": index})
                entries[name] = self._entry(job, name, context, outputs)
        words = set(entries.values())
        result = next(
            (word for word in ("failure", "cancelled") if word in words), "success" if words else "skipped"
        )
        self.results[job] = {"result": result, "outputs": outputs, "entries": entries}
        return result

    def _entry(self, job: str, name: str, context: dict[str, Any], outputs: dict[str, str]) -> str:
        """Run the steps of one job on a machine of its own."""
        workspace = self.folder / f"{job}-{name}-{len(list(self.folder.iterdir()))}"
        good, log = True, []
        for step in self.flow["jobs"][job]["steps"]:
            if not self._holds(step.get("if"), context, good=good):
                continue
            if step.get("uses", "").startswith("owner/git-ledger/hooks/github@"):
                status, text = self._composite(step, job, workspace, context)
            elif "uses" in step:
                self._use(step, workspace, context)
                continue
            else:
                status, text = self._shell(step, job, workspace, context)
            log.append(text)
            good = good and status == 0
        for key, value in self.flow["jobs"][job].get("outputs", {}).items():
            outputs[key] = spelled(self._value(value, context))
        self.logs[name] = "".join(log)
        return "success" if good else "failure"

    def _composite(self, step: Any, job: str, workspace: Path, context: dict[str, Any]) -> tuple[int, str]:
        """Run our composite action: its steps, with its inputs."""
        action = yaml.safe_load((ROOT / "hooks/github/action.yml").read_text("utf-8"))
        given = {key: spelled(self._value(value, context)) for key, value in step["with"].items()}
        assert set(given) <= set(action["inputs"])
        inputs = {key: given.get(key, body.get("default", "")) for key, body in action["inputs"].items()}
        inner = as_context({**context, "inputs": inputs, "steps": {}})
        worst, log = 0, []
        for one in action["runs"]["steps"]:
            if self._holds(one.get("if"), inner, good=worst == 0):
                status, text = self._shell(one, job, workspace, inner)
                worst = worst or status
                log.append(text)
        if "id" in step:
            outputs = {key: spelled(self._value(body["value"], inner)) for key, body in action["outputs"].items()}
            context["steps"][step["id"]] = Null(outputs=Null(outputs))
        return worst, "".join(log)

    def _shell(self, step: Any, job: str, workspace: Path, context: dict[str, Any]) -> tuple[int, str]:
        assert step["shell"] == "bash"
        temp = self.folder / "temp"
        temp.mkdir(exist_ok=True)
        files = {"GITHUB_OUTPUT": temp / "output", "GITHUB_STEP_SUMMARY": temp / "summary"}
        for file in files.values():
            file.write_text("")
        (temp / "event.json").write_text(json.dumps(self.event))
        pull = self.event.get("pull_request")
        env = {key: value for key, value in self.hosted.repo.env.items() if key not in RUNNER_VARIABLES}
        env["PATH"] = f"{self.folder / 'tools'}{os.pathsep}{env['PATH']}"
        env |= {key: str(value) for key, value in files.items()}
        env |= {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": self.name,
            "GITHUB_EVENT_PATH": str(temp / "event.json"),
            "GITHUB_SHA": self.sha,
            "GITHUB_REF": f"refs/pull/{pull['number']}/merge" if pull else "refs/heads/main",
            "GITHUB_BASE_REF": pull["base"]["ref"] if pull else "",
            "GITHUB_SERVER_URL": "https://github.example",
            "RUNNER_TEMP": str(temp),
        }
        for group in (self.flow.get("env", {}), self.flow["jobs"][job].get("env", {}), step.get("env", {})):
            env |= {key: spelled(self._value(value, context)) for key, value in group.items()}
        assert "${{" not in step["run"], "an expression in a script is an injection"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=workspace,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        assert "Traceback" not in done.stdout, done.stdout
        if summary := files["GITHUB_STEP_SUMMARY"].read_text():
            self.summaries[job] = summary
        if "id" in step:
            lines = files["GITHUB_OUTPUT"].read_text().splitlines()
            context["steps"][step["id"]] = Null(outputs=Null(line.split("=", 1) for line in lines))
        return done.returncode, f"$ {step.get('name')}\n{done.stdout}"

    def _use(self, step: Any, workspace: Path, context: dict[str, Any]) -> None:
        action = step["uses"].partition("@")[0]
        given = {key: spelled(self._value(value, context)) for key, value in step.get("with", {}).items()}
        artifacts = self.folder / "temp/artifacts"
        if action == "actions/checkout":
            assert given["fetch-depth"] == "0"
            url = str(self.hosted.server)
            git = ["git", "clone", "-q", "--no-checkout", url, str(workspace)]
            env = dict(self.hosted.repo.env)
            subprocess.run(git, env=env, check=True)
            fetch = ["git", "fetch", "-q", "origin", "+refs/pull/*:refs/remotes/pull/*"]
            subprocess.run(fetch, cwd=workspace, env=env, check=True)
            subprocess.run(["git", "checkout", "-q", "--detach", given["ref"]], cwd=workspace, env=env, check=True)
        elif action == "actions/upload-artifact":
            place = artifacts / given["name"]
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(workspace / given["path"], place)
        elif action == "actions/download-artifact":
            if artifacts.exists():
                shutil.copytree(artifacts, given["path"], dirs_exist_ok=True)
        else:
            assert action == "actions/setup-python"

    def _value(self, text: Any, context: dict[str, Any]) -> Any:
        """Return a value of the workflow with its expressions evaluated."""
        if not isinstance(text, str):
            return text
        functions = {"fromJSON": lambda value: as_context(json.loads(value)), "toJSON": json.dumps}
        functions["format"] = lambda form, *words: form.format(*words)
        whole = re.fullmatch(r"\$\{\{(.*?)\}\}", text)
        if whole:
            return evaluate(whole[1], context, functions)
        return re.sub(r"\$\{\{(.*?)\}\}", lambda found: spelled(evaluate(found[1], context, functions)), text)

    def _holds(self, text: Any, context: dict[str, Any], *, good: bool) -> bool:
        if text is None:
            return good
        if not re.search(r"\b(always|failure|cancelled|success)\(", text) and not good:
            return False
        functions = {"always": lambda: True, "success": lambda: good, "failure": lambda: not good}
        return bool(evaluate(text, context, functions))


@pytest.fixture
def make_github(tmp_path: Path):
    """Return a maker of runners: `make_github(hosted, event)`."""
    made: list[GitHub] = []

    def make(hosted: Hosted, event: dict[str, Any], **options: Any) -> GitHub:
        made.append(GitHub(hosted, tmp_path / f"github-{len(made)}", event, **options))
        return made[-1]

    return make


@pytest.fixture
def pull_request():
    """Return a maker of events: pull request 7 of a commit, into main, with the merge that GitHub makes up for it."""

    def make(hosted: Hosted, head: str, *, fork: Path | None = None, base: str = "main") -> dict[str, Any]:
        hosted.repo.git("push", "-q", "-f", "--no-verify", "origin", f"{head}:refs/pull/7/head")
        hosted.repo.git("checkout", "-q", "--detach", base)
        hosted.repo.git("merge", "-q", "--no-ff", "--no-edit", head)
        merge = hosted.head()
        hosted.repo.git("push", "-q", "-f", "--no-verify", "origin", f"{merge}:refs/pull/7/merge")
        hosted.repo.git("checkout", "-q", "--detach", head)
        repo = {"fork": fork is not None, "clone_url": str(fork or hosted.server)}
        pull = {"number": 7, "head": {"sha": head, "repo": repo}, "base": {"ref": base}, "merge_sha": merge}
        return {"pull_request": pull, "repository": {"default_branch": "main"}}

    return make
