"""Fixtures that every room's tests may use: a hermetic git, a fixed identity, real repositories."""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import itertools
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# A run in the background, or under nohup, inherits ignored signals and would hand them on to what it starts.
for _number, _default in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
    (signal.SIGCHLD, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        with contextlib.suppress(ValueError):
            signal.signal(_number, _default)
signal.pthread_sigmask(signal.SIG_SETMASK, ())


class _NoTorch:
    """Refuses torch and its kin to every test: only a lane's probe may import them, in a process of its own."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in {"torch", "safetensors", "transformers"}:
            raise ModuleNotFoundError(f"No module named {name!r}: the tests run without it", name=name)


if "GITLEDGER_TEST_TORCH" not in os.environ:  # an interpreter that has torch: make test-lanes
    sys.meta_path.insert(0, _NoTorch())

EXPECTED_SKIPS = (
    "root reads everything",
    "xdist needs the terminal plugin",
    "could not import 'torch'",
)
"""Reasons for which a test of ours may skip where every skip is looked at (`GITLEDGER_STRICT_SKIPS`, set in CI)."""


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Fail a run in which a test that matters was skipped, or in which none ran at all."""
    if not os.environ.get("GITLEDGER_STRICT_SKIPS"):
        return
    skipped = [report.longrepr[2] for report in terminalreporter.getreports("skipped") if report.longrepr]
    surprising = [reason for reason in skipped if not any(text in reason for text in EXPECTED_SKIPS)]
    ran = len(terminalreporter.getreports("passed"))
    if surprising or not ran:
        terminalreporter.write_line(f"ERROR: {ran} tests passed, unexpected skips: {surprising}", red=True)
        terminalreporter._session.exitstatus = 1


def hermetic_environment(home: Path) -> dict[str, str]:
    """Return an environment in which git, ssh and pytest see nothing of the machine's user."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "Alice",
        "GIT_AUTHOR_EMAIL": "alice@example.org",
        "GIT_COMMITTER_NAME": "Alice",
        "GIT_COMMITTER_EMAIL": "alice@example.org",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@dataclass(frozen=True)
class GitRepo:
    """A real repository in a folder, driven by the real git."""

    path: Path
    env: Mapping[str, str]

    def git(self, *args: str, check: bool = True, input: bytes | None = None) -> str:  # noqa: A002
        """Run git here and return its stdout, stripped of the last newline."""
        done = subprocess.run(
            ["git", *args], cwd=self.path, env=dict(self.env), input=input, capture_output=True, check=False
        )
        if check and done.returncode:
            raise AssertionError(
                f"git {' '.join(args)} -> {done.returncode}: {done.stderr.decode(errors='replace')}"
            )
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def write(self, path: str, text: str | bytes, *, mode: int | None = None) -> Path:
        """Write a file of the work tree, folders included."""
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        if mode is not None:
            target.chmod(mode)
        return target

    def commit(self, files: Mapping[str, str | bytes] | None = None, message: str = "change") -> str:
        """Write `files`, commit everything, and return the new commit's id."""
        for path, text in (files or {}).items():
            self.write(path, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def hermetic_env(tmp_path: Path) -> dict[str, str]:
    """A child environment that leaks nothing of this machine; HOME is an empty folder."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return hermetic_environment(home)


@pytest.fixture
def tracer(tmp_path: Path, hermetic_env: dict[str, str]) -> Any:
    """A tracer that works here; no skip for which a strict run allows."""
    from gitledger.errors import MachineError
    from gitledger.machine.trace import find_tracer

    folder = tmp_path / "tracer"
    folder.mkdir()
    try:
        return find_tracer(hermetic_env, folder)
    except MachineError as error:
        pytest.skip(str(error))


@pytest.fixture
def make_repo(tmp_path: Path, hermetic_env: dict[str, str]):
    """Return a maker of real, empty repositories: `make_repo("name", "--bare")`."""

    def make(name: str = "repo", *options: str) -> GitRepo:
        path = tmp_path / name
        path.mkdir(parents=True)
        repo = GitRepo(path, hermetic_env)
        repo.git("init", "-q", "-b", "main", *options)
        return repo

    return make


@pytest.fixture
def git_repo(make_repo) -> GitRepo:
    """A real, empty repository."""
    return make_repo()


SCHEMAS = Path(__file__).parents[1] / "docs/reference/schemas"


@functools.cache
def _validator(name: str) -> Any:
    """Return the validator of a published schema, None where there is none of that name."""
    from jsonschema import Draft202012Validator

    path = SCHEMAS / f"{name}.json"
    return Draft202012Validator(json.loads(path.read_text("utf-8"))) if path.exists() else None


def _closed(schema: Any) -> Any:
    """Return a schema of stored statements as this version writes them: with no field that it does not say."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {key: _closed(item) for key, item in schema.items()}
    return whole | {"additionalProperties": False} if "required" in whole and "properties" in whole else whole


@functools.cache
def _statement_validator() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_closed(json.loads((SCHEMAS / "statement.json").read_text("utf-8"))))


def check_document(args: Sequence[str | bytes], out: str) -> None:
    """Hold what a command printed for `--json` against its published schema; what printed nothing says nothing.

    Statements that `show` prints are held against theirs, closed: what this version writes, that page must say.
    """
    words = [word for word in itertools.takewhile(lambda word: word != "--", args) if isinstance(word, str)]
    name = next((word for word in words if (SCHEMAS / f"{word}.json").exists()), None)
    if "--json" not in words or not out.strip() or name is None:
        return
    document = json.loads(out)
    faults = list(itertools.islice(_validator(name).iter_errors(document), 3))
    if name == "show" and not faults:
        written = [item["statement"] for item in document.get("records", ()) if "statement" in item]
        faults = [fault for item in written for fault in _statement_validator().iter_errors(item)]
    if faults:
        said = "\n".join(f"{fault.json_path}: {fault.message[:400]}" for fault in faults)
        raise AssertionError(
            f"`{' '.join(words)}` prints what docs/reference/schemas/{name}.json does not say:\n{said}\n"
            "describe it in tests/schemas/make.py and run that"
        )


@pytest.fixture(scope="session", name="check_document")
def check_document_fixture() -> Callable[[Sequence[str | bytes], str], None]:
    """Hold what a command printed for `--json` against its published schema."""
    return check_document


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)


class WarmCommand:
    """The process that forks a `git-ledger` for each command of this worker's tests: tests/warm_command.py."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="warm")
        self.socket = f"{self.folder.name}/socket"
        self.path = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"
        env = hermetic_environment(Path(self.folder.name)) | {"PATH": self.path}
        script = str(Path(__file__).with_name("warm_command.py"))
        self.server = subprocess.Popen(
            [sys.executable, script, self.socket], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.server.stdout is not None
        assert self.server.stdout.readline() == b"ready\n", "the warm command didn't start"
        found = subprocess.run(["git", "--exec-path"], env=env, capture_output=True, text=True, check=True)
        self.exec_path = found.stdout.strip()
        atexit.register(self.close)

    def close(self) -> None:
        """End the server: its standard input ends."""
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait(30)
        self.folder.cleanup()

    def fits(self, env: Mapping[str, str]) -> bool:
        """Tell whether a start in this environment would be like the server's: its tools, its Python, its locale."""
        of_start = {name for name in env if name.startswith(("PYTHON", "LD_", "GIT_EXEC_PATH", "LANG", "LC_"))}
        usual = of_start == {"PYTHONDONTWRITEBYTECODE", "LC_ALL"} and env["LC_ALL"] == "C.UTF-8"
        return usual and env.get("PATH") == self.path

    def run(self, args: tuple[str, ...], cwd: Path, env: Mapping[str, str], stdin: str) -> Done:
        """Run `git-ledger ARGS` as git would start it, and return what it said."""
        umask = os.umask(0o022)
        os.umask(umask)  # only by setting it can it be read
        request = {
            "argv": [f"{TOOLS}/git-ledger", *args],
            "cwd": str(cwd),
            "env": {**env, "PATH": f"{self.exec_path}{os.pathsep}{env['PATH']}"},
            "umask": umask,
        }
        ends = [os.pipe() for _ in range(3)]
        theirs = [ends[0][0], ends[1][1], ends[2][1]]
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            data = json.dumps(request).encode() + b"\n"
            passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", theirs))]
            sent = connection.sendmsg([data], passed)
            connection.sendall(data[sent:])
            for end in theirs:
                os.close(end)
            texts: dict[int, bytes] = {}

            def read(end: int) -> None:
                with os.fdopen(end, "rb") as stream:
                    texts[end] = stream.read()

            def write() -> None:
                with contextlib.suppress(BrokenPipeError), os.fdopen(ends[0][1], "wb") as stream:
                    stream.write(stdin.encode("utf-8", "surrogateescape"))

            threads = [threading.Thread(target=read, args=(ends[1][0],)), threading.Thread(target=write)]
            for thread in threads:
                thread.start()
            read(ends[2][0])
            for thread in threads:
                thread.join()
            with connection.makefile() as answer:
                status = int(answer.readline())
        out, err = (
            texts[end[0]].decode("utf-8", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
            for end in ends[1:]
        )
        return Done(status, out, err)


TOOLS = Path(sys.executable).parent
_warm: list[WarmCommand] = []


def run_ledger(args: tuple[str, ...], cwd: Path, env: Mapping[str, str], stdin: str = "") -> Done:
    """Run `git ledger ARGS`: by a process that has already started where the environment allows it."""
    if not _warm:
        _warm.append(WarmCommand())
    if _warm[0].fits(env):
        return _warm[0].run(args, cwd, env, stdin)
    done = subprocess.run(
        ["git", "ledger", *args],
        cwd=cwd,
        env=dict(env),
        input=stdin,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Project:
    """A repository with a configuration, a signer, and the installed `git ledger` command."""

    repo: GitRepo
    keys: Path

    @property
    def path(self) -> Path:
        return self.repo.path

    def ledger(
        self, *args: str, expect: int | None = 0, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Done:
        """Run `git ledger ARGS` here; its exit status is part of the expectation."""
        found = run_ledger(args, self.repo.path, dict(self.repo.env) | dict(env or {}), stdin)
        if expect is not None and found.status != expect:
            raise AssertionError(f"git ledger {' '.join(args)} -> {found.status}\n{found.out}\n{found.err}")
        assert "Traceback" not in found.err or expect is None, found.err
        check_document(args, found.out)
        return found

    def record(self, shard: str, *args: str, expect: int | None = 0, **kwargs: Any) -> Any:
        """Record a shard and return the `--json` document."""
        return self.ledger("record", "--shard", shard, "--json", *args, expect=expect, **kwargs).document

    def receipt(self, record: str) -> Any:
        """Return the predicate of one record."""
        return self.ledger("show", record, "--json").document["records"][0]["statement"]["predicate"]

    def plan(self, *args: str) -> dict[str, tuple[str, str]]:
        """Return verdict and reason by shard."""
        rows = self.ledger("plan", "--json", *args).document["shards"]
        return {row["name"]: (row["verdict"], row["reason"]) for row in rows}

    def verify(self, *args: str) -> tuple[str, set[str]]:
        """Return the verdict and the codes of the findings that block."""
        done = self.ledger("verify", "--json", *args, expect=None)
        document = done.document
        assert done.status == (0 if document["verdict"] == "passed" else 1), done
        return document["verdict"], {item["code"] for item in document["findings"] if item["blocks"]}

    def key(self, name: str) -> Path:
        """Return a private key file of that name, made when first asked for."""
        path = self.keys / name
        if not path.exists():
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)]
            subprocess.run(command, check=True, capture_output=True)
        return path

    def public(self, name: str) -> str:
        """Return the public line of a key."""
        self.key(name)
        return " ".join((self.keys / f"{name}.pub").read_text().split()[:2])


UNIT = {
    "src/alpha.py": "def alpha():\n    return 1\n",
    "src/beta.py": "def beta():\n    return 2\n",
    "tests/alpha/test_alpha.py": "from src.alpha import alpha\n\ndef test_alpha():\n    assert alpha() == 1\n",
    "tests/beta/test_beta.py": "from src.beta import beta\n\ndef test_beta():\n    assert beta() == 2\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = "-p no:hypothesispytest"\n',
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
}
TWO_SHARDS = """\
version: 1
repository: demo
shards:
  alpha: {paths: [src/alpha.py, tests/alpha], command: pytest -q tests/alpha}
  beta: {paths: [src/beta.py, tests/beta], command: pytest -q tests/beta}
policy:
  allow_carried: true
"""


@pytest.fixture
def make_project(make_repo, hermetic_env: dict[str, str], tmp_path: Path):
    """Return a maker of projects: files, configuration text, and Alice as the only signer, all committed."""
    tools = Path(sys.executable).parent
    hermetic_env["PATH"] = f"{tools}{os.pathsep}{hermetic_env['PATH']}"

    def make(config: str = TWO_SHARDS, files: Mapping[str, str] = UNIT, *, name: str = "repo") -> Project:
        keys = tmp_path / "keys"
        keys.mkdir(exist_ok=True)
        project = Project(make_repo(name), keys)
        hermetic_env["GITLEDGER_SIGNING_KEY"] = str(project.key("alice"))
        signers = f'alice@example.org namespaces="gitledger" {project.public("alice")}\n'
        project.repo.commit(
            {**files, ".gitledger/config.yaml": config, ".gitledger/allowed_signers": signers}, "start"
        )
        return project

    return make


@pytest.fixture
def project(make_project) -> Project:
    """Two shards, one test each."""
    return make_project()


_LEDGER = re.compile(r"\bgit[ -]ledger(?= +[^\s])")
_COMMENT = re.compile(r"(?:\s{2,}|\s+(?=#)).*")


def _parsed(words: list[str], folder: Path) -> str:
    """Return why our own command line refuses some words, nothing where it takes them."""
    import click

    from gitledger.cli.app import app
    from gitledger.cli.output import Output

    try:
        root = app.make_context("git ledger", list(words))
        root.obj = Output(directory=folder, environ={}, quiet=False, verbose=False, color=False)
        rest = [*root._protected_args, *root.args]
        if rest:
            name, command, rest = app.resolve_command(root, rest)
            assert command is not None
            command.make_context(name, rest, parent=root)
    except click.exceptions.Exit:
        pass
    except (click.UsageError, AssertionError) as error:
        return f"git ledger {' '.join(words)}: {getattr(error, 'message', error)}"
    return ""


@pytest.fixture(scope="session")
def parse_commands(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """Return what is wrong with each `git ledger …` of a line that somebody is told to type.

    A comment behind it, and what a shell puts around a command, is no part of it. Nothing is run.
    """
    folder = tmp_path_factory.mktemp("typed")

    def parse(line: str) -> list[str]:
        faults = []
        for found in _LEDGER.finditer(line):
            text = _COMMENT.sub("", line[found.end() :].lstrip().replace("$(", " ( ").replace("`", " "))
            lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            lexer.commenters = ""
            try:
                words = list(itertools.takewhile(lambda word: not set(word) <= set("();<>|&"), lexer))
            except ValueError:  # within quotes that begin before: as `sh -c '…'` has them
                words = text.split()
            faults.append(_parsed(words, folder))
        return [fault for fault in faults if fault]

    return parse
