"""run_experiment --cluster=namespaces -- python SCRIPT: the modes of a script over links that the kernel limits."""

import os
import pathlib
import signal
import time

import hosts
import pytest
from ranks import DEADLINE
from test_launcher import PROGRAM, Run
from test_launcher import pytestmark as needs_program

pytestmark = [needs_program, pytest.mark.skipif(bool(hosts.why_not()), reason=hosts.why_not())]

MARK = "SY_TEST_RUN"


@pytest.fixture
def processes(monkeypatch, tmp_path):
    """Those of the test's runs that are there: run_experiment, what it has started on hosts, and their children."""
    monkeypatch.setenv(MARK, str(tmp_path))

    def found():
        alive = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                environment = (entry / "environ").read_text(errors="replace").split("\0")
                words = (entry / "cmdline").read_text(errors="replace").split("\0")
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if f"{MARK}={tmp_path}" in environment and state != "Z" and int(entry.name) != os.getpid():
                alive[int(entry.name)] = (words, environment)
        return alive

    return found


def rank_of(processes, rank):
    """The pid of a rank's interpreter."""
    return next(
        pid
        for pid, (words, environment) in processes().items()
        if f"RANK={rank}" in environment and any(word.endswith("launched.py") for word in words[1:2])
    )


def expect_nobody_left(processes):
    end = time.monotonic() + DEADLINE
    while processes() and time.monotonic() < end:
        time.sleep(0.05)
    assert processes() == {}


def test_modes_are_compared_over_a_thin_link(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDTH", "2000")
    flags = ["compare", "--cluster=namespaces:2,link:20mbit", "--modes=allreduce,ps:sync", "--warmup-steps=2"]
    run = Run(tmp_path, *flags, "--repeat=1", script=["own", 8]).end(0)
    accuracies = {row["label"]: row["final_test_accuracy"] for row in run.rows("comparison.csv")}
    assert accuracies["allreduce"] == accuracies["ps:sync"], "the same updates, bit for bit, of the same seed"
    assert "network namespaces of this machine" in run.out


@pytest.mark.parametrize("mode", [["--mode=allreduce"], ["--mode=ps", "--consistency=sync", "--servers=2"]])
def test_a_step_takes_at_least_what_its_link_takes(tmp_path, monkeypatch, mode):
    monkeypatch.setenv("WIDTH", "2000")
    run = Run(tmp_path, *mode, "--cluster=namespaces:2,link:20mbit", "--warmup-steps=2", script=["own", 10]).end(0)
    steps = run.rows("steps.csv")
    assert len(steps) == 20
    for row in steps[4:]:
        assert float(row["forward_us"]) > 0 and float(row["backward_us"]) > 0
        # Of two servers one is on the rank's own host.
        crosses = int(row["bytes_out"]) * (0.5 if mode[0] == "--mode=ps" else 1)
        # The first kilobytes of a step find an idle link's tokens.
        assert float(row["exposed_wait_us"]) > 0.4 * 0.8 * crosses, f"20 Mb/s is 0.4 us a byte: {row}"


def test_what_was_asked_for_reaches_the_script(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDTH", "2000")

    def bytes_of(name, *flags):
        run = Run(tmp_path / name, "--mode=allreduce", "--cluster=namespaces:2", *flags, script=["own", 5]).end(0)
        return int(run.rows("steps.csv")[-1]["bytes_out"])

    assert bytes_of("int8", "--compress=int8") < 0.4 * bytes_of("float")


def test_servers_stand_on_the_hosts_of_the_ranks(tmp_path, processes):
    run = Run(tmp_path, "--mode=ps", "--servers=3", "--cluster=namespaces:2", script=["own", 10, "sleeps"])
    run.wait_for_steps()
    network = {pid: os.readlink(f"/proc/{pid}/ns/net") for pid in processes()}
    of_rank = [network[rank_of(processes, rank)] for rank in (0, 1)]
    assert len({*of_rank, network[run.process.pid]}) == 3, "each host has a network of its own"
    servers = [network[pid] for pid, (words, _) in processes().items() if words[0].endswith("syncopate-server")]
    assert sorted(servers) == sorted([of_rank[0], of_rank[1], of_rank[0]])
    run.process.send_signal(signal.SIGINT)
    run.end(130)
    expect_nobody_left(processes)


@pytest.mark.parametrize("mode", [["--mode=allreduce"], ["--mode=ps", "--servers=2"]])
def test_a_killed_worker_is_named_with_its_host(tmp_path, processes, mode):
    run = Run(tmp_path, *mode, "--cluster=namespaces:2", script=["own", 10, "dies"]).end(5)
    assert "worker 1 (host host-1) was killed by signal 9" in run.err
    assert len(run.rows("steps.csv")) == 20, "what was measured is kept"
    expect_nobody_left(processes)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_killed_run_experiment_leaves_nobody(tmp_path, processes, stopped):
    run = Run(tmp_path, "--mode=ps", "--servers=2", "--cluster=namespaces:2x2", script=["own", 10, "sleeps"])
    run.wait_for_steps()
    if stopped:
        os.kill(rank_of(processes, 0), signal.SIGSTOP)  # it cannot end itself
    run.process.kill()
    run.process.communicate()
    expect_nobody_left(processes)


def test_a_secret_is_in_no_environment_and_on_no_command_line(tmp_path, processes):
    run = Run(tmp_path, "--mode=ps", "--servers=2", "--cluster=namespaces:2", script=["own", 10, "sleeps"])
    run.wait_for_steps()
    script = rank_of(processes, 0)
    file = next(text for text in processes()[script][1] if text.startswith("SYNCOPATE_SECRET_FILE=")).partition("=")[2]
    secret = pathlib.Path(file).read_text().strip()
    assert len(secret) == 64
    for words, environment in processes().values():
        assert not any(secret in text for text in [*words, *environment])
    assert pathlib.Path(file).stat().st_mode & 0o077 == 0
    run.process.send_signal(signal.SIGINT)
    run.end(130)
    expect_nobody_left(processes)
