"""Trains with parameter servers until something is lost: serving.py SERVERS. Each rank that has started some prints their
pids."""

import os
import sys

import torch

import syncopate.torch as sy


def children():
    path = f"/proc/self/task/{os.getpid()}/children"
    with open(path, encoding="utf-8") as file:
        return file.read().split()


def main(servers):
    torch.set_num_threads(1)
    sy.init()
    model = torch.nn.Linear(10, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), mode="ps", servers=int(servers))
    try:
        for step in range(10**9):
            model(torch.randn(4, 10)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if step == 10 and children():
                print("servers", *children(), flush=True)
    except sy.PeerLost as error:
        print(f"PeerLost rank={error.rank} {error}")
        sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
