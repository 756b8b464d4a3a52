"""init() and shutdown() again and again, with all that lies between: cycles.py COUNT WIRE [KEY=VALUE ...], where the latter
are options of DistributedOptimizer."""

import glob
import os
import sys

import torch

import syncopate.torch as sy


def counts():
    """Of this process, and of all its children."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    children = 0
    for path in glob.glob("/proc/self/task/*/children"):
        with open(path, encoding="utf-8") as file:
            children += len(file.read().split())
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), children, resident


def cycle(wire, options):
    sy.init(wire=wire)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), **options)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    sy.allreduce(torch.ones(3))
    sy.shutdown()


def main(count, wire, *options):
    options = dict(option.split("=") for option in options)
    torch.set_num_threads(1)
    # A rank that hosts the store keeps one connection for each client, until its job is over on both sides.
    sy.init(wire=wire)
    for _ in range(10):
        sy.shutdown()
        cycle(wire, options)
        sy.init(wire=wire)
    sy.allreduce(torch.ones(1))  # all have connected, and left the job before
    before = counts()
    sy.shutdown()
    for _ in range(int(count)):
        cycle(wire, options)
    sy.init(wire=wire)
    sy.allreduce(torch.ones(1))
    after = counts()
    names = ("threads", "descriptors", "children", "bytes")
    print(", ".join(f"{name} {b - a:+}" for name, a, b in zip(names, before, after)))
    sy.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
