#!/usr/bin/env python3
"""PyTorch's side of gpu_training_bench.py: one process, one GPU.

usage: gpu.py MODEL BATCH SECONDS PRECISION
Prints the samples per second. PRECISION is fp32, tf32 or bf16 (autocast). The whole training set lies in the GPU's memory:
no loading, no conversion and no copy is charged to the peer, only the gathering of a batch.
"""
import sys
import time

import torch
from torch import nn

WARMUP_STEPS = 50
SAMPLES = 60000


def make_model(name):
    if name == "lenet":
        return nn.Sequential(nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 512),
                             nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def main():
    model_name, batch, seconds, precision = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model = make_model(model_name).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loss_of = nn.CrossEntropyLoss()
    images = torch.randn(SAMPLES, 784, device="cuda")
    labels = torch.randint(0, 10, (SAMPLES,), device="cuda")
    order = torch.randperm(SAMPLES, device="cuda")
    position = 0

    def step():
        nonlocal position
        if position + batch > SAMPLES:
            position = 0
        index = order[position:position + batch]
        position += batch
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of(model(images[index]), labels[index])
        loss.backward()
        optimizer.step()

    def timed(steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    timed(WARMUP_STEPS)
    steps = max(100, int(seconds * WARMUP_STEPS / timed(WARMUP_STEPS)))
    print(f"samples_per_second {steps * batch / timed(steps):.1f}")


main()
