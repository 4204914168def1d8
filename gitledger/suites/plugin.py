"""The witness inside pytest: writes a journal of what happened, and hands `pytest --ledger` over to `record`.

PYTEST_DONT_REWRITE. This one file is copied into environments that have no git-ledger, so it needs nothing but
the standard library and pytest (Python 3.8, pytest 7.0 and later), and it holds no key: the journal is
unsigned, `record` signs. Without `GITLEDGER_JOURNAL` in the environment and without `--ledger` it does nothing.

The journal is JSON Lines in ASCII, each line one event, an array whose first item names it. The reader
(`journal.py`) lists the events. Lines are appended with one `write` each, so a crash leaves what had finished.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

JOURNAL_VARIABLE = "GITLEDGER_JOURNAL"
NONCE_VARIABLE = "GITLEDGER_NONCE"
MARKER_VARIABLE = "GITLEDGER_MARKER"
PLUGIN_VARIABLE = "GITLEDGER_PLUGIN"
DUMP_VARIABLE = "GITLEDGER_DUMP_SIGNAL"
"""The number of the signal at which pytest writes its stacks; left for runs below this one too."""
RECORDING_VARIABLE = "GITLEDGER_RECORDING"
"""Stays in the environment of everything below `record`: whoever sees it doesn't hand over a second time."""
JOURNAL_VERSION = 1
CHUNK_CHARACTERS = 128 << 10
MAX_ARGUMENT_CHARACTERS = 32 << 10
MAX_CHECKS = 1_000
"""Comparison checks of one test."""
_WORKER_KEY = "gitledger"
_MARKER_KEY = "gitledger-marker"
_OBSERVED_KEY = "gitledger-observed"
_NARROWING = (
    "keyword",
    "markexpr",
    "deselect",
    "ignore",
    "ignore_glob",
    "lf",
    "stepwise",
    "maxfail",
    "collectonly",
    "setuponly",
)

_claim: tuple[Any, str, str, str | None] | None = None
_recorder: _Recorder | None = None


def _take(pluginmanager: Any) -> None:
    """Bind the journal to this one pytest run.

    The variables leave the environment, so no child inherits them, and no nested run in this process can be
    taken for the run that `record` started.
    """
    global _claim
    path = os.environ.pop(JOURNAL_VARIABLE, None)
    nonce = os.environ.pop(NONCE_VARIABLE, None)
    marker = os.environ.pop(MARKER_VARIABLE, None)
    if path and nonce:
        _claim = (pluginmanager, path, nonce, marker or None)


def _offer_stacks() -> None:
    """Let whoever supervises this process ask for the stacks of its threads before it ends a hang.

    Called before output is captured: the stacks are for the log, and not for the report of a test.
    """
    number = os.environ.get(DUMP_VARIABLE, "")
    if number.isdigit() and hasattr(faulthandler, "register"):
        try:
            faulthandler.register(int(number), file=os.dup(2), all_threads=True)
        except (OSError, ValueError, RuntimeError):
            return  # no stderr, or no such signal: the run ends without stacks


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Claim the journal for the run whose plugins load now, and offer `--ledger`."""
    _offer_stacks()
    # Where record's own copy of this file is on its way, an installed (perhaps older) one leaves it the journal.
    if os.environ.get(PLUGIN_VARIABLE, __name__) == __name__:
        _take(pluginmanager)
    group = parser.getgroup("gitledger", "git ledger")
    try:
        group.addoption("--ledger", action="store_true", default=False, help="record this run in the git ledger")
        group.addoption("--ledger-shard", metavar="NAME", default=None, help="the shard that this run is")
        group.addoption("--ledger-variant", metavar="NAME", default=None, help="the variant of that shard")
    except ValueError:
        pass  # the other copy of this file (installed, or injected) was here first


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Hand `--ledger` over before anything of the run has begun."""
    # A wrapper that comes first runs before output is captured, and before any conftest.
    _take(early_config.pluginmanager)
    if early_config.known_args_namespace.ledger:
        _hand_over(early_config)
    yield


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, and journal the one run that claimed it; nothing is registered in any other."""
    global _recorder
    _declare_markers(config)
    if _WORKER_KEY in getattr(config, "workerinput", {}):
        _withdraw()
        if not config.pluginmanager.hasplugin("gitledger-worker"):  # by the other copy of this file
            config.pluginmanager.register(_Worker(config), "gitledger-worker")
    elif _claim is not None and _claim[0] is config.pluginmanager:
        _recorder = _Recorder(config, *_claim[1:])
        config.pluginmanager.register(_recorder, "gitledger-recorder")
    elif _recorder is not None and _recorder.finished:
        config.pluginmanager.register(_Again(_recorder), "gitledger-again")


def _is_observed() -> bool:
    """Tell whether this process tells `record` what it reads; start it where another sitecustomize came first."""
    observer = sys.modules.get("_gitledger_observe")
    where = os.environ.get("GITLEDGER_OBSERVED", "").split("\n")
    if observer is None and len(where) > 2:
        sys.path.insert(0, os.path.dirname(where[1]))  # noqa: PTH120
        try:
            import _gitledger_observe as observer  # type: ignore[import-not-found, no-redef, unused-ignore]
        except ImportError:
            return False  # another machine than the one that records
        finally:
            del sys.path[0]
    return observer is not None and bool(observer.start())


_LOADER = "_gitledger_plugin"
"""The two lines by which pytest loads the injected copy."""
_PLACES = (("PYTEST_PLUGINS", ",", _LOADER), ("PYTHONPATH", os.pathsep, os.path.dirname(__file__)))  # noqa: PTH120


def _withdraw() -> None:
    """Take the injected copy out of the environment, so that pytest runs started by tests don't load it."""
    if os.environ.pop(PLUGIN_VARIABLE, None) == __name__:
        for place in _PLACES:
            _without(*place)


def _come_back() -> None:
    """Let a run that this process starts after the recorded one load the injected copy: it has to be noticed."""
    for variable, separator, part in _PLACES:
        _without(variable, separator, part)
        os.environ[variable] = separator.join(filter(None, (os.environ.get(variable), part)))


def _without(variable: str, separator: str, part: str) -> None:
    value = os.environ.get(variable)
    if value is None:
        return
    parts = value.split(separator)
    if part in parts:
        parts.remove(part)
        if parts:
            os.environ[variable] = separator.join(parts)
        else:
            del os.environ[variable]


class _Appender:
    """Appends to the journal whatever the tests do to this process.

    Everything it calls is bound when the session starts: tests replace `os.write`, the clock and whole file
    systems. A fork writes nothing. A closed or reused descriptor, which shows by a position that is not where the
    last line ended, is opened anew, but only onto the same file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._open, self._write, self._seek, self._fstat = os.open, os.write, os.lseek, os.fstat
        self._getpid = os.getpid
        self._error = OSError
        self._flags = os.O_WRONLY | os.O_APPEND
        self._pid = os.getpid()
        self._broken = False
        self._end = 0
        try:
            self._fd = os.open(path, self._flags | os.O_CREAT, 0o600)
            stat = os.fstat(self._fd)
            self._file = (stat.st_dev, stat.st_ino)
        except OSError:
            self._broken = True

    def append(self, text: str) -> None:
        """Write whole lines; after a fault nothing more, so that the reader finds a journal that breaks off."""
        if self._broken or self._getpid() != self._pid:
            return
        data = text.encode("ascii")
        try:
            try:
                same = self._seek(self._fd, 0, 1) == self._end
            except self._error:
                same = False
            if not same:
                self._reopen()
            while data:
                data = data[self._write(self._fd, data) :]
            self._end = self._seek(self._fd, 0, 1)
        except self._error:
            self._broken = True

    def _reopen(self) -> None:
        fd = self._open(self._path, self._flags)
        stat = self._fstat(fd)
        if (stat.st_dev, stat.st_ino) != self._file:
            raise self._error("the journal was replaced")
        self._fd = fd


class _Recorder:
    """Journals one session: the only process of a run, or the controller of xdist workers."""

    def __init__(self, config: pytest.Config, path: str, nonce: str, marker: str | None) -> None:
        self.config = config
        self.finished = False
        self._nonce = nonce
        self._marker = marker
        self._module = os.environ.get(PLUGIN_VARIABLE)
        self._refs: dict[str, str] = {}
        self._quote = _quoted
        self._before: list[pytest.Item] | None = None
        self._worker_ids: list[str] | None = None
        self._worker_rest: str | None = None
        self._held = ""
        self._is_alone = True
        self._appender = _Appender(os.path.abspath(path))  # noqa: PTH100

    def _event(self, *items: Any) -> None:
        self._appender.append(self._held + json.dumps(items) + "\n")
        self._held = ""

    # -- the session

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        self._event("journal", JOURNAL_VERSION, self._nonce, _session_facts(self.config))
        self._is_alone = not self.config.pluginmanager.hasplugin("dsession")
        if self._is_alone:
            _withdraw()  # xdist workers still have to find the injected copy, and withdraw it themselves

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        self._appender.append(self._held)
        self._held = ""
        yield
        self._event("finish", int(getattr(session, "exitstatus", -1)))
        self.finished = True
        if self._module == __name__:
            _come_back()

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self) -> None:
        self._event("internal-error")

    def again(self) -> None:
        """Note that this process started another session after this one: the journal knows nothing of it."""
        self._event("again")

    # -- the collection

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        self._before = list(items)
        yield
        _keep_marked(self.config, items, self._marker)

    def cut_from(self, items: list[pytest.Item]) -> None:
        """Take `items` for the full collection: what follows is the cut of a split (see `companion.py`)."""
        self._before = list(items)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        items = session.items
        everything = _everything(self._before, items, self._marker)
        self._table([item.nodeid for item in everything])
        if everything == items:
            self._event("selected", None)
        else:
            place = {id(item): index for index, item in enumerate(everything)}
            chosen = [place[id(item)] for item in items]
            for start in range(0, len(chosen), 10_000):
                self._event("selected", chosen[start : start + 10_000])
        self._event("collected", len(items))
        self._event("full", len(everything))
        self._before = None

    def _table(self, ids: list[str]) -> None:
        chunk: list[str] = []
        size = 0
        first = len(self._refs)
        for index, nodeid in enumerate(ids, first):
            quoted = _quoted(nodeid)
            self._refs[nodeid] = str(index)
            chunk.append(quoted)
            size += len(quoted)
            if size > CHUNK_CHARACTERS:
                self._appender.append('["ids",[' + ",".join(chunk) + "]]\n")
                chunk, size = [], 0
        if chunk:
            self._appender.append('["ids",[' + ",".join(chunk) + "]]\n")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self._event("collect", str(report.outcome), report.nodeid)

    # -- xdist: the workers collect, the controller alone writes

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Any) -> None:
        self._event("workers", len(specs))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_WORKER_KEY] = JOURNAL_VERSION
        node.workerinput[_MARKER_KEY] = self._marker

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Any) -> None:
        found = [str(nodeid) for nodeid in ids]
        if self._worker_ids is None:
            self._worker_ids = found
            self._table(found)
            self._event("selected", None)
            self._event("collected", len(found))
        self._event("worker", str(node.gateway.id), found == self._worker_ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        name = str(node.gateway.id)
        output = getattr(node, "workeroutput", None) or {}
        if error:
            self._event("down", name)
        elif not output.get(_OBSERVED_KEY):
            self._event("unobserved", name)
        text = output.get(_WORKER_KEY)
        if not isinstance(text, str) or self._worker_ids is None:
            return
        if self._worker_rest is None:
            self._worker_rest = text
            rest = [str(nodeid) for nodeid in json.loads(text)]
            self._table(rest)
            self._event("full", len(self._worker_ids) + len(rest))
        elif text != self._worker_rest:
            self._event("worker", name, False)

    # -- the tests

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._appender.append(f'{self._held}["s",{self._refs.get(nodeid) or self._quote(nodeid)}]\n')
        self._held = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write one report. Called for each phase of each test, so it counts every step."""
        when, outcome, nodeid = report.when, report.outcome, report.nodeid
        duration: Any = report.duration
        # A test may freeze or turn back the clock; what pytest measured then is no duration.
        elapsed = int(duration * 1e9) if isinstance(duration, (int, float)) and 0 <= duration < 1e8 else 0
        flags = "x" if hasattr(report, "wasxfail") else ""
        if type(report) is not _Report and type(report).__name__.lower() == "subtestreport":
            flags += "s"
        words = _WORDS.get((when, outcome)) or f"{self._quote(str(when))},{self._quote(str(outcome))}"
        line = f'["r",{self._refs.get(nodeid) or self._quote(nodeid)},{words},{elapsed},"{flags}"]\n'
        if hasattr(report, "ledger_checks"):
            self._checks(report)
        # What passed travels with the next line: it ends nothing before the teardown, and that is followed by the
        # next start or the session's end. Beside other workers the next line may be long in coming.
        if outcome == "passed" and (self._is_alone or when == "setup"):
            self._held += line
        else:
            self._appender.append(self._held + line)
            self._held = ""

    def _checks(self, report: Any) -> None:
        for name, passed, detail in report.ledger_checks:
            test = self._refs.get(report.nodeid) or self._quote(report.nodeid)
            words = (test, self._quote(name), "true" if passed else "false", self._quote(detail))
            self._held += '["c",' + ",".join(words) + "]\n"


_quoted = json.encoder.encode_basestring_ascii
"""What `json.dumps` does with a string, without its preparations."""
_Report = pytest.TestReport
_WORDS = {
    (when, outcome): f'"{when}","{outcome}"'
    for when in ("setup", "call", "teardown")
    for outcome in ("passed", "failed", "skipped", "rerun")
}


class _Worker:
    """In an xdist worker: tells the controller which tests were deselected. Writes nothing itself."""

    def __init__(self, config: pytest.Config) -> None:
        self._config: Any = config
        self._marker: str | None = getattr(config, "workerinput", {}).get(_MARKER_KEY)
        self._is_observed = _is_observed()
        self._before: list[pytest.Item] | None = None
        self._rest = "[]"

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        self._before = list(items)
        yield
        _keep_marked(self._config, items, self._marker)

    def cut_from(self, items: list[pytest.Item]) -> None:
        """Take `items` for the full collection: what follows is the cut of a split (see `companion.py`)."""
        self._before = list(items)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        kept = {id(item) for item in session.items}
        everything = _everything(self._before, session.items, self._marker)
        self._rest = json.dumps([item.nodeid for item in everything if id(item) not in kept])
        self._before = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._config.workeroutput[_WORKER_KEY] = self._rest
        self._config.workeroutput[_OBSERVED_KEY] = self._is_observed


class _Again:
    """Watches a run that this process starts after the recorded one."""

    def __init__(self, recorder: _Recorder) -> None:
        self._recorder = recorder

    def pytest_sessionstart(self) -> None:
        self._recorder.again()


def _everything(
    before: list[pytest.Item] | None, items: list[pytest.Item], marker: str | None
) -> list[pytest.Item]:
    """Return what was collected before any plugin chose among it, and what plugins added.

    With a marker the suite is the tests that have it by then: a conftest may give it to them.
    """
    if before is None:
        return list(items)
    known = {id(item) for item in before}
    found = before + [item for item in items if id(item) not in known]
    return [item for item in found if item.get_closest_marker(marker)] if marker else found


def _keep_marked(config: Any, items: list[pytest.Item], marker: str | None) -> None:
    """Deselect what lacks the marker that the suite is selected by (`record.marker`), once all have chosen."""
    if not marker:
        return
    others = [item for item in items if not item.get_closest_marker(marker)]
    if others:
        items[:] = [item for item in items if item.get_closest_marker(marker)]
        config.hook.pytest_deselected(items=others)


def _session_facts(config: pytest.Config) -> dict[str, Any]:
    option = config.option
    args = [str(arg) for arg in config.invocation_params.args]
    fits = sum(map(len, args)) <= MAX_ARGUMENT_CHARACTERS
    return {
        "args": args if fits else None,
        "coverage": _version("coverage"),
        "dist": str(getattr(option, "dist", "no")),
        "inifile": os.path.realpath(config.inipath) if config.inipath else None,
        "narrowed": [name for name in _NARROWING if getattr(option, name, None)],
        "observed": _is_observed(),
        "pytest": pytest.__version__,
        "pytest-cov": _version("pytest_cov", "pytest-cov"),
        "python": ".".join(map(str, sys.version_info[:3])),
        "rootdir": os.path.realpath(config.rootpath),
        "roots": _roots(config),
        "xdist": _version("xdist", "pytest-xdist"),
    }


def _roots(config: pytest.Config) -> list[str] | None:
    """Return what tests are collected from: the arguments, else `testpaths`, else the folder that it began in."""
    roots = [os.path.realpath(str(arg).partition("::")[0]) for arg in config.args]
    return roots if sum(map(len, roots)) <= MAX_ARGUMENT_CHARACTERS else None


def _version(module: str, distribution: str = "") -> str | None:
    loaded = getattr(sys.modules.get(module), "__version__", None)
    if isinstance(loaded, str):
        return loaded
    from importlib import metadata

    try:
        return metadata.version(distribution or module)
    except metadata.PackageNotFoundError:
        return None


# -- markers


_MARKERS = (
    "ledger: a test of the suite that git-ledger records (where record.marker says so)",
    "gpu_required: skip this test where no GPU is visible",
)


def _declare_markers(config: pytest.Config) -> None:
    for line in _MARKERS:
        if line not in config.getini("markers"):  # the other copy of this file may have been here
            config.addinivalue_line("markers", line)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu_required` where there is no GPU; the record shows them as skipped."""
    marked = _that_need_a_gpu(items)
    if marked and not gpu_is_visible(os.environ, sys.modules.get("torch"), os.path.exists):
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="gpu_required: no GPU is visible here"))


def _that_need_a_gpu(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the items that are marked, or stand below something that is.

    Every run pays for this, also those that nobody records: so what stands above is looked at once for its tests.
    """

    def is_marked(node: Any) -> bool:
        return any(mark.name == "gpu_required" for mark in node.own_markers)

    found, above, all_below = [], None, False
    for item in items:
        if item.parent is not above:
            above = item.parent
            all_below = above is not None and any(map(is_marked, above.listchain()))
        if all_below or (item.own_markers and is_marked(item)):
            found.append(item)
    return found


_HIDING = ("", "-1", "none", "void", "NoDevFiles")
_NODES = {
    "CUDA_VISIBLE_DEVICES": ("/dev/nvidiactl", "/dev/dxg", "/dev/nvmap"),
    "HIP_VISIBLE_DEVICES": ("/dev/kfd",),
}


def gpu_is_visible(environ: Any, torch: Any, exists: Any) -> bool:
    """Tell whether a GPU can be seen, without starting a driver: where one is broken, its tests must fail.

    By torch, where the suite has loaded it (never imported for this), or by the kernel's device nodes (NVIDIA's,
    WSL's, Tegra's, AMD's), unless the vendor's variable hides them all.
    """
    if torch is not None:
        found = [getattr(torch, "cuda", None), getattr(torch, "xpu", None)]
        found.append(getattr(getattr(torch, "backends", None), "mps", None))
        if any(device is not None and device.is_available() for device in found):
            return True
    shown = [
        node
        for variable, nodes in _NODES.items()
        if environ.get(variable, "0").strip() not in _HIDING
        for node in nodes
    ]
    if environ.get("ROCR_VISIBLE_DEVICES", "0").strip() in _HIDING:
        shown = [node for node in shown if node != "/dev/kfd"]
    return any(exists(node) for node in shown)


# -- comparison checks


class _Checks:
    """Lets checks travel with the reports of their tests: out of xdist workers, out of forks."""

    def __init__(self) -> None:
        self.pending: list[tuple[str, bool, str]] = []
        self._item: Any = None
        self._count = 0

    def add(self, item: Any, name: str, passed: bool, detail: str) -> None:
        """Keep a check for the next report of `item`; raises `ValueError` for more of them than a record takes."""
        if item is not self._item:
            self._item, self._count, self.pending = item, 0, []
        self._count += 1
        if self._count > MAX_CHECKS:
            raise ValueError(f"more than {MAX_CHECKS} comparison checks in one test")
        self.pending.append((name, passed, detail))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any) -> Generator[None, Any, None]:
        outcome = yield
        if self.pending and item is self._item:
            outcome.get_result().ledger_checks = self.pending
            self.pending = []


class _LedgerCheck:
    """What the fixture `ledger_check` gives to one test."""

    def __init__(self, request: Any) -> None:
        self._item = request.node
        manager = request.config.pluginmanager
        checks = manager.getplugin("gitledger-checks")
        if checks is None:
            checks = _Checks()
            manager.register(checks, "gitledger-checks")
        self._checks = checks

    def __call__(
        self,
        name: str,
        reference: Any,
        candidate: Any,
        args: Any = (),
        kwargs: Any = None,
        compare: Any = None,
        metadata: Any = None,
    ) -> None:
        """Compare, keep the outcome for the record, and fail the test where the two differ."""
        __tracebackhide__ = True
        compares = _sibling("compare")
        if type(name) is not str or not name.strip():
            raise TypeError("ledger_check needs a name for the check")
        told = compares.cleaned(name, compares.MAX_NAME_CHARACTERS)
        difference, cause = compares.try_check(reference, candidate, args, kwargs, compare)
        details = [difference] if difference else []
        if metadata:
            details.append(", ".join(f"{key}={value}" for key, value in dict(metadata).items()))
        detail = compares.cleaned("\n".join(details), compares.MAX_DETAIL_CHARACTERS)
        self._checks.add(self._item, told, not difference, detail)
        if difference:
            raise AssertionError(f"ledger_check {told!r} failed: {difference}") from cause


@pytest.fixture
def ledger_check(request: Any) -> _LedgerCheck:
    """Compare a candidate with its reference, and keep the outcome in the test's record.

    `ledger_check(name, reference, candidate, args=(), kwargs=None, compare=None, metadata=None)`; callables are
    called with `args` and `kwargs`, anything else is a value. A check that doesn't hold fails the test, and stays
    failed in the record whatever the test makes of that.
    """
    return _LedgerCheck(request)


def _sibling(name: str) -> Any:
    """Return the module `name` beside this one, whether this is the installed copy or the injected one."""
    from importlib import import_module

    place, _, own = __name__.rpartition(".")
    return import_module(f"{place}.{name}" if place else own.replace("journal", name))


# -- `pytest --ledger`


def _hand_over(config: pytest.Config) -> None:
    """Become `git-ledger record -- <this command without its --ledger options>`, or return where that is none.

    None it is under a journal, below `record`, in an xdist worker, and for `--help` and `--version`.
    """
    known = config.known_args_namespace
    if _claim is not None or RECORDING_VARIABLE in os.environ or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if known.help or known.version:
        return
    if not known.ledger_shard:
        raise pytest.UsageError("--ledger needs --ledger-shard NAME: the shard that this run is")
    tool = _find_tool()
    variant = ["--variant", known.ledger_variant] if known.ledger_variant else []
    command = _program() + _without_ledger(config.invocation_params.args)
    _become(tool, ["git-ledger", "record", "--shard", known.ledger_shard, *variant, "--", *command])


def _become(tool: str, argv: list[str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(tool, argv)  # noqa: S606 - becoming another program is the point


def _find_tool() -> str:
    """Return the path of `git-ledger`: beside this interpreter, else on the path."""
    import shutil

    beside = os.path.join(os.path.dirname(sys.executable), "git-ledger")  # noqa: PTH118, PTH120
    tool = shutil.which(beside) or shutil.which("git-ledger")
    if tool is None:
        raise pytest.UsageError("--ledger needs the command git-ledger, which is not installed here")
    return tool


def _program() -> list[str]:
    """Return how pytest was started, in the words that a configuration would use where they mean the same."""
    import shutil

    def spelled(path: str, word: str) -> str:
        found = shutil.which(word)
        return word if found and os.path.realpath(found) == os.path.realpath(path) else path

    name = os.path.basename(sys.argv[0])  # noqa: PTH119
    if name in ("pytest", "py.test"):
        return [spelled(sys.argv[0], name)]
    return [spelled(sys.executable, "python"), "-m", "pytest"]


def _without_ledger(args: Any) -> list[str]:
    kept: list[str] = []
    rest = [str(arg) for arg in args]
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            return [*kept, arg, *rest]
        if arg in ("--ledger-shard", "--ledger-variant"):
            del rest[:1]
        elif arg != "--ledger" and not arg.startswith(("--ledger-shard=", "--ledger-variant=")):
            kept.append(arg)
    return kept
