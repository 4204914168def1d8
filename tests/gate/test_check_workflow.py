"""`gate --check-workflow`: our own templates hold, and each change that would let them be green by accident is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gitledger.errors import UsageError
from gitledger.workflows.check_workflow import check_workflow
from gitledger.workflows.check_workflow_document import MAX_FILE_BYTES
from gitledger.workflows.check_workflow_entries import holds

ROOT = Path(__file__).parents[2]
GITHUB = (ROOT / "hooks/github/git-ledger.yml").read_text("utf-8")
GITLAB = (ROOT / "hooks/gitlab/git-ledger.yml").read_text("utf-8")
ACTION = """\
on: [pull_request, push]
permissions: {}
jobs:
  plan:
    permissions: {contents: read}
    outputs: {matrix: "${{ steps.ledger.outputs.matrix }}", any: "${{ steps.ledger.outputs.any }}"}
    steps:
      - uses: actions/checkout@v5
        with: {ref: "${{ github.event.pull_request.head.sha }}", fetch-depth: 0}
      - id: ledger
        uses: owner/git-ledger/hooks/github@v1
        with: {mode: plan}
  shard:
    needs: plan
    if: needs.plan.outputs.any == 'true'
    permissions: {contents: write}
    strategy: {fail-fast: false, matrix: "${{ fromJSON(needs.plan.outputs.matrix) }}"}
    steps:
      - uses: actions/checkout@v5
        with: {ref: "${{ github.event.pull_request.head.sha }}", fetch-depth: 0}
      - uses: owner/git-ledger/hooks/github@v1
        with: {mode: shard, shards: "${{ matrix.shards }}", key: "${{ secrets.LEDGER_KEY }}"}
  gate:
    needs: [plan, shard]
    if: always()
    permissions: {contents: write}
    steps:
      - uses: actions/checkout@v5
        with: {ref: "${{ github.event.pull_request.head.sha }}", fetch-depth: 0}
      - uses: owner/git-ledger/hooks/github@v1
        with: {mode: gate, needs: "${{ toJSON(needs) }}", key: "${{ secrets.LEDGER_KEY }}"}
  deploy:
    needs: gate
    environment: production
    permissions: {deployments: write}
    steps: [{run: ./deploy}]
"""
STATIC = """\
on: push
permissions: {}
jobs:
  shard:
    permissions: {contents: write}
    strategy:
      fail-fast: false
      matrix:
        include:
          - {shard: api}
          - {shard: web, half: tests}
          - {shard: lint, half: checks}
    steps:
      - uses: actions/checkout@v5
        with: {fetch-depth: 0}
      - run: npm ci
      - if: matrix.half == 'checks'
        run: npm run build
      - if: matrix.half != 'checks' && (matrix.shard == 'web' || matrix.half == 'tests')
        run: npm run bundle
      - run: git ledger record --shard ${{ matrix.shard }}
      - if: always()
        run: git ledger sync
  gate:
    needs: shard
    if: ${{ always() }}
    permissions: {contents: read}
    steps:
      - uses: actions/checkout@v5
        with: {fetch-depth: 0}
      - run: |
          git ledger sync --fetch-only
          git ledger verify --policy-from origin/main
      - env: {RESULT: "${{ needs.shard.result }}"}
        run: test "$RESULT" = success
"""
SHARDS = frozenset({"api", "web", "lint"})


def codes(text: str, shards: frozenset[str] | None = None) -> list[str]:
    return [finding.code for finding in check_workflow(text.encode(), name="w.yml", shards=shards).findings]


def test_the_templates_hold():
    assert codes(GITHUB) == codes(GITLAB) == codes(ACTION) == []
    assert codes(STATIC, SHARDS) == []


RECORD = 'git ledger record --shard "$shard"'


def test_workflows_that_the_manual_shows_hold_too():
    shown = re.findall(r"^```yml\n(.*?)^```", (ROOT / "docs/how-to/gate.md").read_text("utf-8"), re.S | re.M)
    assert [codes(text, frozenset({"unit", "lint"})) for text in shown] == [[]]


def test_every_rule_stands_in_the_manual_with_its_code():
    rules = "".join(path.read_text("utf-8") for path in (ROOT / "gitledger/workflows").glob("check_workflow_*.py"))
    said = set(re.findall(r'blocking\(\s*"([a-z-]+)"', rules))
    page = (ROOT / "docs/how-to/gate.md").read_text("utf-8")
    assert said == {code for code in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", page) if code in said}
    assert len(said) == 26


JUDGE = 'git ledger gate --needs "$NEEDS" "${options[@]}"'
GATE_IF = "    needs: [plan, shard]\n    if: always()\n"
HEAD = "          ref: ${{ github.event.pull_request.head.sha || github.sha }}\n"
BASH = "- name: Judge\n        if: always()\n        shell: bash\n"
MATRIX = "${{ fromJSON(needs.plan.outputs.matrix) }}"
DEPLOY = "\n  deploy:\n    permissions: {}\n    needs: %s\n    if: %s\n    steps: [{run: ./deploy}]\n"
GITHUB_MUTATIONS = {
    # name: (what stood there, what stands there now, the code that names it)
    "always() is dropped": (GATE_IF, GATE_IF.replace("    if: always()\n", ""), "gate-may-skip"),
    "always() gets a condition": (
        GATE_IF,
        GATE_IF.replace("always()", "always() && github.actor != 'bot'"),
        "gate-may-skip",
    ),
    "always() becomes !cancelled()": (
        GATE_IF,
        GATE_IF.replace("always()", "${{ !cancelled() }}"),
        "gate-may-skip",
    ),
    "the step that judges gets a condition": (
        "- name: Judge\n        if: always()",
        "- name: Judge\n        if: success()",
        "gate-may-skip",
    ),
    "the gate forgets the shards": ("needs: [plan, shard]", "needs: [plan]", "gate-misses-job"),
    "the gate forgets the plan": ("needs: [plan, shard]", "needs: shard", "gate-misses-job"),
    "results are misspelt": ("toJSON(needs)", "toJSON(need)", "gate-ignores-results"),
    "results are not handed over": ('--needs "$NEEDS" ', "", "gate-ignores-results"),
    "anything but failure will do": (
        JUDGE,
        JUDGE + "\n          test \"$RESULT\" != 'failure'",
        "gate-accepts-skipped",
    ),
    "skipped will do": (
        JUDGE,
        JUDGE + '\n          [ "$RESULT" = success ] || [ "$RESULT" = skipped ]',
        "gate-accepts-skipped",
    ),
    "only a failure is looked for": (
        "NEEDS: ${{ toJSON(needs) }}",
        "NEEDS: ${{ toJSON(needs) }}\n          BAD: ${{ contains(needs.*.result, 'failure') }}",
        "gate-accepts-skipped",
    ),
    "the gate may fail": (GATE_IF, GATE_IF + "    continue-on-error: true\n", "failure-tolerated"),
    "a shard may fail": (
        "      - name: Run and record\n",
        "      - name: Run and record\n        continue-on-error: ${{ true }}\n",
        "failure-tolerated",
    ),
    "the status of the gate is swallowed": (JUDGE, JUDGE + " || true", "failure-tolerated"),
    "the status of the gate is not asked": (JUDGE, "set +e\n          " + JUDGE, "failure-tolerated"),
    "the gate is a condition": (JUDGE, "if " + JUDGE + "; then echo yes; fi", "failure-tolerated"),
    "the gate is a substitution": (JUDGE, "echo $(" + JUDGE + ")", "failure-tolerated"),
    "the gate runs in the background": (JUDGE, JUDGE + " &", "failure-tolerated"),
    "the status of the shards is kept and forgotten": ('          exit "$status"\n', "", "failure-tolerated"),
    "the status of a shard goes into a pipe": (
        '"$shard" "${options[@]}" ||',
        '"$shard" "${options[@]}" | tee log ||',
        None,  # bash has pipefail here: this one is right
    ),
    "its shell never fails": (BASH, BASH.replace("bash", "bash {0} || true"), "failure-tolerated"),
    "its shell goes on after a failure": (BASH, BASH.replace("bash", "bash --noprofile {0}"), "failure-tolerated"),
    "its shell is another language": (BASH, BASH.replace("bash", "python"), "failure-tolerated"),
    "its shell stops at failures, at length": (BASH, BASH.replace("bash", "bash -euo pipefail {0}"), None),
    "the shell of every step never fails": (
        "        shell: bash\n",
        "",
        None,  # GitHub's own default is bash -e
    ),
    "the workflow's default shell never fails": (
        "permissions: {}\n",
        "permissions: {}\ndefaults: {run: {shell: 'true {0}'}}\n",
        None,  # each step names its own
    ),
    "the results are made up": (
        "NEEDS: ${{ toJSON(needs) }}",
        'NEEDS: \'{"a": {"result": "success"}}\'\n          REAL: ${{ toJSON(needs) }}',
        "gate-ignores-results",
    ),
    "the results are replaced": (JUDGE, "NEEDS='{}'\n          " + JUDGE, "gate-ignores-results"),
    "the results are a literal": (JUDGE, JUDGE.replace('"$NEEDS"', "'{}'"), "gate-ignores-results"),
    "git is a function": (JUDGE, "git() { true; }\n          " + JUDGE, "failure-tolerated"),
    "git is an alias": (JUDGE, "alias git=true\n          " + JUDGE, "failure-tolerated"),
    "git is found elsewhere": (JUDGE, "PATH=/tmp/x:$PATH\n          " + JUDGE, "runner-overridden"),
    "git is found elsewhere by an earlier step": (
        'run: pip install "$GITLEDGER_VERSION"\n      - uses: actions/download-artifact',
        'run: echo /tmp/x >> "$GITHUB_PATH"\n      - uses: actions/download-artifact',
        "runner-overridden",
    ),
    "another branch is said to be the target": (
        JUDGE,
        "export GITHUB_BASE_REF=topic\n          " + JUDGE,
        "runner-overridden",
    ),
    "another branch is said to be the target, in passing": (
        JUDGE,
        "GITHUB_BASE_REF=topic " + JUDGE,
        "runner-overridden",
    ),
    "the runner is no runner": (JUDGE, "unset GITHUB_ACTIONS\n          " + JUDGE, "runner-overridden"),
    "forges are not asked": (
        "NEEDS: ${{ toJSON(needs) }}",
        "NEEDS: ${{ toJSON(needs) }}\n          GITLEDGER_OFFLINE: 1",
        "runner-overridden",
    ),
    "the script ends before it judges": (JUDGE, "exit 0\n          " + JUDGE, "failure-tolerated"),
    "the script ends in a failure before it judges": (JUDGE, "[ -d x ] || exit 1\n          " + JUDGE, None),
    "the script ends well whatever happens": (
        JUDGE,
        "trap 'exit 0' EXIT\n          " + JUDGE,
        "failure-tolerated",
    ),
    "the script is another's": (JUDGE, ". ./ci.sh\n          " + JUDGE, "failure-tolerated"),
    "a virtual environment is entered": (JUDGE, ". .venv/bin/activate\n          " + JUDGE, None),
    "something else will do": (JUDGE, "true || " + JUDGE, "failure-tolerated"),
    "something else is asked first": (JUDGE, "[ -n x ] && " + JUDGE, "failure-tolerated"),
    "the gate is judged in some cases": (
        JUDGE,
        "if [ x = y ]; then\n            " + JUDGE + "\n          fi",
        "failure-tolerated",
    ),
    "the gate is judged in a loop": (JUDGE, "while ! " + JUDGE + "; do break; done", "failure-tolerated"),
    "the gate is a word": (JUDGE, "echo " + JUDGE, "failure-tolerated"),
    "the gate is text": (JUDGE, "cat <<'X'\n          " + JUDGE + "\n          X", "failure-tolerated"),
    "the gate is a remark": (JUDGE, "true # " + JUDGE, "failure-tolerated"),
    "its failure leads on, on the next line": (JUDGE, JUDGE + " ||\n            true", "failure-tolerated"),
    "its failure is an exit without a status": (JUDGE, JUDGE + " || exit $((0))", "failure-tolerated"),
    "its failure is a test": (JUDGE, JUDGE + " || [ 1 ]", "failure-tolerated"),
    "its pipe hides it": (JUDGE, "set +o pipefail\n          " + JUDGE + " | tee log", "failure-tolerated"),
    "its pipe fails with it": (JUDGE, JUDGE + " 2>&1 | tee gate.log", None),
    "its output is kept": (JUDGE, JUDGE + " > gate.log", None),
    "it is run by uv": (JUDGE, "uv run " + JUDGE, None),
    "it prints its help": (JUDGE, JUDGE + " --help", "gate-judges-another"),
    "it judges the target itself": (
        JUDGE,
        JUDGE.replace("gate", "gate origin/main", 1),
        "gate-judges-another",
    ),
    "it judges the head by name": (
        JUDGE,
        JUDGE.replace("gate", "gate ${{ github.event.pull_request.head.sha || github.sha }}", 1),
        None,
    ),
    "it judges another repository": (
        JUDGE,
        JUDGE.replace("ledger gate", "ledger -C /tmp/x gate"),
        "gate-judges-another",
    ),
    "it works in another folder": (
        "- name: Judge\n",
        "- name: Judge\n        working-directory: /tmp/x\n",
        "gate-judges-another",
    ),
    "another repository is checked out": (
        "          fetch-depth: 0\n",
        "          fetch-depth: 0\n          repository: someone/else\n",
        "gate-judges-another",
    ),
    "policy is the change's, by another name": (
        JUDGE,
        JUDGE.replace("gate", "gate --policy-from FETCH_HEAD", 1),
        "policy-self",
    ),
    "policy is the change's branch": (
        JUDGE,
        JUDGE.replace("gate", "gate --policy-from origin/${{ github.head_ref }}", 1),
        "policy-self",
    ),
    "policy is the target's, spelled out": (
        JUDGE,
        JUDGE.replace("gate", "gate --policy-from origin/$GITHUB_BASE_REF", 1),
        None,
    ),
    "policy is another remote's": (JUDGE, JUDGE.replace("gate", "gate --remote mine", 1), "policy-self"),
    "another time is judged": (
        JUDGE,
        JUDGE + "\n          git ledger verify --policy-from origin/main --at 2020-01-01T00:00:00Z",
        "gate-loosened",
    ),
    "options that loosen are handed over in a list": (
        '          options=()\n          if [ -n "$FORK" ]',
        '          options=(--accept-shards)\n          if [ -n "$FORK" ]',
        "gate-loosened",
    ),
    "policy is handed over in a list": (
        '          options=()\n          if [ -n "$FORK" ]',
        '          options=(--policy-from HEAD)\n          if [ -n "$FORK" ]',
        "policy-self",
    ),
    "what is put into the line may end it": (
        JUDGE,
        JUDGE + " --policy-from ${{ inputs.policy }}",
        "failure-tolerated",
    ),
    "the script ends by another spelling": (JUDGE, "command exit 0\n          " + JUDGE, "failure-tolerated"),
    "another job is called gate": (
        GITHUB[-1:],
        "\n  fake:\n    name: gate\n    permissions: {}\n    steps: [{run: 'true'}]\n",
        "gate-name-taken",
    ),
    "a merge key tolerates": (GATE_IF, GATE_IF + "    <<: {continue-on-error: true}\n", "failure-tolerated"),
    "an anchor elsewhere tolerates": (
        "name: git-ledger\n",
        "name: git-ledger\nx: &soft\n  continue-on-error: true\n",
        None,  # by itself it says nothing
    ),
    "only labels start it": ("  pull_request:\n", "  pull_request:\n    types: [labeled]\n", "trigger-filtered"),
    "some branches are left out": (
        "  pull_request:\n",
        "  pull_request:\n    branches-ignore: ['**']\n",
        "trigger-filtered",
    ),
    "the count is a literal": (MATRIX, "{part: [1, 2, 3]}", "literal-count"),
    "parts are named": (RECORD, "git ledger record --shard unit-2-of-3", "literal-count"),
    "the number of fragments is a literal": (
        JUDGE,
        "test $(ls | wc -l) -eq 3\n          " + JUDGE,
        "literal-count",
    ),
    "pytest-split gets a literal": (
        RECORD,
        "pytest --splits 3; " + RECORD,
        "literal-count",
    ),
    "an empty matrix fails the run": ("    if: needs.plan.outputs.any == 'true'\n", "", "matrix-may-be-empty"),
    "the first red shard cancels the others": ("      fail-fast: false\n", "", "shards-cancelled"),
    "the history is cut": ("fetch-depth: 0", "fetch-depth: 1", "history-shallow"),
    "the depth is the default": ("          fetch-depth: 0\n", "", "history-shallow"),
    "the merge is checked out": (HEAD, "", "head-not-checked-out"),
    "another commit is checked out": (HEAD, "          ref: ${{ github.ref }}\n", "head-not-checked-out"),
    "forks run with secrets": ("on:\n  pull_request:", "on:\n  pull_request_target:", "untrusted-checkout"),
    "the token may do anything": ("permissions: {}", "permissions: write-all", "permissions-too-wide"),
    "every job may write": ("permissions: {}", "permissions: {contents: write}", "permissions-too-wide"),
    "the plan may write": ("      contents: read\n", "      contents: write\n", "permissions-too-wide"),
    "a shard may write packages": (
        "      contents: write\n    strategy",
        "      contents: write\n      packages: write\n    strategy",
        "permissions-too-wide",
    ),
    "a job has the default's permissions": (
        "permissions: {}\n",
        "",
        None,  # every job says its own
    ),
    "the change judges itself": (
        "git ledger gate --needs",
        "git ledger gate --policy-from HEAD --needs",
        "policy-self",
    ),
    "the gate verifies by its own policy": (JUDGE, JUDGE + "\n          git ledger verify", "policy-self"),
    "shards may be removed": (
        "git ledger gate --needs",
        "git ledger gate --accept-shards --needs",
        "gate-loosened",
    ),
    "a threshold is zeroed": (
        RECORD,
        "pytest --cov-fail-under=0; " + RECORD,
        "threshold-in-workflow",
    ),
    "what failed is not published": (
        "if: always() && github.event.pull_request.head.repo.fork != true",
        "if: github.event.pull_request.head.repo.fork != true",
        "failure-not-published",
    ),
    "nothing is published": ("          git ledger sync origin\n", "          true\n", "failure-not-published"),
    "every step sees the key": (
        "env:\n  GITLEDGER_SETUP",
        "env:\n  GITLEDGER_SIGNING_KEY: ${{ secrets.LEDGER_KEY }}\n  GITLEDGER_SETUP",
        "key-in-reach",
    ),
    "what installs the project sees the key": (
        "- name: Install git-ledger and the project\n",
        "- name: Install git-ledger and the project\n        env: {GITLEDGER_SIGNING_KEY: x}\n",
        "key-in-reach",
    ),
    "some changes are not judged": (
        "  pull_request:\n",
        "  pull_request:\n    paths: [src]\n",
        "trigger-filtered",
    ),
    "nobody judges": (JUDGE, "echo passed", "gate-missing"),
    "a deployment waits for shards alone": (GITHUB[-1:], DEPLOY % ("shard", "success()"), "deploy-not-gated"),
    "a deployment goes on in any case": (GITHUB[-1:], DEPLOY % ("gate", "always()"), "deploy-not-gated"),
    "a deployment asks for anything but failure": (
        GITHUB[-1:],
        DEPLOY % ("gate", "always() && needs.gate.result != 'failure'"),
        "deploy-not-gated",
    ),
    "a job between gate and deployment runs in any case": (
        GITHUB[-1:],
        "\n  notes:\n    permissions: {}\n    needs: gate\n    if: always()\n    steps: [{run: ./notes}]\n"
        + DEPLOY % ("notes", "success()"),
        "deploy-not-gated",
    ),
    "a job between gate and deployment stops with the gate": (
        GITHUB[-1:],
        "\n  notes:\n    permissions: {}\n    needs: gate\n    steps: [{run: ./notes}]\n"
        + DEPLOY % ("notes", "success()"),
        None,
    ),
    "a deployment asks for success": (
        GITHUB[-1:],
        DEPLOY % ("gate", "always() && needs.gate.result == 'success'"),
        None,
    ),
}


@pytest.mark.parametrize("name", GITHUB_MUTATIONS)
def test_a_mutation_of_the_workflow_turns_the_check_red(name):
    before, after, code = GITHUB_MUTATIONS[name]
    if before == "\n":
        mutant = GITHUB + after
    else:
        assert before in GITHUB, name
        mutant = GITHUB.replace(before, after)
    assert (code in codes(mutant)) if code else (codes(mutant) == [])


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("needs: gate\n", "needs: shard\n", "deploy-not-gated"),
        ('needs: "${{ toJSON(needs) }}", ', "", "gate-ignores-results"),
        ("{mode: gate,", "{mode: shard,", "gate-missing"),
        ("needs: [plan, shard]\n    if: always()", "needs: [plan, shard]", "gate-may-skip"),
        ("permissions: {}\n", "permissions: {}\ndefaults: {}\n", None),
        ('needs: "${{ toJSON(needs) }}", ', "needs: '{}', ", "gate-ignores-results"),
        ("{mode: gate,", "{mode: gate, policy-from: '${{ github.head_ref }}',", "policy-self"),
        ("owner/git-ledger/hooks", "evil/hooks", "gate-missing"),
        ("on: [pull_request, push]", "on: workflow_dispatch", "trigger-filtered"),
    ],
)
def test_a_workflow_of_our_action_is_held_to_the_same(before, after, code):
    assert before in ACTION
    found = codes(ACTION.replace(before, after))
    assert (code in found) if code else (found == [])


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("", None),
        ("    if: always()\n", None),
        ("    if: needs.plan.outputs.any == 'true'\n", None),
        ("    if: github.actor != 'bot'\n", "gate-accepts-skipped"),
    ],
)
def test_a_job_that_a_gate_waits_for_is_skipped_for_no_reason_of_its_own(condition, code):
    """Where nothing is stale the gate bears skipped jobs: those that the plan left out, and no security scan."""
    scan = f"\n  scan:\n    needs: plan\n{condition}    permissions: {{}}\n    steps: [{{run: ./scan}}]\n"
    found = codes(GITHUB.replace("needs: [plan, shard]", "needs: [plan, shard, scan]") + scan)
    assert (code in found) if code else (found == [])


CALLER = """\
on: {pull_request: {branches: [main]}}
permissions: {}
jobs:
  ledger:
    uses: ./.github/workflows/git-ledger.yml
    permissions: {contents: write}
    secrets: {LEDGER_KEY: "${{ secrets.LEDGER_KEY }}"}
  release:
    needs: ledger
    permissions: {contents: write}
    steps: [{run: ./release}]
"""


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("", "", None),
        ("    needs: ledger\n", "", "deploy-not-gated"),
        ("    uses:", "    if: github.actor != 'bot'\n    uses:", "gate-may-skip"),
        ("{branches: [main]}", "{paths-ignore: [docs]}", "trigger-filtered"),
        (
            "permissions: {contents: write}\n    secrets",
            "permissions: write-all\n    secrets",
            "permissions-too-wide",
        ),
    ],
)
def test_a_workflow_that_calls_ours_is_held_to_what_is_its_own(before, after, code):
    assert before in CALLER
    found = codes(CALLER.replace(before, after))
    assert (code in found) if code else (found == [])


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("          - {shard: api}\n", "", "script-nowhere"),
        ("{shard: api}", "{shard: web}", "script-twice"),
        ("{shard: lint, half: checks}", "{shard: lint}", "script-nowhere"),  # npm run build runs in no entry
        ("matrix.half == 'checks'\n", "matrix.half != 'checks'\n", "script-twice"),
        ("matrix.half == 'checks'\n", "matrix.half == 'check'\n", "script-nowhere"),
        ("--shard ${{ matrix.shard }}", "--shard api", "script-twice"),
        ("git ledger verify --policy-from origin/main", "git ledger verify", "policy-self"),
        ("= success", "!= failure", "gate-accepts-skipped"),
        (
            '      - env: {RESULT: "${{ needs.shard.result }}"}\n        run: test "$RESULT" = success\n',
            "",
            "gate-ignores-results",
        ),
        ("origin/main\n", "origin/main | tee log\n", "failure-tolerated"),  # sh -e has no pipefail
        ("{shard: api}", "{shard: api-1-of-3}", "literal-count"),
    ],
)
def test_each_script_runs_in_exactly_one_entry_of_a_matrix_by_hand(before, after, code):
    assert before in STATIC
    assert code in codes(STATIC.replace(before, after), SHARDS)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("", True),
        ("matrix.a == 'X'", True),  # case does not count
        ("!(matrix.a == 'x') || matrix.b != ''", False),
        ("matrix.a == 'x' && (matrix.n == 3 || false)", True),
        ("matrix.a == 'it''s'", False),
        ("github.ref == 'x'", None),
        ("matrix.a == ", None),
        ("matrix.a 'x'", None),
    ],
)
def test_conditions_are_read_as_github_reads_them(condition, expected):
    assert holds(condition, {"a": "x", "n": "3"}) is expected


GITLAB_RULES = "    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH\n      when: always\n"
GITLAB_MUTATIONS = [
    ("      when: always\n    - if: $CI_COMMIT_BRANCH", "    - if: $CI_COMMIT_BRANCH", "gate-may-skip"),
    ("needs: [git-ledger-plan, git-ledger-shards]", "needs: [git-ledger-plan]", "gate-misses-job"),
    (
        "needs: [git-ledger-plan, git-ledger-shards]",
        "needs: [git-ledger-plan, {job: git-ledger-shards, optional: true}]",
        "gate-misses-job",
    ),
    ("    strategy: depend\n", "", "child-not-awaited"),
    ("- git ledger gate", "- git ledger gate || true", "failure-tolerated"),
    ("- git ledger gate", "- git ledger gate --accept-shards", "gate-loosened"),
    ("- git ledger gate", "- git ledger verify", "policy-self"),
    ("- git ledger gate", "- echo passed", "gate-missing"),
    ("git-ledger-gate:\n", "git-ledger-gate:\n  allow_failure: true\n", "failure-tolerated"),
    ('GIT_DEPTH: "0"', 'GIT_DEPTH: "20"', "history-shallow"),
    ("  trigger:\n", "  parallel: 3\n  trigger:\n", "literal-count"),
    (GITLAB_RULES, GITLAB_RULES + "      allow_failure: true\n", "failure-tolerated"),
    ("git-ledger-gate:\n", "git-ledger-gate:\n  <<: {allow_failure: true}\n", "failure-tolerated"),
    ("git-ledger-gate:\n", "git-ledger-gate:\n  allow_failure: {exit_codes: [1]}\n", "failure-tolerated"),
    ("git-ledger-gate:\n", "git-ledger-gate:\n  rules: [{when: never}]\n", "gate-may-skip"),
    ("git-ledger-gate:\n", "git-ledger-gate:\n  rules: [{if: $CI_COMMIT_TAG, when: always}]\n", "gate-may-skip"),
    ("git-ledger-gate:\n", "git-ledger-gate:\n  rules: [{changes: [src], when: always}]\n", "gate-may-skip"),
    ("git-ledger-gate:\n", "git-ledger-gate:\n  rules: !reference [.other, rules]\n", "gate-may-skip"),
    ("git-ledger-gate:\n", "git-ledger-gate:\n  only: [tags]\n", "gate-may-skip"),
    ("git-ledger-gate:\n", "git-ledger-gate:\n  variables: {CI_DEFAULT_BRANCH: x}\n", "runner-overridden"),
    (
        "git-ledger-gate:\n",
        "git-ledger-gate:\n  rules: [{when: always, variables: {GITLAB_CI: 'no'}}]\n",
        "runner-overridden",
    ),
    ("---\n", "---\nworkflow: {rules: [{variables: {CI_COMMIT_SHA: x}}]}\n", "runner-overridden"),
    ("    - git ledger gate", "    - exit 0\n    - git ledger gate", "failure-tolerated"),
    ("    - git ledger gate", "    - !reference [.other, script]\n    - git ledger gate", "failure-tolerated"),
    (
        "    - git ledger gate",
        "    - |\n      if false; then\n      git ledger gate\n      fi",
        "failure-tolerated",
    ),
    (
        "    - git ledger sync --fetch-only origin\n",
        "    - git ledger sync --fetch-only origin\n    - git() { true; }\n",
        "failure-tolerated",
    ),
    ("- git ledger gate", "- git ledger gate main", "gate-judges-another"),
    ("- git ledger gate", "- git ledger gate --policy-from $CI_COMMIT_REF_NAME", "policy-self"),
]


@pytest.mark.parametrize(("before", "after", "code"), GITLAB_MUTATIONS)
def test_a_mutation_of_the_gitlab_component_turns_the_check_red(before, after, code):
    assert before in GITLAB
    assert code in codes(GITLAB.replace(before, after))


@pytest.mark.parametrize(
    ("job", "code"),
    [
        ("deploy: {script: [./deploy], needs: [git-ledger-gate]}", None),
        ("deploy: {script: [./deploy], needs: []}", "deploy-not-gated"),
        ("deploy: {script: [./deploy], stage: deploy}", None),
        ("deploy: {script: [./deploy], stage: build}", "deploy-not-gated"),
        ("deploy: {script: [./deploy], needs: [git-ledger-gate], when: always}", "deploy-not-gated"),
        ("unit: {script: [git ledger record --shard unit], after_script: [git ledger sync]}", "gate-misses-job"),
        (
            "unit: {script: [git ledger record --shard unit, git ledger sync], stage: build}",
            "failure-not-published",
        ),
    ],
)
def test_jobs_beside_the_gitlab_component_are_held_to_it(job, code):
    found = codes(f"{GITLAB}\n{job}\n".replace("$[[ inputs.stage ]]", "test"))
    assert (code in found) if code else (found == [])


JUDGED = 'git ledger gate --needs "$NEEDS" "${options[@]}"'
UNJUDGED = {
    "an operator goes on to the next line": f"true ||\n{JUDGED}",
    "a quote goes over lines": f"echo '\n{JUDGED}\n'",
    "a substitution goes over lines": f"echo $(\n{JUDGED}\n)",
    "an array goes over lines": f"words=(\n{JUDGED}\n)",
    "a block is timed": f"time if false; then\n{JUDGED}\nfi",
    "a block is negated": f"! if false; then\n{JUDGED}\nfi",
    "nothing is run": f"set -n\n{JUDGED}",
    "one command is run": f"set -o onecmd\ntrue\n{JUDGED}",
    "failures pass, among other options": f"set -u +e\n{JUDGED}\ntrue",
    "failures pass, in quotes": f'set "+e"\n{JUDGED}\ntrue',
    "the script ends, spelled otherwise": f"\\exit 0\n{JUDGED}",
    "the script ends, in quotes": f'"exit" 0\n{JUDGED}',
    "the script ends, behind a variable": f"X=1 exit 0\n{JUDGED}",
    "the status kept is set anew": f"{JUDGED} || status=$?\nstatus=0\nexit $status",
    "the status kept is asked for only sometimes": f'{JUDGED} || status=$?\n[ "$X" ] && exit $status\ntrue',
    "a version is printed": JUDGED.replace("ledger gate", "ledger --version gate"),
    "a page is printed": JUDGED.replace("ledger gate", "ledger -h gate"),
    "another folder, glued": JUDGED.replace("ledger gate", "ledger -C/other gate"),
    "the results are read from elsewhere": f"read NEEDS < made-up\n{JUDGED}",
    "the results are given twice": f"{JUDGED} --needs '{{}}'",
    "another remote stands in": f"git remote set-url origin /other\n{JUDGED}",
    "an alias stands in": f"git config --global alias.ledger '!true'\n{JUDGED}",
}


@pytest.mark.parametrize("name", UNJUDGED)
def test_a_script_that_can_end_well_without_its_verdict_is_refused(name):
    lines = UNJUDGED[name].replace("\n", "\n          ")
    assert JUDGED in GITHUB
    assert codes(GITHUB.replace(JUDGED, lines))


@pytest.mark.parametrize("shell", ["bash -en {0}", "bash -es {0}", "bash -et {0}", "bash --help -e {0}"])
def test_a_shell_that_runs_no_script_is_refused(shell):
    assert "failure-tolerated" in codes(GITHUB.replace(BASH, BASH.replace("bash", shell)))


@pytest.mark.parametrize("name", ["SHELLOPTS", "GIT_EXEC_PATH", "XDG_CONFIG_HOME"])
def test_a_variable_that_changes_the_shell_or_git_is_refused(name):
    assert "runner-overridden" in codes(GITHUB.replace("NEEDS: ${{", f"{name}: x\n          NEEDS: ${{{{"))


@pytest.mark.parametrize("value", ["HEAD", "origin/${{ github.head_ref }}", "${{ github.sha }}"])
def test_a_policy_that_the_change_picks_by_a_variable_is_refused(value):
    call = JUDGED.replace("git ledger gate", 'git ledger gate --policy-from "$P"')
    judged = GITHUB.replace(JUDGED, call)
    assert "policy-self" in codes(judged.replace("NEEDS: ${{", f"P: {value}\n          NEEDS: ${{{{"))
    assert "policy-self" not in codes(judged.replace("NEEDS: ${{", "P: origin/main\n          NEEDS: ${{"))
    assert "policy-self" in codes(judged.replace(call, f"P=HEAD\n          {call}"))


@pytest.mark.parametrize("line", ["cd other", "pushd ../other", "git checkout main", "git -C . reset --hard v1"])
def test_going_elsewhere_before_the_verdict_is_refused(line):
    assert "gate-judges-another" in codes(GITHUB.replace(JUDGED, f"{line}\n          {JUDGED}"))


@pytest.mark.parametrize(
    ("condition", "gated"),
    [
        ("success()", True),
        ("github.ref == 'refs/heads/main'", True),  # GitHub asks for success by itself
        ("${{ (Success() && github.ref == 'refs/heads/main') }}", True),
        ("success() || github.ref == 'refs/heads/main'", False),
        ("'!success()'", False),
        ("success() == false", False),
        ("${{ success() }} && github.ref == 'refs/heads/main'", False),  # a text, which is true
        ("ALWAYS()", False),
    ],
)
def test_a_deployment_waits_for_the_gate_only_where_it_demands_success(condition, gated):
    assert codes(GITHUB + DEPLOY % ("gate", condition)) == ([] if gated else ["deploy-not-gated"])


def test_the_variables_of_the_gates_container_are_looked_at_too():
    inside = 'container: {image: x, env: {GITHUB_ACTIONS: "false"}}'
    assert "runner-overridden" in codes(GITHUB.replace(GATE_IF, f"{GATE_IF}    {inside}\n"))


@pytest.mark.parametrize("key", ["include.path ../x", "includeIf.gitdir:/.path x", "remote.origin.url /other"])
def test_a_setting_that_moves_what_git_reads_is_refused(key):
    line = f"git config --global {key}\n          {JUDGED}"
    assert "runner-overridden" in codes(GITHUB.replace(JUDGED, line))
    fine = f"git config --global user.name ci\n          {JUDGED}"
    assert codes(GITHUB.replace(JUDGED, fine)) == []


def test_a_matrix_on_the_gate_may_be_empty_and_is_refused():
    place = "\n    if: always()\n"
    assert GITHUB.count(place) == 1
    assert "gate-may-skip" in codes(GITHUB.replace(place, f"{place}    strategy: {{matrix: {{x: []}}}}\n"))


def test_a_finding_names_its_line_and_what_mends_it():
    (found,) = check_workflow(GITHUB.replace("      fail-fast: false\n", "").encode(), name="w.yml").findings
    number = 1 + GITHUB.splitlines().index("      matrix: ${{ fromJSON(needs.plan.outputs.matrix) }}") - 1
    assert found.subject == f"line {number}, job shard"
    assert found.remedy == "strategy: {fail-fast: false}"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"a: [b",
        b"jobs: {}\n",
        b"jobs: [a]\n",
        b"- a\n",
        b"\xff",
        b"jobs:\n  a: {b: 1}\n  a: {b: 2}\n",
        b"jobs: {a: " + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b"a: &a [x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 8)) for c in range(98, 106)),
        b" " * (MAX_FILE_BYTES + 1),
        b"a: {script: [x]}\n---\nb: {script: [x]}\n",
    ],
)
def test_what_is_no_workflow_is_an_error_and_never_a_pass(text):
    with pytest.raises(UsageError) as caught:
        check_workflow(text, name="w.yml")
    assert caught.value.code == "workflow-unreadable"


def test_the_command_exits_by_what_it_finds_and_holds_entries_against_the_configuration(project):
    project.repo.write("w.yml", STATIC)
    done = project.ledger("gate", "--check-workflow", "w.yml", "--json", expect=1)
    assert [item["code"] for item in done.document["findings"]] == ["script-nowhere"] * 2  # alpha and beta
    project.repo.write("w.yml", GITHUB)
    done = project.ledger("gate", "--check-workflow", "w.yml", env={"GITHUB_ACTIONS": "true"})
    assert "a gate of 3 GitHub jobs: holds" in done.out
    assert project.ledger("gate", "--check-workflow", "no", "--json", expect=2).document["error"]["code"] == (
        "workflow-unreadable"
    )
    assert project.ledger("gate", "HEAD", "--check-workflow", "w.yml", "--json", expect=2).document["error"][
        "code"
    ] == ("bad-options")
