"""`git ledger gate`."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, run_by, signer_of, user_name, with_json, with_key, with_offline, with_policy
from gitledger.errors import EXIT_NO, EXIT_YES, TrustError, UsageError
from gitledger.wording import counted

if TYPE_CHECKING:
    from gitledger.trust.signer import Signer
    from gitledger.workflows.gate import Gated
    from gitledger.workflows.session import Session


@click.command("gate", short_help="The one command for CI: sync, merge, verify, and say so")
@click.argument("commit", required=False)
@with_policy
@click.option("--remote", metavar="NAME", default=None, help="Sync with this remote (the branch's, the only one).")
@click.option(
    "--from", "sources", multiple=True, metavar="URL|BUNDLE", help="Take records that verify from there."
)
@click.option("--needs", metavar="JSON", default=None, help="GitHub's toJSON(needs): every job must be a success.")
@click.option("--accept-shards", is_flag=True, help="Accept shards removed or redefined against REF.")
@click.option("--no-merge", is_flag=True, help="Sign no merged receipt, even with a key.")
@click.option("--check-workflow", "workflow", metavar="FILE", help="Hold a workflow against the rules of a gate.")
@with_key
@with_offline
@with_json
@click.pass_obj
def command(
    output: Output,
    commit: str | None,
    policy_from: str | None,
    remote: str | None,
    sources: tuple[str, ...],
    needs: str | None,
    accept_shards: bool,
    no_merge: bool,
    workflow: str | None,
    key: str | None,
    offline: bool,
    as_json: bool,
) -> int:
    r"""Fetch the ledger, merge what stands (with a key), judge it by the target branch's policy, and publish.

    On a runner of GitHub or GitLab it judges the head of the pull request, and not the merge that was made up for
    the run. Elsewhere it judges HEAD by the remote's default branch. It writes a job summary and annotations.

    Exits with 0 for passed, 1 for failed, 2 where it can't be judged or the key not be used, 3 where the ledger
    could not be fetched, or the merged receipt not be published.

    \b
    git ledger gate
    git ledger gate --needs "$NEEDS"               in a job that waits for others (GitHub)
    git ledger gate --from ledger.bundle           with what a fork's runners recorded
    git ledger gate --check-workflow .github/workflows/test.yml
    """
    if workflow is not None:
        if commit or policy_from or remote or sources or needs is not None or accept_shards or key:
            raise UsageError(
                "bad-options", "--check-workflow judges a file, not a commit", "give it no other option"
            )
        return _check(output, workflow, as_json=as_json)
    from gitledger.workflows.gate import GateRequest, gate

    session = enter(output, offline=offline)
    request = GateRequest(
        commit=commit,
        policy_from=policy_from,
        remote=remote,
        sources=tuple(_source(output, source) for source in sources),
        needs=needs,
        accept_shards=accept_shards,
        user=user_name(session),
    )
    done = gate(session, request, lambda: None if no_merge else _signer(output, session, key))
    _say(output, done, as_json=as_json)
    return done.exit_status


def _source(output: Output, source: str) -> str:
    """Return where records are to be taken from; a file's name is one from where the command works (`-C`)."""
    local = output.directory / source
    return str(local) if source and local.exists() else source


def _signer(output: Output, session: Session, key: str | None) -> Signer | None:
    """Return who merges, None where no key is named anywhere."""
    try:
        return signer_of(output, session, key)
    except TrustError as error:
        if error.code != "no-key":
            raise
        return None


def _say(output: Output, done: Gated, *, as_json: bool) -> None:
    """Write the verdict where people look for it: log, annotations, summary of the job."""
    from gitledger.report.coverage import coverage_lines
    from gitledger.report.shards import verdict_text
    from gitledger.report.summary import summary_text
    from gitledger.report.summary_annotations import annotation_lines, silenced
    from gitledger.report.text import escaped

    commit = done.found.case.situation.commit
    policy = f"{done.policy.source} ({done.policy.commit[:12]})"
    output.message(f"git ledger: judging {commit[:12]}, {escaped(done.what)}, by the policy of {escaped(policy)}")
    for text in _events(done):
        output.message(f"git ledger: {text}")
    document = done.encode()
    on_github = done.runner.forge == "github"
    if as_json:
        output.document(document)
    else:
        ignored = dict.fromkeys(done.found.ignored)
        text = verdict_text(
            passed=done.verdict.passed,
            commit=commit,
            policy=escaped(policy),
            union=done.found.union,
            findings=done.verdict.findings,
            ignored=[((item.record or "a line")[:12], item.reason) for item in ignored],
            color=output.color,
            coverage=coverage_lines(done.found.union.coverage, color=output.color),
            width=output.width,
            run=run_by(done.policy.source),
        )
        output.result(silenced(text, secrets.token_hex(16)) if on_github else text)
        if on_github:
            output.result("\n".join(annotation_lines(done.verdict.findings)))
    coverage = coverage_lines(done.found.union.coverage, color=False)
    run = run_by(done.policy.source)
    _summarise(output, summary_text(document, done.verdict.findings, coverage=coverage, run=run))


def _events(done: Gated) -> list[str]:
    """Return in words what was done around the verdict."""
    from gitledger.report.text import escaped

    said = []
    for item in done.received:
        counts = f"{len(item.taken)} taken, {item.known} known, {len(item.refused)} refused"
        said.append(f"records of {escaped(item.source)}: {counts}")
        said += [
            f"refused {escaped((one.record or 'a line')[:12])} on {one.commit[:12]}: {escaped(one.reason)}"
            for one in item.refused[:20]
        ]
    if done.merged is not None:
        record = f", merged receipt {done.merged.record[:12]}" if done.merged.record else ", nothing was written"
        said.append(f"merge: {done.merged.outcome}{record}")
    if done.merge_error is not None:
        said.append(f"not merged: {done.merge_error}")
    if done.published is not None and done.published.published is not None:
        said += map(escaped, done.published.lines())
    if done.publish_error is not None:
        said.append(f"not published: {done.publish_error}")
    if done.remote is None:
        said.append("there is no remote: nothing was fetched")
    return said


def _summarise(output: Output, text: str) -> None:
    """Append to the summary of the job; that it can't be written changes no verdict."""
    place = output.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    try:
        with Path(place).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        output.message(f"git ledger: the job summary can't be written: {error.strerror}")


def _check(output: Output, workflow: str, *, as_json: bool) -> int:
    """Hold a workflow against the rules of a gate."""
    from gitledger.report.summary_annotations import annotation_lines
    from gitledger.report.text import finding_lines
    from gitledger.workflows.check_workflow import check_workflow

    path = output.directory / workflow
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError("workflow-unreadable", f"{workflow}: {error.strerror}", "name a workflow file") from error
    checked = check_workflow(content, name=workflow, shards=_declared(output))
    if as_json:
        document: dict[str, Any] = {
            "file": workflow,
            "findings": [finding.encode() for finding in checked.findings],
            "kind": checked.kind,
            "verdict": "passed" if checked.passed else "failed",
        }
        output.document(document)
    else:
        output.result("\n".join(finding_lines(checked.findings, color=output.color)))
        word = "holds" if checked.passed else f"broken: {counted(len(checked.findings), 'rule')}"
        output.result(f"{workflow}: a gate of {counted(checked.jobs, f'{checked.kind} job')}: {word}")
        if output.environ.get("GITHUB_ACTIONS") == "true":
            output.result("\n".join(annotation_lines(checked.findings, file=workflow)))
    return EXIT_YES if checked.passed else EXIT_NO


def _declared(output: Output) -> frozenset[str] | None:
    """Return the shards that the work tree's commit declares, None outside of a repository that declares any."""
    from gitledger.errors import ConfigError
    from gitledger.workflows.target import head_of
    from gitledger.workflows.trusted import read_config

    try:
        session = enter(output)
        config = read_config(session.repo, head_of(session))
    except (UsageError, ConfigError):
        return None
    return frozenset(map(str, config.shard_keys()))
