"""Parameter servers as processes: they end with the job, and with rank 0 however that ends; a lost one is named."""

import os
import re
import select
import signal

import pytest

from ranks import run, start, wait


def wait_until_it_has_ended(pid):
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    assert poll.poll(30_000), f"server {pid} still runs"
    os.close(watched)


def started(processes):
    """The servers' pids, once rank 0 has said that training goes on."""
    line = processes[0].stdout.readline()
    assert line.startswith("servers "), line + processes[0].stderr.read()
    return [int(pid) for pid in line.split()[1:]]


def test_a_lost_server_is_named_at_once_on_all_ranks():
    processes = start("serving.py", 2, 2)
    os.kill(started(processes)[1], signal.SIGKILL)
    for each in wait(processes, 60):
        assert each.code == 3, each.err
        assert re.search(r"PeerLost rank=None .*server 1 \(pid \d+ on .*\) is gone", each.out), each.out


def test_servers_end_with_a_killed_rank_0_and_the_others_raise():
    processes = start("serving.py", 2, 1)
    pids = started(processes)
    os.kill(processes[0].pid, signal.SIGKILL)
    for pid in pids:
        wait_until_it_has_ended(pid)
    ended = wait(processes, 60)
    assert ended[1].code == 3, ended[1].err
    assert re.search(r"PeerLost .*(rank 0|server 0) \(pid", ended[1].out), ended[1].out


def test_servers_end_where_another_rank_is_killed():
    processes = start("serving.py", 2, 1)
    pids = started(processes)
    os.kill(processes[1].pid, signal.SIGKILL)
    ended = wait(processes, 60)
    assert ended[0].code == 3 and "rank 1 (pid" in ended[0].out, ended[0].err
    for pid in pids:
        wait_until_it_has_ended(pid)


def test_checkpoints_go_on_bit_for_bit():
    assert all(each.out == "all go on\n" for each in run("server_checkpoints.py", 2))


def test_servers_that_run_torchs_optimizer_have_the_bits_of_ranks_that_do():
    for each in wait(start("servers_in_python.py", 2), 600):
        assert (each.code, each.out) == (0, "the same\n"), each.err


def test_an_optimizer_that_fails_on_a_server_is_shown_and_ends_all_ranks():
    ended = wait(start("servers_in_python.py", 2, "fails"), 120)
    assert "this optimizer fails" in ended[0].err, ended[0].err  # where the server's standard error goes
    for each in ended:
        assert each.code != 0 and "server 0 (pid" in each.err, each.err


@pytest.mark.parametrize("mode", ["allreduce", "ps"])
def test_who_loads_alone_is_told_within_the_deadline(mode):
    ended = wait(start("loading_alone.py", 2, mode), 60)
    assert ended[0].code == 3 and "load_state_dict()" in ended[0].out, ended[0].err
    assert ended[1].code == 3, ended[1].err
