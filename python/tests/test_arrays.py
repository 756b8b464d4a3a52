"""syncopate.numpy: plain arrays, without torch."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import syncopate.numpy as sy

from ranks import free_port, run, start, wait

EXAMPLE = pathlib.Path(__file__).parents[1] / "examples" / "dlpack.py"


@pytest.mark.parametrize("wire", ["shm", "sockets"])
def test_what_two_ranks_do_with_arrays(wire):
    for each in run("arrays.py", 2, wire):
        assert "all is as it should be" in each.out


@pytest.mark.parametrize("rank, said", [(0, "no word from rank 1"), (1, "rank 0 does not listen")])
def test_a_rank_that_does_not_come_is_named(rank, said):
    script = "import syncopate.numpy as sy\ntry: sy.init(timeout=0.5)\nexcept Exception as error: print(error)"
    told = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, timeout=60)
    assert said in ended.stdout, ended.stdout + ended.stderr


@pytest.fixture
def job():
    sy.init()
    yield
    sy.shutdown()


def refused(part, call, *arguments, kind=ValueError, **options):
    with pytest.raises(kind) as raised:
        call(*arguments, **options)
    assert part in str(raised.value) and "\n" not in str(raised.value), raised.value


def test_what_cannot_work_is_refused(job):
    floats = np.ones(3, np.float32)
    refused("only float32", sy.allreduce, np.ones(3))
    refused("'mean' or 'sum'", sy.allreduce, floats, "max")
    refused("0 to 0", sy.broadcast, floats, 1)
    refused("may be written", sy.broadcast, [1.0])
    refused("there are no weights", sy.Strategy, {})
    refused("has no elements", sy.Strategy, {"w": np.ones((0, 3), np.float32)})
    refused("'allreduce' or 'ps'", sy.Strategy, {"w": floats}, mode="gossip")
    refused("is for mode='ps'", sy.Strategy, {"w": floats}, consistency="async")
    refused("must be sgd", sy.Strategy, {"w": floats}, optimizer="lion")
    refused("no option 'speed'", sy.Strategy, {"w": floats}, speed=3)
    strategy = sy.Strategy({"w": floats})
    refused("must be of ['w']", strategy.step, {"v": floats}, 0.1)
    refused("must be (3,)", strategy.step, {"w": np.ones(4, np.float32)}, 0.1)
    refused("once a process", sy.init, kind=sy.SyncopateError)


def test_torchs_own_store_is_refused(monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    refused("torchrun has taken MASTER_PORT", sy.init)


def test_arrays_of_others_come_by_dlpack(job):
    torch = pytest.importorskip("torch")
    assert sy.allreduce(torch.ones(2, 2)).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    strategy = sy.Strategy({"w": torch.ones(2, 2)})
    assert strategy.step({"w": torch.full((2, 2), 2.0)}, 0.25)["w"].tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_the_example_learns():
    ended = wait(start(str(EXAMPLE), 2))
    for each in ended:
        assert each.code == 0, each.err
        assert "accuracy 1.0" in each.out or "accuracy 0.9" in each.out, each.out
