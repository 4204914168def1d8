"""A verdict as JUnit XML, for dashboards: pytest's dialect, a suite a shard.

Whatever `verify` rejects is red here too: a shard that does not stand and shows no bad test has an error of its
own, and so has every other finding that blocks. Elements and attributes are those of the schema that pytest holds
itself to (jenkinsci/xunit-plugin, junit-10.xsd); earlier attempts stand as Surefire writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from gitledger.records.bodies import TestResult
from gitledger.records.decode import format_time
from gitledger.records.outcomes import TestOutcome
from gitledger.report.states import STANDING, blocking_codes, cell_state, subjects_of
from gitledger.report.text import escaped
from gitledger.verdict.finding import Finding
from gitledger.verdict.select import Choice
from gitledger.wording import suggested

__all__ = ["junit_xml"]

OWN = "git ledger"
"""The class of test cases that are ours, and no test's."""
_LONG = 4_000


def junit_xml(commit: str, choices: Sequence[Choice], findings: Sequence[Finding]) -> bytes:
    """Return the document for a verdict: what stands and what does not, shard by shard, and what else blocks."""
    against = blocking_codes(choices, findings)
    root = ElementTree.Element("testsuites", {"name": OWN})
    suites = [_shard(commit, choice, against.get(choice.shard.key, ())) for choice in choices]
    about_shards = {name for choice in choices for name in subjects_of(choice)}
    others = [finding for finding in findings if finding.blocks and finding.subject not in about_shards]
    if others:
        suites.append(_suite("git ledger verify", [_error_case(one.code, _told(one)) for one in others], 0.0))
    totals = {name: sum(int(suite.get(name, "0")) for suite in suites) for name in _COUNTS}
    root.attrib.update({name: str(number) for name, number in totals.items()})
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in suites):.3f}")
    root.extend(suites)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


_COUNTS = {"tests": None, "failures": "failure", "errors": "error", "skipped": "skipped"}
"""The counts of a suite, each with the element that it counts; `tests` counts the cases."""


def _shard(commit: str, choice: Choice, against: Sequence[str]) -> ElementTree.Element:
    state = cell_state(choice, against)
    cases = [_case(result, choice.shard.key.variant) for result in choice.results]
    is_bad = any(result.outcome.is_bad for result in choice.results)
    if state not in STANDING and not is_bad:
        why = "; ".join(
            filter(None, [choice.reason, choice.detail, ", ".join(choice.changed_paths[:5]), *against])
        )
        cases.append(_error_case(str(choice.shard.key), f"{state}: {why}"))
    about = choice.result or choice.about
    held = about.held if about else None
    seconds = (held.ended_at - held.started_at).total_seconds() if held and choice.results else 0.0
    suite = _suite(str(choice.shard.key), cases, seconds)
    if held is not None:
        suite.set("timestamp", format_time(held.started_at)[:19])
    properties = {
        "commit": commit,
        "shard": choice.shard.key.name,
        "variant": choice.shard.key.variant,
        "state": state,
        "reason": choice.reason,
        "record": held.id if held else None,
        "carried": "true" if choice.verdict == "carryable" else "false",
        "recorded-on": about.commit if about else None,
        "signer": about.acceptance.principal if about else None,
    }
    node = ElementTree.Element("properties")
    for name, value in properties.items():
        if value is not None:
            ElementTree.SubElement(node, "property", {"name": name, "value": escaped(value, _LONG)})
    suite.insert(0, node)
    return suite


def _suite(name: str, cases: Iterable[ElementTree.Element], seconds: float) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", {"name": name})
    suite.extend(cases)
    for count, element in _COUNTS.items():
        number = sum(element is None or case.find(element) is not None for case in suite)
        suite.set(count, str(number))
    suite.set("time", f"{seconds:.3f}")
    return suite


def _case(result: TestResult, variant: str | None) -> ElementTree.Element:
    classname, name = _names(result.node_id)
    if variant is not None:  # each variant runs the same tests
        classname = f"{variant}.{classname}" if classname else variant
    case = ElementTree.Element(
        "testcase", {"classname": classname, "name": name, "time": f"{result.duration_ns / 1e9:.6f}"}
    )
    where = f" in {result.phase}" if result.phase else ""
    match result.outcome:
        case TestOutcome.FAILED:
            _mark(case, "failure", f"failed{where}", "failed")
        case TestOutcome.ERROR:
            _mark(case, "error", f"error{where}", "error")
        case TestOutcome.SKIPPED:
            _mark(case, "skipped", "skipped", "pytest.skip")
        case TestOutcome.XFAILED:
            _mark(case, "skipped", "expected failure", "pytest.xfail")
    earlier = "rerunFailure" if result.outcome.is_bad else "flakyFailure"
    for attempt in range(1, result.attempts):
        _mark(case, earlier, f"attempt {attempt}", "attempt")
    return case


def _mark(case: ElementTree.Element, element: str, message: str, kind: str) -> None:
    ElementTree.SubElement(case, element, {"message": message, "type": kind})


def _names(node_id: str) -> tuple[str, str]:
    """Return class and name as pytest's own writer spells them; what has no file is a name alone."""
    path, *inner = escaped(node_id, _LONG).split("::", 1)
    if not inner:
        return "", path
    classes, _, name = inner[0].rpartition("::") if "[" not in inner[0] else _before_bracket(inner[0])
    parts = [path.removesuffix(".py").replace("/", "."), *filter(None, classes.split("::"))]
    return ".".join(parts), name


def _before_bracket(text: str) -> tuple[str, str, str]:
    """Split at the last `::` that stands before parameters, which may hold more of them."""
    head, bracket, parameters = text.partition("[")
    classes, sep, name = head.rpartition("::")
    return classes, sep, name + bracket + parameters


def _error_case(name: str, message: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", {"classname": OWN, "name": escaped(name, _LONG), "time": "0.000"})
    _mark(case, "error", escaped(message, _LONG), "git-ledger")
    return case


def _told(finding: Finding) -> str:
    remedy = suggested(finding.remedy)
    return f"{finding.subject}: {finding.found}; expected {finding.expected}{remedy}"
