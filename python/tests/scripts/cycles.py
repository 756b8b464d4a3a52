"""init() and shutdown() again and again, with all that lies between: cycles.py COUNT."""

import os
import sys

import torch

import syncopate.torch as sy


def counts():
    with open("/proc/self/statm", encoding="utf-8") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), resident


def cycle():
    sy.init()
    model = torch.nn.Linear(4, 2)
    optimizer = sy.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    sy.allreduce(torch.ones(3))
    sy.shutdown()


def main(count):
    torch.set_num_threads(1)
    # A rank that hosts the store keeps one connection for each client, until its job is over on both sides.
    sy.init()
    for _ in range(10):
        sy.shutdown()
        cycle()
        sy.init()
    before = counts()
    sy.shutdown()
    for _ in range(int(count)):
        cycle()
    sy.init()
    sy.allreduce(torch.ones(1))  # all have connected
    after = counts()
    print(f"threads +{after[0] - before[0]}, descriptors +{after[1] - before[1]}, bytes +{after[2] - before[2]}")
    sy.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
