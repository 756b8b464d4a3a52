"""What our sums lead to has the bits of DistributedDataParallel over gloo. With two ranks, since a mean of two rounds the
same in whatever order it is made."""

import pytest
import torch

from ranks import run

STEPS = 60


def train(folder, size, jobs, steps=STEPS):
    """The results of each job, by rank. All jobs run one after the other in the same processes."""
    file = folder / "results"
    run("training.py", size, file, steps, *jobs)
    return [torch.load(f"{file}.{rank}", weights_only=hasattr(torch, "compile")) for rank in range(size)]


def assert_same_bits(one, other, what="weights"):
    assert one[what].keys() == other[what].keys()
    for name, tensor in one[what].items():
        assert torch.equal(tensor, other[what][name]), name


@pytest.mark.parametrize("model", ["mlp", "conv", "transformer"])
def test_hook_and_torchs_update_have_the_bits_of_ddp(tmp_path, model):
    ways = {"ddp": "ddp/{}", "hook": "hook/{}", "ours": "optimizer/{}/update=torch", "cut": "optimizer/{}/update=torch/bucket_mb=0.002"}
    ways["sockets"] = "optimizer/{}/update=torch/wire=sockets"
    if hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):  # from PyTorch 2.1 on
        ways["backend"], ways["backend, cut"] = "backend/{}", "backend/{}/bucket_mb=0.002"
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


RULES = ("sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "sgd, up", "amsgrad", "amsgrad, decoupled")
RULES += ("adagrad, slower", "rmsprop", "rmsprop, centered", "rmsprop, momentum", "adadelta", "adamax", "radam", "lars", "lamb")
GROUPED = tuple(f"groups, {rule}" for rule in ("nesterov", "adam", "adamw", "adagrad", "rmsprop"))


def test_servers_under_sync_have_the_bits_of_our_update_under_allreduce(tmp_path):
    own = {rule: f"optimizer/mlp/{rule}/schedule=yes" for rule in RULES + GROUPED}
    ways = {"1 server": "/mode=ps", "2 servers, cut": "/mode=ps/servers=2/bucket_mb=0.01", "sockets": "/wire=sockets"}
    ways["servers by sockets"] = "/mode=ps/wire=sockets"
    own.update({model: f"optimizer/{model}/adamw" for model in ("conv", "transformer")})
    jobs = [job + way for job in own.values() for way in ("", *ways.values())]
    results = train(tmp_path, 2, jobs)
    for rule, job in own.items():
        for way in ways.values():
            for rank in range(2):
                assert_same_bits(results[rank][job + way], results[rank][job])
        assert_same_bits(results[1][job], results[0][job])


@pytest.mark.parametrize("model", ["mlp", "transformer"])
def test_two_ranks_go_where_one_process_goes_with_the_batches_of_both(tmp_path, model):
    """After 50 steps they lie apart by at most 1e-5 of the way that they have gone."""
    ways = ("", "/mode=ps", "/update=torch")
    jobs = [f"optimizer/{model}/{rule}/shares=2{way}" for rule in ("sgd", "momentum") for way in ways]
    two = train(tmp_path, 2, jobs, 50)[0]
    (one,) = train(tmp_path, 1, jobs, 50)
    for job in jobs:
        pairs = [(two[job]["weights"][name], weights) for name, weights in one[job]["weights"].items()]
        apart = sum((a - b).double().square().sum().item() for a, b in pairs) ** 0.5
        assert 0 < one[job]["moved"] and apart <= 1e-5 * one[job]["moved"], (job, apart / one[job]["moved"])


def test_our_update_follows_torchs(tmp_path):
    """Within rounding: torch multiplies and adds in another order."""
    jobs = {rule: f"optimizer/mlp/{rule}/schedule=yes" for rule in RULES + GROUPED}
    results = train(tmp_path, 2, [job + way for job in jobs.values() for way in ("", "/update=torch")])
    for rule, job in jobs.items():
        ours, torchs = (results[0][job + way]["weights"] for way in ("", "/update=torch"))
        for name in ours:
            distance = (ours[name] - torchs[name]).norm() / torchs[name].norm()
            assert distance < 1e-5, (rule, name, distance)


@pytest.mark.parametrize("consistency", ["async", "bounded:4", "softsync:2", "local-sgd:4", "easgd:4"])
def test_each_consistency_learns(tmp_path, consistency):
    jobs = [f"optimizer/mlp/sgd/mode=ps/consistency={consistency}"]
    for rank, result in enumerate(train(tmp_path, 2, jobs)):
        losses = result[jobs[0]]["losses"]
        assert all(loss == loss and loss < 10 for loss in losses), rank


def test_codecs_work_under_both_modes(tmp_path):
    codecs = ("fp16", "bf16", "int8", "topk:0.1", "randomk:0.1", "sign")
    jobs = [f"optimizer/mlp/sgd/compress={codec}{mode}" for codec in codecs for mode in ("", "/mode=ps")]
    jobs.append("optimizer/mlp/sgd/compress=powersgd:2")
    one, other = train(tmp_path, 2, jobs)
    for job in jobs:
        assert_same_bits(one[job], other[job])


def test_a_checkpoint_of_either_update_goes_on_with_either():
    for each in run("checkpoints.py", 2):
        assert "all go on" in each.out
