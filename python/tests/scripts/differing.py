"""Ranks that differ in one option: differing.py CASE ... Prints for each case what this rank was told."""

import sys

import numpy as np
import torch

import syncopate.numpy
import syncopate.torch as sy

SGD, ADAM, ADAMW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW


def wrap(rule, named=(), **options):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    return model, sy.DistributedOptimizer(rule(model.parameters(), **dict(named)), model.named_parameters(), **options)


# What each rank has, rank 0 and rank 1: the rule, its numbers, options.
AT_FIRST = {
    "rate": ((SGD, {"lr": 0.1}, {}), (SGD, {"lr": 0.2}, {})),
    "rate, torch": ((SGD, {"lr": 0.1}, {"update": "torch"}), (SGD, {"lr": 0.2}, {"update": "torch"})),
    "rate, ps": ((SGD, {"lr": 0.1}, {"mode": "ps"}), (SGD, {"lr": 0.2}, {"mode": "ps"})),
    "sharing": ((SGD, {"lr": 0.1}, {"update": "sharded"}), (SGD, {"lr": 0.1}, {})),
    "rate, sharded": ((SGD, {"lr": 0.1}, {"update": "sharded"}), (SGD, {"lr": 0.2}, {"update": "sharded"})),
    "rule": ((SGD, {"lr": 0.1}, {}), (ADAM, {"lr": 0.1}, {})),
    "rule, ps": ((SGD, {"lr": 0.1}, {"mode": "ps"}), (ADAM, {"lr": 0.1}, {"mode": "ps"})),
    "betas": ((ADAM, {}, {}), (ADAM, {"betas": (0.8, 0.999)}, {})),
    "momentum": ((SGD, {"lr": 0.1, "momentum": 0.9}, {}), (SGD, {"lr": 0.1, "momentum": 0.5}, {})),
    "decay": ((ADAMW, {}, {"update": "torch"}), (ADAMW, {"weight_decay": 0.5}, {"update": "torch"})),
    "compress": ((SGD, {"lr": 0.1}, {}), (SGD, {"lr": 0.1}, {"compress": "int8"})),
    "update": ((SGD, {"lr": 0.1}, {}), (SGD, {"lr": 0.1}, {"update": "torch"})),
    "mode": ((SGD, {"lr": 0.1}, {}), (SGD, {"lr": 0.1}, {"mode": "ps"})),
    "consistency": (
        (SGD, {"lr": 0.1}, {"mode": "ps"}),
        (SGD, {"lr": 0.1}, {"mode": "ps", "consistency": "async"}),
    ),
    "servers": ((SGD, {"lr": 0.1}, {"mode": "ps"}), (SGD, {"lr": 0.1}, {"mode": "ps", "servers": 2})),
    "bucket": ((SGD, {"lr": 0.1}, {"bucket_mb": 1}), (SGD, {"lr": 0.1}, {"bucket_mb": 2})),
    "passes": ((SGD, {"lr": 0.1}, {}), (SGD, {"lr": 0.1}, {"backward_passes_per_step": 2})),
    "passes, ps": (
        (SGD, {"lr": 0.1}, {"mode": "ps"}),
        (SGD, {"lr": 0.1}, {"mode": "ps", "backward_passes_per_step": 2}),
    ),
    "push": ((SGD, {"lr": 0.1}, {"mode": "ps"}), (SGD, {"lr": 0.1}, {"mode": "ps", "push": "step"})),
}
# Options of both ranks, of which rank 1 has another rate from step 2 on.
LATER = {
    "own": {},
    "torch": {"update": "torch"},
    "sharded": {"update": "sharded"},
    "int8": {"compress": "int8"},
    "sync": {"mode": "ps"},
    "async": {"mode": "ps", "consistency": "async"},
    "bounded": {"mode": "ps", "consistency": "bounded:2"},
    "softsync": {"mode": "ps", "consistency": "softsync:1"},
    "local-sgd": {"mode": "ps", "consistency": "local-sgd:2"},
    "easgd": {"mode": "ps", "consistency": "easgd:2"},
}
# The rule of both ranks and its numbers, of which rank 1 has another from step 2 on.
RULE_LATER = {
    "momentum": (SGD, {"lr": 0.1, "momentum": 0.9}, {"momentum": 0.5}, {}),
    "betas": (ADAM, {}, {"betas": (0.8, 0.999)}, {}),
    "decay": (ADAMW, {}, {"weight_decay": 0.5}, {"update": "torch"}),
    "momentum, ps": (SGD, {"lr": 0.1, "momentum": 0.9}, {"momentum": 0.5}, {"mode": "ps"}),
}


def later(rule, named, changed, options):
    model, optimizer = wrap(rule, named, **options)
    for step in range(10):
        if step == 2 and sy.rank() == 1:
            optimizer.param_groups[0].update(changed)
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        sy.allreduce(torch.ones(1))


def last(options):
    """Rank 1 has another rate in the last update alone, of which no exchange tells."""
    model, optimizer = wrap(SGD, {"lr": 0.1}, **options)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        if step == 2 and sy.rank() == 1:
            optimizer.param_groups[0]["lr"] = 0.25
        optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.1
    sy.shutdown()


def arrays(mode):
    strategy = syncopate.numpy.Strategy({"w": np.zeros(4, np.float32)}, mode=mode)
    for step in range(10):
        strategy.step({"w": np.ones(4, np.float32)}, 0.25 if (step, sy.rank()) == (2, 1) else 0.1)
        sy.allreduce(torch.ones(1))


def main(kind, *cases):
    torch.set_num_threads(1)
    sy.init(timeout=20)
    for case in cases:
        try:
            if kind == "first":
                rule, named, options = AT_FIRST[case][sy.rank()]
                wrap(rule, named, **options)
            elif kind == "later":
                later(SGD, {"lr": 0.1}, {"lr": 0.25}, LATER[case])
            elif kind == "rule":
                later(*RULE_LATER[case])
            elif kind == "last":
                last(LATER[case])
            else:
                arrays(case)
            print(f"{case} | nothing")
        except (ValueError, RuntimeError) as error:  # PeerLost is one
            print(f"{case} | {type(error).__name__} {error}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
