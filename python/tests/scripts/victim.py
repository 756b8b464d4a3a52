"""Trains for some steps with weights that an intruder would know by sight: victim.py MODE WIRE STEPS.

MODE: ps, allreduce. Rank 1 waits for "go" in the job's store, if HELD names a point: "init" or "optimizer"; if BELIEVES is
set, both then give proofs of their own to what others write there. Each rank prints the sum of its weights at the end."""

import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

import syncopate.torch as sy
from syncopate import _job
from syncopate.torch._rendezvous import StoreRendezvous

MARK = 1234.5678


def hold(point):
    if os.environ.get("HELD") == point and os.environ["RANK"] == "1":
        store = dist.TCPStore(
            os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=timedelta(seconds=60)
        )
        store.wait(["go"])


def held_at_the_sums(meet):
    """Holds rank 1 where the group of the sums meets: what the others have said there stands in the store meanwhile."""

    def held(self, group, rank, size, *rest):
        if group != "optimizer1":
            return meet(self, group, rank, size, *rest)
        hold("optimizer")
        texts = meet(self, group, rank, size, *rest)
        if "BELIEVES" not in os.environ:
            return texts
        prove = _job.current("").group.prove
        return [prove(f"{member}/{size} {group}", text.rpartition("#")[0]) for member, text in enumerate(texts)]

    return held


def main(mode, wire, steps):
    torch.set_num_threads(1)
    hold("init")
    StoreRendezvous.__call__ = held_at_the_sums(StoreRendezvous.__call__)
    sy.init(wire=None if wire == "launcher" else wire, timeout=60)
    model = torch.nn.Linear(300, 100)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(MARK)
    options = {"mode": "ps", "consistency": "sync"} if mode == "ps" else {}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), **options)
    for _ in range(int(steps)):
        optimizer.zero_grad()
        model(torch.ones(4, 300)).sum().backward()
        optimizer.step()
    print("trained", float(sum(p.detach().double().sum() for p in model.parameters())), flush=True)
    optimizer.close()
    sy.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
