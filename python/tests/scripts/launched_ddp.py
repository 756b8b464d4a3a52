"""A script of torch.distributed's alone, as run_experiment starts it: launched_ddp.py WAY STEPS.

WAY: backend (ours under DistributedDataParallel), twice (the same, two batches a step), doubles (the same with a model of
64-bit floats), by-hand (sums over ours, without it), alone (nothing of ours goes between ranks: plain gloo).
"""

import sys

import torch
import torch.distributed as dist
from torch import nn


def main(way, steps):
    torch.set_num_threads(1)
    if way == "alone":
        import syncopate.torch as sy

        sy.init()  # by which nothing is taken over
    dist.init_process_group("gloo" if way == "alone" else "syncopate")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 2))
    dtype = torch.float64 if way == "doubles" else torch.float32
    model.to(dtype)
    trained = model if way == "by-hand" else nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    random = torch.Generator().manual_seed(dist.get_rank())
    for step in range(int(steps)):
        optimizer.zero_grad()
        for _ in range(2 if way == "twice" else 1):
            x = torch.randn(16, 20, generator=random, dtype=dtype)
            loss = nn.functional.cross_entropy(trained(x), (x.sum(1) > 0).long())
            figure = loss.detach()
            dist.all_reduce(figure)  # no part of a step
            loss.backward()
        if way == "by-hand":
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
        optimizer.step()
        if step == 0:
            print("the first step is made", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
