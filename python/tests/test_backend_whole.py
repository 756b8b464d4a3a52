"""What the backend does by gloo, what torch builds on process groups, and how waits end: beside gloo, bit for bit."""

import re
import signal

import pytest
import torch

from ranks import run, start, wait

if torch.__version__ < "2.5":
    pytest.skip("what is built on process groups here came with PyTorch 2.5 and before", allow_module_level=True)

# The cases are many, and import much of torch, on a machine that may be busy.
DEADLINE = 300.0
WAITS = ["all_reduce", "all_reduce of doubles", "recv", "gather"]


@pytest.mark.parametrize("ranks", [2, 3])
def test_what_gloo_does_is_as_over_gloo_and_counted_apart(ranks):
    for each in run("backend_by_gloo.py", ranks):
        assert "all is as over gloo" in each.out


def digests(tmp_path, backend, ranks):
    (tmp_path / backend).mkdir()
    ended = wait(start("sharded.py", ranks, backend, tmp_path / backend), DEADLINE)
    for each in ended:
        assert each.code == 0, each.err
    return [dict(re.findall(r"^(\w+): ([0-9a-f]{16})$", each.out, re.MULTILINE)) for each in ended]


@pytest.mark.parametrize("ranks", [2, 4])
def test_fsdp_dtensor_checkpoints_pipelines_and_ddp_leave_gloos_bits(tmp_path, ranks):
    ours, gloos = (digests(tmp_path, backend, ranks) for backend in ("syncopate", "gloo"))
    assert len(gloos[0]) == 20
    for one, other in zip(ours, gloos):
        assert one == other


def lines(out):
    return dict(line.split(": ", 1) for line in out.splitlines() if ": " in line)


def test_an_abort_ends_every_wait():
    ended = wait(start("backend_ends.py", 2, "abort", 60))
    told = lines(ended[0].out)
    for what in WAITS:
        assert re.match(r"SyncopateError after [0-9]\.\d s: the group was aborted", told[what]), ended[0]
        assert told[f"{what}'s abort"] == "nothing was raised", "and waits for nothing itself"


@pytest.mark.parametrize("how, seconds, limit", [("timeout", 3, 3), ("set", 60, 2)])
def test_a_timeout_ends_every_wait_also_one_that_is_set_later(how, seconds, limit):
    ended = wait(start("backend_ends.py", 2, how, seconds))
    told = lines(ended[0].out)
    for what in WAITS:
        by = r"rank 1 .* has not come in time" if what == "all_reduce" else f"was not done within {limit} s"
        assert re.match(rf"PeerLost after \d+\.\d s: .*{by}", told[what]), ended[0]


def test_a_wait_may_have_a_timeout_of_its_own_and_be_waited_for_again():
    ended = wait(start("backend_ends.py", 2, "shorter", 60))
    for what in WAITS:
        assert "not done within 0.3 s; it goes on" in lines(ended[0].out)[what], ended[0]
        for each in ended:
            assert lines(each.out)[f"{what} in the end"] == "nothing was raised" and each.code == 0, each


def test_a_wait_ends_where_the_other_rank_is_killed():
    ended = wait(start("backend_ends.py", 2, "kill", 60))
    assert ended[1].code == -signal.SIGKILL
    for what in WAITS:
        assert re.match(r"PeerLost after \d\.\d s: rank 1 \(pid \d+ on .*\) is gone", lines(ended[0].out)[what]), ended[0]
