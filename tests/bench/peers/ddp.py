#!/usr/bin/python3
"""PyTorch's side of training_bench.py: one process of a DDP (gloo) group, or PyTorch alone.

usage: ddp.py RANK WORLD MODEL BATCH SECONDS STORE
Prints, from rank 0, the samples per second of all ranks over one common window. One thread a process, as ours.
"""
import os
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")

import torch
from torch import nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WARMUP_STEPS = 20
SAMPLES = 60000


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, images):
        return self.classifier(self.features(images.view(-1, 1, 28, 28)).flatten(1))


def require_fast_blas():
    """A win over a crippled peer is no win: the distribution's torch also runs on the reference BLAS, 20 times slower."""
    torch.ones(64, 64) @ torch.ones(64, 64)
    with open("/proc/self/maps") as maps:
        if not any(name in line for line in maps for name in ("openblas", "mkl", "blis")):
            sys.exit("ddp.py: PyTorch runs on the reference BLAS here; install libopenblas0")


def make_model(name):
    if name == "lenet":
        return LeNet()
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def main():
    rank, world = int(sys.argv[1]), int(sys.argv[2])
    model_name, batch, seconds, store = sys.argv[3], int(sys.argv[4]), float(sys.argv[5]), sys.argv[6]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    require_fast_blas()
    if world > 1:
        dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)
    model = make_model(model_name)
    if world > 1:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()
    # The whole set as float32 in memory: no reading and no conversion is charged to the peer, only the gathering of a batch.
    images, labels = torch.randn(SAMPLES, 784), torch.randint(0, 10, (SAMPLES,))
    order = torch.randperm(SAMPLES)[rank::world]
    position = 0

    def step():
        nonlocal position
        if position + batch > len(order):
            position = 0
        index = order[position:position + batch]
        position += batch
        optimizer.zero_grad()
        loss_of(model(images[index]), labels[index]).backward()
        optimizer.step()

    def timed(steps):
        if world > 1:
            dist.barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        if world > 1:
            dist.barrier()
        return time.perf_counter() - begin

    timed(WARMUP_STEPS)
    steps = torch.tensor([max(20, int(seconds * WARMUP_STEPS / timed(WARMUP_STEPS)))])
    if world > 1:
        dist.broadcast(steps, 0)
    elapsed = timed(int(steps))
    if rank == 0:
        print(f"samples_per_second {int(steps) * batch * world / elapsed:.1f}", flush=True)


main()
