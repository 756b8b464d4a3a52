#!/usr/bin/env python3
"""PyTorch's side of gpu_training_bench.py: one process, one GPU.

usage: gpu.py MODEL BATCH SECONDS PRECISION
Prints the samples per second. MODEL is mlp, lenet, resnet20 (on digits), resnet50 (on images of 224x224 in 1000 classes)
or gpt:LAYERS-HEADS-WIDTH (on 1024 of GPT-2's tokens); PRECISION is fp32, tf32 or bf16 (autocast). The whole training
set lies in the GPU's memory: no loading, no conversion and no copy is charged to the peer, only the gathering of a batch.
"""
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "python/examples"))
from resnet50 import ResNet  # noqa: E402

VOCABULARY, CONTEXT = 50257, 1024
FEW = 1024  # samples, of which each is large
DEVICE = "cuda"


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
        if self.more:
            x = functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.more))
        return functional.relu(y + x)


class GptBlock(nn.Module):
    """Of GPT-2: x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, heads, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.heads = heads

    def forward(self, x):
        batch, context, width = x.shape
        q, k, v = (part.view(batch, context, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, 2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, context, width))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """Tokens (N, T) to scores (N * T, V), by the embedding's own weights."""

    def __init__(self, layers, heads, width):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*[GptBlock(heads, width) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]
        return functional.linear(self.norm(self.blocks(x)), self.tokens.weight).flatten(0, 1)


def make_resnet20():
    blocks = [Block(16 if i == 0 else 16 << ((i - 1) // 3), 16 << (i // 3), 2 if i in (3, 6) else 1) for i in range(9)]
    return nn.Sequential(nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16),
                         nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def make_model(name):
    if name == "resnet20":
        return make_resnet20()
    if name == "resnet50":
        return ResNet()
    if name.startswith("gpt:"):
        return Gpt(*(int(number) for number in name[4:].split("-")))
    if name == "lenet":
        return nn.Sequential(nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 512),
                             nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def make_samples(name):
    """A training set in the GPU's memory: what the model sees, and the labels of each sample."""
    if name == "resnet50":
        return torch.randn(FEW, 3, 224, 224, device=DEVICE), torch.randint(0, 1000, (FEW,), device=DEVICE)
    if name.startswith("gpt:"):
        text = torch.randint(0, VOCABULARY, (FEW, CONTEXT + 1), device=DEVICE)
        return text[:, :-1], text[:, 1:]
    return torch.randn(60000, 784, device=DEVICE), torch.randint(0, 10, (60000,), device=DEVICE)


def main():
    model_name, batch, seconds, precision = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model = make_model(model_name).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loss_of = nn.CrossEntropyLoss()
    samples, labels = make_samples(model_name)
    warmup_steps, fewest_steps = (10, 20) if len(samples) == FEW else (50, 100)
    order = torch.randperm(len(samples), device=DEVICE)
    position = 0

    def step():
        nonlocal position
        if position + batch > len(samples):
            position = 0
        index = order[position:position + batch]
        position += batch
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of(model(samples[index]), labels[index].flatten())
        loss.backward()
        optimizer.step()

    def timed(steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    timed(warmup_steps)
    steps = max(fewest_steps, int(seconds * warmup_steps / timed(warmup_steps)))
    print(f"samples_per_second {steps * batch / timed(steps):.1f}")


if __name__ == "__main__":
    main()
