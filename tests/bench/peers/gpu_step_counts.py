#!/usr/bin/env python3
"""Counts what a training step of eager PyTorch gives to a GPU, on a machine without one.

usage: gpu_step_counts.py [MODEL ...]
MODEL is one of gpu.py's. Images train by SGD with momentum, text by AdamW, both with foreach=True. The tensors are fake:
they have shapes and no values, so a large model takes no longer than a small one. What is counted are the operators that
autograd and the optimizer call in the third step, below all that is made of other operators:

- each is one kernel; views, uninitialised memory, and what AdamW does with its steps, which are on the host, are none;
- mm, addmm and bmm are one product each, not a kernel;
- convolution is one convolution, its backward one for each of the two gradients that is wanted (a bias: one kernel);
- an operator on a list of tensors is as many kernels as its blocks of 65536 values fill launches.

So a GPU is given at least as much: some operators launch several kernels there (embedding_dense_backward sorts), and a
library may launch several for one product or convolution.
"""
import collections
import sys

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from gpu import VOCABULARY, make_model

MODELS = ["mlp", "lenet", "resnet20", "resnet50", "gpt:2-2-32", "gpt:12-12-768"]
BATCH, CONTEXT = 2, 16  # no count depends on them
STEPS = 3  # an optimizer's first one makes its state

PRODUCTS = {"mm", "addmm", "bmm"}
NO_WORK = {"empty", "empty_like", "_unsafe_view", "_local_scalar_dense"}  # the last reads a step, which is on the host
# What one launch of a build for CUDA 13 takes (PyTorch's MultiTensorApply.cuh); builds for older ones take a seventh.
BLOCK_VALUES, LAUNCH_BLOCKS, LAUNCH_TENSORS = 65536, 2240, 210


def launches_for(tensors):
    assert len(tensors) <= LAUNCH_TENSORS
    if all(tensor.dim() == 0 for tensor in tensors):
        return 0  # AdamW's steps
    blocks = sum(-(-tensor.numel() // BLOCK_VALUES) for tensor in tensors)
    return -(-blocks // LAUNCH_BLOCKS)


class StepCounts(TorchDispatchMode):
    """Counts the kernels, products and convolutions of what runs within it."""

    def __init__(self):
        super().__init__()
        self.counts = collections.Counter()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        name = operator.overloadpacket.__name__
        if operator.namespace == "aten" and not operator.is_view and name not in NO_WORK:
            self.count(name, args)
        return operator(*args, **(kwargs or {}))

    def count(self, name, args):
        if name in PRODUCTS:
            self.counts["products"] += 1
        elif name == "convolution":
            self.counts["convolutions"] += 1
            self.counts["kernels"] += args[2] is not None  # the bias
        elif name == "convolution_backward":
            of_input, of_weight, of_bias = args[-1]
            self.counts["convolutions"] += of_input + of_weight
            self.counts["kernels"] += of_bias
        else:
            self.counts["kernels"] += launches_for(args[0]) if name.startswith("_foreach_") else 1


def make_samples(name):
    if name.startswith("gpt:"):
        return torch.randint(VOCABULARY, (BATCH, CONTEXT)), torch.randint(VOCABULARY, (BATCH * CONTEXT,))
    shape = (3, 224, 224) if name == "resnet50" else (784,)
    return torch.randn(BATCH, *shape), torch.randint(10, (BATCH,))


def make_optimizer(name, model):
    if name.startswith("gpt:"):
        return torch.optim.AdamW(model.parameters(), foreach=True)
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)


def counts_of_step(name):
    with FakeTensorMode():
        model = make_model(name)
        optimizer, loss_of = make_optimizer(name, model), nn.CrossEntropyLoss()
        samples, labels = make_samples(name)
        for _ in range(STEPS):
            with StepCounts() as step:
                optimizer.zero_grad(set_to_none=True)
                loss_of(model(samples), labels).backward()
                optimizer.step()
    return step.counts


def main():
    print(f"{'model':14}{'kernels':>9}{'products':>10}{'convolutions':>14}")
    for name in sys.argv[1:] or MODELS:
        counts = counts_of_step(name)
        print(f"{name:14}{counts['kernels']:9}{counts['products']:10}{counts['convolutions']:14}")


if __name__ == "__main__":
    main()
