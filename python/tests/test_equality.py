"""What our sums lead to has the bits of DistributedDataParallel over gloo. With two ranks, since a mean of two rounds the
same in whatever order it is made."""

import pytest
import torch

from ranks import run

STEPS = 60


def train(folder, size, jobs):
    """The results of each job, by rank. All jobs run one after the other in the same processes."""
    file = folder / "results"
    run("training.py", size, file, STEPS, *jobs)
    return [torch.load(f"{file}.{rank}", weights_only=True) for rank in range(size)]


def assert_same_bits(one, other, what="weights"):
    assert one[what].keys() == other[what].keys()
    for name, tensor in one[what].items():
        assert torch.equal(tensor, other[what][name]), name


@pytest.mark.parametrize("model", ["mlp", "conv"])
def test_hook_and_torchs_update_have_the_bits_of_ddp(tmp_path, model):
    ways = {"ddp": "ddp/{}", "hook": "hook/{}", "ours": "optimizer/{}/update=torch", "cut": "optimizer/{}/bucket_mb=0.002"}
    ways["sockets"] = "optimizer/{}/wire=sockets"
    ways["hook by sockets, cut"] = "hook/{}/wire=sockets/bucket_mb=0.002"
    jobs = {
        (way, optimizer): form.format(f"{model}/{optimizer}")
        for optimizer in ("sgd", "momentum", "adam")
        for way, form in ways.items()
    }
    results = train(tmp_path, 2, jobs.values())
    for (way, optimizer), job in jobs.items():
        for rank in range(2):
            ddp, ours = results[rank][jobs["ddp", optimizer]], results[rank][job]
            assert_same_bits(ours, ddp)
            assert ours["losses"] == ddp["losses"], job
            if rank == 0:  # whose buffers DistributedDataParallel gives to all, and sy.broadcast_buffers where asked
                assert_same_bits(ours, ddp, "buffers")
    a, b = results[0][jobs["ddp", "sgd"]], results[1][jobs["ddp", "sgd"]]
    assert_same_bits(a, b)
    assert a["losses"] != b["losses"]  # of batches of their own
    moved = results[0][jobs["ddp", "sgd"]]["weights"], results[0][jobs["ddp", "adam"]]["weights"]
    assert any(not torch.equal(one, other) for one, other in zip(moved[0].values(), moved[1].values()))
