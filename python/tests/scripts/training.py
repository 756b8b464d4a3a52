"""Short training jobs, one after the other: training.py FILE STEPS JOB ..., where a JOB is WAY/MODEL/OPTIMIZER and any
number of /KEY=VALUE. Rank r writes the weights, buffers and losses of each job to FILE.r."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

import syncopate.torch as sy

MODELS = {
    "mlp": lambda: nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5)),
    "conv": lambda: nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(144, 5),
    ),
}
SHAPES = {"mlp": (16, 20), "conv": (16, 1, 8, 8)}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.002),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.002),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "groups, nesterov": lambda p: torch.optim.SGD(groups(p, 0.05, 1e-2), lr=0.05, momentum=0.9, nesterov=True),
    "groups, adam": lambda p: torch.optim.Adam(groups(p, 0.002, 1e-2), lr=0.002),
    "groups, adamw": lambda p: torch.optim.AdamW(groups(p, 0.002, 1e-1), lr=0.002),
    "groups, adagrad": lambda p: torch.optim.Adagrad(groups(p, 0.01, 1e-2), lr=0.01),
}


def groups(parameters, rate, decay):
    """Biases do not decay; the first layer is slow, and the last bias is frozen."""
    weights, biases = ([p for p in parameters if (p.dim() > 1) is of_weights] for of_weights in (True, False))
    return [
        {"params": biases[:-1], "weight_decay": 0.0},
        {"params": biases[-1:], "weight_decay": 0.0, "lr": 0.0},
        {"params": weights[1:], "weight_decay": decay},
        {"params": weights[:1], "weight_decay": decay / 3, "lr": rate / 7},
    ]


def train(steps, way, model_name, optimizer_name, *options):
    options = dict(option.split("=") for option in options)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(1)
    model = MODELS[model_name]()
    wire = options.pop("wire", "shm")
    schedule = options.pop("schedule", None)
    bucket_mb = float(options.pop("bucket_mb", 1))
    kwargs = {name: int(value) if value.isdigit() else value for name, value in options.items()}
    trained = model
    if way not in ("ddp", "backend"):
        sy.init(wire=wire)
    if way != "optimizer":
        group = dist.new_group(backend="syncopate") if way == "backend" else None
        trained = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=bucket_mb, process_group=group)
    if way == "hook":
        trained.register_comm_hook(sy.HookState(), sy.allreduce_hook)
    optimizer = OPTIMIZERS[optimizer_name](list(model.parameters()))
    if way == "optimizer":
        sy.broadcast_parameters(model)
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), bucket_mb=bucket_mb, **kwargs)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.7) if schedule else None
    torch.manual_seed(7)
    losses = []
    for _ in range(steps):
        # Each rank draws the batches of all, and takes its own.
        x = torch.randn(world, *SHAPES[model_name])[rank]
        y = torch.randint(0, 5, (world, 16))[rank]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(trained(x), y)
        loss.backward()
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
    if way == "backend":
        dist.destroy_process_group(group)
    sy.shutdown()
    weights = {name: value.detach().clone() for name, value in model.named_parameters()}
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    return {"weights": weights, "buffers": buffers, "losses": losses}


def main(file, steps, *jobs):
    torch.set_num_threads(1)
    if any(not job.startswith("optimizer/") for job in jobs):
        dist.init_process_group("gloo")
    results = {job: train(int(steps), *job.split("/")) for job in jobs}
    torch.save(results, f"{file}.{os.environ['RANK']}")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
