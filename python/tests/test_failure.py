"""A rank that is gone makes the others raise PeerLost, at once where a process has ended, else within the deadline."""

import os
import re
import signal

import pytest

from ranks import HOOKS_RAISE_RUNTIME_ERRORS, run, start, wait

# What "at once" may take on a busy machine; the deadline that would end the wait otherwise is 30 s.
AT_ONCE = 10.0


def raised(text):
    match = re.search(r"PeerLost at (\S+) rank=(\S+) step=(\S+) operation=([^:]*): (.*)", text)
    assert match, text
    return match.groups()


@pytest.mark.parametrize("how, way", [("kill", "optimizer"), ("kill", "hook"), ("raise", "allreduce")])
def test_the_others_raise_at_once_where_a_rank_ends(how, way):
    ended = wait(start("losing.py", 3, how, way))
    when = float(re.search(r"^at (\S+)", ended[1].out).group(1))
    assert ended[1].code == (-signal.SIGKILL if how == "kill" else 1)
    for rank in (0, 2):
        if way == "hook" and HOOKS_RAISE_RUNTIME_ERRORS:
            assert "RuntimeError: PeerLost: rank 1 (pid" in ended[rank].err
            continue
        assert ended[rank].code == 3, ended[rank].err
        at, lost, step, operation, text = raised(ended[rank].out)
        assert float(at) - when < AT_ONCE
        assert lost == "1" and "rank 1 (pid" in text and "is gone" in text
        if way == "optimizer":
            assert step == "5" and operation == "exchanging gradients"


def test_children_of_a_data_loader_do_not_hide_the_loss():
    # They inherit the connections of rank 1, and live for seconds after it.
    ended = wait(start("losing.py", 2, "kill", "optimizer", 30, 2))
    when = float(re.search(r"^at (\S+)", ended[1].out).group(1))
    at, lost, *_ = raised(ended[0].out)
    assert lost == "1" and float(at) - when < AT_ONCE


def test_a_rank_that_stands_still_is_given_up_after_the_timeout():
    processes = start("losing.py", 2, "stop", "optimizer", 2)
    try:
        out, err = processes[0].communicate(timeout=60)
    finally:
        os.kill(processes[1].pid, signal.SIGKILL)
        processes[1].communicate()
    assert processes[0].returncode == 3, err
    _, lost, step, _, text = raised(out)
    assert (lost, step) == ("1", "5") and "has not come in time" in text


@pytest.mark.parametrize("wire", ["shm", "sockets"])
@pytest.mark.parametrize("count, options", [(100, []), (20, ["update=torch"]), (20, ["mode=ps"])])
def test_many_jobs_after_each_other_leave_no_thread_no_descriptor_no_child_and_no_memory(wire, count, options):
    """A job has some MiB, of which the C library may keep one for the next; twenty would be twenty times as many. With an
    arena for each thread it would keep more the busier the machine is."""
    for each in wait(start("cycles.py", 2, count, wire, *options, MALLOC_ARENA_MAX="1"), 400):
        assert each.code == 0, each.err
        assert "threads +0, descriptors +0, children +0" in each.out, each.out
        assert int(each.out.split("bytes ")[1]) < 12 << 20, each.out
