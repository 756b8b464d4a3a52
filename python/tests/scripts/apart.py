"""Ranks that do not do the same, or what is refused: apart.py HOW. Prints what is raised."""

import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def train(batches):
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))
    for _ in range(batches):
        model(torch.ones(2, 8)).sum().backward()


def main(how):
    torch.set_num_threads(1)
    dist.init_process_group("syncopate", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    try:
        if how == "batches":
            train(3 + 2 * rank)
            dist.destroy_process_group()
            return
        if how == "sizes":
            dist.all_reduce(torch.ones(3 + rank))
        if how == "operations":
            dist.all_reduce(torch.ones(3)) if rank else dist.broadcast(torch.ones(3), 0)
    except Exception as error:
        print(f"raised: {error}")
    try:
        dist.barrier()
    except Exception as error:
        print(f"afterwards: {error}")
    dist.destroy_process_group()
    print("ended")


if __name__ == "__main__":
    main(*sys.argv[1:])
