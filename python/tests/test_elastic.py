"""Elastic jobs: ranks go on without those that are lost, each gradient counts once, and all have the same weights."""

import os
import random
import re
import signal
import time

import hosts
import pytest
from ranks import start, wait

STEPS = 20


def outcome(ended):
    """Ranks, loss and weights at the end of those that are left, by rank; these have all ended well."""
    left = [each for each in ended if each.code != -signal.SIGKILL]
    assert all(each.code == 0 for each in left), [each.err[-2000:] for each in left]
    found = [re.search(r"^rank (\d) of (\d) loss (\S+) sum (\S+) bits (\S+)$", each.out, re.M) for each in left]
    assert all(found), [each.out for each in left]
    assert [int(each[1]) for each in found] == list(range(len(left)))
    assert all(int(each[2]) == len(left) for each in found)
    return [each.groups()[2:] for each in found]


def reference(size, killed, at, rule, backwards=1):
    """Plain loops in one process: until the last backward of step `at` all ranks' gradients, afterwards those of the others."""
    import torch
    from scripts.elastic import batch

    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 1))
    make = {"sgd": lambda p: torch.optim.SGD(p, lr=0.05), "adam": lambda p: torch.optim.Adam(p, lr=0.01)}[rule]
    optimizer = make(model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        for number in range(backwards):
            there = [member for member in range(size) if member != killed or (step, number) < (at, backwards - 1)]
            losses = [(model(batch(member, step + number * STEPS)) - 1).square().mean() for member in there]
            (sum(losses) / len(there)).backward()
        optimizer.step()
    return sum(p.detach().double().sum().item() for p in model.parameters())


@pytest.mark.parametrize(
    "rule, way",
    [
        ("adam", ()),
        ("adam", ("update=torch",)),
        ("sgd", ("wire=sockets",)),
        ("sgd", ("mode=ps",)),
        ("adam", ("mode=ps", "wire=sockets")),
        ("sgd", ("compress=fp16",)),
    ],
)
def test_the_others_go_on_with_the_mean_of_those_that_are_left(rule, way):
    ended = wait(start("elastic.py", 3, STEPS, 1, 5, f"rule={rule}", *way))
    assert ended[1].code == -signal.SIGKILL
    first, second = outcome(ended)
    assert first == second
    tolerance = 2e-2 if "compress=fp16" in way else 1e-4
    assert float(first[1]) == pytest.approx(reference(3, 1, 5, rule), abs=tolerance)
    assert "rank 1 (pid" in ended[0].err and "is gone: 2 ranks go on" in ended[0].err


@pytest.mark.parametrize("mode", ["allreduce", "ps"])
def test_the_others_leave_without_one_that_is_lost_at_the_end(mode):
    ended = wait(start("elastic.py", 3, STEPS, 1, STEPS, f"mode={mode}"))
    assert ended[1].code == -signal.SIGKILL
    for each in (ended[0], ended[2]):
        assert each.code == 0, each.err[-2000:]
        assert re.search(r"^rank \d of \d loss ", each.out, re.M)


@pytest.mark.parametrize("update", ["own", "torch"])
def test_who_is_an_exchange_behind_takes_its_means_and_makes_the_update(update):
    """Rank 1 is lost in the second exchange of a step, while rank 2 has not finished the first."""
    ended = wait(start("elastic.py", 3, STEPS, 1, 5, "backwards=2", "behind=2", "rule=sgd", f"update={update}"))
    first, second = outcome(ended)
    assert first == second
    assert float(first[1]) == pytest.approx(reference(3, 1, 5, "sgd", 2), abs=1e-4)


def test_asynchronous_workers_go_on():
    ended = wait(start("elastic.py", 3, STEPS, 1, 5, "mode=ps", "consistency=async", "servers=2"))
    first, second = outcome(ended)
    assert first == second  # shutdown() gives all the same last weights


def test_ranks_may_be_lost_one_after_the_other_down_to_one():
    processes = start("elastic.py", 3, 400, -1, -1, "pause=0.005")
    for each in processes:
        assert each.stdout.readline() == "training\n"
    processes[2].kill()
    assert "2 ranks go on" in processes[0].stderr.readline()
    processes[1].kill()
    ended = wait(processes)
    assert len(outcome(ended)) == 1
    assert "1 rank goes on" in ended[0].err


@pytest.mark.parametrize("way", ["update=own", "update=torch"])
def test_a_rank_may_be_lost_at_any_moment(way):
    """In a step, in an average, or between: nobody is more than one operation ahead, and takes the others along."""
    seed = int(os.environ.get("SYNCOPATE_TEST_SEED", 1))
    for attempt in range(2):
        moment = random.Random(seed + attempt).random() * 0.3
        processes = start("elastic.py", 3, 2000, -1, -1, way, "rule=adam")
        for each in processes:
            assert each.stdout.readline() == "training\n"
        time.sleep(moment)  # any moment will do
        processes[2].kill()
        results = outcome(wait(processes))
        assert all(result == results[0] for result in results), (attempt, moment)


def test_a_rank_that_stands_still_is_left_behind_and_told_so():
    processes = start("elastic.py", 3, 2000, -1, -1, "timeout=3", "pause=0.005")
    for each in processes:
        assert each.stdout.readline() == "training\n"
    os.kill(processes[1].pid, signal.SIGSTOP)
    assert "2 ranks go on" in processes[0].stderr.readline()
    os.kill(processes[1].pid, signal.SIGCONT)
    late = processes.pop(1)
    _, err = late.communicate(timeout=60)
    assert late.returncode == 1 and "the others go on without this rank, rank 1, which came too late" in err
    assert len(outcome(wait(processes))) == 2


def test_rank_0_which_has_the_store_cannot_be_lost():
    ended = wait(start("elastic.py", 3, STEPS, 0, 5), 60)
    for each in ended[1:]:
        assert each.code == 1 and "rank 0 (pid" in each.err and "is gone" in each.err, each.err[-1000:]


def test_a_rank_that_has_started_servers_cannot_be_lost():
    ended = wait(start("elastic.py", 2, STEPS, 0, 5, "mode=ps"), 60)
    assert ended[1].code == 1 and re.search(r"(rank|server) 0 \(pid", ended[1].err), ended[1].err[-1000:]


@pytest.mark.skipif(bool(hosts.why_not()), reason=hosts.why_not())
def test_a_host_may_be_lost(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)
    with hosts.Hosts() as two:
        environment = {"SYNCOPATE_SECRET_FILE": str(secret)}
        processes = two.start("elastic.py", [0, 0, 1], 1500, -1, -1, "timeout=4", "pause=0.005", **environment)
        for each in processes:
            assert each.stdout.readline() == "training\n"
        two.cut()
        lost = processes.pop()
        results = outcome(wait(processes))
        assert results[0] == results[1]
        lost.communicate(timeout=60)
        assert lost.returncode == 1  # it can reach nobody: it does not go on by itself
