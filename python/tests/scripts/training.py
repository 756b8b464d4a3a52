"""Short training jobs, one after the other: training.py FILE STEPS JOB ..., where a JOB is WAY/MODEL/OPTIMIZER and any
number of /KEY=VALUE. Rank r writes the weights, buffers and losses of each job to FILE.r."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

import syncopate.torch as sy



class Block(nn.Module):
    """One of a transformer's: each position attends to those before it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.dense = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.attention(self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        scores = query @ key.transpose(-1, -2) / query.size(-1) ** 0.5
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        seen = scores.masked_fill(future, float("-inf")).softmax(-1) @ value
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.dense(self.norms[1](x))


class Transformer(nn.Module):
    """Reads positions of (batch, 6) as tokens, and scores five that may come next, by the weights that embed them."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(16, 32)
        self.places = nn.Parameter(0.02 * torch.randn(6, 32))
        self.blocks = nn.Sequential(Block(32, 4), Block(32, 4))
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 16, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x):
        tokens = (8 * x.abs()).long().clamp(max=15)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places))[:, -1])[:, :5]


MODELS = {
    "transformer": Transformer,
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
SHAPES = {"mlp": (16, 20), "transformer": (16, 6), "conv": (16, 1, 8, 8)}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.002),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.002),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "sgd, up": lambda p: torch.optim.SGD(p, lr=0.001, momentum=0.9, dampening=0.3, maximize=True),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.002, weight_decay=1e-2, amsgrad=True),
    "amsgrad, decoupled": lambda p: torch.optim.AdamW(p, lr=0.002, amsgrad=True),
    "adagrad, slower": lambda p: torch.optim.Adagrad(p, lr=0.01, lr_decay=0.1, weight_decay=1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.001, weight_decay=1e-2),
    "rmsprop, centered": lambda p: torch.optim.RMSprop(p, lr=0.001, alpha=0.9, eps=1e-4, centered=True),
    "rmsprop, momentum": lambda p: torch.optim.RMSprop(p, lr=0.001, eps=1e-4, momentum=0.9, centered=True),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0, weight_decay=1e-2),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.002),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01, betas=(0.9, 0.99)),
    "lars": lambda p: sy.LARS(p, lr=0.05, weight_decay=1e-2, trust_coefficient=0.05),
    "lamb": lambda p: sy.LAMB(p, lr=0.005, weight_decay=1e-2),
    "groups, rmsprop": lambda p: torch.optim.RMSprop(groups(p, 0.001, 1e-2), lr=0.001, momentum=0.5),
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
    begun = [p.detach().clone() for p in model.parameters()]
    wire = options.pop("wire", "shm")
    schedule = options.pop("schedule", None)
    shares = int(options.pop("shares", world))  # as many ranks' batches are drawn; a rank alone takes all
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
        x = torch.randn(shares, *SHAPES[model_name])[rank::world].flatten(0, 1)
        y = torch.randint(0, 5, (shares, 16))[rank::world].flatten()
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
    moved = sum((p.detach() - first).double().square().sum().item() for p, first in zip(model.parameters(), begun)) ** 0.5
    weights = {name: value.detach().clone() for name, value in model.named_parameters()}
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    return {"moved": moved, "weights": weights, "buffers": buffers, "losses": losses}


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
