"""A script of Horovod's alone: unchanged_horovod.py OUTPUT. Each rank leaves its weights in OUTPUT.RANK."""

import sys

import torch
import horovod.torch as hvd
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler
from unchanged import data


def main(output):
    hvd.init()
    torch.manual_seed(hvd.rank())
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    sampler = DistributedSampler(data(), hvd.size(), hvd.rank())
    for x, y in DataLoader(data(), batch_size=16, sampler=sampler):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    torch.save(model.state_dict(), f"{output}.{hvd.rank()}")
    hvd.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
