"""`run`: exactly what a plan calls stale, each recorded as it ends, merged once every shard is covered."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from gitledger.errors import LedgerError
from gitledger.machine.memory import memory_now
from gitledger.machine.sole import sole_driver


def config(shards: dict[str, str], policy: str = "{}") -> str:
    """Return a configuration of shards whose commands are shell lines; `more: …` may follow a line after `##`."""
    lines = ["version: 1", "repository: demo", "shards:"]
    for name, text in shards.items():
        line, _, more = text.partition("##")
        command = f"sh -c '{line.strip()}'"
        lines.append(f'  {name}: {{paths: [src], command: "{command}", results: exit-status{more}}}')
    return "\n".join([*lines, f"policy: {policy}", ""])


# --- what runs --------------------------------------------------------------------------------------------------


def test_what_is_stale_runs_once_and_is_merged_once(driven):
    project = driven(config({"a": "echo a >> $OUT/ran", "b": "echo b >> $OUT/ran"}))
    project.ledger("record", "--shard", "a")

    first = project.run()
    again = project.run()

    assert project.ran() == ["a", "b"]
    assert (first.exit_status, first.merge.outcome) == (0, "passed")
    assert (again.exit_status, again.merge, again.results) == (0, None, {})
    assert project.verify()[0] == "passed"


def test_all_runs_what_is_fresh_too(driven):
    project = driven(config({"a": "echo a >> $OUT/ran", "b": "echo b >> $OUT/ran"}))
    project.run()

    done = project.run(shards=("a",), everything=True)

    assert project.ran() == ["a", "a", "b"]
    assert done.merge.is_green


def test_some_shards_are_run_and_nothing_is_merged_before_all_are_covered(driven):
    project = driven(config({"a": "true", "b": "true"}))

    some = project.run(shards=("a",))
    rest = project.run()

    assert (some.exit_status, some.merge.receipt, [str(key) for key in some.uncovered]) == (0, None, ["b"])
    assert [str(key) for key in rest.results] == ["b"]
    assert rest.merge.is_green


def test_a_shard_that_fails_stops_no_other_and_is_merged_as_failed(driven):
    project = driven(config({"a": "exit 3", "b": "true"}))

    done = project.run()

    assert (done.exit_status, done.merge.outcome) == (1, "failed")
    assert [str(key) for key in done.red] == ["a"]
    assert project.plan()["b"][0] == "fresh"


def test_a_dirty_tree_is_refused_before_anything_runs(driven):
    project = driven(config({"a": "echo a >> $OUT/ran"}))
    project.repo.write("src/stray.py", "")

    with pytest.raises(LedgerError) as caught:
        project.run()

    assert (caught.value.code, project.ran()) == ("dirty-start", [])
    assert "src/stray.py" in caught.value.message


def test_a_command_that_does_not_exist_is_no_failure_of_a_test(driven):
    project = driven(
        config({"b": "true"}).replace(
            "policy", "  a: {paths: [src], command: no-such-program, results: exit-status}\npolicy"
        )
    )

    done = project.run()

    assert [(str(key), fault.code) for key, fault in done.faults.items()] == [("a", "command-not-found")]
    assert done.exit_status == 2
    assert project.plan() == {"b": ("fresh", "recorded"), "a": ("stale", "never-recorded")}


@pytest.mark.parametrize(("declared", "asked"), [("300ms", 60.0), ("1h", 0.3)])
def test_r05_the_smaller_of_two_time_outs_holds(driven, declared, asked):
    """A shard that declares how long it may take is not given more by whoever runs it, and may be given less."""
    project = driven(config({"a": f"exec sleep 60 ##, timeout: {declared}"}))

    done = project.run(timeout_s=asked)

    [[item]] = done.results.values()
    assert "timeout" in item.receipt.reasons
    assert (item.receipt.session.ended_at - item.receipt.session.started_at).total_seconds() < 20


# --- attempts ---------------------------------------------------------------------------------------------------

FLAKY = "echo x >> $OUT/ran; test $(wc -l < $OUT/ran) -ge 3"


def test_retries_are_attempts_and_all_are_kept(driven):
    project = driven(config({"a": FLAKY}))

    done = project.run(retries=5)

    outcomes = [
        (item.receipt.shard.attempt, item.receipt.is_green) for items in done.results.values() for item in items
    ]
    assert outcomes == [(1, False), (2, False), (3, True)]
    assert done.exit_status == 0
    [row] = project.ledger("plan", "--json").document["shards"]
    assert len(row["attempts"]) == 3


def test_no_more_attempts_are_made_than_policy_counts_over_all_runs(driven):
    """Else a third call would end green, and verify would reject what it made."""
    project = driven(config({"a": FLAKY, "b": "true"}, "{max_attempts: 2}"))

    done = project.run(retries=5)
    again = project.run(everything=True)

    assert [len(done.results[key]) for key in done.results if key.name == "a"] == [2]
    assert (done.exit_status, again.exit_status) == (1, 1)
    assert [(str(key), fault.code) for key, fault in again.faults.items()] == [("a", "attempts-used-up")]
    assert project.ran() == ["x", "x"]
    assert any("policy.max_attempts allows 2 attempts" in text for text in project.watch.heard)


def test_a_run_is_no_success_where_verify_counts_too_many_attempts(driven):
    project = driven(config({"a": FLAKY}, "{max_attempts: 2}"))
    for status in (1, 1, 0):
        project.ledger("record", "--shard", "a", expect=status)

    done = project.run()

    assert project.verify() == ("failed", {"too-many-attempts"})
    assert (done.exit_status, [str(key) for key in done.overdrawn], done.results) == (1, ["a"], {})


def test_an_interrupted_attempt_uses_none_up(driven):
    """It is kept and listed as an attempt (R18), and says nothing of the tests: policy counts those that do."""
    project = driven(config({"a": "echo x >> $OUT/ran; test -e $OUT/go || sleep 60"}, "{max_attempts: 1}"))

    def interrupt_once_it_runs() -> None:
        end = time.monotonic() + 60
        while not project.ran() and time.monotonic() < end:
            time.sleep(0.02)
        if project.ran():
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt_once_it_runs)
    thread.start()
    interrupted = project.run()
    thread.join(60)
    (project.out / "go").touch()

    done = project.run()

    assert (interrupted.exit_status, done.exit_status) == (130, 0)
    [row] = project.ledger("plan", "--json").document["shards"]
    assert len(row["attempts"]) == 2
    assert "2 attempts (1 interrupted)" in project.ledger("plan").out
    assert project.verify()[0] == "passed"
    assert project.ledger("flaky", "--json").document == []


# --- beside each other ------------------------------------------------------------------------------------------

MEET = "touch $OUT/{0}; n=0; until test -e $OUT/{1}; do n=$((n+1)); test $n -lt 600 || exit 1; sleep 0.05; done"


def test_jobs_run_at_the_same_time(driven):
    """Each waits for the other, so that one after the other both would fail."""
    project = driven(config({"a": MEET.format("a", "b"), "b": MEET.format("b", "a")}))

    assert project.run(jobs=2).exit_status == 0


def test_two_shards_that_write_one_report_never_run_at_the_same_time(driven):
    """Else the report of the one that passes could be read as that of the one that writes none."""
    shard = "{paths: [src], command: [sh, src/%s.sh], results: {junit: %s}}"
    good = 'sleep 0.5; echo \'<testsuite><testcase classname="a" name="t"/></testsuite>\' > report.xml; sleep 0.5'
    text = f"  good: {shard % ('good', 'report.xml')}\n  idle: {shard % ('idle', './report.xml')}\n"
    project = driven(
        f"version: 1\nrepository: demo\nshards:\n{text}",
        {"src/good.sh": good, "src/idle.sh": "sleep 1\n", ".gitignore": "report.xml\n"},
    )

    done = project.run(jobs=2)

    assert project.plan()["good"] == ("fresh", "recorded")
    [idle] = done.results[next(key for key in done.results if key.name == "idle")]
    assert {"report-missing", "report-stale"} & set(idle.receipt.reasons)
    spans = sorted(
        (item.receipt.session.started_at, item.receipt.session.ended_at)
        for items in done.results.values()
        for item in items
    )
    assert spans[0][1] <= spans[1][0]


def test_the_longest_comes_first_by_the_durations_of_the_ledger(driven):
    project = driven(config({"quick": "echo quick >> $OUT/order", "slow": "sleep 1; echo slow >> $OUT/order"}))
    project.run()
    project.repo.commit({"src/a.py": "2\n"})
    (project.out / "order").unlink()

    project.run()

    assert (project.out / "order").read_text().split() == ["slow", "quick"]


def test_files_that_come_and_go_beside_a_shard_make_it_wait_and_not_dirty(driven):
    """A run looks at the tree before it starts; what another run leaves about meanwhile is not in the commit."""
    mess = "touch src/mess; touch $OUT/on; sleep 1; rm src/mess"
    late = "n=0; until test -e $OUT/on; do n=$((n+1)); test $n -lt 600 || exit 1; sleep 0.05; done"
    project = driven(config({"mess": mess, "late": late, "last": "true"}))

    done = project.run(jobs=2)

    assert done.exit_status == 0
    assert not any(item.receipt.repo.dirty for items in done.results.values() for item in items)


def test_a_tree_that_a_shard_made_dirty_ends_the_run_before_more_is_in_vain(driven):
    project = driven(config({"a": "echo a >> $OUT/ran; touch src/left", "b": "echo b >> $OUT/ran"}))

    done = project.run()

    assert (done.stopped.code, done.exit_status) == ("became-dirty", 2)
    assert "src/left" in done.stopped.message
    assert len(project.ran()) == len(done.left) == 1
    assert project.watch.begun == project.ran(), "what does not begin is not said to"
    assert "nothing more is started, b is left: the work tree is not the commit's" in project.watch.heard[-1]


def test_a_tracked_file_that_the_last_shard_changed_is_named_though_nothing_waits_any_more(driven):
    project = driven(config({"a": "echo 2 > src/a.py"}))

    done = project.run()

    assert (done.stopped.code, done.exit_status, done.left) == ("became-dirty", 2, ())
    assert "src/a.py" in done.stopped.message
    assert project.plan() == {"a": ("stale", "dirty")}


def test_a_file_that_the_last_shard_left_is_named_and_takes_nothing_from_what_is_green(driven):
    project = driven(config({"a": "touch src/left"}))

    done = project.run()

    assert (done.stopped, done.exit_status, done.merge.outcome) == (None, 0, "passed")
    assert "src/left" in project.watch.heard[-1]
    assert "[became-dirty]" in project.watch.heard[-1]


def test_r18_a_head_that_moves_ends_the_run_and_commits_are_never_mixed(driven):
    project = driven(
        config({"a": "git commit -q --allow-empty -m moved", "b": "git commit -q --allow-empty -m m"})
    )

    done = project.run()

    assert (done.stopped.code, len(done.left)) == ("head-moved", 1)
    assert len(project.watch.begun) == 1, "what does not begin is not said to"
    assert "nothing more is started" in project.watch.heard[-1]
    [[item]] = done.results.values()
    assert "head-moved" in item.receipt.reasons
    assert not item.receipt.is_green


def test_a_second_driver_is_refused_while_the_first_lives(driven):
    project = driven(config({"a": "true"}))

    with sole_driver(project.path / ".git/gitledger/run.lock"), pytest.raises(LedgerError) as caught:
        project.run()

    assert caught.value.code == "run-in-progress"
    assert project.run().exit_status == 0


# --- what the machine has to give -------------------------------------------------------------------------------


def test_more_memory_than_there_is_is_the_machines_fault_and_other_shards_run(driven):
    project = driven(config({"a": "true ##, memory: 900TiB", "c": "true ##, memory: 900TiB", "b": "true"}))

    done = project.run()

    assert {(str(key), fault.code) for key, fault in done.faults.items()} == {
        ("a", "machine-not-ready"),
        ("c", "machine-not-ready"),
    }
    assert done.exit_status == 99
    said = project.ledger("run", expect=99)
    assert "git ledger: not run a: it declares 921600.0 GiB of memory, and " in said.err
    rows = [line.split()[-1] for line in said.out.splitlines() if " not run " in line]
    assert rows.count("[machine-not-ready]") == 2
    assert said.out.count("can be had here") == 1, "told once for both"
    never = ("stale", "never-recorded")
    assert project.plan() == {"a": never, "c": never, "b": ("fresh", "recorded")}


def test_shards_that_declare_more_than_fits_together_run_one_after_the_other(driven):
    free = memory_now().free_bytes * 6 // 10
    alone = f"mkdir $OUT/busy && sleep 0.3 && rmdir $OUT/busy ##, memory: {free}B"
    project = driven(config({"a": alone, "b": alone}))

    assert project.run(jobs=2).exit_status == 0
    assert any("of memory" in why for why in project.watch.waited)


def test_gpus_are_handed_out_apart_and_stand_in_the_receipts(driven, smi):
    project = driven(
        config(
            {
                "a": MEET.format("a", "b") + "; echo $CUDA_VISIBLE_DEVICES >> $OUT/ran ##, gpus: 1",
                "b": MEET.format("b", "a") + "; echo $CUDA_VISIBLE_DEVICES >> $OUT/ran ##, gpus: 1",
            }
        ),
        PATH=f"{smi.folder}{os.pathsep}{os.environ['PATH']}",
    )

    done = project.run(jobs=2)

    assert project.ran() == ["0", "1"]
    gpus = [item.receipt.environment.gpu for items in done.results.values() for item in items]
    assert {gpu.uuids for gpu in gpus} == {(smi.FIRST,), (smi.SECOND,)}
    assert done.exit_status == 0


def test_one_gpu_is_given_to_one_shard_at_a_time(driven, smi):
    alone = "mkdir $OUT/busy && sleep 0.3 && rmdir $OUT/busy ##, gpus: 2"
    project = driven(
        config({"a": alone, "b": alone, "c": alone}), PATH=f"{smi.folder}{os.pathsep}{os.environ['PATH']}"
    )

    assert project.run(jobs=3).exit_status == 0


def test_r12_a_device_that_is_not_clean_yet_is_waited_for(driven, smi):
    smi.used(40_000)
    project = driven(config({"a": "true ##, gpus: 2"}), PATH=f"{smi.folder}{os.pathsep}{os.environ['PATH']}")
    smi.busy(smi.FIRST)
    threading.Timer(1.5, smi.idle).start()

    done = project.run(wait_s=60.0)

    assert done.exit_status == 0
    assert any("computed on by" in why for why in project.watch.waited)


def test_r12_a_device_that_stays_unclean_is_an_infrastructure_casualty_and_no_failure(driven, smi):
    smi.busy(smi.SECOND)
    project = driven(
        config({"a": "true ##, gpus: 2", "b": "true"}), PATH=f"{smi.folder}{os.pathsep}{os.environ['PATH']}"
    )

    done = project.run(wait_s=0.5)

    [fault] = done.faults.values()
    assert (fault.code, done.exit_status, done.red) == ("machine-not-ready", 99, ())
    assert "GPU 1" in fault.message
    assert project.plan()["a"] == ("stale", "never-recorded")


def test_a_machine_without_gpus_says_so_at_once(driven):
    project = driven(config({"a": "true ##, gpus: 1"}), CUDA_VISIBLE_DEVICES="")
    began = time.monotonic()

    done = project.run(wait_s=600.0)

    assert done.exit_status == 99
    assert time.monotonic() - began < 60


# --- the command ------------------------------------------------------------------------------------------------


def test_the_command_says_what_came_of_it_in_lines_and_as_a_document(driven):
    project = driven(config({"good": "true", "bad": "echo seen; exit 1"}))

    said = project.ledger("run", "--jobs", "2", "--tail", expect=1)
    document = project.ledger("run", "good", "--all", "--json", expect=1).document

    page = (Path(__file__).parents[2] / "docs/how-to/run.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page.partition("## As a document")[2].partition("\n## ")[0], re.M)
    assert {key for row in rows for key in re.findall(r"`(\w+)`", row)} == set(document)
    assert "bad | seen" in said.out
    assert "git ledger: failed bad in" in said.err
    assert "bad   stale  not-green  ran" in said.out
    assert (document["exit_status"], [item["name"] for item in document["ran"]]) == (1, ["good"])


@pytest.mark.parametrize(
    ("args", "code"),
    [(("x",), "unknown-shard"), (("--stall", "soon"), "bad-duration"), (("--jobs", "0"), "usage")],
)
def test_words_that_make_no_sense_are_one_clear_error(driven, args, code):
    project = driven(config({"a": "true"}))

    said = project.ledger("run", *args, expect=2)

    assert f"[{code}]" in said.err
    assert len(said.err.splitlines()) == 1


def test_a_configuration_without_shards_has_nothing_to_run(driven):
    project = driven("version: 1\nrepository: demo\nshards: {}\n")

    assert "[no-shards]" in project.ledger("run", expect=2).err


def test_logs_lie_in_the_git_folder_for_this_user_alone(driven):
    project = driven(config({"a": "echo said"}))
    project.run()

    log = Path(project.path, ".git/gitledger/logs/a.log")
    assert (log.read_text(), log.stat().st_mode & 0o777) == ("said\n", 0o600)
