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
from torch.nn import functional

WARMUP_STEPS = 50
SAMPLES = 60000


class Block(nn.Module):
    """Of He et al., "Deep residual learning", section 4.2: two convolutions; a shortcut without parameters."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        self.stride, self.more = stride, outputs - inputs

    def forward(self, x):
        y = self.norms[1](self.second(functional.relu(self.norms[0](self.first(x)))))
        shortcut = x[:, :, ::self.stride, ::self.stride]
        return functional.relu(y + functional.pad(shortcut, (0, 0, 0, 0, 0, self.more)))


def make_resnet20():
    blocks = [Block(16 if i == 0 else 16 << ((i - 1) // 3), 16 << (i // 3), 2 if i in (3, 6) else 1) for i in range(9)]
    return nn.Sequential(nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16),
                         nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def make_model(name):
    if name == "resnet20":
        return make_resnet20()
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
