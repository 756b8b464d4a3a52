"""Saves what an optimizer remembers after ten steps and goes on from it, with our update and with torch's, for each rule."""

import io

import torch
from torch import nn

import syncopate.torch as sy

RULES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.002, weight_decay=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.002),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "dampened": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.5),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.002, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.002),
    "rmsprop, centered": lambda p: torch.optim.RMSprop(p, lr=0.002, eps=1e-3, momentum=0.9, centered=True),
    "rmsprop, momentum": lambda p: torch.optim.RMSprop(p, lr=0.002, momentum=0.9),
    "adadelta": lambda p: torch.optim.Adadelta(p),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.002),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.002),
    "lars": lambda p: sy.LARS(p, lr=0.05, weight_decay=1e-2, trust_coefficient=0.05),
    "lamb": lambda p: sy.LAMB(p, lr=0.002, weight_decay=1e-2),
    "adagrad, from 0.1": lambda p: torch.optim.Adagrad(p, lr=0.01, initial_accumulator_value=0.1),
}


def model_of():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(7, 9), nn.Tanh(), nn.Linear(9, 3))


def train(model, optimizer, first, last):
    for step in range(first, last):
        draw = torch.Generator().manual_seed(2 * step + sy.rank())
        optimizer.zero_grad()
        model(torch.randn(4, 7, generator=draw)).square().sum().backward()
        optimizer.step()


def wrapped(model, rule, update):
    return sy.DistributedOptimizer(rule(model.parameters()), model.named_parameters(), update=update)


def whole(rule, update):
    """The model after twenty steps, and a file of the checkpoint after ten."""
    model = model_of()
    optimizer = wrapped(model, rule, update)
    train(model, optimizer, 0, 10)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    train(model, optimizer, 10, 20)
    optimizer.close()
    return model, file


def gone_on(rule, update, file, loads):
    """The model after twenty steps, of which this optimizer makes the last ten."""
    file.seek(0)
    saved = torch.load(file, weights_only=hasattr(torch, "compile"))
    model = model_of()
    optimizer = rule(model.parameters())
    if loads == "into torch's":
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), update=update)
    else:
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), update=update)
        optimizer.load_state_dict(saved["optimizer"])
        model.load_state_dict(saved["model"])
    train(model, optimizer, 10, 20)
    again = optimizer.state_dict()
    optimizer.close()
    return model, again


def names_in(state_dict):
    """What is remembered, by parameter; some versions of torch note that there is nothing."""
    there = {i: {name for name, value in each.items() if value is not None} for i, each in state_dict["state"].items()}
    return {i: names for i, names in there.items() if names}


def distance(one, other):
    return max((a - b).abs().max().item() for a, b in zip(one.parameters(), other.parameters()))


def main():
    torch.set_num_threads(1)
    sy.init()
    for name, rule in RULES.items():
        ours, ours_file = whole(rule, "own")
        torchs, torchs_file = whole(rule, "torch")
        for loads in ("into torch's", "into ours"):
            model, again = gone_on(rule, "own", ours_file, loads)
            # A sum that begins above zero rounds once more on its way.
            assert distance(model, ours) <= (1e-7 if "from" in name else 0.0), (name, loads)
        for update, file in (("torch", ours_file), ("own", torchs_file)):
            model, saved = gone_on(rule, update, file, "into ours")
            assert distance(model, torchs) < 1e-6, (name, update)
            assert distance(model, model_of()) > 1e-3, name
            if update == "torch":  # has the same keys
                assert again["param_groups"] == saved["param_groups"], name
                assert names_in(again) == names_in(saved), name
                if "adam" in name:
                    assert float(again["state"][0]["step"]) == 20.0
    only_rank_0()
    sy.shutdown()
    print("all go on")


def only_rank_0():
    """What the others have loaded does not count."""
    ours, file = whole(RULES["adam"], "own")
    file.seek(0)
    saved = torch.load(file, weights_only=hasattr(torch, "compile"))
    model = model_of()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002, weight_decay=1e-2)
    if sy.rank() == 0:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters())
    train(model, optimizer, 10, 20)
    optimizer.close()
    assert distance(model, ours) == 0.0


if __name__ == "__main__":
    main()
