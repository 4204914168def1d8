"""The file as users write it: defaults, values, and errors that name file, line and key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.config.example import example_config
from gitledger.config.load import load_config
from gitledger.config.schema import (
    CarryConfig,
    Config,
    CoverageConfig,
    HooksConfig,
    LaneRun,
    MergeConfig,
    NotesConfig,
    PolicyConfig,
    RecordConfig,
    ResultsConfig,
)
from gitledger.errors import ConfigError
from gitledger.records.ids import ShardKey
from gitledger.records.receipt import Split

HEAD = "version: 1\nrepository: 5d3c\n"
DESIGN = """\
version: 1
repository: 5d3c
shards:
  l1:
    paths: [src/l1, tests/gpu/l1]
    extra_paths: [generated/l1.cuh]
    command: pytest tests/gpu/l1
    variants: [a100, mi300]
    gpus: 1
    memory: 12GiB
    timeout: 2h
  backend: {paths: ["."], split: 3, command: pytest tests}
  lint: {paths: [src, pyproject.toml], command: ruff check src, results: exit-status, coverage: none}
coverage: {fail_under: 55, precision: 0}
merge: {environment: per-variant}
carry: {from: ancestors, environment: [python, platform]}
hooks: {pre_push: warn, protect: [main], timeout: 30s}
record: {marker: null, gpu_uuid: true}
forges: {ghe: "https://ghe.example.org/{user}.keys"}
notes: {author: null, message: "ledger: {n} records"}
policy:
  signer_mode: restricted
  allowed_signers: [alice, "github:alice-h"]
  allowed_key_fingerprints: []
  ci_key_fingerprints: []
  revokers: []
  max_age_days: 30
  require_mode: null
  require_gpu: false
  require_merged: false
  require_observed_scope: false
  pin_shards: true
  allow_carried: false
  carried_max_age_days: null
  allow_dirty: false
  allow_unsigned: false
  allow_unwitnessed: false
  allow_no_touch: false
  max_attempts: null
  expected_skips: null
  required_tests: null
  min_record_version: 1
lanes:
  gfx1151:
    required: true
    signers: [lab-runner]
    match: {device.arch: gfx1151, torch.hip: "6.4", os.name: linux}
    runs:
      - {model: m7b, layers: [0, 15], quantization: bfloat16, recipes: [torch-eager]}
"""


def load(text: str) -> Config:
    return load_config(text.encode(), source="config.yaml")


def refused(text: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(text.encode() if isinstance(text, str) else text, source="config.yaml")
    error = caught.value
    assert error.message.startswith("config.yaml")
    assert "\n" not in str(error)
    assert error.hint
    return error


def refusal(data: bytes) -> str:
    """Return the refusal's line, or `loads`; any other exception is a failure."""
    try:
        load_config(data, source="config.yaml")
    except ConfigError as error:
        return str(error)
    return "loads"


def test_the_example_of_the_design_loads_as_it_reads() -> None:
    config = load(DESIGN)
    l1, lint = config.shards["l1"], config.shards["lint"]
    assert (l1.memory, l1.timeout, l1.gpus) == (12 << 30, 7200.0, 1)
    assert l1.command == ("pytest", "tests/gpu/l1")
    assert (lint.results, lint.coverage) == (ResultsConfig("exit-status"), "none")
    assert config.coverage == CoverageConfig(fail_under="55", precision=0)
    assert config.forges == {"ghe": "https://ghe.example.org/{user}.keys"}
    lane = config.lanes["gfx1151"]
    assert lane.match == {"device.arch": "gfx1151", "torch.hip": "6.4", "os.name": "linux"}
    assert lane.runs == (LaneRun(model="m7b", layers=(0, 15), quantization="bfloat16"),)


def test_what_the_design_shows_are_the_defaults() -> None:
    """Under policy, hooks, record, notes and merge; lists and forges aside."""
    shown, bare = load(DESIGN), load(HEAD)
    assert shown.policy == PolicyConfig(allowed_signers=("alice", "github:alice-h"))
    assert shown.hooks == HooksConfig(protect=("main",))
    assert (shown.record, shown.notes, shown.merge, shown.carry) == (
        RecordConfig(),
        NotesConfig(),
        MergeConfig(),
        CarryConfig(),
    )
    assert (bare.policy, bare.hooks, bare.shards, bare.lanes) == (PolicyConfig(), HooksConfig(), {}, {})
    assert load(HEAD + "policy:\nhooks:\nshards:\n") == Config(
        version=1, repository="5d3c", given=frozenset({"version", "repository", "policy", "hooks", "shards"})
    )


def test_given_names_what_the_file_spells() -> None:
    config = load(HEAD + "policy: {max_age_days: 30}\nshards: {a: {command: pytest}}")
    assert {"policy.max_age_days", "shards.a.command"} <= config.given
    assert "policy.allow_dirty" not in config.given


def test_identities_stand_in_file_order_with_variants_and_parts() -> None:
    config = load(HEAD + "shards: {b: {variants: [x, y], split: 2, command: pytest}, a: {command: pytest}}")
    assert [str(key) for key in config.shard_keys()] == [
        "b-1-of-2@x",
        "b-2-of-2@x",
        "b-1-of-2@y",
        "b-2-of-2@y",
        "a",
    ]
    key = ShardKey("b-2-of-2", "x")
    assert config.shard(key).name == "b"
    assert config.split_of(key) == Split(index=2, total=2)
    assert config.split_of(ShardKey("a")) is None
    for declared in config.shards.values():
        for one, split in declared.identities():
            assert (config.shard(one), config.split_of(one)) == (declared, split)
    assert config.keys_named("b@y") == (ShardKey("b-1-of-2", "y"), ShardKey("b-2-of-2", "y"))
    assert config.keys_named("b-1-of-2") == (ShardKey("b-1-of-2", "x"), ShardKey("b-1-of-2", "y"))
    assert len(config.keys_named("b")) == 4


@pytest.mark.parametrize("name", ["l1", "l1@h100", "backend", "backend-4-of-3", "lint@x", "none"])
def test_only_declared_identities_are_known(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(DESIGN).shard(ShardKey.parse(name))
    assert caught.value.code == "unknown-shard"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("body", "named", "nearest"),
    [
        ("polcy: {}", "polcy", "policy"),
        ("policy: {max_age_day: 3}", "policy.max_age_day", "max_age_days"),
        ("shards: {a: {path: [x]}}", "shards.a.path", "paths"),
        ("shards: {a: {name: x}}", "shards.a.name", "known: "),
        ("lanes: {a: {require: true}}", "lanes.a.require", "required"),
        ("lanes: {a: {runs: [{mdel: x}]}}", "lanes.a.runs[0].mdel", "model"),
        ("carry: {from_: ancestors}", "carry.from_", "from"),
    ],
)
def test_unknown_keys_name_the_nearest_known_one(body: str, named: str, nearest: str) -> None:
    error = refused(HEAD + body)
    assert error.code == "unknown-key"
    assert f"config.yaml:3: unknown key {named}" in error.message
    assert nearest in error.hint


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("policy: {allow_dirty: yes}", "policy.allow_dirty"),
        ("policy: {allow_dirty: on}", "policy.allow_dirty"),
        ("policy: {allow_dirty: 1}", "policy.allow_dirty"),
        ("policy: {allow_dirty: 'true'}", "policy.allow_dirty"),
        ("policy: {allow_dirty: null}", "policy.allow_dirty"),
        ("policy: {max_age_days: -1}", "policy.max_age_days"),
        ("policy: {max_age_days: 1.5}", "policy.max_age_days"),
        ("policy: {max_age_days: true}", "policy.max_age_days"),
        ("policy: {max_age_days: 030}", "policy.max_age_days"),
        ("policy: {max_age_days: 1_000}", "policy.max_age_days"),
        ("policy: {max_age_days: 1:30}", "policy.max_age_days"),
        ("policy: {max_age_days: null}", "policy.max_age_days"),
        ("policy: {max_attempts: 0}", "policy.max_attempts"),
        ("policy: {signer_mode: opne}", "policy.signer_mode"),
        ("policy: {allowed_signers: alice}", "policy.allowed_signers"),
        ("policy: {allowed_signers: [alice, alice]}", "policy.allowed_signers[1]"),
        ("policy: {allowed_signers: [1]}", "policy.allowed_signers[0]"),
        ("policy: {allowed_signers: ['']}", "policy.allowed_signers[0]"),
        ("policy: {allowed_key_fingerprints: [abc]}", "policy.allowed_key_fingerprints[0]"),
        ("policy: {require_mode: gpu}", "policy.require_mode"),
        ("policy: [x]", "policy"),
        ("coverage: {fail_under: 0}", "coverage.fail_under"),
        ("coverage: {fail_under: 0.00}", "coverage.fail_under"),
        ("coverage: {fail_under: 100.01}", "coverage.fail_under"),
        ("coverage: {fail_under: -1}", "coverage.fail_under"),
        ("coverage: {fail_under: '55'}", "coverage.fail_under"),
        ("coverage: {fail_under: .nan}", "coverage.fail_under"),
        ("coverage: {fail_under: true}", "coverage.fail_under"),
        ("coverage: {precision: -1}", "coverage.precision"),
        ("merge: {environment: lax}", "merge.environment"),
        ("carry: {environment: [pyton]}", "carry.environment[0]"),
        ("hooks: {timeout: 0s}", "hooks.timeout"),
        ("hooks: {timeout: 30}\nnotes: {author: bob}", "notes.author"),
        ("notes: {message: 'x {m}'}", "notes.message"),
        ("forges: {GHE: 'https://x/{user}'}", "forges.GHE"),
        ("forges: {g: 'https://x/user'}", "forges.g"),
        ("forges: {g: 'https://{user}.x/'}", "forges.g"),
        ("forges: {g: 'http://x/{user}'}", "forges.g"),
        ("forges: {g: 'https://a:b@x/{user}'}", "forges.g"),
        ("forges: {g: 'file:///etc/{user}'}", "forges.g"),
        ("shards: {'a b': {command: pytest}}", "shards.a b"),
        ("shards: {a@b: {command: pytest}}", "shards.a@b"),
        ("shards: {a: {command: pytest, split: 0}}", "shards.a.split"),
        ("shards: {a: {command: pytest, split: 1001}}", "shards.a.split"),
        ("shards: {a: {command: pytest, variants: ['x@y']}}", "shards.a.variants[0]"),
        ("shards: {a: {command: pytest, memory: 12G}}", "shards.a.memory"),
        ("shards: {a: {command: pytest, timeout: 2 hours}}", "shards.a.timeout"),
        ("shards: {a: {command: pytest, coverage: some}}", "shards.a.coverage"),
        ("shards: {a: {command: []}}", "shards.a.command"),
        ("shards: {a: {command: [pytest, 1]}}", "shards.a.command[1]"),
        ("shards: {a: {command: pytest, paths: src}}", "shards.a.paths"),
        ("shards: {a: {command: pytest, paths: [src, src]}}", "shards.a.paths[1]"),
        ("shards: {a: {command: x, results: {junit: ../r.xml}}}", "shards.a.results.junit"),
        ("shards: {a: {command: x, results: {junit: /r.xml}}}", "shards.a.results.junit"),
        ("shards: {a: {command: x, results: {junit: a, ctrf: b}}}", "shards.a.results"),
        ("shards: {a: {command: x, results: {}}}", "shards.a.results"),
        ("shards: {a: {command: x, results: xunit}}", "shards.a.results"),
        ("lanes: {a: {}}", "lanes.a.runs"),
        ("lanes: {a: {runs: []}}", "lanes.a.runs"),
        ("lanes: {a: {runs: [{layers: [0, 1]}]}}", "lanes.a.runs[0].model"),
        ("lanes: {a: {runs: [{model: m, layers: [2, 1]}]}}", "lanes.a.runs[0].layers"),
        ("lanes: {a: {runs: [{model: m, layers: [0]}]}}", "lanes.a.runs[0].layers"),
        ("lanes: {a: {runs: [{model: m, recipes: []}]}}", "lanes.a.runs[0].recipes"),
        ("lanes: {a: {match: {torch.hip: 6.4}, runs: [{model: m}]}}", "lanes.a.match.torch.hip"),
    ],
)
def test_wrong_values_name_the_path_and_line(body: str, path: str) -> None:
    error = refused(HEAD + body)
    assert error.code == "config-value"
    line = 3 + body.count("\n")
    assert error.message.startswith(f"config.yaml:{line}: {path}: ")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("shards: {a-1-of-3: {command: pytest}}", "reserved-name"),
        ("shards: {a: {command: make test}}", "results-unclear"),
        ("shards: {a: {command: [sh, -c, pytest]}}", "results-unclear"),
        ("shards: {a: {command: tox -e py}}", "results-unclear"),
        ("shards: {a: {command: make, results: exit-status, split: 2}}", "split-unsupported"),
        ("shards: {a: {command: pytest, results: {junit: j.xml}, split: 2}}", "split-unsupported"),
    ],
)
def test_shards_that_cannot_be_judged_are_refused(body: str, code: str) -> None:
    assert refused(HEAD + body).code == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "config-syntax"),
        ("# nothing\n", "config-syntax"),
        ("a: [", "config-syntax"),
        ("a: b: c", "config-syntax"),
        ("version: 1\nversion: 1", "config-syntax"),
        ("version: 1\npolicy: {a: 1, a: 2}", "config-syntax"),
        ("a: &x [1]", "config-syntax"),
        ("a: *x", "config-syntax"),
        ("<<: {a: 1}\nb: &y 1", "config-syntax"),
        ("a: !!python/object/apply:os.system [id]", "config-syntax"),
        ("a: !!str 1", "config-syntax"),
        ("1: a", "config-syntax"),
        ("true: a", "config-syntax"),
        ("? [a]\n: b", "config-syntax"),
        ("? {a: b}\n: b", "config-syntax"),
        ("version: 1\n---\nversion: 1", "config-syntax"),
        ("a: 'x\0y'", "config-syntax"),
        ('a: "x\\0y"', "config-syntax"),
        ('a: "\\ud800"', "config-syntax"),
        ('a: "\\UFFFFFFFF"', "config-syntax"),
        ("a: " + "[" * 21 + "]" * 21, "config-syntax"),
        ("a: " + "[" * 5000, "config-syntax"),
        ("a: " + "9" * 101, "config-syntax"),
        (b"version: 1\na: \xff", "config-syntax"),
        ("a: 1\n".encode("utf-16"), "config-syntax"),
        ("#" * (1 << 20) + "\n", "config-too-large"),
        ("repository: a", "config-version"),
        ("version: 2\nfoo: bar", "config-version"),
        ("version: '1'", "config-version"),
        ("version: true", "config-version"),
        ("version: 1.0", "config-version"),
        ("version: 0", "config-version"),
        ("version: 1", "config-value"),
        ("version: 1\nrepository: ''", "config-value"),
        ("version: 1\nrepository: a/b", "config-value"),
        ("version: 1\nrepository: null", "config-value"),
        ("[version]", "config-value"),
        ("version", "config-value"),
    ],
)
def test_hostile_and_broken_files_are_one_error(text: str | bytes, code: str) -> None:
    assert refused(text).code == code


def test_a_newer_version_says_so_before_its_keys_are_judged() -> None:
    error = refused("version: 2\nnovelty: {x: 1}")
    assert "newer" in error.message
    assert "upgrade" in error.hint


@pytest.mark.parametrize(
    ("written", "kept"), [("55", "55"), ("55.50", "55.50"), ("100", "100"), ("99.995", "99.995"), ("0.5", "0.5")]
)
def test_thresholds_keep_their_spelling(written: str, kept: str) -> None:
    assert load(HEAD + f"coverage: {{fail_under: {written}}}").coverage.fail_under == kept


def test_an_id_of_digits_alone_is_an_id() -> None:
    assert load("version: 1\nrepository: 12345678901234567890").repository == "12345678901234567890"
    assert load("version: 1\nrepository: 0123").repository == "0123"
    assert load("version: 1\nrepository: 5e10").repository == "5e10"


def test_unsigned_records_never_count_in_restricted_mode() -> None:
    assert not load(HEAD + "policy: {allow_unsigned: true}").policy.accepts_unsigned
    assert load(HEAD + "policy: {allow_unsigned: true, signer_mode: open}").policy.accepts_unsigned


@pytest.mark.parametrize(
    ("policy", "limit"),
    [
        ("{}", 30),
        ("{max_age_days: 7}", 7),
        ("{max_age_days: 90}", 30),
        ("{max_age_days: 90, carried_max_age_days: 60}", 60),
    ],
)
def test_carried_receipts_age_sooner(policy: str, limit: int) -> None:
    assert load(HEAD + f"policy: {policy}").policy.carried_age_limit_days == limit


def test_an_empty_list_of_signers_is_nobody_and_none_is_everybody_of_the_file() -> None:
    assert load(HEAD + "policy: {allowed_signers: []}").policy.allowed_signers == ()
    assert load(HEAD).policy.allowed_signers is None


def test_too_many_identities_are_refused() -> None:
    shards = ", ".join(f"s{i}: {{command: pytest, split: 1000}}" for i in range(11))
    assert refused(HEAD + f"shards: {{{shards}}}").code == "config-value"


def test_what_no_receipt_could_hold_is_refused() -> None:
    assert (
        "limit of 1000"
        in refused(HEAD + f"policy: {{revokers: [{', '.join(f'a{i}' for i in range(1001))}]}}").message
    )
    assert "limit of 16384" in refused(HEAD + f"record: {{marker: {'m' * 16385}}}").message


@pytest.mark.parametrize("principal", ["alice", "github:alice-h", "a'\"b: {c}", "é#x"])
def test_the_example_that_init_writes_loads(principal: str) -> None:
    config = load(example_config("0123", principal))
    assert config.repository == "0123"
    assert config.policy.allowed_signers == (principal,)
    assert [str(key) for key in config.shard_keys()] == ["tests"]
    assert config.shards["tests"].results == ResultsConfig("pytest")


def test_the_commented_examples_load_as_well() -> None:
    """A reader who takes the comment sign away gets a configuration that works."""
    lines = []
    for line in example_config("0123", "alice").splitlines():
        bare = line.lstrip()
        takes = bare.startswith("# ") and (":" in bare.split("  #")[0]) and not bare.startswith("# What")
        indent = line[: len(line) - len(bare)]
        lines.append(indent + bare.removeprefix("# ") if takes else line)
    config = load("\n".join(lines))
    assert set(config.shards) == {"tests", "gpu", "slow", "lint"}
    assert config.coverage.fail_under == "80"
    assert config.policy.require_mode == "ci"
    assert config.hooks.protect == ("main",)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")))
def test_any_bytes_load_or_are_a_configuration_error(data: bytes) -> None:
    assert "\n" not in refusal(data)


yaml_value: Any = st.recursive(
    st.sampled_from(["1", "true", "null", "x", "'q'", "1.5", "-3", "[]", "{}", "2h", "12GiB"]),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    max_leaves=4,
)


@given(
    key=st.sampled_from(
        ["shards", "coverage", "merge", "carry", "hooks", "record", "forges", "notes", "policy", "lanes"]
    ),
    inner=st.sampled_from(
        [
            "paths",
            "command",
            "fail_under",
            "from",
            "match",
            "runs",
            "timeout",
            "x",
            "revokers",
            "results",
            "memory",
        ]
    ),
    value=yaml_value,
    nested=st.booleans(),
)
def test_any_value_under_any_key_loads_or_is_a_configuration_error(
    key: str, inner: str, value: str, nested: bool
) -> None:
    body = f"{key}: {{a: {{{inner}: {value}}}}}" if nested else f"{key}: {{{inner}: {value}}}"
    assert refusal((HEAD + body).encode()).startswith(("config.yaml:3: ", "loads"))


def test_a_marker_is_a_name_and_no_expression() -> None:
    assert load(HEAD + "record: {marker: gpu}").record.marker == "gpu"
    for text in ("gpu and not slow", "-x", '""'):
        assert "record.marker" in refused(HEAD + f"record: {{marker: {text}}}").message
