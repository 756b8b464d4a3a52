"""PyTorch's tutorial of DistributedDataParallel: a small model that learns y = A x from its rank's own samples.

    torchrun --nproc-per-node=2 ddp_before.py
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    relation = torch.randn(10, 5)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5))
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)

    random = torch.Generator().manual_seed(2 + rank)
    for step in range(options.steps):
        x = torch.randn(20, 10, generator=random)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(ddp(x), x @ relation)
        loss.backward()
        optimizer.step()
        if rank == 0 and (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {loss.item():.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
