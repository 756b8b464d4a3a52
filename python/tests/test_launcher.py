"""run_experiment -- python SCRIPT: modes, measurements and ends of a script that knows nothing of its launcher."""

import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
from ranks import DEADLINE, SCRIPTS

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = os.environ.get("SYNCOPATE_RUN_EXPERIMENT") or next(map(str, ROOT.glob("build/*/syncopate")), None)
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="no run_experiment: ./run_experiment --help builds it, or name one by SYNCOPATE_RUN_EXPERIMENT"
)


class Run:
    """A run of launched.py, or another script, with these words, and its folder of results."""

    def __init__(self, folder, *flags, script, file=SCRIPTS / "launched.py"):
        self.folder = folder / "run"
        command = [sys.executable, str(file), *map(str, script)]
        self.process = subprocess.Popen(
            [PROGRAM, *flags, f"--output={self.folder}", "--", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, code):
        try:
            self.out, self.err = self.process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        logs = "\n".join(log.read_text() for log in self.folder.glob("logs/*.log"))
        assert self.process.returncode == code, f"{self.out}\n{self.err}\n{logs}"
        return self

    def rows(self, table):
        with open(self.folder / table, newline="") as file:
            return list(csv.DictReader(file))

    def summary(self):
        return json.loads((self.folder / "summary.json").read_text())

    def processes(self):
        """Those that its script runs in; servers are children of theirs, and in the same groups."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                environment, state = (entry / "environ").read_text(errors="replace"), (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            is_dead = state.rsplit(")", 1)[1].split()[0] == "Z"
            if f"SYNCOPATE_STEP_FILE={self.folder}/" in environment and not is_dead:
                found.append(int(entry.name))
        return found

    def wait_for_steps(self):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if (self.folder / "steps.csv").exists() and len(self.rows("steps.csv")) > 0:
                return
            assert self.process.poll() is None, "it has ended"
            time.sleep(0.05)
        raise AssertionError("no step within the deadline")

    def expect_nobody_left(self):
        end = time.monotonic() + DEADLINE
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
        assert self.processes() == []


SEES_UPDATES = torch.__version__ >= "2"  # when an optimizer has made its step


@pytest.mark.parametrize(
    "way",
    ["own", "torch", pytest.param("hook", marks=pytest.mark.skipif(not SEES_UPDATES, reason="it came with PyTorch 2.0"))],
)
def test_steps_are_measured_by_phase_whoever_makes_the_update(tmp_path, way):
    run = Run(tmp_path, "--mode=allreduce", "--workers=2", "--warmup-steps=2", script=[way, 20]).end(0)
    steps = run.rows("steps.csv")
    assert len(steps) == 40
    for row in steps:
        parts = [float(row[name]) for name in ("data_us", "forward_us", "backward_us", "exposed_wait_us", "optimizer_us")]
        assert sum(parts) <= float(row["total_us"]) + 5, row
        assert float(row["forward_us"]) > 0 and float(row["backward_us"]) > 0
        assert row["samples"] == "16"
        assert 0 < float(row["loss"]) < 10
        assert int(row["bytes_out"]) > 0
    assert run.summary()["parameters"] == (0 if way == "hook" else 20 * 30 + 30 + 60 + 30 * 2 + 2)
    assert 0.4 < run.summary()["final_test_accuracy"] <= 1
    assert "final_test_loss" in run.summary() and run.summary()["final_test_loss"] is None, "it was not said"


@pytest.mark.parametrize("way", ["own", "torch"])
def test_each_exchange_of_a_step_is_counted(tmp_path, monkeypatch, way):
    flags = ["--mode=allreduce", "--workers=2", "--transport=sockets", "--shape=20mbit", "--warmup-steps=2"]
    once = Run(tmp_path / "once", *flags, script=[way, 10]).end(0)
    monkeypatch.setenv("BACKWARDS", "3")
    thrice = Run(tmp_path / "thrice", *flags, script=[way, 10]).end(0)
    rows = [(row, other) for row, other in zip(once.rows("steps.csv"), thrice.rows("steps.csv")) if int(row["step"]) > 0]
    assert len(rows) == 18  # the first step has what ranks say when they connect, too
    measured, all_parts = 0.0, 0.0
    for row, other in rows:
        assert int(other["bytes_out"]) == 3 * int(row["bytes_out"]) and other["samples"] == "48"
        assert float(other["exposed_wait_us"]) > 2 * 8 / 20 * int(row["bytes_out"]), "more than two exchanges take on this link"
        parts = sum(float(other[name]) for name in ("data_us", "forward_us", "backward_us", "exposed_wait_us", "optimizer_us"))
        assert parts <= float(other["total_us"]) + 5
        measured, all_parts = measured + float(other["total_us"]), all_parts + parts
    assert all_parts > 0.75 * measured, "none of the three exchanges is left out"


@pytest.mark.skipif(SEES_UPDATES, reason="PyTorch before 2.0 alone has none")
def test_the_hook_is_refused_where_torch_does_not_say_when_a_step_has_ended(tmp_path):
    run = Run(tmp_path, "--mode=allreduce", "--workers=2", script=["hook", 20]).end(5)
    assert "use PyTorch 2.0 or later" in run.err


def test_modes_are_compared_on_an_unchanged_script(tmp_path):
    flags = ["compare", "--workers=2", "--modes=allreduce,ps:sync,ps:async", "--warmup-steps=2", "--repeat=2"]
    run = Run(tmp_path, *flags, script=["own", 30]).end(0)
    rows = run.rows("comparison.csv")
    accuracy = {(row["label"], row["round"]): row["final_test_accuracy"] for row in rows}
    assert len(accuracy) == 6
    for each in ("0", "1"):
        assert accuracy["allreduce", each] == accuracy["ps:sync", each], "the same updates, bit for bit"
    assert accuracy["allreduce", "0"] != accuracy["allreduce", "1"], "each round has a seed of its own"


@pytest.mark.parametrize("mode", ["--mode=allreduce", "--mode=ps"])
def test_a_thin_link_holds_each_step_up(tmp_path, mode):
    run = Run(tmp_path, mode, "--workers=2", "--shape=1mbit", "--warmup-steps=2", script=["own", 10]).end(0)
    for row in run.rows("steps.csv"):
        assert float(row["total_us"]) > 8 * int(row["bytes_out"]), "1 Mb/s is a bit a microsecond"
        assert int(row["bytes_out"]) > 2000


def events_of(run):
    trace = json.loads((run.folder / "trace.json").read_text())
    assert trace["otherData"]["dropped"] == trace["otherData"]["unjoined"] == 0
    return [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]


@pytest.mark.parametrize(
    "flags, way, messages",
    [
        (["--mode=allreduce"], "own", {"collective operation": 6, "update": 6}),
        (["--mode=allreduce", "--transport=sockets"], "torch", {"update": 6, "send to rank 1": 6, "receive from rank 1": 6}),
        (["--mode=ps", "--servers=2"], "own", {"update chunk 0": 12, "push of worker 1, chunk 0": 6, "answer, chunk 0": 12}),
    ],
)
def test_a_trace_shows_what_a_step_is_made_of(tmp_path, flags, way, messages):
    run = Run(tmp_path, *flags, "--workers=2", "--warmup-steps=2", "--trace=5:7", script=[way, 20]).end(0)
    names = events_of(run)
    for phase in ("step 5", "step 6", "step 7"):
        assert names.count(phase) == 2, "one on each worker"
    for phase in ("data", "forward", "backward", "synchronise"):
        assert names.count(phase) == 6
    assert "step 4" not in names and "step 8" not in names
    assert {name: names.count(name) for name in messages} == messages


def test_a_trace_of_the_last_steps_is_told_at_the_end_and_of_later_ones_refused(tmp_path):
    run = Run(tmp_path, "--mode=allreduce", "--workers=2", "--warmup-steps=2", "--trace=18:30", script=["own", 20]).end(0)
    assert [name for name in events_of(run) if name.startswith("step")] == ["step 18", "step 18", "step 19", "step 19"]
    other = Run(tmp_path / "b", "--mode=allreduce", "--workers=2", "--warmup-steps=2", "--trace=30:40", script=["own", 20])
    assert "--trace=30:40: the program has not told of steps 30 to 40" in other.end(0).err


def test_servers_tell_what_they_have_done(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDTH", "300")  # some chunks
    flags = ["--mode=ps", "--servers=2", "--workers=2", "--chunk-bytes=4096", "--warmup-steps=2"]
    run = Run(tmp_path, *flags, script=["own", 20]).end(0)
    steps, servers = run.rows("steps.csv"), run.summary()["servers"]
    assert [each["server"] for each in servers] == [0, 1]
    assert sum(each["bytes_in"] for each in servers) == sum(int(row["bytes_out"]) for row in steps) > 0
    assert sum(each["bytes_out"] for each in servers) == sum(int(row["bytes_in"]) for row in steps)
    for each in servers:
        assert each["pushes"] > 0 and each["pushes"] % 40 == 0, "each chunk once a step and worker"
        assert 0 < each["busy_seconds"] <= each["serving_seconds"] < DEADLINE
    why = subprocess.run([PROGRAM, "why", str(run.folder)], capture_output=True, text=True, check=True, timeout=DEADLINE)
    assert "2 servers" in why.stdout, why.stdout
    assert "how busy each server was" not in why.stdout and "bytes of each server" not in why.stdout, "it is recorded"


@pytest.mark.parametrize("mode", [["--mode=allreduce"], ["--mode=ps", "--servers=2"]])
def test_eight_workers_share_the_cores(tmp_path, mode):
    run = Run(tmp_path, *mode, "--workers=8", "--transport=sockets", script=["own", 10]).end(0)
    assert len(run.rows("steps.csv")) == 80


@pytest.mark.parametrize("mode", [["--mode=allreduce"], ["--mode=ps", "--consistency=async"]])
@pytest.mark.parametrize("how, words", [("raises", "ValueError: the data of rank 1 is gone"), ("dies", "signal 9")])
def test_who_failed_is_named_and_nobody_is_left(tmp_path, mode, how, words):
    run = Run(tmp_path, *mode, "--workers=2", script=["own", 10, how]).end(5)
    assert "worker 1 " in run.err and words in run.err
    assert len(run.rows("steps.csv")) == 20, "what was measured is kept"
    run.expect_nobody_left()


def test_a_stopped_rank_is_given_up_at_the_deadline(tmp_path):
    run = Run(tmp_path, "--mode=allreduce", "--workers=2", "--timeout=2", script=["own", 10, "stops"]).end(5)
    assert "PeerLost: rank 1" in run.err
    run.expect_nobody_left()


@pytest.mark.parametrize("mode", [["--mode=allreduce"], ["--mode=ps", "--consistency=sync"]])
@pytest.mark.parametrize("how, said", [("dies", "worker 1 was killed by signal 9 (Killed); the others go on")])
def test_an_elastic_run_goes_on_without_a_rank(tmp_path, mode, how, said):
    run = Run(tmp_path, *mode, "--workers=3", "--elastic", "--warmup-steps=2", script=["own", 10, how]).end(0)
    assert said in run.err and "2 ranks go on" in (run.folder / "logs" / "worker-0.log").read_text()
    assert run.summary()["lost_workers"] == [1]
    assert run.summary()["final_test_accuracy"] is not None
    run.expect_nobody_left()


def test_an_elastic_run_leaves_nobody_that_stands_still(tmp_path):
    run = Run(tmp_path, "--mode=allreduce", "--workers=3", "--elastic", "--timeout=3", script=["own", 10, "stops"]).end(0)
    assert "worker 1 was killed: the others had gone on without it, and ended" in run.err
    run.expect_nobody_left()


def test_an_interrupt_keeps_what_was_measured(tmp_path):
    run = Run(tmp_path, "--mode=ps", "--workers=2", script=["own", 10, "sleeps"])
    run.wait_for_steps()
    run.process.send_signal(signal.SIGINT)
    run.end(130)
    assert len(run.rows("steps.csv")) > 0
    run.expect_nobody_left()


def test_a_killed_launcher_leaves_nobody(tmp_path):
    run = Run(tmp_path, "--mode=ps", "--workers=2", script=["own", 10, "sleeps"])
    run.wait_for_steps()
    run.process.kill()
    run.process.communicate()
    run.expect_nobody_left()


DDP = SCRIPTS / "launched_ddp.py"


@pytest.mark.skipif(not SEES_UPDATES, reason="the backend needs PyTorch 2.1")
@pytest.mark.parametrize("way, samples", [("backend", "16"), ("twice", "32"), ("by-hand", "16")])
def test_steps_over_the_backend_are_measured_by_phase(tmp_path, way, samples):
    flags = ["--mode=allreduce", "--workers=2", "--warmup-steps=2", "--trace=5:6"]
    run = Run(tmp_path, *flags, script=[way, 20], file=DDP).end(0)
    steps = run.rows("steps.csv")
    assert len(steps) == 40
    for row in steps:
        parts = [float(row[name]) for name in ("data_us", "forward_us", "backward_us", "exposed_wait_us", "optimizer_us")]
        assert sum(parts) <= float(row["total_us"]) + 5, row
        assert min(float(row[name]) for name in ("forward_us", "backward_us", "exposed_wait_us", "optimizer_us")) > 0
        assert row["samples"] == samples
        assert int(row["bytes_out"]) >= 4 * 752, "its gradients"
    names = events_of(run)
    assert names.count("step 5") == names.count("step 6") == 2 and "step 7" not in names
    for phase in ("synchronise", "update"):
        assert names.count(phase) == 4


@pytest.mark.skipif(not SEES_UPDATES, reason="the backend needs PyTorch 2.1")
def test_what_gloo_does_of_a_run_is_measured_as_waiting_and_counted_apart(tmp_path):
    run = Run(tmp_path, "--mode=allreduce", "--workers=2", "--warmup-steps=2", script=["doubles", 20], file=DDP).end(0)
    steps = run.rows("steps.csv")
    assert len(steps) == 40 and all(float(row["exposed_wait_us"]) > 0 for row in steps)
    later = [int(row["bytes_out"]) for row in steps if int(row["step"]) > 0]  # the first has what construction broadcasts, too
    assert max(later) < 8 * 752, "gradients do not go by ours"
    told = re.fullmatch(r"(\d+) all_reduce; (\d+) bytes, [\d.]+ s waited", run.summary()["facts"]["gloo"])
    assert int(told[1]) >= 2 * 20 and int(told[2]) >= 20 * 8 * 752, "gradients and figures"


# What cannot be as it is asked for ends the run before it has made a step.
REFUSED = [
    (["--mode=ps"], "backend", DDP, "run_experiment asks for mode='ps', and DistributedDataParallel is allreduce: use DistributedOptimizer"),
    (["--mode=ps"], "by-hand", DDP, "run_experiment asks for mode='ps'"),
    (["--mode=allreduce", "--compress=int8"], "backend", DDP, "asks for compress='int8', which DistributedDataParallel cannot"),
    (["--mode=allreduce", "--bucket-bytes=4MiB"], "backend", DDP, "give it bucket_cap_mb=4"),
    (["--mode=allreduce", "--elastic"], "backend", DDP, "asks for elastic=True"),
    (["--mode=allreduce"], "alone", DDP, "an optimizer makes a step, and nothing of it goes by Syncopate"),
    (["--mode=ps"], "hook", SCRIPTS / "launched.py", "the hook of DistributedDataParallel is allreduce: use DistributedOptimizer"),
    (["--mode=allreduce", "--compress=int8"], "hook", SCRIPTS / "launched.py", "asks for compress='int8', which the hook"),
    (["--mode=allreduce"], "ps", SCRIPTS / "launched.py", "mode='ps' in the script, and run_experiment asks for 'allreduce'"),
    (["compare", "--modes=allreduce,ps:sync"], "backend", DDP, "asks for mode='ps'"),
    (["compare", "--modes=allreduce,ps:sync"], "hook", SCRIPTS / "launched.py", "asks for mode='ps'"),
    (["compare", "--modes=ps:sync,allreduce"], "ps", SCRIPTS / "launched.py", "mode='ps' in the script"),
    (["compare", "--modes=allreduce,ps:async"], "alone", DDP, "nothing of it goes by Syncopate"),
    (["study", "--modes=allreduce", "--vary=compress=none,int8"], "backend", DDP, "asks for compress='int8'"),
    (["compare"], "", ROOT / "python" / "examples" / "ddp_after.py", "the hook of DistributedDataParallel is allreduce"),
]


@pytest.mark.skipif(not SEES_UPDATES, reason="it came with PyTorch 2.0")
@pytest.mark.parametrize("flags, way, file, said", REFUSED)
def test_what_cannot_be_measured_or_be_as_it_is_asked_for_is_refused_before_it_trains(tmp_path, flags, way, file, said):
    run = Run(tmp_path, *flags, "--workers=2", "--warmup-steps=2", script=[way, 10] if way else [], file=file).end(2)
    assert said in run.err and run.err.count("\n") == 1, run.err
    assert not list(run.folder.rglob("steps.csv")) or all(
        len(path.read_text().splitlines()) <= 1 for path in run.folder.rglob("steps.csv")
    )
    assert "the first step is made" not in run.out
    run.expect_nobody_left()


@pytest.mark.skipif(not SEES_UPDATES, reason="the backend needs PyTorch 2.1")
def test_what_the_backend_can_be_is_compared(tmp_path):
    flags = ["study", "--workers=2", "--modes=allreduce", "--vary=transport=shm,sockets", "--warmup-steps=2", "--repeat=1"]
    run = Run(tmp_path, *flags, script=["backend", 20], file=DDP).end(0)
    assert len(run.rows("comparison.csv")) == 2
